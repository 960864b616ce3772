//! The state of scripts, and their records of earlier runs, through the server and the command.

use std::process::{Command, Output};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::alone;
use crate::support::serve::{Client, Start, WATCHDOG, run_cx, text};

const TYPESCRIPT: &str = "executeTypescript";
const PYTHON: &str = "executePython";

impl Client {
    fn value(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result:#}");
        result["structuredContent"]["value"].clone()
    }
}

/// The command in a client's workspace.
pub(super) fn cx(client: &Client, arguments: &[&str]) -> Output {
    let output = run_cx(client.directory(), arguments);
    assert!(output.status.success(), "{output:?}");
    output
}

#[test]
fn state_outlives_runs_and_the_server() {
    let mut client = Client::plain();
    assert!(!client.directory().join("cx/scripts.sqlite3").exists(), "nothing is opened before it is used");
    client.value(TYPESCRIPT, json!({ "code": "await state.set('k', { n: 1 })" }));
    let code = "await state.update('k', lambda k: {'n': k['n'] + 1})";
    assert_eq!(client.value(PYTHON, json!({ "code": code })), json!({ "n": 2 }));
    let mut next = Start::new().beside(&client).spawn().shaken();
    client.end();
    assert_eq!(next.value(TYPESCRIPT, json!({ "code": "return await state.get('k')" })), json!({ "n": 2 }));
    // `cx run` in the same workspace shares it.
    let output = cx(&next, &["run", "-e", "return await state.get('k')"]);
    assert_eq!(output.stdout, b"{\"n\":2}\n");
    next.end();
}

#[test]
fn sessions_are_apart() {
    let mut client = Client::plain();
    let set = |session: Value, value: u32| {
        let code = format!("await state.set('k', {value})");
        json!({ "code": code, "session": session })
    };
    client.value(TYPESCRIPT, set(Value::Null, 1));
    client.value(TYPESCRIPT, set(json!("a"), 2));
    // A session with the name of the workspace is another scope.
    let workspace = client.directory().canonicalize().unwrap().display().to_string();
    client.value(TYPESCRIPT, set(json!(workspace), 3));
    let get = |session: Value| json!({ "code": "await state.get('k')", "session": session });
    assert_eq!(client.value(PYTHON, get(Value::Null)), 1);
    assert_eq!(client.value(PYTHON, get(json!("a"))), 2);
    assert_eq!(client.value(PYTHON, get(json!(workspace))), 3);
    assert_eq!(client.value(PYTHON, get(json!("b"))), Value::Null);
    let refused = client.call(TYPESCRIPT, get(json!("a\u{1b}[2J")));
    assert_eq!(refused["structuredContent"]["error"]["code"], "INVALID_ARGUMENTS");
    assert!(text(&refused).contains("`session`: expected characters that can be seen"), "{}", text(&refused));
    client.end();
}

#[test]
fn nothing_of_two_servers_updates_is_lost() {
    let mut first = Client::plain();
    let mut second = Start::new().beside(&first).spawn().shaken();
    let typescript = "for (let i = 0; i < 100; i++) await state.update('n', (n) => n + 1, 0)";
    let python = "for i in range(100):\n    await state.update('n', lambda n: n + 1, 0)";
    let runs = [
        first.begin_call(TYPESCRIPT, json!({ "code": typescript })),
        first.begin_call(PYTHON, json!({ "code": python })),
    ];
    let others = [
        second.begin_call(TYPESCRIPT, json!({ "code": typescript })),
        second.begin_call(PYTHON, json!({ "code": python })),
    ];
    for (client, ids) in [(&mut first, runs), (&mut second, others)] {
        for id in ids {
            let answer = client.answer(&id);
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
    }
    assert_eq!(first.run("return await state.get('n')")["value"], 400);
    first.end();
    second.end();
}

#[test]
fn a_run_that_is_cancelled_while_it_writes_leaves_whole_values() {
    let mut client = Client::plain();
    let code = "
        for (let n = 0; ; n++) {
          await Promise.all(Array.from({ length: 50 }, (_, i) => state.set(`k${i}`, `${n}`.repeat(20000))));
          console.log(n);
        }";
    for _ in 0..3 {
        let call = client.begin(
            "tools/call",
            json!({ "name": TYPESCRIPT, "arguments": { "code": code }, "_meta": { "progressToken": 1 } }),
        );
        client.wait_for_health(|health| health["connectionPool"]["active"] == 1);
        // By then the process has written something.
        let began = Instant::now();
        while client.run("return (await state.keys()).length")["value"] == 0 {
            assert!(began.elapsed() < WATCHDOG, "nothing was written");
        }
        let cancelled = json!({ "requestId": call });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }));
        client.wait_for_health(|health| health["connectionPool"]["active"] == 0);
        let check = "
            const values = await Promise.all((await state.keys()).map((key) => state.get(key)));
            return values.every((value) => value === value.slice(0, value.length / 20000).repeat(20000));";
        assert_eq!(client.run(check)["value"], true);
    }
    client.end();
}

#[test]
fn a_dry_run_by_parameter() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let code = "
        await state.set('k', 1);
        await tools.well.count({ a: [1] });
        return await state.get('k')";
    let result = client.call(TYPESCRIPT, json!({ "code": code, "dryRun": true }));
    let answer = &result["structuredContent"];
    assert_eq!(answer["value"], 1, "{answer}");
    let planned = json!([{ "tool": "mcp__well__count", "arguments": { "a": [1] } }]);
    assert_eq!(answer["plannedCalls"], planned);
    assert!(text(&result).contains("[dry run] mcp__well__count {\"a\":[1]}"), "{}", text(&result));
    assert_eq!(client.run("return await state.keys()")["value"], json!([]), "it stayed in the run");
    let result = client.call(PYTHON, json!({ "code": "1", "dryRun": true }));
    assert_eq!(result["structuredContent"]["plannedCalls"], json!([]));
    assert!(text(&result).contains("[dry run] it would have called nothing"), "{}", text(&result));
    // If there are many or large ones, they are counted.
    let code = "for (let i = 0; i < 900; i++) await tools.well.count({ text: 'x'.repeat(300) })";
    let result = client.call(TYPESCRIPT, json!({ "code": code, "dryRun": true }));
    let answer = &result["structuredContent"];
    let shown = answer["plannedCalls"].as_array().unwrap().len();
    assert!(shown > 10 && answer["plannedCallsOmitted"] == 900 - shown, "{shown}");
    assert!(text(&result).len() < 60_000 && text(&result).contains(&format!("and {} more", 900 - shown)));
    assert!(client.run("return 1").get("plannedCalls").is_none());
    client.end();
}

#[test]
fn an_earlier_run_is_read_by_a_script() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let code = "
        await tools.well.echo({ a: 1 });
        console.log('x'.repeat(30000));
        return Array.from({ length: 20000 }, (_, i) => i)";
    let id = client.run(code)["runId"].as_str().unwrap().to_owned();
    let code = "
        const run = await mcp.run(input);
        return [run.id === input, run.output.length, run.value.length, run.value[19999], run.calls[0].tool]";
    let expected = json!([true, 30_000, 20_000, 19_999, "mcp__well__echo"]);
    assert_eq!(client.value(TYPESCRIPT, json!({ "code": code, "input": id })), expected);
    let code = "
run = await mcp.run(inputs)
again = mcp.run_sync(inputs)
[run == again, len(run['output']), len(run['value']), run['value'][-1], run['calls'][0]['tool']]";
    assert_eq!(client.value(PYTHON, json!({ "code": code, "input": id })), expected);
    // For a run that failed, the record has the error.
    let failed = client.run("await tools.well.echo({}); throw new Error('no')")["runId"].clone();
    let code =
        "const run = await mcp.run(input); return [Object.keys(run), run.error.code, run.error.message]";
    let expected = json!([["id", "output", "error", "calls"], "RUNTIME_ERROR", "no"]);
    assert_eq!(client.value(TYPESCRIPT, json!({ "code": code, "input": failed })), expected);
    client.end();
}

#[test]
fn a_state_that_cannot_be_used_harms_no_other_run() {
    let mut client = Client::plain();
    // A link in place of the file.
    std::fs::create_dir_all(client.directory().join("cx")).unwrap();
    std::os::unix::fs::symlink("/dev/null", client.directory().join("cx/scripts.sqlite3")).unwrap();
    let answer =
        client.run("try { await state.set('k', 1) } catch (error) { return [error.code, error.message] }");
    assert_eq!(answer["value"][0], "STATE_UNAVAILABLE", "{answer}");
    assert!(answer["value"][1].as_str().unwrap().contains("`cx state list` says why"), "{answer}");
    assert_eq!(client.run("return 1")["value"], 1);
    client.end();
}

#[test]
fn a_person_sees_and_clears_what_is_kept() {
    let mut client = Client::plain();
    client.value(TYPESCRIPT, json!({ "code": "await state.set('k', 1)" }));
    for session in ["a", "b"] {
        client.value(TYPESCRIPT, json!({ "code": "await state.set('key', [1, 2])", "session": session }));
    }
    let workspace = client.directory().canonicalize().unwrap();
    let list = String::from_utf8(cx(&client, &["state", "list"]).stdout).unwrap();
    assert!(list.contains(&format!("workspace {}: 1 key, 2 bytes\n", workspace.display())), "{list}");
    assert!(list.contains("session a: 1 key, 8 bytes\n"), "{list}");
    let json: Value = serde_json::from_slice(&cx(&client, &["state", "list", "--json"]).stdout).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 3);
    assert_eq!(json[0]["workspace"], workspace.display().to_string());
    // Both in one directory.
    let mut clears = Command::new(env!("CARGO_BIN_EXE_cx"));
    let cleared = alone(&mut clears, client.directory()).args(["cache", "clear"]).output().unwrap();
    assert!(cleared.status.success(), "{cleared:?}");
    let run = |client: &Client, arguments: &[&str]| {
        let code = ["run", "-e", "return (await state.keys()).length"];
        String::from_utf8(cx(client, &[&code, arguments].concat()).stdout).unwrap()
    };
    assert_eq!(run(&client, &[]), "1\n", "the cache is something else");
    assert_eq!(run(&client, &["--session", "a"]), "1\n");
    let told = String::from_utf8(cx(&client, &["state", "clear"]).stdout).unwrap();
    assert!(told.contains(&format!("deleted 1 key of workspace {}", workspace.display())), "{told}");
    assert_eq!((run(&client, &[]), run(&client, &["--session", "a"])), ("0\n".to_owned(), "1\n".to_owned()));
    cx(&client, &["state", "clear", "--session", "a"]);
    assert_eq!(run(&client, &["--session", "a"]), "0\n");
    // The server that has the file open sees it too.
    assert_eq!(
        client.value(TYPESCRIPT, json!({ "code": "await state.keys()", "session": "b" })),
        json!(["key"])
    );
    cx(&client, &["state", "clear", "--all", "--yes"]);
    assert_eq!(client.value(TYPESCRIPT, json!({ "code": "await state.keys()", "session": "b" })), json!([]));
    client.end();
}

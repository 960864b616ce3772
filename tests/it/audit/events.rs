//! The fields of each event of the trail.

use cx::audit::{AuditOptions, AuditReader};
use cx::{Approval, Executor, ExecutorBuilder, Grants, Limits, PrivateAddresses, Script, ToolRules};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::chaos;

type Line = Map<String, Value>;

/// The lines of a trail whose executor is closed.
fn lines(options: &AuditOptions) -> Vec<Line> {
    let mut reader = AuditReader::new(&options.directory);
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line(true).unwrap() {
        lines.push(line.fields.unwrap());
    }
    lines
}

/// The lines of an event.
fn of<'a>(lines: &'a [Line], event: &str) -> Vec<&'a Line> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

/// These fields of a line; null for a field that it does not have.
fn pick(line: &Line, names: &[&str]) -> Value {
    names.iter().map(|name| line.get(*name).cloned().unwrap_or_default()).collect()
}

fn sha256(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}

fn tool(builder: ExecutorBuilder, name: &str) -> ExecutorBuilder {
    let fails = name == "notes.fail";
    builder.tool(name, Value::Null, move |_: Value| async move {
        if fails { Err("it did not work".to_owned()) } else { Ok(json!({ "done": true })) }
    })
}

fn builder(options: &AuditOptions) -> ExecutorBuilder {
    let builder = Executor::builder().audit(options.clone()).warm_instances(1);
    let names = ["notes.add", "notes.delete", "notes.drop", "notes.fail", "notes.wipe"];
    let builder = names.into_iter().fold(builder, tool);
    builder.allow(["notes.*"]).deny(["notes.drop"]).ask(["notes.delete", "notes.wipe"])
}

/// A run with every kind of call: the trail has who asked for it, the rule that permitted it, who approved it, and its
/// outcome.
#[test]
fn the_lines_of_a_run_and_its_calls_have_what_the_document_says() {
    let directory = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(directory.path().join("trail"));
    let executor = builder(&options)
        .approver(|request| async move {
            if request.tool == "wipe" { Approval::Deny { reason: None } } else { Approval::Approve }
        })
        .build()
        .unwrap();
    let source = "await tools.notes.add({ text: 'é', at: 1 });
        await tools.notes.delete({ id: 7 });
        await tools.notes.wipe({}).catch(() => {});
        await tools.notes.drop({}).catch(() => {});
        await tools.notes.fail({}).catch(() => {});
        return 1";
    let limits = Limits { tool_calls: 9, ..Limits::default() };
    let script = Script::typescript(source).named("tidy.ts").client("someone").limits(limits);
    let result = executor.run_blocking(script.input(json!([1, 2]))).unwrap();
    assert_eq!(result.error(), None);
    futures::executor::block_on(executor.close());
    let lines = lines(&options);
    let [started] = of(&lines, "run.started")[..] else { panic!("{lines:?}") };
    let names = ["script", "language", "sourceSha256", "sourceBytes", "inputBytes", "client", "dryRun"];
    let expected =
        json!(["tidy.ts", "typescript", sha256(source), source.len(), "[1,2]".len(), "someone", null]);
    assert_eq!(pick(started, &names), expected, "{started:?}");
    let milliseconds = u64::try_from(limits.wall_time.as_millis()).unwrap();
    assert_eq!(started["limits"]["wallTimeMs"], milliseconds, "{started:?}");
    assert_eq!(started["limits"]["toolCalls"], 9, "{started:?}");
    let [ended] = of(&lines, "run.ended")[..] else { panic!("{lines:?}") };
    // Two of the calls were not sent.
    let names = ["run", "outcome", "code", "toolCalls", "toolCallsRefused"];
    assert_eq!(pick(ended, &names), json!([started["run"], "ok", null, 3, 2]), "{ended:?}");
    for number in ["durationUs", "cpuTimeUs", "memoryBytes", "toolResultBytes"] {
        assert!(ended[number].as_u64().unwrap() > 0, "{number}: {ended:?}");
    }

    let of_calls = |event: &str, names: &[&str]| -> Value {
        of(&lines, event).iter().map(|line| pick(line, names)).collect()
    };
    let names = ["call", "server", "tool", "rule", "approver", "argumentsSha256"];
    // The hash is that of the canonical form, whatever the order of keys in the script.
    let expected = json!([
        [1, "notes", "add", "allow: notes.*", null, sha256("{\"at\":1,\"text\":\"é\"}")],
        [2, "notes", "delete", "allow: notes.*", "executor", sha256("{\"id\":7}")],
        [5, "notes", "fail", "allow: notes.*", null, sha256("{}")],
    ]);
    assert_eq!(of_calls("call.will", &names), expected);
    let names = ["call", "tool", "outcome", "code", "resultBytes", "resultSha256"];
    let done = "{\"done\":true}";
    let expected = json!([
        [1, "add", "ok", null, done.len(), sha256(done)],
        [2, "delete", "ok", null, done.len(), sha256(done)],
        [5, "fail", "failed", "TOOL_ERROR", 0, null],
    ]);
    assert_eq!(of_calls("call.did", &names), expected);
    assert!(of(&lines, "call.did").iter().all(|line| line["durationUs"].is_u64()), "{lines:?}");
    let names = ["call", "server", "tool", "code", "rule"];
    let expected = json!([
        [3, "notes", "wipe", "TOOL_DENIED", "ask: notes.wipe"],
        [4, "notes", "drop", "TOOL_DENIED", "deny: notes.drop"],
    ]);
    assert_eq!(of_calls("call.refused", &names), expected);
    let names = ["call", "tool", "reason", "rule", "argumentsSha256"];
    let expected = json!([
        [2, "delete", "`ask` names it: `notes.delete`", "ask: notes.delete", sha256("{\"id\":7}")],
        [3, "wipe", "`ask` names it: `notes.wipe`", "ask: notes.wipe", sha256("{}")],
    ]);
    assert_eq!(of_calls("approval.asked", &names), expected);
    let names = ["call", "tool", "approver", "answer", "reason"];
    let expected =
        json!([[2, "delete", "executor", "approved", null], [3, "wipe", "executor", "refused", "denied"]]);
    assert_eq!(of_calls("approval.answered", &names), expected);
    // All lines belong to the run, and none has the contents.
    let calls = lines.iter().filter(|line| line.contains_key("call"));
    assert!(calls.clone().count() == 12 && calls.clone().all(|line| line["run"] == started["run"]));
    assert!(calls.clone().all(|line| !line.contains_key("arguments") && !line.contains_key("result")));
}

/// THREATS 674: what a script looks for is in the trail by its name, also where there is no such server.
#[test]
fn v_674_a_call_of_what_does_not_exist_is_in_the_trail_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(directory.path().join("trail"));
    let executor = builder(&options).build().unwrap();
    let source = "for (const name of ['mcp__absent__wipe', 'absent.wipe', 'mcp__notes__burn', 'wipe', ''])
            await callMCPTool(name, {}).catch(() => {});
        return 1";
    let result = executor.run_blocking(source).unwrap();
    assert_eq!(result.error(), None);
    futures::executor::block_on(executor.close());
    let lines = lines(&options);
    let names = ["call", "server", "tool", "code"];
    let refused: Value = of(&lines, "call.refused").iter().map(|line| pick(line, &names)).collect();
    let expected = json!([
        [1, "absent", "wipe", "TOOL_NOT_FOUND"],
        [2, "absent", "wipe", "TOOL_NOT_FOUND"],
        [3, "notes", "burn", "TOOL_NOT_FOUND"],
        [4, null, "wipe", "TOOL_NOT_FOUND"],
        [5, null, null, "TOOL_NOT_FOUND"],
    ]);
    assert_eq!(refused, expected, "{lines:?}");
}

/// A call that is refused, or asked about, because of an address in the arguments has the rule about addresses.
#[test]
fn v_572_the_rule_about_private_addresses_is_in_the_trail() {
    let source = "await tools.notes.add({ text: 'http://169.254.169.254/' }).catch(() => {}); return 1";
    for (treatment, rule) in
        [(PrivateAddresses::Deny, "privateAddresses: deny"), (PrivateAddresses::Ask, "privateAddresses: ask")]
    {
        let directory = tempfile::tempdir().unwrap();
        let options = AuditOptions::new(directory.path().join("trail"));
        let executor = tool(Executor::builder().audit(options.clone()).warm_instances(1), "notes.add")
            .rules(ToolRules::new().private_addresses(treatment))
            .approver(|_request| async { Approval::Deny { reason: None } })
            .build()
            .unwrap();
        assert_eq!(executor.run_blocking(Script::typescript(source)).unwrap().error(), None);
        futures::executor::block_on(executor.close());
        let lines = lines(&options);
        let [refused] = of(&lines, "call.refused")[..] else { panic!("{lines:?}") };
        let names = ["call", "server", "tool", "code", "rule"];
        assert_eq!(pick(refused, &names), json!([1, "notes", "add", "TOOL_DENIED", rule]));
        let asked: Vec<Value> =
            of(&lines, "approval.asked").iter().map(|line| pick(line, &["call", "rule"])).collect();
        let expected = if treatment == PrivateAddresses::Ask { vec![json!([1, rule])] } else { Vec::new() };
        assert_eq!(asked, expected);
        // The address is a part of the arguments, whose text the trail does not have.
        assert!(!serde_json::to_string(&lines).unwrap().contains("169.254"), "{lines:?}");
    }
}

/// A request of `fetch` that was not sent has the rule that refuses it, also a rule that names the host without its
/// port.
#[test]
fn v_572_the_rule_about_a_host_is_in_the_trail() {
    let directory = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(directory.path().join("trail"));
    let grants = Grants { net: vec!["127.0.0.1".parse().unwrap()], ..Grants::default() };
    let executor = Executor::builder()
        .audit(options.clone())
        .warm_instances(1)
        .grants(grants)
        .deny(["fetch.127.0.0.1"])
        .build()
        .unwrap();
    let source = "for (const url of ['http://127.0.0.1:8443/', 'http://host.example/']) {
            await fetch(url).catch(() => {});
        }
        return 1";
    assert_eq!(executor.run_blocking(Script::typescript(source)).unwrap().error(), None);
    futures::executor::block_on(executor.close());
    let lines = lines(&options);
    let names = ["server", "tool", "code", "rule"];
    let refused: Vec<Value> = of(&lines, "call.refused").iter().map(|line| pick(line, &names)).collect();
    let expected = [
        json!(["fetch", "127.0.0.1:8443", "TOOL_DENIED", "deny: fetch.127.0.0.1"]),
        json!(["fetch", "host.example", "NET_DENIED", "grants.net: no host matches"]),
    ];
    assert_eq!(refused, expected);
}

/// A dry run and its calls cannot be taken for a run that has had effects.
#[test]
fn a_dry_run_is_one_in_the_trail() {
    let directory = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(directory.path().join("trail"));
    let executor = builder(&options).build().unwrap();
    let script = Script::typescript("await tools.notes.add({ text: 'a' }); return 1").dry_run();
    assert_eq!(executor.run_blocking(script).unwrap().error(), None);
    futures::executor::block_on(executor.close());
    let lines = lines(&options);
    assert_eq!(of(&lines, "run.started")[0]["dryRun"], true);
    let [simulated] = of(&lines, "call.simulated")[..] else { panic!("{lines:?}") };
    let expected = json!([1, "notes", "add", sha256("{\"text\":\"a\"}")]);
    assert_eq!(pick(simulated, &["call", "server", "tool", "argumentsSha256"]), expected);
    assert!(of(&lines, "call.will").is_empty() && of(&lines, "call.did").is_empty(), "{lines:?}");
}

/// The server's tools are not the pinned ones after its restart, until the user accepts them.
#[tokio::test]
async fn changed_and_accepted_definitions_are_in_the_trail() {
    let directory = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(directory.path().join("trail"));
    let executor = || {
        let notes = directory.path().join("notes");
        Executor::builder()
            .audit(options.clone())
            .state_directory(directory.path().join("state"))
            .strict(true)
            .mcp_server(chaos::stdio("faulty", &["rug-pull", "restart"], &notes))
            .build()
            .unwrap()
    };
    for accepts in [false, true] {
        let executor = executor();
        let source = "return await tools.faulty.pulled({}).then(() => 'made', (error) => error.code)";
        let result = executor.run_ts(source).await.unwrap();
        assert_eq!(result.value(), Some(&json!(if accepts { "TOOL_DENIED" } else { "made" })));
        if accepts {
            assert_eq!(executor.accept_tools("faulty", Some("pulled")).unwrap(), 1);
        }
        executor.close().await;
        let lines = lines(&options);
        let (changed, accepted) = (of(&lines, "definitions.changed"), of(&lines, "definitions.accepted"));
        if !accepts {
            assert!(changed.is_empty() && accepted.is_empty(), "{lines:?}");
            continue;
        }
        let [changed] = changed[..] else { panic!("{lines:?}") };
        assert_eq!(pick(changed, &["server", "tools", "count"]), json!(["faulty", ["pulled"], 1]));
        let [accepted] = accepted[..] else { panic!("{lines:?}") };
        assert_eq!(pick(accepted, &["server", "tool", "count"]), json!(["faulty", "pulled", 1]));
    }
}

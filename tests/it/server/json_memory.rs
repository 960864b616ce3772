//! JSON that takes far more memory as a tree than as text: wherever it is, a process takes no more than four times its
//! bytes and 8 MB, beside the memory that a script may have.

use std::cell::Cell;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, meta, status_bytes};
use crate::support::serve_http::Server;

const MEGABYTE: u64 = 1 << 20;

/// A script's default memory limit.
const SCRIPT: u64 = 128 * MEGABYTE;

/// A text of `bytes` whose tree takes some 90 times as much.
fn many_values(bytes: usize) -> String {
    let piece = r#"{"":0}"#;
    format!("[{}]", vec![piece; bytes / (piece.len() + 1)].join(","))
}

/// The memory that a process may take for this many bytes.
fn bar(bytes: usize) -> u64 {
    4 * bytes as u64 + 8 * MEGABYTE
}

/// The memory of an idle process. From now on its peak is the peak of what follows.
fn at_rest(process: u32) -> u64 {
    let resident = || status_bytes(process, "VmRSS:");
    let mut before = resident();
    // Instances are made anew after runs.
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(200));
        let now = resident();
        if now.abs_diff(before) < MEGABYTE / 4 {
            break;
        }
        before = now;
    }
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
    status_bytes(process, "VmHWM:")
}

/// The maximum by which a process grows during `attack`, compared with its memory after both engines ran and `before`
/// was done.
fn growth(start: Start, before: impl FnOnce(&mut Client), attack: impl FnOnce(&mut Client)) -> u64 {
    let mut client = start.spawn().shaken();
    for tool in ["executePython", "executeTypescript"] {
        let ran = client.call(tool, json!({ "code": "return 1", "timeoutMs": 120_000 }));
        assert_eq!(ran["structuredContent"]["value"], 1, "{ran}");
    }
    before(&mut client);
    let rest = at_rest(client.process());
    attack(&mut client);
    let growth = status_bytes(client.process(), "VmHWM:").saturating_sub(rest);
    // Everything else still works.
    assert_eq!(client.run("return 1")["value"], 1);
    growth
}

/// Checks the lowest of at most three measurements: V8 decides when it collects, its marking takes memory of its own,
/// and on a busy machine the process may still be at something else.
#[expect(clippy::print_stdout, reason = "the figures are what such a test is run by hand for")]
fn check(what: &str, most: u64, measure: impl Fn() -> u64) {
    let mut least = measure();
    for _ in 0..2 {
        if least > most {
            least = least.min(measure());
        }
    }
    println!("{what}: {} MB, at most {} MB", least / MEGABYTE, most / MEGABYTE);
    assert!(least <= most, "{what}: {} MB, at most {} MB", least / MEGABYTE, most / MEGABYTE);
}

fn nothing(_client: &mut Client) {}

/// The value of a script whose time cannot run out.
fn run(client: &mut Client, source: &str) -> Value {
    let arguments = json!({ "code": source, "timeoutMs": 120_000 });
    client.call("executeTypescript", arguments)["structuredContent"]["value"].clone()
}

fn call_line(id: u64, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

#[test]
fn v_282_a_request_costs_no_more_than_its_bytes() {
    let values = many_values(30 << 20);
    for (what, arguments, code) in [
        (
            "an input that is not run",
            format!(r#"{{"code":"1","input":{values},"no":1}}"#),
            "INVALID_ARGUMENTS",
        ),
        ("values elsewhere", format!(r#"{{"code":"1","no":{values}}}"#), ""),
        ("values in the code", format!(r#"{{"code":{values}}}"#), ""),
    ] {
        let line = call_line(900, "executeTypescript", &arguments);
        check(what, bar(line.len()), || {
            growth(Start::new(), nothing, |client| {
                client.send_line(line.as_bytes());
                let answer = client.answer(&json!(900));
                if code.is_empty() {
                    let message = answer["error"]["message"].as_str().unwrap();
                    assert!(message.contains("`input`"), "{message}");
                } else {
                    assert_eq!(answer["result"]["structuredContent"]["error"]["code"], code);
                }
            })
        });
    }
    for (what, line) in [
        (
            "parameters of another method",
            format!(r#"{{"jsonrpc":"2.0","id":900,"method":"ping","params":{values}}}"#),
        ),
        ("no method at all", format!(r#"{{"jsonrpc":"2.0","id":900,"x":{values}}}"#)),
        ("not JSON in the end", format!(r#"{{"jsonrpc":"2.0","id":900,"method":"ping","params":{values}]"#)),
    ] {
        check(what, bar(line.len()), || {
            growth(Start::new(), nothing, |client| {
                client.send_line(line.as_bytes());
                assert!(client.answer(&json!(900))["error"].is_object());
            })
        });
    }
    for (what, line) in [
        ("an answer without a request", format!(r#"{{"jsonrpc":"2.0","id":1,"result":{values}}}"#)),
        ("a notification", format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{values}}}"#)),
    ] {
        check(what, bar(line.len()), || {
            growth(Start::new(), nothing, |client| {
                client.send_line(line.as_bytes());
                // Neither has an answer: the next message answers the next request.
                assert_eq!(client.request("ping", json!({}))["result"], json!({}));
                assert!(client.take_seen().is_empty());
            })
        });
    }
}

#[test]
fn v_283_an_input_reaches_its_script_as_it_was_sent() {
    let mut client = Client::plain();
    let input = json!({ "a": [1, 2.5, "\u{e9}\n", null, { "": 0 }], "b": "x".repeat(5 << 20) });
    let source = "return [input.a, input.b.length]";
    let arguments = json!({ "code": source, "input": input });
    let expected = json!([input["a"], 5 << 20]);
    let result = client.call("executeTypescript", arguments.clone());
    assert_eq!(result["structuredContent"]["value"], expected);
    let server = Server::plain();
    let reply =
        server.stateless("tools/call", json!({ "name": "executeTypescript", "arguments": arguments }));
    assert_eq!(reply.message()["result"]["structuredContent"]["value"], expected);
    let session = server.session();
    let call = json!({ "name": "executeTypescript", "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call });
    assert_eq!(session.post(&message).message()["result"]["structuredContent"]["value"], expected);
    // An `input` of `null` is an input, and an absent one is none.
    for arguments in [json!({ "code": "return input", "input": null }), json!({ "code": "return input" })] {
        assert_eq!(client.call("executeTypescript", arguments)["structuredContent"]["value"], Value::Null);
    }
    client.end();
}

#[test]
fn v_284_requests_over_http_cost_no_more_than_their_bytes() {
    let values = many_values(30 << 20);
    let meta = meta(json!({}));
    let body = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"executeTypescript","arguments":{arguments},"_meta":{meta}}}}}"#
        )
    };
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("Mcp-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "executeTypescript"),
    ];
    let unrun = body(&format!(r#"{{"code":"1","input":{values},"no":1}}"#));
    let elsewhere = body(&format!(r#"{{"code":"1","no":{values}}}"#));
    let said = ["INVALID_ARGUMENTS", "pass data as `input`"];
    for (what, body, at_once, said) in [
        ("an input that is not run", &unrun, 1, said[0]),
        ("values elsewhere", &elsewhere, 1, said[1]),
        ("four inputs at once", &unrun, 4, said[0]),
        ("four times values elsewhere", &elsewhere, 4, said[1]),
    ] {
        let measure = || {
            let server = Server::plain();
            assert_eq!(server.session().run("return 1")["value"], 1);
            let python =
                json!({ "name": "executePython", "arguments": { "code": "return 1", "timeoutMs": 120_000 } });
            assert_eq!(
                server.stateless("tools/call", python).message()["result"]["structuredContent"]["value"],
                1
            );
            let rest = at_rest(server.process());
            std::thread::scope(|scope| {
                for _ in 0..at_once {
                    scope.spawn(|| {
                        let reply = server.send("POST", "/mcp", &headers, body);
                        let text = reply.body();
                        assert!(text.contains(said), "{text}");
                    });
                }
            });
            let grown = status_bytes(server.process(), "VmHWM:").saturating_sub(rest);
            assert_eq!(server.session().run("return 1")["value"], 1);
            grown
        };
        check(what, at_once * bar(body.len()), measure);
    }
}

#[test]
fn v_285_answers_of_servers_cost_no_more_than_their_bytes() {
    let count = (30 << 20) / 7;
    for kind in [
        "many-values",
        "many-values-as-text",
        "many-blocks",
        "many-values-in-a-block",
        "many-values-in-an-error",
    ] {
        let bytes = count * 7;
        // Blocks are longer, and so are values whose quotes are escaped.
        let count = match kind {
            "many-blocks" => bytes / 26,
            "many-values-as-text" => bytes / 9,
            _ => count,
        };
        let source = format!(
            "try {{ await tools.faulty.target({{ kind: '{kind}', count: {count} }}); return 'no' }} catch (error) {{ return error.code }}"
        );
        let before = |client: &mut Client| {
            let echo = client.run("return await tools.faulty.target({ kind: 'many-values' })");
            assert_eq!(echo["value"]["a"].as_array().map(Vec::len), Some(10), "{echo}");
        };
        let start = || Start::new().server("faulty", &["wrong-types"]);
        // Beside the memory that a script may have: the script gets the answer if it is not too large.
        let script = if kind == "many-blocks" { SCRIPT } else { 0 };
        check(kind, bar(bytes) + script, || {
            growth(start(), before, |client| {
                let code = run(client, &source);
                let expected = match kind {
                    // The text of no blocks at all is short.
                    "many-blocks" => "no",
                    "many-values-in-a-block" | "many-values-in-an-error" => "TOOL_ERROR",
                    _ => "RESULT_TOO_LARGE",
                };
                assert_eq!(code, expected, "{kind}");
            })
        });
    }
}

#[test]
fn v_286_lists_of_servers_cost_no_more_than_their_bytes() {
    let bytes = 10 * 300_000 * 7;
    let start = || Start::new().server("faulty", &["giant-schema", "values"]);
    let most = Cell::new(0);
    check("a list", bar(bytes), || {
        let grown = growth(start(), nothing, |client| {
            // The list is requested again. Its large schemas are left out, and the rest of it is used.
            let source = "await tools.faulty.add_tool({});
            return [await tools.faulty.extra_0({}), Object.keys(await tools.faulty.echo({ a: 1 }))]";
            assert_eq!(run(client, source), json!(["extra_0", ["a"]]));
        });
        most.set(grown.max(most.get()));
        grown
    });
    assert!(most.get() > bytes as u64 / 2, "the list was read again: {}", most.get());
}

#[test]
fn v_287_values_of_scripts_cost_no_more_than_their_bytes() {
    let bytes = 2_200_000 * 7;
    let source = "return Array.from({ length: 2.2e6 }, () => ({ \"\": 0 }))";
    for at_once in [1, 4] {
        // The number of runs that have returned their value.
        let values = Cell::new(0);
        let measure = || {
            growth(Start::new(), nothing, |client| {
                let arguments = json!({ "code": source, "timeoutMs": 60_000 });
                let ids: Vec<Value> =
                    (0..at_once).map(|_| client.begin_call("executeTypescript", arguments.clone())).collect();
                for id in ids {
                    let answer = client.answer(&id);
                    let structured = &answer["result"]["structuredContent"];
                    // Whether V8 collects garbage before a run reaches its limit depends on its timing.
                    if structured["error"]["code"] != "MEMORY_LIMIT" {
                        assert_eq!(structured["valueTruncated"]["characters"], bytes + 1, "{structured}");
                        values.set(values.get() + 1);
                    }
                }
            })
        };
        // While the script runs, V8 marks garbage in memory of its own.
        let marking = 8 * MEGABYTE;
        let most = at_once * (SCRIPT + bar(bytes) + marking);
        check("values", most, measure);
        // Four at once leave V8 too little time, so that all of them can reach the limit.
        if at_once == 1 {
            for _attempt in 0..4 {
                if values.get() > 0 {
                    break;
                }
                check("values", most, measure);
            }
            assert!(values.get() > 0, "no run has returned its value");
        }
    }
    let source =
        "emit({ type: 'text', text: 'x', a: Array.from({ length: 1.2e6 }, () => ({ '': 0 })) }); return 1";
    check("a block", SCRIPT + bar(bytes), || {
        growth(Start::new(), nothing, |client| {
            let answer = client.call("executeTypescript", json!({ "code": source, "timeoutMs": 60_000 }));
            assert_eq!(answer["structuredContent"]["emittedBlocks"], 1, "{answer}");
            assert!(answer["content"].to_string().len() < 60_000);
        })
    });
    let source = "for (let n = 0; n < 50_000; n++) emit({ type: 'text', text: '' }); return 1";
    check("blocks", SCRIPT + bar(16 << 20), || {
        growth(Start::new(), nothing, |client| {
            let answer = client.call("executeTypescript", json!({ "code": source, "timeoutMs": 60_000 }));
            assert_eq!(answer["structuredContent"]["emittedBlocks"], 50_000, "{answer}");
        })
    });
}

#[test]
fn v_288_values_of_python_cost_no_more_than_their_bytes() {
    let source = "return [{'': 0}] * 1_900_000";
    check("a value of Python", SCRIPT + bar(1_900_000 * 8), || {
        growth(Start::new(), nothing, |client| {
            let answer = client.call("executePython", json!({ "code": source, "timeoutMs": 120_000 }));
            let structured = &answer["structuredContent"];
            assert!(structured["valueTruncated"].is_object(), "{structured}");
        })
    });
}

#[test]
fn v_289_arguments_of_tools_cost_no_more_than_their_bytes() {
    let start = || Start::new().server("well", &["well"]);
    let before = |client: &mut Client| {
        let echo = client.run("return (await tools.well.echo({ n: 1 })).n");
        assert_eq!(echo["value"], 1, "{echo}");
    };
    // Few enough values for a tree, against which the schema is checked.
    let source = "const a = Array.from({ length: 5_000 }, () => ({ '': 0 })); return (await tools.well.echo({ a })).a.length";
    // Both as arguments and as an answer that has them twice.
    check("few", SCRIPT + bar(35_000) + bar(3 * 35_000), || {
        growth(start(), before, |client| assert_eq!(run(client, source), 5_000))
    });
    let source = "const a = Array.from({ length: 1e6 }, () => ({ '': 0 }));
        try { await tools.well.echo({ a }) } catch (error) { return [error.code, error.message] }";
    check("many", SCRIPT + bar(7_000_000), || {
        growth(start(), before, |client| {
            let value = run(client, source);
            assert_eq!(value[0], "INVALID_ARGUMENTS", "{value}");
            assert!(value[1].as_str().unwrap().contains("values in one JSON text"), "{value}");
        })
    });
}

#[test]
fn v_290_empty_lines_are_kept_as_one() {
    let source = "for (let n = 0; n < 2e6; n++) console.log(''); return 1";
    // They are a megabyte of newlines, and ten thousand parts.
    check("empty lines", SCRIPT + 8 * MEGABYTE, || {
        growth(Start::new(), nothing, |client| {
            let answer = client.call("executeTypescript", json!({ "code": source, "timeoutMs": 120_000 }));
            assert_eq!(answer["structuredContent"]["value"], 1, "{answer}");
        })
    });
}

//! Faulty lists: docs/threats.md, DI 161 to 171, TL 154 and 155, UP 208, V 329 and 330.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use cx::McpServer;

use crate::support::chaos::{Stage, builder, measured, stdio};
use crate::support::serve::WATCHDOG;
use crate::support::stopwatch::Stopwatch;

/// The names of all tools that scripts see, as `server.tool`.
const NAMES: &str = "return (await discoverMCPTools({})).map((tool) => tool.name)";

/// How many of the names belong to the server.
fn count(names: &Value, server: &str) -> usize {
    let prefix = format!("mcp__{server}__");
    names.as_array().unwrap().iter().filter(|name| name.as_str().unwrap().starts_with(&prefix)).count()
}

#[tokio::test]
async fn di_161_cursors_without_an_end() {
    for variant in ["new", "same"] {
        let stage = Stage::stdio(&["endless-cursor", variant]);
        stage
            .beside(async {
                stage.target().await.returned("well");
                assert!(stage.noted("list") <= 101, "{} pages", stage.noted("list"));
                let names = stage.value(NAMES).await;
                assert!(count(&names, "faulty") >= 8 && count(&names, "well") == 8, "{names}");
            })
            .await;
        if variant == "same" {
            assert!(stage.noted("list") <= 4, "it stops when a cursor comes again: {}", stage.notes());
        }
        stage.close().await;
    }
}

/// The last failure of the faulty server according to `health`.
fn last_error(stage: &Stage) -> String {
    let stats = stage.executor.server_stats();
    let faulty = stats.iter().find(|server| server.name == "faulty").unwrap();
    faulty.last_error.clone().unwrap_or_default()
}

/// The first page is used, the second is not requested, and `health` says why.
#[tokio::test]
async fn v_329_a_long_cursor_ends_the_list() {
    for (list, method) in [
        (NAMES, "tools/list"),
        ("return (await mcp.listResources('faulty')).map((entry) => entry.uri)", "resources/list"),
        ("return (await mcp.listPrompts('faulty')).map((entry) => entry.name)", "prompts/list"),
    ] {
        // A cursor of 8 KB is followed, one byte more is not.
        for (bytes, pages) in [("8193", 1), ("8192", 100)] {
            let stage = Stage::stdio(&["long-cursor", bytes]);
            let note = if method == "tools/list" {
                // Discovery waits for two seconds, which a busy machine may need for the list; a call waits longer.
                stage.target().await.returned("well");
                "list"
            } else {
                method
            };
            let listed = stage.value(list).await;
            assert_eq!(stage.noted(note), pages, "{method}: {bytes}");
            if method == "tools/list" {
                assert!(count(&listed, "faulty") >= 8, "{listed}");
            } else {
                assert_eq!(listed.as_array().unwrap().len(), pages, "{listed}");
            }
            let problem = last_error(&stage);
            let expected = if pages == 1 {
                format!(
                    "server `faulty`: the list of `{method}` is cut at page 1, and what is on later pages is \
                     missing: its next cursor has 8193 bytes, and at most 8192 are followed"
                )
            } else {
                format!(
                    "server `faulty`: the list of `{method}` is cut at page 100, and what is on later pages is \
                     missing: it has more than 100 pages"
                )
            };
            assert_eq!(problem, expected);
            stage.target().await.returned("well");
            stage.close().await;
        }
    }
}

#[test]
fn v_329_long_cursors_take_little_memory() {
    for list in ["discoverMCPTools({})", "mcp.listResources('faulty')", "mcp.listPrompts('faulty')"] {
        let measured = measured(&["long-cursor"], list);
        assert!(measured.peak_megabytes < 300, "{list}: {measured:?}");
    }
}

/// Results that are no list, and a page with too many entries.
#[tokio::test]
async fn v_330_invalid_lists() {
    let unreadable = json!("UPSTREAM_PROTOCOL");
    let variants =
        [("number", &unreadable), ("array", &unreadable), ("entries", &json!(0)), ("many", &json!(10_000))];
    for (variant, expected) in variants {
        let stage = Stage::stdio(&["odd-lists", variant]);
        stage
            .beside(async {
                for list in ["mcp.listResources('faulty')", "mcp.listPrompts('faulty')"] {
                    let source = format!(
                        "try {{ return (await {list}).length }} catch (error) {{ return error.code }}"
                    );
                    assert_eq!(stage.value(&*source).await, *expected, "{variant}: {list}");
                }
            })
            .await;
        let problem = last_error(&stage);
        assert_eq!(problem.contains("it has more than 10000 entries"), variant == "many", "{problem}");
        stage.close().await;
    }
}

#[tokio::test]
async fn di_162_oversized_definitions() {
    for variant in ["description", "tools", "deep", "enum"] {
        let stage = Stage::stdio(&["giant-schema", variant]);
        stage
            .beside(async {
                // Its tools may be cut, left out or refused; the others are all there.
                let names = stage.value(NAMES).await;
                assert_eq!(count(&names, "well"), 8, "{variant}");
                assert!(count(&names, "faulty") <= 10_000, "{variant}: {}", count(&names, "faulty"));
                let found = stage.value(
                    "return JSON.stringify(await searchTools('description deep enum many', 50)).length",
                );
                assert!(found.await.as_u64().unwrap() < 4 << 20, "{variant}");
            })
            .await;
        stage.close().await;
    }
}

#[test]
fn di_162_giant_definitions_take_little_memory() {
    for variant in ["tools", "enum"] {
        let measured = measured(&["giant-schema", variant], "tools.faulty.echo({})");
        assert!(measured.peak_megabytes < 300, "{variant}: {measured:?}");
    }
}

#[tokio::test]
async fn di_163_cyclic_and_external_references() {
    let stage = Stage::stdio(&["giant-schema", "cycle"]);
    stage
        .beside(async {
            let schema = stage.value("return await getToolSchema('mcp__faulty__cycle')").await;
            assert_eq!(
                schema["parameters"]["properties"]["b"]["$ref"], "http://127.0.0.1:9/",
                "as it was sent"
            );
            // The call may be refused, but it ends, and nothing is read or fetched for it.
            let called = stage.call("tools.faulty.cycle({ a: 1, b: 2 })").await;
            assert!(!called.message.contains("root:"), "{called:?}");
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn di_164_definitions_that_would_be_code() {
    let stage = Stage::stdio(&["hostile-declarations"]);
    stage
        .beside(async {
            let source = "await searchTools('stolen hostile', 10);
                          const schema = await getToolSchema('mcp__faulty__hostile');
                          await tools.faulty.hostile({}).catch(() => null);
                          return [globalThis.stolen ?? null, typeof schema, {}.type ?? null]";
            assert_eq!(stage.value(source).await, json!([null, "object", null]));
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn di_165_invisible_text() {
    let stage = Stage::stdio(&["hidden-text"]);
    stage
        .beside(async {
            let schema = stage.value("return await getToolSchema('mcp__faulty__hidden')").await;
            for text in [&schema["description"], &schema["parameters"]["properties"]["a"]["description"]] {
                let text = text.as_str().unwrap();
                let is_hidden = |character: char| {
                    matches!(character, '\u{1b}' | '\u{200B}' | '\u{202E}' | '\u{E0000}'..='\u{E007F}')
                };
                assert!(!text.contains(is_hidden), "{text:?}");
            }
        })
        .await;
    stage.close().await;
}

/// Without strict mode a change is noticed, in any part of the definition.
#[tokio::test]
async fn di_166_a_definition_that_changes_is_seen() {
    for (variant, path) in [
        ("", "schema.description"),
        ("parameter", "schema.parameters.properties.a.description"),
        ("output", "schema.outputSchema.properties.sum.description"),
    ] {
        let stage = Stage::stdio(&["rug-pull", variant]);
        let read = format!("const schema = await getToolSchema('mcp__faulty__pulled'); return {path}");
        stage
            .beside(async {
                let first = stage.value(&*read).await;
                stage.call("tools.faulty.add_tool({})").await;
                let started = Instant::now();
                while stage.value(&*read).await == first {
                    assert!(started.elapsed() < WATCHDOG, "{variant}: it never changed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            })
            .await;
        stage.close().await;
    }
}

/// In strict mode a tool that differs from its pinned definition cannot be called, whatever has changed and
/// whenever. Other tools can.
#[tokio::test]
async fn di_166_a_definition_that_changes_is_refused_in_strict_mode() {
    for variant in ["", "parameter", "output", "restart"] {
        let directory = tempfile::tempdir().unwrap();
        let mut stage = Stage::kept_in(directory, &["rug-pull", variant], true);
        stage
            .beside(async {
                let called = stage.call("tools.faulty.pulled({ a: 1 })").await;
                assert_eq!(called.code, "", "{variant}: what is there first is accepted: {called:?}");
            })
            .await;
        if variant != "restart" {
            stage.call("tools.faulty.add_tool({})").await.returned("added");
            denied_soon(&stage, variant).await;
        }
        // Another process knows it too.
        stage = Stage::kept_in(stage.close().await, &["rug-pull", "restart"], true);
        stage
            .beside(async {
                denied_soon(&stage, variant).await;
                let names = stage.value(NAMES).await;
                let names = names.as_array().unwrap();
                assert!(!names.contains(&json!("mcp__faulty__pulled")), "{variant}: {names:?}");
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        stage.close().await;
    }
}

/// Asserts that the call is soon refused, and from then on does not reach the server.
async fn denied_soon(stage: &Stage, variant: &str) {
    let started = Instant::now();
    loop {
        let called = stage.call("tools.faulty.pulled({ a: 1 })").await;
        if !called.code.is_empty() {
            called.failed("TOOL_DENIED", &["pinned"]);
            break;
        }
        assert!(started.elapsed() < WATCHDOG, "{variant}: the change was never seen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let executed = stage.noted("executed pulled");
    stage.call("callMCPTool('mcp__faulty__pulled', { a: 1 })").await.failed("TOOL_DENIED", &[]);
    assert_eq!(stage.noted("executed pulled"), executed);
}

/// A stored list is enough to begin with, and the server's own list replaces it.
#[tokio::test]
async fn di_167_a_list_from_before_does_not_stay() {
    let directory = tempfile::tempdir().unwrap();
    let description = "return (await getToolSchema('mcp__faulty__pulled'))?.description";
    let stage = Stage::kept_in(directory, &["rug-pull", "restart"], false);
    assert_eq!(stage.beside(stage.value(description)).await, "Adds numbers");
    let stage = Stage::kept_in(stage.close().await, &["rug-pull", "restart"], false);
    stage
        .beside(async {
            assert_eq!(stage.noted("started"), 1, "no run has asked for it yet");
            assert_eq!(stage.value(description).await, "Adds numbers", "as it is remembered");
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            let started = Instant::now();
            while stage.value(description).await != "Deletes everything" {
                assert!(started.elapsed() < WATCHDOG, "the server is not asked");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn di_167_a_tool_that_is_added_can_be_called() {
    let stage = Stage::stdio(&["well"]);
    stage
        .beside(async {
            stage.call("tools.faulty.extra_0({})").await.failed("TOOL_NOT_FOUND", &[]);
            stage.call("tools.faulty.add_tool({})").await.returned("added");
            let started = Instant::now();
            while stage.call("tools.faulty.extra_0({})").await.value != "extra_0" {
                assert!(started.elapsed() < WATCHDOG, "it was never seen");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn di_168_one_server_that_hangs_hides_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let notes = |name: &str| directory.path().join(name);
    let began = Instant::now();
    let mut modes = vec!["silent", "hang-list"];
    while let Some(mode) = modes.last().copied() {
        let mut builder = builder();
        for number in 0..4 {
            let name = format!("well{number}");
            builder = builder.mcp_server(stdio(&name, &["slow-start", "300"], &notes(&name)));
        }
        let faulty = stdio("faulty", &[mode], &notes("faulty")).connect_timeout(Duration::from_secs(1));
        let executor = builder.mcp_server(faulty).build().unwrap();
        let stopwatch = Stopwatch::start();
        let result = executor.run_ts(NAMES).await.unwrap();
        let names = result.value().unwrap();
        let are_all_there = (0..4).all(|number| count(names, &format!("well{number}")) == 8);
        // On a busy machine they may not be started in that time. Then others try.
        assert!(are_all_there || began.elapsed() < WATCHDOG, "{mode}: {names}");
        assert_eq!(count(names, "faulty"), 0);
        // The servers are started at the same time, and discovery waits for two seconds; a list that never comes
        // is waited for no longer than ten.
        stopwatch.promise(Duration::from_secs(8), format_args!("a list without a server in mode {mode}"));
        assert!(result.to_json().to_string().contains("`faulty`"), "it is named: {}", result.to_json());
        executor.close().await;
        if are_all_there {
            modes.pop();
        }
    }
}

#[tokio::test]
async fn di_169_hostile_searches() {
    let stage = Stage::stdio(&["well"]);
    stage
        .beside(async {
            // A query of more than 65,536 characters is refused; the first is as long as one can be.
            let source = "const queries = ['echo '.repeat(13_000), 'echo '.repeat(200_000), '(a*)*b', '', 'the of and',
                              '\\u0000', 'a'.repeat(6e4), 'a'.repeat(1e6)];
                          const limits = [1e9, -1, 0, NaN, 5];
                          const longest = [];
                          for (const query of queries) for (const limit of limits) {
                              try { longest.push((await searchTools(query, limit)).length) } catch { longest.push(0) }
                          }
                          return Math.max(...longest)";
            let longest = stage.value(source).await.as_u64().unwrap();
            assert!((1..=16).contains(&longest), "{longest}");
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn di_170_denied_tools_are_not_listed() {
    let stage = Stage::stdio_with(&["well"], |mut server| {
        server.rules = cx::ToolRules::new().deny(["c*"]);
        server
    });
    stage
        .beside(async {
            stage.call("tools.faulty.count({})").await.failed("TOOL_DENIED", &[]);
            stage.call("callMCPTool('mcp__faulty__count', {})").await.failed("TOOL_DENIED", &[]);
            let source = "const found = await searchTools('count', 50);
                          return [...found, ...await discoverMCPTools({})].map((tool) => tool.name)";
            let names = stage.value(source).await;
            let names: Vec<&str> =
                names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            assert!(
                !names.contains(&"mcp__faulty__count") && names.contains(&"mcp__well__count"),
                "{names:?}"
            );
        })
        .await;
    assert_eq!(stage.noted("executed count"), 0);
    stage.close().await;
}

#[tokio::test]
async fn di_171_duplicate_and_invalid_names() {
    let stage = Stage::stdio(&["duplicate-tools"]);
    stage
        .beside(async {
            let source = "return (await discoverMCPTools({ server: 'faulty' })).filter((tool) => tool.name.endsWith('twice')).map((tool) => tool.description)";
            let twice = stage.value(source).await;
            assert_eq!(twice.as_array().unwrap().len(), 1, "{twice}");
            assert_eq!(twice[0], "The first");
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        })
        .await;
    stage.close().await;
    let stage = Stage::stdio(&["bad-names"]);
    stage
        .beside(async {
            stage.target().await.returned("well");
            // A tool's name must not change the behavior of an object of tools: `then` does not make a promise of it.
            let source = "const pause = new Promise((resolve) => setTimeout(resolve, 1_000, 'hangs'));
                          const awaited = await Promise.race([pause, (async () => { await tools.faulty; return 'is there' })()]);
                          const found = await discoverMCPTools({ server: 'faulty' });
                          return [awaited, ({}).polluted ?? null, found.length >= 8]";
            assert_eq!(stage.value(source).await, json!(["is there", null, true]));
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn tl_155_tools_of_one_name_stay_apart() {
    let stage = Stage::stdio(&["well"]);
    stage
        .beside(async {
            stage.call("tools.faulty.count({})").await.returned(json!({ "count": 1 }));
            stage.call("tools.faulty.count({})").await.returned(json!({ "count": 2 }));
            stage.call("tools.well.count({})").await.returned(json!({ "count": 1 }));
        })
        .await;
    assert_eq!(stage.noted("executed count"), 2);
    stage.close().await;
}

#[tokio::test]
async fn up_208_a_list_that_never_comes() {
    let stage = Stage::stdio(&["hang-list"]);
    stage
        .beside(async {
            let called = stage.call("tools.faulty.echo({})").await;
            called.failed("TOOL_TIMEOUT", &["did not list its tools within 10 s"]);
        })
        .await;
    assert_eq!(stage.noted("executed"), 0);
    stage.close().await;
}

/// Threat 393. The failures of forty servers take one line of the script's output, and the tools of the others are
/// found.
#[tokio::test]
async fn v_393_a_search_among_forty_dead_servers_adds_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let mut builder = builder().mcp_server(stdio("well", &["well"], &directory.path().join("notes")));
    for number in 0..40 {
        let script = "for i in 1 2 3 4 5 6 7 8 9; do echo Traceback: no such database >&2; done; exit 1";
        builder = builder.mcp_server(McpServer::stdio(format!("dead-{number}"), "sh").args(["-c", script]));
    }
    let executor = builder.build().unwrap();
    let source = "return (await searchTools('echo arguments')).map((tool) => tool.name)";
    // A search waits at most 2 s for a server. On a busy machine some servers have neither answered nor ended by then,
    // and later searches do not wait for them again: the line has each one's outcome once it is known.
    let until = Instant::now() + WATCHDOG;
    let output = loop {
        let result = executor.run_ts(source).await.unwrap();
        let names = result.value().unwrap().to_string();
        let output: Vec<String> = result.logs.iter().map(|entry| format!("{entry:?}")).collect();
        assert_eq!(output.len(), 1, "{output:?}");
        if names.contains("mcp__well__echo") && output[0].contains("exit status 1") {
            break output;
        }
        assert!(Instant::now() < until, "{names}; {output:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    for part in ["the tools of 40 servers are missing", "`dead-0`", "and 30 more", "exit status 1"] {
        assert!(output[0].contains(part), "{output:?}");
    }
    assert!(output[0].len() < 1_000 && !output[0].contains("\\n"), "{output:?}");
    executor.close().await;
}

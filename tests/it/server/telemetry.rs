//! What a collector of OpenTelemetry receives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cx::ProviderKind;
use serde_json::{Value, json};

use crate::support::collector::{Collector, attributes, each, metrics, spans};
use crate::support::provider::{FakeProvider, KEY, Reply};
use crate::support::serve::{Client, Start, WATCHDOG};
use crate::support::serve_http::Server;
use crate::support::ui::cx;
use crate::tidy::root;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn call(client: &mut Client, code: &str, meta: Value) -> Value {
    let arguments = json!({ "code": code });
    let params = json!({ "name": "executeTypescript", "arguments": arguments, "_meta": meta });
    client.request("tools/call", params)["result"]["structuredContent"].clone()
}

const SCRIPT: &str = "
    await tools.well.echo({ text: 'password=hunter2' });
    await tools.well.fail({}).catch(() => {});
    return 1";

/// A JSON-RPC error is named by its code, on the span of the client's request and on that of the server's.
#[test]
fn json_rpc_errors_are_named_by_their_codes() {
    let collector = Collector::start("200");
    let start = Start::new().server("elicits", &["elicits"]);
    let mut client = start.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint).spawn().shaken();
    let address = json!({ "elicitationId": "1", "url": "https://example.com/", "message": "m" });
    let arguments = json!({ "first": "address", "method": "elicitation/create", "params": address });
    let source = format!("return await tools.elicits.target({arguments}).catch((error) => error.code)");
    let result = call(&mut client, &source, json!({}));
    assert_eq!(result["value"], "TOOL_DENIED", "{result:#}");
    let refused = client.request("tools/call", json!({ "name": "no-such-tool", "arguments": {} }));
    assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    client.end();
    let exports = collector.exports();
    let spans = spans(&exports);
    for (name, code) in [("tools/call target", "-32042"), ("tools/call", "-32602")] {
        let span = spans.iter().find(|span| span["name"] == name);
        let span = span.unwrap_or_else(|| panic!("{name}: {spans:#?}"));
        let attributes = attributes(span);
        assert_eq!(
            (&*attributes["error.type"], &*attributes["rpc.response.status_code"]),
            (code, code),
            "{name}"
        );
        assert_eq!(span["status"]["code"], "STATUS_CODE_ERROR");
    }
    // And in metrics too.
    let metrics = metrics(&exports);
    for (name, code) in
        [("mcp.client.operation.duration", "-32042"), ("mcp.server.operation.duration", "-32602")]
    {
        let points = each(&metrics[name]["histogram"], "dataPoints").map(attributes);
        let errors: Vec<_> = points.filter_map(|point| point.get("error.type").cloned()).collect();
        assert!(errors.contains(&code.to_owned()), "{name}: {errors:?}");
    }
}

/// The rows of the table of attributes in the document: the span, and its attributes.
fn documented() -> BTreeSet<String> {
    let document = std::fs::read_to_string(root().join("docs/observability.md")).unwrap();
    let (_, section) = document.split_once("### Spans").unwrap();
    let section = section.split("\n### ").next().unwrap();
    let words = section.split('`').skip(1).step_by(2);
    words.filter(|word| word.contains('.') && !word.contains(' ')).map(str::to_owned).collect()
}

#[test]
fn a_collector_receives_the_spans_of_the_conventions() {
    let collector = Collector::start("200");
    let start = Start::new().server("well", &["well"]);
    let mut client = start.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint).spawn().shaken();
    let meta = json!({
        "traceparent": format!("00-{TRACE}-{SPAN}-01"), "tracestate": "rojo=1", "baggage": "tenant=seven",
    });
    assert_eq!(call(&mut client, SCRIPT, meta)["value"], 1);
    // Without a context, and a call that fails.
    let failed = call(&mut client, "throw new Error('hunter2')", json!({ "traceparent": "00-nonsense" }));
    assert_eq!(failed["success"], false);
    let notes = client.notes("well");
    client.end();
    let exports = collector.exports();
    let spans = spans(&exports);
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    let of = |name: &str, trace: bool| {
        let found = spans.iter().find(|span| span["name"] == name && (span["traceId"] == TRACE) == trace);
        found.unwrap_or_else(|| panic!("{name}: {names:?}"))
    };
    // The agent's span, the server's, the run's, and those of the calls, each the parent of the next.
    let server = of("tools/call executeTypescript", true);
    assert_eq!((&server["kind"], &server["parentSpanId"]), (&json!("SPAN_KIND_SERVER"), &json!(SPAN)));
    assert_eq!(server["traceState"], "rojo=1");
    let run = of("cx.run", true);
    assert_eq!((&run["kind"], &run["parentSpanId"]), (&json!("SPAN_KIND_INTERNAL"), &server["spanId"]));
    let echo = of("tools/call echo", true);
    assert_eq!((&echo["kind"], &echo["parentSpanId"]), (&json!("SPAN_KIND_CLIENT"), &run["spanId"]));
    let fail = of("tools/call fail", true);
    assert_eq!(fail["parentSpanId"], run["spanId"]);
    let expected = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let mut of_server = attributes(server);
    assert!(of_server.remove("jsonrpc.request.id").is_some_and(|id| id.parse::<u64>().is_ok()));
    let pairs = [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "executeTypescript"),
        ("gen_ai.operation.name", "execute_tool"),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
    ];
    assert_eq!(of_server, expected(&pairs));
    let mut of_echo = attributes(echo);
    assert!(of_echo.remove("jsonrpc.request.id").is_some());
    let pairs = [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "echo"),
        ("gen_ai.operation.name", "execute_tool"),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
        ("cx.server", "well"),
    ];
    assert_eq!(of_echo, expected(&pairs));
    assert_eq!(attributes(fail)["error.type"], "tool_error");
    assert_eq!(fail["status"]["code"], "STATUS_CODE_ERROR");
    let of_run = attributes(run);
    assert_eq!(
        (of_run["cx.run.language"].as_str(), of_run["cx.run.tool_calls"].as_str()),
        ("typescript", "2")
    );
    // The server got the context of the call's span, with what the agent had sent.
    let parent = format!("\"traceparent\":\"00-{TRACE}-{}-01\"", echo["spanId"].as_str().unwrap());
    assert!(notes.contains(&parent), "{parent}: {notes}");
    assert!(
        notes.contains("\"tracestate\":\"rojo=1\"") && notes.contains("\"baggage\":\"tenant=seven\""),
        "{notes}"
    );
    // An invalid context begins another trace, and the run's code is its error.
    let other = of("tools/call executeTypescript", false);
    assert!(other.get("parentSpanId").is_none(), "{other}");
    assert_eq!(attributes(other)["error.type"], "tool_error");
    assert_eq!(attributes(of("cx.run", false))["error.type"], "RUNTIME_ERROR");
    // Neither arguments nor messages of errors.
    assert!(!json!(exports).to_string().contains("hunter2"));
    // The document has every attribute.
    let known = documented();
    for span in &spans {
        for name in attributes(span).keys() {
            assert!(known.contains(name), "{name} is not in docs/observability.md");
        }
    }
}

/// `cx run` exports its trace before it ends, and no metrics. The headers, such as a token, go to the collector only.
#[test]
fn the_command_exports_the_trace_of_its_run() {
    const TOKEN: &str = "token-of-the-collector";
    let collector = Collector::start("200");
    let directory = tempfile::tempdir().unwrap();
    let mut command = cx(directory.path(), &["run", "-e", "return 1"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", format!("x-token={TOKEN}")).env("CX_LOG", "trace");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let exports = collector.exports();
    let names: Vec<Value> = spans(&exports).iter().map(|span| span["name"].clone()).collect();
    assert_eq!(names, ["cx.run"]);
    assert!(metrics(&exports).is_empty(), "{exports:?}");
    assert_eq!(exports[0]["headers"]["x-token"], TOKEN, "{exports:?}");
    assert!(!exports[0]["message"].to_string().contains(TOKEN), "{exports:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains(TOKEN), "{stderr}");
}

/// Without a collector there are no spans, and a client's context is not sent on.
#[test]
fn without_a_collector_no_context_is_sent_on() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let meta = json!({ "traceparent": format!("00-{TRACE}-{SPAN}-01"), "baggage": "tenant=seven" });
    assert_eq!(call(&mut client, SCRIPT, meta)["value"], 1);
    let notes = client.notes("well");
    assert!(notes.contains("executed echo") && !notes.contains("traced "), "{notes}");
    client.end();
}

/// Requests to a language model, to a resource and for a prompt.
#[test]
fn requests_that_are_no_calls_of_tools_are_spans_of_the_conventions() {
    let collector = Collector::start("200");
    let provider =
        FakeProvider::start(ProviderKind::Mistral, |_| Reply::Text("four words are here".to_owned()));
    let llm = json!({
        "enabled": true, "provider": "mistral", "model": "fake-model", "url": provider.url(), "apiKey": KEY,
    });
    let start = Start::new().server("well", &["well"]).config("llm", llm);
    let mut client = start.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint).spawn().shaken();
    let script = "
        await mcp.listResources('well');
        await mcp.listPrompts('well');
        await mcp.readResource('well', 'skill://tidy/SKILL.md').catch(() => {});
        await mcp.getPrompt('well', 'no-such-prompt').catch(() => {});
        return await llm.ask('how many?', { model: 'fake-model', maxTokens: 20 })";
    let meta = json!({ "traceparent": format!("00-{TRACE}-{SPAN}-01"), "baggage": "tenant=\"seven\"" });
    let result = call(&mut client, script, meta);
    assert_eq!(result["value"], "four words are here", "{result:#}");
    let notes = client.notes("well");
    client.end();
    let exports = collector.exports();
    let spans = spans(&exports);
    let of = |name: &str| {
        let names = || spans.iter().map(|span| span["name"].as_str().unwrap()).collect::<Vec<_>>();
        spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {:?}", names()))
    };
    let run = of("cx.run");
    for (name, has) in [
        (
            "chat fake-model",
            &[
                ("gen_ai.operation.name", "chat"),
                ("gen_ai.provider.name", "mistral_ai"),
                ("gen_ai.request.model", "fake-model"),
                ("gen_ai.usage.output_tokens", "4"),
            ][..],
        ),
        ("resources/list", &[("mcp.method.name", "resources/list")][..]),
        ("prompts/list", &[("mcp.method.name", "prompts/list")][..]),
        (
            "resources/read",
            &[("mcp.method.name", "resources/read"), ("mcp.resource.uri", "skill://tidy/SKILL.md")][..],
        ),
        (
            "prompts/get no-such-prompt",
            &[
                ("mcp.method.name", "prompts/get"),
                ("gen_ai.prompt.name", "no-such-prompt"),
                ("mcp.protocol.version", "2025-11-25"),
                // The code of the server's JSON-RPC error.
                ("error.type", "-32601"),
                ("rpc.response.status_code", "-32601"),
            ][..],
        ),
    ] {
        let span = of(name);
        assert_eq!(
            (&span["kind"], &span["parentSpanId"]),
            (&json!("SPAN_KIND_CLIENT"), &run["spanId"]),
            "{name}"
        );
        let attributes = attributes(span);
        for (attribute, value) in has {
            assert_eq!(
                attributes.get(*attribute).map(String::as_str),
                Some(*value),
                "{name}: {attributes:?}"
            );
        }
    }
    let reasons = &attributes(of("chat fake-model"))["gen_ai.response.finish_reasons"];
    assert!(reasons.starts_with(r#"{"values":[{"stringValue":""#), "{reasons}");
    // The server got the context of each request's span, beside what else is in `_meta`.
    for name in ["resources/list", "prompts/list", "resources/read", "prompts/get no-such-prompt"] {
        let span = of(name);
        assert!(attributes(span).contains_key("jsonrpc.request.id"), "{name}");
        let line = notes.lines().find(|line| line.starts_with(&format!("traced {name} ")));
        let line = line.unwrap_or_else(|| panic!("{name}: {notes}"));
        let meta: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        let parent = format!("00-{TRACE}-{}-01", span["spanId"].as_str().unwrap());
        assert_eq!((&meta["traceparent"], &meta["baggage"]), (&json!(parent), &json!("tenant=\"seven\"")));
        assert!(meta["progressToken"].is_number(), "{line}");
    }
    assert!(!attributes(of("resources/list")).contains_key("error.type"));
    // Neither the key nor prompts and answers.
    let all = json!(exports).to_string();
    assert!(!all.contains(KEY) && !all.contains("how many") && !all.contains("four words"));
    let known = documented();
    for name in spans.iter().flat_map(|span| attributes(span).into_keys()) {
        assert!(known.contains(&name), "{name} is not in docs/observability.md");
    }
}

/// Spans of a saved script are children of the call that runs it, which is a child of its caller's run.
#[test]
fn saved_scripts_are_children_of_the_calls_that_run_them() {
    let collector = Collector::start("200");
    let home = Arc::new(tempfile::tempdir().unwrap());
    let scripts = home.path().join("cx/scripts");
    std::fs::create_dir_all(&scripts).unwrap();
    let inner = "await tools.well.echo({ text: 'a' }); return 1";
    std::fs::write(scripts.join("inner.ts"), inner).unwrap();
    std::fs::write(scripts.join("outer.py"), "return await scripts.inner({})").unwrap();
    let start = Start::new().within(home).server("well", &["well"]);
    let mut client = start.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint).spawn().shaken();
    let meta = json!({ "traceparent": format!("00-{TRACE}-{SPAN}-01"), "baggage": "tenant=seven" });
    let result = call(&mut client, "return await scripts.outer({})", meta);
    assert_eq!(result["value"], 1, "{result:#}");
    let notes = client.notes("well");
    client.end();
    let spans = spans(&collector.exports());
    let names: Vec<_> =
        spans.iter().map(|span| (&span["name"], &span["spanId"], &span["parentSpanId"])).collect();
    // From the innermost span to the client's.
    let mut path = Vec::new();
    let mut next = spans.iter().find(|span| span["name"] == "tools/call echo");
    while let Some(span) = next {
        assert_eq!(span["traceId"], TRACE, "{names:?}");
        path.push(span["name"].as_str().unwrap());
        next = spans.iter().find(|parent| parent["spanId"] == span["parentSpanId"]);
    }
    let expected = [
        "tools/call echo",
        "cx.run",
        "execute_tool inner",
        "cx.run",
        "execute_tool outer",
        "cx.run",
        "tools/call executeTypescript",
    ];
    assert_eq!(path, expected, "{names:?}");
    // The baggage that the client sent with its context arrives there too.
    assert!(notes.contains("\"baggage\":\"tenant=seven\""), "{notes}");
}

#[test]
fn a_collector_receives_the_metrics_of_the_conventions() {
    let collector = Collector::start("200");
    let start = Start::new().server("well", &["well"]);
    let mut client = start
        .variable(
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            Box::leak(format!("{}/v1/metrics", collector.endpoint).into_boxed_str()),
        )
        .spawn()
        .shaken();
    client.run(SCRIPT);
    client.end();
    let exports = collector.exports();
    assert!(spans(&exports).is_empty(), "only metrics were asked for");
    let metrics = metrics(&exports);
    for name in [
        "mcp.client.operation.duration",
        "mcp.server.operation.duration",
        "mcp.client.session.duration",
        "mcp.server.session.duration",
    ] {
        let metric = metrics.get(name).unwrap_or_else(|| panic!("{name}: {:?}", metrics.keys()));
        assert_eq!(metric["unit"], "s");
        for point in each(&metric["histogram"], "dataPoints") {
            assert_eq!(
                point["explicitBounds"],
                json!([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0])
            );
            assert_eq!(attributes(point)["network.transport"], "pipe");
        }
    }
    let points = &metrics["mcp.client.operation.duration"]["histogram"];
    // A call whose tool says that it has failed is one that has.
    let calls: BTreeMap<Option<String>, &Value> = each(points, "dataPoints")
        .map(|point| (attributes(point), &point["count"]))
        .filter(|(labels, _)| labels["mcp.method.name"] == "tools/call")
        .map(|(labels, count)| (labels.get("error.type").cloned(), count))
        .collect();
    assert_eq!(calls, [(None, &json!("1")), (Some("tool_error".to_owned()), &json!("1"))].into());
    // cx's own, under their own names.
    let runs = &metrics["cx_runs_total"]["sum"]["dataPoints"][0];
    assert_eq!(runs["asInt"], "1");
    assert!(metrics.contains_key("circuit_breaker_state") && metrics.contains_key("cx_uptime_seconds"));
    // Each set of labels is a data point, with its own count.
    let calls = &metrics["cx_tool_calls_total"]["sum"];
    let counts =
        each(calls, "dataPoints").map(|point| point["asInt"].as_str().unwrap().parse::<u32>().unwrap());
    assert_eq!((counts.sum::<u32>(), &calls["isMonotonic"]), (2, &json!(true)), "{calls}");
    let outcomes: BTreeSet<String> =
        each(calls, "dataPoints").map(|point| attributes(point)["outcome"].clone()).collect();
    assert_eq!(outcomes, BTreeSet::from(["ok", "TOOL_ERROR"].map(str::to_owned)));
    let lists = each(&metrics["cx_cache_requests_total"]["sum"], "dataPoints")
        .map(attributes)
        .filter(|labels| labels["cache"] == "tool_lists");
    let results: BTreeSet<String> = lists.map(|labels| labels["result"].clone()).collect();
    assert_eq!(results, BTreeSet::from(["hit", "miss"].map(str::to_owned)));
    // A gauge has its last value, and both calls have ended.
    let active = &metrics["pool_active_connections"]["gauge"]["dataPoints"][0];
    assert_eq!((&active["asDouble"], &*attributes(active)["server"]), (&json!(0.0), "well"), "{active}");
}

/// Over HTTP the context of the protocol is the parent, and that of HTTP is linked.
#[test]
fn the_context_of_http_is_linked() {
    let collector = Collector::start("200");
    let start = Start::new().variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint);
    let server = Server::start(start.variable("OTEL_BSP_SCHEDULE_DELAY", "50"));
    let session = server.initialize(&[], "2025-11-25", &json!({}));
    let id = session.header("mcp-session-id").unwrap().to_owned();
    let ambient = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01";
    let headers = [("Mcp-Session-Id", &*id), ("traceparent", ambient)];
    let meta = json!({ "traceparent": format!("00-{TRACE}-{SPAN}-01") });
    let params = json!({ "name": "executeTypescript", "arguments": { "code": "return 1" }, "_meta": meta });
    let reply = server.post(
        &headers,
        &json!({ "jsonrpc": "2.0", "id": "seven", "method": "tools/call", "params": params }),
    );
    assert_eq!(reply.status, 200);
    let began = Instant::now();
    let mut exports = Vec::new();
    let span = loop {
        exports.extend(collector.so_far());
        let found = spans(&exports).into_iter().find(|span| span["kind"] == "SPAN_KIND_SERVER");
        if let Some(span) = found {
            break span;
        }
        assert!(began.elapsed() < WATCHDOG, "{exports:?}");
    };
    assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(TRACE), &json!(SPAN)));
    assert_eq!(span["links"][0]["spanId"], "bbbbbbbbbbbbbbbb");
    let attributes = attributes(&span);
    let expected = [("network.transport", "tcp"), ("network.protocol.name", "http"), ("mcp.session.id", &id)];
    for (name, value) in expected.into_iter().chain([("jsonrpc.request.id", "seven")]) {
        assert_eq!(attributes[name], value);
    }
}

/// A faulty collector fails no run, and delays the end by a bounded time.
#[test]
fn a_collector_that_fails_changes_nothing() {
    for mode in ["500", "hang", "gone"] {
        let collector = Collector::start(if mode == "gone" { "200" } else { mode });
        let start = Start::new().server("well", &["well"]).arguments(&["--metrics", "127.0.0.1:0"]);
        let start = start.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint);
        let start = start.variable("OTEL_EXPORTER_OTLP_TIMEOUT", "300");
        let start = start.variable("OTEL_BSP_SCHEDULE_DELAY", "50").variable("CX_LOG", "cx=warn");
        if mode == "gone" {
            drop(collector);
        }
        let mut client = start.with_stderr().spawn().shaken();
        for _ in 0..3 {
            assert_eq!(call(&mut client, SCRIPT, json!({}))["value"], 1, "{mode}");
        }
        let began = Instant::now();
        while !client.stderr().contains("cannot be exported") {
            assert!(began.elapsed() < WATCHDOG, "{mode}: {}", client.stderr());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(call(&mut client, SCRIPT, json!({}))["value"], 1, "{mode}");
        // The warning comes once, however often exports fail.
        std::thread::sleep(Duration::from_millis(500));
        let stderr = client.stderr();
        assert_eq!(stderr.matches("cannot be exported").count(), 1, "{mode}: {stderr}");
        client.end();
    }
}

#[test]
fn content_is_exported_only_if_asked_for() {
    let collector = Collector::start("200");
    let start = Start::new().server("well", &["well"]);
    let telemetry = json!({ "endpoint": collector.endpoint, "content": true });
    let mut client = start.config("openTelemetry", telemetry).spawn().shaken();
    client.run(SCRIPT);
    client.run("await tools.well.echo({ text: 'long '.repeat(5_000) })");
    client.end();
    let spans = spans(&collector.exports());
    // At most 16 KB of each.
    let long = spans.iter().filter(|span| span["name"] == "tools/call echo").map(attributes);
    let lengths: Vec<_> = long.map(|attributes| attributes["gen_ai.tool.call.arguments"].len()).collect();
    assert!(
        lengths.len() == 2 && lengths.iter().any(|length| (16_000..17_000).contains(length)),
        "{lengths:?}"
    );
    let echo = spans.iter().find(|span| span["name"] == "tools/call echo").unwrap();
    let attributes = attributes(echo);
    // What looks like a secret is masked.
    assert_eq!(attributes["gen_ai.tool.call.arguments"], r#"{"text":"password=***"}"#);
    assert_eq!(attributes["gen_ai.tool.call.result"], r#"{"text":"password=***"}"#);
}

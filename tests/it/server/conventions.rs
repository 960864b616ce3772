//! Every span and data point that is exported, compared with the tables of the conventions.
//!
//! They are those of <https://github.com/open-telemetry/semantic-conventions-genai>, `docs/gen-ai/mcp.md` and
//! `docs/gen-ai/gen-ai-spans.md`, at the commits that `src/conventions.rs` cites. An upgrade changes them here too.

use std::collections::BTreeMap;
use std::sync::Arc;

use cx::ProviderKind;
use serde_json::{Value, json};

use crate::support::collector::{Collector, attributes, each, metrics, spans};
use crate::support::provider::{FakeProvider, KEY, Reply};
use crate::support::serve::Start;
use crate::tidy::{code, files, root};

/// A span that was exported.
#[derive(Debug)]
struct Seen {
    name: String,
    kind: String,
    attributes: BTreeMap<String, String>,
    is_failed: bool,
}

impl Seen {
    fn new(span: &Value) -> Self {
        Self {
            name: span["name"].as_str().unwrap().to_owned(),
            kind: span["kind"].as_str().unwrap().to_owned(),
            attributes: attributes(span),
            is_failed: span["status"]["code"] == "STATUS_CODE_ERROR",
        }
    }

    fn text(&self, attribute: &str) -> &str {
        self.attributes.get(attribute).map_or("", String::as_str)
    }
}

fn always(_: &Seen) -> bool {
    true
}

fn is_failed(span: &Seen) -> bool {
    span.is_failed
}

fn is_of_a_tool(span: &Seen) -> bool {
    span.text("mcp.method.name") == "tools/call"
}

fn is_of_a_prompt(span: &Seen) -> bool {
    span.text("mcp.method.name") == "prompts/get"
}

fn is_of_a_resource(span: &Seen) -> bool {
    span.text("mcp.method.name") == "resources/read"
}

/// Whether the answer was a JSON-RPC error.
fn has_code(span: &Seen) -> bool {
    span.text("error.type").parse::<i32>().is_ok()
}

/// Whether it is the question of [`SCRIPT`] whose answer is a stream.
fn is_streamed(span: &Seen) -> bool {
    span.text("gen_ai.request.model") == "fake-streamed-model"
}

/// When an attribute is required.
type Condition = fn(&Seen) -> bool;

/// The conventions for one type of span.
struct Table {
    kind: &'static str,
    /// Required attributes, and those that are required under a condition: each is there if and only if it holds.
    required: &'static [(&'static str, Condition)],
    /// Recommended attributes, and opt-in ones.
    others: &'static [&'static str],
    /// The attributes that the name of a span consists of. Those that the span does not have are left out.
    name: &'static [&'static str],
}

const CLIENT: Table = Table {
    kind: "SPAN_KIND_CLIENT",
    required: &[
        ("mcp.method.name", always),
        ("error.type", is_failed),
        ("gen_ai.prompt.name", is_of_a_prompt),
        ("gen_ai.tool.name", is_of_a_tool),
        ("jsonrpc.request.id", always),
        ("mcp.resource.uri", is_of_a_resource),
        ("rpc.response.status_code", has_code),
        // Recommended for calls of tools, and for nothing else.
        ("gen_ai.operation.name", is_of_a_tool),
    ],
    others: &[
        "jsonrpc.protocol.version",
        "mcp.protocol.version",
        "mcp.session.id",
        "network.protocol.name",
        "network.protocol.version",
        "network.transport",
        "server.address",
        "server.port",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ],
    name: &["mcp.method.name", "gen_ai.tool.name", "gen_ai.prompt.name"],
};

const SERVER: Table = Table {
    kind: "SPAN_KIND_SERVER",
    required: CLIENT.required,
    others: &[
        "client.address",
        "client.port",
        "jsonrpc.protocol.version",
        "mcp.protocol.version",
        "mcp.session.id",
        "network.protocol.name",
        "network.protocol.version",
        "network.transport",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ],
    name: CLIENT.name,
};

/// A request to a language model ("inference").
const CHAT: Table = Table {
    kind: "SPAN_KIND_CLIENT",
    required: &[
        ("gen_ai.operation.name", always),
        ("gen_ai.provider.name", always),
        ("gen_ai.request.model", always),
        ("gen_ai.request.stream", is_streamed),
        ("error.type", is_failed),
    ],
    others: &[
        "gen_ai.request.max_tokens",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.id",
        "gen_ai.response.model",
        "gen_ai.response.time_to_first_chunk",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "server.address",
        "server.port",
    ],
    name: &["gen_ai.operation.name", "gen_ai.request.model"],
};

const EXECUTE_TOOL: Table = Table {
    kind: "SPAN_KIND_INTERNAL",
    required: &[("gen_ai.operation.name", always), ("gen_ai.tool.name", always), ("error.type", is_failed)],
    others: &[
        "gen_ai.tool.call.id",
        "gen_ai.tool.description",
        "gen_ai.tool.type",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ],
    name: &["gen_ai.operation.name", "gen_ai.tool.name"],
};

/// Attributes of the histograms of operations. Those with the name of a tool or a prompt are required there under a
/// condition, and cx leaves them out: a server chooses the names, and each would be another time series.
const OF_OPERATIONS: &[&str] = &[
    "mcp.method.name",
    "error.type",
    "rpc.response.status_code",
    "gen_ai.operation.name",
    "jsonrpc.protocol.version",
    "mcp.protocol.version",
    "network.protocol.name",
    "network.protocol.version",
    "network.transport",
    "server.address",
    "server.port",
];

/// Attributes of the histograms of sessions.
const OF_SESSIONS: &[&str] = &[
    "error.type",
    "jsonrpc.protocol.version",
    "mcp.protocol.version",
    "network.protocol.name",
    "network.protocol.version",
    "network.transport",
    "server.address",
    "server.port",
];

/// Attributes of the histograms of requests to models. The model's name is required there if it is known, and cx leaves
/// it out: a script chooses it, and each would be another time series.
const OF_MODELS: &[&str] = &[
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.token.type",
    "error.type",
    "server.address",
    "server.port",
];

impl Table {
    fn check(&self, span: &Seen) {
        assert_eq!(span.kind, self.kind, "{span:#?}");
        for (attribute, is_required) in self.required {
            assert_eq!(span.attributes.contains_key(*attribute), is_required(span), "{attribute}: {span:#?}");
        }
        for attribute in span.attributes.keys().map(String::as_str) {
            let is_known = self.required.iter().any(|(known, _)| *known == attribute)
                || self.others.contains(&attribute)
                || attribute.starts_with("cx.");
            assert!(is_known, "{attribute}: {span:#?}");
        }
        let parts: Vec<&str> =
            self.name.iter().map(|part| span.text(part)).filter(|part| !part.is_empty()).collect();
        assert_eq!(span.name, parts.join(" "), "{span:#?}");
    }
}

const SCRIPT: &str = "
    await tools.well.echo({ text: 'a' });
    await tools.well.fail({}).catch(() => {});
    await mcp.listResources('well');
    await mcp.readResource('well', 'skill://tidy/SKILL.md').catch(() => {});
    await mcp.getPrompt('well', 'no-such-prompt').catch(() => {});
    await scripts.inner({});
    await llm.ask('works', { model: 'fake-model', maxTokens: 20 });
    await llm.ask('fails', { maxTokens: 20 }).catch(() => {});
    for await (const _ of llm.ask('works', { model: 'fake-streamed-model', maxTokens: 20, stream: true }));
    return 1";

#[test]
fn each_span_and_each_data_point_is_that_of_the_conventions() {
    let collector = Collector::start("200");
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| match asked.prompt.as_str() {
        "fails" => Reply::Status(500, "", "no".to_owned()),
        _ => Reply::Text("fine".to_owned()),
    });
    let home = Arc::new(tempfile::tempdir().unwrap());
    let scripts = home.path().join("cx/scripts");
    std::fs::create_dir_all(&scripts).unwrap();
    std::fs::write(scripts.join("inner.ts"), "return 1").unwrap();
    let llm = json!({
        "enabled": true, "provider": "openai", "model": "fake-model", "url": provider.url(), "apiKey": KEY,
    });
    let start = Start::new().within(home).server("well", &["well"]).config("llm", llm);
    let mut client = start.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint).spawn().shaken();
    let ended = client.run(SCRIPT);
    assert_eq!(ended["value"], 1, "{ended:#}");
    assert_eq!(client.run("throw new Error('no')")["success"], false);
    client.end();
    let exports = collector.exports();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for span in spans(&exports).iter().map(Seen::new) {
        let (of, table) = match (span.name.as_str(), span.kind.as_str()) {
            // Spans of cx's own, for which there are no conventions.
            ("cx.run", kind) => {
                assert_eq!(kind, "SPAN_KIND_INTERNAL", "{span:#?}");
                assert_eq!(span.attributes.contains_key("error.type"), span.is_failed, "{span:#?}");
                let mut names = span.attributes.keys();
                assert!(names.all(|name| name.starts_with("cx.") || name == "error.type"), "{span:#?}");
                *counts.entry("runs").or_default() += 1;
                continue;
            }
            (name, _) if name.starts_with("chat") => ("chat", CHAT),
            (name, _) if name.starts_with("execute_tool") => ("execute_tool", EXECUTE_TOOL),
            (_, "SPAN_KIND_SERVER") => ("server", SERVER),
            _ => ("client", CLIENT),
        };
        table.check(&span);
        assert!(["", "true"].contains(&span.text("gen_ai.request.stream")), "{span:#?}");
        *counts.entry(of).or_default() += 1;
    }
    // Each of the script's requests is there.
    assert!(counts.remove("client").is_some_and(|count| count >= 5), "{counts:?}");
    assert_eq!(counts, [("chat", 3), ("execute_tool", 1), ("runs", 3), ("server", 2)].into());
    let metrics = metrics(&exports);
    for (name, known, has_method) in [
        ("mcp.client.operation.duration", OF_OPERATIONS, true),
        ("mcp.server.operation.duration", OF_OPERATIONS, true),
        ("mcp.client.session.duration", OF_SESSIONS, false),
        ("mcp.server.session.duration", OF_SESSIONS, false),
        ("gen_ai.client.operation.duration", OF_MODELS, false),
        ("gen_ai.client.token.usage", OF_MODELS, false),
    ] {
        let points: Vec<_> = each(&metrics[name]["histogram"], "dataPoints").map(attributes).collect();
        assert!(!points.is_empty(), "{name}: {metrics:?}");
        for point in points {
            assert_eq!(point.contains_key("mcp.method.name"), has_method, "{name}: {point:?}");
            assert!(point.keys().all(|attribute| known.contains(&attribute.as_str())), "{name}: {point:?}");
        }
    }
    // Two were answered and one failed.
    let counted = |name: &str, attribute: &str| -> BTreeMap<String, (String, Value)> {
        let points = each(&metrics[name]["histogram"], "dataPoints").map(|point| {
            let found = attributes(point);
            assert_eq!(
                (&*found["gen_ai.operation.name"], &*found["gen_ai.provider.name"]),
                ("chat", "openai")
            );
            let value = found.get(attribute).cloned().unwrap_or_default();
            let count = point["count"].as_str().unwrap().to_owned();
            (value, (count, point["explicitBounds"][2].clone()))
        });
        points.collect()
    };
    let of = |value: &str, count: &str, bound: f64| (value.to_owned(), (count.to_owned(), json!(bound)));
    let durations = counted("gen_ai.client.operation.duration", "error.type");
    assert_eq!(durations, [of("", "2", 0.04), of("MODEL_ERROR", "1", 0.04)].into());
    let tokens = counted("gen_ai.client.token.usage", "gen_ai.token.type");
    assert_eq!(tokens, [of("input", "2", 16.0), of("output", "2", 16.0)].into());
    assert_eq!(metrics["gen_ai.client.token.usage"]["unit"], "{token}");
}

/// The names are in one file that cites their commit, so that an upgrade changes one file.
#[test]
fn the_names_of_the_conventions_are_in_one_file() {
    const FILE: &str = "src/conventions.rs";
    const OF_MCP: &str = "1e01e830ef3c17b939ab7db8d25c7061e4239c0b";
    const OF_CHAT: &str = "002c8a6ea1c8a42b14a4527db83b3cabcded610a";
    for (cites, commit) in [(FILE, OF_MCP), (FILE, OF_CHAT), ("docs/observability.md", OF_MCP)] {
        let text = std::fs::read_to_string(root().join(cites)).unwrap();
        assert!(text.contains(commit), "{cites}: {commit}");
    }
    for path in files("src", ".rs").into_iter().filter(|path| !path.ends_with(FILE)) {
        let code = code(&path);
        for name in [
            "gen_ai.",
            "mcp.client.",
            "mcp.method.",
            "mcp.protocol.",
            "mcp.resource.",
            "mcp.server.",
            "mcp.session.",
            "mcp_client_",
            "mcp_server_",
            "jsonrpc.",
            "rpc.",
            "network.transport",
            "network.protocol",
            "error.type",
            "server.address",
            "server.port",
        ] {
            assert!(!code.contains(&format!("\"{name}")), "{} has {name}", path.display());
        }
    }
}

//! The protocol, without a transport: the answer to each message, and the faults of answers.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::elicits;
use crate::modern_tasks;
use crate::options::Options;
use crate::tasks::{self, Tasks};
use crate::tools;

/// Where messages go: the line, the response's body or the stream of the request that asked.
///
/// Fails when the reader has closed it, which is how floods end.
pub(crate) trait Sink: Send + Sync {
    fn send_text(&self, message: &str) -> std::io::Result<()>;

    fn send(&self, message: &Value) -> std::io::Result<()> {
        self.send_text(&message.to_string())
    }
}

/// The state of one server process.
pub(crate) struct Server {
    pub(crate) options: Options,
    /// Calls of `count`.
    counted: AtomicU64,
    /// Tools added by `add_tool`.
    pub(crate) added: AtomicU64,
    /// The number of requested first pages.
    pub(crate) lists: AtomicU64,
    /// Whether this server was started before, according to its notes.
    pub(crate) restarted: bool,
    cancelled: Mutex<HashSet<String>>,
    pub(crate) tasks: Tasks,
    /// What the client answered to requests of this server, by their ids.
    answers: Mutex<HashMap<String, Value>>,
    answered: Condvar,
}

impl Server {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            restarted: options.starts() > 1,
            options,
            counted: AtomicU64::new(0),
            added: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            cancelled: Mutex::default(),
            tasks: Tasks::default(),
            answers: Mutex::default(),
            answered: Condvar::new(),
        }
    }

    /// Handles one message. Slow tools go on in a separate thread; the transport waits for the answer
    /// until the last clone of `sink` is dropped.
    pub(crate) fn handle(self: &Arc<Self>, message: &Value, sink: &Arc<dyn Sink>) {
        let parameters = &message["params"];
        let Some(method) = message["method"].as_str() else {
            self.options.note(&format!("answered {message}"));
            self.answers.lock().unwrap().insert(message["id"].to_string(), message.clone());
            self.answered.notify_all();
            return;
        };
        let id = &message["id"];
        if parameters["_meta"].get("traceparent").is_some() {
            let target = parameters["name"].as_str().unwrap_or_default();
            self.options.note(&format!("traced {method} {target} {}", parameters["_meta"]));
        }
        // A client that has closed the connection gets no answer.
        let _closed = match method {
            "initialize" => self.initialize(id, parameters, sink),
            "server/discover" => self.discover(id, sink),
            "ping" => sink.send(&result(id, json!({}))),
            "tools/list" => self.list(id, parameters, sink),
            "resources/list" | "prompts/list" => {
                self.options.note(method);
                let key = method.strip_suffix("/list").unwrap();
                sink.send_text(&tools::other_page(self, id, key))
            }
            "resources/read" | "prompts/get" if self.options.is("elicits") => {
                elicits::request(self, id, parameters, sink);
                Ok(())
            }
            "resources/read" if self.options.is("apps") => {
                sink.send_text(&tools::resource(self, id, parameters["uri"].as_str().unwrap_or_default()))
            }
            "resources/subscribe" | "resources/unsubscribe" if self.options.is("apps") => {
                self.options.note(&format!("{method} {}", parameters["uri"]));
                if self.options.variant == "silent" {
                    return;
                }
                let answer = if self.options.variant == "nonsense" { json!(5) } else { json!({}) };
                sink.send(&result(id, answer))
            }
            "subscriptions/listen" if self.options.is("apps") => {
                let accepted = &parameters["notifications"];
                self.options.note(&format!("listening {accepted}"));
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
                let acknowledged = json!({ "notifications": accepted, "_meta": meta });
                sink.send(&notification("notifications/subscriptions/acknowledged", acknowledged))
            }
            "tools/call" => {
                self.call(id, parameters, sink);
                Ok(())
            }
            "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" if self.options.is("tasks") => {
                if self.options.variant == "modern" {
                    modern_tasks::answer(self, method, id, parameters, sink)
                } else {
                    tasks::answer(self, method, id, parameters, sink)
                }
            }
            "notifications/cancelled" => {
                let request = parameters["requestId"].to_string();
                self.options.note(&format!("cancelled {request}"));
                self.cancelled.lock().unwrap().insert(request);
                Ok(())
            }
            _ if id.is_null() => Ok(()),
            _ => sink.send(&error(id, -32601, "method not found")),
        };
    }

    fn initialize(&self, id: &Value, parameters: &Value, sink: &Arc<dyn Sink>) -> std::io::Result<()> {
        self.options.note("initialize");
        if self.options.is("silent") {
            return Ok(());
        }
        if self.options.is("modern-only") {
            return sink.send(&error(id, -32601, "this server speaks 2026-07-28 only"));
        }
        if self.options.is("slow-start") {
            std::thread::sleep(Duration::from_millis(self.options.number(1_000)));
        }
        // As the specification says: the client's revision if it is known, else our latest.
        let asked = parameters["protocolVersion"].as_str().unwrap_or_default();
        let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
        let version = if known.contains(&asked) { asked } else { "2025-11-25" };
        let mut answer = json!({
            "protocolVersion": version,
            "capabilities": { "tools": { "listChanged": true }, "logging": {} },
            "serverInfo": { "name": "chaos", "version": "1" },
        });
        if self.options.is("tasks") && self.options.variant != "undeclared" {
            answer["capabilities"]["tasks"] =
                json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        }
        if self.options.is("apps") && self.options.variant != "mute" {
            answer["capabilities"]["resources"] = json!({ "subscribe": true });
        }
        sink.send(&result(id, answer))?;
        if self.options.is("asks") { ask("connecting", sink) } else { Ok(()) }
    }

    fn discover(&self, id: &Value, sink: &Arc<dyn Sink>) -> std::io::Result<()> {
        self.options.note("discover");
        match self.options.mode.as_str() {
            "discover-ignored" | "silent" => Ok(()),
            mode if mode == "modern-only" || self.options.variant == "modern" => {
                let mut answer = json!({
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": { "tools": {} },
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "chaos", "version": "1" } },
                });
                if self.options.is("apps") {
                    answer["capabilities"]["resources"] = json!({ "subscribe": true });
                }
                sink.send(&result(id, answer))
            }
            _ => sink.send(&error(id, -32601, "method not found")),
        }
    }

    fn list(&self, id: &Value, parameters: &Value, sink: &Arc<dyn Sink>) -> std::io::Result<()> {
        self.options.note("list");
        if self.options.is("hang-list") {
            return Ok(());
        }
        if tasks::adds_late(self, self.lists.load(Ordering::SeqCst)) {
            sink.send(&notification("notifications/tools/list_changed", json!({})))?;
        }
        sink.send_text(&tools::page(self, id, parameters["cursor"].as_str()))?;
        // There is always another change.
        if self.options.variant == "restless" {
            sink.send(&notification("notifications/tools/list_changed", json!({})))?;
        }
        Ok(())
    }

    fn call(self: &Arc<Self>, id: &Value, parameters: &Value, sink: &Arc<dyn Sink>) {
        let tool = parameters["name"].as_str().unwrap_or_default().to_owned();
        self.options.note(&format!("executed {tool}"));
        let (server, id, parameters, sink) =
            (Arc::clone(self), id.clone(), parameters.clone(), Arc::clone(sink));
        std::thread::spawn(move || {
            let _closed = server.perform(&tool, &id, &parameters, &sink);
        });
    }

    fn perform(
        &self,
        tool: &str,
        id: &Value,
        parameters: &Value,
        sink: &Arc<dyn Sink>,
    ) -> std::io::Result<()> {
        let arguments = &parameters["arguments"];
        let number = |name: &str, default: u64| arguments[name].as_u64().unwrap_or(default);
        // The other tools ignore that they are asked for a task. `target` notes it itself.
        if let Some(wanted) = parameters.get("task").filter(|_| tool != "target") {
            self.options.note(&format!("task {wanted}"));
        }
        match tool {
            "echo" => {
                let text = json!([{ "type": "text", "text": arguments.to_string() }]);
                sink.send(&result(id, json!({ "content": text, "structuredContent": arguments })))
            }
            "count" => {
                let count = self.counted.fetch_add(1, Ordering::SeqCst) + 1;
                sink.send(&text_result(id, &json!({ "count": count }).to_string()))
            }
            "slow" => {
                std::thread::sleep(Duration::from_millis(number("ms", 200)));
                if self.is_cancelled(id) {
                    return Ok(());
                }
                sink.send(&text_result(id, "slow"))
            }
            "fail" => {
                let content = json!([{ "type": "text", "text": "it did not work" }]);
                sink.send(&result(id, json!({ "content": content, "isError": true })))
            }
            "big" => {
                sink.send(&text_result(id, &"x".repeat(usize::try_from(number("bytes", 1_000)).unwrap())))
            }
            "progress" => {
                let steps = number("steps", 3);
                let token = &parameters["_meta"]["progressToken"];
                for step in 1..=steps {
                    std::thread::sleep(Duration::from_millis(number("ms", 20)));
                    if !token.is_null() {
                        let progress = json!({ "progressToken": token, "progress": step, "total": steps });
                        sink.send(&notification("notifications/progress", progress))?;
                    }
                }
                sink.send(&text_result(id, "done"))
            }
            "tick" if self.options.is("apps") => {
                for _ in 0..100 {
                    let changed = json!({ "uri": tools::APP });
                    sink.send(&notification("notifications/resources/updated", changed))?;
                }
                sink.send(&text_result(id, "odd"))
            }
            "show_time" => sink.send(&result(id, show_time(arguments))),
            "add_tool" => {
                self.added.fetch_add(1, Ordering::SeqCst);
                sink.send(&notification("notifications/tools/list_changed", json!({})))?;
                sink.send(&text_result(id, "added"))
            }
            "target" if self.options.is("elicits") => elicits::call(self, id, parameters, sink),
            "target" if self.options.is("tasks") && self.options.variant == "modern" => {
                modern_tasks::create(self, id, parameters, sink)
            }
            "target" if self.options.is("tasks") => tasks::create(self, id, parameters, sink),
            "target" => self.strike(id, arguments, sink),
            _ if tool.starts_with("extra_") => sink.send(&text_result(id, tool)),
            _ if tools::has_odd_tool(self, tool) => sink.send(&text_result(id, "odd")),
            _ => sink.send(&error(id, -32602, &format!("Unknown tool: {tool}"))),
        }
    }

    /// The tool `target`: the fault, if it is one of calls, else a plain answer.
    fn strike(&self, id: &Value, arguments: &Value, sink: &Arc<dyn Sink>) -> std::io::Result<()> {
        let number = |name: &str, default: u64| arguments[name].as_u64().unwrap_or(default);
        let well = text_result(id, "well");
        match self.options.mode.as_str() {
            "hang-call" => return Ok(()),
            "dies-in-call" => {
                eprintln!("\x1b[31mpanic\x1b[0m: the crash was asked for");
                std::process::exit(7);
            }
            "dies-after-executing" => {
                self.options.note("took effect");
                std::process::exit(8);
            }
            "wrong-id" => {
                for stray in
                    [json!(1_000_000), json!("absent"), json!(null), json!(-1), json!(1.5), json!({})]
                {
                    sink.send(&text_result(&stray, "not for you"))?;
                }
                // Without the right one, unless the variant says so.
                if self.options.variant != "only" {
                    sink.send(&well)?;
                }
                return Ok(());
            }
            "string-id" => return sink.send(&text_result(&json!(id.to_string()), "well")),
            "duplicate-response" => {
                sink.send(&well)?;
                return sink.send(&text_result(id, "twice"));
            }
            "asks" => ask("calling", sink)?,
            "input-required" => {
                let request =
                    json!({ "method": "elicitation/create", "params": link("javascript:alert(1)") });
                let requests = json!({ "more": request });
                let answer = json!({ "inputRequests": requests, "requestState": "again" });
                return sink.send(&result_of("input_required", id, answer));
            }
            "late-response" => std::thread::sleep(Duration::from_millis(self.options.number(1_000))),
            "wrong-types" => {
                let kind = arguments["kind"].as_str().unwrap_or_default();
                let many = usize::try_from(number("count", 10)).unwrap();
                return sink.send_text(&wrong(id, kind, many));
            }
            mode if mode.starts_with("flood-") => flood(mode, arguments["count"].as_u64(), sink)?,
            _ => {}
        }
        sink.send(&well)
    }

    /// Sends the client a request with this id, and waits for the answer.
    pub(crate) fn question(
        &self,
        own: &Value,
        request: &Value,
        sink: &Arc<dyn Sink>,
    ) -> std::io::Result<Value> {
        let request = json!({
            "jsonrpc": "2.0", "id": own, "method": request["method"], "params": request["params"],
        });
        sink.send(&request)?;
        let answers = self.answers.lock().unwrap();
        let waiting = |answers: &mut HashMap<String, Value>| !answers.contains_key(&own.to_string());
        let (mut answers, _elapsed) =
            self.answered.wait_timeout_while(answers, Duration::from_secs(20), waiting).unwrap();
        Ok(answers.remove(&own.to_string()).unwrap_or_default())
    }

    fn is_cancelled(&self, id: &Value) -> bool {
        self.cancelled.lock().unwrap().contains(&id.to_string())
    }
}

/// A result with everything that a result can have.
fn show_time(arguments: &Value) -> Value {
    json!({
        "content": [
            { "type": "text", "text": "noon", "annotations": { "audience": ["user"] }, "_meta": { "n": 1 } },
            { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
            { "type": "resource_link", "uri": "chaos://clock", "name": "clock" },
        ],
        "structuredContent": { "time": "12:00", "of": arguments },
        "_meta": { "com.example/kept": { "a": [1, null] } },
    })
}

/// Asks the client for everything that a server may ask for.
fn ask(when: &str, sink: &Arc<dyn Sink>) -> std::io::Result<()> {
    let schema = json!({ "type": "object", "properties": { "password": { "type": "string" } } });
    for (number, (method, params)) in [
        ("sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })),
        ("elicitation/create", json!({ "message": "your password", "requestedSchema": schema })),
        ("elicitation/create", link("javascript:alert(1)")),
        ("elicitation/create", link("file:///etc/passwd")),
        ("roots/list", json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("{when} {number}");
        sink.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
    }
    Ok(())
}

/// A question with an address to open.
fn link(url: &str) -> Value {
    json!({ "mode": "url", "message": "look", "url": url, "elicitationId": "1" })
}

/// Sends `count` unsolicited messages.
fn flood(mode: &str, count: Option<u64>, sink: &Arc<dyn Sink>) -> std::io::Result<()> {
    for number in 0..count.unwrap_or(1_000_000) {
        let message = match mode {
            "flood-pings" => format!(r#"{{"jsonrpc":"2.0","id":"p{number}","method":"ping"}}"#),
            "flood-sampling-requests" => format!(
                r#"{{"jsonrpc":"2.0","id":"s{number}","method":"sampling/createMessage","params":{{"messages":[],"maxTokens":1}}}}"#
            ),
            "flood-list-changed" => {
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned()
            }
            _ => format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"line {number}"}}}}"#
            ),
        };
        sink.send_text(&message)?;
    }
    Ok(())
}

/// An answer with the right id and wrong content.
fn wrong(id: &Value, kind: &str, many: usize) -> String {
    // The content that takes most memory when it is parsed.
    let values = || vec![r#"{"":0}"#; many].join(",");
    let inside = match kind {
        "many-values" => format!(r#""result":{{"content":[],"structuredContent":{{"a":[{}]}}}}"#, values()),
        "many-values-as-text" => format!(
            r#""result":{{"content":[{{"type":"text","text":{}}}]}}"#,
            Value::from(format!("[{}]", values()))
        ),
        "many-blocks" => {
            let blocks = vec![r#"{"type":"text","text":""}"#; many].join(",");
            format!(r#""result":{{"content":[{blocks}]}}"#)
        }
        "many-values-in-a-block" => format!(
            r#""result":{{"content":[{{"type":"text","text":"","_meta":{{"a":[{}]}}}}],"isError":true}}"#,
            values()
        ),
        "many-values-in-an-error" => {
            format!(r#""error":{{"code":-32000,"message":"no","data":[{}]}}"#, values())
        }
        "no-content" => r#""result":{"content":[{"type":"text"}]}"#.to_owned(),
        "content-is-text" => r#""result":{"content":"text"}"#.to_owned(),
        "result-is-number" => r#""result":5"#.to_owned(),
        "structured-is-text" => r#""result":{"content":[],"structuredContent":"text"}"#.to_owned(),
        "neither" => r#""other":1"#.to_owned(),
        "error-is-text" => r#""error":"it failed""#.to_owned(),
        "lone-surrogate" => r#""result":{"content":[{"type":"text","text":"\ud800"}]}"#.to_owned(),
        "huge-number" => r#""result":{"content":[],"structuredContent":{"n":1e400}}"#.to_owned(),
        "deep" => format!(
            r#""result":{{"content":[],"structuredContent":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        ),
        _ => r#""result":{"content":[}"#.to_owned(),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},{inside}}}"#)
}

/// A result that is no answer yet.
pub(crate) fn result_of(kind: &str, id: &Value, mut inside: Value) -> Value {
    inside["resultType"] = kind.into();
    result(id, inside)
}

/// Adds the fields that revision 2026-07-28 requires; clients of earlier ones ignore them.
pub(crate) fn result(id: &Value, mut result: Value) -> Value {
    if let Some(result) = result.as_object_mut() {
        result.entry("resultType").or_insert_with(|| "complete".into());
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(crate) fn text_result(id: &Value, text: &str) -> Value {
    result(id, json!({ "content": [{ "type": "text", "text": text }] }))
}

pub(crate) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

pub(crate) fn notification(method: &str, parameters: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": parameters })
}

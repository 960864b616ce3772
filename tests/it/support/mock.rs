//! A server that answers as configured: every kind of result, and every way to give none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cx::{ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList, ToolRequest, ToolResult};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// The server `mock`. Clones share their counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mock {
    /// How many calls arrived here.
    pub(crate) calls: Arc<AtomicUsize>,
    /// How many calls of `hang` were dropped or cancelled.
    pub(crate) cancelled: Arc<AtomicUsize>,
    /// How many calls run now, and the maximum at once so far.
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) most_running: Arc<AtomicUsize>,
}

/// Name, description, output schema.
const TOOLS: &[(&str, &str, Option<&str>)] = &[
    ("echo", "Returns its arguments", None),
    ("text", "Returns `text` as one text block", None),
    ("texts", "Returns each of `texts` as a text block", None),
    ("structured", "Returns `value` as structured content beside another text", None),
    (
        "wrapped",
        "Returns `value` as {result: value}",
        Some(r#"{"type":"object","properties":{"result":{}},"required":["result"]}"#),
    ),
    ("image", "Returns a text and an image", None),
    ("nothing", "Returns no content at all", None),
    ("fail", "Reports a failure with `message`", None),
    ("pollute", "Returns own keys named __proto__ and constructor", None),
    ("sleep", "Answers after `ms` milliseconds", None),
    ("hang", "Never answers", None),
    ("big", "Returns `bytes` bytes of text", None),
    ("count", "Counts its calls", None),
    ("with-dashes.and.dots", "Has a name that is no identifier", None),
    ("then", "Has a dangerous name", None),
    ("constructor", "Has a dangerous name", None),
    ("unavailable", "Is out of reach", None),
    ("limited", "Is rate limited", None),
];

impl ToolDispatcher for Mock {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["mock".into(), "other-server".into()]
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        static MOCK: std::sync::OnceLock<Arc<ToolList>> = std::sync::OnceLock::new();
        static OTHER: std::sync::OnceLock<Arc<ToolList>> = std::sync::OnceLock::new();
        let list = if server == "mock" {
            MOCK.get_or_init(|| list(TOOLS.iter().map(definition).collect()))
        } else {
            OTHER.get_or_init(|| list(vec![definition(&("read_file", "Reads a file", None))]))
        };
        futures::future::ready(Ok(Arc::clone(list))).boxed()
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let running = 1 + self.running.fetch_add(1, Ordering::SeqCst);
        self.most_running.fetch_max(running, Ordering::SeqCst);
        let running = Decrement(&self.running);
        async move {
            let _running = running;
            self.answer(request).await
        }
        .boxed()
    }
}

/// Counts down when it is dropped.
pub(crate) struct Decrement<'a>(pub(crate) &'a AtomicUsize);

impl Drop for Decrement<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Increment<'a>(&'a AtomicUsize);

impl Drop for Increment<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Mock {
    async fn answer(&self, request: ToolRequest) -> Result<ToolResult, ToolError> {
        let sent = request.arguments_json();
        let arguments = Value::Object(request.arguments);
        let number = |name: &str| arguments[name].as_u64().unwrap_or(0);
        let text = |text: &str| json!({ "type": "text", "text": text });
        let content = |content: Vec<Value>| Ok(ToolResult::content(content));
        match &*request.tool {
            "text" if arguments.get("text").is_none() => content(vec![text(&format!("sent {sent}"))]),
            "text" => content(vec![text(arguments["text"].as_str().unwrap_or(""))]),
            "texts" => content(
                arguments["texts"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(text)
                    .collect(),
            ),
            "structured" => {
                let mut result = ToolResult::content(vec![text("not this")]);
                result.structured = Some(arguments["value"].clone().into());
                Ok(result)
            }
            "wrapped" => Ok(ToolResult::structured(json!({ "result": arguments["value"] }))),
            "image" => content(vec![
                text("a picture"),
                json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw==" }),
            ]),
            "nothing" => content(vec![]),
            "fail" => {
                let message = arguments["message"].as_str().unwrap_or("no luck");
                let mut result = ToolResult::content(vec![text(message)]);
                result.is_error = true;
                Ok(result)
            }
            "pollute" => content(vec![text(
                r#"{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}"#,
            )]),
            "sleep" => {
                // Not before this many calls have run at once.
                let together = usize::try_from(number("together")).unwrap_or(usize::MAX);
                while self.most_running.load(Ordering::SeqCst) < together {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                // Not before this many other calls run.
                let others = usize::try_from(number("beside")).unwrap_or(usize::MAX);
                while self.running.load(Ordering::SeqCst) <= others {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                tokio::time::sleep(Duration::from_millis(number("ms"))).await;
                Ok(ToolResult::structured(arguments))
            }
            "hang" => {
                let _dropped = Increment(&self.cancelled);
                futures::future::pending().await
            }
            "big" => {
                let bytes = usize::try_from(number("bytes")).unwrap_or(usize::MAX);
                content(vec![text(&"x".repeat(bytes))])
            }
            "unavailable" => {
                Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "the server is not there"))
            }
            "limited" => {
                let mut error = ToolError::new(ToolErrorCode::RateLimited, "too many calls");
                error.retry_after = Some(Duration::from_millis(1500));
                Err(error)
            }
            _ => Ok(ToolResult::structured(arguments)),
        }
    }
}

fn definition(&(name, description, output_schema): &(&str, &str, Option<&str>)) -> ToolDefinition {
    let mut definition = ToolDefinition::new(name);
    definition.description = Some(description.to_owned());
    definition.output_schema = output_schema.map(|schema| serde_json::from_str(schema).expect("a schema"));
    definition.annotations = (name == "echo").then(|| json!({ "readOnlyHint": true }));
    definition
}

fn list(tools: Vec<ToolDefinition>) -> Arc<ToolList> {
    Arc::new(ToolList::new(tools))
}

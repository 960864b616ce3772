//! Events that wait to be written, and their conversion to lines.

mod content;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::channel::oneshot;
use serde_json::{Value, json};

use self::content::content_of;
use super::canonical;
use crate::durations::{microseconds, milliseconds};
use crate::json::Json;
use crate::run::grants::{Access, RunGrants};
use crate::run::limits::Limits;
use crate::run::observer::{ApproverKind, ClientRequest, DefinitionEvent, ObservedRun, RunEvent, TokenEvent};
use crate::run::result::{ErrorCode, Usage};
use crate::run::script::Language;
use crate::storage::files::sha256;
use crate::telemetry::masked;
use crate::text::{preview, rfc3339};
use crate::tools::ToolErrorCode;

/// Maximum characters of a name in a line. Names come from servers, scripts and clients.
const MAX_NAME: usize = 256;

/// Maximum bytes of a text of arguments or results in a line.
const MAX_CONTENT: usize = 32 << 10;

/// Maximum names of one list in a line.
const MAX_NAMES: usize = 100;

/// Fields of a line about a call, with those that all lines have.
const CALL_FIELDS: usize = 16;

/// The fields of a line, in any order. Those that are null are not written.
pub(super) type Fields = Vec<(&'static str, Value)>;

/// An event that waits to be written. It is made on the threads of runs, so all slow work, above all hashing, is done
/// when it is written.
pub(super) struct Entry {
    pub(super) at: SystemTime,
    /// The run, and how long it had been running.
    pub(super) run: Option<(Arc<ObservedRun>, Duration)>,
    pub(super) content: EventContent,
    /// Receives whether the line was written.
    pub(super) acknowledge: Option<oneshot::Sender<bool>>,
}

/// The content of an event, from which its line is made.
pub(super) enum EventContent {
    RunStarted {
        source: String,
        limits: Box<Limits>,
        grants: Box<RunGrants>,
        input_bytes: usize,
    },
    RunEnded {
        code: Option<ErrorCode>,
        duration: Duration,
        usage: Option<Box<Usage>>,
    },
    /// `call.will`. Calls are most of the events, so these two keep what they get and are made fields by the writer.
    CallSent {
        call: u64,
        names: CallNames,
        argument_bytes: usize,
        arguments: Arc<str>,
        approver: Option<ApproverKind>,
    },
    /// `call.did`.
    CallEnded {
        call: u64,
        names: CallNames,
        code: Option<ToolErrorCode>,
        duration: Duration,
        result: Option<Json>,
    },
    /// An event whose fields are complete.
    Fields(&'static str, Fields),
    /// An event with texts. Only hashes of these are written, or masked texts too.
    Texts(&'static str, Fields, Vec<(TextField, Text)>),
}

/// The names in an event of a call, in one text: one allocation on the thread of a run, and one that the writer frees.
pub(super) struct CallNames {
    text: String,
    server_end: usize,
    tool_end: usize,
}

impl CallNames {
    fn new(server: &str, tool: &str, rule: &str) -> Self {
        let text = [server, tool, rule].concat();
        Self { text, server_end: server.len(), tool_end: server.len() + tool.len() }
    }

    fn server(&self) -> String {
        name_preview(self.text.get(..self.server_end).unwrap_or_default())
    }

    fn tool(&self) -> String {
        name_preview(self.text.get(self.server_end..self.tool_end).unwrap_or_default())
    }

    fn rule(&self) -> String {
        name_preview(self.text.get(self.tool_end..).unwrap_or_default())
    }
}

/// The kind of a text.
#[derive(Clone, Copy)]
pub(super) enum TextField {
    Arguments,
    Result,
    Messages,
    SystemPrompt,
    Answer,
}

impl TextField {
    /// The names of the fields that have the text and its hash.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Arguments => ("arguments", "argumentsSha256"),
            Self::Result => ("result", "resultSha256"),
            Self::Messages => ("messages", "messagesSha256"),
            Self::SystemPrompt => ("systemPrompt", "systemPromptSha256"),
            Self::Answer => ("answer", "answerSha256"),
        }
    }
}

/// A text that is hashed.
pub(super) enum Text {
    /// JSON whose canonical form is hashed, so that the order of keys does not matter.
    Json(Arc<str>),
    /// JSON that is hashed as it is, because results may be large.
    Result(Json),
    Plain(String),
}

impl Entry {
    /// An event that belongs to no run.
    pub(super) fn new(name: &'static str, fields: Fields) -> Self {
        Self {
            at: SystemTime::now(),
            run: None,
            content: EventContent::Fields(name, fields),
            acknowledge: None,
        }
    }

    /// An event of a run.
    pub(super) fn of_run(run: &Arc<ObservedRun>, event: &RunEvent<'_>) -> Self {
        let at = SystemTime::now();
        Self {
            at,
            run: Some((Arc::clone(run), run.started.elapsed())),
            content: content_of(event),
            acknowledge: None,
        }
    }

    /// An event of tool definitions.
    pub(super) fn of_definitions(event: &DefinitionEvent<'_>) -> Self {
        match *event {
            DefinitionEvent::Changed { server, tools } => {
                let names: Vec<String> =
                    tools.iter().take(MAX_NAMES).map(|name| name_preview(name)).collect();
                let fields = vec![
                    ("server", name_preview(server).into()),
                    ("tools", names.into()),
                    ("count", tools.len().into()),
                ];
                Self::new("definitions.changed", fields)
            }
            DefinitionEvent::Accepted { server, tool, count } => {
                let fields = vec![
                    ("server", name_preview(server).into()),
                    ("tool", tool.map(name_preview).into()),
                    ("count", count.into()),
                ];
                Self::new("definitions.accepted", fields)
            }
        }
    }

    /// A request of a client.
    pub(super) fn of_request(request: &ClientRequest<'_>) -> Self {
        let fields = vec![
            ("method", name_preview(request.method).into()),
            ("tool", request.tool.map(name_preview).into()),
            ("runId", request.run_id.map(name_preview).into()),
            ("client", name_preview(request.client).into()),
            ("clientName", request.client_name.map(name_preview).into()),
            ("outcome", if request.code.is_some() { "failed" } else { "ok" }.into()),
            ("code", request.code.map(name_preview).into()),
            ("durationUs", microseconds(request.duration).into()),
        ];
        Self::new("request", fields)
    }

    /// An event of the tokens of a server over HTTP.
    pub(super) fn of_tokens(event: &TokenEvent<'_>) -> Self {
        match *event {
            TokenEvent::Changed { owner, added, revoked, in_force } => {
                let fields = vec![
                    ("of", owner.as_str().into()),
                    ("added", added.into()),
                    ("revoked", revoked.into()),
                    ("inForce", in_force.into()),
                ];
                Self::new("tokens.changed", fields)
            }
            TokenEvent::Refused { owner, reason } => {
                let fields = vec![("of", owner.as_str().into()), ("reason", name_preview(reason).into())];
                Self::new("tokens.refused", fields)
            }
        }
    }

    /// Bytes that it holds in addition to its own size.
    pub(super) fn bytes(&self) -> usize {
        match &self.content {
            EventContent::RunStarted { source, .. } => source.len(),
            EventContent::CallSent { names, arguments, .. } => names.text.len() + arguments.len(),
            EventContent::CallEnded { names, result, .. } => {
                names.text.len() + result.as_ref().map_or(0, |result| result.text().len())
            }
            EventContent::RunEnded { .. } | EventContent::Fields(..) => 0,
            EventContent::Texts(_, _, texts) => texts.iter().map(|(_, text)| text.text().len()).sum(),
        }
    }

    /// The fields of its line, without those of the chain. Those of calls are nearly sorted, as the line has them.
    pub(super) fn into_fields(self, writer: &str, with_contents: bool) -> Fields {
        let (name, mut fields) = match self.content {
            EventContent::RunStarted { source, limits, grants, input_bytes } => {
                let run = self.run.as_ref().map(|(run, _)| run);
                let mut fields = started(&source, &limits, input_bytes, run);
                if !grants.is_empty() {
                    fields.push(("grants", granted(&grants)));
                }
                ("run.started", fields)
            }
            EventContent::RunEnded { code, duration, usage } => {
                ("run.ended", ended(code, duration, usage.as_deref()))
            }
            EventContent::CallSent { call, names, argument_bytes, arguments, approver } => {
                let mut fields = Fields::with_capacity(CALL_FIELDS);
                fields.extend([
                    ("approver", approver.map(ApproverKind::as_str).into()),
                    ("argumentBytes", argument_bytes.into()),
                ]);
                Text::Json(arguments).push_to(&mut fields, TextField::Arguments, with_contents);
                fields.extend([
                    ("call", call.into()),
                    ("rule", names.rule().into()),
                    ("server", names.server().into()),
                    ("tool", names.tool().into()),
                ]);
                ("call.will", fields)
            }
            EventContent::CallEnded { call, names, code, duration, result } => {
                let mut fields = Fields::with_capacity(CALL_FIELDS);
                fields.extend([
                    ("call", call.into()),
                    ("code", code.map(ToolErrorCode::as_str).into()),
                    ("durationUs", microseconds(duration).into()),
                    ("outcome", if code.is_some() { "failed" } else { "ok" }.into()),
                    ("resultBytes", result.as_ref().map_or(0, |value| value.text().len()).into()),
                ]);
                if let Some(result) = result {
                    Text::Result(result).push_to(&mut fields, TextField::Result, with_contents);
                }
                fields.extend([("server", names.server().into()), ("tool", names.tool().into())]);
                ("call.did", fields)
            }
            EventContent::Fields(name, fields) => (name, fields),
            EventContent::Texts(name, mut fields, texts) => {
                for (field, text) in texts {
                    text.push_to(&mut fields, field, with_contents);
                }
                (name, fields)
            }
        };
        let (run, elapsed) = self.run.unzip();
        fields.extend([
            ("at", rfc3339(self.at).into()),
            ("elapsedUs", elapsed.map(microseconds).into()),
            ("event", name.into()),
            ("run", run.map(|run| run.id.clone()).into()),
            ("writer", writer.into()),
        ]);
        fields
    }
}

impl Text {
    fn text(&self) -> &str {
        match self {
            Self::Json(text) => text,
            Self::Result(json) => json.text(),
            Self::Plain(text) => text,
        }
    }

    /// Adds its hash to the fields of a line, and with contents the masked text.
    fn push_to(&self, fields: &mut Fields, field: TextField, with_contents: bool) {
        let (name, name_of_hash) = field.names();
        fields.push((name_of_hash, self.sha256().into()));
        if with_contents {
            fields.push((name, masked::json_text(self.text(), MAX_CONTENT).into()));
        }
    }

    fn sha256(&self) -> String {
        match self {
            Self::Json(text) => {
                // A text that cannot be parsed, such as JSON that is nested too deep, is hashed as it is.
                serde_json::from_str(text)
                    .map_or_else(|_| sha256(text.as_bytes()), |value| sha256(&canonical::value(&value)))
            }
            _ => sha256(self.text().as_bytes()),
        }
    }
}

fn started(source: &str, limits: &Limits, input_bytes: usize, run: Option<&Arc<ObservedRun>>) -> Fields {
    let limits = json!({
        "wallTimeMs": milliseconds(limits.wall_time),
        "cpuTimeMs": milliseconds(limits.cpu_time),
        "memoryBytes": limits.memory_bytes,
        "toolCalls": limits.tool_calls,
    });
    let language = run.and_then(|run| run.language).map(Language::as_str);
    vec![
        ("script", run.map(|run| name_preview(&run.script)).into()),
        ("language", language.into()),
        ("sourceSha256", sha256(source.as_bytes()).into()),
        ("sourceBytes", source.len().into()),
        ("inputBytes", input_bytes.into()),
        ("client", run.and_then(|run| run.client.as_deref()).map(name_preview).into()),
        ("clientName", run.and_then(|run| run.client_name.as_deref()).map(name_preview).into()),
        ("dryRun", run.filter(|run| run.is_dry_run).map(|_| true).into()),
        ("limits", limits),
    ]
}

/// The directories and hosts that the run may reach.
fn granted(grants: &RunGrants) -> Value {
    let paths = |access| -> Vec<String> {
        grants.paths(access).take(MAX_NAMES).map(|path| name_preview(&path.to_string_lossy())).collect()
    };
    let net = grants.net.iter().take(MAX_NAMES).map(|host| name_preview(&host.to_string()));
    json!({ "read": paths(Access::Read), "write": paths(Access::Write), "net": net.collect::<Vec<_>>() })
}

fn ended(code: Option<ErrorCode>, duration: Duration, usage: Option<&Usage>) -> Fields {
    vec![
        ("outcome", if code.is_some() { "failed" } else { "ok" }.into()),
        ("code", code.map(ErrorCode::as_str).into()),
        ("durationUs", microseconds(duration).into()),
        ("cpuTimeUs", usage.map(|usage| microseconds(usage.cpu_time)).into()),
        ("approvalTimeUs", usage.map(|usage| microseconds(usage.approval_time)).into()),
        ("queueTimeUs", usage.map(|usage| microseconds(usage.queue_time)).into()),
        ("memoryBytes", usage.map(|usage| usage.memory_bytes).into()),
        ("toolCalls", usage.map(|usage| usage.tool_calls).into()),
        ("toolCallsRefused", usage.map(|usage| usage.tool_calls_refused).into()),
        ("toolResultBytes", usage.map(|usage| usage.tool_result_bytes).into()),
    ]
}

/// An untrusted name, truncated. JSON escapes what could end a line.
pub(super) fn name_preview(name: &str) -> String {
    preview(name, MAX_NAME)
}

//! A run as a stream of events: what it prints, its tool calls and its progress while it runs, then its answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::unfold;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use crate::run::result::{Output, ToolCallRecord};
use crate::run::result_json::milliseconds;
use crate::run::script::Script;
use crate::server::calls::CallGuard;
use crate::server::event_queue::{EventReader, Queued, event_queue};
use crate::server::http::problem;
use crate::server::http::rest_runs::RestRun;
use crate::server::http::rest_runs::answers::RunAnswer;
use crate::server::notifications::{MAX_MESSAGE, shortened};
use crate::server::yielded::Printed;
use crate::text::{one_line, preview};
use crate::tools::{Progress, names};

/// Interval of comments on a stream without events, so that proxies keep it open.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The header with which nginx is told not to buffer an answer, as streams of MCP have it.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Receives the events of a run.
pub(super) struct RunEvents {
    waiting: EventReader<RunEvent>,
    /// Number of events that were dropped because the queue was full.
    dropped: Arc<AtomicU64>,
}

/// An event of a run: its name and its data.
struct RunEvent {
    name: &'static str,
    data: Value,
}

/// What a stream needs until it ends.
pub(super) struct Streamed {
    pub(super) run: Arc<RestRun>,
    /// `None` if another request receives them.
    pub(super) events: Option<RunEvents>,
    /// Cancels the run when the client is gone.
    pub(super) cancel: Option<DropGuard>,
    /// Counts the stream as a call in flight.
    pub(super) _call: CallGuard,
}

/// The state of a stream.
enum Step {
    Begin,
    Running,
    /// The run has ended with this answer; its earlier events come first.
    Ended(Option<RunAnswer>),
    Done,
}

impl RunEvents {
    /// Adds listeners to a run. They also append its output to `printed`, if there is one.
    pub(super) fn attach(script: Script, printed: Option<Printed>) -> (Script, Self) {
        let (queue, waiting) = event_queue();
        let dropped = Arc::new(AtomicU64::new(0));
        let reports = queue.clone();
        let send = {
            let dropped = Arc::clone(&dropped);
            move |event, text_bytes| {
                if !queue.push(event, text_bytes) {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let send_call = send.clone();
        let mut script = script
            .on_report(move |progress: &Progress| reports.push_report(progress.clone()))
            .on_call(move |call| send_call(call_event(call), call.server.len() + call.tool.len()));
        script.on_kept_output = Some(Arc::new(move |entry: &Output| {
            if let Some(printed) = &printed {
                printed.add(entry);
            }
            if let Output::Log { level, text } = entry {
                let text = shortened(text);
                let bytes = text.len();
                let data = json!({ "level": level.as_str(), "text": text });
                send(RunEvent { name: "output", data }, bytes);
            }
        }));
        (script, Self { waiting, dropped })
    }

    /// Waits for the next event. Never completes after the last one. Cancel-safe.
    async fn next(&mut self) -> RunEvent {
        run_event(self.waiting.next().await)
    }

    /// The remaining events when the run has ended.
    fn next_remaining(&mut self) -> Option<RunEvent> {
        if let Some(queued) = self.waiting.next_remaining() {
            return Some(run_event(queued));
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        (dropped > 0).then(|| RunEvent { name: "dropped", data: json!({ "events": dropped }) })
    }
}

/// Answers with the events of a run, from its start to its answer.
pub(super) fn stream(streamed: Streamed) -> Response {
    let events = unfold((streamed, Step::Begin), |(mut streamed, step)| async move {
        let (event, next) = streamed.next(step).await?;
        Some((Ok::<_, Infallible>(event), (streamed, next)))
    });
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL));
    let mut response = stream.into_response();
    // A proxy must neither keep what scripts return nor hold events back until it has many.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

impl Streamed {
    async fn next(&mut self, mut step: Step) -> Option<(Event, Step)> {
        loop {
            match step {
                Step::Begin => {
                    step = Step::Running;
                    if let Some(id) = &self.run.id {
                        return Some((event("run", &json!({ "runId": id })), step));
                    }
                }
                Step::Running => {
                    let run = Arc::clone(&self.run);
                    let told = async {
                        match &mut self.events {
                            Some(events) => events.next().await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        told = told => return Some((event(told.name, &told.data), Step::Running)),
                        answer = run.wait() => step = Step::Ended(answer),
                    }
                }
                Step::Ended(answer) => {
                    if let Some(rest) = self.events.as_mut().and_then(RunEvents::next_remaining) {
                        return Some((event(rest.name, &rest.data), Step::Ended(answer)));
                    }
                    // The run has ended, so there is nothing to cancel.
                    self.cancel = None;
                    return Some((last_event(answer), Step::Done));
                }
                Step::Done => return None,
            }
        }
    }
}

/// The last event of a stream. `None` if the run's task has failed.
fn last_event(answer: Option<RunAnswer>) -> Event {
    match answer {
        Some(RunAnswer::Ended(text)) => Event::default().event("result").data(&*text),
        Some(RunAnswer::Refused(error)) => event("problem", &problem::refusal(&error).1),
        None => event("problem", &problem::failed_run()),
    }
}

fn event(name: &str, data: &Value) -> Event {
    // JSON text has no line breaks, which would end a line of the event.
    Event::default().event(name).data(data.to_string())
}

fn run_event(queued: Queued<RunEvent>) -> RunEvent {
    match queued {
        Queued::Event(event) => event,
        Queued::Report(progress) => progress_event(progress),
    }
}

fn progress_event(progress: Progress) -> RunEvent {
    let mut data = json!({ "progress": progress.progress });
    if let Some(total) = progress.total {
        data["total"] = total.into();
    }
    if let Some(message) = progress.message {
        data["message"] = preview(&one_line(&message), MAX_MESSAGE).into();
    }
    RunEvent { name: "progress", data }
}

fn call_event(call: &ToolCallRecord) -> RunEvent {
    let data = json!({
        "tool": names::full_name(&call.server, &call.tool),
        "status": call.status.as_str(),
        "ms": milliseconds(call.duration),
        "argumentBytes": call.argument_bytes,
        "resultBytes": call.result_bytes,
    });
    RunEvent { name: "call", data }
}

#[cfg(test)]
mod tests;

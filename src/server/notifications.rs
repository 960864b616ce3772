//! Progress and log notifications for clients that asked for them, while their script runs.
#![expect(
    deprecated,
    reason = "the latest revision deprecates logging, which earlier ones and their clients use"
)]

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{
    LoggingMessageNotification, LoggingMessageNotificationParam, ProgressNotification,
    ProgressNotificationParam, ProgressToken, ServerNotification,
};
use rmcp::service::{OriginatingRequestId, Peer, RequestContext};
use tokio::time::{Interval, MissedTickBehavior, interval_at, timeout};

use super::event_queue::{EventReader, Queued, event_queue};
use crate::run::result::{LogLevel, Output, ToolCallRecord};
use crate::run::script::Script;
use crate::text::{one_line, preview, preview_bytes};
use crate::tools::Progress;

/// The protocol's log levels.
pub(crate) type Severity = rmcp::model::LoggingLevel;

/// Interval of progress notifications that say that the script still runs.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long the connection may take to queue a notification.
const MAX_SEND: Duration = Duration::from_millis(200);

/// Maximum characters of a message in a report of progress.
pub(crate) const MAX_MESSAGE: usize = 500;

/// Maximum bytes of one printed line in a notification.
const MAX_LINE_BYTES: usize = 4_096;

/// Maximum progress value of a report. Each notification has a larger value than the last, and above the largest number
/// there is only infinity, which JSON does not have.
const MAX_PROGRESS: f64 = 1e300;

/// The notifications that a client asked for.
pub(crate) struct Wanted {
    pub(crate) progress: Option<ProgressToken>,
    /// The minimum severity of lines to send.
    pub(crate) log: Option<Severity>,
}

/// An event of a run.
pub(crate) enum RunNotification {
    /// A tool call has ended.
    CallEnded(String),
    /// The script has printed a line.
    Printed(Severity, String),
    /// The heartbeat interval has passed.
    StillRunning,
    /// The script, or the tool that is called directly, has reported progress.
    Reported(Progress),
}

/// The source of the progress notifications of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressOf {
    /// The progress of a script: its own reports, and each of its calls.
    Script,
    /// The progress of a tool that is called directly: its own reports.
    Tool,
}

/// Sends the notifications of one call to its client.
pub(crate) struct RunNotifications {
    wanted: Wanted,
    peer: Peer<RoleServer>,
    /// Over HTTP, a notification is sent on the stream of this request's answer.
    request: OriginatingRequestId,
    /// The script's name.
    logger: String,
    waiting: EventReader<RunNotification>,
    /// Number of printed lines that were dropped because the queue was full.
    dropped: Arc<AtomicU64>,
    heartbeat: Interval,
    started: Instant,
    calls: u64,
    sent: SentProgress,
}

/// The progress that was sent under one token. It only increases.
#[derive(Default)]
struct SentProgress {
    last: Option<f64>,
    /// The last report.
    reported: f64,
    /// Number of other notifications since the last report.
    others: u32,
}

impl SentProgress {
    /// The progress value of a report.
    fn report(&mut self, value: f64) -> f64 {
        // A dispatcher of an embedder may report what is no number.
        let value = if value.is_nan() { self.reported } else { value.clamp(0.0, MAX_PROGRESS) };
        (self.reported, self.others) = (value, 0);
        self.grow(value)
    }

    /// The progress value of a notification that is not a report: slightly above the last report, so that the next
    /// report is larger.
    fn other(&mut self) -> f64 {
        self.others = self.others.saturating_add(1);
        self.grow(self.reported + f64::from(self.others) / 1_000.0)
    }

    fn grow(&mut self, value: f64) -> f64 {
        let value = match self.last {
            Some(last) if value <= last => last.next_up(),
            _ => value,
        };
        self.last = Some(value);
        value
    }
}

impl RunNotifications {
    /// Adds listeners to `script` for the wanted events, and returns the object that sends them.
    pub(crate) fn attach(
        wanted: Wanted,
        context: &RequestContext<RoleServer>,
        mut script: Script,
        of: ProgressOf,
    ) -> (Script, Self) {
        let logger = script.name.clone();
        let (queue, waiting) = event_queue();
        let dropped = Arc::new(AtomicU64::new(0));
        if wanted.progress.is_some() {
            let (reports, calls) = (queue.clone(), queue.clone());
            let report = move |progress: &Progress| reports.push_report(progress.clone());
            script = match of {
                ProgressOf::Tool => script.on_progress(move |call| report(&call.progress)),
                ProgressOf::Script => script.on_report(report).on_call(move |call| {
                    let text = call_text(call);
                    let bytes = text.len();
                    let _full = calls.push(RunNotification::CallEnded(text), bytes);
                }),
            };
        }
        if let Some(min) = wanted.log {
            let dropped = Arc::clone(&dropped);
            // Output beyond the output limit is not sent either.
            script.on_kept_output = Some(Arc::new(move |entry: &Output| {
                let Output::Log { level, text } = entry else { return };
                let severity = severity(*level);
                if rank(severity) < rank(min) {
                    return;
                }
                let line = shortened(text);
                let bytes = line.len();
                if !queue.push(RunNotification::Printed(severity, line), bytes) {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        let mut heartbeat = interval_at((Instant::now() + HEARTBEAT).into(), HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let notifications = Self {
            wanted,
            peer: context.peer.clone(),
            request: OriginatingRequestId(context.id.clone()),
            logger,
            waiting,
            dropped,
            heartbeat,
            started: Instant::now(),
            calls: 0,
            sent: SentProgress::default(),
        };
        (script, notifications)
    }

    /// Sends further notifications for this request instead of the previous one.
    pub(crate) fn redirect(&mut self, wanted: Wanted, context: &RequestContext<RoleServer>) {
        // Progress values start again with each progress token.
        (self.wanted, self.sent) = (wanted, SentProgress::default());
        (self.peer, self.request) = (context.peer.clone(), OriginatingRequestId(context.id.clone()));
    }

    /// Waits for the next event. Never completes if nothing is wanted. Cancel-safe: dropping it
    /// loses no event.
    pub(crate) async fn next(&mut self) -> RunNotification {
        tokio::select! {
            queued = self.waiting.next() => notification(queued),
            _ = self.heartbeat.tick(), if self.wanted.progress.is_some() => RunNotification::StillRunning,
        }
    }

    /// Sends the remaining events when the run has ended.
    pub(crate) async fn finish(&mut self) {
        while let Some(queued) = self.waiting.next_remaining() {
            self.send(notification(queued)).await;
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            self.send_line(Severity::Warning, format!("{dropped} printed lines were not passed on")).await;
        }
    }

    /// Sends an event to the client. Must not be dropped before it completes: the notification
    /// could then be sent after the call's answer.
    pub(crate) async fn send(&mut self, notification: RunNotification) {
        match notification {
            RunNotification::StillRunning => {
                let seconds = self.started.elapsed().as_secs();
                let message = format!("running for {seconds} s, {} tool calls have ended", self.calls);
                let value = self.sent.other();
                self.send_progress(value, None, Some(message)).await;
            }
            RunNotification::CallEnded(message) => {
                self.calls += 1;
                let value = self.sent.other();
                self.send_progress(value, None, Some(message)).await;
            }
            RunNotification::Reported(Progress { progress, total, message, .. }) => {
                let value = self.sent.report(progress);
                let message = message.map(|message| preview(&one_line(&message), MAX_MESSAGE));
                self.send_progress(value, total, message).await;
            }
            RunNotification::Printed(severity, line) => self.send_line(severity, line).await,
        }
    }

    async fn send_progress(&self, value: f64, total: Option<f64>, message: Option<String>) {
        let Some(token) = self.wanted.progress.clone() else { return };
        let mut params = ProgressNotificationParam::new(token, value);
        (params.total, params.message) = (total.filter(|total| total.is_finite()), message);
        self.notify(ServerNotification::ProgressNotification(ProgressNotification::new(params))).await;
    }

    async fn send_line(&self, severity: Severity, line: String) {
        let params = LoggingMessageNotificationParam::new(severity, line.into()).with_logger(&self.logger);
        let mut notification = LoggingMessageNotification::new(params);
        notification.extensions.insert(self.request.clone());
        self.notify(ServerNotification::LoggingMessageNotification(notification)).await;
    }

    async fn notify(&self, notification: ServerNotification) {
        // Sending only queues the message. It takes longer only while the connection is being
        // closed, and then it is not received.
        send_within(MAX_SEND, self.peer.send_notification(notification)).await;
    }
}

/// Sends a notification, and gives up after `max`. Notifications are best effort, so a failure is only logged.
pub(crate) async fn send_within<E: Display>(max: Duration, sending: impl Future<Output = Result<(), E>>) {
    match timeout(max, sending).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a notification was not sent"),
        Err(_elapsed) => tracing::debug!("a notification was not sent in time"),
    }
}

fn notification(queued: Queued<RunNotification>) -> RunNotification {
    match queued {
        Queued::Event(notification) => notification,
        Queued::Report(progress) => RunNotification::Reported(progress),
    }
}

fn call_text(call: &ToolCallRecord) -> String {
    format!("{}.{}: {}, {} ms", call.server, call.tool, call.status.as_str(), call.duration.as_millis())
}

fn severity(level: LogLevel) -> Severity {
    match level {
        LogLevel::Debug => Severity::Debug,
        LogLevel::Info => Severity::Info,
        LogLevel::Warn => Severity::Warning,
        LogLevel::Error => Severity::Error,
    }
}

/// The protocol's order of severities. The type has no order.
const fn rank(severity: Severity) -> u8 {
    severity as u8
}

/// Truncates a printed line to the bound of one notification.
pub(crate) fn shortened(text: &str) -> String {
    if text.len() <= MAX_LINE_BYTES {
        return text.to_owned();
    }
    format!("{} ({} bytes)", preview_bytes(text, MAX_LINE_BYTES), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_only_grows() {
        let mut sent = SentProgress::default();
        let mut values = vec![sent.other(), sent.other(), sent.report(0.5), sent.other(), sent.report(0.5)];
        values.extend([sent.report(0.2), sent.other(), sent.report(2.0), sent.report(2.0), sent.other()]);
        assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
        // What says nothing about the progress hardly counts.
        assert!(values[1] < 0.01 && values[3] < 0.51 && values[7] < 2.001 && values[9] < 2.01, "{values:?}");
    }

    /// What has not begun is at 0, as scripts write it.
    #[test]
    fn the_first_report_may_be_0() {
        let mut sent = SentProgress::default();
        assert_eq!([sent.report(0.0), sent.report(1.0)], [0.0, 1.0]);
        let mut sent = SentProgress::default();
        let values = [sent.report(-1.0), sent.report(0.0), sent.report(1.0)];
        assert!(values[0] == 0.0 && values.is_sorted_by(|a, b| a < b), "{values:?}");
    }

    /// Above the largest number there is none that a notification could have.
    #[test]
    fn progress_stays_a_number() {
        for first in [f64::MAX, f64::INFINITY, f64::NAN, f64::MIN, f64::NEG_INFINITY] {
            let mut sent = SentProgress::default();
            let mut values = vec![sent.report(first), sent.other(), sent.report(f64::MAX)];
            values.extend([sent.report(f64::INFINITY), sent.other(), sent.report(1.0)]);
            assert!(values.iter().all(|value| value.is_finite()), "{first}: {values:?}");
            assert!(values.is_sorted_by(|a, b| a < b), "{first}: {values:?}");
        }
    }
}

//! One process's audit trail: the observer of runs, and the thread that writes.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::channel::oneshot;
use futures::future::Either;
use parking_lot::{Condvar, Mutex};

use super::append::Appender;
use super::open::OpenEffects;
use super::options::{AuditOptions, AuditStatus};
use super::queue::{Batch, EntryQueue};
use super::record::{Entry, name_preview};
use super::records::Records;
use crate::run::observer::{
    BeforeEffect, ClientRequest, DefinitionEvent, ObservedRun, RunEvent, RunObserver, TokenEvent, at_once,
};
use crate::telemetry::priority::yield_to_runs;
use crate::text::ids::short_random_id;
use crate::text::rfc3339;
use crate::tools::{ToolError, ToolErrorCode};

/// How long a call waits for its line if the trail is required. Writing takes microseconds; a hanging disk must not
/// block the run.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Maximum time that the writer sleeps. After a pause of this length the end of the chain is signed, and after a
/// failure writing is retried.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the end of a process waits for the ends of calls that were sent. The runs have ended or are cancelled, so
/// this takes milliseconds; a hung worker must not keep the process. Tests wait for threads of a busy machine.
const MAX_OPEN: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 1 });

/// How long the end of a process waits for the last lines. Tests wait for a busy machine here too.
const MAX_STOP: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// An audit trail that this process writes. Dropping it writes what is queued, within two seconds.
pub struct AuditTrail {
    shared: Arc<Shared>,
}

struct Shared {
    options: AuditOptions,
    queue: EntryQueue,
    open: OpenEffects,
    status: Mutex<AuditStatus>,
    /// Whether the writer has ended.
    ended: Mutex<bool>,
    has_ended: Condvar,
}

impl fmt::Debug for AuditTrail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuditTrail").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl AuditTrail {
    /// Starts the writing thread, and records the start. If the files cannot be written, this is not an error:
    /// [`status`](Self::status) reports it.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub fn start(options: AuditOptions) -> io::Result<Self> {
        let directory = options.directory.clone();
        let required = options.required;
        let status =
            AuditStatus { directory, lines: 0, dropped: 0, failure: None, signing_failure: None, required };
        let contents = options.contents;
        let shared = Arc::new(Shared {
            options,
            queue: EntryQueue::default(),
            open: OpenEffects::default(),
            status: Mutex::new(status),
            ended: Mutex::new(false),
            has_ended: Condvar::new(),
        });
        let writing = Arc::clone(&shared);
        std::thread::Builder::new().name("cx-audit".to_owned()).spawn(move || {
            // Notifies tasks that wait for the end, even after a panic.
            let _end = EndGuard(&writing);
            yield_to_runs();
            write(&writing);
        })?;
        let trail = Self { shared };
        trail.push(Entry::new(
            "logger.started",
            vec![
                ("pid", std::process::id().into()),
                ("uid", rustix::process::geteuid().as_raw().into()),
                ("version", env!("CARGO_PKG_VERSION").into()),
                ("required", required.into()),
                ("contents", contents.into()),
            ],
        ));
        Ok(trail)
    }

    /// The state at this moment.
    pub fn status(&self) -> AuditStatus {
        self.shared.status.lock().clone()
    }

    /// Records that the user trusts a file with this SHA-256 of its content, or no longer trusts it.
    pub fn trust(&self, file: &Path, sha256: Option<&str>) {
        let name = if sha256.is_some() { "trust.given" } else { "trust.revoked" };
        let path = name_preview(&file.to_string_lossy());
        self.push(Entry::new(name, vec![("file", path.into()), ("contentSha256", sha256.into())]));
    }

    /// Writes the queued events and the end of the trail, and signs it. Waits for the ends of calls in flight, for at
    /// most a second, and then for at most two. Later events are dropped.
    pub fn stop(&self) {
        let shared = &self.shared;
        if *shared.ended.lock() {
            return;
        }
        // A run's end is reported before those of its calls that were in flight.
        shared.open.wait(MAX_OPEN);
        // Others may have waited too: one of them is the first.
        shared.queue.close(Entry::new("logger.stopped", Vec::new()));
        let mut ended = shared.ended.lock();
        if !*ended && shared.has_ended.wait_for(&mut ended, MAX_STOP).timed_out() {
            tracing::warn!("the audit trail is not complete: its files could not be written in time");
        }
    }

    fn push(&self, entry: Entry) {
        if !self.shared.queue.push(entry) {
            self.shared.count_dropped(1);
        }
    }
}

impl Drop for AuditTrail {
    fn drop(&mut self) {
        self.stop();
    }
}

impl RunObserver for AuditTrail {
    fn observe(&self, run: &Arc<ObservedRun>, event: &RunEvent<'_>) {
        if matches!(event, RunEvent::Printed { .. }) {
            return;
        }
        let is_effect =
            matches!(event, RunEvent::Started { .. } | RunEvent::Sending(_) | RunEvent::ModelSending(_));
        // If the trail is required, `before_effect` writes these and waits for it.
        if !(is_effect && self.shared.options.required) {
            self.push(Entry::of_run(run, event));
        }
        self.shared.open.count(event);
    }

    fn observe_definitions(&self, event: &DefinitionEvent<'_>) {
        self.push(Entry::of_definitions(event));
    }

    fn observe_request(&self, request: &ClientRequest<'_>) {
        self.push(Entry::of_request(request));
    }

    fn observe_tokens(&self, event: &TokenEvent<'_>) {
        self.push(Entry::of_tokens(event));
    }

    fn before_effect<'a>(&'a self, run: &'a Arc<ObservedRun>, event: &'a RunEvent<'a>) -> BeforeEffect<'a> {
        if !self.shared.options.required {
            return at_once(Ok(None));
        }
        let mut entry = Entry::of_run(run, event);
        let what = if matches!(event, RunEvent::Started { .. }) { "run" } else { "sent" };
        Either::Right(Box::pin(async move {
            let (acknowledge, written) = oneshot::channel();
            entry.acknowledge = Some(acknowledge);
            self.push(entry);
            match tokio::time::timeout(MAX_WAIT, written).await {
                Ok(Ok(true)) => Ok(None),
                _ => Err(self.refusal(what)),
            }
        }))
    }
}

impl AuditTrail {
    fn refusal(&self, what: &str) -> ToolError {
        let failure = self.status().failure.map_or_else(|| "it takes too long".to_owned(), |(_, why)| why);
        let message = format!(
            "nothing was {what}: the audit trail cannot be written, and `audit.required` is set: {failure}"
        );
        ToolError::new(ToolErrorCode::ToolDenied, message)
    }
}

/// Records that the writer has ended when it is dropped.
struct EndGuard<'a>(&'a Shared);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        *self.0.ended.lock() = true;
        self.0.has_ended.notify_all();
    }
}

/// Writes what is queued, until the trail is stopped.
fn write(shared: &Shared) {
    let mut writer = Writer {
        appender: Appender::new(shared.options.clone()),
        records: Records::default(),
        name: short_random_id().unwrap_or_else(|_| std::process::id().to_string()),
        lost: 0,
        since: None,
        reason: String::new(),
    };
    let mut spare = VecDeque::new();
    loop {
        let mut batch = shared.queue.next(PAUSE, spare);
        let is_last = batch.is_last;
        let is_pause = batch.entries.is_empty();
        let is_due = writer.write(shared, &mut batch);
        spare = batch.entries;
        // One that fails is tried again in the next pause.
        if (is_pause || is_last || is_due) && writer.lost == 0 {
            shared.report_checkpoint(writer.appender.checkpoint());
        }
        if is_last {
            return;
        }
    }
}

struct Writer {
    appender: Appender,
    /// Those of the current batch.
    records: Records,
    /// Identifies this process in the trail.
    name: String,
    /// Number of events that were not written and are not reported in the trail yet.
    lost: u64,
    since: Option<SystemTime>,
    reason: String,
}

impl Writer {
    /// Writes the events of a batch, which is empty afterwards. Returns whether a checkpoint is due.
    fn write(&mut self, shared: &Shared, batch: &mut Batch) -> bool {
        if batch.dropped > 0 {
            self.lose(batch.dropped, "there were too many at once");
        }
        if batch.entries.is_empty() && self.lost == 0 {
            return false;
        }
        let count = batch.entries.len() as u64;
        let contents = shared.options.contents;
        let mut acknowledged = Vec::new();
        self.records.clear();
        if self.lost > 0 {
            let since = self.since.map(rfc3339);
            let fields = vec![
                ("count", self.lost.into()),
                ("reason", self.reason.as_str().into()),
                ("since", since.into()),
            ];
            self.records.push(&Entry::new("lines.dropped", fields).into_fields(&self.name, contents));
        }
        for mut entry in batch.entries.drain(..) {
            acknowledged.extend(entry.acknowledge.take());
            self.records.push(&entry.into_fields(&self.name, contents));
        }
        let result = self.appender.append(&self.records, &self.name);
        let is_written = result.is_ok();
        shared.report(count, result.as_ref().err());
        let is_due = match result {
            Ok(is_due) => {
                self.lost = 0;
                self.since = None;
                is_due
            }
            Err(error) => {
                self.lose(count, &error.to_string());
                false
            }
        };
        for waiter in acknowledged {
            // The waiting run may be over.
            let _ = waiter.send(is_written);
        }
        is_due
    }

    fn lose(&mut self, count: u64, reason: &str) {
        self.lost += count;
        self.since.get_or_insert_with(SystemTime::now);
        reason.clone_into(&mut self.reason);
    }
}

impl Shared {
    fn count_dropped(&self, count: u64) {
        self.status.lock().dropped += count;
        metrics::counter!("cx_audit_events_dropped_total").increment(count);
    }

    /// Records a failure, which began when the first of them in a row was recorded, and is logged only then.
    fn note_failure(&self, failure: &mut Option<(SystemTime, String)>, error: &io::Error, problem: &str) {
        let since = failure.take().map(|(since, _)| since);
        if since.is_none() {
            tracing::warn!(directory = %self.options.directory.display(), %error, "{problem}");
        }
        *failure = Some((since.unwrap_or_else(SystemTime::now), error.to_string()));
    }

    /// Records the outcome of a batch. A failure is logged as a warning once, when it begins.
    fn report(&self, count: u64, error: Option<&io::Error>) {
        let mut status = self.status.lock();
        let Some(error) = error else {
            status.lines += count;
            if status.failure.take().is_some() {
                tracing::warn!("the audit trail is written again");
            }
            drop(status);
            metrics::counter!("cx_audit_events_total").increment(count);
            metrics::gauge!("cx_audit_failing").set(0.0);
            return;
        };
        self.note_failure(&mut status.failure, error, "the audit trail cannot be written");
        drop(status);
        self.count_dropped(count);
        metrics::gauge!("cx_audit_failing").set(1.0);
    }

    /// Records whether the end of the chain could be signed. A failure is logged as a warning once, when it begins.
    fn report_checkpoint(&self, result: io::Result<()>) {
        let mut status = self.status.lock();
        let Err(error) = result else {
            if status.signing_failure.take().is_some() {
                tracing::warn!("the audit trail is signed again");
                metrics::gauge!("cx_audit_unsigned").set(0.0);
            }
            return;
        };
        self.note_failure(&mut status.signing_failure, &error, "the audit trail cannot be signed");
        drop(status);
        metrics::counter!("cx_audit_signing_failures_total").increment(1);
        metrics::gauge!("cx_audit_unsigned").set(1.0);
    }
}

#[cfg(test)]
mod tests;

//! A run that was started: a handle to cancel it, to follow it, and to wait for its result.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use futures::Stream;
use futures::channel::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::core::Executor;
use crate::error::Error;
use crate::run::result::{ExecuteResult, Output, ToolCallRecord};
use crate::run::script::{CallProgress, Script};
use crate::text::panic_message;
use crate::tools::Progress;

/// Maximum number of progress reports that wait to be read. Further ones are dropped: tools may
/// send any number, and each replaces the one before. Other events are bounded by the run's limits.
const MAX_QUEUED_PROGRESS: usize = 256;

/// A run in progress, from [`Executor::start`]. Awaiting it gives the run's result.
///
/// It makes progress whether or not it is polled. Dropping it stops the script and cancels its
/// calls. It counts as a clone of its executor.
#[must_use = "dropping a run stops it"]
pub struct Run {
    task: JoinSet<Result<ExecuteResult, Error>>,
    cancel: CancellationToken,
    events: Option<RunEvents>,
}

impl fmt::Debug for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Run")
            .field("is_cancelled", &self.cancel.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// What happens during a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// The script printed a line or emitted a content block. Beyond the run's
    /// [`Limits`](crate::Limits) printed lines are no events.
    Output(Output),
    /// A tool that the script calls reported progress.
    Progress(CallProgress),
    /// The script reported progress of its own.
    Report(Progress),
    /// A tool call has ended.
    Call(ToolCallRecord),
}

/// The events of a run, as a [`Stream`]. It ends when the run has its result.
///
/// Events are kept until they are read. Output and calls are bounded by the run's
/// [`Limits`](crate::Limits); of unread progress reports, those after the first 256 are dropped.
#[derive(Debug)]
pub struct RunEvents {
    receiver: mpsc::UnboundedReceiver<RunEvent>,
    queued_progress: Arc<AtomicUsize>,
}

/// Sends progress of both kinds, of which at most [`MAX_QUEUED_PROGRESS`] together wait to be read.
#[derive(Clone)]
struct ProgressSender {
    events: mpsc::UnboundedSender<RunEvent>,
    queued: Arc<AtomicUsize>,
}

impl ProgressSender {
    fn send(&self, event: impl FnOnce() -> RunEvent) {
        if self.queued.fetch_add(1, Ordering::Relaxed) < MAX_QUEUED_PROGRESS {
            let _ = self.events.unbounded_send(event());
        } else {
            self.queued.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Run {
    /// Starts the run on the executor's runtime.
    pub(super) fn start(executor: &Executor, mut script: Script) -> Self {
        let (sender, receiver) = mpsc::unbounded();
        let queued_progress = Arc::<AtomicUsize>::default();
        let events = RunEvents { receiver, queued_progress: Arc::clone(&queued_progress) };
        let (output, call) = (sender.clone(), sender.clone());
        let progress = ProgressSender { events: sender.clone(), queued: queued_progress };
        let reports = progress.clone();
        // An event for which there is no reader any more is dropped.
        // Not `on_output`: events wait to be read, and only what is kept is bounded.
        script.on_kept_output = Some(both(script.on_kept_output.take(), move |entry: &Output| {
            let _ = output.unbounded_send(RunEvent::Output(entry.clone()));
        }));
        script.on_progress = Some(both(script.on_progress.take(), move |report: &CallProgress| {
            progress.send(|| RunEvent::Progress(report.clone()));
        }));
        script.on_report = Some(both(script.on_report.take(), move |report: &Progress| {
            reports.send(|| RunEvent::Report(report.clone()));
        }));
        script.on_call = Some(both(script.on_call.take(), move |record: &ToolCallRecord| {
            let _ = call.unbounded_send(RunEvent::Call(record.clone()));
        }));
        let cancel = executor.inner.closed.child_token();
        let mut task = JoinSet::new();
        let (executor, token) = (executor.clone(), cancel.clone());
        let runtime = executor.inner.runtime.clone();
        let run = async move {
            let result = executor.run_with(script, None, token).await;
            // A thread that hangs keeps its listeners, and with them senders.
            sender.close_channel();
            result
        };
        task.spawn_on(run, &runtime);
        Self { task, cancel, events: Some(events) }
    }

    /// Ends the run with [`ErrorCode::Cancelled`](crate::ErrorCode::Cancelled). Unlike dropping it,
    /// this keeps the result: the output, the calls that were made, and those in flight.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The run's events from its start; `None` at the second call. They can be read while the run
    /// is awaited, in another task for example.
    pub fn events(&mut self) -> Option<RunEvents> {
        self.events.take()
    }
}

impl Future for Run {
    type Output = Result<ExecuteResult, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.task.poll_join_next(context)) {
            Some(Ok(result)) => result,
            Some(Err(ended)) => Err(match ended.try_into_panic() {
                Ok(panic) => Error::WorkerLost { message: panic_message(&*panic) },
                Err(_shutting_down) => Error::Closed,
            }),
            // The future was polled after its end.
            None => Err(Error::Closed),
        })
    }
}

impl RunEvents {
    /// The next event, or `None` if the run has its result and all events were read. Dropping the future loses no
    /// event.
    pub async fn next(&mut self) -> Option<RunEvent> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for RunEvents {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let event = ready!(Pin::new(&mut self.receiver).poll_next(context));
        if matches!(event, Some(RunEvent::Progress(_) | RunEvent::Report(_))) {
            self.queued_progress.fetch_sub(1, Ordering::Relaxed);
        }
        Poll::Ready(event)
    }
}

type Listener<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// A listener that calls the script's own first.
fn both<T: 'static>(own: Option<Listener<T>>, also: impl Fn(&T) + Send + Sync + 'static) -> Listener<T> {
    Arc::new(move |event| {
        if let Some(own) = &own {
            own(event);
        }
        also(event);
    })
}

#[cfg(test)]
mod tests;

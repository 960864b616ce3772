//! The events of a run that wait to be sent, in the order in which they happened.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::server::notifications::MAX_WAITING;
use crate::tools::Progress;

/// An event of a run: its name and its data.
#[derive(Debug, PartialEq)]
pub(super) struct RunEvent {
    pub(super) name: &'static str,
    pub(super) data: Value,
}

/// An entry of the queue.
#[derive(Debug, PartialEq)]
pub(super) enum Queued {
    Event(RunEvent),
    /// The script has reported progress.
    Report(Progress),
}

/// A queue between the listeners of a run and its one stream. It never waits: a slow client must not slow down its
/// script.
#[derive(Clone, Default)]
pub(super) struct EventQueue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    added: Notify,
}

#[derive(Default)]
struct State {
    /// Has at most one report.
    waiting: VecDeque<Queued>,
    /// Number of events that were dropped because the queue was full.
    dropped: u64,
}

impl EventQueue {
    /// Appends an event. If the queue is full, it is dropped and counted.
    pub(super) fn push(&self, event: RunEvent) {
        {
            let mut state = self.shared.state.lock();
            if state.waiting.len() >= MAX_WAITING {
                state.dropped += 1;
                return;
            }
            state.waiting.push_back(Queued::Event(event));
        }
        self.shared.added.notify_one();
    }

    /// Appends a report in place of an earlier one that still waits. Only the latest is of use, so that a full queue
    /// takes it too.
    pub(super) fn push_report(&self, report: Progress) {
        {
            let mut state = self.shared.state.lock();
            let earlier = state.waiting.iter().rposition(|queued| matches!(queued, Queued::Report(_)));
            if let Some(earlier) = earlier {
                state.waiting.remove(earlier);
            }
            state.waiting.push_back(Queued::Report(report));
        }
        self.shared.added.notify_one();
    }

    /// Removes the oldest entry. A report that nothing follows stays, unless `with_last_report`.
    pub(super) fn pop(&self, with_last_report: bool) -> Option<Queued> {
        let mut state = self.shared.state.lock();
        let is_last = state.waiting.len() == 1;
        if is_last && !with_last_report && matches!(state.waiting.front(), Some(Queued::Report(_))) {
            return None;
        }
        state.waiting.pop_front()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.shared.state.lock().waiting.is_empty()
    }

    /// The number of dropped events since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.shared.state.lock().dropped)
    }

    /// Completes when something was added since the last call. Only one task may wait. Cancel-safe.
    pub(super) async fn added(&self) {
        self.shared.added.notified().await;
    }
}

#[cfg(test)]
mod tests;

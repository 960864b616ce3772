//! The events of a run that wait to be sent to its client, in the order in which they happened.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::waiting_bytes::{HeldBytes, WaitingBytes};
use crate::tools::Progress;

/// Maximum number of events that wait to be sent. Further ones are dropped: the answer contains all output in any case.
const MAX_WAITING: usize = 256;

/// Minimum time between two reports of progress without another event between them. Only the latest is sent.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// An entry of the queue.
#[derive(Debug, PartialEq)]
pub(crate) enum Queued<E> {
    Event(E),
    /// The script, or the tool that is called directly, has reported progress.
    Report(Progress),
}

/// The end of the queue for the listeners of a run. It never waits: a slow client must not slow down its script. Nothing
/// is kept when the other end is gone.
pub(crate) struct EventQueue<E> {
    shared: Weak<Shared<E>>,
}

impl<E> Clone for EventQueue<E> {
    fn clone(&self) -> Self {
        Self { shared: Weak::clone(&self.shared) }
    }
}

/// The other end, for what sends the events.
pub(crate) struct EventReader<E> {
    shared: Arc<Shared<E>>,
    /// When the next report may be sent that nothing follows.
    next_report: Instant,
}

struct Shared<E> {
    /// Has at most one report.
    waiting: Mutex<VecDeque<Waiting<E>>>,
    bytes: WaitingBytes,
    added: Notify,
}

struct Waiting<E> {
    queued: Queued<E>,
    /// Those of an event.
    _bytes: Option<HeldBytes>,
}

/// Makes an empty queue.
pub(crate) fn event_queue<E>() -> (EventQueue<E>, EventReader<E>) {
    let shared =
        Arc::new(Shared { waiting: Mutex::default(), bytes: WaitingBytes::new(), added: Notify::new() });
    (EventQueue { shared: Arc::downgrade(&shared) }, EventReader { shared, next_report: Instant::now() })
}

impl<E> EventQueue<E> {
    /// Appends an event with this much text. Returns whether there was room for it; if not, it is dropped.
    pub(crate) fn push(&self, event: E, text_bytes: usize) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        {
            let mut waiting = shared.waiting.lock();
            if waiting.len() >= MAX_WAITING {
                return false;
            }
            let Some(held) = shared.bytes.hold(text_bytes) else { return false };
            waiting.push_back(Waiting { queued: Queued::Event(event), _bytes: Some(held) });
        }
        shared.added.notify_one();
        true
    }

    /// Appends a report in place of an earlier one that still waits. Only the latest is of use, so that a full queue
    /// takes it too.
    pub(crate) fn push_report(&self, report: Progress) {
        let Some(shared) = self.shared.upgrade() else { return };
        {
            let mut waiting = shared.waiting.lock();
            let earlier = waiting.iter().rposition(|entry| matches!(entry.queued, Queued::Report(_)));
            if let Some(earlier) = earlier {
                waiting.remove(earlier);
            }
            waiting.push_back(Waiting { queued: Queued::Report(report), _bytes: None });
        }
        shared.added.notify_one();
    }
}

impl<E> EventReader<E> {
    /// Waits for the next entry. Never completes after the last one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Queued<E> {
        loop {
            if let Some(queued) = self.pop(Instant::now() >= self.next_report) {
                return queued;
            }
            let waits_for_its_time = !self.shared.waiting.lock().is_empty();
            tokio::select! {
                () = self.shared.added.notified() => {}
                () = sleep_until(self.next_report), if waits_for_its_time => {}
            }
        }
    }

    /// Returns the next entry when the run has ended; `None` after the last one.
    pub(crate) fn next_remaining(&mut self) -> Option<Queued<E>> {
        self.pop(true)
    }

    /// Removes the oldest entry. A report that nothing follows stays, unless `with_last_report`: what follows a report
    /// does not wait until it may be sent.
    fn pop(&mut self, with_last_report: bool) -> Option<Queued<E>> {
        let mut waiting = self.shared.waiting.lock();
        let is_last = waiting.len() == 1;
        let is_report = |entry: &Waiting<E>| matches!(entry.queued, Queued::Report(_));
        if is_last && !with_last_report && waiting.front().is_some_and(is_report) {
            return None;
        }
        let queued = waiting.pop_front()?.queued;
        if matches!(queued, Queued::Report(_)) {
            self.next_report = Instant::now() + REPORT_INTERVAL;
        }
        Some(queued)
    }
}

#[cfg(test)]
mod tests;

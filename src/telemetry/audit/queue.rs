//! The bounded queue between the threads of runs, which never wait, and the thread that writes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::record::Entry;

/// Maximum number of events that wait to be written.
const MAX_ENTRIES: usize = 65_536;

/// Maximum bytes of the texts in queued events. A single event is accepted whatever its size, which the run's limits
/// bound.
const MAX_BYTES: usize = 64 << 20;

/// How long the writer gathers events before it writes them, unless a caller waits for one. Waking a thread costs the
/// caller microseconds, so a burst of calls should wake it once; and opening and locking the files costs as much as
/// writing some ten lines.
const GATHER: Duration = Duration::from_millis(10);

/// Maximum number of events for which memory is kept from one batch to the next, less than a megabyte. More is a burst.
const MAX_KEPT_ENTRIES: usize = 4_096;

/// Events that wait to be written.
#[derive(Default)]
pub(super) struct EntryQueue {
    state: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Default)]
struct QueueState {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Number of events that a caller waits for.
    awaited: usize,
    /// Number of events since the last batch that did not fit into the queue.
    dropped: u64,
    /// Whether the writer sleeps until something arrives.
    is_idle: bool,
    is_closed: bool,
}

/// The events that the writer gets at once.
pub(super) struct Batch {
    pub(super) entries: VecDeque<Entry>,
    /// Events that did not fit into the queue.
    pub(super) dropped: u64,
    /// Whether no further batch follows.
    pub(super) is_last: bool,
}

impl EntryQueue {
    /// Queues an event. Never waits. Returns whether there was space for it.
    pub(super) fn push(&self, entry: Entry) -> bool {
        let (bytes, is_awaited) = (entry.bytes(), entry.acknowledge.is_some());
        let mut state = self.state.lock();
        let is_full = !state.entries.is_empty()
            && (state.entries.len() >= MAX_ENTRIES || state.bytes + bytes > MAX_BYTES);
        if is_full || state.is_closed {
            state.dropped += 1;
            return false;
        }
        state.bytes += bytes;
        state.awaited += usize::from(is_awaited);
        state.entries.push_back(entry);
        let wakes = state.is_idle || is_awaited;
        drop(state);
        if wakes {
            self.arrived.notify_one();
        }
        true
    }

    /// Queues the last event, and refuses later ones. The writer still writes the queued ones. Does nothing if it was
    /// called before.
    pub(super) fn close(&self, last: Entry) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.is_closed, true) {
            state.bytes += last.bytes();
            state.entries.push_back(last);
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Waits for events, for at most `max_wait`. For the writer only.
    ///
    /// Later events are queued in the memory of `spare`, which the writer has of an earlier batch. Otherwise the threads
    /// of runs would enlarge the queue again after each batch, step by step and while they hold its lock.
    pub(super) fn next(&self, max_wait: Duration, mut spare: VecDeque<Entry>) -> Batch {
        spare.clear();
        spare.shrink_to(MAX_KEPT_ENTRIES);
        let mut state = self.state.lock();
        let deadline = Instant::now() + max_wait;
        while state.entries.is_empty() && !state.is_closed {
            state.is_idle = true;
            let has_elapsed = self.arrived.wait_until(&mut state, deadline).timed_out();
            state.is_idle = false;
            if has_elapsed {
                break;
            }
        }
        let gathered = Instant::now() + GATHER;
        while !state.entries.is_empty() && !state.is_closed && state.awaited == 0 {
            if self.arrived.wait_until(&mut state, gathered).timed_out() {
                break;
            }
        }
        (state.bytes, state.awaited) = (0, 0);
        Batch {
            entries: std::mem::replace(&mut state.entries, spare),
            dropped: std::mem::take(&mut state.dropped),
            is_last: state.is_closed,
        }
    }
}

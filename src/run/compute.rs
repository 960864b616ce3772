//! Limits how many runs compute at the same time.
//!
//! More computing runs than cores do not finish sooner: they evict each other's caches, and every
//! page that one of them maps or unmaps interrupts the other cores. So a run needs a compute slot
//! while it computes, and releases it while it waits for a tool or a timer. Slots only order the
//! work: a run that has computed for [`TIME_SLICE`] continues without its slot, a resumed run that
//! has waited for [`MAX_WAIT`] continues without one, and a new run starts without one after
//! [`MAX_STALL`]. So no run can delay another for longer than that.

use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt as _;

use crate::machine;
use crate::sync::{Condvar, Mutex, now};

/// How long a run may compute on one slot. Almost every script computes for less between two tool
/// calls. Beside runs that compute for ever, 10 ms made short runs wait for a third longer.
const TIME_SLICE: Duration = Duration::from_millis(5);

/// How long a resumed run waits for a slot. Slots that are not released in time are reclaimed
/// sooner; this bounds the wait when many runs compete for them. It is shorter than the time that a
/// run has to stop after it was told to.
const MAX_WAIT: Duration = Duration::from_millis(250);

/// If no run has started for this long although some are queued, one starts without a slot. Slots
/// of computing runs are reclaimed sooner; this applies when all of them go to resumed runs.
pub(crate) const MAX_STALL: Duration = Duration::from_millis(50);

/// Notified when a slot is free that a run may start on.
pub(crate) trait OnFreeSlot: Send + Sync {
    /// Called while no lock of [`ComputeSlots`] is held.
    fn slot_is_free(self: Arc<Self>);
}

/// The compute slots of the process, one for each processor that it may use.
pub(crate) struct ComputeSlots {
    state: Mutex<ComputeState>,
    freed: Condvar,
    capacity: usize,
    listeners: Mutex<Vec<Weak<dyn OnFreeSlot>>>,
}

#[derive(Default)]
struct ComputeState {
    taken: usize,
    /// Started runs that wait to resume. They have priority over runs that have not started.
    waiting: usize,
}

/// The process's slots. Shared by all executors, because the cores are shared too.
pub(crate) fn slots() -> &'static Arc<ComputeSlots> {
    static SLOTS: LazyLock<Arc<ComputeSlots>> =
        LazyLock::new(|| Arc::new(ComputeSlots::new(machine::processors())));
    &SLOTS
}

impl ComputeSlots {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { state: Mutex::default(), freed: Condvar::new(), capacity, listeners: Mutex::default() }
    }

    /// Notifies `listener` of free slots for as long as it exists.
    pub(crate) fn listen(&self, listener: Weak<dyn OnFreeSlot>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
    }

    /// Number of slots on which new runs may start now.
    pub(crate) fn free(&self) -> usize {
        let state = self.state.lock();
        if state.waiting > 0 { 0 } else { self.capacity.saturating_sub(state.taken) }
    }

    /// Takes a slot for a run that has not started, if one is free.
    pub(crate) fn try_take(self: &Arc<Self>) -> Option<Slot> {
        let mut state = self.state.lock();
        if state.waiting > 0 || state.taken >= self.capacity {
            return None;
        }
        state.taken += 1;
        Some(Slot { slots: Arc::clone(self) })
    }

    /// Takes a slot for a resumed run. Returns `None` after [`MAX_WAIT`]; the run then continues
    /// without one.
    fn take(self: &Arc<Self>) -> Option<Slot> {
        let mut state = self.state.lock();
        let mut has_waited = false;
        if state.taken >= self.capacity {
            has_waited = true;
            let until = now() + MAX_WAIT;
            state.waiting += 1;
            while state.taken >= self.capacity {
                if self.freed.wait_until(&mut state, until).timed_out() {
                    break;
                }
            }
            state.waiting -= 1;
            if state.taken >= self.capacity {
                return None;
            }
        }
        state.taken += 1;
        // While a run waits to resume, freed slots are kept for it and no listener is notified. If
        // more slots were freed than it needs, the listeners are notified now.
        let is_one_left = has_waited && state.waiting == 0 && state.taken < self.capacity;
        drop(state);
        if is_one_left {
            self.tell_listeners();
        }
        Some(Slot { slots: Arc::clone(self) })
    }

    fn tell_listeners(&self) {
        // Upgraded first, so that no listener is called or dropped under the lock.
        let listeners: Vec<_> = self.listeners.lock().iter().filter_map(Weak::upgrade).collect();
        for listener in listeners {
            listener.slot_is_free();
        }
    }
}

/// A slot that is taken until this is dropped.
pub(crate) struct Slot {
    slots: Arc<ComputeSlots>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut state = self.slots.state.lock();
            state.taken -= 1;
            if state.waiting > 0 {
                self.slots.freed.notify_one();
                return;
            }
        }
        self.slots.tell_listeners();
    }
}

/// One run's use of the slots. Shared by the run's thread, which computes, and the watchdog, which
/// reclaims the slot.
pub(crate) struct Turn {
    slots: Arc<ComputeSlots>,
    state: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    /// When the run started to compute, if it computes now.
    since: Option<Instant>,
    /// The slot that the run computes on. `None` while it computes if its slot was reclaimed or its
    /// wait for one timed out.
    slot: Option<Slot>,
    /// Whether the watchdog has abandoned the run. It no longer checks the run, so it would not
    /// reclaim a slot.
    is_abandoned: bool,
    /// Whether the script computes in another process.
    is_elsewhere: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Self { slots: Arc::clone(slots()), state: Mutex::default() }
    }
}

impl Turn {
    /// A run that starts to compute, on `slot` of `slots` if it got one.
    pub(crate) fn begun(slots: Arc<ComputeSlots>, slot: Option<Slot>) -> Self {
        let state = TurnState { since: Some(now()), slot, is_abandoned: false, is_elsewhere: false };
        Self { slots, state: Mutex::new(state) }
    }

    /// Starts to compute. Waits for a slot for at most [`MAX_WAIT`].
    fn begin(&self) {
        {
            let state = self.state.lock();
            if state.since.is_some() || state.is_abandoned {
                return;
            }
        }
        let slot = self.slots.take();
        let _too_late = {
            let mut state = self.state.lock();
            state.since = Some(now());
            if state.is_abandoned { slot } else { std::mem::replace(&mut state.slot, slot) }
        };
    }

    /// Stops computing for now.
    pub(crate) fn end(&self) {
        // Dropped after the lock is released, because dropping a slot can start the next run.
        let _ended = {
            let mut state = self.state.lock();
            state.since = None;
            state.slot.take()
        };
    }

    /// Makes a run continue without a slot from now on. Called by the watchdog when it abandons the
    /// run.
    pub(crate) fn abandon(&self) {
        let _reclaimed = {
            let mut state = self.state.lock();
            state.is_abandoned = true;
            state.slot.take()
        };
    }

    /// Reclaims the slot of a run that has computed on it for [`TIME_SLICE`]. Called by the
    /// watchdog.
    pub(crate) fn reclaim(&self, now: Instant) {
        let _reclaimed = {
            let mut state = self.state.lock();
            let is_used_up =
                state.since.is_some_and(|since| now.saturating_duration_since(since) >= TIME_SLICE);
            if is_used_up { state.slot.take() } else { None }
        };
    }

    /// Says whether the script computes in another process from now on. While it does, a pending future of
    /// [`compute`](Self::compute) keeps its slot.
    pub(crate) fn compute_elsewhere(&self, is_computing: bool) {
        self.state.lock().is_elsewhere = is_computing;
    }

    fn is_elsewhere(&self) -> bool {
        self.state.lock().is_elsewhere
    }

    /// Polls `future` on a slot, which is released while the future is pending. Between two polls
    /// the run has no slot, so the caller must not compute on this thread meanwhile.
    pub(crate) async fn compute<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|task| {
            self.begin();
            let polled = future.poll_unpin(task);
            if polled.is_pending() && !self.is_elsewhere() {
                self.end();
            }
            polled
        })
        .await
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;

//! How many runs compute at the same moment.
//!
//! Runs that compute at once beyond the number of cores finish no sooner: they only take each other's caches, and every
//! page that one of them maps or unmaps interrupts the other cores. So a run needs a compute slot while it computes, and
//! gives it up while it waits for a tool or a timer. Slots order the work, they do not limit it: a run that has computed
//! for [`TIME_SLICE`] keeps going without its slot, a run that has waited for [`MAX_WAIT`] goes on without one, and one
//! begins without one after [`MAX_STALL`]. No run can hold up another for longer than that, whatever it does.

use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, now};
use futures::FutureExt as _;

/// How long a run may compute on one slot. Longer than almost every script computes between two calls of tools, and as
/// long as the kernel lets a thread run at least before it lets another have the core.
const TIME_SLICE: Duration = Duration::from_millis(10);

/// How long a run that goes on waits for a slot. Slots that are not given back in time are reclaimed sooner; this bounds
/// the wait where many runs compete for them. Below what a run that was told to stop has for its end.
const MAX_WAIT: Duration = Duration::from_millis(250);

/// When no run has begun for so long although some wait, one begins without a slot. Slots that runs compute on are
/// reclaimed sooner; this is for the time when all of them go to runs that go on.
pub(crate) const MAX_STALL: Duration = Duration::from_millis(50);

/// Told when a slot is free and runs that have not begun may take it.
pub(crate) trait OnFreeSlot: Send + Sync {
    /// Called without any lock of [`ComputeSlots`] held.
    fn slot_is_free(self: Arc<Self>);
}

/// The compute slots of the process, as many as cores.
pub(crate) struct ComputeSlots {
    state: Mutex<State>,
    freed: Condvar,
    capacity: usize,
    listeners: Mutex<Vec<Weak<dyn OnFreeSlot>>>,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// Runs that have begun and wait to go on. They come before runs that have not begun.
    waiting: usize,
}

/// The process's slots. Shared by all executors, because the cores are.
pub(crate) fn slots() -> &'static Arc<ComputeSlots> {
    static SLOTS: LazyLock<Arc<ComputeSlots>> = LazyLock::new(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new(ComputeSlots::new(cores))
    });
    &SLOTS
}

impl ComputeSlots {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { state: Mutex::default(), freed: Condvar::new(), capacity, listeners: Mutex::default() }
    }

    /// Tells `listener` of free slots for as long as it lives.
    pub(crate) fn listen(&self, listener: Weak<dyn OnFreeSlot>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
    }

    /// Slots that runs which have not begun may take now.
    pub(crate) fn free(&self) -> usize {
        let state = self.state.lock();
        if state.waiting > 0 { 0 } else { self.capacity.saturating_sub(state.taken) }
    }

    /// Takes a slot for a run that has not begun, if one is free.
    pub(crate) fn try_take(self: &Arc<Self>) -> Option<Slot> {
        let mut state = self.state.lock();
        if state.waiting > 0 || state.taken >= self.capacity {
            return None;
        }
        state.taken += 1;
        Some(Slot { slots: Arc::clone(self) })
    }

    /// Takes a slot for a run that goes on. `None` after [`MAX_WAIT`]: it goes on without one.
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
        // While a run waits to go on, freed slots are kept for it and no listener is told. If more were freed than it
        // needs, the listeners are told now.
        let is_one_left = has_waited && state.waiting == 0 && state.taken < self.capacity;
        drop(state);
        if is_one_left {
            self.tell_listeners();
        }
        Some(Slot { slots: Arc::clone(self) })
    }

    fn tell_listeners(&self) {
        // Upgraded before they are called, so that none is called, or dropped, under the lock.
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

/// One run's use of the slots. Shared by the run's thread, which computes, and the watchdog, which reclaims.
pub(crate) struct Turn {
    slots: Arc<ComputeSlots>,
    state: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    /// Since when the run computes, if it does.
    since: Option<Instant>,
    /// The slot that it computes on. A run that computes without one has used it up, or waited too long for it.
    slot: Option<Slot>,
    /// Whether the watchdog has given the run up. It looks at the run no more, so nobody would reclaim a slot.
    is_abandoned: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Self { slots: Arc::clone(slots()), state: Mutex::default() }
    }
}

impl Turn {
    /// A run that begins to compute, on `slot` of `slots` if it got one.
    pub(crate) fn begun(slots: Arc<ComputeSlots>, slot: Option<Slot>) -> Self {
        let state = TurnState { since: Some(now()), slot, is_abandoned: false };
        Self { slots, state: Mutex::new(state) }
    }

    /// Begins to compute. Waits for a slot, for [`MAX_WAIT`] at most.
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

    /// Computes no more for now.
    pub(crate) fn end(&self) {
        // Dropped after the lock is open again: the next run begins in there.
        let _ended = {
            let mut state = self.state.lock();
            state.since = None;
            state.slot.take()
        };
    }

    /// Lets a run compute on without a slot from now on. Called by the watchdog when it gives the run up.
    pub(crate) fn abandon(&self) {
        let _reclaimed = {
            let mut state = self.state.lock();
            state.is_abandoned = true;
            state.slot.take()
        };
    }

    /// Reclaims the slot of a run that has computed on it for [`TIME_SLICE`]. Called by the watchdog.
    pub(crate) fn reclaim(&self, now: Instant) {
        let _reclaimed = {
            let mut state = self.state.lock();
            let is_used_up =
                state.since.is_some_and(|since| now.saturating_duration_since(since) >= TIME_SLICE);
            if is_used_up { state.slot.take() } else { None }
        };
    }

    /// Polls `future` on a slot, which is free while the future waits. Whoever awaits this must block the thread
    /// meanwhile or do nothing: between two polls the run has no slot.
    pub(crate) async fn compute<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|task| {
            self.begin();
            let polled = future.poll_unpin(task);
            if polled.is_pending() {
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

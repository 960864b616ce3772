//! Models of the slots: who holds one, who waits, who is notified.

use super::*;
use crate::sync::model::{self, Timeouts, any, join_others};

/// Runs that have not started, as in a pool.
#[derive(Default)]
struct Beginners {
    lock: Mutex<()>,
    told: Condvar,
}

impl OnFreeSlot for Beginners {
    fn slot_is_free(self: Arc<Self>) {
        let _locked = self.lock.lock();
        self.told.notify_all();
    }
}

impl Beginners {
    fn begin(&self, slots: &Arc<ComputeSlots>) -> Slot {
        let mut locked = self.lock.lock();
        loop {
            if let Some(slot) = slots.try_take() {
                return slot;
            }
            self.told.wait(&mut locked);
        }
    }
}

fn is_within_capacity(slots: &ComputeSlots) {
    let state = slots.state.lock();
    assert!(state.taken <= slots.capacity, "{} of {}", state.taken, slots.capacity);
}

fn is_at_rest(slots: &ComputeSlots) {
    let state = slots.state.lock();
    assert_eq!((state.taken, state.waiting), (0, 0), "taken, waiting");
}

/// Runs that start and runs that resume, without timeouts.
#[test]
fn v_359_a_free_slot_always_goes_to_a_waiting_run() {
    model::check(2_000, Timeouts::Never, || {
        let slots = Arc::new(ComputeSlots::new(1 + any(2)));
        let beginners = Arc::new(Beginners::default());
        let listener: Weak<Beginners> = Arc::downgrade(&beginners);
        slots.listen(listener);
        for number in 0..4 {
            let (slots, beginners) = (Arc::clone(&slots), Arc::clone(&beginners));
            model::thread(&format!("run-{number}"), move || {
                let slot = beginners.begin(&slots);
                is_within_capacity(&slots);
                let turn = Turn::begun(Arc::clone(&slots), Some(slot));
                for _ in 0..any(3) {
                    turn.end();
                    turn.begin();
                    assert!(turn.state.lock().slot.is_some(), "nothing times out");
                    is_within_capacity(&slots);
                }
                turn.end();
            });
        }
        join_others();
        is_at_rest(&slots);
    });
}

/// The watchdog reclaims slots while runs start, resume and end.
#[test]
fn v_360_no_slot_is_freed_twice() {
    model::check(2_000, Timeouts::Random, || {
        let slots = Arc::new(ComputeSlots::new(1 + any(2)));
        for number in 0..3 {
            let slots = Arc::clone(&slots);
            let turn = Arc::new(Turn::begun(Arc::clone(&slots), slots.try_take()));
            let watched = Arc::clone(&turn);
            model::thread(&format!("watchdog-{number}"), move || {
                for _ in 0..3 {
                    watched.reclaim(now());
                }
                if any(2) == 0 {
                    watched.abandon();
                    assert!(watched.state.lock().slot.is_none());
                }
            });
            model::thread(&format!("run-{number}"), move || {
                for _ in 0..any(3) {
                    turn.end();
                    turn.begin();
                    is_within_capacity(&slots);
                }
                turn.end();
            });
        }
        join_others();
        is_at_rest(&slots);
    });
}

/// Number of runs.
const RUNS: usize = 4;

/// A resumed run may compute for long. The slots that it does not need remain available to others.
#[test]
fn v_359_a_resumed_run_takes_one_slot_only() {
    model::check(2_000, Timeouts::Never, || {
        let slots = Arc::new(ComputeSlots::new(2));
        let beginners = Arc::new(Beginners::default());
        let listener: Weak<Beginners> = Arc::downgrade(&beginners);
        slots.listen(listener);
        let begun = Arc::new((Mutex::new(0), Condvar::new()));
        for number in 0..RUNS {
            let (slots, beginners, begun) = (Arc::clone(&slots), Arc::clone(&beginners), Arc::clone(&begun));
            model::thread(&format!("run-{number}"), move || {
                let turn = Turn::begun(Arc::clone(&slots), Some(beginners.begin(&slots)));
                *begun.0.lock() += 1;
                begun.1.notify_all();
                if number == 0 {
                    turn.end();
                    turn.begin();
                    let mut count = begun.0.lock();
                    while *count < RUNS {
                        begun.1.wait(&mut count);
                    }
                }
                turn.end();
            });
        }
        join_others();
        is_at_rest(&slots);
    });
}

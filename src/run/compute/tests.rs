use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;

fn slots_of(capacity: usize) -> Arc<ComputeSlots> {
    Arc::new(ComputeSlots::new(capacity))
}

#[test]
fn no_more_begin_than_there_are_slots() {
    let slots = slots_of(2);
    let (first, second) = (slots.try_take(), slots.try_take());
    assert!(first.is_some() && second.is_some());
    assert!(slots.try_take().is_none());
    assert_eq!(slots.free(), 0);
    drop(first);
    assert_eq!(slots.free(), 1);
    assert!(slots.try_take().is_some());
}

#[test]
fn a_run_that_goes_on_comes_before_one_that_begins() {
    // A machine may be so busy that the wait is over before the slot is given back: that says nothing.
    let is_in_time = || {
        let slots = slots_of(1);
        let taken = slots.try_take();
        let began = Instant::now();
        let waiting = thread::spawn({
            let slots = Arc::clone(&slots);
            move || slots.take().is_some()
        });
        while slots.state.lock().waiting == 0 && !waiting.is_finished() {
            thread::yield_now();
        }
        let other = slots.try_take();
        drop(taken);
        let is_in_time = began.elapsed() < MAX_WAIT;
        let has_got = waiting.join().unwrap();
        if is_in_time {
            assert!(other.is_none());
            assert!(has_got, "it got the slot");
            assert!(slots.try_take().is_some(), "and gave it back");
        }
        is_in_time
    };
    assert!((0..100).any(|_| is_in_time()), "the machine never gave the time");
}

#[test]
fn no_run_waits_for_a_slot_for_ever() {
    let slots = slots_of(1);
    let _taken = slots.try_take();
    assert!(slots.take().is_none());
    assert_eq!(slots.state.lock().waiting, 0);
}

#[test]
fn listeners_are_told_of_a_free_slot() {
    #[derive(Default)]
    struct Told(AtomicUsize);
    impl OnFreeSlot for Told {
        fn slot_is_free(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let slots = slots_of(1);
    let told = Arc::new(Told::default());
    let listener: Weak<Told> = Arc::downgrade(&told);
    slots.listen(listener);
    drop(slots.try_take());
    assert_eq!(told.0.load(Ordering::Relaxed), 1);
    let gone = Arc::downgrade(&told);
    drop(told);
    drop(slots.try_take());
    assert!(gone.upgrade().is_none(), "a listener does not live for this");
}

#[test]
fn a_slot_is_reclaimed_from_a_run_that_computes_on() {
    let slots = slots_of(1);
    let turn = Turn::begun(Arc::clone(&slots), slots.try_take());
    let begun = Instant::now();
    turn.reclaim(begun);
    assert_eq!(slots.free(), 0, "not yet");
    turn.reclaim(begun + TIME_SLICE);
    assert_eq!(slots.free(), 1);
    // The run continues without the slot and does not release it twice.
    turn.reclaim(begun + 2 * TIME_SLICE);
    turn.end();
    assert_eq!(slots.free(), 1);
}

#[test]
fn a_run_has_a_slot_only_while_it_computes() {
    let turn = Turn::default();
    let mut waits = true;
    let mut had = Vec::new();
    futures::executor::block_on(turn.compute(std::future::poll_fn(|task| {
        had.push(turn.state.lock().since.is_some());
        if std::mem::take(&mut waits) {
            task.waker().wake_by_ref();
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })));
    assert_eq!(had, [true, true]);
    assert!(turn.state.lock().since.is_some(), "what follows is the run's too");
    turn.end();
    assert!(turn.state.lock().since.is_none());
}

//! Models of the admission queue: runs that enter, wait, are cancelled, time out and are dropped at the same time.

use std::sync::OnceLock;

use super::*;
use crate::sync::model::{self, Timeouts, any, block_on, join_others, poll_times, yield_now};

const RUNS: usize = 2;
const MEGABYTES: usize = 4;

/// Where timers are made. Nothing runs on it.
fn handle() -> tokio::runtime::Handle {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_current_thread().build().unwrap()).handle().clone()
}

fn admission(max_waiting: usize) -> Arc<Admission> {
    let memory = TotalMemory { bytes: MEGABYTES << 20, source: MemorySource::Option };
    Arc::new(Admission::new(RUNS, memory, max_waiting, Duration::from_millis(50)))
}

/// What the runs that were admitted have, counted beside the admission and without a step.
#[derive(Default)]
struct Used {
    runs: usize,
    megabytes: usize,
}

/// A run that was admitted, from its beginning to its end.
fn run(used: &parking_lot::Mutex<Used>, megabytes: usize, permit: Permit) {
    {
        let mut used = used.lock();
        used.runs += 1;
        used.megabytes += megabytes;
        assert!(used.runs <= RUNS, "{} runs", used.runs);
        assert!(used.megabytes <= MEGABYTES, "{} MB", used.megabytes);
    }
    yield_now();
    {
        let mut used = used.lock();
        used.runs -= 1;
        used.megabytes -= megabytes;
    }
    drop(permit);
}

fn is_at_rest(admission: &Admission) {
    let counted = (admission.running.load(Ordering::Relaxed), admission.queue.waiting());
    assert_eq!(counted, (0, 0), "running, waiting");
    let free = (admission.runs.semaphore.available_permits(), admission.memory.semaphore.available_permits());
    assert_eq!(free, (RUNS, MEGABYTES), "run permits, megabytes");
}

/// Every waiter is admitted, however many permits others take.
#[test]
fn v_363_every_run_is_admitted_without_timeouts() {
    model::check(2_000, Timeouts::Never, || {
        let (admission, used) = (admission(10), Arc::new(parking_lot::Mutex::new(Used::default())));
        for number in 0..4 {
            let (admission, used) = (Arc::clone(&admission), Arc::clone(&used));
            model::thread(&format!("run-{number}"), move || {
                let megabytes = 1 + any(MEGABYTES);
                let cancel = CancellationToken::new();
                let permit = block_on(admission.enter(&handle(), megabytes << 20, &cancel));
                run(&used, megabytes, permit.expect("no run is refused"));
            });
        }
        join_others();
        is_at_rest(&admission);
    });
}

/// A waiter that is cancelled, refused, dropped or timed out keeps no permit.
#[test]
fn v_364_waiters_that_leave_keep_no_permit() {
    model::check(2_000, Timeouts::Random, || {
        let (admission, used) = (admission(any(4)), Arc::new(parking_lot::Mutex::new(Used::default())));
        for number in 0..5 {
            let (admission, used) = (Arc::clone(&admission), Arc::clone(&used));
            let cancel = CancellationToken::new();
            if any(3) == 0 {
                let cancel = cancel.clone();
                model::thread(&format!("canceller-{number}"), move || {
                    yield_now();
                    cancel.cancel();
                });
            }
            model::thread(&format!("run-{number}"), move || {
                let (megabytes, polls) = (1 + any(MEGABYTES), 1 + any(4));
                let handle = handle();
                let entering = admission.enter(&handle, megabytes << 20, &cancel);
                if let Some(Ok(permit)) = poll_times(entering, polls) {
                    run(&used, megabytes, permit);
                }
            });
        }
        join_others();
        is_at_rest(&admission);
    });
}

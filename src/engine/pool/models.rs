//! Models of the interaction between clients that submit runs, workers, the slots and the watchdog:
//! see [`crate::sync`].

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use super::tests::{Answer, Fake, job};
use super::*;
use crate::run::result::{ErrorCode, ExecuteResult};
use crate::sync::model::{self, Timeouts, any, block_on, join_others};

/// Deadline of runs that hang. It passes after some ticks of the watchdog.
const SOON: Duration = Duration::from_millis(100);

/// A deadline that no schedule reaches.
const NEVER: Duration = Duration::from_secs(1 << 30);

/// Runtime handle for contexts, which require one. Nothing runs on it.
fn handle() -> tokio::runtime::Handle {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_current_thread().build().unwrap()).handle().clone()
}

struct Scene {
    fake: Fake,
    capacity: usize,
    slots: Arc<ComputeSlots>,
    shared: Arc<Shared<Fake>>,
    pool: Arc<Pool<Fake>>,
}

impl Scene {
    /// A pool without a watchdog: nothing happens in it without a call.
    fn quiet(fake: Fake) -> Self {
        let (capacity, warm) = (1 + any(2), any(3));
        let slots = Arc::new(ComputeSlots::new(capacity));
        let shared = Shared::new(fake.clone(), warm, Duration::from_secs(30), Arc::clone(&slots));
        for _ in 0..warm {
            let _may_be_refused = shared.start_thread();
        }
        let pool = Arc::new(Pool { shared: Arc::clone(&shared) });
        Self { fake, capacity, slots, shared, pool }
    }

    /// A complete pool, with a watchdog.
    fn watched() -> Self {
        let fake = Fake::default();
        let (capacity, warm) = (1 + any(2), any(3));
        let slots = Arc::new(ComputeSlots::new(capacity));
        let trim_after = Duration::from_secs(30);
        let pool = Arc::new(Pool::with_slots(fake.clone(), warm, trim_after, Arc::clone(&slots)).unwrap());
        Self { fake, capacity, slots, shared: Arc::clone(&pool.shared), pool }
    }

    fn submit(&self, source: &str, wall_time: Duration) -> (Answer, CancellationToken) {
        submit(&self.pool, source, wall_time)
    }

    /// Closes the pool, waits for its threads, and checks that none of them is left.
    fn close(self) {
        let Self { capacity, slots, shared, pool, .. } = self;
        drop(pool);
        join_others();
        shared.watchdog.clear();
        let state = shared.state.lock();
        let idle = [state.ready, state.warming, state.parked, state.called];
        assert_eq!(idle, [0; 4], "ready, warming, parked, called");
        let left = [state.hung, state.workers, state.waiting.len()];
        assert_eq!(left, [0; 3], "hung, workers, waiting");
        assert_eq!(slots.free(), capacity, "slots are free again");
    }
}

fn submit(pool: &Pool<Fake>, source: &str, wall_time: Duration) -> (Answer, CancellationToken) {
    let (job, answer) = job(source, wall_time, handle());
    let cancel = job.environment.cancel.clone();
    pool.submit(job);
    (answer, cancel)
}

/// Waits for a run's reply. Every run must get one.
fn answer(reply: Answer) -> Result<ExecuteResult, Error> {
    block_on(reply).expect("every run is answered")
}

fn one_of<'a>(sources: &[&'a str]) -> &'a str {
    sources[any(sources.len())]
}

/// There are no timeouts and no watchdog: each free slot and each worker has to find the next run.
#[test]
fn v_355_every_run_gets_a_worker_and_a_slot_without_timeouts() {
    model::check(1_000, Timeouts::Never, || {
        let scene = Scene::quiet(Fake::default());
        for client in 0..3 {
            let pool = Arc::clone(&scene.pool);
            model::thread(&format!("client-{client}"), move || {
                for _ in 0..1 + any(2) {
                    let source = one_of(&["1", "tool", "tool", "refuse", "panic", "leave"]);
                    let reply = answer(submit(&pool, source, NEVER).0);
                    match source {
                        "panic" => assert!(matches!(reply, Err(Error::WorkerLost { .. }))),
                        "refuse" => assert!(reply.unwrap().error().is_some()),
                        _ => assert!(reply.unwrap().error().is_none()),
                    }
                }
            });
        }
        scene.close();
    });
}

#[test]
fn v_355_every_run_is_answered_where_instances_and_threads_are_refused() {
    model::check(1_000, Timeouts::Never, || {
        let fake = Fake::default();
        fake.shared.failing_instances.store(any(4), std::sync::atomic::Ordering::Relaxed);
        fake.shared.failing_threads.store(any(3), std::sync::atomic::Ordering::Relaxed);
        let scene = Scene::quiet(fake);
        for client in 0..4 {
            let pool = Arc::clone(&scene.pool);
            model::thread(&format!("client-{client}"), move || {
                let _either_way = answer(submit(&pool, one_of(&["1", "tool"]), NEVER).0);
            });
        }
        scene.close();
    });
}

#[test]
fn v_356_a_pool_that_is_closed_answers_all_its_runs() {
    model::check(1_000, Timeouts::Never, || {
        let scene = Scene::quiet(Fake::default());
        let replies: Vec<_> =
            (0..4).map(|_| scene.submit(one_of(&["1", "tool", "refuse"]), NEVER).0).collect();
        for (number, reply) in replies.into_iter().enumerate() {
            model::thread(&format!("client-{number}"), move || {
                let reply = answer(reply);
                assert!(matches!(reply, Ok(_) | Err(Error::Closed)));
            });
        }
        scene.close();
    });
}

/// The watchdog abandons runs, reclaims slots and requests workers, and every wait may time out.
#[test]
fn v_357_runs_that_hang_are_answered_once_and_leave_nothing() {
    model::check(400, Timeouts::Random, || {
        let scene = Scene::watched();
        let mut replies = Vec::new();
        for _ in 0..5 {
            let source = one_of(&["1", "tool", "hang", "deaf", "polite", "panic"]);
            let (reply, cancel) = scene.submit(source, if any(2) == 0 { SOON } else { NEVER });
            let cancelled = matches!(source, "hang" | "deaf" | "polite") || any(4) == 0;
            if cancelled {
                model::thread("canceller", move || cancel.cancel());
            }
            replies.push(reply);
        }
        for reply in replies {
            let _any = answer(reply);
        }
        scene.fake.release();
        scene.close();
    });
}

/// An abandoned run continues to compute without a slot, whatever it does.
#[test]
fn v_358_an_abandoned_run_keeps_no_slot() {
    model::check(400, Timeouts::Random, || {
        let scene = Scene::watched();
        let abandoned: Vec<_> = (0..2).map(|_| scene.submit("relapse", SOON).0).collect();
        for reply in abandoned {
            assert_eq!(answer(reply).unwrap().error().map(|error| error.code), Some(ErrorCode::Timeout));
        }
        let fake = &scene.fake.shared;
        fake.relapsed.store(1, std::sync::atomic::Ordering::Relaxed);
        // A run whose deadline had passed before it started was answered without hanging.
        while fake.blocked.load(std::sync::atomic::Ordering::Relaxed) < scene.pool.stats().hung {
            model::yield_now();
        }
        // Loops forever if one of them holds a slot, because nothing reclaims it.
        while scene.slots.free() < scene.capacity {
            model::yield_now();
        }
        scene.fake.release();
        scene.close();
    });
}

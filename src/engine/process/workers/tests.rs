//! Workers that are killed while they are idle, and when others are started in place of those that runs get.

use std::io::Write as _;

use rustix::process::{Pid, Signal, kill_process};

use super::forking::ForkServer;
use super::start::{fork, start};
use super::*;
use crate::engine::process::resources::Resources;
use crate::engine::process::tests::{MARK, WORKER, children, impostor, program};
use crate::run::limits::Limits;

/// Timeout of tests that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

/// How often a test looks.
const PAUSE: Duration = Duration::from_millis(5);

fn options(spare: usize) -> WorkerOptions {
    WorkerOptions {
        program: program(WORKER, MARK, 1),
        spare,
        is_python: false,
        counts_fuel: false,
        memory_bytes: Limits::default().memory_bytes,
        caches: Vec::new(),
    }
}

/// Looks over and over.
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < WATCHDOG, "it did not happen");
        std::thread::sleep(PAUSE);
    }
}

/// The idle worker that is warm and is not `other`.
fn warm_one(workers: &Workers, other: Option<Pid>) -> Pid {
    wait_for(|| {
        let state = workers.shared.state.lock();
        state
            .fresh
            .iter()
            .find(|worker| Some(worker.pid) != other && worker.has_sent_first_message())
            .map(|worker| worker.pid)
    })
}

/// It is replaced while no run needs it, so that the next run does not wait for a start.
#[tokio::test(flavor = "multi_thread")]
async fn v_612_an_idle_worker_that_was_killed_is_replaced() {
    let workers = Workers::new(options(1)).unwrap();
    let first = warm_one(&workers, None);
    kill_process(first, Signal::KILL).unwrap();
    let second = warm_one(&workers, Some(first));
    let mut worker = workers.acquire(&None).await.unwrap();
    assert_eq!((worker.pid, worker.has_sent_first_message(), worker.status()), (second, true, None));
}

/// The first worker that is kept for another run wakes it then.
#[tokio::test(flavor = "multi_thread")]
async fn the_thread_says_when_it_sleeps_for_long() {
    let workers = Workers::new(options(1)).unwrap();
    warm_one(&workers, None);
    wait_for(|| workers.shared.state.lock().sleeps_long.then_some(()));
}

/// Until the thread has seen that, no run is given to it. Here no thread looks.
#[test]
fn v_612_no_run_is_given_to_an_idle_worker_that_was_killed() {
    let shared = Arc::<Shared>::default();
    let workers = Workers { options: options(2), shared: Arc::clone(&shared), runs: Arc::default() };
    let started = || start(&workers.options, &shared).unwrap();
    let killed = || {
        let mut worker = started();
        kill_process(worker.pid, Signal::KILL).unwrap();
        wait_for(|| worker.status());
        worker
    };
    let (tenant, alive) = (Some("a".to_owned()), started());
    let pid = alive.pid;
    {
        let mut state = shared.state.lock();
        state.used.push((tenant.clone(), killed()));
        state.fresh.extend([killed(), alive]);
    }
    let (wanted, _started) = oneshot::channel();
    assert_eq!(workers.take_idle(&tenant, wanted).map(|worker| worker.pid), Some(pid));
    shared.state.lock().fresh.push_back(killed());
    let (wanted, _started) = oneshot::channel();
    assert!(workers.take_idle(&tenant, wanted).is_none());
    let state = shared.state.lock();
    assert_eq!((state.used.len(), state.fresh.len(), state.wanted.len()), (0, 0, 1));
}

/// Whether the system says that a process is in this state, as `T` for one that is stopped.
fn is_in_state(pid: Pid, state: char) -> bool {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("State:").is_some_and(|rest| rest.trim().starts_with(state)))
}

/// Only the fork server knows how its worker has ended. Here it is stopped, and reports nothing.
#[test]
fn v_612_no_run_is_given_to_a_killed_worker_whose_end_was_not_reported() {
    let shared = Arc::<Shared>::default();
    let workers = Workers { options: options(1), shared: Arc::clone(&shared), runs: Arc::default() };
    let server = Arc::new(ForkServer::start(&workers.options).unwrap());
    server.await_warm(|| false).unwrap();
    let mut worker = fork(&server, &workers.options, &shared).unwrap();
    kill_process(server.pid, Signal::STOP).unwrap();
    wait_for(|| is_in_state(server.pid, 'T').then_some(()));
    kill_process(worker.pid, Signal::KILL).unwrap();
    wait_for(|| is_in_state(worker.pid, 'Z').then_some(()));
    assert_eq!(worker.status(), None);
    shared.state.lock().fresh.push_back(worker);
    let (wanted, _started) = oneshot::channel();
    assert!(workers.take_idle(&None, wanted).is_none());
}

/// A long run gets its lower priority by its group (`resources.rs`).
#[test]
fn a_forked_worker_has_a_process_group_of_its_own() {
    let (options, shared) = (options(1), Arc::<Shared>::default());
    let server = Arc::new(ForkServer::start(&options).unwrap());
    server.await_warm(|| false).unwrap();
    let worker = fork(&server, &options, &shared).unwrap();
    wait_for(|| worker.has_sent_first_message().then_some(()));
    assert_eq!(rustix::process::getpgid(Some(worker.pid)), Ok(worker.pid));
}

/// The thread waits for the fork server then, and nothing waits for the thread.
#[test]
fn v_696_an_executor_that_is_closed_while_a_fork_server_warms_up_ends_it() {
    let workers = Workers::new(WorkerOptions { program: impostor::cold(), ..options(1) }).unwrap();
    let shared = Arc::clone(&workers.shared);
    let has_fork_server = || {
        children("self").iter().any(|child| {
            let arguments = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            arguments.contains(&format!("impostor-{}", impostor::COLD))
        })
    };
    wait_for(|| has_fork_server().then_some(()));
    drop(workers);
    let began = Instant::now();
    wait_for(|| (!shared.state.lock().has_thread && !has_fork_server()).then_some(()));
    // Not only because it has waited for as long as it waits for any fork server.
    assert!(began.elapsed() < WATCHDOG / 2);
    let state = shared.state.lock();
    assert_eq!((state.fresh.len(), state.failures), (0, 0));
}

/// A worker that has served a run, of whose mapped and resident pages the system says this.
fn used_worker(options: &WorkerOptions, shared: &Arc<Shared>, pages: &str) -> WorkerProcess {
    let mut worker = start(options, shared).unwrap();
    let mut statm = tempfile::tempfile().unwrap();
    writeln!(statm, "{pages} 0 0 0 0 0").unwrap();
    (worker.statm, worker.warm_bytes) = (Some(Arc::new(statm)), Some(64 << 20));
    worker
}

/// A worker that serves several runs of a client may have been taken over by one of them. Between two runs no watchdog
/// measures it.
#[test]
fn v_684_an_idle_worker_that_takes_memory_or_hides_it_serves_no_other_run() {
    let shared = Arc::<Shared>::default();
    let workers = Workers { options: options(1), shared: Arc::clone(&shared), runs: Arc::default() };
    let mut supervisor = Supervisor::new(options(1), Arc::clone(&shared));
    for (pages, is_kept) in [("2000000 1000", true), ("2000000 1000000", false), ("0 0", false)] {
        let worker = used_worker(&workers.options, &shared, pages);
        shared.state.lock().used.push((None, worker));
        assert_eq!(supervisor.reap_and_prune().len(), usize::from(!is_kept), "{pages} pages");
        // Dropped after the lock, which the drop of a worker takes.
        let _kept = std::mem::take(&mut shared.state.lock().used);
        let worker = used_worker(&workers.options, &shared, pages);
        shared.state.lock().used.push((None, worker));
        let (wanted, _started) = oneshot::channel();
        assert_eq!(workers.take_idle(&None, wanted).is_some(), is_kept, "{pages} pages");
    }
}

/// In half a second it could take gigabytes. While none has served a run, nothing is measured.
#[test]
fn v_684_idle_workers_of_several_runs_are_measured_often() {
    let shared = Arc::<Shared>::default();
    let options = WorkerOptions { program: program(WORKER, MARK, 2), ..options(1) };
    let workers = Workers { options, shared: Arc::clone(&shared), runs: Arc::default() };
    let is_often = || super::supervisor::interval(&shared.state.lock()) <= Duration::from_millis(20);
    let [first, second] = [(); 2].map(|()| start(&workers.options, &shared).unwrap());
    shared.state.lock().fresh.push_back(first);
    assert!(!is_often());
    // The thread sleeps, and is woken by the first one. It is the only other one that takes the lock.
    let (tell, is_waiting) = std::sync::mpsc::channel();
    let thread = std::thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            let mut state = shared.state.lock();
            state.sleeps_long = true;
            tell.send(()).unwrap();
            shared.changed.wait_for(&mut state, WATCHDOG).timed_out()
        }
    });
    is_waiting.recv().unwrap();
    assert!(workers.give_back(None, second).is_none());
    assert!(!thread.join().unwrap(), "it was not woken");
    assert!(is_often() && !shared.state.lock().sleeps_long);
    // Also while the worker serves the next run.
    let (wanted, _started) = oneshot::channel();
    let _running = workers.take_idle(&None, wanted);
    assert!(is_often());
}

/// It says itself when it is ready for the next run.
#[test]
fn v_684_a_worker_is_measured_before_it_is_ready_for_another_run() {
    let (options, shared) = (options(1), Arc::<Shared>::default());
    for (pages, is_too_much) in [("2000000 1000", false), ("2000000 1000000", true)] {
        let worker = used_worker(&options, &shared, pages);
        assert_eq!(Resources::new(&worker).exceed(0), is_too_much, "{pages} pages");
    }
}

/// To start a process takes as much of the processors as many short runs, such as the one that has just begun.
#[test]
fn a_worker_that_a_run_has_got_is_replaced_a_little_later() {
    let shared = Arc::<Shared>::default();
    let workers = Workers { options: options(1), shared: Arc::clone(&shared), runs: Arc::default() };
    let idle = start(&workers.options, &shared).unwrap();
    shared.state.lock().fresh.push_back(idle);
    let (wanted, _started) = oneshot::channel();
    let before = Instant::now();
    let worker = workers.take_idle(&None, wanted);
    assert!(worker.is_some());
    let state = shared.state.lock();
    let next = state.next_start(before).expect("another one is started at once");
    assert!(next >= before + SETTLE);
    assert_eq!(state.next_start(next), None);
}

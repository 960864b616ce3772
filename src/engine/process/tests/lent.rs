//! Workers that are lent before their runs are there. A stream in this process stands for the executor.

use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::{MARK, WATCHDOG, WORKER, program};
use crate::engine::process::frames::{self, Decoder, RunNumber};
use crate::engine::process::lent::{LentError, LentWorkers, MAX_IDLE_TIME};
use crate::engine::process::wire::{self, FromWorker, Hello, PROTOCOL, Start, ToWorker};
use crate::run::limits::Limits;
use crate::run::nested::MAX_DEPTH;
use crate::run::result::{ErrorCode, Outcome};

const RUN: RunNumber = RunNumber(7);

/// How many runs the run is nested in.
const DEPTH: usize = 2;

fn lent() -> LentWorkers {
    LentWorkers::new(&program(WORKER, MARK, 1), &[], Limits::default(), 0).unwrap()
}

/// What the lender and the executor come to, if both end before a hung worker would be noticed.
async fn both<L, E>(
    lending: impl Future<Output = L>,
    executing: impl Future<Output = E>,
) -> Result<(L, E), Elapsed> {
    timeout(WATCHDOG, async { tokio::join!(lending, executing) }).await
}

/// The executor's half of a conversation.
struct Executor {
    stream: DuplexStream,
    decoder: Decoder,
}

impl Executor {
    fn new(stream: DuplexStream) -> Self {
        Self { stream, decoder: Decoder::new(wire::MAX_START_BYTES) }
    }

    async fn send(&mut self, message: &ToWorker) {
        self.send_in_run(RunNumber::NONE, message).await;
    }

    async fn send_in_run(&mut self, run: RunNumber, message: &ToWorker) {
        let mut bytes = Vec::new();
        frames::append(&mut bytes, run, message, wire::MAX_START_BYTES).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn receive(&mut self, run: RunNumber) -> FromWorker {
        loop {
            if let Some(message) = self.decoder.next(run).unwrap() {
                return message;
            }
            let count = self.stream.read(self.decoder.space()).await.unwrap();
            assert!(count > 0, "the worker has gone");
            self.decoder.filled(count);
        }
    }

    /// Asks for a worker.
    async fn ask(&mut self) {
        let hello = Hello {
            protocol: PROTOCOL,
            is_python: false,
            counts_fuel: false,
            memory_bytes: Limits::default().memory_bytes as u64,
            caches: Vec::new(),
            requires_sandbox: false,
            parent: 0,
            forks: false,
        };
        self.send(&ToWorker::Hello(hello)).await;
    }

    /// Asks for a worker, and waits until it is ready.
    async fn greet(&mut self) {
        self.ask().await;
        let FromWorker::Ready { .. } = self.receive(RunNumber::NONE).await else { panic!("it is not ready") };
    }

    async fn start_run(&mut self, depth: usize) {
        self.start_run_with(depth, None).await;
    }

    async fn start_run_with(&mut self, depth: usize, input: Option<String>) {
        let start = Start { input, ..Start::of_test(RUN.0, u8::try_from(depth).unwrap()) };
        self.send(&ToWorker::Start(Box::new(start))).await;
    }
}

/// The executor is told so as by a worker that cannot start, although this one has said that it is ready.
#[tokio::test(flavor = "multi_thread")]
async fn v_611_a_run_that_is_not_admitted_reaches_no_worker() {
    let workers = lent();
    for (depth, part) in [(DEPTH, "as many runs as it takes"), (MAX_DEPTH + 1, "nested that deep")] {
        let asked = AtomicUsize::new(0);
        let (near, far) = duplex(64 << 10);
        let lending = workers.lend(far, MAX_IDLE_TIME, |depth| {
            asked.store(depth, Ordering::SeqCst);
            ready(None::<()>)
        });
        let executing = async {
            let mut executor = Executor::new(near);
            executor.greet().await;
            assert_eq!(asked.load(Ordering::SeqCst), 0, "a run was admitted that is not there yet");
            executor.start_run(depth).await;
            let FromWorker::Failed(problem) = executor.receive(RUN).await else {
                panic!("the worker has the run")
            };
            assert!(problem.contains(part), "{problem}");
            assert_eq!(executor.stream.read(&mut [0; 1]).await.unwrap(), 0);
        };
        let (lent, ()) = tokio::join!(lending, executing);
        assert!(matches!(lent, Err(LentError::NotAdmitted)), "{lent:?}");
        assert_eq!(asked.load(Ordering::SeqCst), depth);
    }
}

/// It is asked for, and nothing else comes.
#[tokio::test(flavor = "multi_thread")]
async fn v_640_a_worker_whose_run_does_not_come_is_ended() {
    let (near, far) = duplex(64 << 10);
    let mut executor = Executor::new(near);
    executor.ask().await;
    let workers = lent();
    let lending = workers.lend(far, Duration::from_millis(10), |_depth| ready(Some(())));
    let lent = timeout(WATCHDOG, lending).await.expect("it is ended");
    assert!(matches!(lent, Err(LentError::Bound("no run came in time"))), "{lent:?}");
}

/// The code with which a run ends that does this, and for which its worker is ended.
async fn code_of(source: &str) -> ErrorCode {
    let lent = lent();
    let (near, far) = duplex(64 << 10);
    let lending = lent.lend(far, MAX_IDLE_TIME, |_depth| ready(Some(())));
    let executing = async {
        let mut executor = Executor::new(near);
        executor.greet().await;
        let start = Start { source: source.to_owned(), ..Start::of_test(RUN.0, 0) };
        executor.send(&ToWorker::Start(Box::new(start))).await;
        let FromWorker::Surveyed { .. } = executor.receive(RUN).await else { panic!("no survey") };
        executor.send_in_run(RUN, &ToWorker::Proceed).await;
        loop {
            match executor.receive(RUN).await {
                FromWorker::Done(done) => break done.outcome(&Limits::default(), &[]).unwrap(),
                FromWorker::Waiting { .. } | FromWorker::Computing => {}
                _ => panic!("the script does nothing else"),
            }
        }
    };
    let (lent, outcome) = both(lending, executing).await.expect("it is ended");
    assert!(matches!(lent, Err(LentError::Bound(_))), "{lent:?}");
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    error.code
}

/// It ends with the code for that, and not as a worker that has crashed.
#[tokio::test(flavor = "multi_thread")]
async fn v_651_a_run_that_uses_more_memory_than_is_lent_is_told_so() {
    assert_eq!(code_of("// hostile: memory-bomb\nreturn 1").await, ErrorCode::MemoryLimit);
}

/// Only this side sees the exit status of the worker.
#[tokio::test(flavor = "multi_thread")]
async fn v_650_a_run_elsewhere_over_its_memory_that_waits_for_its_executor_has_its_own_code() {
    assert_eq!(code_of("// hostile: stuck-waiting\nreturn 1").await, ErrorCode::MemoryLimit);
}

#[tokio::test(flavor = "multi_thread")]
async fn v_611_a_permit_is_kept_until_its_run_has_ended() {
    let (lent, permit) = (lent(), Arc::new(()));
    let (near, far) = duplex(64 << 10);
    let given = Arc::clone(&permit);
    let lending = lent.lend(far, MAX_IDLE_TIME, move |_depth| ready(Some(given)));
    let executing = async {
        let mut executor = Executor::new(near);
        executor.greet().await;
        executor.start_run(DEPTH).await;
        let FromWorker::Surveyed { .. } = executor.receive(RUN).await else { panic!("no survey") };
        assert_eq!(Arc::strong_count(&permit), 2, "the permit is free while the run is in flight");
    };
    let (lent, ()) = tokio::join!(lending, executing);
    assert!(lent.is_ok(), "{lent:?}");
    assert_eq!(Arc::strong_count(&permit), 1);
}

/// A permit may be free only much later: the worker is not kept until then.
#[tokio::test(flavor = "multi_thread")]
async fn v_685_a_run_that_waits_for_a_permit_ends_with_its_executor() {
    let lent = lent();
    let (near, far) = duplex(64 << 10);
    let lending = lent.lend(far, MAX_IDLE_TIME, |_depth| pending::<Option<()>>());
    let executing = async {
        let mut executor = Executor::new(near);
        executor.greet().await;
        executor.start_run(DEPTH).await;
    };
    let (lent, ()) = both(lending, executing).await.expect("the worker is lent to nobody");
    assert!(lent.is_ok(), "{lent:?}");
}

/// What comes of it meanwhile is more than the connection holds.
#[tokio::test(flavor = "multi_thread")]
async fn v_685_a_run_that_has_waited_for_a_permit_is_complete() {
    let lent = lent();
    let (near, far) = duplex(4 << 10);
    let (admit, admitted) = oneshot::channel();
    let lending = lent.lend(far, MAX_IDLE_TIME, |_depth| async { admitted.await.ok() });
    let executing = async {
        let mut executor = Executor::new(near);
        executor.greet().await;
        let input = format!("\"{}\"", "a".repeat(256 << 10));
        executor.start_run_with(DEPTH, Some(input)).await;
        admit.send(()).unwrap();
        let FromWorker::Surveyed { .. } = executor.receive(RUN).await else { panic!("no survey") };
    };
    let (lent, ()) = both(lending, executing).await.expect("the run has not begun");
    assert!(lent.is_ok(), "{lent:?}");
}

/// It would make another instance, which competes with what sends the result.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_does_nothing_after_its_last_run() {
    let lent = lent();
    let (near, far) = duplex(64 << 10);
    let lending = lent.lend(far, MAX_IDLE_TIME, |_depth| ready(Some(())));
    let executing = async {
        let mut executor = Executor::new(near);
        executor.greet().await;
        let start = || ToWorker::Start(Box::new(Start { is_last: true, ..Start::of_test(RUN.0, 0) }));
        executor.send(&start()).await;
        let FromWorker::Surveyed { .. } = executor.receive(RUN).await else { panic!("no survey") };
        executor.send_in_run(RUN, &ToWorker::Proceed).await;
        // It reports in between what it does if that takes long, as on a busy machine.
        loop {
            match executor.receive(RUN).await {
                FromWorker::Waiting { .. } | FromWorker::Computing => {}
                FromWorker::Done(_) => break,
                _ => panic!("it has not ended"),
            }
        }
        assert!(executor.decoder.is_empty(), "it says more");
        // Nor does it begin what comes: it ends.
        executor.send(&start()).await;
        assert_eq!(executor.stream.read(&mut [0; 1]).await.unwrap(), 0, "it is ready for another run");
    };
    let (lent, ()) = both(lending, executing).await.expect("the worker does not end");
    assert!(lent.is_ok(), "{lent:?}");
}

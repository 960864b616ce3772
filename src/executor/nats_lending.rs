//! Worker processes that execute the runs of a queue on a NATS server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::duplex;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::core::Executor;
use super::nats_worker::access;
use super::queue::{QueueEvent, QueueOptions};
use crate::engine::process::lent::{LentError, LentWorkers, MAX_START_TIME};
use crate::error::{Error, OptionName};
use crate::nats::channel::{ChannelEnd, LocalEnd, RunChannel};
use crate::nats::queue::{Queue, pause_after};
use crate::nats::seal::SharedKey;
use crate::nats::server::{Access, Addresses, ConnectError, NatsServer};
use crate::run::nested::MAX_DEPTH;

/// Maximum number of worker processes of each language that are started ahead of time.
const MAX_AHEAD: usize = 4;

/// Bytes between a worker process and its conversation.
const CHUNK: usize = 64 << 10;

/// How often the length of the queue is measured.
const SAMPLING: Duration = Duration::from_secs(10);

/// See [`Executor::work_for_queue`].
///
/// # Errors
///
/// As there.
pub(super) async fn work_for_queue(
    executor: &Executor,
    options: &QueueOptions,
    observe: &(impl Fn(QueueEvent) + Send + Sync),
    stop: &CancellationToken,
) -> Result<(), Error> {
    let invalid = |problem| Error::InvalidOptions { option: OptionName::Nats, problem };
    let nats = &options.nats;
    let addresses = Addresses::parse(&nats.url, nats.credentials_file.is_some()).map_err(invalid)?;
    let key = SharedKey::read(&nats.key_file).map_err(invalid)?;
    let workers = Arc::new(executor.lend_workers(options.concurrency.min(MAX_AHEAD))?);
    let access = access(nats);
    let running: Arc<AtomicUsize> = Arc::default();
    let mut was_joined = false;
    loop {
        let joining = join(&addresses, &access, &key, options.max_queued, was_joined, observe);
        let queues = tokio::select! {
            joined = joining => joined.map_err(invalid)?,
            () = stop.cancelled() => return Ok(()),
        };
        was_joined = true;
        observe(QueueEvent::Joined);
        let mut sampling = JoinSet::new();
        sampling.spawn(sample(queues.clone(), Arc::clone(&running)));
        // The tasks end with this future, when they are asked to stop, or when the connection has ended for good. Each
        // depth has slots of its own: otherwise runs would hold all of them while they wait for those that they have
        // called.
        let mut depths = Vec::new();
        let mut stop_of_depth = stop.clone();
        for queue in queues {
            let (workers, running) = (Arc::clone(&workers), Arc::clone(&running));
            let site = Site { workers, queue, running, stop: stop_of_depth };
            let mut tasks = JoinSet::new();
            for _ in 0..options.concurrency {
                tasks.spawn(site.clone().work());
            }
            stop_of_depth = CancellationToken::new();
            depths.push((tasks, stop_of_depth.clone()));
        }
        for (mut tasks, stop_of_next) in depths {
            while tasks.join_next().await.is_some() {}
            // No run of this machine's waits for one of the next depth any more.
            stop_of_next.cancel();
        }
        tokio::select! {
            () = pause_after(0) => {}
            () = stop.cancelled() => return Ok(()),
        }
    }
}

/// Connects and joins, and tries again after each failure. Credentials that are refused are an error, unless others
/// were accepted before: they may be about to be replaced. The error is a sentence.
async fn join(
    addresses: &Addresses,
    access: &Access,
    key: &SharedKey,
    max_queued: u32,
    was_joined: bool,
    observe: &(impl Fn(QueueEvent) + Send + Sync),
) -> Result<Vec<Queue>, String> {
    let mut failures = 0;
    loop {
        let problem = match NatsServer::connect(addresses, access).await {
            Ok(server) => match Queue::join(&server, key, max_queued, MAX_DEPTH).await {
                Ok(queues) => return Ok(queues),
                Err(error) => error.to_string(),
            },
            Err(ConnectError::Unusable(problem)) if !was_joined => return Err(problem),
            Err(ConnectError::Unusable(problem) | ConnectError::Unreachable(problem)) => problem,
        };
        observe(QueueEvent::NotJoined(problem));
        failures += 1;
        pause_after(failures).await;
    }
}

/// What executes runs of one depth on this machine.
#[derive(Clone)]
struct Site {
    workers: Arc<LentWorkers>,
    queue: Queue,
    running: Arc<AtomicUsize>,
    stop: CancellationToken,
}

impl Site {
    /// Executes one run after the other.
    async fn work(self) {
        let mut failures = 0;
        while !self.stop.is_cancelled() && !self.queue.has_ended() {
            let offer = tokio::select! {
                // An offer that comes at this moment goes to another machine.
                () = self.stop.cancelled() => return,
                offer = self.queue.next() => offer,
            };
            let claimed = match offer {
                Ok(Some(offer)) => offer.claim().await,
                Ok(None) => continue,
                Err(_) if self.queue.has_ended() => return,
                Err(error) => {
                    self.queue.restore().await;
                    Err(error)
                }
            };
            let problem = match claimed {
                Ok(Some(channel)) => self.execute(channel).await.err(),
                Ok(None) => None,
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = problem {
                tracing::warn!(problem, "a run was not executed");
                failures += 1;
                tokio::select! {
                    () = pause_after(failures) => {}
                    () = self.stop.cancelled() => return,
                }
            } else {
                failures = 0;
            }
        }
    }

    /// Executes a run to its end. The error is why there was no worker process for it.
    async fn execute(&self, mut channel: RunChannel) -> Result<(), String> {
        self.running.fetch_add(1, Ordering::Relaxed);
        let running = Running(Arc::clone(&self.running));
        metrics::counter!("cx_queue_runs_taken_total").increment(1);
        let (near, far) = duplex(CHUNK);
        let mut passing = std::pin::pin!(channel.pass_on(far, LocalEnd::Finish));
        // The queue has admitted it, and its first bytes are on their way.
        let admit = |_depth| std::future::ready(Some(()));
        let lent = tokio::select! {
            lent = self.workers.lend(near, MAX_START_TIME, admit) => lent,
            ended = &mut passing => {
                // The worker process is killed with the future.
                tracing::debug!(%ended, "the other side aborted a run");
                return Ok(());
            }
        };
        // The other side still gets the worker's last messages, and the end.
        let ended = passing.await;
        drop(running);
        if ended == ChannelEnd::Silent {
            tracing::info!("the other side of a run has gone");
        }
        match lent {
            Err(error @ LentError::NoWorker(_)) => Err(error.to_string()),
            // A failure of a script or of the other side is not one of this machine.
            Err(error) => {
                tracing::info!(%error, "a worker was not lent to the end of its run");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Records how many runs wait in the queue, and how many run here.
async fn sample(queues: Vec<Queue>, running: Arc<AtomicUsize>) {
    let mut ticks = interval(SAMPLING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut waiting = Some(0_u64);
        for queue in &queues {
            let more = queue.waiting().await.ok();
            waiting = waiting.zip(more).map(|(some, more)| some.saturating_add(more));
        }
        if let Some(waiting) = waiting {
            // A queue holds far fewer runs than this type can count.
            metrics::gauge!("cx_queue_runs_waiting")
                .set(f64::from(u32::try_from(waiting).unwrap_or(u32::MAX)));
        }
        let running = u32::try_from(running.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        metrics::gauge!("cx_queue_runs_running").set(f64::from(running));
    }
}

/// A run that is executed.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

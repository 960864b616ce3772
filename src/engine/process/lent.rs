//! Worker processes that this process lends to executors of other machines, over any stream of bytes.
//!
//! The executor there uses a worker here like its own. Only the first message is replaced, because
//! it is about this machine. What follows is forwarded unread: neither side trusts the other's
//! messages. The resources of a worker are bounded here, because they are those of this machine.

mod forward;
mod forwarded;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{MissedTickBehavior, interval, timeout};

use self::forward::{LentRun, forward_orders, forward_replies, read_to_end, tell_over_memory};
use self::forwarded::Forwarded;
use super::frames::{Decoder, FrameError, RunNumber};
use super::refusal::failed;
use super::resources::Resources;
use super::wire::{Hello, PROTOCOL, ToWorker, start_of_run};
use super::workers::{NoWorker, WorkerOptions, WorkerProcess, WorkerProgram, Workers};
use crate::run::limits::Limits;
use crate::run::nested::MAX_DEPTH;

/// Maximum bytes of the first message: paths of caches, which are not used.
const MAX_HELLO: usize = 64 << 10;

/// How long the first message may take.
const MAX_HELLO_TIME: Duration = Duration::from_secs(10);

/// How long a worker that was asked for ahead of time waits for its run.
#[cfg(any(feature = "http", test))]
pub(crate) const MAX_IDLE_TIME: Duration = Duration::from_mins(10);

/// How long a worker waits for a run that is there already: its first bytes follow those of the first message.
pub(crate) const MAX_START_TIME: Duration = Duration::from_secs(10);

/// Time that a worker may take beyond its run: to start, and to report how the run has ended.
const EXTRA_TIME: Duration = Duration::from_secs(5);

/// How often a worker's resources are checked.
const TICK: Duration = Duration::from_millis(50);

/// Bytes that are forwarded at once.
const CHUNK: usize = 32 << 10;

/// Bytes within which the number and the depth of a run have arrived: the header of a frame and three numbers.
const MAX_START: usize = 64;

/// Why a worker is ended that does not read.
const NOT_READ: &str = "it did not read what was sent to it";

/// Bytes of a run that are read before it is admitted, so that the end of its executor is noticed. Of a run with more,
/// the end is noticed after that.
const MAX_EARLY: usize = 1 << 20;

/// What a run is told that is not admitted, as the rest of a sentence.
const NOT_ADMITTED: &str = "the machine that lends them has as many runs as it takes";

/// The same for a run that is nested too deep, which no machine admits.
const TOO_DEEP: &str = "the machine that lends them takes no runs that are nested that deep";

/// The bound of a worker's memory, as the reason why it was ended.
const MEMORY: &str = "it used more memory than runs may here";

/// The workers that can be lent.
pub(crate) struct LentWorkers {
    typescript: Workers,
    python: Workers,
    python_with_fuel: Workers,
    max: Limits,
}

/// Why a worker was not lent to the end of its run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LentError {
    #[error("the first message did not come in time")]
    Late,
    #[error("the other side sent bytes that are not a message: {0}")]
    Frame(#[from] FrameError),
    #[error("the other side is another version: messages {theirs}, this one has {PROTOCOL}")]
    Version { theirs: u32 },
    #[error("the worker was ended: {0}")]
    Bound(&'static str),
    #[error("its run was not admitted")]
    NotAdmitted,
    #[error("no worker process can be started: {0}")]
    NoWorker(#[source] NoWorker),
    #[error("the connection broke")]
    Broken(#[from] io::Error),
}

impl LentWorkers {
    /// Workers of `program`, whose runs may use at most `max`. Some of each language are started ahead of time.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub(crate) fn new(
        program: &WorkerProgram,
        caches: &[PathBuf],
        max: Limits,
        ahead: usize,
    ) -> io::Result<Self> {
        let workers = |is_python, counts_fuel, spare| {
            Workers::new(WorkerOptions {
                // A worker that has served one connection ends with it.
                program: WorkerProgram { runs: 1, ..program.clone() },
                spare,
                is_python,
                counts_fuel,
                memory_bytes: max.memory_bytes,
                caches: caches.to_vec(),
            })
        };
        Ok(Self {
            typescript: workers(false, false, ahead)?,
            python: workers(true, false, ahead)?,
            python_with_fuel: workers(true, true, 0)?,
            max,
        })
    }

    /// Lends a worker to the executor at the other end of a stream, until one of them ends.
    /// Dropping the future kills the worker.
    ///
    /// The worker starts before its run is there, and is killed if it is not there within `max_idle`. `admit` is called
    /// when it is, with the number of runs that it is nested in. Before it has returned a permit, which is kept until
    /// the worker is killed, the worker gets nothing of the run. Without a permit the executor is told so, and the
    /// worker is killed.
    ///
    /// # Errors
    ///
    /// If the run is not admitted, or the worker cannot be started, breaks a bound, or loses its connection before the
    /// other side has closed the stream.
    pub(crate) async fn lend<S, A, F, P>(
        &self,
        mut stream: S,
        max_idle: Duration,
        admit: A,
    ) -> Result<(), LentError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        A: FnOnce(usize) -> F,
        F: Future<Output = Option<P>>,
    {
        let mut decoder = Decoder::new(MAX_HELLO);
        let hello = timeout(MAX_HELLO_TIME, read_hello(&mut stream, &mut decoder));
        let Some(hello) = hello.await.map_err(|_late| LentError::Late)?? else { return Ok(()) };
        if hello.protocol != PROTOCOL {
            let error = LentError::Version { theirs: hello.protocol };
            stream.write_all(&failed(&error.to_string())).await?;
            stream.shutdown().await?;
            return Err(error);
        }
        let workers = match (hello.is_python, hello.counts_fuel) {
            (false, _) => &self.typescript,
            (true, false) => &self.python,
            (true, true) => &self.python_with_fuel,
        };
        let worker = workers.acquire(&None).await.map_err(LentError::NoWorker)?;
        self.pass_on(stream, decoder.rest(), worker, max_idle, admit).await
    }

    /// Forwards bytes in both directions, beginning with `first`, which was read before.
    async fn pass_on<S, A, F, P>(
        &self,
        stream: S,
        first: &[u8],
        worker: WorkerProcess,
        max_idle: Duration,
        admit: A,
    ) -> Result<(), LentError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        A: FnOnce(usize) -> F,
        F: Future<Output = Option<P>>,
    {
        // Dropped after the worker, which it is for.
        let mut permit = None;
        let mut worker = worker;
        let socket = worker.socket.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        let socket = UnixStream::from_std(socket.into())?;
        let killer = Arc::clone(&worker.killer);
        let (run, mut forwarded) = (LentRun::default(), Forwarded::default());
        let resources = Resources::new(&worker);
        let (mut from_worker, mut to_worker) = socket.into_split();
        let (mut from_executor, mut to_executor) = tokio::io::split(stream);
        to_worker.write_all(&std::mem::take(&mut worker.out)).await?;
        let (began, begun) = tokio::sync::oneshot::channel();
        let max_wait = self.max.wall_time.saturating_add(EXTRA_TIME);
        let orders = async {
            let mut head = first.to_vec();
            let start = timeout(max_idle, read_start(&mut from_executor, &mut head)).await;
            let start = start.map_err(|_late| LentError::Bound("no run came in time"))??;
            let Some((number, depth)) = start else { return Ok(()) };
            match admit_while_open(admit(depth), &mut from_executor, &mut head).await? {
                Admission::Admitted(admitted) => {
                    let _kept = permit.insert(admitted);
                }
                Admission::Gone => return Ok(()),
                Admission::Refused => {
                    let problem = if depth > MAX_DEPTH { TOO_DEEP } else { NOT_ADMITTED };
                    let _once = run.refused.set((number, problem));
                    // `forward_replies` tells the executor when the worker has ended.
                    killer.kill();
                    let _late = timeout(EXTRA_TIME, read_to_end(&mut from_executor)).await;
                    return Ok(());
                }
            }
            let _once = run.in_flight.set(number);
            let _receiver_gone = began.send(());
            forward_orders(&mut from_executor, &mut to_worker, head, max_wait).await
        };
        let replies = forward_replies(
            &mut from_worker,
            &mut to_executor,
            &mut worker,
            &mut forwarded,
            &run,
            &resources,
        );
        let watched = async {
            match begun.await {
                Ok(()) => self.watch(&resources).await,
                // There is no run, and the other futures end.
                Err(_dropped) => std::future::pending().await,
            }
        };
        let bound = tokio::select! {
            ended = orders => ended.map(|()| None)?,
            ended = replies => ended?,
            bound = watched => Some(bound),
        };
        if let Some(bound) = bound {
            killer.kill();
            if bound == MEMORY
                && forwarded.is_complete()
                && let Some(number) = run.in_flight.get()
            {
                let told = tell_over_memory(*number, &mut from_executor, &mut to_executor);
                let _late = timeout(EXTRA_TIME, told).await;
            }
            return Err(LentError::Bound(bound));
        }
        if run.refused.get().is_some() { Err(LentError::NotAdmitted) } else { Ok(()) }
    }

    /// Completes when a worker uses more than a run may.
    async fn watch(&self, resources: &Resources) -> &'static str {
        resources.begin(self.max.memory_bytes);
        let began = Instant::now();
        let max_time = self.max.wall_time.saturating_add(self.max.paused_time).saturating_add(EXTRA_TIME);
        let max_cpu_time = self.max.cpu_time.saturating_add(EXTRA_TIME);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if resources.exceed(self.max.memory_bytes) {
                return MEMORY;
            }
            if resources.cpu_time() > max_cpu_time {
                return "it used more CPU time than runs may here";
            }
            if began.elapsed() > max_time {
                return "it took longer than runs may here";
            }
        }
    }
}

/// Reads the first message. `None` if the stream ends before it.
async fn read_hello<S>(stream: &mut S, decoder: &mut Decoder) -> Result<Option<Hello>, LentError>
where
    S: AsyncRead + Unpin,
{
    loop {
        match decoder.next::<ToWorker>(RunNumber::NONE)? {
            Some(ToWorker::Hello(hello)) => return Ok(Some(hello)),
            Some(_) => return Err(FrameError::Malformed.into()),
            None => {}
        }
        let count = stream.read(decoder.space()).await?;
        if count == 0 {
            return Ok(None);
        }
        decoder.filled(count);
    }
}

/// Reads the beginning of a run, and appends what was read to `head`. Returns the run's number and how many runs it is
/// nested in; `None` if the stream ends before it.
async fn read_start<S>(stream: &mut S, head: &mut Vec<u8>) -> Result<Option<(RunNumber, usize)>, LentError>
where
    S: AsyncRead + Unpin,
{
    let mut buffer = vec![0; CHUNK];
    loop {
        if let Some(start) = start_of_run(head) {
            return Ok(Some(start));
        }
        if head.len() > MAX_START {
            return Err(FrameError::Malformed.into());
        }
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(None);
        }
        head.extend_from_slice(&buffer[..count]);
    }
}

/// What becomes of a run that has come.
enum Admission<P> {
    Admitted(P),
    Refused,
    /// Its executor has gone while it waited.
    Gone,
}

/// Waits until it is known whether a run is admitted. What comes meanwhile is appended to `head`, up to [`MAX_EARLY`]
/// bytes.
async fn admit_while_open<S, P>(
    admitting: impl Future<Output = Option<P>>,
    stream: &mut S,
    head: &mut Vec<u8>,
) -> io::Result<Admission<P>>
where
    S: AsyncRead + Unpin,
{
    let mut admitting = std::pin::pin!(admitting);
    let mut buffer = vec![0; CHUNK];
    loop {
        tokio::select! {
            biased;
            admitted = &mut admitting => return Ok(admitted.map_or(Admission::Refused, Admission::Admitted)),
            read = stream.read(&mut buffer), if head.len() < MAX_EARLY => match read? {
                0 => return Ok(Admission::Gone),
                count => head.extend_from_slice(&buffer[..count]),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    /// The rest of a large run stays in the connection until it is admitted.
    #[tokio::test]
    async fn a_run_that_waits_for_a_permit_takes_little_memory() {
        let (sent, mut head, mut polls) = (vec![1_u8; 4 * MAX_EARLY], Vec::new(), 0);
        // It is polled before each part is read: after more than all parts the run is admitted.
        let admitting = poll_fn(|context| {
            polls += 1;
            if polls > 8 * MAX_EARLY / CHUNK {
                return Poll::Ready(Some(()));
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let admission = admit_while_open(admitting, &mut &sent[..], &mut head).await.unwrap();
        assert!(matches!(admission, Admission::Admitted(())), "all of it was read");
        assert_eq!(head.len(), MAX_EARLY);
    }
}

//! Worker processes that this process lends to executors of other machines, over any stream of bytes.
//!
//! The executor there uses a worker here like its own. Only the first message is replaced, because
//! it is about this machine. What follows is forwarded unread: neither side trusts the other's
//! messages. The resources of a worker are bounded here, because they are those of this machine.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::frames::{Decoder, FrameError, RunNumber};
use super::refusal::failed;
use super::resources::Resources;
use super::wire::{Hello, PROTOCOL, ToWorker};
use super::workers::{NoWorker, WorkerOptions, WorkerProcess, WorkerProgram, Workers};
use crate::run::limits::Limits;

/// Maximum bytes of the first message: paths of caches, which are not used.
const MAX_HELLO: usize = 64 << 10;

/// How long the first message may take.
const MAX_HELLO_TIME: Duration = Duration::from_secs(10);

/// How long a worker waits for its run. Executors start some ahead of time.
const MAX_IDLE_TIME: Duration = Duration::from_secs(10 * 60);

/// Time that a worker may take beyond its run: to start, and to report how the run has ended.
const EXTRA_TIME: Duration = Duration::from_secs(5);

/// How often a worker's resources are checked.
const TICK: Duration = Duration::from_millis(50);

/// Bytes that are forwarded at once.
const CHUNK: usize = 32 << 10;

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
    /// # Errors
    ///
    /// If the worker cannot be started, breaks a bound, or loses its connection before the other
    /// side has closed the stream.
    pub(crate) async fn lend<S>(&self, mut stream: S) -> Result<(), LentError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
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
        self.pass_on(stream, decoder.rest(), worker).await
    }

    /// Forwards bytes in both directions, beginning with `first`, which was read before.
    async fn pass_on<S>(&self, stream: S, first: &[u8], mut worker: WorkerProcess) -> Result<(), LentError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let socket = worker.socket.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        let socket = UnixStream::from_std(socket.into())?;
        let resources = Resources::of(worker.killer()?, worker.group.clone());
        let (mut from_worker, mut to_worker) = socket.into_split();
        let (mut from_executor, mut to_executor) = tokio::io::split(stream);
        to_worker.write_all(&std::mem::take(&mut worker.out)).await?;
        to_worker.write_all(first).await?;
        let (began, mut begun) = tokio::sync::oneshot::channel();
        let mut began = Some(began);
        let mut begin = move || {
            if let Some(began) = began.take() {
                let _receiver_gone = began.send(());
            }
        };
        if !first.is_empty() {
            begin();
        }
        let max_wait = self.max.wall_time.saturating_add(EXTRA_TIME);
        let orders = async {
            let mut buffer = vec![0; CHUNK];
            loop {
                let count = from_executor.read(&mut buffer).await?;
                if count == 0 {
                    return Ok::<(), LentError>(());
                }
                begin();
                // While this waits, the end of the other side is not noticed.
                let written = timeout(max_wait, to_worker.write_all(&buffer[..count])).await;
                written.map_err(|_late| LentError::Bound("it did not read what was sent to it"))??;
            }
        };
        let replies = async {
            let mut buffer = vec![0; CHUNK];
            loop {
                let count = from_worker.read(&mut buffer).await?;
                if count == 0 {
                    to_executor.shutdown().await?;
                    return Ok::<(), io::Error>(());
                }
                to_executor.write_all(&buffer[..count]).await?;
                to_executor.flush().await?;
            }
        };
        let watched = async {
            if timeout(MAX_IDLE_TIME, &mut begun).await.is_err() {
                return "no run came for ten minutes";
            }
            self.watch(&resources).await
        };
        tokio::select! {
            ended = orders => Ok(ended?),
            ended = replies => Ok(ended?),
            bound = watched => Err(LentError::Bound(bound)),
        }
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
                return "it used more memory than runs may here";
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

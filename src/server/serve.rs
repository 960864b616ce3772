//! The server: the state that all clients share, and one client's connection over stdio.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::Tool;
use rmcp::service::serve_directly_with_ct;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::Format;
use super::pending::PendingRuns;
use super::session::{Handler, Session};
use super::stdio::ClientLines;
use super::tools;
use crate::engine::engines;
use crate::error::Error;
use crate::executor::Executor;
use crate::run::result::Language;

/// How long an engine may have too many hung workers before the server ends, so that its client
/// starts it again. Most built-in functions that cannot be interrupted return within seconds.
const HUNG_GRACE: Duration = Duration::from_secs(10);

/// Interval at which the number of hung workers is checked during that time.
const HUNG_LOOK: Duration = Duration::from_millis(250);

/// How long the runs in flight may continue when the server ends because of hung workers.
pub(super) const MAX_DRAIN: Duration = Duration::from_secs(10);

/// How long cancelled runs have to return their results. The executor needs half a second at most.
pub(super) const MAX_GOODBYE: Duration = Duration::from_millis(700);

/// How long closing the connection may take when no request is in flight.
const MAX_CLOSE: Duration = Duration::from_millis(300);

/// How long writing the last answers may take.
pub(super) const MAX_LAST_WRITE: Duration = Duration::from_millis(500);

/// Options of a [`Server`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Format of the text of answers. The structured content is the same in all formats.
    pub format: Format,
}

/// Why [`Server::serve`] or [`Server::serve_http`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The client has closed its end or has stopped reading.
    ClientGone,
    /// The caller's token was cancelled.
    Stopped,
    /// Too many workers are hung: their scripts cannot be stopped. Only the end of the process
    /// frees them, so the process should exit with a failure, for its client to start it again.
    ThreadsLost,
}

/// An MCP server with the tools `executeTypescript`, `executePython` and `health`. Cheap to clone;
/// all clones use the same executor.
#[derive(Clone)]
pub struct Server {
    pub(super) shared: Arc<Shared>,
}

/// State that all sessions share.
pub(super) struct Shared {
    pub(super) executor: Executor,
    pub(super) options: ServerOptions,
    pub(super) started: Instant,
    /// The list of tools. It is made once, because it is the same for every client and never
    /// changes.
    pub(super) tools: Vec<Tool>,
    /// Why engines did not start, by language.
    pub(super) broken: Mutex<BTreeMap<&'static str, String>>,
    /// Suspended runs: their clients were sent an approval prompt and have not repeated the call
    /// yet.
    pub(super) pending: Arc<PendingRuns>,
    /// Number of clients there ever were. Gives each client a different name.
    owners: AtomicUsize,
    /// Cancelled when an engine has had too many hung workers for [`HUNG_GRACE`].
    pub(super) threads_lost: CancellationToken,
    /// Whether a task is checking for hung workers.
    pub(super) is_looking: AtomicBool,
}

impl Server {
    /// Makes a server that runs scripts on `executor`. What does not fit into an answer can be read
    /// later if the executor [keeps a run history](crate::ExecutorBuilder::keep_runs).
    pub fn new(executor: Executor, options: ServerOptions) -> Self {
        let tools = tools::all(&executor.server_names(), &executor.max_limits());
        Self {
            shared: Arc::new(Shared {
                executor,
                options,
                started: Instant::now(),
                tools,
                broken: Mutex::default(),
                pending: Arc::default(),
                owners: AtomicUsize::new(0),
                threads_lost: CancellationToken::new(),
                is_looking: AtomicBool::new(false),
            }),
        }
    }

    /// Starts all engines and connects to all upstream servers in the background, so that the
    /// first scripts need not wait. Must be called in a tokio runtime. Returns at once; `health`
    /// reports the progress.
    pub fn warm(&self) {
        for &language in engines::AVAILABLE {
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                let started = shared.executor.warm(language).await;
                shared.note_start(language, started.as_ref().err());
            });
        }
        #[cfg(feature = "mcp")]
        let executor = self.shared.executor.clone();
        #[cfg(feature = "mcp")]
        tokio::spawn(async move {
            for (server, connected) in executor.connect_servers().await {
                if let Err(error) = connected {
                    tracing::warn!(%server, %error, "the server cannot be reached yet");
                }
            }
        });
    }

    /// Serves one client over a pair of pipes until it disconnects, `stop` is cancelled, or too
    /// many workers are hung. In the last case the calls in flight may continue for up to 10 s.
    /// Then the client's runs are cancelled, and their answers are written if the client reads
    /// them; that takes at most 1.5 s. Other clients of this server are not affected.
    ///
    /// At most 512 requests, or 64 MiB of them, are handled at once. Beyond that up to 512 lines or
    /// 8 MiB are read ahead, so that cancellations and answers among them are seen; then nothing is
    /// read until answers have been written. A client that reads nothing for two minutes meanwhile
    /// is treated as gone.
    ///
    /// Only protocol messages are written to `writer`. Dropping the future ends the connection and
    /// its runs.
    pub async fn serve<R, W>(&self, reader: R, writer: W, stop: &CancellationToken) -> Ended
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let gone = CancellationToken::new();
        let (lines, writing) = ClientLines::new(reader, writer, gone.clone());
        let mut writing = tokio::spawn({
            let gone = gone.clone();
            async move {
                if let Err(error) = writing.await {
                    tracing::debug!(%error, "the client reads no more");
                }
                gone.cancel();
            }
        });
        let runs = CancellationToken::new();
        let _runs_end_with_this = runs.clone().drop_guard();
        let owner = self.shared.next_owner();
        let calls = Arc::<Calls>::default();
        let handler = Handler::new(Arc::clone(&self.shared), owner.clone(), runs.clone(), Arc::clone(&calls));
        let session = Session::new(Arc::new(handler));
        let mut running = serve_directly_with_ct(session, lines, None, CancellationToken::new());
        let ended = tokio::select! {
            () = gone.cancelled() => Ended::ClientGone,
            () = stop.cancelled() => Ended::Stopped,
            () = self.shared.threads_lost.cancelled() => {
                tracing::error!("too many threads run scripts that cannot be stopped; the server ends");
                tokio::select! {
                    () = calls.end(MAX_DRAIN) => {}
                    // The client is gone, so nobody reads the answers.
                    () = gone.cancelled() => {}
                    () = stop.cancelled() => {}
                }
                Ended::ThreadsLost
            }
        };
        runs.cancel();
        // The runs are awaited before the connection is closed, because closing cancels its
        // requests, and they should be answered.
        calls.end(MAX_GOODBYE).await;
        if !matches!(running.close_with_timeout(MAX_CLOSE).await, Ok(Some(_))) {
            tracing::warn!("a session did not end in time");
        }
        self.shared.forget(&owner);
        if timeout(MAX_LAST_WRITE, &mut writing).await.is_err() {
            // The client does not read. The remaining answers are lost.
            writing.abort();
        }
        ended
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Server").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Shared {
    /// Returns a name for a new client, which the run history uses to tell clients apart. The name
    /// is not a secret: clients never send it.
    pub(super) fn next_owner(&self) -> String {
        format!("client {}", self.owners.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether the server is about to end and accepts no more calls.
    pub(super) fn is_ending(&self) -> bool {
        self.threads_lost.is_cancelled()
    }

    /// Drops what is kept for a client that is gone, and ends its suspended runs.
    pub(super) fn forget(&self, owner: &str) {
        self.pending.forget(owner);
        if let Some(history) = self.executor.history() {
            history.forget(owner);
        }
    }

    /// Records whether an engine could be started.
    pub(super) fn note_start(&self, language: Language, failure: Option<&Error>) {
        let name = health_name(language);
        match failure {
            Some(error @ Error::Start { .. }) => {
                tracing::error!(language = name, error = %with_sources(error), "the engine does not start");
                self.broken.lock().insert(name, with_sources(error));
            }
            Some(_) => {}
            None => {
                self.broken.lock().remove(name);
            }
        }
    }

    /// Ends the server if an engine has too many hung workers and they do not return. Must be
    /// called in a tokio runtime.
    pub(super) fn look_for_hung_workers(self: &Arc<Self>) {
        if self.takes_runs() || self.is_looking.swap(true, Ordering::Relaxed) {
            return;
        }
        // A weak reference, so that this task does not keep a server that ends alive.
        let shared = Arc::downgrade(self);
        tokio::spawn(async move {
            let until = Instant::now() + HUNG_GRACE;
            loop {
                tokio::time::sleep(HUNG_LOOK).await;
                let Some(shared) = shared.upgrade() else { return };
                if shared.takes_runs() {
                    return shared.is_looking.store(false, Ordering::Relaxed);
                }
                if Instant::now() >= until {
                    return shared.threads_lost.cancel();
                }
            }
        });
    }

    fn takes_runs(&self) -> bool {
        engines::AVAILABLE.iter().all(|&language| self.executor.pool_stats(language).takes_runs())
    }
}

/// Returns a name that cannot be guessed: 128 random bits. `None` if the system provides no random
/// numbers.
pub(super) fn random_name() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// The name of a language in the `health` report.
pub(super) const fn health_name(language: Language) -> &'static str {
    match language {
        Language::TypeScript => "typescript",
        Language::Python => "python",
    }
}

/// Formats an error and its sources in one line.
pub(super) fn with_sources(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The calls in flight: of one session, or of several sessions together.
#[derive(Default)]
pub(super) struct Calls {
    count: AtomicUsize,
    one_ended: Notify,
    /// The group of calls that these are also counted in.
    all: Option<Arc<Self>>,
}

/// A call that counts as in flight until this is dropped.
pub(super) struct CallGuard(Arc<Calls>);

impl Calls {
    /// Makes a counter whose calls are also counted in `all`.
    pub(super) fn among(all: &Arc<Self>) -> Self {
        Self { all: Some(Arc::clone(all)), ..Self::default() }
    }

    pub(super) fn begin(self: &Arc<Self>) -> CallGuard {
        for calls in self.with_all() {
            calls.count.fetch_add(1, Ordering::Relaxed);
        }
        CallGuard(Arc::clone(self))
    }

    /// Whether any call is in flight.
    pub(super) fn are_under_way(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    fn with_all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |calls| calls.all.as_deref())
    }

    /// Waits until no call is in flight, for at most `longest`.
    pub(super) async fn end(&self, longest: Duration) {
        let ended = async {
            loop {
                // Registered before the count is read. Otherwise a call that ends between the two
                // would be missed.
                let next = self.one_ended.notified();
                if self.count.load(Ordering::Relaxed) == 0 {
                    return;
                }
                next.await;
            }
        };
        let _late = timeout(longest, ended).await;
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        for calls in self.0.with_all() {
            calls.count.fetch_sub(1, Ordering::Relaxed);
            calls.one_ended.notify_waiters();
        }
    }
}

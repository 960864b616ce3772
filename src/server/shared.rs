//! The state that all clients of a server share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use rmcp::model::Tool;

use super::answer::Format;
use super::answer::draft::MAX_CHARACTERS;
use super::guide;
use super::hung_workers::HungWorkers;
use super::index::Index;
use super::languages::report_name;
use super::pending::PendingRuns;
use super::tools;
use crate::error::Error;
use crate::executor::Executor;
use crate::run::script::Language;

/// Options of a [`Server`](super::Server).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Format of the text of answers. The structured content is the same in all formats.
    pub format: Format,
    /// Maximum characters of the value of one answer, and also of its output. More of them is left
    /// out of the answer and can be read for an hour. 25,000 by default, which is right for answers
    /// that a model reads; a program that reads them can have more.
    pub max_value: usize,
    /// Whether the instructions that clients show to their models have an index of the known tools
    /// while it is small (300 tokens). True by default.
    pub index: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { format: Format::default(), max_value: MAX_CHARACTERS, index: true }
    }
}

/// State that all clients share. Lives as long as the server.
pub(crate) struct Shared {
    pub(crate) executor: Executor,
    pub(crate) options: ServerOptions,
    pub(crate) started: Instant,
    /// The list of tools, and the version of the executor's tools that it was made for. It is the
    /// same for every client.
    tools: Mutex<(u64, Arc<Vec<Tool>>)>,
    /// Why engines did not start, by language.
    pub(crate) start_failures: Mutex<BTreeMap<&'static str, String>>,
    /// Suspended runs: their clients were sent an approval prompt and have not repeated the call
    /// yet.
    pub(crate) pending: Arc<PendingRuns>,
    pub(crate) hung_workers: Arc<HungWorkers>,
    index: Index,
    /// Number of clients there ever were. Gives each client a different name.
    clients: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(executor: Executor, options: ServerOptions) -> Self {
        Self {
            options,
            started: Instant::now(),
            tools: Mutex::new(list_tools(&executor)),
            start_failures: Mutex::default(),
            pending: Arc::default(),
            hung_workers: Arc::new(HungWorkers::new(executor.clone())),
            index: Index::default(),
            clients: AtomicUsize::new(0),
            executor,
        }
    }

    /// The instructions for a client that connects now. May read files.
    pub(crate) fn instructions(&self) -> String {
        let index = if self.options.index { self.index.text(&self.executor) } else { None };
        guide::instructions(index, self.executor.untrusted_hint().as_deref())
    }

    /// The list of tools, as it is now.
    pub(crate) fn tools(&self) -> Arc<Vec<Tool>> {
        let mut tools = self.tools.lock();
        if tools.0 != self.executor.changes().borrow().version {
            *tools = list_tools(&self.executor);
        }
        Arc::clone(&tools.1)
    }

    /// Returns a name for a new client, which the run history uses to tell clients apart. The name
    /// is not a secret: clients never send it.
    pub(crate) fn next_client(&self) -> String {
        format!("client {}", self.clients.fetch_add(1, Ordering::Relaxed))
    }

    /// Drops what is kept for a client that is gone, and ends its suspended runs.
    pub(crate) fn forget(&self, client: &str) {
        self.pending.forget(client);
        if let Some(history) = self.executor.history() {
            history.forget(client);
        }
    }

    /// Records whether an engine could be started.
    pub(crate) fn record_start(&self, language: Language, failure: Option<&Error>) {
        let name = report_name(language);
        match failure {
            Some(error @ Error::Start { .. }) => {
                tracing::error!(language = name, error = %with_sources(error), "the engine does not start");
                self.start_failures.lock().insert(name, with_sources(error));
            }
            Some(_) => {}
            None => {
                self.start_failures.lock().remove(name);
            }
        }
    }
}

/// Makes the list of tools, and says for which version of the executor's tools.
fn list_tools(executor: &Executor) -> (u64, Arc<Vec<Tool>>) {
    // Read first: a change meanwhile makes the list again.
    let version = executor.changes().borrow().version;
    (version, Arc::new(tools::all(&executor.server_names(), &executor.max_limits())))
}

/// Formats an error and its sources in one line. A source that the text has already is not said
/// again.
pub(crate) fn with_sources(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = cause.source();
    }
    text
}

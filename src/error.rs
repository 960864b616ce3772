//! Failures of the executor itself, which the embedder has to handle.

mod option_name;

pub use self::option_name::OptionName;

/// A failure of the executor itself.
///
/// A failing script is not such a failure: it is returned as
/// [`Outcome::Failed`](crate::Outcome::Failed). Messages and sources are for people and are not
/// part of the interface; branch on the variant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user's files that cx keeps cannot be read or written.
    #[error("{what} cannot be read or written: {source}")]
    Files {
        /// The content of the files.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },

    /// An option of a builder or a run is outside its bounds, or needs a feature that this build
    /// does not have.
    #[error("invalid option `{option}`: {problem}")]
    InvalidOptions {
        /// The option.
        option: OptionName,
        /// The expected and the actual value.
        problem: String,
    },
    /// The memory for all runs is less than what one run may use.
    #[error(
        "invalid option `total_memory_bytes`: must be at least one run's `memory_bytes`, {one_run}: {all_runs}"
    )]
    TotalMemoryTooSmall {
        /// [`Limits::memory_bytes`](crate::Limits::memory_bytes) of a run, in bytes.
        one_run: usize,
        /// [`ExecutorBuilder::total_memory_bytes`](crate::ExecutorBuilder::total_memory_bytes), in bytes.
        all_runs: usize,
    },
    /// A pattern in a list of rules is not valid.
    #[error("invalid option `{}`: {problem}", list.as_str())]
    InvalidPattern {
        /// The list.
        list: RuleList,
        /// The valid forms, and the pattern.
        problem: String,
    },
    /// A configuration file or value cannot be used. [`Error::config_error`] has the details.
    #[error(transparent)]
    Config(Box<dyn std::error::Error + Send + Sync>),
    /// The operating system refused a thread or a runtime.
    #[error("failed to start {what}")]
    Start {
        /// What could not be started.
        what: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The worker that ran the script panicked, or a listener of the run did, or no engine instance could
    /// be created for it. Other runs are not affected.
    #[error("this run was lost: {message}")]
    WorkerLost {
        /// The message of the panic or of the failed creation.
        message: String,
    },
    /// The executor was closed before or during the run.
    #[error("the executor is closed")]
    Closed,
}

/// A list of [`ToolRules`](crate::ToolRules).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleList {
    /// [`ToolRules::allow`](crate::ToolRules::allow).
    Allow,
    /// [`ToolRules::deny`](crate::ToolRules::deny).
    Deny,
    /// [`ToolRules::ask`](crate::ToolRules::ask).
    Ask,
    /// [`ToolRules::read_only`](crate::ToolRules::read_only).
    ReadOnly,
    /// [`DirectTools::tools`](crate::DirectTools::tools).
    Direct,
}

impl RuleList {
    /// The list's name, as in the builder.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::ReadOnly => "read_only",
            Self::Direct => "direct",
        }
    }
}

/// Maximum number of an error's sources that are read. No chain is that long, unless an error is its own source.
#[cfg(any(feature = "mcp", feature = "llm", feature = "fetch", feature = "server"))]
const MAX_SOURCES: usize = 16;

#[cfg(any(feature = "mcp", feature = "llm", feature = "fetch", feature = "server"))]
fn sources(error: &dyn std::error::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |source| source.source()).take(MAX_SOURCES)
}

/// The text of the last of an error's sources: the message of the system or of a library below. A text of
/// reqwest itself has the URL, which may contain a secret, and this one has not.
#[cfg(any(feature = "mcp", feature = "llm", feature = "fetch"))]
pub(crate) fn last_source(error: &dyn std::error::Error) -> Option<String> {
    sources(error).last().map(ToString::to_string)
}

/// Formats an error and its sources in one line. A source whose text is already included is left out.
#[cfg(any(feature = "server", feature = "oauth"))]
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    for source in sources(error) {
        let message = source.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
    }
    text
}

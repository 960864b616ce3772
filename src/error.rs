//! The executor's own failures: what an embedder has to act on.

/// A failure of the executor itself.
///
/// A script that fails is not one of these: it comes back as
/// [`Outcome::Failed`](crate::Outcome::Failed). Messages and sources are for people and are not
/// part of the interface; branch on the variant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files that cx keeps for the person cannot be read or written.
    #[error("{what}: {source}")]
    Files {
        /// What is in them.
        what: &'static str,
        /// What the system says.
        source: std::io::Error,
    },

    /// A builder's or a run's option is outside its bounds.
    #[error("invalid option `{option}`: {problem}")]
    InvalidOptions {
        /// The option's name, as in the builder or in [`Limits`](crate::Limits).
        option: &'static str,
        /// What was expected, and what came.
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
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The worker thread that ran the script panicked. The pool has replaced it; other runs go on.
    #[error("the worker thread of this run was lost: {message}")]
    WorkerLost {
        /// The panic's message.
        message: String,
    },
    /// The executor was closed while or before the script ran.
    #[error("the executor is closed")]
    Closed,
}

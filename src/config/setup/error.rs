//! Why `cx setup` does not change files.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::config::error::ConfigError;
use crate::text::rfc3339_seconds;

/// Why the files were not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// There is no directory for the configuration or for the copies.
    #[error("there are no directories for configuration and data: set HOME")]
    NoDirectories,
    /// A file of cx's own cannot be read. Nothing is changed then.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A file could not be changed as planned without changing more than that.
    #[error("{path}: {reason}; the file is left as it is", path = path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The file is not what the plan was made for.
    #[error("{path} was changed by another program meanwhile: nothing was written; run `cx setup` again", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another process is running the same command: `cx setup`, which changes files, or `cx sync`.
    #[error("another `cx {command}` is running{}: wait for it, or end it", holder(*pid, *since))]
    Running {
        /// The command, without `cx`.
        command: &'static str,
        /// Its process id, if the lock file has it.
        pid: Option<u32>,
        /// When it began.
        since: Option<SystemTime>,
    },
    /// There is no change that could be undone.
    #[error("there is no change of `cx setup` that could be undone")]
    NothingToUndo,
    /// Files have other content than the change to undo has left.
    #[error(
        "changed since, and so not put back: {}; nothing was undone. --force puts the old content back all the same",
        paths(files)
    )]
    ChangedSince {
        /// The files.
        files: Vec<PathBuf>,
    },
    /// A file could not be written, and neither could others that were to be as before.
    #[error(
        "{}; and these could not be put back: {}. `cx setup --undo` does it once they can be written",
        cause(problem),
        paths(left)
    )]
    HalfWritten {
        /// Why the file could not be written.
        problem: Box<Self>,
        /// The files that have their new content, or what another program has written since.
        left: Vec<PathBuf>,
    },
    /// A file or directory cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

fn holder(pid: Option<u32>, since: Option<SystemTime>) -> String {
    let since = since.map(rfc3339_seconds);
    match (pid, since) {
        (Some(pid), Some(since)) => format!(" (process {pid}, since {since})"),
        (Some(pid), None) => format!(" (process {pid})"),
        _ => String::new(),
    }
}

/// Why a change could not be finished of which files were written.
fn cause(problem: &SetupError) -> String {
    match problem {
        SetupError::Changed { path } => {
            format!("{} was changed by another program meanwhile", path.display())
        }
        problem => problem.to_string(),
    }
}

fn paths(files: &[PathBuf]) -> String {
    files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Adds the path to an error of the system.
pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> SetupError {
    let path = path.to_owned();
    move |error| SetupError::Io { path, error }
}

//! Options and state of an audit trail.

use std::path::PathBuf;
use std::time::SystemTime;

/// Options of an audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditOptions {
    /// The directory of the trail. It is created with mode 0700 and must belong to the user. Several
    /// processes may share it.
    pub directory: PathBuf,
    /// Whether a call is refused if its line cannot be written. A call then waits until its line is written; otherwise
    /// the trail never delays or fails a run. Default: off.
    pub required: bool,
    /// Whether arguments and results are also written as text, with masked secrets. Default: off; only their hashes are
    /// written.
    pub contents: bool,
    /// How many days files are kept; `None` for ever. Default: 180.
    pub retention_days: Option<u32>,
    /// A signed checkpoint is written after this many lines, at least 1. Default: 1,000.
    pub checkpoint_lines: u32,
}

impl AuditOptions {
    /// The defaults, in this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            required: false,
            contents: false,
            retention_days: Some(180),
            checkpoint_lines: 1_000,
        }
    }
}

/// The state of an audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditStatus {
    /// The directory of the trail.
    pub directory: PathBuf,
    /// Lines that this process has written.
    pub lines: u64,
    /// Events of this process that were not written, because the files could not be written or too many events were
    /// queued.
    pub dropped: u64,
    /// When writing lines started to fail, and why. `None` if it works.
    pub failure: Option<(SystemTime, String)>,
    /// When signing their end started to fail, and why. `None` if it works. Lines that are not signed are in the trail,
    /// but could be cut off without a trace.
    pub signing_failure: Option<(SystemTime, String)>,
    /// Whether calls are refused while lines cannot be written: [`AuditOptions::required`].
    pub required: bool,
}

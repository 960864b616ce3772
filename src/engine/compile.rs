//! What an executor reports while an engine is compiled for this machine.

use std::time::Duration;

/// Progress of compiling Python for this machine, which happens once. Nothing is reported if the
/// code is in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileProgress {
    /// The cache directory cannot be used, for this reason. Every process will compile.
    NotKept(String),
    /// This process compiles, which takes seconds.
    Started,
    /// Another process compiles, and this one waits for it.
    Waiting,
    /// The compilation has finished, after this time.
    Done(Duration),
}

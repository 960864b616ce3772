//! What an executor reports while the machine code of an engine is made.

use std::time::Duration;

/// Progress of making Python's machine code ready. Nothing is reported if it is in the cache, and
/// little if it is unpacked from the program. It is compiled only if this machine cannot use the code
/// in the program, and only with the feature `compile`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileProgress {
    /// The cache directory cannot be used, for this reason. Every process will unpack or compile.
    NotKept(String),
    /// This process compiles, which takes seconds.
    Started,
    /// Another process unpacks or compiles, and this one waits for it.
    Waiting,
    /// The compilation has finished, after this time.
    Done(Duration),
}

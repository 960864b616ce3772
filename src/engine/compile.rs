//! The forms of machine code, and the progress reports of an executor while it compiles.

use std::time::Duration;

use crate::run::limits::Limits;

/// Progress of making Python's machine code ready. Nothing is reported if it is in the cache, and
/// little if it is unpacked from the program. It is compiled only if this machine cannot use the code
/// in the program, and only with the feature `compile`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileProgress {
    /// No cache directory can be used, for these reasons, followed by what a user can do. Every process
    /// will unpack or compile.
    NotKept(String),
    /// This process compiles, which takes seconds.
    Started,
    /// Another process unpacks or compiles, and this one waits for it.
    Waiting,
    /// The compilation has finished, after this time.
    Done(Duration),
}

/// The form in which Python's machine code is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeForm {
    /// Checks at loops and calls whether it has to stop.
    Plain,
    /// Also counts fuel. It is slower, so it is made only when a run has a limit of fuel.
    CountsFuel,
}

impl From<&Limits> for CodeForm {
    /// The form that a run with these limits needs.
    fn from(limits: &Limits) -> Self {
        if limits.fuel.is_some() { Self::CountsFuel } else { Self::Plain }
    }
}

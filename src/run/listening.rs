//! Calls of the listeners that an embedder has set for a run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use crate::text::panic_message;

/// Calls the listeners of a run, and ends the run if one of them panics.
///
/// The panic must not unwind into the caller: V8 calls ops as C functions, through which a panic ends the process, and
/// the task that reads a server's answers serves other runs too.
#[derive(Debug)]
pub(crate) struct Listening {
    /// Ends the run.
    cancel: CancellationToken,
    /// The first panic.
    panic: OnceLock<String>,
}

impl Listening {
    pub(super) fn new(cancel: CancellationToken) -> Self {
        Self { cancel, panic: OnceLock::new() }
    }

    /// Calls a listener, unless one has panicked before.
    pub(super) fn call(&self, listener: impl FnOnce()) {
        if self.panic.get().is_some() {
            return;
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(listener)) {
            self.panic.get_or_init(|| format!("a listener has panicked: {}", panic_message(&*panic)));
            self.cancel.cancel();
        }
    }

    /// What the first panic was, if there was one: then the run is lost.
    pub(crate) fn panic(&self) -> Option<&str> {
        self.panic.get().map(String::as_str)
    }
}

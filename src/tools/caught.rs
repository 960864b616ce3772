//! Calls of code that may panic: an embedder's tools, servers and language models.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt as _;

use super::error::{ToolError, ToolErrorCode};
use crate::text::panic_message;

/// Completes `answer`. If it panics, the call fails, and the panic's message is in the log only: scripts, which are not
/// trusted, do not see what is inside the program. If it panics when it is dropped before its end, nothing fails.
///
/// Nothing may unwind further than to here: answers are polled in ops, which V8 calls as C functions, and through
/// those a panic ends the process. They are dropped by an isolate that is dropped itself, and that a panic would leave
/// half dropped.
pub(crate) async fn caught<T>(
    what: &'static str,
    answer: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let contained = Contained { what, answer: Some(Box::pin(answer)) };
    AssertUnwindSafe(contained).catch_unwind().await.unwrap_or_else(|panic| {
        tracing::error!(panic = panic_message(&*panic), "{what} has panicked");
        Err(ToolError::new(ToolErrorCode::ToolError, format!("{what} has panicked")))
    })
}

/// Drops what an embedder has made, or what holds it. If that panics, the message is in the log, and this is `false`.
pub(crate) fn dropped<T>(what: &'static str, value: T) -> bool {
    let dropped = catch_unwind(AssertUnwindSafe(move || drop(value)));
    if let Err(panic) = &dropped {
        tracing::error!(panic = panic_message(&**panic), "{what} has panicked when it was dropped");
    }
    dropped.is_ok()
}

/// A future that may panic when it is dropped.
struct Contained<F> {
    what: &'static str,
    /// `None` only while this is dropped.
    answer: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Contained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        match &mut self.get_mut().answer {
            Some(answer) => answer.as_mut().poll(task),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Contained<F> {
    fn drop(&mut self) {
        dropped(self.what, self.answer.take());
    }
}

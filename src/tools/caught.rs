//! Calls of code that may panic: an embedder's tools, servers and language models.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use super::error::{ToolError, ToolErrorCode};
use crate::text::panic_message;

/// Completes `answer`. If it panics, the call fails, and the panic's message is in the log only: scripts, which are not
/// trusted, do not see what is inside the program.
///
/// Nothing may unwind further than to here: answers are polled in ops, which V8 calls as C functions, and through
/// those a panic ends the process.
pub(crate) async fn caught<T>(
    what: &'static str,
    answer: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|panic| {
        tracing::error!(panic = panic_message(&*panic), "{what} has panicked");
        Err(ToolError::new(ToolErrorCode::ToolError, format!("{what} has panicked")))
    })
}

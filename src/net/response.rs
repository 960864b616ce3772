//! What the HTTP clients of cx have in common: they read bodies within bounds, and name the causes of failures.

use crate::error::last_source;

/// Reads the body; `None` if it has more than `max` bytes. The caller bounds the time.
///
/// # Errors
///
/// If the connection ends before the body.
#[cfg(any(feature = "mcp", feature = "llm"))]
pub(crate) async fn read_up_to(
    response: &mut reqwest::Response,
    max: usize,
) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The cause of a reqwest error, without the URL, which may contain a secret.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let fallback = if error.is_timeout() { "timed out" } else { "failed" };
    last_source(error).unwrap_or_else(|| fallback.to_owned())
}

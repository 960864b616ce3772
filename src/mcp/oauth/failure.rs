//! Why signing in, or renewing a sign-in, failed, and how it is reported.

use rmcp::transport::auth::AuthError as RmcpError;

use super::issuer::IssuerError;
use crate::error::with_sources;
use crate::text;

/// Maximum characters of a server's own error text.
const MAX_PROBLEM: usize = 500;

/// Why signing in, or renewing a sign-in, failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    #[error(transparent)]
    Protocol(#[from] RmcpError),
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    /// The server answers without a token, and names no authorization server.
    #[error("it answers without signing in")]
    NotNeeded,
}

/// The failure of a sign-in without a browser.
pub(crate) fn failed(problem: impl Into<String>) -> SignInError {
    RmcpError::ClientCredentialsError(problem.into()).into()
}

/// Formats an error and its sources. None of these contain tokens: rmcp and oauth2 keep them out.
pub(crate) fn described(error: &SignInError) -> String {
    preview(&with_sources(error))
}

/// The beginning of a server's own text on one line, with its hidden characters written out.
pub(crate) fn preview(text: &str) -> String {
    text::preview(&text::one_line(text), MAX_PROBLEM)
}

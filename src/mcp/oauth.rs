//! OAuth for HTTP servers: tokens for requests, and [`login`] for users.
//!
//! A run never opens a browser and never waits for the user. It uses the tokens that `cx auth
//! login` stored, renews them when they expire, and otherwise returns an error that says what to
//! do.

mod assertion;
mod authorization;
mod clock;
mod discovery;
mod dpop;
mod enterprise;
mod failed_renewals;
mod failure;
mod http;
mod issuer;
mod login;
mod tokens;
mod unattended;

pub(crate) use authorization::Authorization;
pub use login::{AuthError, AuthStatus, login, login_for, logout, status};

/// The `tracing` target below which the OAuth library logs authorization codes, and the parts of
/// token answers other than the tokens (`id_token`), at the levels `DEBUG` and `TRACE`. A
/// subscriber that writes logs should allow at most `WARN` for it, as the command does.
pub const LOG_TARGET_WITH_SECRETS: &str = "rmcp::transport::auth";

#[cfg(test)]
mod tests;

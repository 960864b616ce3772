//! The HTTP transports: streamable HTTP, and through [`sse`](super::sse) its predecessor.
//!
//! This replaces rmcp's transport. rmcp's worker parses each result by trying every type, ends the
//! whole connection because of one invalid answer, ignores `Retry-After`, resumes streams on the
//! server's terms, and does not bound the server's requests. Here each request ends separately,
//! within its deadline, with an error that explains what happened; and nothing that the server may
//! have acted on is sent twice.

mod body;
mod client;
mod events;
mod failure;
mod headers;
mod inbox;
mod wire;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub(super) use client::{HttpClient, cause, pool};
pub(super) use events::Events;
#[cfg(fuzzing)]
pub(crate) use events::fuzzing::events as fuzz_events;
pub(super) use failure::Problem;
#[cfg(test)]
pub(super) use headers::base64;
pub(super) use wire::{HttpWire, Link};

use super::notifications::Notifications;
use super::oauth::Authorization;
use super::settings::{HttpKind, HttpTransport};
use crate::tools::ToolError;

/// Maximum durations of the parts of an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    /// Connecting to the server, and each message of the handshake.
    pub(super) connect: Duration,
    /// One request, from the first byte sent to the last byte of its answer. This is only a
    /// backstop: the call's own timeout is shorter and cancels the request.
    pub(super) request: Duration,
}

/// Which of the two transports a server used last. Outlives connections.
#[derive(Debug, Default)]
pub(super) struct Known(AtomicU8);

impl Known {
    fn get(&self) -> HttpKind {
        match self.0.load(Ordering::Relaxed) {
            1 => HttpKind::Streamable,
            2 => HttpKind::Sse,
            _ => HttpKind::Detect,
        }
    }

    fn set(&self, kind: HttpKind) {
        let value = match kind {
            HttpKind::Detect => 0,
            HttpKind::Streamable => 1,
            HttpKind::Sse => 2,
        };
        self.0.store(value, Ordering::Relaxed);
    }
}

/// The state of a connection that its owner sees while rmcp owns the transport.
#[derive(Default)]
pub(super) struct HttpState {
    /// Cancelled when no more answers will come.
    pub(super) ended: CancellationToken,
    /// How it ended, as text that follows the server's name.
    end: OnceLock<String>,
    /// Why the handshake failed.
    failure: OnceLock<ToolError>,
    /// The notifications of the server.
    pub(super) notifications: Notifications,
}

impl HttpState {
    /// How the connection ended, as text that follows the server's name: `closed the connection`.
    pub(super) fn end_reason(&self) -> Option<&str> {
        self.end.get().map(String::as_str)
    }

    /// Why the handshake failed. It is more precise than the error that rmcp derives from it.
    pub(super) fn failure(&self) -> Option<&ToolError> {
        self.failure.get()
    }

    fn fail(&self, error: ToolError) {
        let _first = self.failure.set(error);
        self.end("could not be reached");
    }

    pub(super) fn end(&self, reason: &str) {
        let _first = self.end.set(reason.to_owned());
        self.ended.cancel();
    }
}

/// Makes the transport for a server. Nothing is sent yet: the first message connects, and its
/// answer shows which transport the server uses. The caller keeps `known` from one connection to
/// the next.
///
/// # Errors
///
/// If the configuration is invalid.
pub(super) fn connect_transport(
    server: Arc<str>,
    config: &HttpTransport,
    authorization: Option<Arc<Authorization>>,
    known: Arc<Known>,
    notifications: Notifications,
    deadlines: Deadlines,
) -> Result<(HttpWire, Arc<HttpState>), ToolError> {
    let client = HttpClient::new(server, config, authorization, deadlines.connect)?;
    let state = Arc::new(HttpState { notifications, ..HttpState::default() });
    let wire = HttpWire::new(client, config.url.clone(), config.kind, known, Arc::clone(&state), deadlines);
    Ok((wire, state))
}

#[cfg(test)]
mod tests;

//! The deadlines of a connection, and its state that its owner sees.

use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::mcp::notifications::Notifications;
use crate::mcp::settings::HttpKind;
use crate::tools::ToolError;

/// Maximum durations of the parts of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// Connecting to the server, and each message of the handshake.
    pub(crate) connect: Duration,
    /// One request, from the first byte sent to the last byte of its answer. This is only a
    /// backstop: the call's own timeout is shorter and cancels the request.
    pub(crate) request: Duration,
}

/// Which of the two transports a server used last. Outlives connections.
#[derive(Debug, Default)]
pub(crate) struct LastKind(Mutex<HttpKind>);

impl LastKind {
    /// [`HttpKind::Detect`] before the first connection.
    pub(crate) fn get(&self) -> HttpKind {
        *self.0.lock()
    }

    pub(crate) fn set(&self, kind: HttpKind) {
        *self.0.lock() = kind;
    }
}

/// The state of a connection that its owner sees while rmcp owns the transport.
pub(crate) struct HttpState {
    /// Cancelled when no more answers will come.
    pub(crate) ended: CancellationToken,
    /// Cancelled when nothing more may be sent. Answers may still come.
    pub(crate) retired: CancellationToken,
    /// How it ended, as text that follows the server's name.
    end: OnceLock<String>,
    /// Why the handshake failed.
    failure: OnceLock<ToolError>,
    /// The notifications of the server.
    pub(crate) notifications: Notifications,
}

impl HttpState {
    pub(crate) fn new(notifications: Notifications) -> Self {
        Self {
            ended: CancellationToken::new(),
            retired: CancellationToken::new(),
            end: OnceLock::new(),
            failure: OnceLock::new(),
            notifications,
        }
    }

    /// How the connection ended, as text that follows the server's name: `closed the connection`.
    pub(crate) fn end_reason(&self) -> Option<&str> {
        self.end.get().map(String::as_str)
    }

    /// Why the handshake failed. It is more precise than the error that rmcp derives from it.
    pub(crate) fn failure(&self) -> Option<&ToolError> {
        self.failure.get()
    }

    pub(crate) fn fail(&self, error: ToolError) {
        let _first = self.failure.set(error);
        self.end("could not be reached");
    }

    pub(crate) fn end(&self, reason: &str) {
        let _first = self.end.set(reason.to_owned());
        self.ended.cancel();
    }
}

//! Changes of the user interfaces of tools, as their servers announce them to subscribers.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::interfaces;
use super::session::McpSession;
use super::shown::Interface;
use crate::executor::Executor;
use crate::run::script::Script;
use crate::tools::{ResourceUpdates, ServerRequest, ToolErrorCode};

/// Pauses before a subscription is made again that has ended with its connection. Each is twice as long as the one
/// before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How often that is tried. All attempts together take some five minutes.
const MAX_ATTEMPTS: u32 = 10;

/// How long a subscription must have lasted for the attempts to be counted from the beginning. A server that confirms
/// each subscription and ends soon is not started again without end.
const LASTING: Duration = MAX_PAUSE;

/// The subscription of one client to an interface.
pub(crate) struct InterfaceUpdates {
    executor: Executor,
    /// The options with which the subscription is made again. The user is not asked then.
    options: Script,
    server: Arc<str>,
    /// The address as the server knows it.
    address: String,
    /// Who has the subscription: the client's tenant, or the client if it has none.
    owner: Arc<str>,
    reports: watch::Receiver<u64>,
    attempts: Attempts,
    is_over: bool,
}

/// The attempts to subscribe again.
struct Attempts {
    made: u32,
    pause: Duration,
    /// When the server has confirmed the subscription last.
    since: Instant,
}

impl Attempts {
    fn new() -> Self {
        Self { made: 0, pause: FIRST_PAUSE, since: Instant::now() }
    }

    /// Counts the attempts from the beginning if the subscription that has ended now has lasted.
    fn note_end(&mut self) {
        if self.since.elapsed() >= LASTING {
            *self = Self::new();
        }
    }

    /// The pause before the next attempt; `None` if there were too many.
    fn next_pause(&mut self) -> Option<Duration> {
        if self.made >= MAX_ATTEMPTS {
            return None;
        }
        self.made += 1;
        let pause = self.pause;
        self.pause = (2 * pause).min(MAX_PAUSE);
        Some(pause)
    }

    fn note_begin(&mut self) {
        self.since = Instant::now();
    }
}

impl InterfaceUpdates {
    /// Subscribes to an interface at its server. What is done later for the subscription ends with `ended`.
    ///
    /// # Errors
    ///
    /// If no tool names it, the rules deny it, or its server does not announce changes.
    pub(crate) async fn begin(
        session: &McpSession,
        address: &str,
        context: &RequestContext<RoleServer>,
        ended: &CancellationToken,
    ) -> Result<Self, ErrorData> {
        let Interface { server, address: own } = interfaces::find(session, address).await?;
        let owner = session.tenant.clone().unwrap_or_else(|| Arc::from(session.client.as_str()));
        let (updates, reports) = ResourceUpdates::channel(Arc::clone(&owner));
        let request = ServerRequest::Subscribe { uri: own.clone(), updates };
        let wall_time = session.shared.executor.limits().wall_time;
        let answer = interfaces::request(session, context, &server, request, wall_time).await;
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let (options, _prompts) = interfaces::options(session, None, wall_time, ended);
        let executor = session.shared.executor.clone();
        let attempts = Attempts::new();
        Ok(Self { executor, options, server, address: own, owner, reports, attempts, is_over: false })
    }

    /// Waits until the interface may have changed. Returns false if no change will be noticed any more.
    pub(crate) async fn next(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        if self.reports.changed().await.is_err() {
            // The connection is over. The next one may be to a server with other resources.
            self.is_over = !self.begin_again().await;
        }
        true
    }

    async fn begin_again(&mut self) -> bool {
        self.attempts.note_end();
        while let Some(pause) = self.attempts.next_pause() {
            tokio::time::sleep(pause).await;
            let (updates, reports) = ResourceUpdates::channel(Arc::clone(&self.owner));
            let request = ServerRequest::Subscribe { uri: self.address.clone(), updates };
            let options = self.options.clone();
            match self.executor.request_resource(options, &self.server, request).await {
                Ok(_confirmed) => {
                    self.reports = reports;
                    self.attempts.note_begin();
                    return true;
                }
                Err(error) if may_pass(error.code) => {}
                Err(error) => {
                    tracing::debug!(server = &*self.server, %error, "a subscription to a resource has ended");
                    return false;
                }
            }
        }
        false
    }
}

/// Whether the same request may succeed later.
const fn may_pass(code: ToolErrorCode) -> bool {
    matches!(
        code,
        ToolErrorCode::UpstreamUnavailable
            | ToolErrorCode::CircuitOpen
            | ToolErrorCode::QueueFull
            | ToolErrorCode::RateLimited
            | ToolErrorCode::ToolTimeout
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat 679.
    #[tokio::test(start_paused = true)]
    async fn v_679_a_server_that_ends_each_subscription_is_left_alone_after_ten() {
        let mut attempts = Attempts::new();
        let (mut pauses, start) = (Vec::new(), Instant::now());
        loop {
            // The server confirms each subscription and ends it at once.
            attempts.note_end();
            let Some(pause) = attempts.next_pause() else { break };
            tokio::time::sleep(pause).await;
            attempts.note_begin();
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        assert!(start.elapsed() >= LASTING);
        // One that lasts has all attempts again.
        let mut attempts = Attempts::new();
        assert_eq!(attempts.next_pause(), Some(FIRST_PAUSE));
        attempts.note_begin();
        tokio::time::sleep(LASTING).await;
        attempts.note_end();
        assert_eq!(
            (attempts.next_pause(), attempts.next_pause()),
            (Some(FIRST_PAUSE), Some(2 * FIRST_PAUSE))
        );
    }
}

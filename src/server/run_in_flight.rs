//! A run in flight, with everything that a request needs which waits for it.

use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::model::CallToolResult;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::calls::CallGuard;
use super::fingerprint::Fingerprint;
use super::notifications::RunNotifications;
use super::prompt::Prompt;
use super::yielded::Printed;
use crate::run::limits::Limits;

/// A run in flight. It outlives its request if it is suspended or becomes a task. Dropping this
/// cancels it.
pub(crate) struct RunInFlight {
    /// Completes with the answer.
    pub(crate) run: BoxFuture<'static, CallToolResult>,
    pub(crate) cancel: CancellationToken,
    pub(crate) _cancel_on_drop: DropGuard,
    pub(crate) limits: Limits,
    pub(crate) notifications: RunNotifications,
    /// Prompts that are sent in a result; closed if the client is asked in another way.
    pub(crate) prompts: mpsc::Receiver<Prompt>,
    /// Fingerprint of the call, if the client may have to repeat it with an answer.
    pub(crate) call: Option<Fingerprint>,
    /// Counts the run as a call in flight. `None` while the run is suspended: no request waits for it then, so it must
    /// not delay tasks that wait for the end of all calls.
    pub(crate) guard: Option<CallGuard>,
    /// When the call is answered although the run continues, and the run's output.
    pub(crate) yields: Option<(Duration, Printed)>,
}

/// How long a result with prompts waits for further prompts. A script that asks several questions at once sends them
/// within a moment.
const QUIET: Duration = Duration::from_millis(20);

/// Maximum time that it waits in total.
const MAX_WAIT: Duration = Duration::from_millis(200);

impl RunInFlight {
    /// Collects the first question and those that are asked at the same time, so that the client gets all of them in
    /// one result. It has at most one prompt for the user, which is the last.
    pub(crate) async fn with_all_open(&mut self, first: Prompt) -> Vec<Prompt> {
        let mut prompts = vec![first];
        let until = Instant::now() + MAX_WAIT;
        while prompts.iter().all(Prompt::is_for_model) {
            let quiet = until.min(Instant::now() + QUIET);
            match tokio::time::timeout_at(quiet, self.prompts.recv()).await {
                Ok(Some(prompt)) => prompts.push(prompt),
                Ok(None) | Err(_) => break,
            }
        }
        prompts
    }
}

//! A run in flight, with everything that a request which waits for it needs.

use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::calls::CallGuard;
use super::fingerprint::Fingerprint;
use super::notifications::RunNotifications;
use super::prompt::Prompt;
use crate::error::Error;
use crate::run::limits::Limits;
use crate::run::result::ExecuteResult;
use crate::run::script::Language;

/// A run in flight. It outlives its request if it is suspended or becomes a task. Dropping this
/// cancels it.
pub(crate) struct RunInFlight {
    pub(crate) run: BoxFuture<'static, Result<ExecuteResult, Error>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) _cancel_on_drop: DropGuard,
    pub(crate) language: Language,
    pub(crate) limits: Limits,
    pub(crate) notifications: RunNotifications,
    /// Prompts that are sent in a result; closed if the client is not asked that way.
    pub(crate) prompts: mpsc::Receiver<Prompt>,
    /// Fingerprint of the call, if the client may have to repeat it with an answer.
    pub(crate) call: Option<Fingerprint>,
    /// Counts it as a call in flight. `None` while it is suspended: no request waits for it then,
    /// so it must not delay those that wait for the end of all calls.
    pub(crate) guard: Option<CallGuard>,
}

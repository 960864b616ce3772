//! Hooks: code of the embedder that sees each call of a script before and after it, and can change
//! or refuse it.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde_json::{Map, Value};

use crate::json::Json;
use crate::text::panic_message;
use crate::tools::{ToolError, ToolErrorCode};

/// A call of a script, as a [`CallHook`] sees it: a tool call, or a request for resources or
/// prompts.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct HookedCall {
    /// The server's name as configured.
    pub server: String,
    /// The tool's name as its server lists it, or the method of a request for resources or prompts.
    pub tool: String,
    /// The arguments, which [`CallHook::before`] may change. The changed arguments are checked
    /// against the tool's schema, shown in an approval prompt, and sent. For a request for resources
    /// or prompts: the parameters of the protocol's method.
    pub arguments: Map<String, Value>,
    /// The script's name, as in stack traces.
    pub script: String,
    /// The client that requested the run ([`Script::client`](crate::Script::client)).
    pub client: Option<String>,
    /// Whether this is a [dry run](crate::Script::dry_run), which does not make calls that write.
    pub is_dry_run: bool,
}

impl fmt::Debug for HookedCall {
    /// Hides the arguments, because they may contain secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HookedCall")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

/// Sees each call of every run before and after it: for audit trails, traces, redaction, and rules
/// that patterns cannot express. Set with [`ExecutorBuilder::hook`](crate::ExecutorBuilder::hook).
///
/// Hooks never see calls that the policy denies, and they cannot permit anything: the checks of
/// arguments, approvals and limits come after [`before`](Self::before).
///
/// The futures are polled like the call itself: on the script's thread, with the executor's runtime
/// entered. A slow hook delays the call, and counts against the run's wall-clock limit. They are
/// dropped if the run ends first. A panic refuses the call.
pub trait CallHook: Send + Sync + 'static {
    /// Called before the arguments are checked and before an approval is requested. The hooks of an
    /// executor are called in the order in which they were added.
    ///
    /// # Errors
    ///
    /// Refuses the call: the script gets this error.
    fn before<'a>(&'a self, _call: &'a mut HookedCall) -> BoxFuture<'a, Result<(), ToolError>> {
        ready(Ok(())).boxed()
    }

    /// Called once for each call that [`before`](Self::before) saw, whatever became of it: it was
    /// answered, refused by a later hook or by a person, or its arguments were wrong. In reverse
    /// order of the hooks. The `result` is what the script gets, JSON text or an error, and can be
    /// replaced; a value above [`Limits::result_bytes`](crate::Limits::result_bytes) is refused.
    ///
    /// Not called if the run ends first:
    /// [`ExecuteResult::tool_calls`](crate::ExecuteResult::tool_calls) says which calls were in
    /// flight.
    fn after<'a>(
        &'a self,
        _call: &'a HookedCall,
        _result: &'a mut Result<Json, ToolError>,
    ) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }
}

impl<H: CallHook + ?Sized> CallHook for Arc<H> {
    fn before<'a>(&'a self, call: &'a mut HookedCall) -> BoxFuture<'a, Result<(), ToolError>> {
        (**self).before(call)
    }

    fn after<'a>(
        &'a self,
        call: &'a HookedCall,
        result: &'a mut Result<Json, ToolError>,
    ) -> BoxFuture<'a, ()> {
        (**self).after(call, result)
    }
}

/// The hooks of an executor, in order.
pub(crate) type Hooks = Arc<[Arc<dyn CallHook>]>;

/// Calls the hooks before a call. Returns how many were called, for [`after`], and whether the call
/// may be made.
pub(crate) async fn before(
    hooks: &[Arc<dyn CallHook>],
    call: &mut HookedCall,
) -> (usize, Result<(), ToolError>) {
    for (position, hook) in hooks.iter().enumerate() {
        let answer = AssertUnwindSafe(async { hook.before(call).await }).catch_unwind().await;
        if let Err(error) = answer.unwrap_or_else(|panic| Err(panicked(&*panic))) {
            return (position + 1, Err(error));
        }
    }
    (hooks.len(), Ok(()))
}

/// Calls the first `called` hooks after a call, in reverse order.
pub(crate) async fn after(
    hooks: &[Arc<dyn CallHook>],
    called: usize,
    call: &HookedCall,
    result: &mut Result<Json, ToolError>,
) {
    for hook in hooks.iter().take(called).rev() {
        let answer = AssertUnwindSafe(async { hook.after(call, result).await }).catch_unwind().await;
        if let Err(panic) = answer {
            *result = Err(panicked(&*panic));
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    tracing::error!(panic = panic_message(panic), "a hook has panicked");
    ToolError::new(ToolErrorCode::ToolDenied, "a hook of the program that runs scripts has panicked")
}

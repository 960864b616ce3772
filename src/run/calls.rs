//! A script's call of a tool, from the name that the script writes to the value that it receives.
//!
//! In this order: the call is counted (`held`), its tool is found and the policy applied (`resolve`), hooks see it
//! (`received`), its arguments are checked (`arguments`), a script that it would store is compiled (`run::nested`), a
//! dry run plans it, and else it is sent (`send`) to the tool's server (`dispatch`). Requests for resources and prompts
//! (`requests`), and those of `fetch`, pass the same steps but those about tools.

mod addresses;
mod alone;
mod answer;
pub(super) mod arguments;
mod dispatch;
pub(super) mod held;
mod received;
mod record;
mod requests;
pub(crate) mod resolve;
pub(super) mod send;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::addresses::check_addresses;
use self::arguments::{ExactArguments, parse_arguments};
use self::held::HeldCall;
use self::resolve::ToolName;
use self::send::{Decided, Permission};
use crate::json::{Json, numbers};
use crate::run::approval::{asks_about, effects_of};
use crate::run::call_terms::CallTerms;
use crate::run::context::ExecutionContext;
use crate::run::errors::{denied, over};
use crate::run::ledger::Call;
use crate::run::observer::RunEvent;
use crate::run::result::{PlannedCall, ToolCallStatus};
use crate::tools::catalog::ResolvedTool;
use crate::tools::{ToolError, ToolErrorCode, ToolKind, exact_json};

impl ExecutionContext {
    /// Calls a tool and returns its value.
    ///
    /// The number of calls, the arguments' size and the state of the run are checked before this
    /// returns, so that a flood of calls that are not awaited is refused call by call. The rest
    /// happens in the future. Dropping the future cancels the call, and so does
    /// [`end_call`](Self::end_call).
    pub(crate) fn call(
        self: &Arc<Self>,
        name: ToolName,
        arguments: String,
        terms: CallTerms,
    ) -> impl Future<Output = Result<Json, ToolError>> + Send + use<> {
        let held = self.hold_call(arguments.len()).and_then(|held| held.on_terms(terms));
        let context = Arc::clone(self);
        let call = async move {
            let held = held?;
            // Of several calls that are polled together, those after the end of the run are not begun.
            if held.context().cancel.is_cancelled() {
                return Err(over());
            }
            tokio::select! {
                biased;
                // `end_call` has ended its record.
                error = held.ended() => Err(error),
                result = held.context().call_tool(&held, name, arguments) => {
                    held.note_failure(&result);
                    result
                }
                () = held.context().cancel.cancelled() => Err(over()),
                // Of a call that was sent, `send` sees it first.
                error = held.too_late() => {
                    let too_late = Err(error);
                    held.note_too_late(&too_late);
                    too_late
                }
            }
        };
        context.in_runtime(call)
    }

    /// Ends the unfinished call for which the guest has this number. Without such a call it does nothing: the call may
    /// have ended by itself.
    ///
    /// Its record ends now. Its future is dropped when it is polled next, which may be at the end of the run.
    pub(crate) fn end_call(&self, id: u64) {
        if let Some(record) = self.endable_calls.end(id) {
            self.end_record(record, ToolCallStatus::Failed(ToolErrorCode::Cancelled), 0);
        }
    }

    /// Gives the unfinished call for which the guest has this number `timeout_ms` for its answer from this moment on.
    /// Without such a call it does nothing, and a call that has a time keeps it.
    pub(crate) fn limit_call(&self, id: u64, timeout_ms: f64) {
        self.endable_calls.limit(id, timeout_ms);
    }

    pub(super) async fn call_tool(
        &self,
        held: &HeldCall,
        name: ToolName,
        arguments: String,
    ) -> Result<Json, ToolError> {
        name.check_length()?;
        if let ToolName::Pair { server, tool } = &name {
            held.note_tool(server, tool);
        }
        let resolved = self.resolve(name).await?;
        held.note_tool(&resolved.server, &resolved.tool);
        self.check_policy(&resolved.server, &resolved.tool)?;
        let resolved = self.present(resolved).await?;
        if self.environment.hooks.is_empty() {
            return self.call_resolved(held, resolved, &arguments).await;
        }
        let (server, tool) = (Arc::clone(&resolved.server), Arc::clone(&resolved.tool));
        let call = Call { server: &server, tool: &tool, argument_bytes: held.argument_bytes() };
        let exact = numbers::exact_numbers(&arguments);
        let arguments = parse_arguments(&arguments).map_err(|error| error.for_tool(&server, &tool))?;
        let send = async |arguments: Map<String, Value>| {
            let arguments = numbers::with_exact_numbers(Value::Object(arguments).to_string(), &exact);
            self.call_resolved(held, resolved, &arguments).await
        };
        self.with_hooks(call, arguments, send).await
    }

    /// Checks the arguments, then sends the call, or plans it in a dry run.
    async fn call_resolved(
        &self,
        held: &HeldCall,
        resolved: ResolvedTool,
        arguments: &str,
    ) -> Result<Json, ToolError> {
        let exact = numbers::exact_numbers(arguments);
        let (resolved, arguments) = self.check_arguments(resolved, arguments).await?;
        let argument_bytes = held.argument_bytes();
        let call = Call { server: &resolved.server, tool: &resolved.tool, argument_bytes };
        // Checked again, because in a new tool list the same name may refer to another tool.
        let in_force = self.in_force();
        if !in_force.permits(call.server, call.tool) {
            return Err(denied(call.server, call.tool));
        }
        let kind = resolved.kind();
        if kind == ToolKind::ScriptChange {
            let checked = held.context().check_unsaved(&resolved, &arguments).await;
            checked.map_err(|error| error.for_tool(call.server, call.tool))?;
        }
        let is_ordinary = kind == ToolKind::Ordinary;
        // A call of a saved script is not checked itself: the calls that the script makes are.
        let mut reason = if is_ordinary { check_addresses(held, &in_force, call, &arguments)? } else { None };
        if self.script.is_dry_run || in_force.may_ask() || !is_ordinary {
            let effects = effects_of(&in_force, &resolved);
            if self.script.is_dry_run && effects.writes {
                let planned = self.plan(held, &resolved, call, exact_json(&arguments, &exact));
                return planned.map_err(|error| error.for_tool(call.server, call.tool));
            }
            reason = reason.or_else(|| asks_about(&in_force, &resolved, effects));
        }
        let permission = Permission::OfMethod;
        let decided = Decided { by: in_force, call, tool: Some(&resolved), permission, host: None };
        let dispatch =
            async |arguments, trace, sent| self.dispatch(held, call, &resolved, arguments, trace, sent).await;
        self.send(held, decided, reason, ExactArguments { tree: arguments, numbers: exact }, dispatch).await
    }

    /// Records a call that a dry run does not make, and returns a sample of the tool's result.
    fn plan(
        &self,
        held: &HeldCall,
        resolved: &ResolvedTool,
        call: Call<'_>,
        arguments: Json,
    ) -> Result<Json, ToolError> {
        let sample = resolved.sample()?;
        self.check_result_bytes("the result", sample.text().len())?;
        let record = self.begin_record(call, ToolCallStatus::Simulated);
        self.end_record(record, ToolCallStatus::Simulated, sample.text().len());
        held.note_sent();
        let (server, tool) = (call.server, call.tool);
        self.observation().emit(|| RunEvent::Simulated {
            call: held.number(),
            server,
            tool,
            arguments: arguments.text(),
        });
        self.ledger.lock().plan(PlannedCall {
            server: call.server.to_owned(),
            tool: call.tool.to_owned(),
            // The arguments as they would be sent. The script may have written them differently.
            arguments,
        });
        self.note_result(call, &sample, None);
        Ok(sample)
    }
}

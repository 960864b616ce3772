//! Sends a permitted call: requests approval, waits for a slot among the calls in flight, checks the rules again, and
//! informs the observers before the call reaches the server.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::addresses::check_addresses;
use super::arguments::ExactArguments;
use super::held::HeldCall;
use crate::json::Json;
use crate::run::approval::{Question, asks_about, effects_of};
use crate::run::context::ExecutionContext;
use crate::run::errors::{denied, over};
use crate::run::ledger::Call;
use crate::run::observer::sent::{ObservedCall, SentSlot};
use crate::run::observer::{Arguments, RunEvent, Sending};
use crate::run::result::ToolCallStatus;
use crate::tools::approval::{AskReason, Effects};
use crate::tools::catalog::ResolvedTool;
use crate::tools::in_force::ToolsInForce;
use crate::tools::{RemoteServer, ToolError, ToolErrorCode, ToolKind, TraceContext};

/// The decision that a call may be sent, and the rules on which it is based.
pub(in crate::run) struct Decided<'a> {
    pub(in crate::run) by: Arc<ToolsInForce>,
    pub(in crate::run) call: Call<'a>,
    /// The tool; `None` for requests for resources and prompts.
    pub(in crate::run) tool: Option<&'a ResolvedTool>,
    pub(in crate::run) permission: Permission,
    /// Where a request of `fetch` goes.
    pub(in crate::run) host: Option<&'a HostRequest<'a>>,
}

/// A request of `fetch`, as rules and records see it.
pub(in crate::run) struct HostRequest<'a> {
    /// The host, with the port unless that is the scheme's default.
    pub(in crate::run) name: &'a str,
    /// The host alone: a rule that names it is about each of its ports.
    pub(in crate::run) host: &'a str,
    pub(in crate::run) remote: RemoteServer,
    pub(in crate::run) effects: Effects,
    /// What records contain of the request. It has no path and no headers, because those may contain secrets.
    pub(in crate::run) recorded: Map<String, Value>,
}

/// What permits a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum Permission {
    /// The rules about the tool, or about the method as if it were one.
    OfMethod,
    /// A tool of the server that may be called. Rules deny the method only by naming it.
    OfTool,
    /// A person has granted the host. Rules deny it only by naming it.
    Granted,
}

/// Counts a call as one that its script waits for, until it is answered, refused or dropped.
struct Waiting<'a>(&'a ExecutionContext);

impl<'a> Waiting<'a> {
    fn begin(context: &'a ExecutionContext) -> Self {
        context.ledger.lock().note_waiting();
        Self(context)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.ledger.lock().note_waited();
    }
}

impl ExecutionContext {
    /// Requests approval if there is a reason to, waits for a slot, and records the call and what
    /// `answer` becomes, which is called with the arguments directly before the call is sent.
    pub(in crate::run) async fn send(
        &self,
        held: &HeldCall,
        decided: Decided<'_>,
        reason: Option<AskReason>,
        arguments: ExactArguments,
        answer: impl AsyncFnOnce(
            ExactArguments,
            Option<TraceContext>,
            Option<SentSlot>,
        ) -> Result<Json, ToolError>,
    ) -> Result<Json, ToolError> {
        let call = decided.call;
        if let Some(reason) = &reason {
            held.note_rule(reason.rule());
        }
        let question = reason.map(|reason| Question {
            number: held.number(),
            call,
            tool: decided.tool,
            arguments: &arguments.tree,
            exact: &arguments.numbers,
            recorded: decided.host.map_or(&arguments.tree, |host| &host.recorded),
            reason,
        });
        let asked = question.is_some().then(|| Waiting::begin(self));
        let approved = match question {
            Some(question) => Some(self.approved(held, question).await?),
            None => None,
        };
        // A stored script has no slot while it runs: its own calls need slots. `run::nested` bounds it.
        let _slot = match decided.tool.map(ResolvedTool::kind) {
            Some(ToolKind::Script) => None,
            _ => Some(self.slots.acquire().await.map_err(|_closed| over())?),
        };
        if let Err(error) = self.check_still_permitted(held, &decided, &arguments.tree, approved.is_some()) {
            if let Some(record) = approved {
                self.end_record(record, ToolCallStatus::Failed(error.code), 0);
            }
            return Err(error);
        }
        let observed = ObservedCall::new(self.observation(), held.number(), call.server, call.tool);
        let trace = match self.before_sending(held, &decided, &arguments.tree, approved.is_some()).await {
            Ok(trace) => trace,
            Err(error) => {
                if let Some(record) = approved {
                    self.end_record(record, ToolCallStatus::Failed(error.code), 0);
                }
                let refused = Err(error.for_tool(call.server, call.tool));
                observed.end(&refused);
                return refused;
            }
        };
        let _waiting = asked.unwrap_or_else(|| Waiting::begin(self));
        let record = self.record_sent(approved, call);
        held.note_record(record);
        held.note_sent();
        let result = tokio::select! {
            biased;
            result = answer(arguments, trace, observed.slot()) => result,
            mut error = held.too_late() => {
                error.message.push_str("; whether the call took effect is unknown");
                Err(error)
            }
        };
        observed.end(&result);
        self.record_result(held, record, &result);
        result.map_err(|error| error.for_tool(call.server, call.tool))
    }

    /// Tells the observers that the call is about to be sent, and waits for them. Returns its trace context.
    async fn before_sending(
        &self,
        held: &HeldCall,
        decided: &Decided<'_>,
        arguments: &Map<String, Value>,
        is_approved: bool,
    ) -> Result<Option<TraceContext>, ToolError> {
        if !self.observation().is_on() {
            return Ok(None);
        }
        let Call { server, tool, argument_bytes } = decided.call;
        let in_force = self.in_force();
        let rule = match decided.host {
            Some(_) => "grant".into(),
            None => in_force.permitting_rule(server, tool),
        };
        let remote = match decided.host {
            Some(host) => Some(host.remote.clone()),
            None => {
                let dispatcher = in_force.catalog.dispatcher(server);
                dispatcher.and_then(|(name, dispatcher)| dispatcher.remote(name))
            }
        };
        let arguments = decided.host.map_or(arguments, |host| &host.recorded);
        let sending = Sending {
            call: held.number(),
            server,
            tool,
            argument_bytes,
            arguments: Arguments::new(arguments),
            rule: &rule,
            approver: is_approved.then_some(self.approver_kind),
            waited: held.waited(),
            remote,
        };
        self.observation().before_effect(RunEvent::Sending(sending)).await
    }

    /// Checks a decision again if the configuration has changed while the call waited for an
    /// approval or a slot.
    fn check_still_permitted(
        &self,
        held: &HeldCall,
        decided: &Decided<'_>,
        arguments: &Map<String, Value>,
        is_approved: bool,
    ) -> Result<(), ToolError> {
        let Decided { by, call, tool, permission, host } = decided;
        let now = self.in_force();
        if now.is_same_as(by) {
            return Ok(());
        }
        let (server, tool_name) = (call.server, call.tool);
        // Rules about a host are about each of its ports.
        let names = host.map_or([tool_name, tool_name], |host| [host.name, host.host]);
        let refusing = match permission {
            Permission::OfMethod => now.refusing_rule(server, tool_name),
            Permission::OfTool if !now.may_permit_server(server) => now.refusing_rule(server, tool_name),
            Permission::OfTool | Permission::Granted => {
                names.into_iter().find_map(|name| now.denying_rule(server, name))
            }
        };
        let is_permitted = *permission != Permission::OfTool || now.may_permit_server(server);
        if refusing.is_some() || !is_permitted {
            if let Some(rule) = refusing {
                held.note_rule(rule);
            }
            return Err(denied(server, tool_name));
        }
        if host.is_none() && now.catalog.server_name(server).is_none() {
            return Err(self.unknown_server(&now.catalog, server));
        }
        let effects = match (tool, host) {
            (_, Some(host)) => host.effects,
            (Some(tool), None) => effects_of(&now, tool),
            (None, None) => now.effects(server, tool_name, Effects::OF_REQUESTS),
        };
        let is_same_server = tool.is_none_or(|tool| now.catalog.has_server_of(tool));
        let asks = || match tool {
            Some(tool) => asks_about(&now, tool, effects),
            None => names.into_iter().find_map(|name| now.asks(server, name, effects)),
        };
        let has_addresses = host.is_none() && tool.is_none_or(|tool| tool.kind() == ToolKind::Ordinary);
        let address = if has_addresses { check_addresses(held, &now, *call, arguments)? } else { None };
        let needs_approval = !is_approved && (address.is_some() || asks().is_some());
        if !is_same_server || needs_approval || (self.script.is_dry_run && effects.writes) {
            let message = format!(
                "the configuration of `{server}.{tool_name}` changed while the call waited; call it again"
            );
            return Err(ToolError::new(ToolErrorCode::ToolDenied, message).for_tool(server, tool_name));
        }
        Ok(())
    }
}

//! Requests for things of a server that are not tools: resources, including skills, and prompts.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::addresses::check_addresses;
use super::arguments::ExactArguments;
use super::held::HeldCall;
use super::send::{Decided, Permission};
use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::errors::denied;
use crate::run::ledger::Call;
use crate::run::result::LogLevel;
use crate::text::visible_preview;
use crate::tools::approval::Effects;
use crate::tools::caught::caught;
use crate::tools::in_force::ToolsInForce;
use crate::tools::skill_pins::{SKILL_SCHEME, SkillPin};
use crate::tools::{RequestContext, ServerRequest, ToolError};

/// Maximum characters of a resource's address in a line of the output.
const MAX_SHOWN_URI: usize = 120;

impl ExecutionContext {
    /// Sends a request for something other than a tool to a server and returns the answer as JSON
    /// text. Counts as a call. The policy treats the method as the name of a tool, so lists that
    /// name individual tools do not allow it.
    ///
    /// Unlike [`call`](Self::call) it does not end with the run: the caller stops polling it.
    pub(crate) async fn request(
        self: &Arc<Self>,
        server: &str,
        request: ServerRequest,
    ) -> Result<String, ToolError> {
        let argument_bytes = match &request {
            ServerRequest::ReadResource { uri } | ServerRequest::Subscribe { uri, .. } => uri.len(),
            ServerRequest::GetPrompt { name, arguments } => {
                name.len() + serde_json::to_string(arguments).map_or(0, |text| text.len())
            }
            ServerRequest::ListResources | ServerRequest::ListPrompts => 0,
        };
        let held = self.hold_call(argument_bytes)?;
        let result = self.send_request(&held, server, request, Permission::OfMethod).await;
        held.note_failure(&result);
        result.map(Json::into_text)
    }

    pub(super) async fn send_request(
        &self,
        held: &HeldCall,
        server: &str,
        request: ServerRequest,
        permission: Permission,
    ) -> Result<Json, ToolError> {
        let in_force = self.in_force();
        let (server, dispatcher) = in_force
            .catalog
            .dispatcher(server)
            .ok_or_else(|| self.unknown_server(&in_force.catalog, server))?;
        let call = Call { server, tool: request.method(), argument_bytes: held.argument_bytes() };
        match permission {
            Permission::OfMethod => self.check_policy(call.server, call.tool)?,
            Permission::OfTool | Permission::Granted => {
                let denies = |method: &str| in_force.denies(call.server, method);
                // A client that may not read a resource is not told when it changes either.
                let is_denied = denies(call.tool)
                    || matches!(request, ServerRequest::Subscribe { .. }) && denies(ServerRequest::READ);
                if !in_force.may_permit_server(call.server) || is_denied {
                    return Err(denied(call.server, call.tool));
                }
            }
        }
        let parameters = request.parameters();
        let send = async |parameters: Map<String, Value>| {
            let request = request.with_parameters(parameters)?;
            let parameters = request.parameters();
            let decided = Decided { by: Arc::clone(&in_force), call, tool: None, permission, host: None };
            let reason = check_addresses(held, &in_force, call, &parameters)?
                .or_else(|| in_force.asks(call.server, call.tool, Effects::OF_REQUESTS));
            let answer = async |_parameters, trace, sent| {
                let name = Arc::clone(server);
                let skill = match &request {
                    ServerRequest::ReadResource { uri } if uri.starts_with(SKILL_SCHEME) => Some(uri.clone()),
                    _ => None,
                };
                let mut context = RequestContext::new(self.call_deadline());
                context.cancel = self.cancel.clone();
                context.on_elicitation.clone_from(&self.on_elicitation);
                (context.trace, context.sent) = (trace, sent);
                let value =
                    caught("the server", async { dispatcher.request(name, request, context).await }).await?;
                self.check_result_bytes("the answer", value.text().len())?;
                if let Some(uri) = skill {
                    self.check_skill(&in_force, server, &uri, &value)?;
                }
                Ok(value)
            };
            let parameters = ExactArguments { tree: parameters, numbers: Vec::new() };
            self.send(held, decided, reason, parameters, answer).await
        };
        self.with_hooks(call, parameters, send).await
    }

    /// Compares a skill with the pinned one. A line of the output says that it differs.
    fn check_skill(
        &self,
        in_force: &ToolsInForce,
        server: &str,
        uri: &str,
        answer: &Json,
    ) -> Result<(), ToolError> {
        // Compares the contents only: a server may send other fields with different values each time.
        let contents = answer.field("contents").unwrap_or_else(|| answer.clone());
        if in_force.catalog.check_skill(server, uri, contents.text())? == SkillPin::Different {
            let shown = visible_preview(uri, MAX_SHOWN_URI);
            self.log(
                LogLevel::Warn,
                format!(
                    "the skill `{shown}` of `{server}` is not the one that was pinned when it was first read"
                ),
            );
        }
        Ok(())
    }
}

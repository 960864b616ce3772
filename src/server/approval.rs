//! Asks the user at the client to approve a call.

use futures::future::BoxFuture;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::Value;

use super::prompt::{Show, UserPrompts, ask_user};
use crate::run::tool_call;
use crate::tools::approval::{Approval, ApprovalRequest};

/// The required field. Sending the form is not an approval: in some clients one key press sends it.
const APPROVE: &str = "approve";
/// The user's reason, for the script's author.
const REASON: &str = "reason";

/// Returns what asks the user of this client for approvals, if the client shows forms.
pub(crate) fn approver(
    client: &UserPrompts,
) -> Option<impl Fn(ApprovalRequest) -> BoxFuture<'static, Approval> + Send + Sync + use<>> {
    let show = Show::clone(&client.show);
    client.shows_forms.then_some(move |request: ApprovalRequest| -> BoxFuture<'static, Approval> {
        ask_user(&show, form(&request), |answer| approval(&answer), Approval::Unavailable)
    })
}

/// The form that the client shows. `None` only if rmcp refuses this module's form.
fn form(request: &ApprovalRequest) -> Option<ElicitRequestParams> {
    let requested_schema = ElicitationSchema::builder()
        .required_bool_with(APPROVE, |field| {
            field.title("Make this call").description("Exactly as shown, once").with_default(false)
        })
        .optional_string_with(REASON, |field| field.title("Why not").max_length(200))
        .build()
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(request),
        requested_schema,
    })
}

/// The prompt's text. Names and arguments are rendered so that none of their characters can hide or
/// move text.
fn message(request: &ApprovalRequest) -> String {
    let call = request.call_text();
    let arguments = request.arguments_text();
    let asking = if request.script == tool_call::NAME { "The client" } else { "A script" };
    let code =
        request.code_lines().map_or_else(String::new, |lines| format!("\nThe code:\n{}", lines.join("\n")));
    format!("{asking} asks to call {call}.\nBecause: {}\nArguments:\n{arguments}{code}", request.reason)
}

/// Everything but a clear approval is a denial.
fn approval(answer: &ElicitResult) -> Approval {
    let field = |name: &str| answer.content.as_ref().and_then(|content| content.get(name));
    if answer.action == ElicitationAction::Accept && field(APPROVE) == Some(&Value::Bool(true)) {
        return Approval::Approve;
    }
    let reason = field(REASON).and_then(Value::as_str).filter(|reason| !reason.trim().is_empty());
    Approval::Deny { reason: reason.map(str::to_owned) }
}

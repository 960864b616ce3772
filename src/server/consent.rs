//! Asks the person at the client about a call that a script wants to make: the protocol's elicitation.

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, PeerRequestOptions, RequestContext, RequestHandle};
use serde_json::Value;

use crate::tools::approval::{Approval, ApprovalRequest};

/// The one field that has to be filled in. That the form was sent is no yes: some clients send it with one key.
const APPROVE: &str = "approve";
/// What the person wants the script's author to know.
const REASON: &str = "reason";

/// Who asks the person behind this request, if its client can: one with a handshake that has said so. Clients without
/// a handshake cannot be asked in the middle of a request.
pub(super) fn approver(
    context: &RequestContext<RoleServer>,
) -> Option<impl Fn(ApprovalRequest) -> BoxFuture<'static, Approval> + Send + Sync + 'static> {
    let client = context.peer.peer_info()?;
    let elicitation = client.capabilities.elicitation.as_ref()?;
    // A client that names neither form means the one that was there first.
    let shows_forms = elicitation.form.is_some() || elicitation.url.is_none();
    if !shows_forms || context.meta.client_capabilities().is_some() {
        return None;
    }
    let (peer, of) = (context.peer.clone(), OriginatingRequestId(context.id.clone()));
    Some(move |request: ApprovalRequest| -> BoxFuture<'static, Approval> {
        let (peer, of) = (peer.clone(), of.clone());
        Box::pin(async move { ask(peer, of, &request).await })
    })
}

async fn ask(peer: Peer<RoleServer>, of: OriginatingRequestId, request: &ApprovalRequest) -> Approval {
    let Ok(requested_schema) = ElicitationSchema::builder()
        .required_bool_with(APPROVE, |field| {
            field.title("Make this call").description("Exactly as shown, once").with_default(false)
        })
        .optional_string_with(REASON, |field| field.title("Why not").max_length(200))
        .build()
    else {
        return Approval::Unavailable;
    };
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(request),
        requested_schema,
    };
    let mut question = ElicitRequest::new(params);
    // Over HTTP it goes where the client waits for this call's answer.
    question.extensions.insert(of);
    let question = ServerRequest::ElicitRequest(question);
    let Ok(handle) = peer.send_cancellable_request(question, PeerRequestOptions::no_options()).await else {
        return Approval::Unavailable;
    };
    let mut open = OpenQuestion(Some(handle));
    let Some(handle) = &mut open.0 else { return Approval::Unavailable };
    let answer = (&mut handle.rx).await;
    // Answered: there is nothing to take back.
    open.0 = None;
    match answer {
        Ok(Ok(ClientResult::ElicitResult(answer))) => approval(&answer),
        // The client cannot ask after all, or has gone.
        _ => Approval::Unavailable,
    }
}

/// A question that the client shows. If the run ends first, or the time for the answer, the client is told.
struct OpenQuestion(Option<RequestHandle<RoleServer>>);

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        // Dropped by the executor's runtime, which outlives its runs; where there is none, nobody is left to be told.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _gone = handle.cancel(Some("the call is not waited for any more".to_owned())).await;
            });
        }
    }
}

/// What the person reads. Names and arguments are shown so that no character of them can hide or move anything.
fn message(request: &ApprovalRequest) -> String {
    let call = request.call_text();
    let arguments = request.arguments_text();
    format!("A script asks to call {call}.\nBecause: {}\nArguments:\n{arguments}", request.reason)
}

/// Whatever is not a clear yes is a no.
fn approval(answer: &ElicitResult) -> Approval {
    let field = |name: &str| answer.content.as_ref().and_then(|content| content.get(name));
    if answer.action == ElicitationAction::Accept && field(APPROVE) == Some(&Value::Bool(true)) {
        return Approval::Approve;
    }
    let reason = field(REASON).and_then(Value::as_str).filter(|reason| !reason.trim().is_empty());
    Approval::Deny { reason: reason.map(str::to_owned) }
}

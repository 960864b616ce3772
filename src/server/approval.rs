//! Asks the user at the client to approve a call, by the protocol's elicitation: as a request of
//! the server, or within a result.

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, PeerRequestOptions, RequestContext, RequestHandle};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::tools::approval::{Approval, ApprovalRequest};

/// The required field. Sending the form is not an approval: in some clients one key press sends it.
const APPROVE: &str = "approve";
/// The user's reason, for the script's author.
const REASON: &str = "reason";

/// Sends an approval prompt to the client and waits for the answer.
type Approver = Box<dyn Fn(ApprovalRequest) -> BoxFuture<'static, Approval> + Send + Sync>;

/// The key of the prompt in a result that asks, and of the answer in the repeated request.
pub(crate) const KEY: &str = "approval";

/// How a client can ask its user.
pub(crate) enum Elicitation {
    /// During the request, by a request of the server: clients of the handshake revisions.
    DuringRequest(Approver),
    /// In a result, after which the client repeats the request with the answer: clients of the
    /// stateless revision.
    InResult(Approver, mpsc::Receiver<ApprovalPrompt>),
}

impl Elicitation {
    /// Returns how to ask the user behind this request, if the client has declared that it shows
    /// forms.
    pub(crate) fn from_context(context: &RequestContext<RoleServer>) -> Option<Self> {
        if let Some(capabilities) = context.meta.client_capabilities() {
            if !shows_forms(&capabilities) {
                return None;
            }
            // There is one prompt at a time.
            let (sender, prompts) = mpsc::channel(1);
            let approver = move |request: ApprovalRequest| -> BoxFuture<'static, Approval> {
                let sender = sender.clone();
                Box::pin(async move {
                    let (answer, approval) = oneshot::channel();
                    // The receiver is dropped only with the run.
                    let _gone = sender.send(ApprovalPrompt { request, answer }).await;
                    approval.await.unwrap_or(Approval::Unavailable)
                })
            };
            return Some(Self::InResult(Box::new(approver), prompts));
        }
        if !shows_forms(&context.peer.peer_info()?.capabilities) {
            return None;
        }
        let (peer, of) = (context.peer.clone(), OriginatingRequestId(context.id.clone()));
        Some(Self::DuringRequest(Box::new(move |request| {
            let (peer, of) = (peer.clone(), of.clone());
            Box::pin(async move { ask(peer, of, &request).await })
        })))
    }
}

fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    // A client that declares neither form nor URL mode has form mode, which is older.
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// An approval prompt that is open until it is answered, times out, or its run ends. Dropping it
/// means that the user cannot be asked.
pub(crate) struct ApprovalPrompt {
    request: ApprovalRequest,
    answer: oneshot::Sender<Approval>,
}

impl ApprovalPrompt {
    /// The form that the client shows. `None` only if rmcp refuses this module's form.
    pub(crate) fn request(&self) -> Option<InputRequest> {
        Some(InputRequest::Elicitation(ElicitRequest::new(form(&self.request)?)))
    }

    /// Completes when nothing waits for the answer any more.
    pub(crate) async fn closed(&mut self) {
        self.answer.closed().await;
    }

    /// Passes on the client's answer. An answer that cannot be parsed is a denial.
    pub(crate) fn answer(self, response: Value) {
        let approval = serde_json::from_value(response)
            .map_or(Approval::Deny { reason: None }, |answer: ElicitResult| approval(&answer));
        // An answer that comes too late is ignored: the run has continued without it.
        let _over = self.answer.send(approval);
    }
}

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

async fn ask(peer: Peer<RoleServer>, of: OriginatingRequestId, request: &ApprovalRequest) -> Approval {
    let Some(params) = form(request) else { return Approval::Unavailable };
    let mut elicitation = ElicitRequest::new(params);
    // Over HTTP, the prompt is sent on the stream of this call's answer.
    elicitation.extensions.insert(of);
    let elicitation = ServerRequest::ElicitRequest(elicitation);
    let Ok(handle) = peer.send_cancellable_request(elicitation, PeerRequestOptions::no_options()).await
    else {
        return Approval::Unavailable;
    };
    let mut open = OpenPrompt(Some(handle));
    let Some(handle) = &mut open.0 else { return Approval::Unavailable };
    let answer = (&mut handle.rx).await;
    // The prompt was answered, so there is nothing to cancel.
    open.0 = None;
    match answer {
        Ok(Ok(ClientResult::ElicitResult(answer))) => approval(&answer),
        // The client cannot show forms after all, or is gone.
        _ => Approval::Unavailable,
    }
}

/// A prompt that the client shows. If the run ends or the prompt times out first, dropping this
/// cancels it at the client.
struct OpenPrompt(Option<RequestHandle<RoleServer>>);

impl Drop for OpenPrompt {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        // Dropped in the executor's runtime, which outlives its runs. Without a runtime there is no
        // client to notify.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _gone = handle.cancel(Some("the script no longer waits for this call".to_owned())).await;
            });
        }
    }
}

/// The prompt's text. Names and arguments are rendered so that none of their characters can hide or
/// move text.
fn message(request: &ApprovalRequest) -> String {
    let call = request.call_text();
    let arguments = request.arguments_text();
    format!("A script asks to call {call}.\nBecause: {}\nArguments:\n{arguments}", request.reason)
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

//! Asks the person at the client about a call that a script wants to make: the protocol's elicitation, as a request of
//! the server's own or within a result.

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

/// The one field that has to be filled in. That the form was sent is no yes: some clients send it with one key.
const APPROVE: &str = "approve";
/// What the person wants the script's author to know.
const REASON: &str = "reason";

/// Whoever asks the person at the client.
type Approver = Box<dyn Fn(ApprovalRequest) -> BoxFuture<'static, Approval> + Send + Sync>;

/// How the person behind a request can be asked.
pub(super) enum Person {
    /// In the middle of the request, by one of the server's own: clients with a handshake.
    AtOnce(Approver),
    /// By a result that asks instead of the answer, after which the client sends the request again: clients without one.
    ByResult(Approver, mpsc::Receiver<Question>),
}

impl Person {
    /// The person behind this request, if its client has said that it shows forms.
    pub(super) fn behind(context: &RequestContext<RoleServer>) -> Option<Self> {
        if let Some(capabilities) = context.meta.client_capabilities() {
            if !shows_forms(&capabilities) {
                return None;
            }
            // There is one question at a time.
            let (sender, questions) = mpsc::channel(1);
            let approver = move |asked: ApprovalRequest| -> BoxFuture<'static, Approval> {
                let sender = sender.clone();
                Box::pin(async move {
                    let (answer, said) = oneshot::channel();
                    // Whoever puts the questions goes only with the run.
                    let _gone = sender.send(Question { asked, answer }).await;
                    said.await.unwrap_or(Approval::Unavailable)
                })
            };
            return Some(Self::ByResult(Box::new(approver), questions));
        }
        if !shows_forms(&context.peer.peer_info()?.capabilities) {
            return None;
        }
        let (peer, of) = (context.peer.clone(), OriginatingRequestId(context.id.clone()));
        Some(Self::AtOnce(Box::new(move |request| {
            let (peer, of) = (peer.clone(), of.clone());
            Box::pin(async move { ask(peer, of, &request).await })
        })))
    }
}

fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    // A client that names neither form means the one that was there first.
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// A question that is open until it is answered, its time is over or its run ends. Dropping it says that nobody can be
/// asked.
pub(super) struct Question {
    asked: ApprovalRequest,
    answer: oneshot::Sender<Approval>,
}

impl Question {
    /// What the client shows. `None` only if rmcp does not take our own form.
    pub(super) fn request(&self) -> Option<InputRequest> {
        Some(InputRequest::Elicitation(ElicitRequest::new(form(&self.asked)?)))
    }

    /// Waits until nobody waits for the answer any more.
    pub(super) async fn over(&mut self) {
        self.answer.closed().await;
    }

    /// Passes on what the client came back with. Whatever cannot be read is no yes.
    pub(super) fn answer(self, response: Value) {
        let approval = serde_json::from_value(response)
            .map_or(Approval::Deny { reason: None }, |answer: ElicitResult| approval(&answer));
        // Too late is no answer; the run goes on without.
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

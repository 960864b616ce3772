//! Prompts that a client shows to its user, by the protocol's elicitation: as a request of the server,
//! or within a result.

use std::sync::Arc;

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, PeerRequestOptions, RequestContext, RequestHandle};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Shows a prompt to the client's user and waits for the answer; `None` if it cannot be shown. Dropping
/// the future withdraws the prompt.
pub(crate) type Show =
    Arc<dyn Fn(ElicitRequestParams) -> BoxFuture<'static, Option<ElicitResult>> + Send + Sync>;

/// How a client can ask its user.
pub(crate) struct Elicitation {
    pub(crate) show: Show,
    pub(crate) shows_forms: bool,
    pub(crate) opens_addresses: bool,
    /// The prompts that have to be sent in a result, after which the client repeats the request with
    /// the answer: those of clients of the stateless revision. Clients of the handshake revisions are
    /// sent a request by `show`.
    pub(crate) in_results: Option<mpsc::Receiver<Prompt>>,
}

impl Elicitation {
    /// Returns how to ask the user behind this request, if the client has declared that it can.
    pub(crate) fn from_context(context: &RequestContext<RoleServer>) -> Option<Self> {
        if let Some(capabilities) = context.meta.client_capabilities() {
            // There is one prompt at a time.
            let (sender, prompts) = mpsc::channel(1);
            let show = move |params: ElicitRequestParams| -> BoxFuture<'static, Option<ElicitResult>> {
                let sender = sender.clone();
                Box::pin(async move {
                    let (answer, answered) = oneshot::channel();
                    // The receiver is dropped only with the run.
                    let _gone = sender.send(Prompt { params, answer }).await;
                    answered.await.ok()
                })
            };
            return Self::new(&capabilities, Arc::new(show), Some(prompts));
        }
        let info = context.peer.peer_info()?;
        let (peer, of) = (context.peer.clone(), OriginatingRequestId(context.id.clone()));
        let show = move |params: ElicitRequestParams| -> BoxFuture<'static, Option<ElicitResult>> {
            let (peer, of) = (peer.clone(), of.clone());
            Box::pin(async move { ask(peer, of, params).await })
        };
        Self::new(&info.capabilities, Arc::new(show), None)
    }

    fn new(
        capabilities: &ClientCapabilities,
        show: Show,
        in_results: Option<mpsc::Receiver<Prompt>>,
    ) -> Option<Self> {
        let elicitation = capabilities.elicitation.as_ref()?;
        let opens_addresses = elicitation.url.is_some();
        // A client that declares neither form nor URL mode has form mode, which is older.
        let shows_forms = elicitation.form.is_some() || !opens_addresses;
        Some(Self { show, shows_forms, opens_addresses, in_results })
    }
}

/// A prompt that is open until it is answered, times out, or its run ends. Dropping it means that the
/// user cannot be asked.
pub(crate) struct Prompt {
    params: ElicitRequestParams,
    answer: oneshot::Sender<ElicitResult>,
}

impl Prompt {
    /// What the client shows.
    pub(crate) fn request(&self) -> InputRequest {
        InputRequest::Elicitation(ElicitRequest::new(self.params.clone()))
    }

    /// Completes when nothing waits for the answer any more.
    pub(crate) async fn closed(&mut self) {
        self.answer.closed().await;
    }

    /// Passes on the client's answer. An answer that cannot be parsed is a refusal.
    pub(crate) fn answer(self, response: Value) {
        let declined = || ElicitResult::new(ElicitationAction::Decline);
        let answer = serde_json::from_value(response).unwrap_or_else(|_| declined());
        // An answer that comes too late is ignored: the run has continued without it.
        let _over = self.answer.send(answer);
    }
}

async fn ask(
    peer: Peer<RoleServer>,
    of: OriginatingRequestId,
    params: ElicitRequestParams,
) -> Option<ElicitResult> {
    let mut elicitation = ElicitRequest::new(params);
    // Over HTTP, the prompt is sent on the stream of this call's answer.
    elicitation.extensions.insert(of);
    let elicitation = ServerRequest::ElicitRequest(elicitation);
    let handle = peer.send_cancellable_request(elicitation, PeerRequestOptions::no_options()).await.ok()?;
    let mut open = OpenPrompt(Some(handle));
    let answer = (&mut open.0.as_mut()?.rx).await;
    // The prompt was answered, so there is nothing to cancel.
    open.0 = None;
    match answer {
        Ok(Ok(ClientResult::ElicitResult(answer))) => Some(answer),
        // The client cannot show it after all, or is gone.
        _ => None,
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

//! Prompts to a client during a call: to its user by the protocol's elicitation, to its model by
//! sampling. They are requests of the server, or are part of a result.

#![expect(deprecated, reason = "the latest revision deprecates sampling, which all revisions in use have")]

use std::sync::Arc;

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, ServerRequest,
};
use rmcp::service::{
    OriginatingRequestId, Peer, PeerRequestOptions, RequestContext, RequestHandle, ServiceError,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::llm::{ModelError, ModelErrorKind};

/// Shows a prompt to the client's user and waits for the answer; `None` if it cannot be shown. Dropping
/// the future withdraws the prompt.
pub(crate) type Show =
    Arc<dyn Fn(ElicitRequestParams) -> BoxFuture<'static, Option<ElicitResult>> + Send + Sync>;

/// Shows a prompt, and returns what `read` makes of the answer; `unavailable` if there is no prompt, or if it cannot be
/// shown. Dropping the future withdraws the prompt.
pub(crate) fn ask_user<Answer: Send + 'static>(
    show: &Show,
    prompt: Option<ElicitRequestParams>,
    read: fn(ElicitResult) -> Answer,
    unavailable: Answer,
) -> BoxFuture<'static, Answer> {
    let shown = prompt.map(|prompt| show(prompt));
    Box::pin(async move {
        match shown {
            Some(shown) => shown.await.map_or(unavailable, read),
            None => unavailable,
        }
    })
}

/// Asks the client's model and waits for the answer. Dropping the future withdraws the question.
pub(crate) type AskModel = Arc<
    dyn Fn(CreateMessageRequestParams) -> BoxFuture<'static, Result<CreateMessageResult, ModelError>>
        + Send
        + Sync,
>;

/// Maximum number of questions that wait to be sent in a result. While the queue is full, the script's calls wait.
const MAX_QUESTIONS: usize = 64;

/// The ways to ask a client.
pub(crate) struct Elicitation {
    /// Shows prompts to the user, if the client can.
    pub(crate) user: Option<UserPrompts>,
    /// Asks the client's model, if it offers one.
    pub(crate) model: Option<AskModel>,
    /// The prompts that have to be sent in a result, after which the client repeats the request with the answers.
    /// Clients of the stateless revision need this; clients of the handshake revisions are sent requests instead.
    pub(crate) in_results: Option<mpsc::Receiver<Prompt>>,
}

/// The ways to ask a client's user.
pub(crate) struct UserPrompts {
    pub(crate) show: Show,
    pub(crate) shows_forms: bool,
    pub(crate) opens_addresses: bool,
}

impl UserPrompts {
    fn new(capabilities: &ClientCapabilities, show: Show) -> Option<Self> {
        let elicitation = capabilities.elicitation.as_ref()?;
        let opens_addresses = elicitation.url.is_some();
        // A client that declares neither form nor URL mode supports form mode, which is older.
        let shows_forms = elicitation.form.is_some() || !opens_addresses;
        Some(Self { show, shows_forms, opens_addresses })
    }
}

impl Elicitation {
    /// The ways to ask the client behind this request; `None` if it has declared none.
    pub(crate) fn from_context(context: &RequestContext<RoleServer>) -> Option<Self> {
        if let Some(capabilities) = context.meta.client_capabilities() {
            let (sender, prompts) = mpsc::channel(MAX_QUESTIONS);
            let asker = sender.clone();
            let show = move |params: ElicitRequestParams| -> BoxFuture<'static, Option<ElicitResult>> {
                let sender = sender.clone();
                Box::pin(async move {
                    let (answer, answered) = oneshot::channel();
                    // The receiver is dropped only with the run.
                    let _gone = sender.send(Prompt(Question::User { params, answer })).await;
                    answered.await.ok()
                })
            };
            let ask = move |params: CreateMessageRequestParams| -> BoxFuture<'static, _> {
                let sender = asker.clone();
                Box::pin(async move {
                    let (answer, answered) = oneshot::channel();
                    let _gone = sender.send(Prompt(Question::Model { params, answer })).await;
                    answered.await.unwrap_or_else(|_dropped| {
                        Err(ModelError::new(ModelErrorKind::Unavailable, "the client cannot be asked"))
                    })
                })
            };
            let model = capabilities.sampling.is_some().then(|| -> AskModel { Arc::new(ask) });
            let user = UserPrompts::new(&capabilities, Arc::new(show));
            let in_results = (model.is_some() || user.is_some()).then_some(prompts);
            return in_results.is_some().then_some(Self { user, model, in_results });
        }
        let capabilities = &context.peer.peer_info()?.capabilities;
        let (peer, of) = (context.peer.clone(), OriginatingRequestId(context.id.clone()));
        let (asker, asker_of) = (peer.clone(), of.clone());
        let show = move |params: ElicitRequestParams| -> BoxFuture<'static, Option<ElicitResult>> {
            let (peer, of) = (peer.clone(), of.clone());
            Box::pin(async move { elicit(peer, of, params).await })
        };
        let ask = move |params: CreateMessageRequestParams| -> BoxFuture<'static, _> {
            let (peer, of) = (asker.clone(), asker_of.clone());
            Box::pin(async move { ask_model(peer, of, params).await })
        };
        let model = capabilities.sampling.is_some().then(|| -> AskModel { Arc::new(ask) });
        let user = UserPrompts::new(capabilities, Arc::new(show));
        (model.is_some() || user.is_some()).then_some(Self { user, model, in_results: None })
    }
}

/// A prompt that is open until it is answered, times out, or its run ends. Dropping it reports that the client cannot
/// be asked.
pub(crate) struct Prompt(Question);

enum Question {
    User {
        params: ElicitRequestParams,
        answer: oneshot::Sender<ElicitResult>,
    },
    Model {
        params: CreateMessageRequestParams,
        answer: oneshot::Sender<Result<CreateMessageResult, ModelError>>,
    },
}

impl Prompt {
    /// The request for the client: to show to its user, or to pass to its model.
    pub(crate) fn request(&self) -> InputRequest {
        match &self.0 {
            Question::User { params, .. } => InputRequest::Elicitation(ElicitRequest::new(params.clone())),
            Question::Model { params, .. } => {
                InputRequest::CreateMessage(CreateMessageRequest::new(params.clone()))
            }
        }
    }

    /// Whether the prompt is for the client's model and not for its user.
    pub(crate) fn is_for_model(&self) -> bool {
        matches!(self.0, Question::Model { .. })
    }

    /// Completes when nothing waits for the answer any longer.
    pub(crate) async fn closed(&mut self) {
        match &mut self.0 {
            Question::User { answer, .. } => answer.closed().await,
            Question::Model { answer, .. } => answer.closed().await,
        }
    }

    /// Passes on the client's answer. An answer that cannot be parsed is a refusal.
    pub(crate) fn answer(self, response: Value) {
        match self.0 {
            Question::User { answer, .. } => {
                let declined = || ElicitResult::new(ElicitationAction::Decline);
                let response = serde_json::from_value(response).unwrap_or_else(|_| declined());
                // An answer that comes too late is ignored: the run has continued without it.
                let _over = answer.send(response);
            }
            Question::Model { answer, .. } => {
                let response = serde_json::from_value(response).map_err(|_| refused());
                let _over = answer.send(response);
            }
        }
    }
}

fn refused() -> ModelError {
    ModelError::new(ModelErrorKind::Refused, "the client did not answer: it, or its user, refused")
}

async fn elicit(
    peer: Peer<RoleServer>,
    of: OriginatingRequestId,
    params: ElicitRequestParams,
) -> Option<ElicitResult> {
    let mut elicitation = ElicitRequest::new(params);
    // Over HTTP, the prompt is sent on the stream of this call's answer.
    elicitation.extensions.insert(of);
    match send(peer, ServerRequest::ElicitRequest(elicitation)).await {
        Ok(ClientResult::ElicitResult(answer)) => Some(answer),
        // The client cannot show it after all, or is gone.
        _ => None,
    }
}

async fn ask_model(
    peer: Peer<RoleServer>,
    of: OriginatingRequestId,
    params: CreateMessageRequestParams,
) -> Result<CreateMessageResult, ModelError> {
    let mut request = CreateMessageRequest::new(params);
    request.extensions.insert(of);
    match send(peer, ServerRequest::CreateMessageRequest(request)).await {
        Ok(ClientResult::CreateMessageResult(answer)) => Ok(*answer),
        Err(Unanswered::Failed(ServiceError::McpError(_))) => Err(refused()),
        Err(Unanswered::Gone) => Err(ModelError::new(ModelErrorKind::Unavailable, "the client is gone")),
        Ok(_) | Err(Unanswered::Failed(_)) => Err(ModelError::new(
            ModelErrorKind::Failed,
            "the client's answer is not that of `sampling/createMessage`",
        )),
    }
}

/// Why a request to the client has no result.
enum Unanswered {
    /// The connection has ended.
    Gone,
    /// The client answered with an error, or with something that is not an answer.
    Failed(ServiceError),
}

/// Sends a request to the client, and waits for the answer. Dropping the future cancels the request at the client.
async fn send(peer: Peer<RoleServer>, request: ServerRequest) -> Result<ClientResult, Unanswered> {
    let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let mut open = OpenRequest(Some(handle.map_err(|_error| Unanswered::Gone)?));
    let sent = open.0.as_mut().ok_or(Unanswered::Gone)?;
    let answer = (&mut sent.rx).await;
    // It was answered, so there is nothing to cancel.
    open.0 = None;
    answer.map_err(|_dropped| Unanswered::Gone)?.map_err(Unanswered::Failed)
}

/// A request that the client is handling. If the run ends or the timeout passes first, dropping this cancels the
/// request at the client.
struct OpenRequest(Option<RequestHandle<RoleServer>>);

impl Drop for OpenRequest {
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

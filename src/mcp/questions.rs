//! Requests of a server to this client: questions to the user during a call, and requests for its directories (roots).
//! The transports give the server's requests to this module instead of rmcp, which would start a task
//! for each. A question goes to the user of the run whose call it belongs to. Over pipes a server does
//! not say which call that is, so a question is refused while calls of several runs are in flight.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use rmcp::model::{
    ClientCapabilities, ElicitationCapability, ErrorCode, FormElicitationCapability, JsonObject,
    UrlElicitationCapability,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::address::may_send_to;
use super::answers::RequestTrace;
use super::message::answer_to;
use super::patience::Patience;
use super::settings::{McpServer, McpTransport, Root};
use super::task_state::related_task;
use crate::json;
use crate::tools::{
    ElicitationAnswer, ElicitationHandler, ElicitationMode, ElicitationRefusal, ElicitationRequest, Form,
    FormError, INTERFACE_TYPE, INTERFACES,
};

/// Maximum number of open questions of one connection. They are asked one after the other.
const MAX_OPEN: usize = 16;

/// Maximum number of questions in one call, the maximum of a run's prompts. Each question stops and starts the time
/// limits of its calls, so without a bound a server could keep a thread busy with questions that no user is asked.
const MAX_OF_CALL: usize = 1_000;

/// Maximum number of calls that a question may belong to. It pauses the time limits of all of them.
const MAX_CALLERS: usize = 1_000;

/// Maximum bytes of a question, as of the arguments in an approval prompt.
const MAX_QUESTION_BYTES: usize = 64 << 10;

/// Maximum bytes of an address to open. Browsers refuse longer ones.
const MAX_ADDRESS_BYTES: usize = 8 << 10;

/// A call in flight: the handler for its server's questions, and its time limit.
pub(crate) struct Caller {
    server: Arc<str>,
    tool: Arc<str>,
    handler: Option<ElicitationHandler>,
    pub(crate) trace: RequestTrace,
    pub(crate) patience: Arc<Patience>,
    /// Number of questions during the call so far.
    asked: AtomicUsize,
    /// Cancelled when the call is over or abandoned.
    over: CancellationToken,
}

impl Caller {
    /// Whether the call is over or abandoned.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Makes a call. It is over when the second value is dropped.
    pub(crate) fn new(
        server: &Arc<str>,
        tool: &Arc<str>,
        handler: Option<ElicitationHandler>,
        trace: RequestTrace,
    ) -> (Arc<Self>, DropGuard) {
        let over = CancellationToken::new();
        let guard = over.clone().drop_guard();
        let (server, tool, patience) = (Arc::clone(server), Arc::clone(tool), Arc::default());
        let asked = AtomicUsize::new(0);
        (Arc::new(Self { server, tool, handler, trace, patience, asked, over }), guard)
    }

    /// Whether there is a user who can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.handler.is_some()
    }

    fn is_of_run(&self, other: &Self) -> bool {
        match (&self.handler, &other.handler) {
            (Some(handler), Some(other)) => Arc::ptr_eq(handler, other),
            _ => false,
        }
    }
}

/// The questions of one connection. By default all are refused.
#[derive(Default)]
pub(crate) struct Questions {
    /// Whether the user may be asked.
    asks: bool,
    /// The address of the server, which decides what addresses it may ask the user to open.
    address: Option<Url>,
    roots: Vec<Root>,
    /// Whether user interfaces of tools are passed on.
    interfaces: bool,
    /// The open questions, by the text of their ids.
    open: Mutex<HashMap<String, CancellationToken>>,
    /// The calls of which the server has made tasks that have not ended, by the ids of the tasks.
    tasks: Mutex<HashMap<String, TaskOfCall>>,
}

/// A task of a call.
struct TaskOfCall {
    caller: Arc<Caller>,
    /// Notified when the server says that the task has changed.
    changed: Arc<Notify>,
}

/// The answer to a request of a server.
pub(crate) enum Reply {
    /// The request cannot be answered, because its id cannot be repeated.
    None,
    Now(Value),
    /// The answer, or nothing if the server has cancelled the request. Dropping the future withdraws
    /// the question.
    Later(BoxFuture<'static, Option<Value>>),
}

/// Why a question was not answered by a user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    Run(#[from] ElicitationRefusal),
    #[error(transparent)]
    Form(#[from] FormError),
    #[error("the question is not of the protocol: {0}")]
    Invalid(serde_json::Error),
    #[error("a question has at most {MAX_QUESTION_BYTES} bytes: {0}")]
    TooLong(usize),
    #[error("at most {MAX_OPEN} questions can be open")]
    TooMany,
    #[error("at most {MAX_OF_CALL} questions can be asked in one call")]
    TooManyOfCall,
    #[error("no call is in flight that this could belong to")]
    NoCall,
    #[error("calls of several runs are in flight, so it is not known who is to be asked")]
    Ambiguous,
    #[error("the address is not one that a user may be sent to: `https`, or on this machine like its server")]
    Address,
    #[error("`elicitation` is off for this server in the configuration")]
    Off,
    #[error("this client does not support it")]
    Unsupported,
}

impl Refused {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Form(_) | Self::Invalid(_) | Self::Address => ErrorCode::INVALID_PARAMS,
            Self::Unsupported => ErrorCode::METHOD_NOT_FOUND,
            _ => ErrorCode::INVALID_REQUEST,
        }
    }
}

/// The parameters of `elicitation/create`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameters<'a> {
    #[serde(borrow)]
    mode: Option<Cow<'a, str>>,
    message: String,
    requested_schema: Option<Value>,
    url: Option<String>,
}

impl Questions {
    pub(crate) fn new(settings: &McpServer) -> Arc<Self> {
        let address = match &settings.transport {
            McpTransport::Http(http) => Some(http.url.clone()),
            McpTransport::Stdio(_) => None,
        };
        let (asks, roots) = (settings.elicitation, settings.roots.clone());
        let interfaces = settings.interfaces;
        let (open, tasks) = (Mutex::default(), Mutex::default());
        Arc::new(Self { asks, address, roots, interfaces, open, tasks })
    }

    /// Whether the server may ask a user, if a call has one.
    pub(crate) fn may_ask(&self) -> bool {
        self.asks
    }

    /// What this client declares to the server. `can_ask` is whether there is a user.
    pub(crate) fn capabilities(&self, can_ask: bool) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        if self.asks && can_ask {
            let elicitation = ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new());
            capabilities.elicitation = Some(elicitation);
        }
        if !self.roots.is_empty() {
            capabilities.roots = Some(Default::default());
        }
        if self.interfaces {
            let mut settings = JsonObject::new();
            settings.insert("mimeTypes".to_owned(), serde_json::json!([INTERFACE_TYPE]));
            capabilities.extensions = Some([(INTERFACES.to_owned(), settings)].into());
        }
        capabilities
    }

    /// The result of `roots/list`, if there are any roots.
    pub(crate) fn roots(&self) -> Option<Value> {
        let root = |root: &Root| json!({ "uri": root.uri, "name": root.name });
        (!self.roots.is_empty()).then(|| json!({ "roots": self.roots.iter().map(root).collect::<Vec<_>>() }))
    }

    /// Records that a task has been made of a call, so that its questions go to the call's user. Returns what is
    /// notified of its changes; `None` if the server uses the id already.
    pub(crate) fn begin_task(&self, id: &str, caller: &Arc<Caller>) -> Option<Arc<Notify>> {
        let mut tasks = self.tasks.lock();
        if tasks.contains_key(id) {
            return None;
        }
        let changed = Arc::<Notify>::default();
        let task = TaskOfCall { caller: Arc::clone(caller), changed: Arc::clone(&changed) };
        tasks.insert(id.to_owned(), task);
        Some(changed)
    }

    pub(crate) fn end_task(&self, id: &str) {
        self.tasks.lock().remove(id);
    }

    /// Handles the notification that a task has changed.
    pub(crate) fn task_changed(&self, parameters: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Changed<'a> {
            #[serde(borrow)]
            task_id: Cow<'a, str>,
        }
        let named = parameters.and_then(|text| serde_json::from_str::<Changed<'_>>(text.get()).ok());
        let Some(Changed { task_id }) = named else { return };
        if let Some(task) = self.tasks.lock().get(&*task_id) {
            task.changed.notify_one();
        }
    }

    /// The calls that a question may belong to if nothing says which: those with a pending request, and those that go
    /// on as tasks. One more than are asked about at most.
    pub(crate) fn in_flight(&self, pending: impl Iterator<Item = Arc<Caller>>) -> Vec<Arc<Caller>> {
        let tasks: Vec<Arc<Caller>> =
            self.tasks.lock().values().map(|task| Arc::clone(&task.caller)).collect();
        let mut seen = HashSet::new();
        let is_new = |caller: &Arc<Caller>| seen.insert(Arc::as_ptr(caller));
        pending.chain(tasks).filter(is_new).take(MAX_CALLERS + 1).collect()
    }

    /// Answers a request of the server: `ping`, `roots/list`, or a question to the user of `callers`,
    /// the calls that it may belong to. Everything else is refused.
    pub(crate) fn answer(
        self: &Arc<Self>,
        method: &str,
        id: &RawValue,
        parameters: Option<&RawValue>,
        callers: impl FnOnce() -> Vec<Arc<Caller>>,
    ) -> Reply {
        // The id is repeated unchanged, so it must be one.
        let Some(refusal) = answer_to(method, id) else { return Reply::None };
        match (method, self.roots()) {
            ("roots/list", Some(roots)) => Reply::Now(json!({ "jsonrpc": "2.0", "id": id, "result": roots })),
            ("elicitation/create", _) if self.asks => self.begin(id, parameters, callers),
            _ => Reply::Now(refusal),
        }
    }

    fn begin(
        self: &Arc<Self>,
        id: &RawValue,
        parameters: Option<&RawValue>,
        callers: impl FnOnce() -> Vec<Arc<Caller>>,
    ) -> Reply {
        let key = id.get().to_owned();
        let answer = |result: Result<Value, Refused>, id: &str| {
            // The id was checked before; it is a string or a number.
            let id: Value = serde_json::from_str(id).unwrap_or_default();
            match result {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err(refused) => {
                    let error = json!({ "code": refused.code().0, "message": refused.to_string() });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                }
            }
        };
        // The cost of a server that asks without end is only that of reading its messages.
        if !has_room(&self.open.lock(), &key) {
            return Reply::Now(answer(Err(Refused::TooMany), &key));
        }
        // The question of a task says of which, whatever else is in flight. One that is read together with the answer
        // that makes its task is refused: the call gets that answer from another task of the runtime, and its task is
        // known only then. A server asks when it is asked for the result.
        let task = parameters.map(RawValue::get).filter(|text| text.len() <= MAX_QUESTION_BYTES);
        let callers = match task.and_then(related_task) {
            Some(task) => {
                self.tasks.lock().get(&task).map(|task| Arc::clone(&task.caller)).into_iter().collect()
            }
            None => callers(),
        };
        let question = match self.question(callers, parameters) {
            Ok(question) => question,
            Err(refused) => return Reply::Now(answer(Err(refused), &key)),
        };
        let cancelled = CancellationToken::new();
        {
            let mut open = self.open.lock();
            if !has_room(&open, &key) {
                return Reply::Now(answer(Err(Refused::TooMany), &key));
            }
            open.insert(key.clone(), cancelled.clone());
        }
        let is_open = Open { questions: Arc::clone(self), key };
        let reply = async move {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => None,
                result = question => Some(answer(result, &is_open.key)),
            }
        };
        Reply::Later(reply.boxed())
    }

    /// Withdraws the question that a notification of the server cancels.
    pub(crate) fn cancelled(&self, parameters: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let named = parameters.and_then(|text| serde_json::from_str::<Cancelled<'_>>(text.get()).ok());
        let Some(Cancelled { request_id }) = named else { return };
        if let Some(question) = self.open.lock().get(request_id.get()) {
            question.cancel();
        }
    }

    /// Asks the user of a call one question, and returns the result of `elicitation/create`.
    ///
    /// # Errors
    ///
    /// If the user cannot be asked, or must not be asked this question.
    pub(crate) async fn ask(
        &self,
        caller: &Arc<Caller>,
        parameters: Option<&RawValue>,
    ) -> Result<Value, Refused> {
        if !self.asks {
            return Err(Refused::Off);
        }
        self.question(vec![Arc::clone(caller)], parameters)?.await
    }

    /// Checks a question, and returns the future that asks it.
    fn question(
        &self,
        callers: Vec<Arc<Caller>>,
        parameters: Option<&RawValue>,
    ) -> Result<impl Future<Output = Result<Value, Refused>> + Send + use<>, Refused> {
        let Some(first) = callers.first() else { return Err(Refused::NoCall) };
        let handler = match &first.handler {
            _ if callers.len() > MAX_CALLERS => return Err(Refused::Ambiguous),
            Some(handler) if callers.iter().all(|caller| caller.is_of_run(first)) => Arc::clone(handler),
            None if callers.len() == 1 => return Err(ElicitationRefusal::Unavailable.into()),
            _ => return Err(Refused::Ambiguous),
        };
        if callers.iter().any(|caller| caller.asked.load(Ordering::Relaxed) >= MAX_OF_CALL) {
            return Err(Refused::TooManyOfCall);
        }
        let tool = (callers.len() == 1).then(|| first.tool.to_string());
        let request = self.request(&first.server, tool, parameters.map_or("{}", RawValue::get))?;
        let is_form = matches!(request.mode, ElicitationMode::Form(_));
        for caller in &callers {
            caller.asked.fetch_add(1, Ordering::Relaxed);
        }
        Ok(async move {
            let _pauses: Vec<_> = callers.iter().map(|caller| caller.patience.pause()).collect();
            let answer = tokio::select! {
                biased;
                _all = join_all(callers.iter().map(|caller| caller.over.cancelled())) => {
                    return Err(ElicitationRefusal::RunOver.into());
                }
                answer = handler(request) => answer?,
            };
            Ok(match answer {
                ElicitationAnswer::Accept(content) if is_form => {
                    json!({ "action": "accept", "content": content })
                }
                ElicitationAnswer::Accept(_) => json!({ "action": "accept" }),
                ElicitationAnswer::Decline => json!({ "action": "decline" }),
                ElicitationAnswer::Cancel => json!({ "action": "cancel" }),
                ElicitationAnswer::Unavailable => return Err(ElicitationRefusal::Unavailable.into()),
            })
        })
    }

    fn request(
        &self,
        server: &str,
        tool: Option<String>,
        parameters: &str,
    ) -> Result<ElicitationRequest, Refused> {
        if parameters.len() > MAX_QUESTION_BYTES {
            return Err(Refused::TooLong(parameters.len()));
        }
        // A small text can become a large tree.
        json::check(parameters, json::budget(parameters.len()))
            .map_err(|_| Refused::TooLong(parameters.len()))?;
        let parameters: Parameters<'_> = serde_json::from_str(parameters).map_err(Refused::Invalid)?;
        let mode = match parameters.mode.as_deref() {
            None | Some("form") => {
                ElicitationMode::Form(Form::from_schema(&parameters.requested_schema.unwrap_or_default())?)
            }
            Some("url") => ElicitationMode::Url(self.address_to_open(&parameters.url.unwrap_or_default())?),
            Some(_) => return Err(Refused::Unsupported),
        };
        Ok(ElicitationRequest::new(server, tool, parameters.message, mode))
    }

    /// The address that the user is asked to open, if the server may send users there. It must have no user name:
    /// `https://bank.example@attacker.example` looks like another host.
    fn address_to_open(&self, address: &str) -> Result<String, Refused> {
        let Some(url) = Url::parse(address).ok().filter(|_| address.len() <= MAX_ADDRESS_BYTES) else {
            return Err(Refused::Address);
        };
        let may_open = match &self.address {
            Some(server) => may_send_to(server, &url),
            // The server is a process on this machine.
            None => Url::parse("http://localhost").is_ok_and(|here| may_send_to(&here, &url)),
        };
        let has_user = !url.username().is_empty() || url.password().is_some();
        if !may_open || has_user || url.host().is_none() {
            return Err(Refused::Address);
        }
        Ok(url.into())
    }
}

/// Whether another question of this id can be open.
fn has_room(open: &HashMap<String, CancellationToken>, key: &str) -> bool {
    open.len() < MAX_OPEN && !open.contains_key(key)
}

/// Removes a question when it is answered or withdrawn.
struct Open {
    questions: Arc<Questions>,
    key: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.questions.open.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests;

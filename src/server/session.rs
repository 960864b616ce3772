//! One client's session: its request handlers and its settings.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, ErrorCode,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::TaskManager;
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;

use super::notifications::Severity;
use super::serve::{Calls, Shared};
use super::{answer, guide, health, resources, tools};
use crate::run::result::Language;
use crate::storage::state::{DefaultScope, StateScope};

/// How long a client may cache the list of tools, in milliseconds. The list never changes during
/// the life of the process, but the next process may have other servers.
const TOOLS_FRESH_MS: u64 = 60 * 60 * 1000;

/// The methods whose parameters rmcp parses. If it cannot parse them, it treats the request as a
/// custom one.
const KNOWN_METHODS: &[&str] = &[
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// A session as rmcp serves it. A panic in a handler becomes an error of its request and affects
/// nothing else.
pub(crate) struct Session {
    /// Handles messages that carry no handler of their own. Messages of HTTP sessions carry one.
    handler: Arc<Handler>,
}

/// Handles a client's requests.
pub(crate) struct Handler {
    pub(crate) shared: Arc<Shared>,
    /// The client's name in the run history.
    pub(crate) owner: String,
    /// Whether this serves several clients that cannot be told apart. A setting of one of them does
    /// not apply to the others, and resources are not listed to them: a run is found only by its
    /// id, which is random.
    is_of_many: bool,
    /// The state scope of runs that name no session.
    pub(crate) default_scope: DefaultScope,
    /// Cancels all runs of this session.
    pub(crate) runs: CancellationToken,
    pub(crate) calls: Arc<Calls>,
    pub(crate) tasks: TaskManager,
    /// When the tasks expire.
    pub(crate) task_ends: Mutex<Vec<Instant>>,
    /// The minimum severity of lines that the client wants, as set by a client of a handshake
    /// revision.
    log: Mutex<Option<Severity>>,
}

impl Session {
    pub(crate) fn new(handler: Arc<Handler>) -> Self {
        Self { handler }
    }

    fn handler_of(&self, context: &RequestContext<RoleServer>) -> Arc<Handler> {
        Arc::clone(context.extensions.get().unwrap_or(&self.handler))
    }
}

/// Awaits a handler that may panic.
async fn caught<T>(handling: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    // After a panic, only locks of the handler are used again, and they do not poison.
    let handled = AssertUnwindSafe(handling).catch_unwind();
    handled.await.unwrap_or_else(|_panic| {
        // The panic hook has logged the location.
        let problem = "the server failed to handle this request; others are not affected";
        Err(ErrorData::internal_error(problem, None))
    })
}

/// Forwards requests to a session's [`Handler`]. Requests that are not listed get rmcp's default
/// answer.
macro_rules! hand_on {
    ($($(#[$attribute:meta])* $method:ident($request:ty) -> $result:ty;)*) => {
        $($(#[$attribute])*
        async fn $method(
            &self,
            request: $request,
            context: RequestContext<RoleServer>,
        ) -> Result<$result, ErrorData> {
            let handler = self.handler_of(&context);
            caught(handler.$method(request, context)).await
        })*
    };
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        self.handler.get_info()
    }

    hand_on! {
        initialize(InitializeRequestParams) -> InitializeResult;
        list_tools(Option<PaginatedRequestParams>) -> ListToolsResult;
        call_tool(CallToolRequestParams) -> CallToolResponse;
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult;
        get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult;
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult;
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        #[expect(
            deprecated,
            reason = "the latest revision deprecates logging, which earlier ones and their clients use"
        )]
        set_level(rmcp::model::SetLevelRequestParams) -> ();
        get_task(GetTaskParams) -> GetTaskResult;
        update_task(UpdateTaskParams) -> ();
        cancel_task(CancelTaskParams) -> ();
        on_custom_request(CustomRequest) -> CustomResult;
    }
}

impl Handler {
    /// Makes the handler of a session. Its runs are cancelled by `runs`, counted in `calls`, and
    /// recorded for `owner`.
    pub(crate) fn new(
        shared: Arc<Shared>,
        owner: String,
        runs: CancellationToken,
        calls: Arc<Calls>,
    ) -> Self {
        Self {
            shared,
            owner,
            is_of_many: false,
            default_scope: DefaultScope::Workspace,
            runs,
            calls,
            tasks: TaskManager::new(),
            task_ends: Mutex::default(),
            log: Mutex::default(),
        }
    }

    /// The same handler, for several clients that cannot be told apart.
    pub(crate) fn of_many(self) -> Self {
        Self { is_of_many: true, default_scope: DefaultScope::Unavailable, ..self }
    }

    /// The same handler with a state scope of its own. No other session ever has the same id.
    pub(crate) fn with_own_state(self, id: &str) -> Self {
        Self { default_scope: DefaultScope::Of(StateScope::client(id)), ..self }
    }

    /// Drops everything that is kept for a client that does not come back.
    pub(crate) fn forget(&self) {
        self.shared.forget(&self.owner);
        if let DefaultScope::Of(scope) = &self.default_scope {
            self.shared.executor.forget_state(scope.clone());
        }
    }

    /// The minimum severity of printed lines to send during `context`'s request. A client of the
    /// stateless revision sends it with each request, other clients set it once.
    pub(crate) fn wanted_lines(&self, context: &RequestContext<RoleServer>) -> Option<Severity> {
        context.meta.log_level().or_else(|| self.log.lock().filter(|_| !self.is_of_many))
    }
}

impl ServerHandler for Handler {
    #[expect(
        deprecated,
        reason = "the latest revision deprecates logging, which earlier ones and their clients use"
    )]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .enable_tasks()
            .build();
        let implementation =
            Implementation::new("cx", env!("CARGO_PKG_VERSION")).with_title("cx code executor");
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(guide::INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        // The negotiated revision, not the requested one: later answers have to use its format.
        context.peer.set_peer_info(request.with_protocol_version(result.protocol_version.clone()));
        Ok(result)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shared.tools.clone()).with_ttl_ms(TOOLS_FRESH_MS))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            tools::EXECUTE_TYPESCRIPT => self.run_script(Language::TypeScript, request, &context).await,
            tools::EXECUTE_PYTHON => self.run_script(Language::Python, request, &context).await,
            tools::HEALTH => {
                let format = self.shared.options.format;
                if let Some(name) = request.arguments.unwrap_or_default().keys().next() {
                    let problem = format!("`health` takes no parameters: `{name}`");
                    return Ok(answer::respond(answer::refusal(
                        format,
                        answer::INVALID_ARGUMENTS,
                        &problem,
                        None,
                    ))
                    .into());
                }
                Ok(answer::respond(answer::data(format, health::report(&self.shared))).into())
            }
            other => {
                let suggestion = crate::tools::names::suggestion(other, "tools", tools::NAMES.into_iter());
                Err(ErrorData::invalid_params(format!("no tool `{other}`{suggestion}"), None))
            }
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(guide::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        guide::prompt(&request.name).map(Into::into)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let history = self.shared.executor.history().filter(|_| !self.is_of_many);
        Ok(ListResourcesResult::with_all_items(resources::list(history, &self.owner)))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri, self.shared.executor.history(), &self.owner).map(Into::into)
    }

    #[expect(
        deprecated,
        reason = "the latest revision deprecates logging, which earlier ones and their clients use"
    )]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.log.lock() = Some(request.level);
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        #[cfg(test)]
        assert!(request.method != "test/panic", "a handler that panics");
        if KNOWN_METHODS.contains(&&*request.method) {
            let problem = format!("the parameters are not those of `{}`", request.method);
            return Err(ErrorData::invalid_params(problem, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("no method `{}`", request.method), None))
    }
}

//! Handles the requests of a session, by method.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestMethod, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};

use super::session::McpSession;
use super::{answer, call, guide, health, resources, tools};
use crate::run::script::Language;
use crate::text::preview;

/// Maximum characters of a name that an error message shows.
const MAX_NAME: usize = 60;

/// How long a client may cache the list of tools, in milliseconds. It names servers, which the
/// configuration may change; clients without a session are not told of that.
const TOOLS_FRESH_MS: u64 = 5 * 60 * 1000;

/// The methods whose parameters rmcp parses. If it cannot parse them, it treats the request as a
/// custom one.
const KNOWN_METHODS: &[&str] = &[
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// Those that the stateless revision has removed.
const METHODS_OF_SESSIONS: &[&str] = &["initialize", "logging/setLevel"];

/// Whether a request is of the stateless revision (2026-07-28) or a later one.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

impl ServerHandler for McpSession {
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
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        let implementation =
            Implementation::new("cx", env!("CARGO_PKG_VERSION")).with_title("cx code executor");
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(self.shared.instructions())
    }

    /// A client of the stateless revision is not told that the list of tools has changed: it looks
    /// again when the list is no longer fresh.
    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        if let Some(tools) = &mut info.capabilities.tools {
            tools.list_changed = None;
        }
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        // The negotiated revision, not the requested one: later answers have to use its format.
        context.peer.set_peer_info(request.with_protocol_version(result.protocol_version.clone()));
        self.announce_changes(&context.peer);
        Ok(result)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Arc::unwrap_or_clone(self.shared.tools());
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(TOOLS_FRESH_MS))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            tools::EXECUTE_TYPESCRIPT => {
                call::run_script(self, Language::TypeScript, request, &context).await
            }
            tools::EXECUTE_PYTHON => call::run_script(self, Language::Python, request, &context).await,
            tools::HEALTH => {
                let format = self.shared.options.format;
                let arguments = request.arguments.unwrap_or_default();
                let Some(name) = arguments.keys().next() else {
                    return Ok(answer::data(format, health::report(&self.shared)).into());
                };
                let problem = format!("`health` takes no parameters: `{}`", preview(name, MAX_NAME));
                let refusal = answer::refusal(format, answer::INVALID_ARGUMENTS, &problem, None);
                // The schema of the report has no fields for an error.
                let mut result = CallToolResult::from(refusal);
                result.structured_content = None;
                Ok(result.into())
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
        let history = self.shared.executor.history().filter(|_| !self.has_many_clients);
        Ok(ListResourcesResult::with_all_items(resources::list(history, &self.client)))
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
        resources::read(&request.uri, self.shared.executor.history(), &self.client).map(Into::into)
    }

    #[expect(
        deprecated,
        reason = "the latest revision deprecates logging, which earlier ones and their clients use"
    )]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_stateless(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.log.lock() = Some(request.level);
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.manager(&request.task_id).get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.manager(&request.task_id).update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.manager(&request.task_id).cancel_task(&request.task_id)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        #[cfg(test)]
        assert!(request.method != "test/panic", "a handler that panics");
        let method = &*request.method;
        let is_known = KNOWN_METHODS.contains(&method)
            || !is_stateless(&context) && METHODS_OF_SESSIONS.contains(&method);
        if is_known {
            let problem = format!("the parameters are not those of `{}`", request.method);
            return Err(ErrorData::invalid_params(problem, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("no method `{}`", request.method), None))
    }
}

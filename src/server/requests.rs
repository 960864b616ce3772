//! Handles the requests of a session, by method.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CustomRequest, CustomResult,
    DiscoverResult, ErrorData, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams,
    GetSkillResult, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
    JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceDirectoryRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::call::{Called, is_stateless};
use super::request_span::ObservedRequest;
use super::session::McpSession;
use super::shared::MAX_SUBSCRIPTIONS;
use super::{
    answer, call, guide, health, interfaces, list_changes, resources, shown, skills, tools, unserved,
    updates, wait,
};
use crate::run::script::Language;
use crate::text::{MAX_SHOWN_NAME, preview};
use crate::tools::names::{SuggestionBudget, suggestion};
use crate::tools::{INTERFACE_SCHEME, INTERFACES, TraceContext};

/// How long a client may cache the list of tools, in milliseconds. The list names servers, which the configuration may
/// change. Clients of the stateless revision are notified of changes only if they subscribe.
const TOOLS_FRESH_MS: u64 = 5 * 60 * 1000;

/// The same for a list that includes upstream tools, which may change at any time.
const DIRECT_TOOLS_FRESH_MS: u64 = 60 * 1000;

/// The methods whose parameters rmcp parses. If it cannot parse them, it treats the request as a
/// custom one.
const KNOWN_METHODS: &[&str] = &[
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/directory/read",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "skills/get",
    "skills/list",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// Methods that the stateless revision has removed.
const METHODS_OF_SESSIONS: &[&str] =
    &["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

impl ServerHandler for McpSession {
    #[expect(
        deprecated,
        reason = "the latest revision deprecates logging, which earlier ones and their clients use"
    )]
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .enable_skills_with_directory_read()
            .build();
        if self.shared.executor.direct_rules().shows_interfaces() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(INTERFACES.to_owned(), JsonObject::new());
        }
        let implementation =
            Implementation::new("cx", env!("CARGO_PKG_VERSION")).with_title("cx code executor");
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(self.shared.instructions())
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let resources = updates::accepted(&self.shared, requested.resource_subscriptions.as_deref());
        Some(list_changes::filter(resources))
    }

    /// The definition of a tool that is shown directly, as far as it is known. Over HTTP, rmcp refuses a call whose
    /// `Mcp-Param-…` headers differ from what the schema (`x-mcp-header`) and the arguments require.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.tools().tool(name).map(|tool| tool.definition().clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.client_of(subscription.request_context());
        let Some(_slot) = self.shared.subscriptions.acquire(client) else {
            let problem = format!("a client may have {MAX_SUBSCRIPTIONS} subscriptions at once");
            return Err(ErrorData::invalid_request(problem, None));
        };
        let ended = self.cancellation(subscription.request_context());
        let _ends_with_this = ended.clone().drop_guard();
        tokio::select! {
            () = list_changes::serve(&self.shared, &subscription, &ended) => Ok(()),
            problem = updates::serve(self, &subscription, &ended) => Err(problem),
        }
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
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let has_interfaces = shown::shows_interfaces(context.client_capabilities().as_ref());
        let list = self.shared.asked_tools(has_interfaces).await;
        let fresh = if list.has_direct() { DIRECT_TOOLS_FRESH_MS } else { TOOLS_FRESH_MS };
        Ok(ListToolsResult::with_all_items(list.list(has_interfaces, !self.has_many_clients))
            .with_ttl_ms(fresh))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let observed = ObservedRequest::begin(&self.shared, &request.name, &context);
        let trace = observed.context();
        let answer = self.answer_call(request, &context, trace).await;
        observed.end(&answer);
        answer
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
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let history = self.shared.executor.history().filter(|_| !self.has_many_clients);
        let mut all = resources::list(history, &self.client);
        all.extend(skills::resources(&self.shared.executor));
        all.extend(interfaces::list(self, &context).await);
        Ok(ListResourcesResult::with_all_items(all))
    }

    async fn list_skills(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        Ok(skills::list(&self.shared.executor))
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        skills::get(&self.shared.executor, &request.uri)
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        skills::directory(&self.shared.executor, &request.uri)
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
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri.starts_with(INTERFACE_SCHEME) {
            return interfaces::read(self, &request.uri, &context).await.map(Into::into);
        }
        if request.uri.starts_with(skills::PREFIX) {
            return skills::read(&self.shared.executor, &request.uri).map(Into::into);
        }
        let history = self.shared.executor.history();
        resources::read_for(&self.client, &request.uri, history, &self.yielded).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        updates::subscribe(self, request.uri, &context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
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
            return Err(unserved::error("logging/setLevel"));
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
        Err(unserved::error(method))
    }
}

impl McpSession {
    /// Answers a call. `trace` is the context of its span.
    async fn answer_call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        trace: Option<TraceContext>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            tools::EXECUTE_TYPESCRIPT => {
                call::run(self, Called::Script(Language::TypeScript), request, context, trace).await
            }
            tools::EXECUTE_PYTHON => {
                call::run(self, Called::Script(Language::Python), request, context, trace).await
            }
            tools::HEALTH => {
                let format = self.shared.options.format;
                let arguments = request.arguments.unwrap_or_default();
                let Some(name) = arguments.keys().next() else {
                    return Ok(answer::data(format, health::report(&self.shared)).into());
                };
                let problem = format!("`health` takes no parameters: `{}`", preview(name, MAX_SHOWN_NAME));
                let refusal = answer::refusal(format, answer::INVALID_ARGUMENTS, &problem, None);
                // The output schema of the report has no fields for an error.
                let mut result = CallToolResult::from(refusal);
                result.structured_content = None;
                Ok(result.into())
            }
            tools::WAIT if self.shared.options.yield_after.is_some() => {
                wait::wait(self, request.arguments.unwrap_or_default(), context).await
            }
            other => {
                let mut list = self.shared.tools();
                if list.tool(other).is_none() {
                    // A client that reconnects may call a tool before it lists tools.
                    list = self.shared.asked_tools(false).await;
                }
                let Some(tool) = list.tool(other) else {
                    let suggestion = suggestion(
                        other,
                        ("tools", "`tools/list` has them"),
                        list.names(),
                        &SuggestionBudget::of_message(),
                    );
                    let shown = preview(other, MAX_SHOWN_NAME);
                    return Err(ErrorData::invalid_params(format!("no tool `{shown}`{suggestion}"), None));
                };
                let called = Called::Tool { server: Arc::clone(&tool.server), tool: Arc::clone(&tool.tool) };
                call::run(self, called, request, context, trace).await
            }
        }
    }
}

//! What rmcp passes requests to: finds the session of each, and catches panics.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, DiscoverResult,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
    GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SubscriptionFilter, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::session::McpSession;

/// Passes each request to its session. A panic becomes an error of its request and affects nothing
/// else.
pub(crate) struct RequestHandler {
    /// The session of messages that carry none. Messages of HTTP sessions carry theirs.
    session: Arc<McpSession>,
}

impl RequestHandler {
    pub(crate) fn new(session: Arc<McpSession>) -> Self {
        Self { session }
    }

    fn session_of(&self, context: &RequestContext<RoleServer>) -> Arc<McpSession> {
        Arc::clone(context.extensions.get().unwrap_or(&self.session))
    }
}

/// Awaits a handler that may panic.
async fn caught<T>(handling: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    // After a panic, only locks of the session are used again, and they do not poison.
    let handled = AssertUnwindSafe(handling).catch_unwind();
    handled.await.unwrap_or_else(|_panic| {
        // The panic hook has logged the location.
        let problem = "the server failed to handle this request; others are not affected";
        Err(ErrorData::internal_error(problem, None))
    })
}

/// Forwards requests to their session. Requests that are not listed get rmcp's default answer.
macro_rules! forward {
    ($($(#[$attribute:meta])* $method:ident($request:ty) -> $result:ty;)*) => {
        $($(#[$attribute])*
        async fn $method(
            &self,
            request: $request,
            context: RequestContext<RoleServer>,
        ) -> Result<$result, ErrorData> {
            let session = self.session_of(&context);
            caught(session.$method(request, context)).await
        })*
    };
}

impl ServerHandler for RequestHandler {
    fn get_info(&self) -> ServerConfig {
        self.session.get_info()
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let session = self.session_of(&context);
        caught(session.discover(context)).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.session.accepted_subscription_filter(requested)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let session = self.session_of(subscription.request_context());
        caught(session.listen(subscription)).await
    }

    forward! {
        initialize(InitializeRequestParams) -> InitializeResult;
        list_tools(Option<PaginatedRequestParams>) -> ListToolsResult;
        call_tool(CallToolRequestParams) -> CallToolResponse;
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult;
        get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult;
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult;
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        list_skills(Option<PaginatedRequestParams>) -> ListSkillsResult;
        get_skill(GetSkillRequestParams) -> GetSkillResult;
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

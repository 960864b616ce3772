//! The request handler for rmcp: finds the session of each request, catches panics, and informs observers.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, DiscoverResult,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
    GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceDirectoryRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::answer_size::AnswerSize;
use super::audited::{AuditedRequest, call_code, error_code};
use super::json_size::json_bytes;
use super::session::{McpSession, RequestSession};
use crate::conventions::TOOLS_CALL;

/// Passes each request to its session. A panic becomes an error of its request and affects nothing
/// else.
pub(crate) struct RequestHandler {
    /// The session of messages that carry none. Messages over HTTP carry their session.
    session: Arc<McpSession>,
}

impl RequestHandler {
    pub(crate) fn new(session: Arc<McpSession>) -> Self {
        Self { session }
    }

    fn session_of(&self, context: &RequestContext<RoleServer>) -> Arc<McpSession> {
        let of_request =
            || RequestSession::from_extensions(&context.extensions).map(|request| &request.session);
        Arc::clone(context.extensions.get().or_else(of_request).unwrap_or(&self.session))
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

/// Awaits the handler of a request, and records how it was answered: with `code` if it failed.
async fn answered<T>(
    audited: AuditedRequest,
    handling: impl Future<Output = Result<T, ErrorData>>,
    code: impl FnOnce(&Result<T, ErrorData>) -> Option<String>,
) -> Result<T, ErrorData> {
    let answer = caught(handling).await;
    audited.end(|| code(&answer));
    answer
}

/// Forwards requests to their session, and reports them to observers by their protocol name.
/// Requests that are not listed get rmcp's default answer.
macro_rules! forward {
    ($($(#[$attribute:meta])* $name:literal: $method:ident($request:ty) -> $result:ty;)*) => {
        $($(#[$attribute])*
        async fn $method(
            &self,
            request: $request,
            context: RequestContext<RoleServer>,
        ) -> Result<$result, ErrorData> {
            let session = self.session_of(&context);
            let audited = AuditedRequest::begin(&session, $name, None, &context);
            answered(audited, session.$method(request, context), error_code).await
        })*
    };
}

impl ServerHandler for RequestHandler {
    fn get_info(&self) -> ServerConfig {
        self.session.get_info()
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let session = self.session_of(&context);
        let audited = AuditedRequest::begin(&session, "server/discover", None, &context);
        answered(audited, session.discover(context), error_code).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session_of(&context);
        let audited = AuditedRequest::begin(&session, TOOLS_CALL, Some(&request.name), &context);
        let size = AnswerSize::from_extensions(&context.extensions);
        let answer = answered(audited, session.call_tool(request, context), call_code).await;
        if let (Some(size), Ok(CallToolResponse::Complete(result))) = (size, &answer) {
            size.note(json_bytes(result));
        }
        answer
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let session = self.session_of(&context);
        let audited = AuditedRequest::begin(&session, &request.method, None, &context);
        answered(audited, session.on_custom_request(request, context), error_code).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.session.accepted_subscription_filter(requested)
    }

    /// The list of tools is the same for all sessions.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.session.get_tool(name)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let session = self.session_of(subscription.request_context());
        // Observers are informed when the subscription has ended.
        let context = subscription.request_context();
        let audited = AuditedRequest::begin(&session, "subscriptions/listen", None, context);
        answered(audited, session.listen(subscription), error_code).await
    }

    forward! {
        "initialize": initialize(InitializeRequestParams) -> InitializeResult;
        "tools/list": list_tools(Option<PaginatedRequestParams>) -> ListToolsResult;
        "prompts/list": list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult;
        "prompts/get": get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        "resources/list": list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult;
        "resources/templates/list": list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult;
        "resources/directory/read": read_resource_directory(ReadResourceDirectoryRequestParams) -> ListResourcesResult;
        "resources/read": read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        #[expect(deprecated, reason = "the latest revision has removed it, and earlier ones have it")]
        "resources/subscribe": subscribe(SubscribeRequestParams) -> ();
        #[expect(deprecated, reason = "the latest revision has removed it, and earlier ones have it")]
        "resources/unsubscribe": unsubscribe(UnsubscribeRequestParams) -> ();
        "skills/list": list_skills(Option<PaginatedRequestParams>) -> ListSkillsResult;
        "skills/get": get_skill(GetSkillRequestParams) -> GetSkillResult;
        #[expect(
            deprecated,
            reason = "the latest revision deprecates logging, which earlier ones and their clients use"
        )]
        "logging/setLevel": set_level(rmcp::model::SetLevelRequestParams) -> ();
        "tasks/get": get_task(GetTaskParams) -> GetTaskResult;
        "tasks/update": update_task(UpdateTaskParams) -> ();
        "tasks/cancel": cancel_task(CancelTaskParams) -> ();
    }
}

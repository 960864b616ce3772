//! The span and the metrics of a call of one of cx's tools, and of a run over REST.

use std::time::Instant;

use http::HeaderMap;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData};
use rmcp::service::RequestContext;

use super::request_id::ClientRequestId;
use super::shared::Shared;
#[cfg(feature = "http")]
use crate::conventions::REST_RUN;
use crate::conventions::{self, PIPE, TCP, TOOL_ERROR, TOOLS_CALL};
use crate::telemetry::requests::{RequestFailure, RequestSpan, TracedRequest};
use crate::tools::TraceContext;

/// The outcome of a request that was dropped before its end.
const CANCELLED: RequestFailure = RequestFailure::Type("cancelled");

/// A call of one of cx's tools, or a run over REST, in traces and metrics. It ends when this is dropped.
pub(crate) struct ObservedRequest {
    span: Option<Box<dyn RequestSpan>>,
    method: &'static str,
    transport: &'static str,
    began: Instant,
    failure: Option<RequestFailure>,
}

impl ObservedRequest {
    /// Begins the span of a call, if traces are exported.
    pub(crate) fn begin(shared: &Shared, tool: &str, context: &RequestContext<RoleServer>) -> Self {
        let parts = context.extensions.get::<http::request::Parts>();
        let transport = if parts.is_some() { TCP } else { PIPE };
        let span = shared.executor.request_tracer().map(|tracer| {
            let own_id = context.extensions.get::<ClientRequestId>().map(|id| id.0.clone());
            let id = own_id.unwrap_or_else(|| context.id.to_string());
            let version = context.protocol_version().map(|version| version.to_string());
            let header = |name: &str| parts.and_then(|parts| text_header(&parts.headers, name));
            tracer.begin(&TracedRequest {
                method: TOOLS_CALL,
                tool: shared.tools().names().any(|known| known == tool).then_some(tool),
                request_id: Some(&id),
                protocol_version: version.as_deref(),
                session_id: header("mcp-session-id"),
                transport,
                parent: TraceContext::from_meta(&context.meta),
                // The context of the HTTP request is a link and not the parent, because one HTTP request can carry
                // several MCP requests.
                link: header("traceparent")
                    .and_then(|parent| TraceContext::parse(parent, header("tracestate"), None)),
            })
        });
        Self { span, method: TOOLS_CALL, transport, began: Instant::now(), failure: Some(CANCELLED) }
    }

    /// Begins the span of a run over REST. Its parent is the context of the HTTP request, which carries only this run.
    #[cfg(feature = "http")]
    pub(crate) fn begin_rest(shared: &Shared, headers: &HeaderMap) -> Self {
        let header = |name: &str| text_header(headers, name);
        let span = shared.executor.request_tracer().map(|tracer| {
            tracer.begin(&TracedRequest {
                method: REST_RUN,
                tool: None,
                request_id: None,
                protocol_version: None,
                session_id: None,
                transport: TCP,
                parent: header("traceparent")
                    .and_then(|parent| TraceContext::parse(parent, header("tracestate"), header("baggage"))),
                link: None,
            })
        });
        Self { span, method: REST_RUN, transport: TCP, began: Instant::now(), failure: Some(CANCELLED) }
    }

    /// Records how a run over REST was answered.
    #[cfg(feature = "http")]
    pub(crate) fn end_rest(mut self, is_error: bool) {
        self.failure = is_error.then_some(RequestFailure::Type(TOOL_ERROR));
    }

    /// The trace context for the run.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.span.as_ref().map(|span| span.context())
    }

    /// Records how the call was answered.
    pub(crate) fn end(mut self, answer: &Result<CallToolResponse, ErrorData>) {
        self.failure = match answer {
            Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
                Some(RequestFailure::Type(TOOL_ERROR))
            }
            Ok(_) => None,
            Err(error) => Some(RequestFailure::JsonRpc(error.code.0)),
        };
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        if let (Some(span), Some(failure)) = (&mut self.span, self.failure) {
            span.fail(failure);
        }
        let mut labels = vec![
            metrics::Label::from_static_parts(conventions::LABEL_METHOD, self.method),
            metrics::Label::from_static_parts(conventions::LABEL_TRANSPORT, self.transport),
        ];
        if let Some(failure) = self.failure {
            labels.push(metrics::Label::from_static_parts(conventions::LABEL_ERROR, failure.metrics_type()));
        }
        metrics::histogram!(conventions::SERVER_OPERATION, labels).record(self.began.elapsed());
    }
}

/// A client's session in the metrics. It is recorded when this is dropped.
pub(crate) struct CountedSession {
    transport: &'static str,
    began: Instant,
}

impl CountedSession {
    pub(crate) fn begin(transport: &'static str) -> Self {
        Self { transport, began: Instant::now() }
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        metrics::histogram!(conventions::SERVER_SESSION, conventions::LABEL_TRANSPORT => self.transport)
            .record(self.began.elapsed());
    }
}

fn text_header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

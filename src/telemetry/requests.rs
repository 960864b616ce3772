//! Spans of clients' requests, which the server begins and ends. OpenTelemetry implements them, if it is enabled.

use crate::conventions::json_rpc_error_type;
use crate::tools::trace_context::TraceContext;

/// Begins spans of requests.
pub(crate) trait RequestTracer: Send + Sync + 'static {
    /// Begins the span of a request. It ends when it is dropped.
    fn begin(&self, request: &TracedRequest<'_>) -> Box<dyn RequestSpan>;
}

/// The span of a request.
pub(crate) trait RequestSpan: Send {
    /// The trace context for work that the request causes.
    fn context(&self) -> TraceContext;

    /// Records that the request failed.
    fn fail(&mut self, failure: RequestFailure);
}

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFailure {
    /// It has no answer, or an answer that reports an error.
    Type(&'static str),
    /// The answer is a JSON-RPC error with this code.
    JsonRpc(i32),
}

impl RequestFailure {
    /// The value of `error.type` in metrics.
    pub(crate) const fn metrics_type(self) -> &'static str {
        match self {
            Self::Type(name) => name,
            Self::JsonRpc(code) => json_rpc_error_type(code),
        }
    }
}

/// A request of a client.
pub(crate) struct TracedRequest<'a> {
    pub(crate) method: &'static str,
    /// The tool of a call, if the server lists it.
    pub(crate) tool: Option<&'a str>,
    /// The request's id, if it is the client's own.
    pub(crate) request_id: Option<&'a str>,
    pub(crate) protocol_version: Option<&'a str>,
    pub(crate) session_id: Option<&'a str>,
    /// `pipe` or `tcp`.
    pub(crate) transport: &'static str,
    /// The context in `_meta`.
    pub(crate) parent: Option<TraceContext>,
    /// The context of the HTTP request that carried it.
    pub(crate) link: Option<TraceContext>,
}

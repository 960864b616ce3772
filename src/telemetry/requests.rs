//! Spans of clients' requests, as the server begins and ends them. What makes them is OpenTelemetry,
//! if it is on.

use crate::tools::trace_context::TraceContext;

/// Begins spans of requests.
pub(crate) trait RequestTracer: Send + Sync + 'static {
    /// Begins the span of a request. It ends when it is dropped.
    fn begin(&self, request: &TracedRequest<'_>) -> Box<dyn RequestSpan>;
}

/// The span of a request.
pub(crate) trait RequestSpan: Send {
    /// The context of what the request causes.
    fn context(&self) -> TraceContext;

    /// Says that the request failed, with an error of few values.
    fn fail(&mut self, error_type: &'static str);
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

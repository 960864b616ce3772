//! Reports each request of a client to the executor's observers, including requests that run nothing.

use std::time::Instant;

use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData};
use rmcp::service::RequestContext;

use super::session::{McpSession, client_name};
use crate::executor::Executor;
use crate::run::observer::ClientRequest;

/// The code of a request that ends without an answer.
const CANCELLED: &str = "CANCELLED";

/// A request of a client. It is reported to the observers when this is dropped.
pub(crate) struct AuditedRequest {
    /// `None` if the executor has no observers.
    report: Option<RequestReport>,
}

struct RequestReport {
    executor: Executor,
    method: String,
    tool: Option<String>,
    run_id: Option<String>,
    client: String,
    client_name: Option<String>,
    began: Instant,
    code: Option<String>,
}

impl AuditedRequest {
    /// Begins an MCP request. `tool` is the tool of a call.
    pub(crate) fn begin(
        session: &McpSession,
        method: &str,
        tool: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        let name = || client_name(context);
        Self::new(&session.shared.executor, method, tool, session.client_of(context), name)
    }

    /// Begins a request of `client`, which calls itself `name`.
    pub(crate) fn new(
        executor: &Executor,
        method: &str,
        tool: Option<&str>,
        client: &str,
        name: impl FnOnce() -> Option<String>,
    ) -> Self {
        let report = executor.has_observers().then(|| RequestReport {
            executor: executor.clone(),
            method: method.to_owned(),
            tool: tool.map(str::to_owned),
            run_id: None,
            client: client.to_owned(),
            client_name: name(),
            began: Instant::now(),
            code: Some(CANCELLED.to_owned()),
        });
        Self { report }
    }

    /// Sets the run that the request is about. Observers bound the id's length.
    pub(crate) fn set_run(&mut self, id: &str) {
        if let Some(report) = &mut self.report {
            report.run_id = Some(id.to_owned());
        }
    }

    /// Sets how the request was answered: with a code if it failed.
    pub(crate) fn end(mut self, code: impl FnOnce() -> Option<String>) {
        if let Some(report) = &mut self.report {
            report.code = code();
        }
    }
}

impl Drop for AuditedRequest {
    fn drop(&mut self) {
        let Some(report) = &self.report else { return };
        report.executor.observe_request(&ClientRequest {
            method: &report.method,
            tool: report.tool.as_deref(),
            run_id: report.run_id.as_deref(),
            client: &report.client,
            client_name: report.client_name.as_deref(),
            code: report.code.as_deref(),
            duration: report.began.elapsed(),
        });
    }
}

/// The code of a JSON-RPC error, which is a number.
pub(crate) fn error_code<T>(answer: &Result<T, ErrorData>) -> Option<String> {
    answer.as_ref().err().map(|error| error.code.0.to_string())
}

/// The code of a failed call: that of its answer's error, or of the JSON-RPC error.
pub(crate) fn call_code(answer: &Result<CallToolResponse, ErrorData>) -> Option<String> {
    let Ok(CallToolResponse::Complete(result)) = answer else { return error_code(answer) };
    if result.is_error != Some(true) {
        return None;
    }
    let content = result.structured_content.as_ref();
    let code = content.and_then(|content| content["error"]["code"].as_str());
    Some(code.unwrap_or("ERROR").to_owned())
}

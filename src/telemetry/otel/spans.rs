//! The spans: one for each request of a client, each run, each call and each model request.

use std::collections::HashMap;
use std::sync::Arc;

use opentelemetry::trace::{
    Link, Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags,
    TraceId, TraceState, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::conventions as names;
use crate::run::observer::{
    Answered, BeforeEffect, ModelAnswered, ModelSending, ObservedRun, RunEvent, RunObserver, Sending, at_once,
};
use crate::run::result::{ErrorCode, ExecuteResult};
use crate::run::script::Language;
use crate::telemetry::masked;
use crate::telemetry::requests::{RequestFailure, RequestSpan, RequestTracer, TracedRequest};
use crate::tools::trace_context::TraceContext;
use crate::tools::{RemoteServer, ServerRequest, ToolErrorCode};

/// Maximum bytes of a call's arguments or result in an attribute, if these are recorded. Secrets are masked.
const MAX_CONTENT: usize = 16 * 1024;

/// Maximum characters of an attribute's value that comes from others.
const MAX_NAME: usize = 200;

/// Maximum number of tools for which a run caches the common attributes of spans. More tools can be called.
const MAX_CALL_KINDS: usize = 32;

/// Number of further attributes of a call: arguments, result, id, revision, error and code.
const MORE_ATTRIBUTES: usize = 6;

/// Makes spans from the events that it observes.
pub(crate) struct SpanMaker {
    tracer: SdkTracer,
    /// Whether arguments and results of calls are recorded.
    records_content: bool,
    open: Mutex<OpenSpans>,
}

/// The spans that have not ended. Admission bounds the runs, and their limits the calls in flight.
#[derive(Default)]
struct OpenSpans {
    runs: HashMap<RunKey, OpenRun>,
    calls: HashMap<(RunKey, CallTarget, u64), Span>,
}

/// The address of a run, which is unique because observers keep the run as long as it has events.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RunKey(usize);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CallTarget {
    Tool,
    Model,
}

struct OpenRun {
    span: Span,
    /// Its context, with the client's baggage.
    context: TraceContext,
    /// The context as the parent of the spans of calls.
    parent: Context,
    /// The tools that it has called, at most [`MAX_CALL_KINDS`].
    call_kinds: Vec<Arc<CallKind>>,
}

/// The common attributes of the spans of all calls of one tool.
struct CallKind {
    server: String,
    tool: String,
    remote: Option<RemoteServer>,
    name: String,
    span_kind: SpanKind,
    attributes: Vec<KeyValue>,
}

impl OpenRun {
    /// The common attributes for the span of this call.
    fn call_kind(&mut self, sending: &Sending<'_>) -> Arc<CallKind> {
        // Each request has a different address or name.
        if is_request(sending) {
            return Arc::new(CallKind::new(sending));
        }
        if let Some(known) = self.call_kinds.iter().find(|kind| kind.is_of(sending)) {
            return Arc::clone(known);
        }
        let kind = Arc::new(CallKind::new(sending));
        if self.call_kinds.len() < MAX_CALL_KINDS {
            self.call_kinds.push(Arc::clone(&kind));
        }
        kind
    }
}

impl CallKind {
    fn new(sending: &Sending<'_>) -> Self {
        let tool: Arc<str> = preview(sending.tool).into();
        let mut attributes = vec![shared(names::CX_SERVER, sending.server)];
        let (name, span_kind) = match (&sending.remote, is_request(sending)) {
            (_, true) => {
                attributes.push(KeyValue::new(names::MCP_METHOD_NAME, Arc::clone(&tool)));
                if let Some(uri) = sending.arguments.string("uri") {
                    attributes.push(shared(names::MCP_RESOURCE_URI, uri));
                }
                let prompt = sending.arguments.string("name").map(preview);
                let name =
                    prompt.as_ref().map_or_else(|| tool.to_string(), |prompt| format!("{tool} {prompt}"));
                attributes.extend(prompt.map(|prompt| KeyValue::new(names::GEN_AI_PROMPT_NAME, prompt)));
                (name, SpanKind::Client)
            }
            (Some(_), false) => {
                attributes.push(KeyValue::new(names::MCP_METHOD_NAME, names::TOOLS_CALL));
                (format!("{} {tool}", names::TOOLS_CALL), SpanKind::Client)
            }
            // A function of the embedder, which is not a request of the protocol.
            (None, false) => (format!("{} {tool}", names::EXECUTE_TOOL), SpanKind::Internal),
        };
        if !is_request(sending) {
            attributes.push(KeyValue::new(names::GEN_AI_TOOL_NAME, tool));
            attributes.push(KeyValue::new(names::GEN_AI_OPERATION_NAME, names::EXECUTE_TOOL));
        }
        if let Some(remote) = &sending.remote {
            attributes.push(KeyValue::new(names::NETWORK_TRANSPORT, remote.transport));
            if remote.transport == names::TCP {
                attributes.push(KeyValue::new(names::NETWORK_PROTOCOL_NAME, "http"));
            }
            if let Some(address) = &remote.address {
                attributes.push(shared(names::SERVER_ADDRESS, address));
            }
            if let Some(port) = remote.port {
                attributes.push(KeyValue::new(names::SERVER_PORT, i64::from(port)));
            }
        }
        let (server, tool) = (sending.server.to_owned(), sending.tool.to_owned());
        Self { server, tool, remote: sending.remote.clone(), name, span_kind, attributes }
    }

    fn is_of(&self, sending: &Sending<'_>) -> bool {
        self.tool == sending.tool && self.server == sending.server && self.remote == sending.remote
    }
}

impl SpanMaker {
    pub(crate) fn new(tracer: SdkTracer, records_content: bool) -> Self {
        Self { tracer, records_content, open: Mutex::default() }
    }

    fn start_run(&self, run: &Arc<ObservedRun>, source: &str) {
        let language = run.language.map_or("none", Language::as_str);
        let attributes = vec![
            KeyValue::new(names::CX_RUN_ID, run.id.clone()),
            KeyValue::new(names::CX_RUN_LANGUAGE, language),
            KeyValue::new(names::CX_RUN_SOURCE_SHA256, hex::encode(Sha256::digest(source))),
        ];
        let builder =
            SpanBuilder::from_name(names::RUN_SPAN).with_kind(SpanKind::Internal).with_attributes(attributes);
        let span = self.tracer.build_with_context(builder, &parent_context(run.trace.as_ref()));
        let baggage = run.trace.as_ref().and_then(|trace| trace.baggage.clone());
        let context = trace_context(span.span_context(), baggage);
        let parent = Context::new().with_remote_span_context(span.span_context().clone());
        let open = OpenRun { span, context, parent, call_kinds: Vec::new() };
        self.open.lock().runs.insert(key(run), open);
    }

    fn end_run(&self, run: &Arc<ObservedRun>, result: Option<&ExecuteResult>, code: Option<ErrorCode>) {
        let Some(mut open) = self.open.lock().runs.remove(&key(run)) else { return };
        let span = &mut open.span;
        if let Some(result) = result {
            let usage = &result.usage;
            span.set_attributes([
                KeyValue::new(names::CX_RUN_CPU_TIME, usage.cpu_time.as_secs_f64()),
                KeyValue::new(names::CX_RUN_QUEUE_TIME, usage.queue_time.as_secs_f64()),
                KeyValue::new(names::CX_RUN_MEMORY, integer(usage.memory_bytes as u64)),
                KeyValue::new(names::CX_RUN_TOOL_CALLS, integer(usage.tool_calls)),
                KeyValue::new(names::CX_RUN_TOOL_RESULT_BYTES, integer(usage.tool_result_bytes)),
            ]);
        }
        if let Some(code) = code {
            fail(span, code.as_str());
        }
        span.end();
    }

    fn start_call(&self, run: &Arc<ObservedRun>, sending: &Sending<'_>) {
        let (parent, kind) = match self.open.lock().runs.get_mut(&key(run)) {
            Some(open) => (open.parent.clone(), open.call_kind(sending)),
            None => (Context::new(), Arc::new(CallKind::new(sending))),
        };
        let mut attributes = Vec::with_capacity(kind.attributes.len() + MORE_ATTRIBUTES);
        attributes.extend_from_slice(&kind.attributes);
        if self.records_content && !is_request(sending) {
            let arguments = masked::json_text(&sending.arguments.text(), MAX_CONTENT);
            attributes.push(KeyValue::new(names::GEN_AI_TOOL_CALL_ARGUMENTS, arguments));
        }
        let builder = SpanBuilder::from_name(kind.name.clone())
            .with_kind(kind.span_kind.clone())
            .with_attributes(attributes);
        let span = self.tracer.build_with_context(builder, &parent);
        self.open.lock().calls.insert((key(run), CallTarget::Tool, sending.call), span);
    }

    fn end_call(&self, run: &Arc<ObservedRun>, answered: &Answered<'_>) {
        let span = self.open.lock().calls.remove(&(key(run), CallTarget::Tool, answered.call));
        let Some(mut span) = span else { return };
        if let Some(sent) = answered.sent {
            span.set_attribute(KeyValue::new(names::JSONRPC_REQUEST_ID, preview(&sent.request_id)));
            if let Some(version) = &sent.protocol_version {
                let version =
                    if version.len() > MAX_NAME { preview(version).into() } else { Arc::clone(version) };
                span.set_attribute(KeyValue::new(names::MCP_PROTOCOL_VERSION, version));
            }
        }
        match (answered.result, answered.json_rpc_code) {
            (Err(_), Some(code)) => fail_with_code(&mut span, code),
            (Ok(result), _) if self.records_content => {
                let result = masked::json_text(result.text(), MAX_CONTENT);
                span.set_attribute(KeyValue::new(names::GEN_AI_TOOL_CALL_RESULT, result));
            }
            (Ok(_), _) => {}
            (Err(ToolErrorCode::ToolError), None) => fail(&mut span, names::TOOL_ERROR),
            (Err(code), None) => fail(&mut span, code.as_str()),
        }
        span.end();
    }

    fn start_model_request(&self, run: &Arc<ObservedRun>, sending: &ModelSending<'_>) {
        let mut attributes = vec![
            KeyValue::new(names::GEN_AI_OPERATION_NAME, names::CHAT),
            KeyValue::new(names::GEN_AI_PROVIDER_NAME, preview(names::gen_ai_provider(sending.provider))),
        ];
        let mut name = names::CHAT.to_owned();
        if let Some(model) = sending.model.map(preview) {
            name = format!("{name} {model}");
            attributes.push(KeyValue::new(names::GEN_AI_REQUEST_MODEL, model));
        }
        // The conventions define this attribute for streamed answers only.
        if sending.is_stream {
            attributes.push(KeyValue::new(names::GEN_AI_REQUEST_STREAM, true));
        }
        let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Client).with_attributes(attributes);
        let span = self.tracer.build_with_context(builder, &self.run_context(run));
        self.open.lock().calls.insert((key(run), CallTarget::Model, sending.request), span);
    }

    fn end_model_request(&self, run: &Arc<ObservedRun>, answered: &ModelAnswered<'_>) {
        let span = self.open.lock().calls.remove(&(key(run), CallTarget::Model, answered.request));
        let Some(mut span) = span else { return };
        if let Some(model) = answered.model {
            span.set_attribute(KeyValue::new(names::GEN_AI_RESPONSE_MODEL, preview(model)));
        }
        let usage = [
            (names::GEN_AI_USAGE_INPUT_TOKENS, answered.input_tokens),
            (names::GEN_AI_USAGE_OUTPUT_TOKENS, answered.output_tokens),
        ];
        for (name, tokens) in usage {
            if let Some(tokens) = tokens {
                span.set_attribute(KeyValue::new(name, integer(tokens)));
            }
        }
        if let Some(reason) = answered.finish_reason {
            let reasons = Value::Array(vec![opentelemetry::StringValue::from(preview(reason))].into());
            span.set_attribute(KeyValue::new(names::GEN_AI_RESPONSE_FINISH_REASONS, reasons));
        }
        if let Err(code) = answered.result {
            fail(&mut span, &preview(code));
        }
        span.end();
    }

    fn run_context(&self, run: &Arc<ObservedRun>) -> Context {
        self.open.lock().runs.get(&key(run)).map_or_else(Context::new, |open| open.parent.clone())
    }

    /// The context of the span of a call, for the receiver and for a script that the call runs.
    fn call_context(&self, run: &Arc<ObservedRun>, call: u64) -> Option<TraceContext> {
        let open = self.open.lock();
        let span = open.calls.get(&(key(run), CallTarget::Tool, call))?.span_context();
        let Some(run) = open.runs.get(&key(run)) else { return Some(trace_context(span, None)) };
        let span_id = u64::from_be_bytes(span.span_id().to_bytes());
        Some(TraceContext { span_id, flags: span.trace_flags().to_u8(), ..run.context.clone() })
    }
}

impl RunObserver for SpanMaker {
    fn observe(&self, run: &Arc<ObservedRun>, event: &RunEvent<'_>) {
        match event {
            RunEvent::Started { source, .. } => self.start_run(run, source),
            RunEvent::Ended { result, code, .. } => self.end_run(run, *result, *code),
            RunEvent::Sending(sending) => self.start_call(run, sending),
            RunEvent::Answered(answered) => self.end_call(run, answered),
            RunEvent::ModelSending(sending) => self.start_model_request(run, sending),
            RunEvent::ModelAnswered(answered) => self.end_model_request(run, answered),
            _ => {}
        }
    }

    fn before_effect<'a>(&'a self, run: &'a Arc<ObservedRun>, event: &'a RunEvent<'a>) -> BeforeEffect<'a> {
        let context = match event {
            RunEvent::Sending(sending) => self.call_context(run, sending.call),
            _ => None,
        };
        at_once(Ok(context))
    }
}

impl RequestTracer for SpanMaker {
    fn begin(&self, request: &TracedRequest<'_>) -> Box<dyn RequestSpan> {
        let mut attributes = vec![
            KeyValue::new(names::MCP_METHOD_NAME, request.method),
            KeyValue::new(names::NETWORK_TRANSPORT, request.transport),
        ];
        if request.transport == names::TCP {
            attributes.push(KeyValue::new(names::NETWORK_PROTOCOL_NAME, "http"));
        }
        let mut name = request.method.to_owned();
        if let Some(tool) = request.tool {
            name = format!("{name} {tool}");
            attributes.push(KeyValue::new(names::GEN_AI_TOOL_NAME, tool.to_owned()));
            attributes.push(KeyValue::new(names::GEN_AI_OPERATION_NAME, names::EXECUTE_TOOL));
        }
        let others = [
            (names::JSONRPC_REQUEST_ID, request.request_id),
            (names::MCP_PROTOCOL_VERSION, request.protocol_version),
            (names::MCP_SESSION_ID, request.session_id),
        ];
        for (key, value) in others {
            if let Some(value) = value {
                attributes.push(KeyValue::new(key, preview(value)));
            }
        }
        let mut builder =
            SpanBuilder::from_name(name).with_kind(SpanKind::Server).with_attributes(attributes);
        if let Some(link) = &request.link {
            builder = builder.with_links(vec![Link::with_context(span_context(link))]);
        }
        let span = self.tracer.build_with_context(builder, &parent_context(request.parent.as_ref()));
        let baggage = request.parent.as_ref().and_then(|parent| parent.baggage.clone());
        Box::new(OpenRequest { span, baggage })
    }
}

/// Ends its span when it is dropped, as spans of the SDK do.
struct OpenRequest {
    span: Span,
    baggage: Option<Arc<str>>,
}

impl RequestSpan for OpenRequest {
    fn context(&self) -> TraceContext {
        trace_context(self.span.span_context(), self.baggage.clone())
    }

    fn fail(&mut self, failure: RequestFailure) {
        match failure {
            RequestFailure::Type(name) => fail(&mut self.span, name),
            RequestFailure::JsonRpc(code) => fail_with_code(&mut self.span, code),
        }
    }
}

/// Marks a span as failed. It gets no description, because messages may contain secrets.
fn fail(span: &mut Span, error_type: &str) {
    span.set_attribute(KeyValue::new(names::ERROR_TYPE, error_type.to_owned()));
    span.set_status(Status::error(""));
}

/// Marks the span of a request that was answered with this JSON-RPC error as failed.
fn fail_with_code(span: &mut Span, code: i32) {
    let code = code.to_string();
    fail(span, &code);
    span.set_attribute(KeyValue::new(names::RPC_RESPONSE_STATUS_CODE, code));
}

fn key(run: &Arc<ObservedRun>) -> RunKey {
    RunKey(Arc::as_ptr(run).addr())
}

/// Whether the call is a request of the protocol other than a call of a tool.
fn is_request(sending: &Sending<'_>) -> bool {
    ServerRequest::METHODS.contains(&sending.tool)
}

/// An attribute whose text is shared by spans.
fn shared(name: &'static str, text: &str) -> KeyValue {
    KeyValue::new(name, Arc::<str>::from(preview(text)))
}

/// The parent of a span.
fn parent_context(context: Option<&TraceContext>) -> Context {
    match context {
        Some(context) => Context::new().with_remote_span_context(span_context(context)),
        None => Context::new(),
    }
}

fn span_context(context: &TraceContext) -> SpanContext {
    let state = context.state.as_deref().and_then(|state| state.parse::<TraceState>().ok());
    SpanContext::new(
        TraceId::from(context.trace_id),
        SpanId::from(context.span_id),
        TraceFlags::new(context.flags),
        true,
        state.unwrap_or_default(),
    )
}

fn trace_context(span: &SpanContext, baggage: Option<Arc<str>>) -> TraceContext {
    let state = span.trace_state().header();
    TraceContext {
        trace_id: u128::from_be_bytes(span.trace_id().to_bytes()),
        span_id: u64::from_be_bytes(span.span_id().to_bytes()),
        flags: span.trace_flags().to_u8(),
        state: (!state.is_empty()).then(|| state.into()),
        baggage,
    }
}

fn preview(text: &str) -> String {
    crate::text::preview(text, MAX_NAME)
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

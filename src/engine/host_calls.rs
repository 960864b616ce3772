//! The host interface of a run whose context is in this process: host calls take text, call
//! [`ExecutionContext`], and return text.

mod documentation;
pub(crate) mod files;
mod help;
pub(crate) mod query;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::executor::block_on;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use serde_json::{Value, json as json_value};
use tokio_util::sync::CancellationToken;

use self::query::Query;
use crate::engine::host::{Answer, RunHost, RunTape};
use crate::files::RunFiles;
use crate::json::{self, Json, TreeError};
use crate::run::call_terms::CallTerms;
use crate::run::calls::resolve::ToolName;
use crate::run::context::{ExecutionContext, Purpose};
use crate::run::errors::over;
use crate::run::limits::Limits;
use crate::run::recording::{GuestClock, Request};
use crate::run::result::LogLevel;
use crate::run::script::Language;
use crate::run::tape::{Performed, Tape, Wait};
use crate::run::time_zone::TimeZone;
use crate::tools::catalog::ResolvedTool;
use crate::tools::caught::caught;
use crate::tools::usage::Notation;
use crate::tools::{Progress, ServerRequest, ToolError, ToolErrorCode};

impl RunHost for ExecutionContext {
    fn exceeds_fuel(&self, used: u64) -> bool {
        self.limits().fuel.is_some_and(|fuel| used > fuel)
    }

    fn language(&self) -> Language {
        self.script.language
    }

    fn script_name(&self) -> &str {
        &self.script.name
    }

    fn input(&self) -> Option<&Json> {
        self.script.input.as_ref()
    }

    fn limits(&self) -> Limits {
        Self::limits(self)
    }

    fn max_limits(&self) -> Limits {
        Self::max_limits(self)
    }

    fn server_names(&self) -> Vec<Arc<str>> {
        Self::server_names(self)
    }

    fn time_zone(&self) -> TimeZone {
        Self::time_zone(self)
    }

    fn clock_resolution(&self) -> Duration {
        Self::clock_resolution(self)
    }

    fn deadline(&self) -> Instant {
        Self::deadline(self)
    }

    fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    fn files(&self) -> &Arc<RunFiles> {
        Self::files(self)
    }

    fn has_network(&self) -> bool {
        self.may_fetch()
    }

    fn is_check(&self) -> bool {
        matches!(self.purpose(), Purpose::Check { .. })
    }

    fn depth(&self) -> usize {
        Self::depth(self)
    }

    fn tenant(&self) -> Option<String> {
        // These clients cannot be told apart and must not share a worker: each run is a tenant of
        // its own.
        static STRANGERS: AtomicU64 = AtomicU64::new(0);
        match &self.script.client {
            Some(client) if self.script.client_is_many => {
                Some(format!("{client} {}", STRANGERS.fetch_add(1, Ordering::Relaxed)))
            }
            client => client.clone(),
        }
    }

    fn compute_elsewhere(&self, is_computing: bool) {
        self.turn.compute_elsewhere(is_computing);
    }

    fn tape(&self) -> Option<Arc<dyn RunTape>> {
        Self::tape(self).map(|tape| Arc::clone(tape) as Arc<dyn RunTape>)
    }

    fn call(
        self: Arc<Self>,
        name: ToolName,
        arguments: String,
        terms: CallTerms,
    ) -> BoxFuture<'static, Answer> {
        let is_python = self.script.language == Language::Python;
        let text = move |value: Json| if is_python { value.into_python_text() } else { value.into_text() };
        let call = move |context: &Arc<Self>, name, arguments, terms| {
            caught(PROGRAM, Self::call(context, name, arguments, terms).map_ok(text)).boxed()
        };
        let Some(tape) = Self::tape(&self) else {
            return call(&self, name, arguments, terms);
        };
        let request = match &name {
            ToolName::Pair { server, tool } => {
                Request::Tool { server: server.clone(), tool: tool.clone(), arguments: arguments.clone() }
            }
            ToolName::Full(name) => Request::FullName { name: name.clone(), arguments: arguments.clone() },
        };
        // The terms are not recorded: a replay has the answer that they led to.
        let performed = tape.perform(request, || call(&self, name, arguments, terms));
        delivered(self, performed).boxed()
    }

    fn query(self: Arc<Self>, request: &str) -> BoxFuture<'static, Answer> {
        let text = request;
        let request = json::check(text, json::budget(text.len()))
            .and_then(|_cost| Ok(serde_json::from_str::<Query>(text)?));
        let Some(tape) = Self::tape(&self) else {
            return answer_query(self, request, text.len()).boxed();
        };
        match &request {
            Ok(Query::Timer { delay }) => self.timer(tape, *delay).boxed(),
            // The answers tell the script nothing, so they are not recorded. Neither are the end of a call and the time
            // for its answer: what its script got instead of an answer is.
            Ok(Query::Progress { .. } | Query::CancelCall { .. } | Query::LimitCall { .. }) => {
                answer_query(self, request, text.len()).boxed()
            }
            // Python's files are in the interpreter, and a replay makes the same ones.
            Ok(Query::FileBlock { .. }) if self.script.language == Language::Python => {
                answer_query(self, request, text.len()).boxed()
            }
            _ => {
                let recorded = Request::Query { text: text.to_owned() };
                let performed =
                    tape.perform(recorded, || answer_query(Arc::clone(&self), request, text.len()).boxed());
                delivered(self, performed).boxed()
            }
        }
    }

    fn tool_names(self: Arc<Self>, server: String) -> BoxFuture<'static, Result<Vec<String>, ToolError>> {
        let listing = async move {
            if Self::tape(&self).is_none() {
                let asking = Arc::clone(&self);
                let tools = self.in_runtime(async { asking.tools(&server).await }).await?;
                return Ok(tools.iter().map(|tool| tool.tool.to_string()).collect());
            }
            let query = json_value!({ "kind": "names", "server": server }).to_string();
            let names = RunHost::query(self, &query).await?;
            serde_json::from_str(&names)
                .map_err(|error| ToolError::new(ToolErrorCode::UpstreamProtocol, error.to_string()))
        };
        caught(PROGRAM, listing).boxed()
    }

    fn log(&self, level: LogLevel, text: String) {
        Self::log(self, level, text);
    }

    fn emit(&self, block: &str) -> Answer {
        let most = self.limits().result_bytes;
        if block.len() > most {
            // Checked before the block is parsed.
            let message = format!("a script may emit {most} bytes in all");
            return Err(ToolError::new(ToolErrorCode::ResultTooLarge, message));
        }
        let block = Json::parse(block)
            .map_err(|error| ToolError::new(ToolErrorCode::InvalidArguments, format!("emit: {error}")))?;
        Self::emit(self, block)?;
        Ok(String::new())
    }

    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>) {
        block_on(self.turn.compute(future));
    }
}

impl RunTape for Tape {
    fn open_turn(&self) {
        Self::open_turn(self);
    }

    fn open_wait(&self, timeout_ms: Option<f64>) -> Wait {
        Self::open_wait(self, timeout_ms)
    }

    fn close_wait(&self, has_delivered: bool) {
        Self::close_wait(self, has_delivered);
    }

    fn read_clock(&self, clock: GuestClock, real: u64) -> u64 {
        Self::read_clock(self, clock, real)
    }

    fn elapsed(&self) -> Duration {
        Self::elapsed(self)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        Self::fill_random(self, bytes);
    }

    fn set_blocking(&self, is_blocking: bool) {
        Self::set_blocking(self, is_blocking);
    }
}

/// What has panicked, if nothing nearer knows it: cx itself, or a function of the embedder that must not.
const PROGRAM: &str = "the program that runs scripts";

/// Answers a query. `bytes` is the length of its text.
fn answer_query(
    context: Arc<ExecutionContext>,
    request: Result<Query, TreeError>,
    bytes: usize,
) -> impl Future<Output = Result<String, ToolError>> + Send {
    let runtime = Arc::clone(&context);
    let answer = runtime.in_runtime(async move {
        let request = request.map_err(|error| ToolError::unreadable(&error))?;
        let _held = request.is_held_here().then(|| context.hold_uncounted(bytes)).transpose()?;
        tokio::select! {
            biased;
            answer = perform_query(&context, request) => answer,
            () = context.cancel.cancelled() => Err(over()),
        }
    });
    caught(PROGRAM, answer)
}

/// Waits for an answer of the tape, and prints the lines that belong to it.
async fn delivered(context: Arc<ExecutionContext>, performed: Performed) -> Result<String, ToolError> {
    let item = performed.item();
    let answer = performed.await;
    let lines = context.tape().map(|tape| tape.lines(item));
    for (level, line) in lines.into_iter().flatten() {
        context.log(level, line);
    }
    answer
}

/// A request to a server. Its future is on the heap, because it is large and rare.
fn request<'a>(
    context: &'a Arc<ExecutionContext>,
    server: &'a str,
    request: ServerRequest,
) -> BoxFuture<'a, Result<String, ToolError>> {
    Box::pin(context.request(server, request))
}

async fn perform_query(context: &Arc<ExecutionContext>, query: Query) -> Result<String, ToolError> {
    let answer = match query {
        // These return JSON text.
        Query::Run { id } => return Box::pin(context.earlier_run(&id)).await,
        Query::State { call } => return context.state(call).await,
        // On the heap: ten thousand futures of other kinds may wait, and each would be as large as these.
        Query::Llm { call } => return Box::pin(context.llm(call)).await,
        Query::Fetch { call } => return Box::pin(context.fetch(call)).await,
        Query::File { call } => return Box::pin(files::perform(context, call)).await,
        Query::FileBlock { file } => {
            return Box::pin(files::block(context.files(), context.limits().result_bytes, file)).await;
        }
        Query::Describe { server } => return documentation::server(context, &server),
        Query::Documentation(wanted) => return documentation::tools(context, wanted).await,
        Query::ListResources { server } => {
            return request(context, &server, ServerRequest::ListResources).await;
        }
        Query::ReadResource { server, uri } => {
            return request(context, &server, ServerRequest::ReadResource { uri }).await;
        }
        Query::ListPrompts { server } => return request(context, &server, ServerRequest::ListPrompts).await,
        Query::GetPrompt { server, name, arguments } => {
            return request(context, &server, ServerRequest::GetPrompt { name, arguments }).await;
        }
        Query::Schema { name } => {
            let tool = context.tool(ToolName::of_text(&name)).await?;
            let notation = notation(context.script.language);
            let schema = |tool: ResolvedTool| tool.schema_with_declaration(notation).into_text();
            return Ok(tool.map_or_else(|| "null".to_owned(), schema));
        }
        Query::Help { topic } => help::text(context, topic.as_deref()).await.map(Value::from),
        Query::Names { server } => {
            let tools = context.tools(&server).await?;
            Ok(tools.iter().map(|tool| Value::from(&*tool.tool)).collect())
        }
        Query::Server { server } => {
            let (name, _details) = context.server_details(&server)?;
            Ok(Value::from(&*name))
        }
        Query::Search { query, server, limit, detail } => {
            return search(context, &query, server.as_deref(), limit, &detail).await;
        }
        Query::Progress { done, total, message } => {
            let mut report = Progress::new(done);
            (report.total, report.message) = (total, message);
            context.report(report).map(|()| Value::Null)
        }
        Query::CancelCall { id } => {
            context.end_call(id);
            Ok(Value::Null)
        }
        Query::LimitCall { id, timeout_ms } => {
            context.limit_call(id, timeout_ms);
            Ok(Value::Null)
        }
        Query::Timer { .. } => Err(ToolError::new(
            ToolErrorCode::InvalidArguments,
            "only a run that is recorded asks for timers",
        )),
        Query::Servers => {
            Ok(context.configured_server_names().iter().map(|name| Value::from(&**name)).collect())
        }
    };
    answer.map(|value| value.to_string())
}

/// Searches for tools. Returns JSON text: an array with as much about each as `detail` says.
async fn search(
    context: &Arc<ExecutionContext>,
    query: &str,
    server: Option<&str>,
    limit: Option<f64>,
    detail: &str,
) -> Result<String, ToolError> {
    // `discoverMCPTools` has no limit and wants the tools that match, and only those.
    let or_nearest = limit.is_some() || detail != "usage";
    let tools = context.search(query, server, documentation::saturated(limit), or_nearest).await?;
    let described: Value = match detail {
        // Schemas are kept as text. Parsed trees would take about 12 times the memory.
        "usage" | "full" => {
            let notation = (detail == "usage").then(|| notation(context.script.language));
            let schemas = context.describe_each(&tools, |tool| tool.schema(notation))?;
            return serde_json::to_string(&schemas)
                .map_err(|error| ToolError::new(ToolErrorCode::UpstreamProtocol, error.to_string()));
        }
        "descriptions" => context.describe_each(&tools, ResolvedTool::summary)?.into(),
        "names" => context.describe_each(&tools, ResolvedTool::name_and_server)?.into(),
        other => {
            let message = format!("expected detail `names`, `descriptions`, `usage` or `full`: `{other}`");
            return Err(ToolError::unreadable(&message));
        }
    };
    Ok(described.to_string())
}

/// How tools are written for scripts of a language.
fn notation(language: Language) -> Notation {
    match language {
        Language::TypeScript => Notation::TypeScript,
        Language::Python => Notation::Python,
    }
}

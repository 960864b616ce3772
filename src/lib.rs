//! An in-process code executor for AI agents.
//!
//! If an agent gets dozens of MCP tools directly, their schemas fill its context, and so does every
//! result. With cx the agent writes a script instead: the script finds and calls any tool of any
//! MCP server, filters the results in place, and returns only what the agent needs.
//!
//! TypeScript is transpiled with swc and runs in a fresh V8 isolate inside this process. Python is
//! CPython, compiled to WebAssembly, with a fresh interpreter for every run. A tool call is a
//! function call into Rust: no proxy, no port, no child process for a run unless [`Isolation`] says so.
//!
//! ```
//! use cx::{Executor, Outcome};
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//!
//! #[derive(Deserialize)]
//! struct City {
//!     name: String,
//! }
//!
//! #[derive(Serialize)]
//! struct Forecast {
//!     city: String,
//!     celsius: i32,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Tools come from MCP servers (`mcp_config_file`, `mcp_server`) or, as here, from Rust.
//! let schema = json!({
//!     "type": "object",
//!     "description": "Tomorrow's weather in a city",
//!     "properties": { "name": { "type": "string" } },
//! });
//! let executor = Executor::builder()
//!     .tool("weather.forecast", schema, |city: City| async move {
//!         if city.name.is_empty() {
//!             return Err("a city needs a name");
//!         }
//!         Ok(Forecast { celsius: 10 + city.name.len() as i32, city: city.name })
//!     })
//!     .build()?;
//!
//! let result = executor
//!     .run_ts(
//!         r#"
//!         interface Forecast { city: string; celsius: number }
//!
//!         const names = ["Oslo", "Lisbon", "Reykjavik"];
//!         const forecasts: Forecast[] = await Promise.all(names.map((name) => tools.weather.forecast({ name })));
//!         const warmest = forecasts.sort((a, b) => b.celsius - a.celsius)[0];
//!         console.log(`asked for ${forecasts.length} cities`);
//!         return warmest.city;
//!         "#,
//!     )
//!     .await?;
//!
//! assert_eq!(result.outcome, Outcome::Returned(json!("Reykjavik").into()));
//! assert_eq!(result.printed(), "asked for 3 cities");
//! assert_eq!(result.tool_calls.len(), 3);
//!
//! // A failed script is a value, not an `Err`.
//! let result = executor.run_ts("await weather.forecast({ name: '' })").await?;
//! let error = result.error().expect("the tool refuses");
//! assert_eq!(error.message, "a city needs a name");
//! assert_eq!(error.line, Some(1));
//! # Ok(())
//! # }
//! ```
//!
//! # Main types
//!
//! * An [`Executor`] lives as long as the process. It keeps isolates and interpreters warm, owns the
//!   threads and the connections to servers, and limits how many runs execute at once. It is cheap to
//!   clone and works from any tokio runtime or without one.
//! * A [`Script`] is a source and the options of its run: input, [`Limits`], allowed and denied
//!   tools, a cancellation token, a listener for its output.
//! * A run lives from [`Executor::run`] to its [`ExecuteResult`]. Each run has its own isolate or
//!   interpreter, which is never used for another run. [`Executor::start`] returns a [`Run`] instead: a handle
//!   that cancels the run and follows its [`RunEvents`]. [`Executor::check`] compiles a script and
//!   runs nothing, [`Executor::run_blocking`] is for programs without async code.
//! * A [`ToolDispatcher`] lists and calls the tools of one or more servers. There is one for native
//!   tools, one for MCP servers and one for saved scripts; embedders can add others.
//!
//! # Tools and servers
//!
//! Besides those of the builder, tools and servers can be added and removed while the executor
//! runs ([`Executor::add_tool`], [`Executor::add_server`], [`Executor::remove_tool`],
//! [`Executor::remove_server`]), and for one run ([`Script::tool`], [`Script::server`]). A run keeps
//! the tools that it started with. [`ToolRules`] say which of them scripts may call; combining rules
//! only restricts. A [`CallHook`] sees each call before and after it, and can change or refuse it.
//!
//! The repository has programs that do this: `examples/embedding/tools.rs` for tools in Rust,
//! `examples/embedding/servers.rs` for MCP servers, `examples/embedding/hooks.rs` for hooks.
//! `cargo run --example embedding` runs them.
//!
//! # Results and errors
//!
//! A script's failure is a value: [`Outcome::Failed`] with a [`ScriptError`], whose [`ErrorCode`]
//! the host sets. [`ExecuteResult::value_as`] is the script's value as a Rust type. A failure that
//! the embedder has to act on is an [`Error`]. A failed tool call is a [`ToolError`], which scripts
//! catch as `McpToolError`.
//!
//! # Approval and dry runs
//!
//! [`ExecutorBuilder::ask`] names the tools whose calls need approval, and
//! [`ExecutorBuilder::approver`] sets the function that asks for it (`examples/embedding/approver.rs`).
//! The [`ApprovalRequest`] that is shown is exactly the call that is sent. [`Script::dry_run`] makes
//! no call that could change anything and lists the calls that it would have made.
//!
//! # Servers that ask the user
//!
//! A server can ask the user during a call, with a form or an address to open. The questions go to
//! [`ExecutorBuilder::elicitor`] or [`Script::elicitor`], within the same bounds as approvals. Without
//! either, and for a server with [`McpServer::elicitation`] off, they are refused.
//!
//! # State between runs
//!
//! Nothing of a script's memory is kept. With [`ExecutorBuilder::state`] scripts store JSON in a
//! [`StateStore`], for a workspace or for a session ([`Script::session`]). With
//! [`ExecutorBuilder::keep_runs`] an executor's [`History`] holds the records of finished runs,
//! each for its client ([`Script::client`]).
//!
//! # Language models
//!
//! With [`ExecutorBuilder::llm`] scripts can ask a language model, in `llm.ask`: a provider's, or
//! whatever implements [`LanguageModel`] ([`ExecutorBuilder::language_model`],
//! [`Script::client_model`]). Each run has a budget of calls and tokens ([`LlmOptions`],
//! [`Script::sampling`]), and [`ExecuteResult::sampling`] reports it.
//!
//! # Cancellation
//!
//! Dropping the future of [`Executor::run`] stops the script and cancels its calls, including those
//! at the servers. [`Script::cancel_with`] does the same and keeps the result: the output, the
//! calls that were made, and those in flight. [`Executor::close`] ends all runs and all servers.
//! docs/library.md has tables of what ends what, and of what a panic in a function of the embedder ends.
//!
//! # What is absent
//!
//! Scripts have no environment, processes, packages, threads or WebAssembly: the functions do not
//! exist. Of files they have a scratch directory in memory, and what a person grants
//! ([`Grants`]). In-process isolation keeps a script away from the host's data and bounds
//! its resources; it does not protect against a bug in V8 itself. SECURITY.md lists what else is
//! not promised.
//!
//! # Types of other crates
//!
//! Some signatures have types of other crates. cx re-exports these crates, so that a program uses the
//! versions that cx is built with: [`Executor::add_tool`] takes a `cx::serde_json::Value`. A program
//! with dependencies of its own on compatible versions has the same types. An incompatible version of
//! a re-exported crate comes with an incompatible version of cx only. Which of their features are on
//! may change with any version.
//!
//! # Types that grow
//!
//! What cx makes and programs read is `#[non_exhaustive]`: any version can add fields and variants.
//! Options that programs write, such as [`Limits`], are plain data: name the fields that matter, and
//! take the others from the type's default where it has one.
//!
//! # Features
//!
//! All are on by default, and each can be used alone. With `typescript` alone there are about half as
//! many dependencies as with all.
//!
//! * `typescript`: TypeScript and JavaScript in V8. Needs V8's static library.
//! * `python`: Python in WebAssembly. Its machine code is made by the build, for the target.
//! * `compile`: a compiler for Python, for runs with a limit of fuel, and for machines that cannot use
//!   that code: those whose processor lacks SSE4.2, those whose address space is limited, and those of
//!   another architecture than the build's. Implies `python`.
//! * `process`: runs in worker processes, [`Isolation::Process`], on Linux.
//! * `mcp`: upstream MCP servers, and configuration files.
//! * `oauth`: signing in to upstream servers over HTTP. Implies `mcp`.
//! * `state`: what scripts keep between runs, in SQLite.
//! * `audit`: the audit trail, [`audit`].
//! * `llm`: language models that scripts can ask, with their providers and the content filter.
//! * `fetch`: requests of scripts to hosts that a person has granted ([`Grants::net`]).
//! * `server`: [`server::Server`], over pipes. It offers the languages whose features are on.
//! * `http`: the same server over HTTP. Implies `server`.
//! * `nats`: runs in worker processes of other machines, over a NATS server, [`Isolation::Nats`], on
//!   Linux. Implies `process`.
//! * `otel`: [`OpenTelemetry`], over OTLP. Implies `mcp`, whose HTTP client it uses.
//! * `cli`: the `cx` command. Implies all others.
//!
//! A script in a language whose feature is off ends with [`Error::InvalidOptions`].

// docs.rs builds with nightly, and then says of each item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "cli"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "an optional part is what uses it; with all parts this is checked"
    )
)]

#[cfg(feature = "mcp")]
mod config;
mod conventions;
mod durations;
mod engine;
mod error;
mod executor;
mod files;
#[cfg(test)]
#[path = "../fuzz/entries/mod.rs"]
mod fuzzing;
#[cfg(test)]
mod growth;
mod json;
mod lines;
mod llm;
mod machine;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(all(feature = "nats", target_os = "linux"))]
mod nats;
mod net;
mod pauses;
mod queue;
#[cfg(any(feature = "mcp", feature = "server"))]
mod rate;
mod run;
#[cfg(feature = "server")]
pub mod server;
mod steps;
mod storage;
mod sync;
mod telemetry;
pub mod text;
mod tools;

/// What `cx setup` does to the files of MCP clients.
#[cfg(feature = "cli")]
pub use config::setup;
#[cfg(feature = "mcp")]
pub use config::{
    AuditSettings, CONFIG_SCHEMA, Config, ConfigError, ConfigFile, ConfigFileStatus, ConfigFiles,
    ConfigOrigin, ConfigWarning, ConfigWarningCode, Directories, Discovery, LoadOptions, SaveRequest,
    ScriptLibrary, ScriptProblem, ScriptsError, SkippedServer, TrustRequest, TrustStore, TrustedFile,
    WatchedFiles,
};
/// Upper bounds in seconds of the buckets of the histograms `mcp_…_duration_seconds`.
pub use conventions::BUCKETS as MCP_DURATION_BUCKETS;
/// Upper bounds of the buckets of the histograms `gen_ai_client_operation_duration_seconds` and
/// `gen_ai_client_token_usage`.
pub use conventions::{MODEL_DURATION_BUCKETS, MODEL_TOKEN_BUCKETS};
pub use engine::backend::{
    Backend, BackendDirectoryEntry, BackendFileError, BackendRequest, BackendResponse, BackendRun,
};
pub use engine::compile::CompileProgress;
pub use engine::pool::PoolStats;
pub use error::{Error, OptionName, RuleList};
#[cfg(feature = "mcp")]
pub use executor::{ConfigChanges, ConfigFailure, ConfigStatus};
pub use executor::{
    Executor, ExecutorBuilder, QueueEvent, QueueOptions, Replay, Run, RunEvent, RunEvents, RunStats,
    Versions, worker_process,
};
/// What hooks and dispatchers return.
pub use futures::future::BoxFuture;
pub use json::Json;
pub use llm::{
    ApiKey, FilterMode, LanguageModel, LlmAccess, LlmOptions, ModelAnswer, ModelError, ModelErrorKind,
    ModelMessage, ModelPiece, ModelProvider, ModelRequest, ModelRole, ModelStream, ModelUsage, ProviderKind,
};
pub use machine::{CgroupV2, Machine, MemorySource, SandboxFeatures, check_machine};
/// OAuth sign-in to HTTP servers.
#[cfg(feature = "oauth")]
pub use mcp::oauth as auth;
#[cfg(feature = "mcp")]
pub use mcp::{
    HttpKind, HttpTransport, McpServer, McpTransport, OAuth, Root, ServerState, ServerStats, StdioTransport,
};
#[cfg(any(feature = "mcp", feature = "server"))]
pub use rate::RateLimit;
pub use run::finding::{Checked, Finding, FindingCode, Severity};
pub use run::grants::{Grants, HostPattern, InvalidHostPattern, Permissions};
pub use run::history::{History, HistoryLimits, RunRecord};
pub use run::hooks::{CallHook, HookedCall};
pub use run::isolation::{Isolation, NatsWorkers, RemoteWorkers, SharedTenant, WorkerProcesses};
pub use run::limits::Limits;
pub use run::recording::{Recording, RecordingError};
pub use run::result::{
    ErrorCode, ExecuteResult, LogLevel, Outcome, Output, PlannedCall, Refusal, ReturnedShape, ScriptError,
    ToolCallRecord, ToolCallStatus, Usage,
};
pub use run::sampling::{
    ContentViolation, ModelCall, ModelCallStatus, SamplingMetrics, SamplingOptions, SamplingReport,
};
pub use run::script::{CallProgress, Language, Script};
pub use run::tape::Difference;
pub use run::tool_call::{CallResult, ToolCall};
#[cfg(feature = "state")]
pub use storage::state::{StateScope, StateStore, StateUsage};
#[cfg(feature = "audit")]
pub use telemetry::audit;
pub use telemetry::options::OpenTelemetryOptions;
#[cfg(feature = "otel")]
pub use telemetry::otel::OpenTelemetry;
pub use telemetry::run_trace::{RunTrace, TracedCall, TracedOutput};
/// Cancels runs: see [`Script::cancel_with`].
pub use tokio_util::sync::CancellationToken;
pub use tools::{
    Approval, ApprovalRequest, AskAnnotation, AskReason, DamagedPins, DirectTools, ElicitationAnswer,
    ElicitationHandler, ElicitationMode, ElicitationRefusal, ElicitationRequest, FieldKind, Form, FormError,
    FormField, FormOption, KnownServer, PrivateAddresses, Progress, ProgressListener, RemoteServer,
    RequestContext, ResourceUpdates, SavedScript, Schema, ScriptCaller, SentRequest, ServerDetails,
    ServerFailure, ServerFailureKind, ServerRequest, SkillChange, StoredScript, Tool, ToolChange,
    ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolKind, ToolList, ToolMode, ToolRequest,
    ToolResult, ToolRules, TraceContext, UnknownLanguage, UnmatchedPattern, UnsavedScript,
};
/// The crate of the addresses of servers.
#[cfg(feature = "mcp")]
#[doc(no_inline)]
pub use url;
/// The crates whose types are in signatures: see [Types of other crates](crate#types-of-other-crates).
#[doc(no_inline)]
pub use {futures, metrics, serde, serde_json, tokio};

/// How the `cx` command checks, reads and replaces files. Other programs do not need it.
///
/// It is public because the command is a crate of its own, and has one home because a check of owners must not exist
/// twice: docs/decisions/0024.
#[cfg(feature = "cli")]
pub mod command {
    pub use crate::storage::named::NamedFile;
    pub use crate::storage::ownership::Ownership;
    pub use crate::storage::regular::{open_regular, read_regular};
    pub use crate::storage::replace::replace_file;
}

/// The examples of a page of the book: they compile, as those of this documentation do.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../docs/library.md")]
mod library_page {}

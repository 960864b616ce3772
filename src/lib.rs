//! An in-process code executor for AI agents.
//!
//! An agent that is shown dozens of MCP tools drowns in their schemas, and every result goes through
//! its context. Behind cx it writes a script instead: the script finds and calls any tool of any MCP
//! server, filters the answers where they are, and returns only what matters.
//!
//! TypeScript is transpiled with swc and runs in a fresh V8 isolate inside this process. A tool call
//! is a function call into Rust: no proxy, no port, no child process for a run.
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
//! // A script that fails is not an executor that fails.
//! let result = executor.run_ts("await weather.forecast({ name: '' })").await?;
//! let error = result.error().expect("the tool refuses");
//! assert_eq!(error.message, "a city needs a name");
//! assert_eq!(error.line, Some(1));
//! # Ok(())
//! # }
//! ```
//!
//! # The nouns
//!
//! * An [`Executor`] lives as long as the process. It keeps isolates warm, owns the connections to
//!   servers and the threads, and admits runs. It is cheap to clone and works from any tokio runtime
//!   or none.
//! * A [`Script`] is a source with what its run may use: input, [`Limits`], allowed and denied tools,
//!   a token that cancels it, a listener for its output.
//! * A run lives from [`Executor::run`] to its [`ExecuteResult`]. Each has an isolate of its own that
//!   no other run ever sees.
//! * A [`ToolDispatcher`] lists and calls the tools of some servers. There is one for native tools
//!   and one for MCP servers; yours can be a third.
//!
//! # Results and errors
//!
//! What a script does wrong is a value: [`Outcome::Failed`] with a [`ScriptError`], whose
//! [`ErrorCode`] the host decides. What an embedder has to act on is an [`Error`]. A failed tool call
//! is a [`ToolError`], which scripts catch as `McpToolError`.
//!
//! # Asking first, and trying out
//!
//! [`ExecutorBuilder::ask`] names the tools about which a person is asked before each call, and
//! [`ExecutorBuilder::approver`] is who asks them. What they are shown, an [`ApprovalRequest`], is what is sent.
//! [`Script::dry_run`] makes no call that could change anything and lists what it would have called.
//!
//! # What stays between runs
//!
//! Nothing of the script itself. With [`ExecutorBuilder::state`] scripts keep JSON in a [`StateStore`], for a workspace
//! or for a session ([`Script::session`]); with [`ExecutorBuilder::keep_runs`] an executor's [`History`] has what runs
//! left behind, each for its [`Script::owner`].
//!
//! # Cancellation
//!
//! Dropping the future of [`Executor::run`] stops the script and cancels its calls, upstream too.
//! [`Script::cancel_with`] does the same and keeps the result: what was printed, which calls were
//! made, which was in flight. [`Executor::close`] ends all runs and all servers.
//!
//! # What is not here
//!
//! Scripts have no files, network, environment, processes, packages, threads or WebAssembly: the
//! functions are not refused but absent. In-process isolation keeps a script away from the host's
//! data and bounds what it uses; it does not protect against a bug in V8 itself.
//! SECURITY.md says what else it does not promise.
//!
//! # Features
//!
//! * `cli` (default): the `cx` command. Without it the library has no argument parser and no
//!   terminal code.

mod config;
mod engine;
mod error;
mod executor;
#[cfg(test)]
#[path = "../fuzz/entries/mod.rs"]
mod fuzzing;
mod json;
mod lines;
mod mcp;
mod run;
pub mod server;
mod storage;
mod sync;
pub mod text;
mod tools;

pub use config::{
    CONFIG_SCHEMA, Config, ConfigError, ConfigFile, ConfigFileStatus, ConfigOrigin, ConfigWarning,
    ConfigWarningCode, Directories, LoadOptions, SkippedServer, TrustRequest, TrustStore, TrustedFile,
};
pub use engine::pool::PoolStats;
pub use engine::python::compiled::CompileProgress;
pub use error::Error;
pub use executor::{Executor, ExecutorBuilder, RunStats};
pub use json::Json;
/// Signing in to servers behind an address.
pub use mcp::oauth as auth;
pub use mcp::{
    HttpKind, HttpTransport, McpServer, McpTransport, OAuth, RateLimit, ServerState, ServerStats,
    StdioTransport,
};
pub use run::history::{History, HistoryLimits, KeptRun};
pub use run::limits::Limits;
pub use run::result::{
    CallProgress, ErrorCode, ExecuteResult, Language, LogLevel, Outcome, Output, PlannedCall, Refusal,
    Script, ScriptError, ToolCallRecord, ToolCallStatus, Usage,
};
pub use storage::state::{StateScope, StateStore, StateUsage};
/// Cancels runs: see [`Script::cancel_with`].
pub use tokio_util::sync::CancellationToken;
pub use tools::{
    Approval, ApprovalRequest, AskAnnotation, AskReason, KnownServer, Progress, ProgressListener, Schema,
    ServerRequest, Tool, ToolChange, ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList,
    ToolRequest, ToolResult,
};

//! The executor: admits runs, gives them what they need, and submits them to an engine.
//!
//! It owns what outlives a run (`core.rs`): settings, servers, engines, stores, and the runtime of the tools. `builder.rs`
//! makes it. `runs.rs` runs scripts, `nested.rs` the scripts that they call, and `call.rs` calls without a script;
//! `admission.rs` bounds how many there are at once, and `reconfigure.rs` changes the settings while they go on.

mod admission;
mod builder;
mod call;
mod changes;
mod checks;
mod core;
mod isolation;
#[cfg(all(feature = "process", any(feature = "http", feature = "nats"), target_os = "linux"))]
mod lending;
mod metrics;
#[cfg_attr(not(all(feature = "nats", target_os = "linux")), path = "executor/no_nats.rs")]
mod nats_lending;
#[cfg_attr(not(all(feature = "nats", target_os = "linux")), path = "executor/no_nats_shared.rs")]
mod nats_shared;
#[cfg(all(feature = "nats", target_os = "linux"))]
mod nats_worker;
mod nested;
mod origin;
mod prepared;
mod queue;
#[cfg(feature = "mcp")]
mod reconfigure;
#[cfg(all(feature = "process", feature = "mcp", target_os = "linux"))]
mod remote_worker;
mod replay;
mod run;
mod runs;
mod runtime;
mod servers;
mod settings;
mod start;
mod tools;
mod untrusted;
#[cfg_attr(not(feature = "mcp"), path = "executor/no_upstream.rs")]
mod upstream;
mod versions;
/// What of the public interface needs MCP servers.
#[cfg(feature = "mcp")]
mod with_upstream;
#[cfg(all(feature = "process", any(feature = "mcp", feature = "http"), target_os = "linux"))]
pub(crate) mod worker_upgrade;

pub use self::admission::RunStats;
pub use self::builder::ExecutorBuilder;
pub use self::core::Executor;
pub use self::isolation::worker_process;
pub use self::queue::{QueueEvent, QueueOptions};
#[cfg(feature = "mcp")]
pub use self::reconfigure::ConfigChanges;
pub use self::replay::Replay;
pub use self::run::{Run, RunEvent, RunEvents};
#[cfg(feature = "mcp")]
pub use self::settings::{ConfigFailure, ConfigStatus};
pub use self::versions::Versions;

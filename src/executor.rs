//! The executor: admits runs, gives them what they need, and submits them to an engine.

mod admission;
mod builder;
mod core;
mod metrics;
mod origin;
#[cfg(feature = "mcp")]
mod reconfigure;
mod run;
mod runtime;
mod servers;
mod settings;
mod untrusted;
#[cfg_attr(not(feature = "mcp"), path = "executor/no_upstream.rs")]
mod upstream;
/// What of the public interface needs MCP servers.
#[cfg(feature = "mcp")]
mod with_upstream;

pub use self::admission::RunStats;
pub use self::builder::ExecutorBuilder;
pub use self::core::Executor;
#[cfg(feature = "mcp")]
pub use self::reconfigure::ConfigChanges;
pub use self::run::{Run, RunEvent, RunEvents};
#[cfg(feature = "mcp")]
pub use self::settings::{ConfigFailure, ConfigStatus};

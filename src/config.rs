//! Configuration: reads files and environment variables and resolves them to the values that the
//! rest of the crate takes. No other module of the library reads configuration.
//!
//! Sources in order of precedence: files named on the command line; `.cx.json` and `.mcp.json` in
//! the workspace; the user's own `~/.config/cx/config.json`; the files of other clients that
//! `import` names. `docs/config.md` is the complete reference for users.
//!
//! A file in a workspace is untrusted. Until a user has trusted exactly its content, it
//! can only restrict what is allowed: it starts no server and allows nothing more.

mod amounts;
mod audit;
mod clients;
mod code_executor;
mod describe;
mod document;
mod entry;
mod environment;
mod error;
mod execution_mode;
mod expand;
mod file;
mod foreign;
mod formats;
mod goose;
mod grants;
mod limits;
mod llm;
mod llm_settings;
mod load;
mod mask;
mod mcpproxy;
mod mcpproxy_entry;
mod merge;
mod oauth_entry;
mod open_telemetry;
mod own;
mod parsed;
mod reader;
mod references;
mod resolve;
mod resolved;
mod sampling_settings;
mod scripts;
mod settings;
#[cfg(feature = "cli")]
pub mod setup;
mod show;
mod trust;
mod watch;

pub use self::environment::Directories;
pub(crate) use self::environment::depth_for_children;
pub use self::error::ConfigError;
pub(crate) use self::load::read_mcp_config;
pub use self::resolved::{
    AuditSettings, Config, ConfigFile, ConfigFileStatus, ConfigOrigin, ConfigWarning, ConfigWarningCode,
    Discovery, LoadOptions, SkippedServer,
};
pub use self::scripts::{SaveRequest, ScriptLibrary, ScriptProblem, ScriptsError};
pub use self::trust::{TrustRequest, TrustStore, TrustedFile};
pub use self::watch::{ConfigFiles, WatchedFiles};

/// The JSON Schema of cx's own configuration file.
pub const CONFIG_SCHEMA: &str = include_str!("../config.schema.json");

#[cfg(any(test, fuzzing))]
#[path = "../fuzz/entries/config.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

//! Configuration: reads files and environment variables and resolves them to the values that the
//! rest of the crate takes. No other module of the library reads configuration.
//!
//! Sources in order of precedence: files named on the command line; `.cx.json` and `.mcp.json` in
//! the workspace; the user's own `~/.config/cx/config.json`; the files of other clients that
//! `import` names. `docs/config.md` is the complete reference for users.
//!
//! A file in a workspace may come from anybody. Until a user has trusted exactly its content, it
//! can only restrict what is allowed: it starts no server and allows nothing more.

mod clients;
mod document;
mod entry;
mod environment;
mod error;
mod expand;
mod file;
mod launch;
mod load;
mod mask;
mod own;
mod patterns;
mod show;
mod trust;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use self::environment::Directories;
pub(crate) use self::environment::depth_for_children;
pub use self::error::ConfigError;
pub use self::trust::{TrustRequest, TrustStore, TrustedFile};
use crate::mcp::McpServer;
use crate::run::limits::Limits;

/// The JSON Schema of cx's own configuration file.
pub const CONFIG_SCHEMA: &str = include_str!("../config.schema.json");

/// Where to look for configuration.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The directory that is searched for `.cx.json`, `.mcp.json` and the like. Its parent
    /// directories are not searched.
    pub workspace: PathBuf,
    /// Files with servers that the user has named. They are trusted, mistakes in them are errors,
    /// and a later file has precedence over an earlier one.
    pub files: Vec<PathBuf>,
    /// Whether to look for files that are not named.
    pub discover: bool,
}

/// The resolved configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The servers that can be used, highest precedence first.
    pub servers: Vec<McpServer>,
    /// Patterns `server.tool` of tools that may be called; `None` allows all.
    pub allow: Option<Vec<String>>,
    /// Patterns of tools that may not be called. Has precedence over `allow`.
    pub deny: Vec<String>,
    /// Patterns, and keywords of [`AskAnnotation`](crate::AskAnnotation), of tools whose calls need
    /// approval. Has precedence over `allow`.
    pub ask: Vec<String>,
    /// Patterns of tools that count as read-only, whatever their annotations say.
    pub read_only: Vec<String>,
    /// The limits of a run that requests none.
    pub limits: Limits,
    /// The maximum limits that a client may request: the configured ones, and [`Limits::CEILING`]
    /// for the rest.
    pub max_limits: Limits,
    /// Strict mode: whether a tool whose definition has changed is blocked until the user accepts
    /// it.
    pub strict: bool,
    /// Whether tool lists are cached on disk between processes.
    pub cache_enabled: bool,
    /// The cache directory, if it is not [`Directories::cache`].
    pub cache_directory: Option<PathBuf>,
    /// Settings that were ignored or look dangerous.
    pub warnings: Vec<ConfigWarning>,
    /// Servers that are configured but not used.
    pub skipped: Vec<SkippedServer>,
    /// Every file that was looked for, in order of precedence.
    pub files: Vec<ConfigFile>,
    /// The origin of each value that is not a default, by `mcpServers.NAME`, `limits.NAME` and the
    /// names of the other settings.
    pub origins: BTreeMap<String, ConfigOrigin>,
    /// Arguments as written in the file, by server: values from the environment are not shown.
    written_arguments: BTreeMap<String, Vec<String>>,
}

/// A problem that the user should know of but that is not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigWarning {
    /// Its kind, for programs.
    pub code: ConfigWarningCode,
    /// What happened. One line, without secrets and control characters.
    pub message: String,
    /// The file, and the line if known.
    pub origin: Option<ConfigOrigin>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The kinds of [`ConfigWarning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigWarningCode {
    /// Part of a workspace file was ignored, because its content is not trusted.
    Untrusted,
    /// A file that was looked for cannot be used.
    Unreadable,
    /// One server in a file cannot be used.
    ServerSkipped,
    /// A variable makes a server load code that is not its own.
    LoaderVariable,
    /// A value has no effect.
    Unused,
}

impl ConfigWarningCode {
    /// The name in messages and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "config_untrusted",
            Self::Unreadable => "config_unreadable",
            Self::ServerSkipped => "config_server_skipped",
            Self::LoaderVariable => "config_loader_variable",
            Self::Unused => "config_unused",
        }
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(formatter, "{origin}: ")?;
        }
        formatter.write_str(&self.message)
    }
}

/// A file and, if the parser knows it, a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigOrigin {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&crate::text::one_line(&self.file.display().to_string()))?;
        self.line.map_or(Ok(()), |line| write!(formatter, ":{line}"))
    }
}

/// A server that is configured but not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedServer {
    /// Its name.
    pub name: String,
    /// Where it is configured.
    pub origin: ConfigOrigin,
    /// Why it is not used.
    pub reason: String,
}

/// A file that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigFile {
    /// The file's path.
    pub path: PathBuf,
    /// Where the file comes from: `command line`, `CX_CONFIG`, `workspace`, `user`, or the name of
    /// a client.
    pub role: &'static str,
    /// How the file was used.
    pub status: ConfigFileStatus,
}

/// How a file that was looked for was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFileStatus {
    /// It was read and is used.
    Used,
    /// It was read, but only its restrictions are used.
    Untrusted,
    /// It does not exist.
    Missing,
    /// It cannot be used; there is a warning about it.
    Unusable,
    /// Another file of the same kind is used instead.
    Ignored,
}

impl ConfigFileStatus {
    /// The status as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Untrusted => "untrusted",
            Self::Missing => "missing",
            Self::Unusable => "unusable",
            Self::Ignored => "ignored",
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            allow: None,
            deny: Vec::new(),
            ask: Vec::new(),
            read_only: Vec::new(),
            limits: Limits::default(),
            max_limits: Limits::CEILING,
            strict: false,
            cache_enabled: true,
            cache_directory: None,
            warnings: Vec::new(),
            skipped: Vec::new(),
            files: Vec::new(),
            origins: BTreeMap::new(),
            written_arguments: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Reads all configuration, with this process's environment. Starts and connects nothing.
    ///
    /// # Errors
    ///
    /// All mistakes in the first file that has any, if it was named or is one of cx's own. Mistakes
    /// in other clients' files are [`warnings`](Self::warnings).
    pub fn load(options: &LoadOptions) -> Result<Self, ConfigError> {
        load::load(options, &environment::Environment::of_process())
    }
}

/// Reads the servers of a file that the user has named.
///
/// # Errors
///
/// As [`Config::load`].
pub(crate) fn read_mcp_config(path: &Path) -> Result<Vec<McpServer>, ConfigError> {
    let options =
        LoadOptions { workspace: PathBuf::from("."), files: vec![path.to_owned()], discover: false };
    let config = Config::load(&options)?;
    for warning in &config.warnings {
        tracing::warn!(code = warning.code.as_str(), "{warning}");
    }
    Ok(config.servers)
}

#[cfg(any(test, fuzzing))]
#[path = "../fuzz/entries/config.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

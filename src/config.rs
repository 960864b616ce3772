//! Configuration: reads files and environment variables and resolves them to the values that the
//! rest of the crate takes. No other module of the library reads configuration.
//!
//! What is read, in order of precedence: files named on the command line; in the workspace
//! `.cx.json` and `.mcp.json`; the person's own `~/.config/cx/config.json`; the files of other
//! clients that `import` names. `docs/config.md` has all of it for people.
//!
//! A file in a workspace may come from anybody. Until a user has trusted exactly its content, it can
//! only restrict what is allowed; it starts no server and allows nothing more.

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

/// The JSON Schema of cx's own file.
pub const CONFIG_SCHEMA: &str = include_str!("../config.schema.json");

/// Where to look for configuration.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The directory whose `.cx.json`, `.mcp.json` and the like are looked for, and nothing above
    /// it.
    pub workspace: PathBuf,
    /// Files of servers that a person has named. They are trusted, mistakes in them are errors, and
    /// a later one wins over an earlier one.
    pub files: Vec<PathBuf>,
    /// Whether to look for files that nobody has named.
    pub discover: bool,
}

/// Everything that was configured, settled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The servers that can be used, those of higher precedence first.
    pub servers: Vec<McpServer>,
    /// Patterns `server.tool` of what may be called; `None` for everything.
    pub allow: Option<Vec<String>>,
    /// Patterns of what may not. Wins over `allow`.
    pub deny: Vec<String>,
    /// Patterns, and words of [`AskAnnotation`](crate::AskAnnotation), of what a person is asked about first. Wins over
    /// `allow`.
    pub ask: Vec<String>,
    /// Patterns of what only reads, whatever its annotations say.
    pub read_only: Vec<String>,
    /// The limits of a run that asks for nothing.
    pub limits: Limits,
    /// The most that a client of a server may ask for: what was configured, and [`Limits::CEILING`] for the rest.
    pub max_limits: Limits,
    /// Whether a tool whose definition has changed stays blocked until a person accepts it.
    pub strict: bool,
    /// Whether lists of tools are kept on disk between processes.
    pub cache_enabled: bool,
    /// Where, if not in [`Directories::cache`].
    pub cache_directory: Option<PathBuf>,
    /// What was ignored, and what looks dangerous.
    pub warnings: Vec<ConfigWarning>,
    /// Servers that are configured and not used.
    pub skipped: Vec<SkippedServer>,
    /// Every file that was looked for, in order of precedence.
    pub files: Vec<ConfigFile>,
    /// Where each value that is not a default comes from: by `mcpServers.NAME`, `limits.NAME` and
    /// the names of the other settings.
    pub origins: BTreeMap<String, ConfigOrigin>,
    /// Arguments as they are written in the file, by server: what came in from the environment is
    /// not shown.
    written_arguments: BTreeMap<String, Vec<String>>,
}

/// Something that a person should know, and that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigWarning {
    /// Its kind, for programs.
    pub code: ConfigWarningCode,
    /// What happened. One line, without secrets and control characters.
    pub message: String,
    /// The file, and the line if it is known.
    pub origin: Option<ConfigOrigin>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The kinds of [`ConfigWarning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigWarningCode {
    /// Something in a workspace's file was ignored, because nobody has trusted that content.
    Untrusted,
    /// A file that was looked for cannot be used.
    Unreadable,
    /// One server in a file cannot be used.
    ServerSkipped,
    /// A server would start this program again.
    SelfLaunch,
    /// A variable makes a server run code that is not its own.
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
            Self::SelfLaunch => "config_self_launch",
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

/// A file, and a line of it if the parser knows it.
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

/// A server that is configured and not used.
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
    /// Where.
    pub path: PathBuf,
    /// Whose it is: `command line`, `CX_CONFIG`, `workspace`, `user`, or the name of a client.
    pub role: &'static str,
    /// What became of it.
    pub status: ConfigFileStatus,
}

/// What became of a file that was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFileStatus {
    /// It is read and used.
    Used,
    /// It is read, and used only as far as it narrows.
    Untrusted,
    /// There is none.
    Missing,
    /// It cannot be used; there is a warning about it.
    Unusable,
    /// Another one of the same kind is used instead.
    Ignored,
}

impl ConfigFileStatus {
    /// One word for it.
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
    /// Reads everything, with this process's environment. Starts and connects nothing.
    ///
    /// # Errors
    ///
    /// All mistakes of the first file with any, if it was named, or is one of cx's own. Mistakes in
    /// other clients' files are [`warnings`](Self::warnings).
    pub fn load(options: &LoadOptions) -> Result<Self, ConfigError> {
        load::load(options, &environment::Environment::of_process())
    }
}

/// Reads the servers of a file that a person has named.
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

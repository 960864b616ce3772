//! The resolved configuration, as the rest of the crate and embedders see it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::entry::ServerEntry;
use super::error::{Finding, Location};
use super::llm_settings::ProviderParts;
use super::open_telemetry::FileOptions;
use crate::llm::LlmOptions;
use crate::mcp::McpServer;
use crate::rate::RateLimit;
use crate::run::grants::Grants;
use crate::run::isolation::Isolation;
use crate::run::limits::Limits;
use crate::telemetry::options::OpenTelemetryOptions;
use crate::text::{one_line, shell_word};
use crate::tools::DirectTools;
use crate::tools::rules::ToolRules;

/// Maximum number of warnings of one kind per file.
pub(super) const MAX_WARNINGS: usize = 20;

/// Where to look for configuration.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The directory that is searched for `.cx.json`, `.mcp.json` and the like. Its parent
    /// directories are not searched.
    pub workspace: PathBuf,
    /// Files with servers that the user has named. They are trusted, mistakes in them are errors,
    /// and a later file has precedence over an earlier one.
    pub files: Vec<PathBuf>,
    /// Which files to search for, in addition to the named ones.
    pub discover: Discovery,
}

/// Which files are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Discovery {
    /// None: only the named files are used.
    None,
    /// The user's own file, for settings that do not depend on its servers: all but `mcpServers`, `import` and
    /// `readOnly`. So a named file adds servers, and cannot widen what the user allows.
    UserRules,
    /// All of them.
    All,
}

/// Audit settings of other programs, until all files are read.
#[derive(Clone, Debug, Default)]
pub(super) struct AuditParts {
    pub(super) enabled: Option<bool>,
    pub(super) directory: Option<PathBuf>,
    pub(super) retention_days: Option<u32>,
}

/// The audit settings of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditSettings {
    /// The directory of its files; `None` for the default below the user's state directory.
    pub directory: Option<PathBuf>,
    /// Whether a call is refused if its line cannot be written.
    pub required: bool,
    /// Whether arguments and results are written as text too.
    pub contents: bool,
    /// How many days files are kept; `None` for ever.
    pub retention_days: Option<u32>,
}

/// The resolved configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The servers that can be used, highest precedence first.
    pub servers: Vec<McpServer>,
    /// Which tools may be called, which calls need approval, and which tools only read.
    pub rules: ToolRules,
    /// Which tools a server shows to its clients directly.
    pub direct: DirectTools,
    /// The limits of a run that requests none.
    pub limits: Limits,
    /// The maximum limits that a client may request: the configured ones, and [`Limits::CEILING`]
    /// for the rest.
    pub max_limits: Limits,
    /// The directories and hosts that scripts may reach.
    pub grants: Grants,
    /// Maximum number of runs at the same time, if a file sets it.
    pub max_runs: Option<usize>,
    /// Resolution of the clocks that scripts can read; `None` for the default of
    /// [`ExecutorBuilder::clock_resolution`](crate::ExecutorBuilder::clock_resolution).
    pub clock_resolution: Option<Duration>,
    /// The time zone of scripts that name none, a name of the IANA database; `None` for UTC.
    pub time_zone: Option<String>,
    /// Where scripts are executed; `None` for the default of
    /// [`ExecutorBuilder::isolation`](crate::ExecutorBuilder::isolation).
    pub isolation: Option<Isolation>,
    /// How many runs one client of a server over HTTP may have, if a file sets it: for
    /// [`HttpOptions::client_rate`](crate::server::HttpOptions::client_rate).
    pub client_rate: Option<RateLimit>,
    /// A file with the tokens of tenants of a server over HTTP, if a file names one: for
    /// [`HttpTenant::list`](crate::server::HttpTenant::list).
    pub tokens_file: Option<PathBuf>,
    /// Maximum memory of all runs together in bytes, if a file sets it: see
    /// [`ExecutorBuilder::total_memory_bytes`](crate::ExecutorBuilder::total_memory_bytes).
    pub total_memory_bytes: Option<usize>,
    /// Strict mode: whether a tool whose definition has changed is blocked until the user accepts
    /// it.
    pub strict: bool,
    /// Whether servers may ask the user questions during calls, except servers for which it is off.
    pub elicitation: bool,
    /// Language models for scripts.
    pub llm: LlmOptions,
    /// The provider, as far as files and variables configure it.
    pub(super) llm_provider: ProviderParts,
    /// Whether tool lists are cached on disk between processes.
    pub cache_enabled: bool,
    /// The cache directory, if it is not [`Directories::cache`](crate::Directories::cache).
    pub cache_directory: Option<PathBuf>,
    /// Whether and where traces and metrics are exported: for
    #[cfg_attr(feature = "otel", doc = "[`OpenTelemetry::start`](crate::OpenTelemetry::start).")]
    #[cfg_attr(not(feature = "otel"), doc = "a build with the feature `otel`.")]
    /// Configured by the standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and others), or else by a file.
    pub open_telemetry: Option<OpenTelemetryOptions>,
    /// The audit trail, if a file enables it.
    pub audit: Option<AuditSettings>,
    /// The audit settings of other programs.
    pub(super) audit_parts: AuditParts,
    /// Settings that were ignored or look dangerous.
    pub warnings: Vec<ConfigWarning>,
    /// Servers that are configured but not used.
    pub skipped: Vec<SkippedServer>,
    /// Files with servers that are not used until the user trusts the file, as paths in the
    /// workspace.
    pub untrusted: Vec<PathBuf>,
    /// Every file that was searched for, in order of precedence.
    pub files: Vec<ConfigFile>,
    /// The origin of each value that is not a default, by `mcpServers.NAME`, `limits.NAME` and the
    /// names of the other settings.
    pub origins: BTreeMap<String, ConfigOrigin>,
    /// The settings of a file for [`open_telemetry`](Self::open_telemetry).
    pub(super) telemetry: FileOptions,
    /// The directories whose files were read.
    pub(super) directories: Vec<PathBuf>,
    /// Arguments as written in the file, by server: values from the environment are not shown.
    pub(super) written_arguments: BTreeMap<String, Vec<String>>,
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
        formatter.write_str(&one_line(&self.file.display().to_string()))?;
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
    /// Where the file comes from: `command line`, `workspace`, `user`, the variable or the key that
    /// names it, or the name of a client.
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
            rules: ToolRules::new(),
            direct: DirectTools::default(),
            limits: Limits::default(),
            max_limits: Limits::CEILING,
            grants: Grants::default(),
            max_runs: None,
            clock_resolution: None,
            time_zone: None,
            isolation: None,
            client_rate: None,
            tokens_file: None,
            total_memory_bytes: None,
            strict: false,
            elicitation: true,
            llm: LlmOptions::default(),
            llm_provider: ProviderParts::default(),
            cache_enabled: true,
            cache_directory: None,
            open_telemetry: None,
            telemetry: FileOptions::default(),
            audit: None,
            audit_parts: AuditParts::default(),
            warnings: Vec::new(),
            skipped: Vec::new(),
            untrusted: Vec::new(),
            files: Vec::new(),
            origins: BTreeMap::new(),
            directories: Vec::new(),
            written_arguments: BTreeMap::new(),
        }
    }
}

impl Config {
    /// The files and directories that determine the configuration, including those that do not exist.
    pub(super) fn looked_at(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| &file.path).chain(&self.directories).cloned().collect()
    }

    /// Records that a file was looked for.
    pub(super) fn add_file(&mut self, path: &Path, role: &'static str, status: ConfigFileStatus) {
        self.files.push(ConfigFile { path: path.to_owned(), role, status });
    }

    /// Records the origin of a value.
    pub(super) fn add_origin(&mut self, key: impl Into<String>, file: &Path, location: Option<Location>) {
        self.origins.insert(key.into(), ConfigOrigin::new(file, location));
    }

    /// Records a server that is not used.
    pub(super) fn skip(&mut self, file: &Path, entry: &ServerEntry, reason: &str) {
        let origin = ConfigOrigin::new(file, entry.location);
        let (name, reason) = (entry.name.clone(), one_line(reason));
        self.skipped.push(SkippedServer { name, origin, reason });
    }

    pub(super) fn warn(
        &mut self,
        code: ConfigWarningCode,
        message: String,
        file: &Path,
        location: Option<Location>,
        hint: Option<String>,
    ) {
        let origin = Some(ConfigOrigin::new(file, location));
        self.warnings.push(ConfigWarning { code, message, origin, hint });
    }

    /// Warns that parts of a file were ignored, because of mistakes in them. Of many mistakes only
    /// the first ones: more add no information.
    pub(super) fn warn_ignored(
        &mut self,
        code: ConfigWarningCode,
        file: &Path,
        findings: impl IntoIterator<Item = Finding>,
    ) {
        for finding in findings.into_iter().take(MAX_WARNINGS) {
            self.warn(code, format!("ignored: {}", finding.kind), file, finding.location, finding.hint);
        }
    }

    /// Warns that part of a file was ignored or a server not used, because the file is not trusted.
    pub(super) fn warn_untrusted(&mut self, message: String, file: &Path, location: Option<Location>) {
        let hint = format!("look at it and decide: cx trust {}", shell_word(&file.display().to_string()));
        self.warn(ConfigWarningCode::Untrusted, message, file, location, Some(hint));
    }
}

impl ConfigOrigin {
    fn new(file: &Path, location: Option<Location>) -> Self {
        Self { file: file.to_owned(), line: location.map(|location| location.line) }
    }
}

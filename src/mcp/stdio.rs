//! How to start a server and how long to wait for it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An MCP server that runs as a child process and speaks over its stdin and stdout.
///
/// Nothing is started until a script needs the server. It is then started without a shell, in a
/// process group of its own, with a small part of this process's environment (search path, home,
/// locale, temporary directory, proxies, certificates; no tokens) and [`env`](Self::env).
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct StdioServer {
    /// The server's name in scripts: `tools.<name>`.
    pub name: String,
    /// The program: a name that is looked up in `PATH`, or a path relative to this process's
    /// working directory.
    pub command: String,
    /// Its arguments, passed as they are.
    pub args: Vec<String>,
    /// Variables set for it on top of what it inherits. Their values may be secrets and are never
    /// logged.
    pub env: BTreeMap<String, String>,
    /// Its working directory; this process's own if `None`.
    pub cwd: Option<PathBuf>,
    /// The most time that one call may take, within the run's own deadline.
    pub call_timeout: Duration,
}

impl StdioServer {
    /// Long enough for a slow search or build, short enough that a hung server does not eat a run
    /// of the largest wall time.
    pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60);

    /// A server without arguments or variables of its own and with the default timeout.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            call_timeout: Self::DEFAULT_CALL_TIMEOUT,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable for it.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// Sets how long a call may take.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }
}

impl fmt::Debug for StdioServer {
    /// Shows which variables are set and hides their values and the arguments: both carry tokens.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StdioServer")
            .field("name", &self.name)
            .field("command", &self.command)
            .field("args", &format_args!("[{} hidden]", self.args.len()))
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("call_timeout", &self.call_timeout)
            .finish()
    }
}

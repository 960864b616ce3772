//! What is known of a server before it is connected: where it is, and how to treat it.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use url::Url;

/// An MCP server: how to reach it, what of it may be used, and how long to wait for it.
///
/// Nothing is started and nothing is connected until a script needs the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct McpServer {
    /// The server's name in scripts: `tools.<name>`.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Patterns of the tool names that may be called, with `*` for any run of characters. `None`
    /// allows every tool, an empty list none.
    pub allow: Option<Vec<String>>,
    /// Patterns of tool names that may not be called. Wins over `allow`.
    pub deny: Vec<String>,
    /// Patterns of tool names about which a person is asked, and words of
    /// [`AskAnnotation`](crate::AskAnnotation). A word means a tool of that very name too.
    pub ask: Vec<String>,
    /// Patterns of the tool names that only read. If there is a list, annotations of other tools that say so are not
    /// believed; an empty one believes none.
    pub read_only: Option<Vec<String>>,
    /// The most time that connecting may take: starting the process and the handshake.
    pub connect_timeout: Duration,
    /// The most time that one call may take from the moment it is sent, within the run's deadline.
    pub call_timeout: Duration,
    /// How many calls may be with the server at once.
    pub max_concurrent: usize,
    /// How many calls may wait for one of those places.
    pub max_queued: usize,
    /// How long a call may wait for one of those places.
    pub queue_timeout: Duration,
    /// How many calls a period may have; `None` for no limit.
    pub rate_limit: Option<RateLimit>,
    /// After how long without a call the connection is closed; `None` for never.
    pub idle_timeout: Option<Duration>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum McpTransport {
    /// A child process that speaks over its stdin and stdout.
    Stdio(StdioTransport),
    /// A server behind an address.
    Http(HttpTransport),
}

/// A child process. It is started without a shell, in a process group of its own, with a small part
/// of this process's environment (search path, home, locale, temporary directory, proxies,
/// certificates; no tokens) and [`env`](Self::env).
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct StdioTransport {
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
}

/// A server behind an `http` or `https` address.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpTransport {
    /// The address of its endpoint.
    pub url: Url,
    /// Headers sent with every request. Their values may be secrets and are never logged.
    pub headers: BTreeMap<String, String>,
    /// Which of the two HTTP transports it speaks.
    pub kind: HttpKind,
    /// How to sign in. `None` signs in when the server asks for it and a person has done
    /// `cx auth login`.
    pub oauth: Option<OAuth>,
}

/// The two HTTP transports of MCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpKind {
    /// Streamable HTTP, and HTTP with server-sent events where the server refuses that, as the
    /// specification's section on backwards compatibility says.
    #[default]
    Detect,
    /// Streamable HTTP only.
    Streamable,
    /// HTTP with server-sent events (revision 2024-11-05) only.
    Sse,
}

/// What is known of a server's authorization beforehand. Everything that is missing is discovered.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OAuth {
    /// A client registered by hand; otherwise one is registered dynamically.
    pub client_id: Option<String>,
    /// Its secret, if it has one. Needs [`issuer`](Self::issuer), so that it goes nowhere else.
    pub client_secret: Option<String>,
    /// The authorization server that credentials are for, as its metadata has it in `issuer`: another one that the
    /// server names is refused. `None` takes the one that the server names at the first sign-in, and no other until the
    /// next.
    pub issuer: Option<String>,
    /// The scopes to ask for; otherwise those that the server names.
    pub scopes: Vec<String>,
    /// Sign in as the client itself, without a person (the `client_credentials` grant).
    pub client_credentials: bool,
}

/// A token bucket: `calls` in each `period`, all of them at once if they were saved up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// How many calls.
    pub calls: NonZeroU32,
    /// In how long.
    pub period: Duration,
}

impl McpServer {
    /// Ten seconds let `npx` fetch a small package.
    pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

    /// Long enough for a slow search or build, short enough that a hung server does not eat a run
    /// of the largest wall time.
    pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60);

    /// The default of [`max_concurrent`](Self::max_concurrent).
    pub const DEFAULT_MAX_CONCURRENT: usize = 100;

    /// The default of [`max_queued`](Self::max_queued).
    pub const DEFAULT_MAX_QUEUED: usize = 200;

    /// The default of [`queue_timeout`](Self::queue_timeout).
    pub const DEFAULT_QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

    /// A server that is started by running `command`, with all defaults.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>) -> Self {
        let command = command.into();
        let transport = StdioTransport { command, args: Vec::new(), env: BTreeMap::new(), cwd: None };
        Self::new(name, McpTransport::Stdio(transport))
    }

    /// A server behind an address, with all defaults.
    pub fn http(name: impl Into<String>, url: Url) -> Self {
        let transport =
            HttpTransport { url, headers: BTreeMap::new(), kind: HttpKind::default(), oauth: None };
        Self::new(name, McpTransport::Http(transport))
    }

    fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            allow: None,
            deny: Vec::new(),
            ask: Vec::new(),
            read_only: None,
            connect_timeout: Self::DEFAULT_CONNECT_TIMEOUT,
            call_timeout: Self::DEFAULT_CALL_TIMEOUT,
            max_concurrent: Self::DEFAULT_MAX_CONCURRENT,
            max_queued: Self::DEFAULT_MAX_QUEUED,
            queue_timeout: Self::DEFAULT_QUEUE_TIMEOUT,
            rate_limit: None,
            idle_timeout: None,
        }
    }

    /// Adds arguments for the program. Without effect on a server behind an address.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        if let McpTransport::Stdio(stdio) = &mut self.transport {
            stdio.args.extend(args.into_iter().map(Into::into));
        }
        self
    }

    /// Sets a variable for the program. Without effect on a server behind an address.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Stdio(stdio) = &mut self.transport {
            stdio.env.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the program's working directory. Without effect on a server behind an address.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        if let McpTransport::Stdio(stdio) = &mut self.transport {
            stdio.cwd = Some(directory.into());
        }
        self
    }

    /// Sets a header of every request. Without effect on a server that is a process.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Http(http) = &mut self.transport {
            http.headers.insert(name.into(), value.into());
        }
        self
    }

    /// Sets how long connecting may take.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long a call may take.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Sets after how long without a call the connection is closed.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Which server this is, as far as what it offers depends on it: its name and how it is
    /// reached, but not the secrets it is given. SHA-256 in hexadecimal.
    pub fn identity(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            // With its length, so that no two lists of parts run together to the same text.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        add(&self.name);
        match &self.transport {
            McpTransport::Stdio(stdio) => {
                add("stdio");
                add(&stdio.command);
                add(&stdio.cwd.as_ref().map_or_else(String::new, |cwd| cwd.to_string_lossy().into_owned()));
                stdio.args.iter().for_each(|argument| add(argument));
                add("");
                stdio.env.keys().for_each(|name| add(name));
            }
            McpTransport::Http(http) => {
                add("http");
                add(http.url.as_str());
                http.headers.keys().for_each(|name| add(name));
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for StdioTransport {
    /// Shows which variables are set and hides their values and the arguments: both carry tokens.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StdioTransport")
            .field("command", &self.command)
            .field("args", &format_args!("[{} hidden]", self.args.len()))
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .finish()
    }
}

impl fmt::Debug for HttpTransport {
    /// Shows where the server is and hides what may be a token: the query, the password and the
    /// values of headers.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpTransport")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("path", &self.url.path())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("kind", &self.kind)
            .field("oauth", &self.oauth)
            .finish()
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OAuth")
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret.as_ref().map(|_| "hidden"))
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .field("client_credentials", &self.client_credentials)
            .finish()
    }
}

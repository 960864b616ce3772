//! The settings of a server: how to reach it, and its limits.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::rate::RateLimit;
use crate::tools::rules::ToolRules;

/// Times above this count as this: they are added to points in time, which have a maximum. No process lives as long.
const MAX_TIME: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// An MCP server: how to reach it, which of its tools may be used, and how long to wait for it.
///
/// Nothing is started or connected until a script needs the server. `Duration::MAX` is a time without end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct McpServer {
    /// The server's name in scripts: `tools.<name>`.
    pub name: String,
    /// A description of the server, one or a few sentences. Scripts can read it before the server is started; nothing
    /// else uses it.
    pub description: Option<String>,
    /// How to reach it.
    pub transport: McpTransport,
    /// Which of its tools may be called, which calls need approval, and which tools only read.
    /// Patterns are names of its tools.
    pub rules: ToolRules,
    /// Maximum time for connecting: starting the process and the handshake. Default:
    /// [`Self::DEFAULT_CONNECT_TIMEOUT`].
    pub connect_timeout: Duration,
    /// Maximum time for connecting to a process that shows activity: it has written to its stderr, or it or its
    /// descendants use the CPU, read, write, start or end until then. `npx` and `uvx` download a server before they
    /// start it. No effect if it is not above `connect_timeout`, or for an HTTP server. Default:
    /// [`Self::DEFAULT_BUSY_CONNECT_TIMEOUT`].
    pub busy_connect_timeout: Duration,
    /// Maximum time for one call from the moment it is sent. The run's deadline may be earlier. Default:
    /// [`Self::DEFAULT_CALL_TIMEOUT`].
    pub call_timeout: Duration,
    /// Maximum number of calls in flight to the server. Default: [`Self::DEFAULT_MAX_CONCURRENT`].
    pub max_concurrent: usize,
    /// Maximum number of calls that wait for a slot. Default: [`Self::DEFAULT_MAX_QUEUED`].
    pub max_queued: usize,
    /// How long a call may wait for a slot. Default: [`Self::DEFAULT_QUEUE_TIMEOUT`].
    pub queue_timeout: Duration,
    /// Maximum number of calls in a period; `None`, the default, for no limit.
    pub rate_limit: Option<RateLimit>,
    /// Time without a call after which the connection is closed; `None`, the default, for never.
    pub idle_timeout: Option<Duration>,
    /// Whether the server may ask the user questions during calls (elicitation). They are passed to the run's
    /// [`elicitor`](crate::Script::elicitor); a run without one refuses them. If this is off, the client does not
    /// declare elicitation to the server. Default: on.
    pub elicitation: bool,
    /// Whether the client declares to the server that it passes on user interfaces of tools (MCP Apps). Some servers
    /// offer them only then. Default: off; an executor with a configuration sets it.
    pub interfaces: bool,
    /// The directories that the server gets if it asks for roots. If there are none, the client does not declare roots.
    /// They restrict nothing: a server can ignore them.
    pub roots: Vec<Root>,
}

/// A directory that a server is told as a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its `file:` URI.
    pub uri: String,
    /// Its name for users.
    pub name: String,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "there are few of them, and a box would be in every embedder's code"
)]
pub enum McpTransport {
    /// A child process with the stdio transport.
    Stdio(StdioTransport),
    /// A remote server with an HTTP transport.
    Http(HttpTransport),
}

/// A child process. It is started without a shell, in a process group of its own, with a small part
/// of this process's environment (search path, home, locale, temporary directory, proxies,
/// certificates; no tokens) and [`env`](Self::env).
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct StdioTransport {
    /// The program: a name that is looked up in `PATH`, or a path. A relative path starts at `cwd`.
    pub command: String,
    /// Its arguments, passed unchanged.
    pub args: Vec<String>,
    /// Variables that are set in addition to the inherited ones. Their values may be secrets and
    /// are never logged.
    pub env: BTreeMap<String, String>,
    /// Its working directory; this process's own if `None`.
    pub cwd: Option<PathBuf>,
}

/// A server at an `http` or `https` URL.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpTransport {
    /// The URL of its endpoint.
    pub url: Url,
    /// Headers that are sent with every request. Their values may be secrets and are never logged.
    pub headers: BTreeMap<String, String>,
    /// Which of the two HTTP transports it uses.
    pub kind: HttpKind,
    /// How to sign in. With `None`, requests are authorized only if the server asks for it and the
    /// user has signed in with `cx auth login`.
    pub oauth: Option<OAuth>,
}

/// The two HTTP transports of MCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpKind {
    /// Tries streamable HTTP first, and HTTP with server-sent events if the server refuses that, as
    /// the specification's section on backwards compatibility describes.
    #[default]
    Detect,
    /// Streamable HTTP only.
    Streamable,
    /// HTTP with server-sent events (revision 2024-11-05) only.
    Sse,
}

/// The configured part of a server's authorization. Missing parts are discovered.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OAuth {
    /// The id of a client that was registered manually. Without it a client is registered
    /// dynamically.
    pub client_id: Option<String>,
    /// The address of a client id metadata document: an `https` URL with a path, which is this client's
    /// id at authorization servers that take such ids. It is preferred to registering dynamically. The
    /// document must allow redirects to `http://127.0.0.1/callback` on any port.
    pub client_metadata_url: Option<String>,
    /// The client's secret, if it has one. Requires [`issuer`](Self::issuer), so that the secret is
    /// sent to no other server.
    pub client_secret: Option<String>,
    /// The client's private key in place of a secret, if it signs in as itself: PKCS #8 as PEM text, for P-256, P-384,
    /// or RSA of 2,048 to 4,096 bits. Requires [`client_id`](Self::client_id), [`issuer`](Self::issuer) and
    /// [`client_credentials`](Self::client_credentials); without these nothing is sent.
    pub private_key: Option<String>,
    /// A file with an assertion that an identity provider has signed for this workload, as Kubernetes has it, in
    /// place of a secret or key. It is read for each token. Requires [`issuer`](Self::issuer), as whose audience it
    /// was issued, and [`client_credentials`](Self::client_credentials); without these nothing is sent.
    pub assertion_file: Option<PathBuf>,
    /// The issuer of an enterprise's identity provider, exactly as in the `issuer` field of its metadata. It exchanges
    /// the user's ID token for an assertion, and the authorization server that for a token (enterprise-managed
    /// authorization, SEP-990). Requires [`id_token_file`](Self::id_token_file).
    pub identity_provider: Option<String>,
    /// The client's id at the identity provider. With `None` it is [`client_id`](Self::client_id).
    pub identity_client_id: Option<String>,
    /// The client's secret at the identity provider, if it has one there. It is sent to no other server.
    pub identity_client_secret: Option<String>,
    /// A file with the ID token that the identity provider has issued for the user to the client. It is read for each
    /// token, and sent to the identity provider only. Requires [`identity_provider`](Self::identity_provider),
    /// [`client_id`](Self::client_id), [`issuer`](Self::issuer) and [`client_credentials`](Self::client_credentials);
    /// without these nothing is sent.
    pub id_token_file: Option<PathBuf>,
    /// The authorization server that credentials are for, exactly as in the `issuer` field of its
    /// metadata. If the server names a different one, it is refused. With `None`, the one that the
    /// server names at the first sign-in is pinned until the next sign-in.
    pub issuer: Option<String>,
    /// The scopes to request. If empty, those that the server names.
    pub scopes: Vec<String>,
    /// Whether to sign in without a browser: as the client itself (the `client_credentials` grant), or with a file.
    pub client_credentials: bool,
}

impl Root {
    /// The root of an absolute path, with the path's last part as its name. `None` for a relative path.
    pub fn from_directory(path: impl AsRef<Path>) -> Option<Self> {
        let path = path.as_ref();
        let uri = Url::from_file_path(path).ok()?.into();
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Some(Self { uri, name })
    }
}

impl McpServer {
    /// The default of the field `connect_timeout`. Ten seconds are enough for an installed server on
    /// a busy machine.
    pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

    /// The default of the field `busy_connect_timeout`. A minute is enough for a download over a
    /// slow network.
    pub const DEFAULT_BUSY_CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

    /// The default of the field `call_timeout`. Long enough for a slow search or build, short
    /// enough that a hung server does not use up a run of the maximum wall time.
    pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60);

    /// The default of [`max_concurrent`](Self::max_concurrent).
    pub const DEFAULT_MAX_CONCURRENT: usize = 100;

    /// The default of [`max_queued`](Self::max_queued).
    pub const DEFAULT_MAX_QUEUED: usize = 200;

    /// The default of [`queue_timeout`](Self::queue_timeout).
    pub const DEFAULT_QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

    /// A server that is started by running `command`, with default settings.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>) -> Self {
        let command = command.into();
        let transport = StdioTransport { command, args: Vec::new(), env: BTreeMap::new(), cwd: None };
        Self::new(name, McpTransport::Stdio(transport))
    }

    /// A server at a URL, with default settings.
    pub fn http(name: impl Into<String>, url: Url) -> Self {
        let transport =
            HttpTransport { url, headers: BTreeMap::new(), kind: HttpKind::default(), oauth: None };
        Self::new(name, McpTransport::Http(transport))
    }

    fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            description: None,
            transport,
            rules: ToolRules::new(),
            connect_timeout: Self::DEFAULT_CONNECT_TIMEOUT,
            busy_connect_timeout: Self::DEFAULT_BUSY_CONNECT_TIMEOUT,
            call_timeout: Self::DEFAULT_CALL_TIMEOUT,
            max_concurrent: Self::DEFAULT_MAX_CONCURRENT,
            max_queued: Self::DEFAULT_MAX_QUEUED,
            queue_timeout: Self::DEFAULT_QUEUE_TIMEOUT,
            rate_limit: None,
            idle_timeout: None,
            elicitation: true,
            interfaces: false,
            roots: Vec::new(),
        }
    }

    /// Sets what the server is for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds arguments for the program. No effect on an HTTP server.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        if let McpTransport::Stdio(stdio) = &mut self.transport {
            stdio.args.extend(args.into_iter().map(Into::into));
        }
        self
    }

    /// Sets an environment variable of the program. No effect on an HTTP server.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Stdio(stdio) = &mut self.transport {
            stdio.env.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the program's working directory. No effect on an HTTP server.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        if let McpTransport::Stdio(stdio) = &mut self.transport {
            stdio.cwd = Some(directory.into());
        }
        self
    }

    /// Sets a header of every request. No effect on a stdio server.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Http(http) = &mut self.transport {
            http.headers.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the maximum time for connecting, whether or not the process shows activity: both `connect_timeout` and
    /// `busy_connect_timeout`.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self.busy_connect_timeout = timeout;
        self
    }

    /// Sets the maximum time for one call.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Sets the time without a call after which the connection is closed.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Sets whether the server may ask the user questions during calls.
    #[must_use]
    pub fn elicitation(mut self, is_on: bool) -> Self {
        self.elicitation = is_on;
        self
    }

    /// Adds a directory that the server gets if it asks for roots.
    #[must_use]
    pub fn root(mut self, root: Root) -> Self {
        self.roots.push(root);
        self
    }

    /// This server, with times of at most [`MAX_TIME`].
    pub(crate) fn with_bounded_times(self) -> Self {
        let bounded = |time: Duration| time.min(MAX_TIME);
        Self {
            connect_timeout: bounded(self.connect_timeout),
            busy_connect_timeout: bounded(self.busy_connect_timeout),
            call_timeout: bounded(self.call_timeout),
            queue_timeout: bounded(self.queue_timeout),
            idle_timeout: self.idle_timeout.map(bounded),
            ..self
        }
    }

    /// Returns an identifier of the server: the SHA-256 in hexadecimal of its name and of how it is
    /// reached. For a process that is the command, the directory, the arguments and the names of
    /// the variables; for an HTTP server the URL and the names of the headers. The values of
    /// variables and headers, which may be secrets, are not part of it.
    pub fn identity(&self) -> String {
        self.identity_with(std::borrow::ToOwned::to_owned)
    }

    /// As [`identity`](Self::identity), without the paths of temporary directories in the command, the directory and
    /// the arguments: a server that is started in a different one each time returns the same types. Only data that is
    /// harmless to share may be stored under it.
    pub(crate) fn results_identity(&self) -> String {
        self.identity_with(without_temporary_paths)
    }

    fn identity_with(&self, part: impl Fn(&str) -> String) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            // The length comes first, so that two different lists of parts never produce the same
            // bytes.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        add(&self.name);
        match &self.transport {
            McpTransport::Stdio(stdio) => {
                add("stdio");
                add(&part(&stdio.command));
                add(&stdio.cwd.as_ref().map_or_else(String::new, |cwd| part(&cwd.to_string_lossy())));
                stdio.args.iter().for_each(|argument| add(&part(argument)));
                add("");
                stdio.env.keys().for_each(|name| add(name));
            }
            McpTransport::Http(http) => {
                add("http");
                add(http.url.as_str());
                http.headers.keys().for_each(|name| add(name));
            }
        }
        hex::encode(hash.finalize())
    }
}

/// The text with `<temporary>` in place of each path below a temporary directory (`/tmp`, `/var/tmp`,
/// `/private/tmp`, `/var/folders`, `/dev/shm`, `C:\\…\\Temp`).
fn without_temporary_paths(text: &str) -> String {
    const DIRECTORIES: [&str; 4] = ["/tmp/", "/temp/", "/var/folders/", "/dev/shm/"];
    let is_delimiter = |character: char| " \t\"'=,;".contains(character);
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_delimiter) {
        let path = piece.strip_suffix(is_delimiter).unwrap_or(piece);
        let lower = path.to_ascii_lowercase().replace('\\', "/");
        let is_path = lower.starts_with('/') || lower.get(1..3) == Some(":/") || lower.starts_with("file:/");
        let is_temporary = is_path && DIRECTORIES.iter().any(|directory| lower.contains(directory));
        shown.push_str(if is_temporary { "<temporary>" } else { path });
        shown.push_str(&piece[path.len()..]);
    }
    shown
}

impl fmt::Debug for StdioTransport {
    /// Shows the names of the variables, and hides their values and the arguments: both may contain
    /// tokens.
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
    /// Shows the URL without the parts that may be secret: the query, the password and the values
    /// of headers are hidden.
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

impl OAuth {
    /// Whether an assertion takes the place of a secret, or is got for the user, if it signs in without a browser.
    #[cfg(feature = "oauth")]
    pub(crate) const fn has_assertion(&self) -> bool {
        self.private_key.is_some() || self.assertion_file.is_some() || self.id_token_file.is_some()
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OAuth")
            .field("client_id", &self.client_id)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("client_secret", &self.client_secret.as_ref().map(|_| "hidden"))
            .field("private_key", &self.private_key.as_ref().map(|_| "hidden"))
            .field("assertion_file", &self.assertion_file)
            .field("identity_provider", &self.identity_provider)
            .field("identity_client_id", &self.identity_client_id)
            .field("identity_client_secret", &self.identity_client_secret.as_ref().map(|_| "hidden"))
            .field("id_token_file", &self.id_token_file)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .field("client_credentials", &self.client_credentials)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_sign_in_are_not_in_its_debug_text() {
        let secret = Some("a-secret".to_owned());
        let oauth = OAuth {
            client_secret: secret.clone(),
            private_key: secret.clone(),
            identity_client_secret: secret,
            ..OAuth::default()
        };
        let shown = format!("{oauth:?}");
        assert_eq!(shown.matches("hidden").count(), 3, "{shown}");
        assert!(!shown.contains("a-secret"), "{shown}");
    }

    #[test]
    fn another_temporary_directory_is_no_other_source_of_results() {
        let server = |root: &str| McpServer::stdio("files", "server").args(["--root", root, "--rw"]);
        let same = |one: &str, other: &str| {
            let (one, other) = (server(one), server(other));
            assert_ne!(one.identity(), other.identity(), "lists and pins tell them apart");
            one.results_identity() == other.results_identity()
        };
        assert!(same("/tmp/abc123", "/tmp/def456/inner"));
        assert!(same("--db=/var/tmp/a.db,ro", "--db=/tmp/b.db,ro"));
        assert!(same("/private/var/folders/x1/T/a", "/var/folders/y2/T/b"));
        assert!(same("C:\\Users\\a\\AppData\\Local\\Temp\\x1", "C:\\Users\\a\\AppData\\Local\\Temp\\x2"));
        assert!(same("file:///tmp/a", "file:///tmp/b"));
        assert!(!same("/home/a", "/home/b"));
        assert!(!same("/tmp/a,ro", "/tmp/a,rw"));
        assert!(!same("a/tmp/b", "a/tmp/c"), "a relative path stays");
        // What has no such path has one identity.
        assert_eq!(server("/srv").identity(), server("/srv").results_identity());
    }
}

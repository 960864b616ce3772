//! The connection to a NATS server, or to a cluster of them.

use std::fmt;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, ClientError, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::storage::named::NamedFile;
use crate::text::secrets::masked_address;

/// How long a server may take to accept a connection.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(5);

/// How long an answer to a request may take.
pub(super) const MAX_ANSWER_TIME: Duration = Duration::from_secs(5);

/// How often the connection is tested while nothing else crosses it.
const PING: Duration = Duration::from_secs(10);

/// The pause before the connection is made again, which doubles up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Maximum bytes that a server may send without completing a message. The client library reads a message of any length
/// into memory. The longest ones here are lists of keys, of some 10 MB.
const MAX_UNFINISHED: u64 = 64 << 20;

/// How often the bytes that were received are checked.
const LOOK: Duration = Duration::from_millis(100);

/// Messages of one subject that wait here. More are lost, and sent again by the other side.
const MAX_WAITING: usize = 1_024;

/// Maximum bytes of a credentials file.
const MAX_CREDENTIALS: u64 = 64 << 10;

/// Maximum bytes of a file with certificates of authorities.
const MAX_AUTHORITIES: u64 = 1 << 20;

/// Addresses of the servers of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct Addresses(Vec<ServerAddr>);

impl Addresses {
    /// Reads `nats://` and `tls://` addresses with commas between them. The error is a sentence.
    ///
    /// # Errors
    ///
    /// If one is not an address, has a password in it, or credentials would be sent unencrypted to another machine.
    pub(crate) fn parse(text: &str, has_credentials: bool) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected the address of a NATS server, such as tls://nats.example.com:4222, or several with commas \
                 between them: `{}`",
                masked_address(text)
            )
        };
        let mut addresses = Vec::new();
        for part in text.split(',') {
            let address: ServerAddr = part.trim().parse().map_err(|_invalid| expected())?;
            let url = address.clone().into_inner();
            let is_plain = url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
                && matches!(url.path(), "" | "/");
            if !matches!(address.scheme(), "nats" | "tls")
                || url.host_str().is_none_or(str::is_empty)
                || !is_plain
            {
                return Err(expected());
            }
            if has_credentials && !address.tls_required() && !is_this_machine(address.host()) {
                let problem = "the credentials would be sent to another machine without TLS: use an address with \
                    `tls`";
                return Err(problem.to_owned());
            }
            addresses.push(address);
        }
        Ok(Self(addresses))
    }
}

/// For messages: without what may be a password.
impl fmt::Display for Addresses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> =
            self.0.iter().map(|address| address.clone().into_inner().to_string()).collect();
        formatter.write_str(&shown.join(","))
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// The trust anchors for a server, and the credentials for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// The file with credentials.
    pub(crate) credentials: Option<PathBuf>,
    /// The file with certificates of authorities, beside those of the system.
    pub(crate) authorities: Option<PathBuf>,
}

/// What a credentials file has.
enum Credentials {
    /// As `nsc` writes it: a token with its key.
    Signed(String),
    /// The seed of a user's key.
    Key(String),
    Password {
        user: String,
        password: String,
    },
    Token(String),
}

/// A credentials file that is a JSON object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimpleCredentials {
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
}

/// How the seed of a user's key begins.
const SEED: &str = "SU";

impl Credentials {
    /// `None` if the text has none.
    fn parse(text: &str) -> Option<Self> {
        let trimmed = text.trim();
        if trimmed.starts_with('{') {
            let simple: SimpleCredentials = serde_json::from_str(trimmed).ok()?;
            return match (simple.user, simple.password, simple.token) {
                (Some(user), Some(password), None) => Some(Self::Password { user, password }),
                (None, None, Some(token)) => Some(Self::Token(token)),
                _ => None,
            };
        }
        let is_seed = trimmed.starts_with(SEED) && trimmed.bytes().all(|byte| byte.is_ascii_alphanumeric());
        Some(if is_seed { Self::Key(trimmed.to_owned()) } else { Self::Signed(text.to_owned()) })
    }

    /// `None` if there are none.
    fn add_to(self, options: ConnectOptions) -> Option<ConnectOptions> {
        match self {
            Self::Signed(text) => options.credentials(&text).ok(),
            Self::Key(seed) => Some(options.nkey(seed)),
            Self::Password { user, password } => Some(options.user_and_password(user, password)),
            Self::Token(token) => Some(options.token(token)),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// A retry cannot succeed.
    #[error("{0}")]
    Unusable(String),
    /// A retry may succeed.
    #[error("{0}")]
    Unreachable(String),
}

/// A connection that is made again whenever it breaks, until this is dropped.
#[derive(Clone)]
pub(crate) struct NatsServer {
    pub(super) client: Client,
    /// The number of times that the connection was made.
    connections: watch::Receiver<u64>,
    /// Whether the server has refused the credentials since the connection was last made.
    is_refused: Arc<AtomicBool>,
    /// Ends with this.
    _guard: Arc<JoinSet<()>>,
}

impl fmt::Debug for NatsServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NatsServer")
    }
}

impl NatsServer {
    /// Connects to one of the servers.
    ///
    /// # Errors
    ///
    /// Why that was not possible.
    pub(crate) async fn connect(addresses: &Addresses, access: &Access) -> Result<Self, ConnectError> {
        let (sender, connections) = watch::channel(0);
        let is_refused = Arc::new(AtomicBool::new(false));
        let was_refused = Arc::clone(&is_refused);
        let mut options = ConnectOptions::new()
            .name(concat!("cx ", env!("CARGO_PKG_VERSION")))
            .connection_timeout(MAX_CONNECT_TIME)
            .request_timeout(Some(MAX_ANSWER_TIME))
            .ping_interval(PING)
            .subscription_capacity(MAX_WAITING)
            // A server cannot name others that get the credentials.
            .ignore_discovered_servers()
            .require_tls(addresses.0.iter().any(ServerAddr::tls_required))
            .reconnect_delay_callback(pause)
            .event_callback(move |event| {
                match &event {
                    Event::Connected => {
                        was_refused.store(false, Ordering::Relaxed);
                        sender.send_modify(|count| *count += 1);
                    }
                    Event::ClientError(ClientError::Other(problem)) if is_refusal(problem) => {
                        was_refused.store(true, Ordering::Relaxed);
                        tracing::warn!("the NATS server does not accept the credentials any more");
                    }
                    Event::Disconnected => tracing::warn!("the connection to the NATS server is lost"),
                    event => tracing::info!(%event, "of the NATS server"),
                }
                std::future::ready(())
            });
        if let Some(path) = &access.authorities {
            check_authorities(path).map_err(ConnectError::Unusable)?;
            options = options.add_root_certificates(path.clone());
        }
        if let Some(path) = &access.credentials {
            let text = read_credentials(path).map_err(ConnectError::Unusable)?;
            let problem =
                || ConnectError::Unusable(format!("the credentials file `{}` has none", path.display()));
            let credentials = Credentials::parse(&text).ok_or_else(problem)?;
            options = credentials.add_to(options).ok_or_else(problem)?;
        }
        let connecting = tokio::time::timeout(2 * MAX_CONNECT_TIME, options.connect(addresses.0.clone()));
        let client = match connecting.await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                let is_refused = matches!(
                    error.kind(),
                    ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation
                );
                return Err(if is_refused {
                    ConnectError::Unusable(format!("`{addresses}` does not accept the credentials: {error}"))
                } else {
                    ConnectError::Unreachable(format!("`{addresses}` cannot be reached: {error}"))
                });
            }
            Err(_late) => return Err(ConnectError::Unreachable(format!("`{addresses}` does not answer"))),
        };
        let mut guard = JoinSet::new();
        guard.spawn(end_endless_messages(client.clone()));
        Ok(Self { client, connections, is_refused, _guard: Arc::new(guard) })
    }

    /// Whether another connection is needed. The client library makes this one again, always with the credentials that
    /// it began with, which the server may not accept any more; and its task has ended if the server has sent something
    /// on which it panics.
    pub(super) fn has_ended(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed) || self.connections.has_changed().is_err()
    }

    /// Completes when the connection is made again.
    pub(super) async fn reconnected(&self) {
        let mut connections = self.connections.clone();
        connections.mark_unchanged();
        if connections.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Sends what is queued, for at most `most`.
    pub(super) async fn flush(&self, most: Duration) {
        let _late_or_gone = tokio::time::timeout(most, self.client.flush()).await;
    }
}

/// Whether this is what the client library says of a server that refuses the credentials.
fn is_refusal(problem: &str) -> bool {
    [ConnectErrorKind::AuthorizationViolation, ConnectErrorKind::Authentication]
        .iter()
        .any(|kind| kind.to_string() == problem)
}

/// Ends the connection whenever the server sends much that is no complete message, such as one of many gigabytes.
async fn end_endless_messages(client: Client) {
    let statistics = client.statistics();
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // What was received when the last message was complete.
    let (mut messages, mut bytes) = (0, 0);
    loop {
        ticks.tick().await;
        let now = statistics.in_messages.load(Ordering::Relaxed);
        let received = statistics.in_bytes.load(Ordering::Relaxed);
        if now == messages && received.saturating_sub(bytes) <= MAX_UNFINISHED {
            continue;
        }
        if now == messages {
            tracing::warn!(
                "the NATS server sends a message of more than 64 MB: the connection is made again"
            );
            if client.force_reconnect().await.is_err() {
                return;
            }
        }
        (messages, bytes) = (now, received);
    }
}

/// The pause before the connection is made again. It is partly random, so that clients that have
/// lost a server do not all come back at once.
fn pause(attempts: usize) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX).min(8);
    let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE);
    let mut random = [0];
    // Without random numbers the pauses of all clients are the same.
    let _none = getrandom::fill(&mut random);
    pause.mul_f64(0.5 + f64::from(random[0]) / 512.0)
}

fn read_credentials(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read =
        NamedFile::open_secret(path).and_then(|file| file.take(MAX_CREDENTIALS).read_to_string(&mut text));
    read.map_err(|error| format!("the credentials file `{}` cannot be read: {error}", path.display()))?;
    Ok(text)
}

/// Whether there are certificates in a file. Otherwise the client would use those of the system only.
fn check_authorities(path: &Path) -> Result<(), String> {
    let mut text = String::new();
    let read = NamedFile::open(path).and_then(|file| file.take(MAX_AUTHORITIES).read_to_string(&mut text));
    read.map_err(|error| format!("the file of authorities `{}` cannot be read: {error}", path.display()))?;
    let has_one = text.contains("-----BEGIN CERTIFICATE-----");
    has_one.then_some(()).ok_or_else(|| format!("the file `{}` has no certificates in PEM", path.display()))
}

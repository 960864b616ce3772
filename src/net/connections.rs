//! The connections of one run: which hosts it may reach, at which addresses.
//!
//! A host is resolved once in a run. Every address of the answer is checked, and its connections go to the
//! addresses that passed, for the rest of the run: each origin has an HTTP client of its own that knows no
//! other addresses. So nothing can change between the check and the use of an address (DNS rebinding), and a
//! connection of one run is never used by another, which may be granted less.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{self, HeaderValue};
use parking_lot::Mutex;
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::address::{AddressKind, is_private_name, kind};
use super::body::ResponseBody;
use super::gunzip::is_gzip;
use super::head::Head;
use super::request::{HttpRequest, Origin};
use super::response::cause;
use super::tls::{check_clock, install_provider};
use crate::text::shell_word;
use crate::tools::{ToolError, ToolErrorCode};

/// Origins whose connections one run keeps. With more, those that were used first are closed.
const MAX_ORIGINS: usize = 32;

/// Unused connections that are kept for each origin.
const MAX_IDLE_CONNECTIONS: usize = 16;

/// Addresses of one host that are tried. Some names have hundreds.
const MAX_ADDRESSES: usize = 16;

/// Names that one run, and all runs of the process together, resolve at the same time. Each takes a thread until the
/// system's resolver times out: half a minute, which may be longer than its run. The runtime has 512 of them.
const MAX_RESOLUTIONS: usize = 4;
const MAX_RESOLUTIONS_OF_ALL: usize = 64;

/// The compression that servers are told of.
const GZIP: &str = "gzip";

/// Maximum number of headers of a response over HTTP/1, where hyper bounds their bytes with its buffer of
/// some 400 KiB, and bytes of them over HTTP/2.
const MAX_HEADERS: usize = 200;
const MAX_HTTP2_HEADER_BYTES: u32 = 256 << 10;

/// Resolves a name.
pub(crate) type Resolver = Arc<dyn Fn(&str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Says how a host, a name or an address without brackets, and a port are granted.
pub(crate) type Granted = Arc<dyn Fn(&str, u16) -> Grant + Send + Sync>;

/// How a host is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grant {
    No,
    /// By a pattern for several hosts.
    Among,
    /// By its own name or as this address.
    Itself,
}

/// How long the steps of a request may take. The run's end ends all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// To resolve the name, and to connect.
    pub(crate) connect: Duration,
    /// From then until the head of the response is complete.
    pub(crate) head: Duration,
    /// Between two parts of the body.
    pub(crate) idle: Duration,
    /// All of it.
    pub(crate) total: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(300),
        }
    }
}

/// The connections of one run.
pub(crate) struct Connections {
    granted: Granted,
    resolver: Resolver,
    pub(crate) times: Times,
    origins: Mutex<Vec<(Origin, Arc<OnceCell<Client>>)>>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) head: Head,
    pub(crate) body: ResponseBody,
}

/// Resolves names as other programs of this machine do, [`MAX_RESOLUTIONS`] at the same time.
pub(crate) fn system_resolver() -> Resolver {
    static ALL: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_RESOLUTIONS_OF_ALL)));
    bounded_resolver(look_up, &ALL)
}

/// Asks the system's resolver, which blocks the thread and cannot be cancelled.
fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// Resolves names with a function that blocks, while there is one of [`MAX_RESOLUTIONS`] permits and one of `all`.
fn bounded_resolver(
    look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Clone + Send + Sync + 'static,
    all: &Arc<Semaphore>,
) -> Resolver {
    let (own, all) = (Arc::new(Semaphore::new(MAX_RESOLUTIONS)), Arc::clone(all));
    Arc::new(move |host| {
        let (host, look_up) = (host.to_owned(), look_up.clone());
        let (own, all) = (Arc::clone(&own), Arc::clone(&all));
        async move {
            // The semaphores are never closed, so there always are permits. They are the thread's.
            let permits = (own.acquire_owned().await.ok(), all.acquire_owned().await.ok());
            let resolve = move || {
                let found = look_up(&host);
                drop(permits);
                found
            };
            tokio::task::spawn_blocking(resolve).await?
        }
        .boxed()
    })
}

impl Connections {
    pub(crate) fn new(granted: Granted, resolver: Resolver, times: Times) -> Self {
        Self { granted, resolver, times, origins: Mutex::default() }
    }

    /// Checks whether a request may go to its host, before anything is resolved or sent.
    ///
    /// # Errors
    ///
    /// `NetDenied` says what a person would have to grant.
    pub(crate) fn check(&self, origin: &Origin) -> Result<(), ToolError> {
        let grant = (self.granted)(&origin.host, origin.port);
        match origin.host.parse::<IpAddr>() {
            Ok(address) => check_address(origin, address, grant),
            Err(_) if grant == Grant::No => Err(denied(format!(
                "this run may not reach `{}`: a person has to grant it, with `--allow-net {}` or `grants.net` in the \
                 user's configuration",
                origin.name(),
                shell_word(&origin.host)
            ))),
            Err(_) => Ok(()),
        }
    }

    /// Whether a name that is granted may lead to this address. Public addresses are what names are
    /// for. A private one needs a name that only a private network has, or a grant of the address:
    /// otherwise the owner of a public name could send scripts to any machine of the network that
    /// cx is in. Link-local and metadata addresses always need a grant of their own.
    fn may_lead_to(&self, origin: &Origin, address: IpAddr) -> bool {
        let is_granted_itself =
            || (self.granted)(&address.to_canonical().to_string(), origin.port) == Grant::Itself;
        match kind(address) {
            AddressKind::Public => true,
            AddressKind::Private => {
                let is_named = (self.granted)(&origin.host, origin.port) == Grant::Itself;
                (is_named && is_private_name(&origin.host)) || is_granted_itself()
            }
            AddressKind::Special => is_granted_itself(),
            AddressKind::Unusable => false,
        }
    }

    /// Sends a request. It is not sent again, and redirects are not followed.
    ///
    /// # Errors
    ///
    /// `NetDenied` for a host or addresses that are not granted, `NetTimeout`, or `NetFailed`.
    pub(crate) async fn send(
        &self,
        request: &HttpRequest,
        max_body: usize,
        ends: Instant,
    ) -> Result<HttpResponse, ToolError> {
        let origin = request.origin();
        self.check(&origin)?;
        check_clock(&request.url, SystemTime::now()).map_err(failed)?;
        let client = self.client(&origin).await?;
        let mut headers = request.headers.clone();
        // A range is one of the body as it is sent: compressed, it would be of no use.
        if !headers.contains_key(header::RANGE) {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(GZIP));
        }
        let sent = client
            .request(request.method.clone(), request.url.clone())
            .headers(headers)
            .body(request.body.clone())
            .send();
        let by = ends.min(Instant::now() + self.times.connect + self.times.head);
        let response = match timeout_at(by, sent).await {
            Ok(response) => response.map_err(|error| failure(&origin, &error))?,
            Err(_elapsed) => return Err(timed_out(&origin, "no response")),
        };
        let mut head = Head { status: response.status(), headers: response.headers().clone() };
        let coding = head.headers.get(header::CONTENT_ENCODING);
        let is_compressed = coding.is_some_and(|coding| is_gzip(coding.as_bytes()));
        if is_compressed {
            // Neither is true of what the script gets.
            head.headers.remove(header::CONTENT_ENCODING);
            head.headers.remove(header::CONTENT_LENGTH);
        }
        let body = ResponseBody::new(response, is_compressed, max_body, self.times.idle, ends);
        Ok(HttpResponse { head, body })
    }

    /// Closes the connections that are not in use.
    pub(crate) fn close(&self) {
        let unused = std::mem::take(&mut *self.origins.lock());
        drop(unused);
    }

    /// The client for an origin. Requests that come while it is made wait for it.
    async fn client(&self, origin: &Origin) -> Result<Client, ToolError> {
        let cell = {
            let mut origins = self.origins.lock();
            match origins.iter().find(|(known, _)| known == origin) {
                Some((_, cell)) => Arc::clone(cell),
                None => {
                    if origins.len() >= MAX_ORIGINS {
                        origins.remove(0);
                    }
                    let cell = Arc::default();
                    origins.push((origin.clone(), Arc::clone(&cell)));
                    cell
                }
            }
        };
        cell.get_or_try_init(|| self.connect(origin)).await.cloned()
    }

    /// Resolves the host, checks its addresses and makes a client that knows only those.
    async fn connect(&self, origin: &Origin) -> Result<Client, ToolError> {
        let addresses = match origin.host.parse::<IpAddr>() {
            // The client takes it from the address of the request, which was checked.
            Ok(_) => Vec::new(),
            Err(_) => self.resolve(origin).await?,
        };
        let (is_tls, times) = (origin.is_tls, self.times);
        let build = move || client(is_tls, addresses, &times);
        // Reading the certificates of the system takes milliseconds, and this is a script's thread.
        let built = match is_tls {
            true => tokio::task::spawn_blocking(build).await.map_err(|_| failed("the run is over"))?,
            false => build(),
        };
        built.map_err(|error| failed(&format!("HTTP cannot be used: {}", cause(&error))))
    }

    async fn resolve(&self, origin: &Origin) -> Result<Vec<SocketAddr>, ToolError> {
        let found = tokio::time::timeout(self.times.connect, (self.resolver)(&origin.host));
        let found = match found.await {
            Ok(found) => {
                found.map_err(|error| failed(&format!("`{}` cannot be resolved: {error}", origin.host)))?
            }
            Err(_elapsed) => return Err(timed_out(origin, "its name was not resolved")),
        };
        let Some(first) = found.first().copied() else {
            return Err(failed(&format!("`{}` has no address", origin.host)));
        };
        let may: Vec<SocketAddr> = found
            .into_iter()
            .filter(|address| self.may_lead_to(origin, *address))
            .take(MAX_ADDRESSES)
            // The port is that of the request.
            .map(|address| SocketAddr::new(address, 0))
            .collect();
        if may.is_empty() {
            return Err(denied(format!(
                "`{}` leads to {first}, which is not an address of the internet: a person has to grant that address \
                 too, with `--allow-net {}`",
                origin.host,
                shell_word(&bracketed(first))
            )));
        }
        Ok(may)
    }
}

/// Checks an address that a script names itself, and that is granted like this.
fn check_address(origin: &Origin, address: IpAddr, grant: Grant) -> Result<(), ToolError> {
    if kind(address) == AddressKind::Unusable {
        return Err(denied(format!("`{}` is the address of no host", origin.host)));
    }
    match grant {
        Grant::Itself => Ok(()),
        Grant::Among if kind(address) == AddressKind::Public => Ok(()),
        Grant::Among | Grant::No => Err(denied(format!(
            "this run may not reach the address `{}`: a person has to grant that address, with `--allow-net {}`",
            origin.name(),
            shell_word(&bracketed(address))
        ))),
    }
}

/// The addresses that passed the check.
struct Checked(Vec<SocketAddr>);

impl Resolve for Checked {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses = self.0.clone();
        async move { Ok(Box::new(addresses.into_iter()) as Addrs) }.boxed()
    }
}

/// A client of one origin. It takes nothing from the environment, keeps no cookies, adds no credentials and no
/// referrer, and follows no redirects.
fn client(is_tls: bool, addresses: Vec<SocketAddr>, times: &Times) -> reqwest::Result<Client> {
    install_provider();
    let builder = Client::builder()
        .dns_resolver(Checked(addresses))
        .no_proxy()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        // Bodies are decompressed in steps (`gunzip.rs`).
        .no_gzip()
        .connect_timeout(times.connect)
        .pool_idle_timeout(times.idle)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .http1_max_headers(MAX_HEADERS)
        .http2_max_header_list_size(MAX_HTTP2_HEADER_BYTES)
        .tcp_nodelay(true)
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")));
    // Without TLS no certificate is read.
    if is_tls { builder.build() } else { builder.tls_certs_only([]).build() }
}

/// The address as a grant names it.
fn bracketed(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn failure(origin: &Origin, error: &reqwest::Error) -> ToolError {
    if error.is_timeout() {
        return timed_out(origin, "no connection");
    }
    let what = if error.is_connect() { "cannot be reached" } else { "sent no response that can be read" };
    failed(&format!("`{}` {what}: {}", origin.name(), cause(error)))
}

fn denied(problem: String) -> ToolError {
    ToolError::new(ToolErrorCode::NetDenied, problem)
}

fn failed(problem: &str) -> ToolError {
    ToolError::new(ToolErrorCode::NetFailed, problem)
}

fn timed_out(origin: &Origin, what: &str) -> ToolError {
    ToolError::new(ToolErrorCode::NetTimeout, format!("{what} from `{}` in time", origin.name()))
}

#[cfg(test)]
mod tests;

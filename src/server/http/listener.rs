//! Accepts connections, and serves each within its bounds.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::connections::{Connections, OpenConnection, Unwritten};
use super::sessions::Sessions;
use super::shares::PeerKey;
use super::socket::{MAX_HEAD_BYTES, Socket};
use crate::server::metrics;
use crate::server::shutdown::MAX_LAST_WRITE;

/// Maximum number of connections: one listening stream for each of 256 sessions, and as many
/// requests. At the bound a new connection replaces one that is not in use, or gets 503.
pub(crate) const MAX_CONNECTIONS: usize = 512;

/// Maximum time for the head of a request, and maximum idle time of a connection.
const MAX_HEAD_TIME: Duration = Duration::from_secs(10);

/// Maximum number of headers.
const MAX_HEADERS: usize = 100;

/// How long written bytes may stay unacknowledged, and how long nothing may come from the client's system, before the
/// connection counts as dead. Once this is set, Linux ignores its other limits (tcp(7), `TCP_USER_TIMEOUT`).
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Idle time after which the system probes the client (TCP keepalive), and the interval of probes. A few of them fit
/// into [`USER_TIMEOUT`], because a probe can get lost.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// Pause after the system has refused to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a new connection waits for the evicted one to end. That takes microseconds, or
/// [`MAX_LAST_WRITE`] if the end of an answer may have to be written; the rest is a margin for a
/// busy machine.
const MAX_EVICTION_WAIT: Duration = Duration::from_secs(5);

/// The answer on a connection beyond the maximum, and on every connection while the clock is outside of the dates that
/// HTTP can express.
const NO_CONNECTION: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// State that all connections share.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) router: Router,
    pub(crate) connections: Arc<Connections>,
    /// Cancelled when all connections have to end.
    pub(crate) closing: CancellationToken,
}

/// Accepts connections and expires sessions for as long as it is polled.
pub(crate) async fn accept(
    listener: &TcpListener,
    endpoint: &Endpoint,
    sessions: &Sessions,
    serving: &mut JoinSet<()>,
) -> Infallible {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut expiry = interval(sessions.expiry_interval());
    expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let peer = PeerKey::from(address.ip());
                    if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
                        let open = endpoint.connections.open(peer, permit);
                        serving.spawn(serve_connection(stream, endpoint.clone(), open));
                    } else if let Some(permit) = endpoint.connections.make_room(peer) {
                        metrics::count_evicted("connection");
                        serving.spawn(serve_after_eviction(stream, endpoint.clone(), peer, permit));
                    } else {
                        serving.spawn(refuse(stream));
                    }
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_ended) = serving.join_next() => {}
            _ = expiry.tick() => sessions.expire(),
        }
    }
}

/// Serves a connection as soon as the one that was evicted for it has ended. The number of waiting
/// connections is bounded by the number of evicted ones that have not ended yet.
async fn serve_after_eviction(
    stream: TcpStream,
    endpoint: Endpoint,
    peer: PeerKey,
    permit: oneshot::Receiver<OwnedSemaphorePermit>,
) {
    match timeout(MAX_EVICTION_WAIT, permit).await {
        Ok(Ok(permit)) => {
            let open = endpoint.connections.open(peer, permit);
            serve_connection(stream, endpoint, open).await;
        }
        _ => refuse(stream).await,
    }
}

async fn serve_connection(stream: TcpStream, endpoint: Endpoint, open: OpenConnection) {
    if !has_http_date(SystemTime::now()) {
        tracing::warn!(
            "a connection is refused: the clock of this machine is before 1970 or after 9999; set it"
        );
        return refuse(stream).await;
    }
    let Endpoint { router, closing, .. } = endpoint;
    let this = &open.connection;
    // Small answers must not wait for more data.
    let _best_effort = stream.set_nodelay(true);
    let _best_effort = detect_dead_peer(&stream);
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        this.begin_request();
        if request.body().is_end_stream() {
            this.begin_answer();
        }
        request.extensions_mut().insert(Arc::clone(this));
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(MAX_HEAD_TIME)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(Socket::new(stream, Arc::clone(this))), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = closing.cancelled() => {
            // The answer in flight is still written.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        unwritten = this.evicted() => match unwritten {
            Unwritten::Nothing => return,
            Unwritten::EndOfAnswer => {
                connection.as_mut().graceful_shutdown();
                match timeout(MAX_LAST_WRITE, connection).await {
                    Ok(served) => served,
                    Err(_late) => return,
                }
            }
        },
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Configures the system to end the connection of a client that has disappeared without closing it, or has stopped
/// reading. Such a client must not keep its runs or a worker that was lent to it, even while nothing is sent.
///
/// # Errors
///
/// If the system refuses it.
fn detect_dead_peer(stream: &TcpStream) -> rustix::io::Result<()> {
    let unread = u32::try_from(USER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, unread)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)
}

/// Whether the header `Date` can express this time. If the clock is before 1970 or after 9999, hyper panics on every
/// connection, even if it is configured not to write the header.
pub(super) fn has_http_date(now: SystemTime) -> bool {
    const YEAR_10000: u64 = 253_402_300_800;
    now.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|time| time.as_secs() < YEAR_10000)
}

/// Tells a client that this connection cannot be served now.
async fn refuse(mut stream: TcpStream) {
    let _gone = timeout(ACCEPT_PAUSE, stream.write_all(NO_CONNECTION)).await;
}

#[cfg(test)]
mod tests;

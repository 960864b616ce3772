//! A listener for the server's own pages: few short connections, and small requests. For MCP there is `listener.rs`,
//! which holds many long connections.

use std::convert::Infallible;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::Response;
use futures::future::BoxFuture;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::listener::has_http_date;
use super::responses::try_again;

/// Maximum number of connections that are served at once. A scraper needs one and a browser six.
const MAX_CONNECTIONS: usize = 8;

/// Maximum number of further connections that wait until another one has ended. Still more wait in the system's queue,
/// which is bounded.
const MAX_WAITING: usize = 8;

/// How long a connection waits before its request is refused. Peers that send nothing have lost their slots by then,
/// and a scraper, which gives up after ten seconds, still hears the reason.
const MAX_WAIT: Duration = Duration::from_secs(8);

/// How long a connection may last. Scrapers and browsers connect again; peers that send nothing lose
/// their slot.
const MAX_CONNECTION_TIME: Duration = Duration::from_secs(60);

/// Additional time for the answer that is being written at that moment.
const MAX_LAST_ANSWER: Duration = Duration::from_secs(5);

/// How long a peer may take for the head of a request.
const MAX_HEAD_TIME: Duration = Duration::from_secs(5);

/// Maximum bytes of the head of a request, and of what is written at once. hyper's minimum.
const MAX_BUFFER: usize = 8 * 1024;

/// Pause after the system has refused to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers a request, whose body is not read yet.
pub(super) type Answer = Arc<dyn Fn(Request<Body>) -> BoxFuture<'static, Response> + Send + Sync>;

/// Serves connections until `stop` is cancelled. They end with this future.
pub(super) async fn serve(listener: &TcpListener, answer: Answer, stop: &CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS + MAX_WAITING));
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut serving = JoinSet::new();
    loop {
        // The semaphores are never closed.
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit,
            () = stop.cancelled() => return,
        };
        let Ok(permit) = permit else { return };
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _peer)) => {
                    let (answer, slots) = (Arc::clone(&answer), Arc::clone(&slots));
                    serving.spawn(async move {
                        match timeout(MAX_WAIT, slots.acquire()).await {
                            Ok(_slot) => serve_connection(stream, answer).await,
                            Err(_elapsed) => serve_connection(stream, Arc::new(busy)).await,
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to a page of the server cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_ended) = serving.join_next() => {}
            () = stop.cancelled() => return,
        }
    }
}

/// The answer to all requests of a connection for which there was no slot.
fn busy(_request: Request<Body>) -> BoxFuture<'static, Response> {
    let why = format!("all {MAX_CONNECTIONS} connections that are served here at once are in use");
    let mut response = try_again(&why);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Box::pin(ready(response))
}

fn refused() -> Response {
    let mut response = Response::new(Body::from("a body has to have a `Content-Length` here"));
    *response.status_mut() = StatusCode::LENGTH_REQUIRED;
    // The next bytes on the connection may be part of the body.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn serve_connection(stream: TcpStream, answer: Answer) {
    if !has_http_date(SystemTime::now()) {
        return;
    }
    let service = service_fn(|request: Request<Incoming>| {
        // A second length lets one request hide in another (request smuggling). No request here needs chunks.
        let is_in_pieces = request.headers().contains_key(TRANSFER_ENCODING);
        let response = (!is_in_pieces).then(|| answer(request.map(Body::new)));
        async move {
            Ok::<_, Infallible>(match response {
                Some(response) => response.await,
                None => refused(),
            })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(MAX_HEAD_TIME)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let served = match timeout(MAX_CONNECTION_TIME, &mut connection).await {
        Ok(served) => served,
        Err(_elapsed) => {
            connection.as_mut().graceful_shutdown();
            timeout(MAX_LAST_ANSWER, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to a page of the server broke");
    }
}

#[cfg(test)]
mod tests;

//! One client's connection over stdio, from its first line to the last answer.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::service::serve_directly_with_ct;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::calls::CallsInFlight;
use super::handler::RequestHandler;
use super::request_span::CountedSession;
use super::session::McpSession;
use super::shared::Shared;
use super::shutdown::{MAX_CANCELLATION, MAX_DRAIN, MAX_LAST_WRITE, ShutdownReason};
use super::stdio::ClientLines;
use crate::conventions;

/// How long closing the connection may take when no request is in flight.
const MAX_CLOSE: Duration = Duration::from_millis(300);

/// Serves one client until it disconnects, `stop` is cancelled, or too many workers are hung. See
/// [`Server::serve`](super::Server::serve).
pub(crate) async fn serve<R, W>(
    shared: &Arc<Shared>,
    reader: R,
    writer: W,
    stop: &CancellationToken,
) -> ShutdownReason
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let gone = CancellationToken::new();
    let (lines, writing) = ClientLines::new(reader, writer, gone.clone());
    let cannot_write = Arc::<AtomicBool>::default();
    let mut writing_task = JoinSet::new();
    writing_task.spawn({
        let (gone, cannot_write) = (gone.clone(), Arc::clone(&cannot_write));
        async move {
            if let Err(error) = writing.await {
                tracing::debug!(%error, "writing to the client failed");
                cannot_write.store(!is_gone(&error), Ordering::Relaxed);
            }
            gone.cancel();
        }
    });
    let runs = CancellationToken::new();
    let _runs_end_with_this = runs.clone().drop_guard();
    let calls = Arc::<CallsInFlight>::default();
    let _counted = CountedSession::begin(conventions::PIPE);
    let session = Arc::new(McpSession::new(Arc::clone(shared), runs.clone(), Arc::clone(&calls)));
    let handler = RequestHandler::new(Arc::clone(&session));
    let mut running = serve_directly_with_ct(handler, lines, None, CancellationToken::new());
    let ended = tokio::select! {
        () = gone.cancelled() => ShutdownReason::ClientGone,
        () = stop.cancelled() => ShutdownReason::Stopped,
        () = shared.hung_workers.end_of_server() => {
            tokio::select! {
                () = calls.wait_until_empty(MAX_DRAIN) => {}
                // The client is gone, so no answers will be read.
                () = gone.cancelled() => {}
                () = stop.cancelled() => {}
            }
            ShutdownReason::WorkersHung
        }
    };
    runs.cancel();
    // The runs are awaited before the connection is closed, because closing cancels its
    // requests, and they should be answered.
    calls.wait_until_empty(MAX_CANCELLATION).await;
    if !matches!(running.close_with_timeout(MAX_CLOSE).await, Ok(Some(_))) {
        tracing::warn!("a session did not end in time");
    }
    session.forget();
    // Dropping the set aborts the task. If the client does not read, the remaining answers are lost.
    let _written = timeout(MAX_LAST_WRITE, writing_task.join_next()).await;
    match ended {
        ShutdownReason::ClientGone if cannot_write.load(Ordering::Relaxed) => ShutdownReason::CannotWrite,
        ended => ended,
    }
}

/// Whether a write failed because the reader is gone.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected)
}

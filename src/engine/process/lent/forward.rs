//! What is forwarded between an executor and the worker that is lent to it, in both directions.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::forwarded::Forwarded;
use super::{CHUNK, LentError, MEMORY, NOT_READ};
use crate::engine::process::frames::RunNumber;
use crate::engine::process::refusal::{failed_run, over_memory};
use crate::engine::process::resources::Resources;
use crate::engine::process::workers::WorkerProcess;

/// What becomes of the run for which a worker is lent. Both directions need it.
#[derive(Default)]
pub(super) struct LentRun {
    /// The run, if it was admitted.
    pub(super) in_flight: OnceLock<RunNumber>,
    /// The run, if it was not, and why, as the rest of a sentence.
    pub(super) refused: OnceLock<(RunNumber, &'static str)>,
}

/// Forwards `head`, then what the executor sends, until it sends no more.
///
/// # Errors
///
/// If the worker does not read for `max_wait`, or a connection breaks.
pub(super) async fn forward_orders<E, W>(
    from_executor: &mut E,
    to_worker: &mut W,
    head: Vec<u8>,
    max_wait: Duration,
) -> Result<(), LentError>
where
    E: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let written = timeout(max_wait, to_worker.write_all(&head)).await;
    written.map_err(|_late| LentError::Bound(NOT_READ))??;
    drop(head);
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from_executor.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        // While this waits, the end of the other side is not noticed.
        let written = timeout(max_wait, to_worker.write_all(&buffer[..count])).await;
        if written.map_err(|_late| LentError::Bound(NOT_READ))?.is_err() {
            // The worker does not read any more. `forward_replies` sees how it ends.
            return Ok(read_to_end(from_executor).await?);
        }
    }
}

/// Forwards what the worker sends until it has ended. Returns the bound that it broke, if the kernel has ended it for
/// that. If its run was refused, tells the executor so, and does not complete.
///
/// # Errors
///
/// If a connection breaks.
pub(super) async fn forward_replies<W, E>(
    from_worker: &mut W,
    to_executor: &mut E,
    worker: &mut WorkerProcess,
    forwarded: &mut Forwarded,
    run: &LentRun,
    resources: &Resources,
) -> io::Result<Option<&'static str>>
where
    W: AsyncRead + Unpin,
    E: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; CHUNK];
    let mut is_ready = false;
    loop {
        let read = from_worker.read(&mut buffer).await;
        if let Some((number, problem)) = run.refused.get()
            && !matches!(read, Ok(1..))
        {
            let number = if is_ready { *number } else { RunNumber::NONE };
            to_executor.write_all(&failed_run(number, problem)).await?;
            to_executor.shutdown().await?;
            // The stream is kept until the executor has read this: the other direction completes then.
            return std::future::pending().await;
        }
        let count = *read.as_ref().unwrap_or(&0);
        if count == 0 {
            let status = worker.ended().await;
            if resources.was_out_of_memory(status) {
                return Ok(Some(MEMORY));
            }
            let _end = read?;
            to_executor.shutdown().await?;
            return Ok(None);
        }
        // The only message of a worker before its run says that it is ready.
        is_ready = true;
        forwarded.begin();
        to_executor.write_all(&buffer[..count]).await?;
        to_executor.flush().await?;
        forwarded.sent(&buffer[..count]);
    }
}

/// Tells the executor that its run was ended because of its memory, and waits until it has read this.
///
/// # Errors
///
/// If the connection breaks.
pub(super) async fn tell_over_memory<R, W>(
    run: RunNumber,
    from_executor: &mut R,
    to_executor: &mut W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    to_executor.write_all(&over_memory(run)).await?;
    to_executor.shutdown().await?;
    read_to_end(from_executor).await
}

/// Reads what comes until the stream ends.
pub(super) async fn read_to_end<S>(stream: &mut S) -> io::Result<()>
where
    S: AsyncRead + Unpin,
{
    let mut buffer = vec![0; CHUNK];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

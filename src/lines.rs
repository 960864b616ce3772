//! The stdio transport for both sides of a connection: one message per line, read with bounds,
//! written without blocking.
//!
//! tokio-util's `LinesCodec` and rmcp's codec drop a line that is too long and report that there
//! was one. Here its id is read while it is skipped, so that its request is answered, and what is
//! skipped has a bound too. [`events`] are the lines of a response over HTTP.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Notify, mpsc};

pub(crate) mod events;
mod scan;

pub(crate) use scan::{FoundId, IdScan};

/// Maximum length in bytes of a line that is read. A script may receive 16 MB. A server with
/// structured results sends them a second time as text, so this is twice that size plus room for
/// escapes and the JSON-RPC envelope.
pub(crate) const MAX_LINE: usize = 34 * 1024 * 1024;

/// A line longer than this, in bytes, is not a message. Up to this length it is skipped, because
/// the next line may be valid. Beyond it the connection should be closed, because skipping costs
/// CPU time.
pub(crate) const MAX_SKIPPED_LINE: usize = 16 * MAX_LINE;

/// The capacity of a pipe in bytes: fewer system calls for large results.
const READ_BUFFER: usize = 64 * 1024;

/// A line buffer that has grown beyond this size, in bytes, is shrunk after its line.
const KEPT_LINE_BUFFER: usize = 1024 * 1024;

/// Maximum bytes queued for a peer that does not read its input. Several of the largest arguments.
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// Small messages are written together, up to this size in bytes.
const WRITE_BATCH: usize = 64 * 1024;

/// Reads lines from a stream.
pub(crate) struct LineReader<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// The line that is being skipped because it is too long.
    long: Option<LongLine>,
}

struct LongLine {
    scan: IdScan,
    bytes: usize,
    told: bool,
}

/// The result of one step of a [`LineReader`].
pub(crate) enum Piece {
    /// Part of a line.
    Part,
    /// A complete line without its newline. [`LineReader::reuse`] takes the buffer back.
    Line(Vec<u8>),
    /// Part of a line that is longer than [`MAX_LINE`] and is not stored.
    Long {
        /// The id of the message, the first time that it is known.
        id: Option<FoundId>,
        /// Whether the id has been reported, now or before.
        told: bool,
        /// Bytes of the line so far.
        bytes: usize,
        /// Whether this was the end of the line.
        ends: bool,
    },
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(READ_BUFFER, reader), line: Vec::new(), long: None }
    }

    /// Reads one line, or the part of it that has arrived. Returns `None` at the end of the stream,
    /// even after an incomplete line. Cancel safe: nothing is lost if the future is dropped while
    /// it waits.
    ///
    /// # Errors
    ///
    /// Errors of the stream.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Piece>> {
        let available = self.reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(None);
        }
        let newline = available.iter().position(|&byte| byte == b'\n');
        let piece = &available[..newline.unwrap_or(available.len())];
        let consumed = newline.map_or(available.len(), |position| position + 1);
        let ends = newline.is_some();
        if self.long.is_none() && self.line.len() + piece.len() > MAX_LINE {
            let mut scan = IdScan::default();
            scan.feed(&self.line);
            self.long = Some(LongLine { scan, bytes: self.line.len(), told: false });
            self.line = Vec::new();
        }
        let Some(long) = &mut self.long else {
            self.line.extend_from_slice(piece);
            self.reader.consume(consumed);
            return Ok(Some(if ends { Piece::Line(std::mem::take(&mut self.line)) } else { Piece::Part }));
        };
        long.scan.feed(piece);
        long.bytes += piece.len();
        self.reader.consume(consumed);
        let id = if long.told { None } else { long.scan.found().cloned() };
        long.told |= id.is_some();
        let piece = Piece::Long { id, told: long.told, bytes: long.bytes, ends };
        if ends {
            self.long = None;
        }
        Ok(Some(piece))
    }

    /// Takes back the buffer of a line that has been processed.
    pub(crate) fn reuse(&mut self, mut line: Vec<u8>) {
        line.clear();
        line.shrink_to(KEPT_LINE_BUFFER);
        self.line = line;
    }
}

/// A line without the bytes around its message.
pub(crate) fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    // Programs on some runtimes write a byte order mark at the start of a stream.
    line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
}

/// Queue of messages for the writing task. It never blocks, and refuses messages when too many
/// bytes are queued. After it is dropped, the task writes what is queued and ends.
pub(crate) struct LineQueue {
    queue: mpsc::UnboundedSender<Message>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    answers: AtomicUsize,
    /// Number of batches that have been written, wrapping.
    writes: AtomicUsize,
    /// Notified after each batch.
    written: Notify,
}

struct Message {
    line: Vec<u8>,
    is_answer: bool,
}

impl LineQueue {
    /// Creates a queue, and the task that writes it to `writer`, which the caller must run. The
    /// task ends early if writing fails.
    pub(crate) fn new<W: AsyncWrite + Send + Unpin + 'static>(
        writer: W,
    ) -> (Self, impl Future<Output = io::Result<()>> + Send + 'static) {
        let (queue, messages) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        let writing = write_messages(writer, messages, Arc::clone(&waiting));
        (Self { queue, waiting }, writing)
    }

    /// Answers that have not been written yet.
    pub(crate) fn waiting_answers(&self) -> usize {
        self.waiting.answers.load(Ordering::Relaxed)
    }

    /// Bytes that have not been written yet.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.waiting.bytes.load(Ordering::Relaxed)
    }

    /// A number that changes with each write, to distinguish a slow peer from one that does not
    /// read.
    pub(crate) fn writes(&self) -> usize {
        self.waiting.writes.load(Ordering::Relaxed)
    }

    /// Completes after the next write, or at once if there was one since the last completion. For
    /// one task only.
    pub(crate) async fn written(&self) {
        self.waiting.written.notified().await;
    }

    /// Queues a message and its newline.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the peer does not read and too many bytes are queued, `BrokenPipe` if it has
    /// closed the stream.
    pub(crate) fn push(&self, mut line: Vec<u8>, is_answer: bool) -> io::Result<()> {
        line.push(b'\n');
        let bytes = line.len();
        let waiting = self.waiting.bytes.load(Ordering::Relaxed);
        // A peer that has read everything gets any message, however large.
        if waiting > 0 && waiting + bytes > MAX_WAITING_BYTES {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "the other side does not read"));
        }
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.waiting.answers.fetch_add(usize::from(is_answer), Ordering::Relaxed);
        let closed = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.queue.send(Message { line, is_answer }).map_err(closed)
    }
}

/// Writes messages until the queue is dropped or the reader has closed the stream.
async fn write_messages(
    mut writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::UnboundedReceiver<Message>,
    waiting: Arc<Waiting>,
) -> io::Result<()> {
    let mut batch = Vec::new();
    while let Some(first) = messages.recv().await {
        let mut answers = usize::from(first.is_answer);
        batch.extend_from_slice(&first.line);
        while batch.len() < WRITE_BATCH
            && let Ok(next) = messages.try_recv()
        {
            answers += usize::from(next.is_answer);
            batch.extend_from_slice(&next.line);
        }
        writer.write_all(&batch).await?;
        writer.flush().await?;
        waiting.bytes.fetch_sub(batch.len(), Ordering::Relaxed);
        waiting.answers.fetch_sub(answers, Ordering::Relaxed);
        waiting.writes.fetch_add(1, Ordering::Relaxed);
        waiting.written.notify_one();
        batch.clear();
        batch.shrink_to(KEPT_LINE_BUFFER);
    }
    // Dropping one half of a split socket does not close it; dropping a pipe does.
    writer.shutdown().await
}

//! The socket of a connection, between the system and hyper. It observes two things that hyper reads and does not
//! report:
//!
//! - hyper drops `Content-Length` from a request that also has `Transfer-Encoding`. A proxy in front that
//!   goes by the other header takes a part of the body for another request, so such requests have to be
//!   refused (RFC 9112, section 6.3), and for that they have to be seen.
//! - hyper takes the end of a client's stream for the end of the client. A client may also end only the
//!   direction in which it has nothing more to say, and wait for its answer. The two look the same until
//!   something is written, which a client that is gone answers with a reset. So while a request is being
//!   handled the end is not passed on, and after a while something is written that changes no answer: an
//!   interim response here, or a comment in a stream of events.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::connections::Connection;
use super::pace::ReadingPace;

/// Maximum bytes of a request's head.
pub(crate) const MAX_HEAD_BYTES: usize = 64 << 10;

/// How long after the end of a client's stream the first interim response is written. Clients that wait for their
/// answer do not expect one, so that most answers should come before it: few scripts run for this long, and few clients
/// end their stream early. A run whose client is gone is cancelled after this time.
const FIRST_PROBE: Duration = Duration::from_secs(1);

/// The pause before the second interim response. It doubles each time, because some clients accept no more
/// than five.
const NEXT_PROBE: Duration = Duration::from_secs(15);

/// How often a socket whose client has ended its stream is checked for a reset.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The interim response. `100 Continue` is the one that every client skips.
const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Maximum number of heads that were read ahead of the request that is being handled. More do not fit in
/// hyper's buffer.
const MAX_HEADS: usize = MAX_HEAD_BYTES;

/// The framing of a request, as its head describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Whether it has both `Content-Length` and `Transfer-Encoding`.
    pub(crate) is_ambiguous: bool,
    /// Whether the connection has to end with the answer: two parsers may disagree about the end of a chunked body, and
    /// the heads after it would not be found.
    pub(crate) is_last: bool,
    is_http_11: bool,
}

/// The heads that were read on a connection.
#[derive(Default)]
struct RequestHeads {
    /// Those whose requests have not begun, in order.
    waiting: VecDeque<Head>,
    /// The one whose request began last.
    current: Head,
}

/// State that the socket and the requests of one connection share.
#[derive(Default)]
pub(crate) struct SocketActivity {
    heads: Mutex<RequestHeads>,
    /// Whether a part of the answer has been written.
    has_written: AtomicBool,
    is_half_closed: AtomicBool,
    /// Whether what is read is of another protocol than HTTP.
    is_upgraded: AtomicBool,
    /// Bytes of answers that hyper has and the system does not, because the client has not read enough.
    unread: AtomicUsize,
    /// Bytes of the answer that is made and that hyper does not have yet, because earlier parts of it wait.
    made: AtomicUsize,
    pub(crate) pace: ReadingPace,
}

impl SocketActivity {
    /// Begins a request. Its head is the one that was read first.
    pub(crate) fn begin_request(&self) {
        let mut heads = self.heads.lock();
        heads.current = heads.waiting.pop_front().unwrap_or_default();
    }

    /// Whether the head of a request was read that has not begun yet.
    pub(crate) fn has_next(&self) -> bool {
        !self.heads.lock().waiting.is_empty()
    }

    /// The head of the request that began last.
    pub(crate) fn head(&self) -> Head {
        self.heads.lock().current
    }

    /// Records that the request is complete and nothing of its answer was written.
    pub(crate) fn begin_answer(&self) {
        self.has_written.store(false, Ordering::Relaxed);
    }

    /// Records that an answer of this many bytes is made, or with 0 that there is none.
    pub(crate) fn note_made(&self, bytes: usize) {
        self.made.store(bytes, Ordering::Relaxed);
    }

    /// Records that hyper was given this many bytes of an answer.
    pub(crate) fn note_given(&self, bytes: usize) {
        self.unread.fetch_add(bytes, Ordering::Relaxed);
        reduce(&self.made, bytes);
    }

    /// The bytes that wait until the client reads.
    pub(crate) fn unread(&self) -> usize {
        self.unread.load(Ordering::Relaxed).saturating_add(self.made.load(Ordering::Relaxed))
    }

    /// Records that the system has accepted this many bytes, which may be those of a head.
    fn note_written(&self, bytes: usize) {
        reduce(&self.unread, bytes);
        self.has_written.store(true, Ordering::Relaxed);
        self.pace.note_written(bytes, Instant::now().into_std());
    }

    /// Records that what is read from now on is of another protocol: it has no heads, and its end is passed on.
    pub(crate) fn begin_upgrade(&self) {
        self.is_upgraded.store(true, Ordering::Relaxed);
    }

    /// Records that nothing waits to be written.
    fn note_flushed(&self) {
        self.unread.store(0, Ordering::Relaxed);
        self.pace.note_flushed();
    }

    /// Whether the client has ended its stream while it waits for an answer.
    pub(crate) fn is_half_closed(&self) -> bool {
        self.is_half_closed.load(Ordering::Relaxed)
    }
}

/// Reduces a number of bytes, at most to 0.
fn reduce(bytes: &AtomicUsize, by: usize) {
    let less = |bytes: usize| Some(bytes.saturating_sub(by));
    let _always_set = bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// The socket of one connection.
pub(crate) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
    heads: Heads,
    half_closed: Option<HalfClosed>,
    /// Whether the system has taken only a part of what hyper has to write.
    is_blocked: bool,
}

/// A socket whose client has ended its stream.
struct HalfClosed {
    check: Pin<Box<Sleep>>,
    probe: Instant,
    pause: Duration,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        Self { stream, connection, heads: Heads::default(), half_closed: None, is_blocked: false }
    }

    /// Waits until the answer is complete, which ends the stream, or until it is known that the client is gone.
    fn poll_half_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let activity = &self.connection.activity;
        loop {
            if !self.connection.owes_answer() {
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = self.stream.take_error()? {
                return Poll::Ready(Err(error));
            }
            let state = self.half_closed.get_or_insert_with(|| {
                activity.is_half_closed.store(true, Ordering::Relaxed);
                let now = Instant::now();
                HalfClosed {
                    check: Box::pin(sleep_until(now + CHECK_INTERVAL)),
                    probe: now + FIRST_PROBE,
                    pause: NEXT_PROBE,
                }
            });
            ready!(state.check.as_mut().poll(context));
            let now = Instant::now();
            if now >= state.probe {
                state.probe = now + state.pause;
                state.pause *= 2;
                let is_due = activity.head().is_http_11 && !activity.has_written.load(Ordering::Relaxed);
                if is_due && !self.is_blocked {
                    // It can be written between parts: nothing of this answer waits to be written.
                    match self.stream.try_write(INTERIM) {
                        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                            return Poll::Ready(Err(error));
                        }
                        _ => {}
                    }
                }
            }
            state.check.as_mut().reset(now + CHECK_INTERVAL);
        }
    }

    fn note_write(&mut self, written: &Poll<io::Result<usize>>) {
        let activity = &self.connection.activity;
        self.is_blocked = written.is_pending();
        match written {
            Poll::Pending => activity.pace.note_blocked(Instant::now().into_std()),
            Poll::Ready(Ok(count @ 1..)) => activity.note_written(*count),
            Poll::Ready(_) => {}
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.connection.activity.is_upgraded.load(Ordering::Relaxed) {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        if this.half_closed.is_some() {
            return this.poll_half_closed(context);
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        if read.is_empty() && buffer.remaining() > 0 {
            // An incomplete head is not a request.
            return if this.heads.is_complete() {
                this.poll_half_closed(context)
            } else {
                Poll::Ready(Ok(()))
            };
        }
        let mut heads = this.connection.activity.heads.lock();
        this.heads.read(read, |head| {
            if heads.waiting.len() < MAX_HEADS {
                heads.waiting.push_back(head);
            }
        });
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.note_write(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called when nothing is left to be written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.activity.note_flushed();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Finds the heads of requests in the bytes of a connection. It parses only where a head ends and
/// how long its body is; hyper refuses malformed requests, which ends the connection.
struct Heads {
    part: Part,
    /// The incomplete line of a head.
    line: Vec<u8>,
    head: Option<HeadSoFar>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    /// Bytes of the body that are left.
    Body(u64),
    /// The line before a chunk.
    ChunkSize,
    /// Bytes of a chunk that are left, with the end of its line.
    Chunk(u64),
    /// The lines after the last chunk.
    Trailer,
    /// The connection ends after this request.
    End,
    /// hyper refuses what was read.
    Malformed,
}

#[derive(Default)]
struct HeadSoFar {
    length: Option<u64>,
    has_transfer_encoding: bool,
    is_http_11: bool,
}

impl Default for Heads {
    fn default() -> Self {
        Self { part: Part::Head, line: Vec::new(), head: None }
    }
}

impl Heads {
    /// Whether all requests that were read are complete.
    fn is_complete(&self) -> bool {
        self.part == Part::End || (self.part == Part::Head && self.head.is_none() && self.line.is_empty())
    }

    fn read(&mut self, mut bytes: &[u8], mut found: impl FnMut(Head)) {
        while !bytes.is_empty() {
            match &mut self.part {
                Part::End | Part::Malformed => return,
                Part::Body(left) | Part::Chunk(left) => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    bytes = &bytes[count..];
                    *left -= count as u64;
                    match self.part {
                        Part::Body(0) => self.part = Part::Head,
                        Part::Chunk(0) => self.part = Part::ChunkSize,
                        _ => {}
                    }
                }
                Part::Head | Part::ChunkSize | Part::Trailer => {
                    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                        self.line.extend_from_slice(bytes);
                        if self.line.len() > MAX_HEAD_BYTES {
                            self.part = Part::Malformed;
                            self.line = Vec::new();
                        }
                        return;
                    };
                    self.line.extend_from_slice(&bytes[..end]);
                    bytes = &bytes[end + 1..];
                    let line = std::mem::take(&mut self.line);
                    let line = line.strip_suffix(b"\r").unwrap_or(&line);
                    match self.part {
                        Part::ChunkSize => self.part = after_chunk_size(line),
                        Part::Trailer if line.is_empty() => self.part = Part::End,
                        Part::Trailer => {}
                        _ => {
                            if let Some(head) = self.end_line(line) {
                                found(head);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Reads a line of a head. Returns the head if it is complete.
    fn end_line(&mut self, line: &[u8]) -> Option<Head> {
        let Some(head) = &mut self.head else {
            // Empty lines before a request are skipped.
            if !line.is_empty() {
                let is_http_11 = line.ends_with(b"HTTP/1.1");
                self.head = Some(HeadSoFar { is_http_11, ..HeadSoFar::default() });
            }
            return None;
        };
        if !line.is_empty() {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"transfer-encoding") {
                head.has_transfer_encoding = true;
            } else if name.eq_ignore_ascii_case(b"content-length") {
                // hyper refuses values that are not numbers, and two that differ.
                let length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                head.length = Some(length.unwrap_or(0));
            }
            return None;
        }
        let HeadSoFar { length, has_transfer_encoding, is_http_11 } = self.head.take()?;
        self.part = match length {
            _ if has_transfer_encoding => Part::ChunkSize,
            Some(length @ 1..) => Part::Body(length),
            Some(0) | None => Part::Head,
        };
        let is_ambiguous = has_transfer_encoding && length.is_some();
        Some(Head { is_ambiguous, is_last: has_transfer_encoding, is_http_11 })
    }
}

fn after_chunk_size(line: &[u8]) -> Part {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    match std::str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok()) {
        Some(0) => Part::Trailer,
        Some(size) => size.checked_add(2).map_or(Part::Malformed, Part::Chunk),
        None => Part::Malformed,
    }
}

#[cfg(test)]
mod tests;

//! The wire: one JSON-RPC message a line, read with bounds, written without blocking anyone.
//!
//! rmcp's own line transport drops a line that is too long or that is not JSON, and whoever waits
//! for that answer waits for ever. It also starts a task for every request and notification that
//! the server cares to send. This one ends the call that a bad line was the answer to, answers the
//! server's requests itself (all but `ping` are refused: no capability is offered) and passes on
//! nothing but answers to requests that are pending.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout_at;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::convert::{Expected, OVERSIZED_ANSWER, UNREADABLE_ANSWER, expected, read_result};
use super::message::{Envelope, ProgressNotification, answer_to, read_error};
use super::scan::IdScan;
use super::signals::Signals;

/// The longest line that is read. A script may receive 16 MB; a server that has a structured result
/// sends it a second time as text, so twice that and some room for escapes and the envelope.
pub(super) const LONGEST_LINE: usize = 34 * 1024 * 1024;

/// A line that goes on for this long is no message. Until then it is skipped, since the next line
/// may be fine; past it the connection is given up, since skipping costs processor time.
const LONGEST_SKIPPED_LINE: usize = 16 * LONGEST_LINE;

/// What is said about a probe that was given up.
pub(super) const NO_ANSWER: &str = "no answer to server/discover";

/// As much as a pipe holds: fewer system calls for large results.
const READ_BUFFER: usize = 64 * 1024;

/// A line buffer that grew past this is given back after its line.
const KEPT_LINE_BUFFER: usize = 1024 * 1024;

/// What may wait for a server that does not read its input. Several of the largest arguments.
const MOST_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// Requests of the server whose answers wait for the server to read them. An honest server has one
/// or two; one that asks on and on and never reads is cut off.
const MOST_WAITING_ANSWERS: usize = 1024;

/// Several small messages are written at once, up to this size.
const WRITE_BATCH: usize = 64 * 1024;

/// The client's end of a server's stdout and stdin. Lives as long as the connection.
pub(super) struct LineTransport<R> {
    server: Arc<str>,
    reader: BufReader<R>,
    line: Vec<u8>,
    /// The line being skipped because it is too long.
    skipped: Option<Skipped>,
    outgoing: Option<Outgoing>,
    /// What is waited for, by request.
    pending: HashMap<i64, Expected>,
    signals: Signals,
    /// The probe for the newest revision, which old servers may never answer, and when to give up.
    probe: Option<(i64, Instant)>,
    probe_time: Duration,
    reported_noise: bool,
    /// Tells the rest of the connection when rmcp has dropped this.
    _ended: DropGuard,
}

struct Skipped {
    scan: IdScan,
    bytes: usize,
    /// Whether the call that this line answers has been told.
    told: bool,
}

/// Messages on their way to the writing task. Never waits; refuses when too much waits.
struct Outgoing {
    queue: mpsc::UnboundedSender<Message>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    answers: AtomicUsize,
}

struct Message {
    line: Vec<u8>,
    is_answer: bool,
}

/// What became of one line.
enum Read {
    Message(Box<ServerJsonRpcMessage>),
    Nothing,
    /// The server breaks the rules so badly that the connection must go.
    GiveUp,
}

impl<R: AsyncRead + Send + Unpin> LineTransport<R> {
    /// Connects to `reader` and returns the transport and the task that writes to `writer`, which
    /// the caller must run. `ended` is cancelled when the transport is dropped.
    pub(super) fn new<W: AsyncWrite + Send + Unpin + 'static>(
        server: Arc<str>,
        reader: R,
        writer: W,
        signals: Signals,
        probe_time: Duration,
        ended: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, messages) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        let writing = write_messages(writer, messages, Arc::clone(&waiting));
        let transport = Self {
            server,
            reader: BufReader::with_capacity(READ_BUFFER, reader),
            line: Vec::new(),
            skipped: None,
            outgoing: Some(Outgoing { queue, waiting }),
            pending: HashMap::new(),
            signals,
            probe: None,
            probe_time,
            reported_noise: false,
            _ended: ended.drop_guard(),
        };
        (transport, writing)
    }

    /// Takes one line, or as much of it as has come, off the reader. Nothing is lost when this is
    /// dropped while it waits, which rmcp does whenever it has something to send.
    async fn read_on(&mut self) -> io::Result<Option<Read>> {
        let available = self.reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(None);
        }
        let newline = available.iter().position(|&byte| byte == b'\n');
        let piece = &available[..newline.unwrap_or(available.len())];
        let consumed = newline.map_or(available.len(), |position| position + 1);
        let ends = newline.is_some();
        if self.skipped.is_none() && self.line.len() + piece.len() > LONGEST_LINE {
            let mut scan = IdScan::default();
            scan.feed(&self.line);
            self.skipped = Some(Skipped { scan, bytes: self.line.len(), told: false });
            self.line = Vec::new();
        }
        let Some(skipped) = &mut self.skipped else {
            self.line.extend_from_slice(piece);
            self.reader.consume(consumed);
            if !ends {
                return Ok(Some(Read::Nothing));
            }
            let line = std::mem::take(&mut self.line);
            let read = self.read_line(line.trim_ascii());
            self.line = line;
            self.line.clear();
            self.line.shrink_to(KEPT_LINE_BUFFER);
            return Ok(Some(read));
        };
        skipped.scan.feed(piece);
        skipped.bytes += piece.len();
        self.reader.consume(consumed);
        Ok(Some(self.skip(ends)))
    }

    /// Ends the call that the skipped line answers as soon as it is known which one that is.
    fn skip(&mut self, ends: bool) -> Read {
        let Some(skipped) = &mut self.skipped else { return Read::Nothing };
        let id = if skipped.told { None } else { skipped.scan.found() };
        let bytes = skipped.bytes;
        skipped.told |= id.is_some();
        if ends {
            tracing::warn!(server = %self.server, bytes, "a line was too long and was skipped");
            self.skipped = None;
        } else if bytes > LONGEST_SKIPPED_LINE {
            tracing::warn!(server = %self.server, bytes, "a line does not end");
            return Read::GiveUp;
        }
        let problem = format!("more than {} MB in one message", LONGEST_LINE / (1024 * 1024));
        id.map_or(Read::Nothing, |id| self.failed(id, OVERSIZED_ANSWER, problem))
    }

    fn read_line(&mut self, line: &[u8]) -> Read {
        // A byte order mark comes from servers on runtimes that write one at the start of a stream.
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        if line.is_empty() {
            return Read::Nothing;
        }
        let envelope = match serde_json::from_slice::<Envelope<'_>>(line) {
            Ok(envelope) => envelope,
            Err(error) => return self.unreadable(line, &error),
        };
        match (&envelope.method, envelope.id) {
            (Some(method), Some(id)) => self.answer(method, id),
            (Some(method), None) => self.read_notification(method, line),
            (None, Some(id)) => self.read_answer(&envelope, id),
            (None, None) => {
                if let Some(error) = envelope.error {
                    // Not to be told apart from noise: nobody can be told that this is about them.
                    tracing::debug!(server = %self.server, bytes = error.get().len(), "an error without an id");
                }
                Read::Nothing
            }
        }
    }

    fn read_notification(&self, method: &str, line: &[u8]) -> Read {
        match method {
            "notifications/tools/list_changed" => self.signals.tools_changed(),
            "notifications/progress" => {
                if let Ok(ProgressNotification { params }) = serde_json::from_slice(line) {
                    self.signals.progress(params);
                }
            }
            // rmcp waits for this one before it lets a subscription begin. There is one for each
            // connection; a server that sends more talks to itself.
            "notifications/subscriptions/acknowledged" => {
                if let Ok(message) = serde_json::from_slice(line) {
                    return Read::Message(Box::new(message));
                }
            }
            _ => {}
        }
        Read::Nothing
    }

    fn read_answer(&mut self, envelope: &Envelope<'_>, id: &RawValue) -> Read {
        // Ids of ours are numbers, which some servers answer in quotes. Wrong ids, second answers and answers to what was cancelled end here.
        let Ok(id) = id.get().trim_matches('"').parse::<i64>() else { return Read::Nothing };
        let Some(&expected) = self.pending.get(&id) else {
            tracing::debug!(server = %self.server, id, "an answer to no pending request");
            return Read::Nothing;
        };
        let answer = match (envelope.result, envelope.error) {
            (Some(result), None) => read_result(expected, result)
                .map(|result| JsonRpcMessage::response(result, RequestId::Number(id))),
            (_, Some(error)) => {
                read_error(error).map(|error| JsonRpcMessage::error(error, Some(RequestId::Number(id))))
            }
            (None, None) => {
                return self.failed(id, UNREADABLE_ANSWER, "it has neither a result nor an error".to_owned());
            }
        };
        match answer {
            Ok(answer) => {
                self.pending.remove(&id);
                self.probe.take_if(|(probe, _)| *probe == id);
                Read::Message(Box::new(answer))
            }
            Err(error) => self.failed(id, UNREADABLE_ANSWER, error.to_string()),
        }
    }

    /// A line that is not JSON: the answer to somebody, or noise such as a banner.
    fn unreadable(&mut self, line: &[u8], error: &serde_json::Error) -> Read {
        if let Some(id) = IdScan::of_line(line) {
            return self.failed(id, UNREADABLE_ANSWER, error.to_string());
        }
        if !self.reported_noise {
            self.reported_noise = true;
            tracing::warn!(
                server = %self.server, bytes = line.len(),
                "the server writes to its stdout what is not the protocol; it is ignored"
            );
        }
        Read::Nothing
    }

    /// Ends the probe for the newest revision as a server would that does not know it. Some servers
    /// answer nothing before the handshake that they know.
    fn give_up_probe(&mut self) -> Read {
        let Some((id, _)) = self.probe.take() else { return Read::Nothing };
        tracing::debug!(server = %self.server, "no answer to the probe for the newest revision");
        self.failed(id, ErrorCode::METHOD_NOT_FOUND, NO_ANSWER.to_owned())
    }

    /// Ends a pending request with an error of our own.
    fn failed(&mut self, id: i64, code: ErrorCode, problem: String) -> Read {
        if self.pending.remove(&id).is_none() {
            return Read::Nothing;
        }
        self.probe.take_if(|(probe, _)| *probe == id);
        let error = ErrorData::new(code, problem, None);
        Read::Message(Box::new(JsonRpcMessage::error(error, Some(RequestId::Number(id)))))
    }

    /// Answers a request of the server.
    fn answer(&self, method: &str, id: &RawValue) -> Read {
        let Some((outgoing, answer)) = self.outgoing.as_ref().zip(answer_to(method, id)) else {
            return Read::Nothing;
        };
        if outgoing.waiting.answers.load(Ordering::Relaxed) >= MOST_WAITING_ANSWERS {
            tracing::warn!(server = %self.server, "the server asks without reading the answers");
            return Read::GiveUp;
        }
        let line = line_of(&answer);
        match outgoing.push(line, true) {
            Ok(()) => Read::Nothing,
            Err(_) => Read::GiveUp,
        }
    }

    /// Notes what is expected and hands the message to the writing task.
    fn push(&mut self, message: &ClientJsonRpcMessage) -> io::Result<()> {
        if let JsonRpcMessage::Notification(notification) = message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(RequestId::Number(id)) = cancelled.params.request_id
        {
            self.pending.remove(&id);
        }
        let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        outgoing.push(line, false)?;
        if let JsonRpcMessage::Request(request) = message
            && let RequestId::Number(id) = request.id
        {
            let expected = expected(&request.request);
            self.pending.insert(id, expected);
            if expected == Expected::Discover {
                self.probe = Some((id, Instant::now() + self.probe_time));
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleClient> for LineTransport<R> {
    type Error = io::Error;

    /// Queues at once, in the order of the calls: rmcp runs the returned future in a task of its
    /// own, where a cancellation could overtake its request.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        ready(self.push(&message))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let read = match self.probe {
                Some((_, until)) => match timeout_at(until.into(), self.read_on()).await {
                    Ok(read) => read,
                    Err(_elapsed) => Ok(Some(self.give_up_probe())),
                },
                None => self.read_on().await,
            };
            match read {
                Ok(Some(Read::Message(message))) => return Some(*message),
                Ok(Some(Read::Nothing)) => {}
                Ok(None | Some(Read::GiveUp)) => return None,
                Err(error) => {
                    tracing::debug!(server = %self.server, %error, "reading from the server failed");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Ends the writing task once it has written what waits; that closes the server's stdin.
        self.outgoing = None;
        Ok(())
    }
}

impl Outgoing {
    fn push(&self, line: Vec<u8>, is_answer: bool) -> io::Result<()> {
        let bytes = line.len();
        if self.waiting.bytes.load(Ordering::Relaxed) + bytes > MOST_WAITING_BYTES {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "the server does not read its input"));
        }
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.waiting.answers.fetch_add(usize::from(is_answer), Ordering::Relaxed);
        let closed = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.queue.send(Message { line, is_answer }).map_err(closed)
    }
}

/// Writes until the transport is closed or the server is gone.
async fn write_messages(
    mut writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::UnboundedReceiver<Message>,
    waiting: Arc<Waiting>,
) {
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
        let written = async {
            writer.write_all(&batch).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            // The reading side notices too, and knows better what that means.
            return;
        }
        waiting.bytes.fetch_sub(batch.len(), Ordering::Relaxed);
        waiting.answers.fetch_sub(answers, Ordering::Relaxed);
        batch.clear();
        batch.shrink_to(KEPT_LINE_BUFFER);
    }
    // Half of a socket that was split does not close by being dropped; a pipe does.
    if writer.shutdown().await.is_err() {
        tracing::debug!("the server's input was closed already");
    }
}

fn line_of(message: &serde_json::Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

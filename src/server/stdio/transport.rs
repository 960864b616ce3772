//! The connection: reads lines, handles or parks each, and is disconnected when its client reads
//! nothing.

use std::future::{Future, pending, ready};
use std::io;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::coop::consume_budget;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use super::backpressure::{LookAhead, MAX_STALL, ParkedLine};
use super::message::{Order, order};
use super::requests::Requests;
use crate::lines::{LineQueue, LineReader, MAX_LINE, MAX_SKIPPED_LINE, Piece, trimmed};

/// One client's stdio connection. Lives as long as the connection.
pub(crate) struct ClientLines<R> {
    lines: LineReader<R>,
    requests: Requests,
    /// Lines that were read while no more requests may be in flight.
    look_ahead: LookAhead,
    /// The client has closed its end. Lines in the look-ahead are still handled.
    is_at_end: bool,
    /// Since when the client has read nothing while nothing is read from it, and the number of
    /// writes at that time.
    stalled: Option<(Instant, usize)>,
    max_stall: Duration,
    /// Cancelled when the client is gone or has to be disconnected.
    gone: CancellationToken,
}

impl<R: AsyncRead + Send + Unpin> ClientLines<R> {
    /// Makes a connection and the task that writes to `writer`. The caller must run the task, and
    /// must cancel `gone` when the task ends. The connection also cancels `gone` when the client
    /// has closed its end or violates the protocol too badly.
    pub(crate) fn new<W: AsyncWrite + Send + Unpin + 'static>(
        reader: R,
        writer: W,
        gone: CancellationToken,
    ) -> (Self, impl Future<Output = io::Result<()>> + Send + 'static) {
        let (outgoing, writing) = LineQueue::new(writer);
        let lines = Self {
            lines: LineReader::new(reader),
            requests: Requests::new(outgoing, gone.clone()),
            look_ahead: LookAhead::default(),
            is_at_end: false,
            stalled: None,
            max_stall: MAX_STALL,
            gone,
        };
        (lines, writing)
    }

    /// Handles a line, or parks it until a request in flight ends.
    fn accept_line(&mut self, line: Vec<u8>) {
        let message = trimmed(&line);
        if self.look_ahead.is_empty() && self.requests.may_handle(message.len()) {
            self.requests.read_line(message, &mut self.look_ahead);
        } else {
            match order(message) {
                Order::AtOnce => self.requests.read_line(message, &mut self.look_ahead),
                // Read on only because of an answer that may follow.
                Order::InTurn { id: Some(id) } if self.look_ahead.is_full() => {
                    self.requests.refuse_beyond(id);
                }
                // It has to be refused in any case.
                Order::InTurn { id: None } if self.look_ahead.is_full() => {
                    self.requests.read_line(message, &mut self.look_ahead);
                }
                Order::InTurn { id } => return self.look_ahead.push(ParkedLine { line, id }),
            }
        }
        self.lines.reuse(line);
    }

    /// Handles the first line of the look-ahead if that is allowed. Returns whether it was handled.
    fn unpark(&mut self) -> bool {
        let Some(bytes) = self.look_ahead.first_bytes() else { return false };
        // At the end of the input, no further cancellations or answers can come. The remaining
        // lines are handled without a bound, so that every request of a client that still waits is
        // answered.
        if !self.is_at_end && !self.requests.may_handle(bytes) {
            return false;
        }
        let parked = self.look_ahead.pop();
        if let Some(parked) = &parked {
            self.requests.read_line(trimmed(&parked.line), &mut self.look_ahead);
        }
        parked.is_some()
    }

    /// Whether more lines may be read. Beyond the look-ahead only for the client's answer to a question:
    /// what waits for that answer may hold the slots that everything else waits for.
    fn may_read(&self) -> bool {
        !self.look_ahead.is_full() || self.requests.awaits_answer()
    }

    /// When the client has to be disconnected: the look-ahead is full, and the client reads none of
    /// the answers that wait for it. In this state the end of its input would not be noticed.
    fn stalls_at(&mut self) -> Option<Instant> {
        let outgoing = self.requests.outgoing();
        let outgoing = outgoing.filter(|queue| self.look_ahead.is_full() && queue.unwritten_bytes() > 0);
        let Some(writes) = outgoing.map(LineQueue::writes) else {
            self.stalled = None;
            return None;
        };
        let (since, _) = *self
            .stalled
            .insert(self.stalled.filter(|&(_, last)| last == writes).unwrap_or((Instant::now(), writes)));
        Some(since + self.max_stall)
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for ClientLines<R> {
    type Error = io::Error;

    /// Queues the message at once, in the order of the calls.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        ready(self.requests.push(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            // Reading never waits while a client floods the server. Without this, no request would
            // be handled meanwhile: handlers are tasks that run beside this one.
            consume_budget().await;
            if let Some(message) = self.requests.next_message() {
                return Some(message);
            }
            if self.unpark() {
                continue;
            }
            if self.is_at_end {
                self.gone.cancel();
                return None;
            }
            let gone = self.gone.clone();
            let (stalls_at, may_read) = (self.stalls_at(), self.may_read());
            let outgoing = self.requests.outgoing()?;
            let room = async {
                tokio::select! {
                    () = self.requests.slot_freed() => {}
                    () = outgoing.written() => {}
                }
            };
            let stalled = async {
                match stalls_at {
                    Some(at) => sleep_until(at.into()).await,
                    None => pending().await,
                }
            };
            let piece = tokio::select! {
                biased;
                () = gone.cancelled() => return None,
                () = room, if !self.look_ahead.is_empty() => continue,
                () = stalled => {
                    tracing::warn!("the client sends requests and reads no answers; the connection ends");
                    self.gone.cancel();
                    return None;
                }
                piece = self.lines.next(), if may_read => piece,
            };
            match piece {
                Ok(Some(Piece::Part)) => {}
                Ok(Some(Piece::Line(line))) => self.accept_line(line),
                Ok(Some(Piece::Long { id, told, bytes, ends })) => {
                    if id.is_some() || (ends && !told) {
                        let id = id.and_then(|id| id.to_json());
                        let problem = format!(
                            "the message is longer than {} MB, the most that is read",
                            MAX_LINE >> 20
                        );
                        self.requests.refuse(id.as_deref(), ErrorCode::INVALID_REQUEST, &problem);
                    }
                    if bytes > MAX_SKIPPED_LINE {
                        tracing::warn!(bytes, "a line does not end");
                        self.gone.cancel();
                    }
                }
                Ok(None) => self.is_at_end = true,
                Err(error) => {
                    tracing::debug!(%error, "reading from the client failed");
                    self.gone.cancel();
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Ends the writing task after it has written the queue.
        self.requests.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Answers that a script reads piece by piece.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::{BegunCall, CallFailure, Candidate, filter_piece};
use crate::llm::{
    ModelError, ModelErrorKind, ModelPiece, ModelRequest, ModelStream, StreamFilter, Violations, estimate,
};
use crate::run::errors::over;
use crate::tools::caught::dropped;
use crate::tools::{ToolError, ToolErrorCode};

#[cfg(test)]
mod tests;

/// Maximum number of answers that a script reads at the same time.
const MAX_STREAMS: usize = 64;

/// The answers that a run reads.
#[derive(Default)]
pub(in crate::run) struct Streams {
    last: u64,
    open: HashMap<u64, Entry>,
}

pub(in crate::run) enum Entry {
    /// No piece was read yet, so the question was not sent.
    Unsent(Box<UnsentQuestion>),
    Open(Box<OpenStream>),
    /// A piece is being read. Cancelling the token stops that.
    Busy(CancellationToken),
    /// The last piece of an answer whose call has ended.
    Last(String),
    Ended,
}

impl Entry {
    fn unsent_bytes(&self) -> usize {
        match self {
            Self::Unsent(question) => question.bytes,
            Self::Open(_) | Self::Busy(_) | Self::Last(_) | Self::Ended => 0,
        }
    }
}

/// A question that is sent when the script reads the first piece of its answer. So the script has the number of the
/// answer before anything is sent, and can close it at any time.
pub(in crate::run) struct UnsentQuestion {
    pub(in crate::run) candidates: Vec<Candidate>,
    pub(in crate::run) request: ModelRequest,
    pub(in crate::run) may_shrink: bool,
    /// Bytes of the question as the script wrote it.
    pub(in crate::run) bytes: usize,
}

/// An answer that has not ended.
pub(in crate::run) struct OpenStream {
    call: BegunCall,
    pieces: ModelStream,
    filter: StreamFilter,
    violations: Violations,
    /// Bytes that were received.
    bytes: usize,
    /// Estimated tokens of the received text.
    tokens: u64,
    /// The text that was passed to the script, for the observers of the run. `None` if there are none.
    passed: Option<String>,
}

/// The next part of an answer for the script.
pub(in crate::run) enum Next {
    Piece(String),
    /// The end, with the last piece if the filter had held one back; else empty.
    End(String),
}

impl Streams {
    /// Takes an answer out to read its next piece. The token is cancelled if the answer is closed meanwhile.
    pub(in crate::run) fn take(&mut self, number: u64) -> Option<(Entry, CancellationToken)> {
        let entry = self.open.get_mut(&number)?;
        let closed = match entry {
            Entry::Busy(closed) => closed.clone(),
            _ => CancellationToken::new(),
        };
        Some((std::mem::replace(entry, Entry::Busy(closed.clone())), closed))
    }

    /// Puts an answer back, unless it was closed meanwhile. Returns the entry that is not kept: the caller drops it
    /// without the lock, because the end of its request is reported to observers.
    #[must_use]
    pub(in crate::run) fn put(&mut self, number: u64, entry: Entry) -> Option<Entry> {
        match self.open.get_mut(&number) {
            Some(open) => Some(std::mem::replace(open, entry)),
            None => Some(entry),
        }
    }

    /// Adds an answer and returns its number. Questions that wait to be sent may have at most `max_unsent` bytes
    /// together.
    pub(in crate::run) fn add(&mut self, entry: Entry, max_unsent: usize) -> Result<u64, ToolError> {
        if self.open.len() >= MAX_STREAMS {
            let message =
                format!("a script may read {MAX_STREAMS} answers at the same time; read some to their end");
            return Err(ToolError::new(ToolErrorCode::QueueFull, message));
        }
        let unsent = self.open.values().chain([&entry]).map(Entry::unsent_bytes).sum::<usize>();
        if unsent > max_unsent {
            let message = format!(
                "the questions of answers that were not read are {unsent} bytes, at most {max_unsent} are kept; read \
                 some of the answers first"
            );
            return Err(ToolError::new(ToolErrorCode::QueueFull, message));
        }
        self.last += 1;
        self.open.insert(self.last, entry);
        Ok(self.last)
    }

    /// Closes an answer, even while a piece of it is being read. Returns an entry as [`put`](Self::put) does.
    #[must_use]
    pub(in crate::run) fn close(&mut self, number: u64) -> Option<Entry> {
        let ended = self.open.remove(&number);
        if let Some(Entry::Busy(closed)) = &ended {
            closed.cancel();
        }
        ended
    }
}

impl Drop for Streams {
    /// Ends the requests of the answers that are open. A worker drops them after its run, where nothing may panic.
    fn drop(&mut self) {
        for (_number, entry) in self.open.drain() {
            dropped("a language model", entry);
        }
    }
}

/// Why an answer was interrupted.
pub(in crate::run) enum StreamFailure {
    Call(CallFailure),
    /// The filter refuses the next piece.
    Refused(ToolError),
}

impl OpenStream {
    pub(in crate::run) fn new(mut call: BegunCall, pieces: ModelStream) -> Self {
        call.release();
        let passed = call.observed.is_reported().then(String::new);
        Self {
            call,
            pieces,
            filter: StreamFilter::default(),
            violations: Violations::default(),
            bytes: 0,
            tokens: 0,
            passed,
        }
    }

    /// Appends to the text for the observers. `next` bounds its bytes.
    fn keep(&mut self, piece: &str) {
        if let Some(passed) = &mut self.passed {
            passed.push_str(piece);
        }
    }

    /// Waits for a piece that the filter does not hold back. `max_bytes` bounds the whole answer.
    pub(in crate::run) async fn next(&mut self, max_bytes: usize) -> Result<Next, StreamFailure> {
        let shared = Arc::clone(&self.call.shared);
        let filter = shared.setup.filter().ok_or_else(|| StreamFailure::Refused(over()))?;
        let mode = shared.setup.options.content_filter;
        loop {
            let cut = || ModelError::new(ModelErrorKind::Failed, "the answer was cut");
            let pieces = &mut self.pieces;
            let piece = async { pieces.next().await.unwrap_or_else(|| Err(cut())) };
            match self.call.within(piece).await.map_err(StreamFailure::Call)? {
                ModelPiece::Text(text) => {
                    self.bytes += text.len();
                    if self.bytes > max_bytes {
                        return Err(StreamFailure::Call(CallFailure::TooLarge(max_bytes)));
                    }
                    self.tokens += estimate::tokens(&text);
                    let passed = self.filter.push(filter, &text);
                    let passed = filter_piece(filter, mode, passed, &mut self.violations)
                        .map_err(StreamFailure::Refused)?;
                    if !passed.is_empty() {
                        self.keep(&passed);
                        return Ok(Next::Piece(passed));
                    }
                }
                ModelPiece::End(answer) => {
                    self.call.answer = answer;
                    let rest = self.filter.finish();
                    let rest = filter_piece(filter, mode, rest, &mut self.violations)
                        .map_err(StreamFailure::Refused)?;
                    self.keep(&rest);
                    return Ok(Next::End(rest));
                }
            }
        }
    }

    /// Ends the call. Returns the script's error, if it failed.
    pub(in crate::run) fn end(self, failure: Option<StreamFailure>) -> Option<ToolError> {
        match failure {
            None => {
                self.call.end(self.tokens, &self.violations, Ok(self.passed.as_deref()));
                None
            }
            Some(StreamFailure::Refused(error)) => {
                self.call.end(self.tokens, &self.violations, Err(ToolErrorCode::ModelDenied));
                Some(error)
            }
            Some(StreamFailure::Call(failure)) => Some(self.call.fail(&failure)),
        }
    }
}

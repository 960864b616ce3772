//! The bodies of a provider's responses, within bounds.

use reqwest::Response;

use crate::lines::events::{Event, EventError, EventParser};
use crate::steps::end_step;

/// Maximum bytes of one message of a streamed answer, and of a whole one beside its tokens: thoughts, which are up to
/// half a megabyte of English, and what else is said of it. So many answers are in memory at the same time as scripts
/// have calls in flight.
const MAX_MESSAGE: usize = 4 << 20;

/// Bytes of a whole answer for each token that was asked for. A token is four letters of English, or one or two others,
/// which have six bytes each if they are escaped.
const BYTES_PER_TOKEN: usize = 16;

/// Bytes of a streamed answer beside its tokens: comments, and thoughts, for which some services have another maximum:
/// 60,000 messages of 280 bytes. Nothing of this is kept: the bound ends a stream that says nothing.
const STREAM_BYTES: usize = 16 << 20;

/// Bytes of a streamed answer for each token that was asked for. A token is usually a message of its own, which has 200
/// to 600 bytes beside its text.
const STREAM_BYTES_PER_TOKEN: usize = 2 << 10;

/// Maximum bytes of a whole answer for which `max_tokens` were asked for.
pub(crate) fn max_whole(max_tokens: u32) -> usize {
    with_tokens(MAX_MESSAGE, max_tokens, BYTES_PER_TOKEN)
}

fn with_tokens(bytes: usize, tokens: u32, bytes_per_token: usize) -> usize {
    let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
    bytes.saturating_add(tokens.saturating_mul(bytes_per_token))
}

/// Why an answer cannot be read any further.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// The connection ended before the answer.
    Broken,
    /// It has more bytes than this.
    TooLarge(usize),
}

impl From<EventError> for ReadFailure {
    fn from(error: EventError) -> Self {
        match error {
            EventError::TooLarge(max) | EventError::Noise(max) => Self::TooLarge(max),
        }
    }
}

/// How messages follow each other in a stream.
pub(crate) enum Framing {
    /// Server-sent events.
    Events(EventParser),
    /// Lines, each of which is a message.
    Lines(Vec<u8>),
}

impl Framing {
    /// Server-sent events.
    pub(crate) fn events() -> Self {
        Self::Events(EventParser::new(MAX_MESSAGE))
    }

    /// Lines of JSON.
    pub(crate) fn lines() -> Self {
        Self::Lines(Vec::new())
    }

    /// Reads up to the end of the first message. Returns how many bytes that was, and the message; without one all
    /// bytes were read.
    fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), ReadFailure> {
        match self {
            Self::Events(parser) => Ok(parser.feed(bytes)?),
            Self::Lines(line) => feed_line(line, bytes),
        }
    }
}

/// As [`Framing::feed`]. `line` is the beginning of the line that has not ended. Blank lines are no messages.
fn feed_line(line: &mut Vec<u8>, bytes: &[u8]) -> Result<(usize, Option<Event>), ReadFailure> {
    let mut used = 0;
    while let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty()) {
        let end = rest.iter().position(|&byte| byte == b'\n');
        let piece = &rest[..end.unwrap_or(rest.len())];
        if line.len() + piece.len() > MAX_MESSAGE {
            return Err(ReadFailure::TooLarge(MAX_MESSAGE));
        }
        line.extend_from_slice(piece);
        used += piece.len();
        if end.is_some() {
            used += 1;
            let data = std::mem::take(line);
            if !data.trim_ascii().is_empty() {
                return Ok((used, Some(Event { name: String::new(), data })));
            }
        }
    }
    Ok((used, None))
}

/// The messages of a streamed answer.
pub(crate) struct Incoming {
    response: Response,
    framing: Framing,
    chunk: Vec<u8>,
    /// How many bytes of `chunk` were read.
    used: usize,
    /// Bytes that were received.
    received: usize,
    /// Maximum bytes of all messages together.
    max: usize,
}

impl Incoming {
    /// The messages of an answer for which `max_tokens` were asked for.
    pub(crate) fn new(response: Response, framing: Framing, max_tokens: u32) -> Self {
        let max = with_tokens(STREAM_BYTES, max_tokens, STREAM_BYTES_PER_TOKEN);
        Self { response, framing, chunk: Vec::new(), used: 0, received: 0, max }
    }

    /// Returns the next message, `None` at the end. A message that the end cuts is left out. The caller bounds the
    /// time.
    ///
    /// # Errors
    ///
    /// If the stream exceeds a bound, or its connection breaks. Nothing can be read after that.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ReadFailure> {
        loop {
            let (used, message) = self.framing.feed(&self.chunk[self.used..])?;
            self.used += used;
            if message.is_some() {
                return Ok(message);
            }
            // A provider may send more than is read, and nothing that is a message: the call ends with its time, or
            // with its run.
            end_step().await;
            let chunk = self.response.chunk().await.map_err(|_error| ReadFailure::Broken)?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.received = self.received.saturating_add(chunk.len());
            if self.received > self.max {
                return Err(ReadFailure::TooLarge(self.max));
            }
            self.chunk.clear();
            self.chunk.extend_from_slice(&chunk);
            self.used = 0;
        }
    }
}

#[cfg(test)]
mod tests;

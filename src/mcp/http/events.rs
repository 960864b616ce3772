//! Reads server-sent events within bounds.
//!
//! The `sse-stream` crate ends a stream at a line without a colon or at `retry: 1e12`, which the
//! standard says to ignore, and it does not bound the size of an event. This parser follows the
//! standard.

use std::time::Duration;

use reqwest::Response;

use crate::lines::MAX_LINE;
use crate::mcp::web::cause;

/// Maximum bytes that a stream may send without completing an event: comments, and events without
/// data. Real servers send a comment every few seconds as a keep-alive for proxies.
const MAX_NOISE_BYTES: usize = 2 * MAX_LINE;

/// Maximum bytes of an event's id, which is sent back as a header.
const MAX_EVENT_ID: usize = 1024;

/// Minimum and maximum pause before a stream is resumed, whatever the server asks for.
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(30);

/// One event that has data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
}

/// Why a stream cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventsError {
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("more than {} MB in one event", MAX_LINE / (1024 * 1024))]
    TooLarge,
    #[error("more than {} MB without an event", MAX_NOISE_BYTES / (1024 * 1024))]
    Noise,
}

/// The events of one response.
pub(crate) struct Events {
    response: Response,
    parser: Parser,
    chunk: Vec<u8>,
    /// How many bytes of `chunk` have been parsed.
    parsed: usize,
}

impl Events {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, parser: Parser::default(), chunk: Vec::new(), parsed: 0 }
    }

    /// Returns the next event, `None` at the end. Cancel-safe: dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, EventsError> {
        loop {
            let (used, event) = self.parser.feed(&self.chunk[self.parsed..])?;
            self.parsed += used;
            if event.is_some() {
                return Ok(event);
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => {
                    self.chunk.clear();
                    self.chunk.extend_from_slice(&chunk);
                    self.parsed = 0;
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(EventsError::Broken(cause(&error))),
            }
        }
    }

    /// The id of the last event that had one, for resuming the stream.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.parser.last_id.as_deref()
    }

    /// The pause before resuming that the server asked for, within bounds.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.parser.retry
    }
}

/// The parser's state between two chunks.
#[derive(Default)]
struct Parser {
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    /// Bytes since the last event.
    noise: usize,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    after_return: bool,
    started: bool,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl Parser {
    /// Parses up to the end of the first event. Returns how many bytes that was, and the event.
    fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), EventsError> {
        let mut position = 0;
        while position < bytes.len() {
            if std::mem::take(&mut self.after_return) && bytes[position] == b'\n' {
                position += 1;
                continue;
            }
            let rest = &bytes[position..];
            let end = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r');
            let piece = &rest[..end.unwrap_or(rest.len())];
            self.noise += piece.len() + 1;
            if self.line.len() + piece.len() + self.data.len() > MAX_LINE {
                return Err(EventsError::TooLarge);
            }
            // Only comments and empty events can exceed this bound without exceeding the first one.
            if self.noise > MAX_NOISE_BYTES {
                return Err(EventsError::Noise);
            }
            self.line.extend_from_slice(piece);
            position += piece.len();
            if end.is_some() {
                self.after_return = bytes[position] == b'\r';
                position += 1;
                let line = std::mem::take(&mut self.line);
                if let Some(event) = self.read_line(&line) {
                    return Ok((position, Some(event)));
                }
            }
        }
        Ok((position, None))
    }

    fn read_line(&mut self, line: &[u8]) -> Option<Event> {
        let line = if self.started { line } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) };
        self.started = true;
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if value.len() <= MAX_EVENT_ID => {
                // An id that is not a valid header value cannot be sent back.
                let is_visible = value.iter().all(|byte| (b' '..=b'~').contains(byte));
                if is_visible && let Ok(id) = std::str::from_utf8(value) {
                    self.last_id = Some(id.to_owned()).filter(|id| !id.is_empty());
                }
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                let retry = Duration::from_millis(millis.unwrap_or(u64::MAX));
                self.retry = Some(retry.clamp(MIN_RETRY, MAX_RETRY));
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if !std::mem::take(&mut self.has_data) || data.is_empty() {
            return None;
        }
        self.noise = 0;
        Some(Event { name, data })
    }
}

#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/entries/events.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

//! The parser of server-sent events, within bounds.
//!
//! The `sse-stream` crate ends a stream at a line without a colon or at `retry: 1e12`, which the
//! standard says to ignore, and it does not bound the size of an event. This parser follows the
//! standard.

use std::time::Duration;

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

/// Which bound a stream exceeds, in bytes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    #[error("more than {} MB in one event", .0 / (1024 * 1024))]
    TooLarge(usize),
    #[error("more than {} MB without an event", .0 / (1024 * 1024))]
    Noise(usize),
}

/// The parser's state between two chunks.
pub(crate) struct EventParser {
    /// Maximum bytes of an event.
    max_event: usize,
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

impl EventParser {
    /// A parser of one stream, whose events have at most `max_event` bytes. It may send twice as many without
    /// completing an event: comments, and events without data. Real servers send a comment every few seconds as a
    /// keep-alive for proxies.
    pub(crate) fn new(max_event: usize) -> Self {
        Self {
            max_event,
            line: Vec::new(),
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            noise: 0,
            after_return: false,
            started: false,
            last_id: None,
            retry: None,
        }
    }

    /// The id of the last event that had one, for resuming the stream.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The pause before resuming that the server asked for, within bounds.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Parses up to the end of the first event. Returns how many bytes that was, and the event.
    ///
    /// # Errors
    ///
    /// If a bound is exceeded. The stream cannot be read any further.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), EventError> {
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
            if self.line.len() + piece.len() + self.data.len() > self.max_event {
                return Err(EventError::TooLarge(self.max_event));
            }
            // Only comments and empty events can exceed this bound without exceeding the first one.
            let max_noise = self.max_event.saturating_mul(2);
            if self.noise > max_noise {
                return Err(EventError::Noise(max_noise));
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
#[path = "../../fuzz/entries/events.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

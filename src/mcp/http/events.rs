//! Reads the server-sent events of a response within bounds.

use std::time::Duration;

use reqwest::Response;

use crate::lines::MAX_LINE;
use crate::lines::events::{Event, EventError, EventParser};
use crate::net::response::cause;

/// Why a stream cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventsError {
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error(transparent)]
    Refused(#[from] EventError),
}

/// The events of one response.
pub(crate) struct Events {
    response: Response,
    parser: EventParser,
    chunk: Vec<u8>,
    /// How many bytes of `chunk` have been parsed.
    parsed: usize,
}

impl Events {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, parser: EventParser::new(MAX_LINE), chunk: Vec::new(), parsed: 0 }
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
        self.parser.last_id()
    }

    /// The pause before resuming that the server asked for, within bounds.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }
}

//! The body of a response, within bounds.

use std::time::Duration;

use futures::FutureExt as _;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};
use tokio_util::bytes::Bytes;

use super::gunzip::{Gunzip, Step};
use super::response::cause;
use crate::steps::end_step;
use crate::tools::{ToolError, ToolErrorCode};

/// Bytes that are put together to one part, if they have arrived: so many that the cost of the host call does not
/// matter, and few beside a script's memory.
const PART_BYTES: usize = 64 << 10;

/// A body that is read part by part. It is decompressed as it is read, and only as far as parts are asked for: the
/// decompressed body never has to be in memory as a whole, and its bytes are counted.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    response: Response,
    /// Decompresses it, if it is compressed.
    gunzip: Option<Box<Gunzip>>,
    received: usize,
    max: usize,
    idle: Duration,
    ends: Instant,
    is_over: bool,
}

/// A part of a body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) bytes: Vec<u8>,
    /// Whether nothing follows.
    pub(crate) is_last: bool,
}

impl ResponseBody {
    /// `is_compressed` says that it is in gzip.
    pub(super) fn new(
        response: Response,
        is_compressed: bool,
        max: usize,
        idle: Duration,
        ends: Instant,
    ) -> Self {
        let gunzip = is_compressed.then(|| Box::new(Gunzip::new()));
        Self { response, gunzip, received: 0, max, idle, ends, is_over: false }
    }

    /// Whether the server says that there is no body.
    pub(crate) fn is_empty(&self) -> bool {
        self.response.content_length() == Some(0)
    }

    /// Waits for the next part.
    ///
    /// # Errors
    ///
    /// `ResultTooLarge` beyond the limit, `NetTimeout`, or `NetFailed` if the connection ends before the body.
    pub(crate) async fn part(&mut self) -> Result<Part, ToolError> {
        let mut part = Part::default();
        self.read(&mut part).await?;
        while !part.is_last && part.bytes.len() < PART_BYTES {
            // Adds what has arrived already.
            match self.chunk().now_or_never() {
                Some(Ok(Some(chunk))) => self.take(&mut part, &chunk)?,
                Some(Ok(None)) => self.end(&mut part),
                Some(Err(error)) => return Err(error),
                None => break,
            }
        }
        Ok(part)
    }

    /// Reads for at most `patience`: most bodies arrive with the head or right after it, and then need no call of their
    /// own.
    ///
    /// # Errors
    ///
    /// As [`part`](Self::part).
    pub(crate) async fn first(&mut self, patience: Duration) -> Result<Part, ToolError> {
        let mut part = Part::default();
        if self.is_empty() {
            self.end(&mut part);
        }
        let by = Instant::now() + patience;
        while !part.is_last && part.bytes.len() < PART_BYTES {
            match timeout_at(by, self.chunk()).await {
                Ok(Ok(Some(chunk))) => self.take(&mut part, &chunk)?,
                Ok(Ok(None)) => self.end(&mut part),
                Ok(Err(error)) => return Err(error),
                Err(_elapsed) => break,
            }
        }
        Ok(part)
    }

    async fn read(&mut self, part: &mut Part) -> Result<(), ToolError> {
        if self.is_over {
            part.is_last = true;
            return Ok(());
        }
        let now = Instant::now();
        // A timeout looks first at what has arrived, and a host can send so quickly that there always is something.
        if now >= self.ends {
            return Err(late());
        }
        match timeout_at(self.ends.min(now + self.idle), self.chunk()).await {
            Ok(Ok(Some(chunk))) => self.take(part, &chunk),
            Ok(Ok(None)) => {
                self.end(part);
                Ok(())
            }
            Ok(Err(error)) => Err(error),
            Err(_elapsed) => Err(late()),
        }
    }

    /// The next bytes of the body, decompressed; `None` at its end. Dropping the future loses nothing.
    async fn chunk(&mut self) -> Result<Option<Bytes>, ToolError> {
        loop {
            let Some(gunzip) = &mut self.gunzip else {
                return self.response.chunk().await.map_err(|error| broken(&error));
            };
            match gunzip.step() {
                Ok(Step::Output(bytes)) => return Ok(Some(bytes)),
                Ok(Step::End) => return Ok(None),
                Ok(Step::Nothing) => {}
                Ok(Step::Wanted) => match self.response.chunk().await {
                    Ok(Some(arrived)) => gunzip.put(arrived),
                    Ok(None) => gunzip.end(),
                    Err(error) => return Err(broken(&error)),
                },
                Err(error) => {
                    let message = format!("the response cannot be decompressed: {error}");
                    return Err(ToolError::new(ToolErrorCode::NetFailed, message));
                }
            }
            // What goes on without any output ends with its time, or with its run.
            end_step().await;
        }
    }

    fn end(&mut self, part: &mut Part) {
        self.is_over = true;
        part.is_last = true;
    }

    fn take(&mut self, part: &mut Part, chunk: &[u8]) -> Result<(), ToolError> {
        self.received = self.received.saturating_add(chunk.len());
        if self.received > self.max {
            let message = format!(
                "the response has more than {} bytes, which is the limit `maxResultBytes` of this run",
                self.max
            );
            return Err(ToolError::new(ToolErrorCode::ResultTooLarge, message));
        }
        part.bytes.extend_from_slice(chunk);
        Ok(())
    }
}

fn late() -> ToolError {
    ToolError::new(ToolErrorCode::NetTimeout, "the rest of the response did not come in time")
}

fn broken(error: &reqwest::Error) -> ToolError {
    let message = format!("the response ended before its body did: {}", cause(error));
    ToolError::new(ToolErrorCode::NetFailed, message)
}

#[cfg(test)]
mod tests;

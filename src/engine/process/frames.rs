//! Frames between an executor and a worker process: a length, the number of the run that the frame
//! belongs to, and a message. The reader trusts neither the length nor what follows: the length is
//! checked before anything is allocated for it, and memory is only taken for bytes that have
//! arrived.
//!
//! ```text
//! 0       4          12
//! | bytes | run      | message (`wire.rs`), `bytes` long
//! ```
//!
//! Both numbers are little-endian. A frame of another run than the one in flight is refused, so
//! that late messages of a run never reach the next one.
//!
//! tokio-util's `LengthDelimitedCodec` reserves the announced length before any of it has arrived.
//! It also knows nothing of runs, whose number stands in the header.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes before the message.
pub(super) const HEADER: usize = 12;

/// Bytes of one read. Almost every frame fits.
const CHUNK: usize = 16 * 1024;

/// A buffer that a large frame has grown beyond this is freed when it is empty.
const MAX_KEPT: usize = 256 * 1024;

/// Identifies one run of a worker. The executor draws it at random, so that it cannot be guessed for a run that has
/// not begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunNumber(pub(crate) u64);

impl RunNumber {
    /// That of frames which belong to no run.
    pub(crate) const NONE: Self = Self(0);
}

/// Why no more frames can be read. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// The frame is longer than it may be.
    #[error("a frame of {bytes} bytes, at most {max_bytes} are accepted")]
    TooLong {
        /// Bytes of the message.
        bytes: usize,
        /// Bytes that it may have.
        max_bytes: usize,
    },
    /// The frame belongs to another run.
    #[error("a frame of another run")]
    OtherRun,
    /// The message cannot be decoded, or has more bytes than it needs.
    #[error("a message that cannot be decoded")]
    Malformed,
}

/// Appends a frame to `out`.
///
/// # Errors
///
/// If the message is longer than `max_bytes`. Nothing is appended then.
pub(crate) fn append<M: Serialize>(
    out: &mut Vec<u8>,
    run: RunNumber,
    message: &M,
    max_bytes: usize,
) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    let encoded = postcard::to_extend(message, std::mem::take(out));
    let Ok(encoded) = encoded else {
        // Strings and numbers can always be encoded; the buffer is lost with the failure.
        return Err(FrameError::Malformed);
    };
    *out = encoded;
    let bytes = out.len() - start - HEADER;
    let length = u32::try_from(bytes).ok().filter(|_| bytes <= max_bytes);
    let Some(length) = length else {
        out.truncate(start);
        return Err(FrameError::TooLong { bytes, max_bytes });
    };
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + HEADER].copy_from_slice(&run.0.to_le_bytes());
    Ok(())
}

/// The beginning of the message of a frame, as far as `T` reads it. `None` if that much has not arrived, or is something
/// else.
#[cfg(any(feature = "http", feature = "mcp", feature = "nats", test))]
pub(super) fn beginning<T: DeserializeOwned>(frame: &[u8]) -> Option<T> {
    let (value, _rest) = postcard::take_from_bytes(frame.get(HEADER..)?).ok()?;
    Some(value)
}

/// The bytes of a frame whose length has arrived, and of its header.
#[cfg(any(feature = "http", feature = "mcp", feature = "nats", test))]
pub(super) fn length(frame: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*frame.first_chunk::<4>()?);
    HEADER.checked_add(usize::try_from(length).ok()?)
}

/// Assembles frames from the bytes of a connection.
pub(crate) struct Decoder {
    /// What has arrived is in `start..end`; what follows is space to read into.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    max_bytes: usize,
    /// Whether frames of other runs are left out instead of refused.
    skips_others: bool,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Decoder").field("pending", &(self.end - self.start)).finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder of frames whose messages have at most `max_bytes` bytes.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, end: 0, max_bytes, skips_others: false }
    }

    /// The same for a worker. It skips frames of earlier runs: an executor may have sent an answer
    /// before it knew that the run had ended.
    pub(crate) fn skipping(max_bytes: usize) -> Self {
        Self { skips_others: true, ..Self::new(max_bytes) }
    }

    /// Changes the maximum bytes of a message, from the next frame on.
    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    /// Space for the next bytes of the connection. Say with [`filled`](Self::filled) how many there were.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > MAX_KEPT {
                self.buffer = Vec::new();
            }
        } else if self.start > 0 && self.buffer.len() - self.end < CHUNK {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let wanted = self.end + CHUNK;
        if self.buffer.len() < wanted {
            // Twice as much as has arrived, so that a long frame is not copied once for each chunk.
            let grown = wanted.max(self.end.saturating_mul(2));
            self.buffer.resize(grown.min(self.max_bytes.saturating_add(HEADER + 2 * CHUNK)).max(wanted), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Records that this number of bytes has arrived in the space.
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// The bytes that have arrived after the last message.
    #[cfg(any(feature = "http", feature = "nats"))]
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether every byte that has arrived was decoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the next message, if all of it has arrived. It must belong to `run`.
    ///
    /// # Errors
    ///
    /// If the message cannot be decoded, is too long, or belongs to another run. The connection cannot be used any
    /// more.
    pub(crate) fn next<M: DeserializeOwned>(&mut self, run: RunNumber) -> Result<Option<M>, FrameError> {
        loop {
            let arrived = &self.buffer[self.start..self.end];
            let Some((header, rest)) = arrived.split_first_chunk::<HEADER>() else { return Ok(None) };
            let [a, b, c, d, number @ ..] = *header;
            let bytes = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            if bytes > self.max_bytes {
                return Err(FrameError::TooLong { bytes, max_bytes: self.max_bytes });
            }
            let is_other = RunNumber(u64::from_le_bytes(number)) != run;
            if is_other && !self.skips_others {
                return Err(FrameError::OtherRun);
            }
            let Some(message) = rest.get(..bytes) else { return Ok(None) };
            if is_other {
                self.start += HEADER + bytes;
                continue;
            }
            let Ok((message, [])) = postcard::take_from_bytes(message) else {
                return Err(FrameError::Malformed);
            };
            self.start += HEADER + bytes;
            return Ok(Some(message));
        }
    }
}

#[cfg(test)]
#[path = "../../../fuzz/entries/frames.rs"]
mod fuzzing;
#[cfg(test)]
mod tests;

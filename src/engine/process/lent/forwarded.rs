//! Where the frames end that were forwarded to an executor: a message of this side may only follow a complete one.

use crate::engine::process::frames::{self, HEADER};

/// The bytes that an executor has of its worker.
#[derive(Debug, Default)]
pub(super) struct Forwarded {
    /// The beginning of a frame whose header has not arrived completely.
    header: Vec<u8>,
    /// Bytes of the last frame that have not arrived.
    missing: usize,
    /// Whether bytes are being sent, of which the executor may have a part.
    is_sending: bool,
}

impl Forwarded {
    /// Notes that bytes are sent from now on.
    pub(super) fn begin(&mut self) {
        self.is_sending = true;
    }

    /// Notes that these bytes were sent.
    pub(super) fn sent(&mut self, mut bytes: &[u8]) {
        self.is_sending = false;
        while !bytes.is_empty() {
            let wanted = if self.missing > 0 { self.missing } else { HEADER - self.header.len() };
            let (taken, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if self.missing > 0 {
                self.missing -= taken.len();
                continue;
            }
            self.header.extend_from_slice(taken);
            if self.header.len() == HEADER {
                // The length is there, because the header is.
                self.missing = frames::length(&self.header).map_or(0, |length| length - HEADER);
                self.header.clear();
            }
        }
    }

    /// Whether all that was sent are complete frames.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_sending && self.missing == 0 && self.header.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Forwarded;
    use crate::engine::process::frames::{self, RunNumber};
    use crate::engine::process::wire::FromWorker;

    #[test]
    fn frames_end_where_they_end_in_any_pieces() {
        let mut bytes = Vec::new();
        let mut ends = vec![0];
        for text in ["", "a", "bcd"] {
            let message = FromWorker::Log { level: 1, text: text.to_owned() };
            frames::append(&mut bytes, RunNumber(7), &message, 1 << 10).unwrap();
            ends.push(bytes.len());
        }
        for size in 1..=bytes.len() {
            let (mut forwarded, mut end) = (Forwarded::default(), 0);
            for piece in bytes.chunks(size) {
                forwarded.begin();
                assert!(!forwarded.is_complete(), "a part of it may have been sent");
                forwarded.sent(piece);
                end += piece.len();
                assert_eq!(forwarded.is_complete(), ends.contains(&end), "{end} bytes in pieces of {size}");
            }
        }
    }
}

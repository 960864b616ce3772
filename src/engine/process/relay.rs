//! Forwards the messages of a run between an executor and a worker elsewhere, and decides whether
//! another worker can repeat the run.
//!
//! Until the executor has seen an effect of the script, a run that another worker begins again
//! looks the same. So the executor's messages are stored until then, and messages of the second
//! worker that repeat those of the first are dropped.

use super::frames::{self, HEADER};
use super::wire;

/// The first byte of the worker's messages that are no effect: `Ready` and `Surveyed`.
const READY: u8 = 0;
const SURVEYED: u8 = 2;

/// Maximum bytes of a frame that is held back until it is complete. A longer one is forwarded as it
/// arrives, and the run cannot be repeated after it.
const MAX_HELD: usize = 1 << 20;

/// Maximum bytes that are queued for the worker. Beyond it nothing more is read from the executor.
const MAX_UNSENT: usize = 256 << 10;

/// The messages of one run, which are forwarded in both directions.
#[derive(Default)]
pub(crate) struct Relay {
    /// The executor's messages before and after it had the survey of the script. A worker reads the
    /// second part only after it has sent the survey.
    first: Vec<u8>,
    rest: Vec<u8>,
    sent: usize,
    sent_of_rest: usize,
    /// The beginning of a frame of the worker.
    held: Vec<u8>,
    /// The number of frames that the executor has, and that of frames of the current worker.
    passed: usize,
    seen: usize,
    was_surveyed: bool,
    /// Whether the current worker has sent the survey.
    is_surveyed: bool,
    has_effect: bool,
}

impl Relay {
    /// Stores messages of the executor.
    pub(crate) fn note(&mut self, orders: &[u8]) {
        if self.was_surveyed || self.has_effect { &mut self.rest } else { &mut self.first }
            .extend_from_slice(orders);
    }

    /// How many runs the run is nested in. `None` before its start has arrived.
    pub(crate) fn depth(&self) -> Option<usize> {
        wire::depth_of_run(&self.first)
    }

    /// Whether more should be read from the executor.
    pub(crate) fn takes_more(&self) -> bool {
        !self.has_effect || self.rest.len() - self.sent_of_rest < MAX_UNSENT
    }

    /// The bytes to send to the worker now.
    pub(crate) fn unsent(&self) -> &[u8] {
        if self.sent < self.first.len() {
            &self.first[self.sent..]
        } else if self.is_surveyed || self.has_effect {
            &self.rest[self.sent_of_rest..]
        } else {
            &[]
        }
    }

    /// Records that this many of the bytes were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        if self.sent < self.first.len() {
            self.sent += count;
            return;
        }
        self.sent_of_rest += count;
        if self.has_effect {
            self.rest.drain(..self.sent_of_rest);
            self.sent_of_rest = 0;
        }
    }

    /// Handles bytes of the worker. Appends what has to be forwarded to the executor.
    pub(crate) fn hear(&mut self, replies: &[u8], out: &mut Vec<u8>) {
        if self.has_effect {
            out.extend_from_slice(replies);
            return;
        }
        self.held.extend_from_slice(replies);
        loop {
            let Some(&kind) = self.held.get(HEADER) else { return };
            let length = frames::length(&self.held).unwrap_or(usize::MAX);
            if !matches!(kind, READY | SURVEYED) || length > MAX_HELD {
                self.has_effect = true;
                out.append(&mut self.held);
                if self.sent >= self.first.len() {
                    (self.first, self.sent) = (Vec::new(), 0);
                }
                self.rest.drain(..self.sent_of_rest);
                self.sent_of_rest = 0;
                return;
            }
            if self.held.len() < length {
                return;
            }
            let frame = self.held.drain(..length);
            self.seen += 1;
            if self.seen > self.passed {
                self.passed = self.seen;
                out.extend(frame);
            } else {
                drop(frame);
            }
            if kind == SURVEYED {
                (self.is_surveyed, self.was_surveyed) = (true, true);
            }
        }
    }

    /// Whether another worker can repeat the run.
    pub(crate) fn can_begin_again(&self) -> bool {
        !self.has_effect
    }

    /// Whether anything was forwarded to the executor.
    pub(crate) fn has_passed_anything(&self) -> bool {
        self.passed > 0 || self.has_effect
    }

    /// Starts again with another worker, which has received nothing yet.
    pub(crate) fn begin_again(&mut self) {
        (self.sent, self.sent_of_rest, self.seen) = (0, 0, 0);
        self.is_surveyed = false;
        self.held.clear();
    }
}

#[cfg(test)]
mod tests;

//! The protocol of the two sides of one run: a stream of bytes in each direction, over messages that can be lost,
//! repeated, reordered or forged. This module neither waits nor sends: `channel.rs` does.
//!
//! Data has a sequence number. What is missing is sent again, what comes twice is left out, so that a stream has
//! neither gaps nor repetitions. Each message says how much was received, which ends its repetition, and how much was
//! delivered, which makes space for more: each side holds at most [`WINDOW`] bytes of the other.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::seal::{ConversationKeys, OVERHEAD};

/// Bytes that may be on their way in one direction.
pub(super) const WINDOW: u64 = 1 << 20;

/// Data messages that may be on their way in one direction: small ones have their own cost.
const MAX_MESSAGES: u64 = 256;

/// Maximum bytes of data in a message. Practical message limits of NATS servers are larger.
pub(super) const MAX_DATA: usize = 32 << 10;

/// How long data waits to be received before it is sent again. A message within one region takes milliseconds.
const RESEND_AFTER: Duration = Duration::from_millis(1_500);

/// Bytes before the data: the kind, what was received, what was delivered, and the data's sequence number.
const HEADER: usize = 1 + 8 + 8 + 8;

/// Maximum bytes of a sealed message.
pub(super) const MAX_MESSAGE: usize = HEADER + MAX_DATA + OVERHEAD;

const DATA: u8 = 1;
const BEAT: u8 = 2;
const ABORT: u8 = 3;

/// One side of a conversation.
pub(super) struct Conversation {
    keys: ConversationKeys,
    /// Data that was sent and not received yet, as far as is known.
    unreceived: VecDeque<Sent>,
    last_sent: u64,
    sent_bytes: u64,
    /// Bytes of it that the other side has delivered.
    accepted_bytes: u64,
    /// The other side's data that is to be delivered here. An empty piece is the end of its stream.
    arrived: VecDeque<Vec<u8>>,
    received: u64,
    received_bytes: u64,
    delivered_bytes: u64,
    /// The numbers of received messages and of delivered bytes that the other side was told last.
    told: (u64, u64),
    last_heard: Instant,
}

/// Data that may have to be sent again. Empty data is the end of the stream.
struct Sent {
    sequence: u64,
    data: Vec<u8>,
    at: Instant,
}

/// The meaning of a message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The other side is alive. There may be data to deliver.
    Alive,
    /// It has aborted.
    Aborted,
    /// It is not from the other side, or not later than what came before. It is ignored.
    Refused,
}

impl Conversation {
    pub(super) fn new(keys: ConversationKeys, now: Instant) -> Self {
        Self {
            keys,
            unreceived: VecDeque::new(),
            last_sent: 0,
            sent_bytes: 0,
            accepted_bytes: 0,
            arrived: VecDeque::new(),
            received: 0,
            received_bytes: 0,
            delivered_bytes: 0,
            told: (0, 0),
            last_heard: now,
        }
    }

    /// How many bytes may be sent now.
    pub(super) fn space(&self) -> usize {
        if self.unreceived.len() as u64 >= MAX_MESSAGES {
            return 0;
        }
        let space = WINDOW.saturating_sub(self.sent_bytes - self.accepted_bytes);
        usize::try_from(space).unwrap_or(MAX_DATA).min(MAX_DATA)
    }

    /// The message for data, at most as much as there is space. No data at all is the end of the stream. Here and below
    /// `None` means that a message cannot be sealed.
    pub(super) fn send(&mut self, data: &[u8], now: Instant) -> Option<Vec<u8>> {
        self.last_sent += 1;
        self.sent_bytes += data.len() as u64;
        let sent = Sent { sequence: self.last_sent, data: data.to_vec(), at: now };
        let message = self.message(DATA, sent.sequence, &sent.data);
        self.unreceived.push_back(sent);
        message
    }

    /// The heartbeat message, which also acknowledges what this side has received.
    pub(super) fn beat(&mut self) -> Option<Vec<u8>> {
        self.message(BEAT, 0, &[])
    }

    /// The message that says that this side has aborted.
    pub(super) fn abort(&mut self) -> Option<Vec<u8>> {
        self.message(ABORT, 0, &[])
    }

    /// The messages for what has to be sent again.
    pub(super) fn resend(&mut self, now: Instant) -> Vec<Option<Vec<u8>>> {
        let is_late = |sent: &Sent| now.saturating_duration_since(sent.at) >= RESEND_AFTER;
        if !self.unreceived.front().is_some_and(is_late) {
            return Vec::new();
        }
        let mut unreceived = std::mem::take(&mut self.unreceived);
        let messages = unreceived.iter_mut().map(|sent| {
            sent.at = now;
            self.message(DATA, sent.sequence, &sent.data)
        });
        let messages = messages.collect();
        self.unreceived = unreceived;
        messages
    }

    fn message(&mut self, kind: u8, sequence: u64, data: &[u8]) -> Option<Vec<u8>> {
        self.told = (self.received, self.delivered_bytes);
        let mut message = Vec::with_capacity(HEADER + data.len());
        message.push(kind);
        for number in [self.received, self.delivered_bytes, sequence] {
            message.extend_from_slice(&number.to_le_bytes());
        }
        message.extend_from_slice(data);
        self.keys.seal(&message)
    }

    /// Handles a message, which may be of the other side or forged.
    pub(super) fn hear(&mut self, sealed: &[u8], now: Instant) -> Heard {
        if sealed.len() > MAX_MESSAGE {
            return Heard::Refused;
        }
        let Some(message) = self.keys.open(sealed.to_vec()) else { return Heard::Refused };
        let Some((header, data)) = message.split_first_chunk::<HEADER>() else { return Heard::Refused };
        let number = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (kind, received, accepted, sequence) = (header[0], number(1), number(9), number(17));
        self.last_heard = now;
        while self.unreceived.front().is_some_and(|sent| sent.sequence <= received) {
            self.unreceived.pop_front();
        }
        self.accepted_bytes = accepted.clamp(self.accepted_bytes, self.sent_bytes);
        match kind {
            DATA => self.take(sequence, data),
            ABORT => return Heard::Aborted,
            _ => {}
        }
        Heard::Alive
    }

    /// Takes data, if it is what comes next. It is sent again if there is no space for it: the other side has sent
    /// more than it may.
    fn take(&mut self, sequence: u64, data: &[u8]) {
        let waiting = self.received_bytes - self.delivered_bytes;
        let has_space = self.arrived.len() as u64 <= MAX_MESSAGES && waiting + data.len() as u64 <= WINDOW;
        if sequence == self.received + 1 && has_space {
            self.received = sequence;
            self.received_bytes += data.len() as u64;
            self.arrived.push_back(data.to_vec());
        }
    }

    /// The next data to deliver. An empty piece is the end of the stream.
    pub(super) fn arrived(&self) -> Option<&[u8]> {
        self.arrived.front().map(Vec::as_slice)
    }

    /// Records that this many bytes of it were delivered.
    pub(super) fn delivered(&mut self, count: usize) {
        let Some(front) = self.arrived.front_mut() else { return };
        let count = count.min(front.len());
        front.drain(..count);
        self.delivered_bytes += count as u64;
        if front.is_empty() {
            self.arrived.pop_front();
        }
    }

    /// Whether the other side should be told what was received and delivered before the next beat: it may have no
    /// space left.
    pub(super) fn should_tell(&self) -> bool {
        let (received, delivered) = self.told;
        self.received - received >= MAX_MESSAGES / 4 || self.delivered_bytes - delivered >= WINDOW / 4
    }

    /// Whether the other side has received everything that was sent.
    pub(super) fn is_received(&self) -> bool {
        self.unreceived.is_empty()
    }

    /// For how long nothing has been heard of the other side.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last_heard)
    }
}

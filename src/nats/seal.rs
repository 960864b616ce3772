//! Seals messages with keys that are derived from a shared secret: without it a message cannot be
//! read, forged or changed.

pub(crate) mod tenant;

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};

use crate::storage::named::NamedFile;

/// Separates these keys from all others that are derived from the same secret, and versions of the protocol from each
/// other.
const CONTEXT: &[u8] = b"cx-nats-1";

/// Bounds of the secret's text, in bytes.
const MIN_SECRET: usize = 32;
const MAX_SECRET: u64 = 4_096;

/// Bytes that sealing adds to a message of a conversation: its number and the tag.
pub(super) const OVERHEAD: usize = NUMBER + TAG;

/// Bytes of the number of a message.
const NUMBER: usize = 8;
const TAG: usize = 16;

/// The shared secret, from which the keys of all runs are derived.
#[derive(Clone)]
pub(crate) struct SharedKey(Prk);

impl fmt::Debug for SharedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedKey")
    }
}

impl SharedKey {
    /// The key of a text with at least 32 characters, without the white space around it. `None` if it is shorter.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let secret = text.trim().as_bytes();
        is_secret(secret).then(|| Self(Salt::new(HKDF_SHA256, CONTEXT).extract(secret)))
    }

    /// Reads the key's file. The error is a sentence.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or has no key.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        read_secret(path, Self::new)
    }

    /// The key of one purpose. The parts of `context` have a fixed length for each purpose, so that no two contexts
    /// are the same bytes. `None` if that fails, which the lengths of keys rule out.
    fn derive(&self, purpose: Purpose, context: &[&str]) -> Option<LessSafeKey> {
        let mut info: Vec<&[u8]> = vec![purpose.label()];
        info.extend(context.iter().map(|part| part.as_bytes()));
        Some(LessSafeKey::new(UnboundKey::from(self.0.expand(&info, &CHACHA20_POLY1305).ok()?)))
    }

    /// Seals a message that stands alone. `None` if the system provides no random numbers.
    pub(super) fn seal(&self, purpose: Purpose, context: &[&str], message: &[u8]) -> Option<Vec<u8>> {
        seal_alone(&self.derive(purpose, context)?, message)
    }

    /// Opens a message that stands alone. `None` if it was not sealed with this key, for this purpose and context.
    pub(super) fn open(&self, purpose: Purpose, context: &[&str], sealed: &[u8]) -> Option<Vec<u8>> {
        open_alone(&self.derive(purpose, context)?, sealed)
    }

    /// The keys of a conversation about run `run` with worker `worker`, for one of its sides. `None` if they cannot be
    /// derived.
    pub(super) fn conversation(&self, side: Side, run: &str, worker: &str) -> Option<ConversationKeys> {
        let to_worker = self.derive(Purpose::ToWorker, &[run, worker])?;
        let from_worker = self.derive(Purpose::FromWorker, &[run, worker])?;
        let (own, theirs) = match side {
            Side::Executor => (to_worker, from_worker),
            Side::Worker => (from_worker, to_worker),
        };
        Some(ConversationKeys { own, theirs, sent: 0, seen: 0 })
    }
}

/// Seals a message that has no number, with a random nonce, which is put before it. `None` if the system provides no
/// random numbers.
fn seal_alone(key: &LessSafeKey, message: &[u8]) -> Option<Vec<u8>> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).ok()?;
    let mut sealed = message.to_vec();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed).ok()?;
    Some([&nonce[..], &sealed].concat())
}

/// Opens what [`seal_alone`] has sealed with the same key; `None` for anything else.
fn open_alone(key: &LessSafeKey, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let mut rest = rest.to_vec();
    let opened = key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::empty(), &mut rest).ok()?;
    Some(opened.to_vec())
}

/// Whether this is long enough, and text: a file of zeros, or a device, is not a secret.
fn is_secret(secret: &[u8]) -> bool {
    let is_binary = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    secret.len() >= MIN_SECRET && !secret.iter().any(is_binary)
}

/// Reads a file with a secret. The error is a sentence.
fn read_secret<K>(path: &Path, key: impl FnOnce(&str) -> Option<K>) -> Result<K, String> {
    let shown = path.display();
    let mut text = String::new();
    let read =
        NamedFile::open_secret(path).and_then(|file| file.take(MAX_SECRET + 1).read_to_string(&mut text));
    read.map_err(|error| format!("the key file `{shown}` cannot be read: {error}"))?;
    // A part of a longer text is not its secret.
    let found = (text.len() as u64 <= MAX_SECRET).then(|| key(&text)).flatten();
    found.ok_or_else(|| {
        format!(
            "the key file `{shown}` has no key: expected at least {MIN_SECRET} characters of text, and at most \
             {MAX_SECRET} bytes"
        )
    })
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A run in the queue.
    Offer,
    /// A worker asks for a run.
    Claim,
    /// The answer to that.
    Grant,
    ToWorker,
    FromWorker,
}

impl Purpose {
    /// All have the same length.
    fn label(self) -> &'static [u8] {
        match self {
            Self::Offer => b"offer",
            Self::Claim => b"claim",
            Self::Grant => b"grant",
            Self::ToWorker => b"to   ",
            Self::FromWorker => b"from ",
        }
    }
}

/// The sides of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Executor,
    Worker,
}

/// The keys of one side of a conversation. Each message has a number, which is larger than those before it.
pub(super) struct ConversationKeys {
    own: LessSafeKey,
    theirs: LessSafeKey,
    /// The number of the last message that was sealed, and of the last that was opened.
    sent: u64,
    seen: u64,
}

impl ConversationKeys {
    /// Seals the next message. `None` if the cipher fails, as it does with messages of many gigabytes.
    pub(super) fn seal(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        self.sent += 1;
        let mut sealed = Vec::with_capacity(NUMBER + message.len() + TAG);
        sealed.extend_from_slice(&self.sent.to_le_bytes());
        sealed.extend_from_slice(message);
        let text = &mut sealed[NUMBER..];
        let tag = self.own.seal_in_place_separate_tag(nonce(self.sent), Aad::empty(), text).ok()?;
        sealed.extend_from_slice(tag.as_ref());
        Some(sealed)
    }

    /// Opens a message. `None` if the other side has not sealed it, or it is not later than those before it.
    pub(super) fn open(&mut self, mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let number = u64::from_le_bytes(*sealed.first_chunk::<NUMBER>()?);
        if number <= self.seen {
            return None;
        }
        let opened = self.theirs.open_in_place(nonce(number), Aad::empty(), &mut sealed[NUMBER..]).ok()?;
        let length = opened.len();
        self.seen = number;
        sealed.truncate(NUMBER + length);
        sealed.drain(..NUMBER);
        Some(sealed)
    }
}

/// Each key seals only one message with a given number.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..NUMBER].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

//! Signed notes (C2SP `signed-note`) with Ed25519 keys: the form in which checkpoints are signed. Keys
//! are text in the form of Go's `sumdb/note`, so that other tools verify them.
//!
//! The crate `signed_note` implements the same format on top of ed25519-dalek, with older major versions of base64 and
//! thiserror. cx has `ring` already and needs one key and one signature of a note, so only the format is implemented
//! here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};

/// The kind of a key: Ed25519.
const ALGORITHM: u8 = 1;

/// Bytes of a seed, and of a public key.
const KEY_BYTES: usize = 32;

/// Maximum bytes of a note. A checkpoint has about 200.
const MAX_NOTE_BYTES: usize = 64 << 10;

/// The prefix of each signature line.
const SIGNATURE: &str = "\u{2014} ";

/// A key that signs notes.
pub(super) struct Signer {
    name: String,
    key: Ed25519KeyPair,
}

/// A key that verifies notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verifier {
    pub(super) name: String,
    key: [u8; KEY_BYTES],
}

impl Signer {
    /// Makes a key. Returns it as text too, which is secret. `None` if the system has no random numbers.
    pub(super) fn generate(name: &str) -> Option<(String, Self)> {
        let seed: [u8; KEY_BYTES] = ring::rand::generate(&SystemRandom::new()).ok()?.expose();
        let signer = Self::from_seed(name, &seed)?;
        let mut secret = vec![ALGORITHM];
        secret.extend(seed);
        let id = hex::encode(signer.verifier().id());
        Some((format!("PRIVATE+KEY+{name}+{id}+{}", STANDARD.encode(secret)), signer))
    }

    /// Parses a secret key. `None` if the text is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, id, bytes) = parts(text.trim().strip_prefix("PRIVATE+KEY+")?)?;
        let signer = Self::from_seed(name, &bytes)?;
        (hex::encode(signer.verifier().id()) == id).then_some(signer)
    }

    fn from_seed(name: &str, seed: &[u8]) -> Option<Self> {
        Some(Self { name: name.to_owned(), key: Ed25519KeyPair::from_seed_unchecked(seed).ok()? })
    }

    pub(super) fn verifier(&self) -> Verifier {
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(self.key.public_key().as_ref());
        Verifier { name: self.name.clone(), key }
    }

    /// Signs a text, which ends with a line end and has no empty lines.
    pub(super) fn sign(&self, text: &str) -> String {
        let mut signature = self.verifier().id().to_vec();
        signature.extend(self.key.sign(text.as_bytes()).as_ref());
        format!("{text}\n{SIGNATURE}{} {}\n", self.name, STANDARD.encode(signature))
    }
}

impl Verifier {
    /// Parses a public key. `None` if the text is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, id, bytes) = parts(text.trim())?;
        let verifier = Self { name: name.to_owned(), key: bytes.try_into().ok()? };
        (hex::encode(verifier.id()) == id).then_some(verifier)
    }

    /// The key as text.
    pub(super) fn render(&self) -> String {
        let mut public = vec![ALGORITHM];
        public.extend(self.key);
        format!("{}+{}+{}", self.name, hex::encode(self.id()), STANDARD.encode(public))
    }

    /// The text of a note that this key has signed. `None` if the signature is not this key's.
    pub(super) fn verify<'a>(&self, note: &'a str) -> Option<&'a str> {
        if note.len() > MAX_NOTE_BYTES {
            return None;
        }
        let (text, signatures) = note.split_at(note.rfind("\n\n")? + 1);
        let own = signatures.lines().filter_map(|line| {
            let (name, signature) = line.strip_prefix(SIGNATURE)?.split_once(' ')?;
            let bytes = STANDARD.decode(signature).ok()?;
            (name == self.name).then(|| bytes.strip_prefix(&self.id()).map(<[u8]>::to_vec)).flatten()
        });
        let key = UnparsedPublicKey::new(&ED25519, &self.key);
        own.map(|signature| key.verify(text.as_bytes(), &signature).is_ok())
            .next()
            .unwrap_or_default()
            .then_some(text)
    }

    /// The first bytes of the hash of the name and the key, which identify the key in signatures.
    fn id(&self) -> [u8; 4] {
        let hash =
            Sha256::new().chain_update(&self.name).chain_update([b'\n', ALGORITHM]).chain_update(self.key);
        let hash = hash.finalize();
        [hash[0], hash[1], hash[2], hash[3]]
    }
}

/// The name, the id and the bytes of a key's text.
fn parts(text: &str) -> Option<(&str, &str, Vec<u8>)> {
    let (name, rest) = text.split_once('+')?;
    let (id, key) = rest.split_once('+')?;
    let bytes = STANDARD.decode(key).ok()?;
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    match bytes.split_first() {
        Some((&ALGORITHM, key)) if is_name && key.len() == KEY_BYTES => Some((name, id, key.to_vec())),
        _ => None,
    }
}

/// The content of a checkpoint: the trail, its number of lines, and the hash of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checkpoint {
    pub(super) origin: String,
    pub(super) size: u64,
    /// The hash in hexadecimal, as in lines.
    pub(super) hash: String,
}

impl Checkpoint {
    /// The text that is signed: the lines of a C2SP `tlog-checkpoint`, with the hash of the chain instead of a Merkle
    /// tree's.
    pub(super) fn render(&self) -> String {
        // The hash of each line is in hexadecimal.
        let bytes = hex::decode(&self.hash).unwrap_or_default();
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(bytes))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (origin, size, hash) = (lines.next()?, lines.next()?, lines.next()?);
        let hash = hex::encode(STANDARD.decode(hash).ok()?);
        Some(Self { origin: origin.to_owned(), size: size.parse().ok()?, hash })
    }
}

#[cfg(test)]
mod tests;

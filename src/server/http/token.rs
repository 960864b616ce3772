//! A secret that clients send.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::reading::TokenReading;
use crate::error::{Error, OptionName};
use crate::text::ids::random_id;

/// Minimum length of a token where other machines can reach the server. 32 characters of base64 are
/// 192 bits.
pub(super) const MIN_TOKEN: usize = 32;

/// A secret that clients must send as `Authorization: Bearer`. Only its hash is kept.
#[derive(Clone)]
pub struct HttpToken {
    fingerprint: [u8; 32],
    length: usize,
}

impl HttpToken {
    /// Makes a token of visible ASCII characters, which a header can carry.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if it is empty or has other characters. The message does not
    /// contain the token.
    pub fn new(token: &str) -> Result<Self, Error> {
        let problem = if token.is_empty() {
            "is empty"
        } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            "must be of visible ASCII characters without spaces"
        } else {
            return Ok(Self { fingerprint: Sha256::digest(token).into(), length: token.len() });
        };
        Err(Error::InvalidOptions { option: OptionName::Token, problem: problem.to_owned() })
    }

    /// Makes a random token of 32 characters, and returns its text too.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if the system provides no random numbers.
    pub fn generate() -> Result<(Self, String), Error> {
        let text = random_id().map_err(|source| Error::Start { what: "a token", source })?;
        Ok((Self::new(&text)?, text))
    }

    /// Whether the token is long enough to protect a server that other machines can reach.
    pub(super) fn is_long_enough(&self) -> bool {
        self.length >= MIN_TOKEN
    }

    /// Compares in constant time, so that the duration does not reveal how much of the token is
    /// right.
    pub(super) fn matches(&self, token: &[u8]) -> bool {
        self.has_fingerprint(&Self::fingerprint_of(token))
    }

    /// As [`matches`](Self::matches), for the fingerprint of a token, which is computed once for several comparisons.
    pub(super) fn has_fingerprint(&self, fingerprint: &[u8; 32]) -> bool {
        self.fingerprint.ct_eq(fingerprint).into()
    }

    pub(super) fn fingerprint_of(token: &[u8]) -> [u8; 32] {
        Sha256::digest(token).into()
    }

    /// Whether both are the same token.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.has_fingerprint(&other.fingerprint)
    }
}

/// Reads a token again, for [`HttpOptions::token_reader`](super::HttpOptions::token_reader). It may block.
pub type TokenReader = Arc<dyn Fn() -> TokenReading<HttpToken> + Send + Sync>;

impl PartialEq for HttpToken {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl Eq for HttpToken {}

impl fmt::Debug for HttpToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HttpToken")
    }
}

//! The keys of what the front ends of one tenant share: they seal entries and hide names.

use std::fmt;
use std::path::Path;

use ring::aead::{CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;

use super::{is_secret, open_alone, read_secret, seal_alone};

/// Separates these keys from all others that are derived from the same secret. The name of the tenant follows, so that
/// two tenants with one key file have different keys.
const CONTEXT: &[u8] = b"cx-nats-tenant-1 ";

/// What keys are derived for. All have the same length.
const NAMES: &[u8] = b"names";
const ENTRY: &[u8] = b"entry";

/// Bytes of a name that is hidden.
const HIDDEN: usize = 16;

/// The secret from which the keys of one tenant are derived.
#[derive(Clone)]
pub(crate) struct TenantKey(Prk);

impl fmt::Debug for TenantKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TenantKey")
    }
}

impl TenantKey {
    /// The key of a tenant, from a text with at least 32 characters; `None` if it is shorter.
    pub(crate) fn new(text: &str, tenant: &str) -> Option<Self> {
        let secret = text.trim().as_bytes();
        let context = [CONTEXT, tenant.as_bytes()].concat();
        is_secret(secret).then(|| Self(Salt::new(HKDF_SHA256, &context).extract(secret)))
    }

    /// Reads the file. The error is a sentence.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or has no key.
    pub(crate) fn read(path: &Path, tenant: &str) -> Result<Self, String> {
        read_secret(path, |text| Self::new(text, tenant))
    }

    /// Returns a pseudonym for a name of this kind: 32 hexadecimal digits. `None` if the key cannot
    /// be derived.
    pub(crate) fn hide(&self, kind: u8, name: &[u8]) -> Option<String> {
        let key: hmac::Key = self.0.expand(&[NAMES], hmac::HMAC_SHA256).ok()?.into();
        let tag = hmac::sign(&key, &[&[kind], name].concat());
        Some(hex::encode(&tag.as_ref()[..HIDDEN]))
    }

    /// The key of the entry of this name. `None` if it cannot be derived.
    fn entry(&self, name: &str) -> Option<LessSafeKey> {
        let info = [ENTRY, name.as_bytes()];
        Some(LessSafeKey::new(UnboundKey::from(self.0.expand(&info, &CHACHA20_POLY1305).ok()?)))
    }

    /// Seals the entry of this name. `None` if the system provides no random numbers.
    pub(crate) fn seal(&self, name: &str, value: &[u8]) -> Option<Vec<u8>> {
        seal_alone(&self.entry(name)?, value)
    }

    /// Opens an entry. `None` if it was not sealed with this key, or is the entry of another name.
    pub(crate) fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        open_alone(&self.entry(name)?, sealed)
    }
}

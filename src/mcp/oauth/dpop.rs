//! Tokens that only this client can use (DPoP, RFC 9449): whoever reads one cannot, because each request has to show a
//! proof that a private key has signed.
//!
//! A sign-in has a key pair of its own, which is stored with its tokens and never sent. A proof is for one request: for
//! its method, its address and its token. It has the form of a JSON Web Token with one algorithm, so that `ring`, which
//! TLS has anyway, is enough.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use url::Url;

use super::clock::seconds_since_1970;
use crate::mcp::challenge::{Challenge, find_challenge};
use crate::text::ids::random_id;

/// The algorithm of all proofs: ECDSA with P-256 and SHA-256, which every server has to support that supports any.
pub(crate) const ALGORITHM: &str = "ES256";

/// The header of a proof, and that of the value which a server wants to see in the next one.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The scheme of `Authorization` and `WWW-Authenticate`, and the type of a token.
pub(crate) const SCHEME: &str = "DPoP";

/// The error with which a server asks for its nonce.
pub(crate) const USE_NONCE: &str = "use_dpop_nonce";

/// Maximum bytes of a nonce. Those in use have less than a hundred.
const MAX_NONCE: usize = 1_024;

/// Maximum number of origins whose nonces are kept. A sign-in has two: the authorization server and the server.
const MAX_ORIGINS: usize = 4;

/// The key pair of one sign-in.
pub(crate) struct ProofKey {
    pkcs8: Vec<u8>,
    pair: EcdsaKeyPair,
    /// The public key as JSON.
    public: Value,
    /// The last nonce of each origin.
    nonces: Mutex<HashMap<String, String>>,
}

impl fmt::Debug for ProofKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProofKey").finish_non_exhaustive()
    }
}

impl ProofKey {
    /// A new key pair; `None` if the system provides no random numbers.
    pub(crate) fn generate() -> Option<Arc<Self>> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::from_pkcs8(document.ok()?.as_ref().to_vec())
    }

    /// Reads a stored key pair.
    pub(crate) fn read(stored: &str) -> Option<Arc<Self>> {
        Self::from_pkcs8(URL_SAFE_NO_PAD.decode(stored).ok()?)
    }

    /// The text to store. It is as secret as a token.
    pub(crate) fn to_stored(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.pkcs8)
    }

    fn from_pkcs8(pkcs8: Vec<u8>) -> Option<Arc<Self>> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8, &random).ok()?;
        // An uncompressed point: 4, then both coordinates.
        let (x, y) = pair.public_key().as_ref().get(1..)?.split_at_checked(32)?;
        let [x, y] = [x, y].map(|coordinate| URL_SAFE_NO_PAD.encode(coordinate));
        let public = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
        Some(Arc::new(Self { pkcs8, pair, public, nonces: Mutex::default() }))
    }

    /// A proof for one request, with the token that it carries. `None` if the system provides no random numbers; the
    /// server then refuses the request.
    pub(crate) fn proof(&self, method: &Method, url: &Url, token: Option<&str>) -> Option<HeaderValue> {
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        // They are no part of the address that the server sees. An address without a host has none.
        let _ = target.set_username("");
        let _ = target.set_password(None);
        let mut claims = json!({
            "jti": random_id().ok()?, "htm": method.as_str(), "htu": target.as_str(),
            "iat": seconds_since_1970(),
        });
        if let Some(token) = token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())).into();
        }
        if let Some(nonce) = self.nonces.lock().get(&origin(url)) {
            claims["nonce"] = nonce.as_str().into();
        }
        let header = json!({ "typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self.public });
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).ok()?;
        let mut proof =
            HeaderValue::from_str(&format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))).ok()?;
        proof.set_sensitive(true);
        Some(proof)
    }

    /// Takes up the nonce that an answer from `url` has. Returns whether it has a usable one.
    pub(crate) fn take_nonce(&self, url: &Url, headers: &HeaderMap) -> bool {
        let mut all = headers.get_all(NONCE).iter();
        let (Some(nonce), None) = (all.next(), all.next()) else { return false };
        let Some(nonce) = nonce.to_str().ok().filter(|nonce| is_nonce(nonce)) else { return false };
        let mut nonces = self.nonces.lock();
        if nonces.len() >= MAX_ORIGINS && !nonces.contains_key(&origin(url)) {
            nonces.clear();
        }
        nonces.insert(origin(url), nonce.to_owned());
        true
    }
}

/// Whether a server refuses a request only because its proof lacks the server's nonce (RFC 9449, section 9).
pub(crate) fn asks_for_nonce(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::UNAUTHORIZED
        && any_challenge(headers, |challenge| challenge.parameter("error") == Some(USE_NONCE))
}

/// Whether a server takes tokens that are bound to a key, and proofs of the algorithm that this client has.
pub(crate) fn is_offered(headers: &HeaderMap) -> bool {
    any_challenge(headers, |challenge| {
        challenge
            .parameter("algs")
            .is_none_or(|algorithms| algorithms.split(' ').any(|name| name == ALGORITHM))
    })
}

/// Whether a list of algorithms in a metadata document has that of this client.
pub(crate) fn lists_algorithm(algorithms: &Value) -> bool {
    algorithms.as_array().is_some_and(|names| names.iter().any(|name| name == ALGORITHM))
}

/// Whether `is_wanted` is true of one of the challenges for tokens that are bound to a key.
fn any_challenge(headers: &HeaderMap, is_wanted: impl Fn(&Challenge<'_>) -> bool) -> bool {
    let found = find_challenge(headers, |challenge| {
        (challenge.scheme.eq_ignore_ascii_case(SCHEME) && is_wanted(challenge)).then_some(())
    });
    found.is_some()
}

/// Whether a text is a nonce (RFC 9449, section 8.1), and not too long for a header.
fn is_nonce(text: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !text.is_empty() && text.len() <= MAX_NONCE && text.bytes().all(is_allowed)
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
pub(super) mod tests;

//! Signs in as the client itself with an assertion in place of a secret (RFC 7523): one that its private key signs
//! (`private_key_jwt`), or one that an identity provider has signed for the workload.
//!
//! Both kinds are also made and read for `enterprise`.
//!
//! rmcp has the first behind a feature that needs a library of JSON Web Tokens. This one has a fixed form, and `ring`,
//! which TLS has anyway, signs it. The key never leaves this process: what is sent is for one authorization server, and
//! for a minute.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use rmcp::transport::auth::{CredentialStore as _, OAuthTokenResponse, StoredCredentials};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use url::Url;
use url::form_urlencoded::Serializer;

use super::clock::seconds_since_1970;
use super::failure::{SignInError, failed, preview};
use super::http::{OAuthHttp, Refused};
use super::issuer::Endpoints;
use super::tokens::BoundCredentials;
use crate::machine::probe;
use crate::mcp::settings::OAuth;
use crate::storage::regular::open_regular;
use crate::text::ids::random_id;

/// How the request says that the client shows an assertion.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The grant of an assertion that an identity provider has signed.
const ASSERTION_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Maximum bytes of a file with an assertion. Those of Kubernetes have about one kilobyte.
const MAX_ASSERTION: usize = 64 << 10;

/// How long an assertion is valid. It is used at once; clocks differ.
const VALID: Duration = Duration::from_secs(60);

/// Gets a token for the client and stores it.
///
/// # Errors
///
/// If the key cannot be used, or the authorization server refuses it.
pub(crate) async fn sign_in(
    http: &OAuthHttp,
    endpoints: &Endpoints,
    server: &Url,
    config: &OAuth,
    store: &BoundCredentials,
) -> Result<(), SignInError> {
    let client_id = config.client_id.clone().unwrap_or_default();
    let mut resource = server.clone();
    resource.set_fragment(None);
    let mut fields = vec![("resource", resource.to_string())];
    let key = match (&config.private_key, &config.assertion_file) {
        (Some(key), _) if !client_id.is_empty() => {
            fields.push(("grant_type", "client_credentials".to_owned()));
            fields.push(("client_assertion_type", ASSERTION_TYPE.to_owned()));
            Some(key)
        }
        (None, Some(file)) => {
            fields.push(("grant_type", ASSERTION_GRANT.to_owned()));
            fields.push(("assertion", read("oauth.assertionFile", file).await?));
            None
        }
        _ => return Err(failed("`oauth.privateKey` needs `oauth.clientId`, the client that the key is of")),
    };
    // Beside an assertion of the client itself it may be left out, and some authorization servers need it (RFC 7521,
    // section 4.2).
    if !client_id.is_empty() {
        fields.push(("client_id", client_id.clone()));
    }
    if !config.scopes.is_empty() {
        fields.push(("scope", config.scopes.join(" ")));
    }
    let form = || -> Result<String, SignInError> {
        let mut form = Serializer::new(String::new());
        form.extend_pairs(&fields);
        if let Some(key) = key {
            form.append_pair("client_assertion", &assertion(key, &client_id, &store.binding.issuer)?);
        }
        Ok(form.finish())
    };
    let endpoint = Url::parse(&endpoints.token_endpoint)
        .map_err(|error| failed(format!("the token endpoint is not an address: {error}")))?;
    let refused = |refused: Refused| failed(refused.to_string());
    let mut answer = http.post(&endpoint, form()?).await.map_err(refused)?;
    if http.lacks_nonce(&endpoint, &answer) {
        // With another assertion: the authorization server may have noted the first one, which counts once.
        answer = http.post(&endpoint, form()?).await.map_err(refused)?;
    }
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    if answer.status() != StatusCode::OK {
        return Err(failed(refusal(answer.status(), &body)));
    }
    let token: OAuthTokenResponse = serde_json::from_slice(answer.body())
        .map_err(|error| failed(format!("the authorization server's answer is not a token: {error}")))?;
    let granted = match body["scope"].as_str() {
        Some(scopes) => scopes.split_whitespace().map(str::to_owned).collect(),
        None => config.scopes.clone(),
    };
    let credentials = StoredCredentials::new(client_id, Some(token), granted, Some(seconds_since_1970()));
    Ok(store.save(credentials).await?)
}

/// What an answer without a token says.
fn refusal(status: StatusCode, body: &Value) -> String {
    let said = ["error", "error_description"].map(|name| body[name].as_str().unwrap_or_default());
    let said = match status.is_redirection() {
        true => "it redirects, which is not followed".to_owned(),
        false => preview(said.join(" ").trim()),
    };
    let separator = if said.is_empty() { "" } else { ": " };
    format!("the authorization server answers {}{separator}{said}", status.as_u16())
}

/// Reads the signed token that is in the file of a setting now. Others replace it before it expires.
pub(crate) async fn read(setting: &str, file: &Path) -> Result<String, SignInError> {
    let path = file.to_owned();
    // A file system can be slow: a thread for blocking work waits for it, and whoever needs the token up to a deadline.
    let reading = probe::spawn_blocking(&Handle::current(), move || -> io::Result<String> {
        let mut text = String::new();
        open_regular(&path)?.take(MAX_ASSERTION as u64 + 1).read_to_string(&mut text)?;
        Ok(text)
    });
    let name = file.display();
    let unreadable = |error: io::Error| failed(format!("`{setting}` {name} cannot be read: {error}"));
    let text = match reading.map_err(unreadable)?.await {
        Ok(read) => read.map_err(unreadable)?,
        Err(_runtime_ends) => return Err(failed("the process is about to end")),
    };
    let assertion = text.trim();
    let is_signed = assertion.split('.').count() == 3 && assertion.split('.').all(is_base64url);
    match text.len() <= MAX_ASSERTION && is_signed {
        true => Ok(assertion.to_owned()),
        false => Err(failed(format!("`{setting}` {name}: expected a signed JSON Web Token"))),
    }
}

/// Whether a text can be a part of a signed JSON Web Token (RFC 7515, section 2).
fn is_base64url(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Checks a private key before anything is sent that it is needed for.
///
/// # Errors
///
/// If nothing can be signed with it.
pub(crate) fn check_key(pem: &str) -> Result<(), SignInError> {
    SigningKey::read(pem).map(drop)
}

/// A statement, signed with the key, that its bearer is the client. It is for one authorization server.
pub(crate) fn assertion(pem: &str, client_id: &str, issuer: &str) -> Result<String, SignInError> {
    let key = SigningKey::read(pem)?;
    let no_random = || failed("the system provides no random numbers");
    let (now, id) = (seconds_since_1970(), random_id().map_err(|_| no_random())?);
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": issuer, "jti": id, "iat": now, "exp": now + VALID.as_secs(),
    });
    let header = json!({ "alg": key.algorithm(), "typ": "JWT" });
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed = format!("{header}.{claims}");
    let signature = key.sign(signed.as_bytes()).ok_or_else(no_random)?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A private key, which decides how it signs.
enum SigningKey {
    Es256(EcdsaKeyPair),
    Es384(EcdsaKeyPair),
    Rs256(Box<RsaKeyPair>),
}

impl SigningKey {
    /// Reads a key in the form of PKCS #8. A variable of the environment may have `\n` for its line ends.
    fn read(pem: &str) -> Result<Self, SignInError> {
        let pem = pem.replace("\\n", "\n");
        let unusable = || {
            failed(
                "`oauth.privateKey` cannot be used: expected `BEGIN PRIVATE KEY` (PKCS #8) with a key for P-256, \
                 P-384, or RSA of 2,048 to 4,096 bits",
            )
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| unusable())?;
        let (der, random) = (der.secret_pkcs8_der(), SystemRandom::new());
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random) {
            return Ok(Self::Es256(key));
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, der, &random) {
            return Ok(Self::Es384(key));
        }
        RsaKeyPair::from_pkcs8(der).map(|key| Self::Rs256(Box::new(key))).map_err(|_| unusable())
    }

    const fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Es384(_) => "ES384",
            Self::Rs256(_) => "RS256",
        }
    }

    /// Signs a text; `None` if the system provides no random numbers.
    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Es256(key) | Self::Es384(key) => Some(key.sign(&random, text).ok()?.as_ref().to_vec()),
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

#[cfg(test)]
mod tests;

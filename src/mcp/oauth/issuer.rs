//! Binds credentials to one authorization server, and checks whether a metadata document is that
//! server's.
//!
//! An MCP server names its authorization server, so an attacker who controls the MCP server chooses
//! where secrets would be sent. Credentials are therefore bound to one issuer and to the origin of
//! its token endpoint: to the configured issuer, or to the one that the first sign-in used. Only
//! the location of a document proves its issuer (RFC 8414, section 3.3).

use rmcp::transport::auth::AuthorizationMetadata;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::mcp::settings::OAuth;

/// Path prefixes of an issuer's metadata. They stand before the issuer's path, or after it by
/// OpenID Connect Discovery and with servers that mount their routes below a path.
const WELL_KNOWN: [&str; 2] =
    ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];

/// The authorization server that credentials are bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Binding {
    pub(crate) issuer: String,
    /// The origin of the token endpoint, such as `https://login.example.com`. Many issuers have it
    /// on another host.
    pub(crate) token_origin: String,
}

/// A metadata document as it was fetched.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The URL that was requested first: redirects do not change which issuer a location belongs
    /// to.
    pub(crate) location: Url,
    pub(crate) endpoints: Endpoints,
}

/// The parts of a metadata document that decide where credentials are sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Endpoints {
    pub(crate) issuer: Option<String>,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) registration_endpoint: Option<String>,
}

/// Why credentials are not sent to the authorization server that was found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IssuerError {
    #[error(
        "`oauth.clientSecret`, `oauth.privateKey`, `oauth.assertionFile` and `oauth.idTokenFile` need \
         `oauth.issuer`: the authorization server that they are for, such as `https://login.example.com`"
    )]
    SecretWithoutIssuer,
    #[error(
        "`oauth.privateKey`, `oauth.assertionFile` and `oauth.idTokenFile` need `oauth.clientCredentials`: they are \
         used only where no browser is"
    )]
    AssertionWithoutClientCredentials,
    #[error("it is behind `http`, where what is sent could be read; use `https`")]
    Unencrypted,
    #[error("`{0}` is not a location of an authorization server's metadata (RFC 8414, section 3)")]
    Location(String),
    #[error("the metadata at `{0}` has no `issuer`")]
    Missing(String),
    #[error(
        "the metadata at `{location}` has the issuer `{found}`, expected `{expected}` (RFC 8414, section 3.3)"
    )]
    Elsewhere { location: String, found: String, expected: String },
    #[error("the metadata of the authorization server is not what was fetched")]
    Unproven,
    #[error("the authorization server `{0}` has no metadata that can be used")]
    Unavailable(String),
    #[error("`{0}` of the authorization server is not an address")]
    Endpoint(&'static str),
    #[error(
        "the server names the authorization server `{found}`, expected `{expected}` as `oauth.issuer` says"
    )]
    NotConfigured { found: String, expected: String },
    #[error(
        "the server names the authorization server `{found}`, which is not the one of the sign-in, `{expected}`; \
         nothing was sent to it"
    )]
    Changed { found: String, expected: String },
    #[error(
        "the authorization server `{issuer}` has moved its token endpoint to `{found}`, expected `{expected}` as at \
         the sign-in; nothing was sent there"
    )]
    TokenEndpointMoved { issuer: String, found: String, expected: String },
    #[error(
        "the authorization server `{issuer}` has its authorization endpoint at `{authorization}` and its token \
         endpoint at `{token}`; a code of the one could be meant for another server. If all three belong together, \
         set `oauth.issuer` to `{issuer}`"
    )]
    ThreeOrigins { issuer: String, authorization: String, token: String },
}

impl From<&AuthorizationMetadata> for Endpoints {
    fn from(metadata: &AuthorizationMetadata) -> Self {
        Self {
            issuer: metadata.issuer.clone(),
            authorization_endpoint: metadata.authorization_endpoint.clone(),
            token_endpoint: metadata.token_endpoint.clone(),
            registration_endpoint: metadata.registration_endpoint.clone(),
        }
    }
}

impl Document {
    /// The binding that this document proves.
    pub(crate) fn binding(&self) -> Result<Binding, IssuerError> {
        let expected =
            issuer_at(&self.location).ok_or_else(|| IssuerError::Location(self.location.to_string()))?;
        let Some(issuer) = &self.endpoints.issuer else {
            return Err(IssuerError::Missing(self.location.to_string()));
        };
        // The location does not contain the last slash of the issuer's path, so both spellings have
        // the same location. They are still different issuers: the exact text is stored.
        if *issuer != expected && issuer.strip_suffix('/') != Some(&expected) {
            let (location, found) = (self.location.to_string(), issuer.clone());
            return Err(IssuerError::Elsewhere { location, found, expected });
        }
        Ok(Binding { issuer: issuer.clone(), token_origin: self.endpoints.token_origin()? })
    }
}

impl Endpoints {
    /// The binding of a server without metadata, whose endpoints are its own (revision 2025-03-26):
    /// the server is its own issuer.
    pub(crate) fn binding_of_server(&self, server: &Url) -> Result<Binding, IssuerError> {
        Ok(Binding { issuer: origin(server), token_origin: self.token_origin()? })
    }

    pub(crate) fn token_origin(&self) -> Result<String, IssuerError> {
        Ok(origin(&parse(&self.token_endpoint, "token_endpoint")?))
    }

    /// Checks a client that was registered manually with an issuer that is not configured. An
    /// impostor's authorization server could send the user to the true one, which would then send
    /// the authorization code to the impostor (RFC 9700, section 4.4). So the authorization
    /// endpoint must have the origin of the issuer or of the token endpoint, to which the code is
    /// sent.
    pub(crate) fn check_mix_up(&self, issuer: &str) -> Result<(), IssuerError> {
        let authorization = origin(&parse(&self.authorization_endpoint, "authorization_endpoint")?);
        let token = self.token_origin()?;
        let of_issuer = origin(&parse(issuer, "issuer")?);
        if authorization == of_issuer || authorization == token {
            return Ok(());
        }
        Err(IssuerError::ThreeOrigins { issuer: issuer.to_owned(), authorization, token })
    }

    /// All endpoints that may be posted to.
    pub(crate) fn posted_to(&self) -> Vec<Url> {
        let endpoints = [Some(&self.token_endpoint), self.registration_endpoint.as_ref()];
        endpoints.into_iter().flatten().filter_map(|endpoint| Url::parse(endpoint).ok()).collect()
    }
}

impl Binding {
    /// Checks that this authorization server, which was discovered, may get credentials of `bound`.
    pub(crate) fn check(&self, bound: &Self) -> Result<(), IssuerError> {
        if !is_same_issuer(&self.issuer, &bound.issuer) {
            return Err(IssuerError::Changed { found: self.issuer.clone(), expected: bound.issuer.clone() });
        }
        if self.token_origin != bound.token_origin {
            return Err(IssuerError::TokenEndpointMoved {
                issuer: bound.issuer.clone(),
                found: self.token_origin.clone(),
                expected: bound.token_origin.clone(),
            });
        }
        Ok(())
    }

    /// Checks that this belongs to the configured issuer, if there is one.
    pub(crate) fn check_configured(&self, config: &OAuth) -> Result<(), IssuerError> {
        match &config.issuer {
            Some(expected) if !is_same_issuer(&self.issuer, expected) => {
                let (found, expected) = (self.issuer.clone(), expected.clone());
                Err(IssuerError::NotConfigured { found, expected })
            }
            _ => Ok(()),
        }
    }
}

/// Checks the configuration before any request: a client secret or assertion requires a configured issuer, and an
/// assertion a client that signs in as itself.
pub(crate) fn check_secret(config: &OAuth) -> Result<(), IssuerError> {
    let has_secret = config.client_secret.is_some() || config.has_assertion();
    if has_secret && config.issuer.is_none() {
        return Err(IssuerError::SecretWithoutIssuer);
    }
    if config.has_assertion() && !config.client_credentials {
        return Err(IssuerError::AssertionWithoutClientCredentials);
    }
    Ok(())
}

/// Whether two texts name the same issuer: they are equal (RFC 8414, section 4), except that an
/// origin may end with a slash. There is no other normalization, because each rule could be
/// exploited.
pub(crate) fn is_same_issuer(one: &str, other: &str) -> bool {
    fn without_root_slash(issuer: &str) -> &str {
        match issuer.strip_suffix('/') {
            // `https://host` without a path.
            Some(origin) if origin.matches('/').count() == 2 => origin,
            _ => issuer,
        }
    }
    without_root_slash(one) == without_root_slash(other)
}

/// The issuer whose metadata is at `location`, without a trailing slash; `None` if it is not a
/// location of metadata.
fn issuer_at(location: &Url) -> Option<String> {
    let has_more = location.query().is_some() || location.fragment().is_some();
    if has_more || !location.username().is_empty() || location.password().is_some() {
        return None;
    }
    let path = location.path();
    let issuer_path = WELL_KNOWN.iter().find_map(|well_known| {
        let rest = path.strip_prefix(well_known)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    });
    let issuer_path =
        issuer_path.or_else(|| WELL_KNOWN.iter().find_map(|suffix| path.strip_suffix(suffix)))?;
    let origin = location.origin();
    origin
        .is_tuple()
        .then(|| format!("{}{}", origin.ascii_serialization(), issuer_path.trim_end_matches('/')))
}

/// The possible locations of the metadata of `issuer`, best first.
pub(crate) fn locations(issuer: &str) -> Vec<Url> {
    let Ok(issuer) = Url::parse(issuer) else { return Vec::new() };
    let path = issuer.path().trim_end_matches('/');
    let [oauth, openid] = WELL_KNOWN;
    let mut paths = vec![format!("{oauth}{path}"), format!("{openid}{path}")];
    if !path.is_empty() {
        paths.push(format!("{path}{openid}"));
    }
    let at = |path: String| {
        let mut location = issuer.clone();
        location.set_path(&path);
        location
    };
    paths.into_iter().map(at).collect()
}

/// Whether `entry` of a server's `authorization_servers` is `issuer`, or a location of its
/// metadata.
pub(crate) fn names(entry: &str, issuer: &str) -> bool {
    is_same_issuer(entry, issuer) || locations(issuer).iter().any(|location| location.as_str() == entry)
}

fn parse(address: &str, name: &'static str) -> Result<Url, IssuerError> {
    Url::parse(address).ok().filter(Url::has_host).ok_or(IssuerError::Endpoint(name))
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests;

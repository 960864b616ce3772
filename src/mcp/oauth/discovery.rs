//! Discovers the authorization server of a server, and checks that credentials may be sent to it.

use std::sync::Arc;

use http::StatusCode;
use rmcp::transport::auth::{
    AuthError as RmcpError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource,
};
use serde_json::Value;
use url::Url;

use super::dpop::{ProofKey, lists_algorithm};
use super::failure::SignInError;
use super::http::OAuthHttp;
use super::issuer::{self, Binding, Document, Endpoints, IssuerError, is_same_issuer};
use crate::mcp::address::is_private;
use crate::mcp::settings::OAuth;

/// Checks the configuration before anything is sent.
pub(crate) fn check_before(url: &Url, config: &OAuth) -> Result<(), SignInError> {
    if !is_private(url) {
        // This is checked before any secret is sent, not only before the token is.
        return Err(IssuerError::Unencrypted.into());
    }
    Ok(issuer::check_secret(config)?)
}

/// rmcp's state machine for one exchange, after the discovery of its authorization server.
pub(crate) struct Discovered {
    pub(crate) manager: AuthorizationManager,
    pub(crate) endpoints: Endpoints,
    pub(crate) binding: Binding,
    /// Where its token endpoint expects a client's secret.
    pub(crate) takes_secret_in_form: bool,
    /// Sends to the endpoints that were checked, and to no others.
    pub(crate) http: Arc<OAuthHttp>,
    /// Whether tokens are to be bound to a key: the server asks for it, and the authorization server can do it.
    binds_tokens: bool,
}

impl Discovered {
    /// Binds the tokens of this exchange to a key, if tokens are to be bound: to the one of the `stored` sign-in, or
    /// else to a new one. Returns the key.
    pub(crate) fn use_key(&self, stored: Option<Arc<ProofKey>>) -> Option<Arc<ProofKey>> {
        let key = if self.binds_tokens { stored.or_else(ProofKey::generate) } else { None };
        self.http.use_key(key.clone());
        key
    }

    /// As [`use_key`](Self::use_key), for a renewal: the token for it is bound to the key of the `stored` sign-in,
    /// whatever the server asks for now.
    pub(crate) fn keep_key(&self, stored: Option<Arc<ProofKey>>) -> Option<Arc<ProofKey>> {
        if stored.is_none() {
            return self.use_key(None);
        }
        self.http.use_key(stored.clone());
        stored
    }
}

/// Discovers the authorization server of the server at `url`, and checks that credentials may be
/// sent to it: its metadata document must be its own, and it must be the configured server, or the
/// one that the credentials are `bound` to.
pub(crate) async fn discover(
    url: &Url,
    config: &OAuth,
    bound: Option<&Binding>,
) -> Result<Discovered, SignInError> {
    let http = OAuthHttp::new(url).map_err(|error| RmcpError::InternalError(error.message))?;
    let http = Arc::new(http);
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(url.as_str(), Arc::<OAuthHttp>::clone(&http))
            .await?;
    let challenge = http.challenge().await;
    let resolved = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
    let expected = bound.map(|bound| &bound.issuer).or(config.issuer.as_ref());
    // Without metadata rmcp guesses the endpoints, as an old revision has it.
    let is_found =
        matches!(&resolved, Ok(found) if found.source != AuthorizationMetadataSource::LegacyEndpointFallback);
    let is_configured = config.client_id.is_some() || config.client_credentials;
    if !is_found && expected.is_none() && !is_configured && http.is_open() {
        return Err(SignInError::NotNeeded);
    }
    let found = match resolved {
        Ok(resolved) => prove(url, &http, resolved.metadata, resolved.source).map_err(SignInError::from),
        Err(error) => Err(error.into()),
    };
    let (mut metadata, binding) = match (found, expected) {
        (Ok(found), None) => found,
        (Ok(found), Some(expected)) if is_same_issuer(&found.1.issuer, expected) => found,
        // rmcp uses the first of several authorization servers. The expected one may be named after
        // it.
        (_, Some(expected)) if http.has_named(expected) => fetch(&http, expected).await?,
        (found, _) => found?,
    };
    binding.check_configured(config)?;
    if let Some(bound) = bound {
        binding.check(bound)?;
        // rmcp compares the texts, and treats the slash after an origin as a difference.
        metadata.issuer = metadata.issuer.map(|_| bound.issuer.clone());
    }
    let endpoints = Endpoints::from(&metadata);
    let takes_secret_in_form = takes_secret_in_form(&metadata);
    // An authorization server that can bind tokens does so for all servers, many of which take no bound tokens. So the
    // server has to ask for them.
    let algorithms = metadata.additional_fields.get("dpop_signing_alg_values_supported");
    let binds_tokens = http.asks_for_bound_tokens() && algorithms.is_some_and(lists_algorithm);
    http.permit(&endpoints);
    manager.set_metadata(metadata);
    Ok(Discovered { manager, endpoints, binding, takes_secret_in_form, http, binds_tokens })
}

/// The binding of the metadata that rmcp has found, if the location of the document proves it. rmcp
/// does not compare every location with the issuer.
fn prove(
    url: &Url,
    http: &OAuthHttp,
    metadata: AuthorizationMetadata,
    source: AuthorizationMetadataSource,
) -> Result<(AuthorizationMetadata, Binding), IssuerError> {
    let endpoints = Endpoints::from(&metadata);
    if source == AuthorizationMetadataSource::LegacyEndpointFallback {
        let binding = endpoints.binding_of_server(url)?;
        return Ok((metadata, binding));
    }
    match http.document() {
        Some(document) if document.endpoints == endpoints => Ok((metadata, document.binding()?)),
        _ => Err(IssuerError::Unproven),
    }
}

/// Whether a token endpoint takes a client's secret among the fields of the request, and not in a header. Every one
/// that says nothing else takes it in a header (RFC 6749, section 2.3.1).
pub(crate) fn takes_secret_in_form(metadata: &AuthorizationMetadata) -> bool {
    let methods = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let methods = methods.and_then(Value::as_array);
    let takes = |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
    takes("client_secret_post") && !takes("client_secret_basic")
}

/// Fetches the metadata of an issuer.
pub(crate) async fn fetch(
    http: &OAuthHttp,
    issuer: &str,
) -> Result<(AuthorizationMetadata, Binding), SignInError> {
    for location in issuer::locations(issuer) {
        let Ok(response) = http.get(&location).await else { continue };
        if response.status() != StatusCode::OK {
            continue;
        }
        let Ok(metadata) = serde_json::from_slice::<AuthorizationMetadata>(response.body()) else { continue };
        let binding = Document { location, endpoints: Endpoints::from(&metadata) }.binding()?;
        return Ok((metadata, binding));
    }
    Err(IssuerError::Unavailable(issuer.to_owned()).into())
}

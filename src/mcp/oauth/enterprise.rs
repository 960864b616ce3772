//! Signs in for a user for whom an enterprise's identity provider vouches (enterprise-managed authorization, SEP-990):
//! the identity provider exchanges the user's ID token for an assertion that is for one authorization server, and that
//! exchanges it for an access token.
//!
//! rmcp makes both exchanges, and refuses an assertion for another audience, client or resource, or for more scopes.

use std::error::Error;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::transport::auth::enterprise::{
    EmaAuthorizationServer, EmaClientAssertion, EmaClientAssertionProvider, EmaClientAuthentication,
    EmaError, EmaExchangeRequest, EmaExchangeStage,
};
use rmcp::transport::auth::{CredentialStore as _, OAuthTokenResponse, StoredCredentials};
use serde_json::{Value, json};
use url::Url;

use super::assertion::{assertion, check_key, read};
use super::clock::seconds_since_1970;
use super::discovery::{fetch, takes_secret_in_form};
use super::failure::{SignInError, described, failed};
use super::http::OAuthHttp;
use super::issuer::{Endpoints, IssuerError};
use super::tokens::BoundCredentials;
use crate::mcp::address::is_private;
use crate::mcp::settings::OAuth;

/// The authorization server that was discovered and checked, and how this client shows there who it is.
///
/// # Errors
///
/// If the configuration does not have all that is needed, or its private key cannot be used.
pub(crate) fn authorization_server(
    endpoints: &Endpoints,
    store: &BoundCredentials,
    takes_secret_in_form: bool,
    config: &OAuth,
) -> Result<EmaAuthorizationServer, SignInError> {
    let client_id = config.client_id.clone().ok_or_else(incomplete)?;
    let server = EmaAuthorizationServer::new(&store.binding.issuer, &endpoints.token_endpoint, client_id);
    let authentication = match (&config.client_secret, &config.private_key) {
        (Some(secret), _) => with_secret(secret, takes_secret_in_form)?,
        (None, Some(key)) => {
            // Later rmcp would say only that the request has failed, and the ID token would have been sent in vain.
            check_key(key)?;
            EmaClientAuthentication::JwtAssertion(Arc::new(KeyHolder(key.clone())))
        }
        (None, None) => EmaClientAuthentication::None,
    };
    Ok(server.with_client_authentication(authentication))
}

/// Gets a token for the user and stores it.
///
/// # Errors
///
/// If the ID token cannot be read, or one of the two servers refuses what it gets.
pub(crate) async fn sign_in(
    http: &OAuthHttp,
    authorization_server: EmaAuthorizationServer,
    server: &Url,
    config: &OAuth,
    store: &BoundCredentials,
) -> Result<(), SignInError> {
    let (Some(issuer), Some(file)) = (&config.identity_provider, &config.id_token_file) else {
        return Err(incomplete());
    };
    let client_id = authorization_server.client_id.clone();
    let mut resource = server.clone();
    resource.set_fragment(None);
    let unusable = |error: SignInError| {
        failed(format!("the identity provider `{issuer}` cannot be used: {}", described(&error)))
    };
    let (identity_http, identity_provider) = identity_provider(issuer, config).await.map_err(unusable)?;
    let id_token = read("oauth.idTokenFile", file).await?;
    let request = EmaExchangeRequest::new_with_id_token(
        identity_provider,
        authorization_server,
        resource.as_str(),
        &id_token,
    );
    let exchanged = request.with_scopes(config.scopes.clone()).exchange(&identity_http, http).await;
    let token = exchanged.map_err(|error| refused(&error, file))?;
    let mut response = json!({ "access_token": token.access_token.secret(), "token_type": "Bearer" });
    if let Some(lifetime) = token.expires_in {
        response["expires_in"] = lifetime.as_secs().into();
    }
    let response: OAuthTokenResponse = serde_json::from_value(response)
        .map_err(|_| failed("the authorization server's answer is not a token"))?;
    let mut granted: Vec<String> = token.scopes.into_iter().collect();
    granted.sort_unstable();
    let credentials = StoredCredentials::new(client_id, Some(response), granted, Some(seconds_since_1970()));
    Ok(store.save(credentials).await?)
}

/// The identity provider, from the metadata of its issuer, and what sends to it and to no other server.
async fn identity_provider(
    issuer: &str,
    config: &OAuth,
) -> Result<(OAuthHttp, EmaAuthorizationServer), SignInError> {
    let url = Url::parse(issuer).map_err(|error| failed(error.to_string()))?;
    if !is_private(&url) {
        // Its metadata, which says where the ID token is sent, could be changed on the way.
        return Err(IssuerError::Unencrypted.into());
    }
    let http = OAuthHttp::new(&url).map_err(|error| failed(error.message))?;
    let (metadata, binding) = fetch(&http, issuer).await?;
    http.permit(&Endpoints::from(&metadata));
    let client_id = config.identity_client_id.as_ref().or(config.client_id.as_ref());
    let client_id = client_id.ok_or_else(incomplete)?;
    let mut provider = EmaAuthorizationServer::new(binding.issuer, &metadata.token_endpoint, client_id);
    if let Some(secret) = &config.identity_client_secret {
        provider = provider.with_client_authentication(with_secret(secret, takes_secret_in_form(&metadata))?);
    }
    Ok((http, provider))
}

fn with_secret(secret: &str, is_in_form: bool) -> Result<EmaClientAuthentication, SignInError> {
    // Its type is of a crate that this one does not use directly.
    let secret = serde_json::from_value(Value::from(secret))
        .map_err(|_| failed("a client's secret cannot be used: it is not text"))?;
    Ok(match is_in_form {
        true => EmaClientAuthentication::ClientSecretPost(secret),
        false => EmaClientAuthentication::ClientSecretBasic(secret),
    })
}

fn incomplete() -> SignInError {
    failed("`oauth.idTokenFile` needs `oauth.identityProvider`, `oauth.clientId` and `oauth.issuer`")
}

/// What a refusal means. The errors have no texts of the servers.
fn refused(error: &EmaError, file: &Path) -> SignInError {
    let stage = EmaExchangeStage::IdentityProvider;
    let problem = match error {
        EmaError::InvalidGrant(at) | EmaError::InsufficientUserAuthentication(at) if *at == stage => {
            let file = file.display();
            format!(
                "the identity provider does not accept the ID token in `oauth.idTokenFile` {file}, which may have \
                 expired: sign in there again, so that the file has a new one"
            )
        }
        error => format!("exchanging the ID token failed: {error}"),
    };
    failed(problem)
}

/// Signs an assertion for each request, with the client's private key.
struct KeyHolder(String);

// Written without the macro of rmcp's trait, as in `tokens`.
impl EmaClientAssertionProvider for KeyHolder {
    fn create_assertion<'life0, 'life1, 'async_trait>(
        &'life0 self,
        server: &'life1 EmaAuthorizationServer,
    ) -> BoxFuture<'async_trait, Result<EmaClientAssertion, Box<dyn Error + Send + Sync>>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        let signed = assertion(&self.0, &server.client_id, &server.issuer);
        let signed: Result<EmaClientAssertion, Box<dyn Error + Send + Sync>> =
            signed.map(EmaClientAssertion::new).map_err(|error| described(&error).into());
        ready(signed).boxed()
    }
}

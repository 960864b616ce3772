//! Signs in without a browser, in the way that is configured.

use std::sync::Arc;

use rmcp::transport::auth::{AuthorizationManager, ClientCredentialsConfig};
use url::Url;

use super::assertion;
use super::discovery::Discovered;
use super::enterprise;
use super::failure::{SignInError, failed};
use super::tokens::{BoundCredentials, RenewalLock, TokenStore};
use crate::mcp::settings::OAuth;

/// Gets a token for `server` and stores it.
///
/// # Errors
///
/// If what is configured cannot be used, or it is refused.
pub(crate) async fn sign_in(
    discovered: Discovered,
    server: &Url,
    config: &OAuth,
    tokens: &Arc<TokenStore>,
    lock: Arc<RenewalLock>,
) -> Result<(), SignInError> {
    // rmcp takes no bound token for the assertion of an identity provider.
    let key = if config.id_token_file.is_some() {
        None
    } else {
        discovered.use_key(tokens.load().await.and_then(|stored| stored.proof_key()))
    };
    let Discovered { mut manager, endpoints, binding, takes_secret_in_form, http, .. } = discovered;
    let store = BoundCredentials { tokens: Arc::clone(tokens), binding, lock: Some(lock), key };
    if config.id_token_file.is_some() {
        let authorization_server =
            enterprise::authorization_server(&endpoints, &store, takes_secret_in_form, config)?;
        return enterprise::sign_in(&http, authorization_server, server, config, &store).await;
    }
    if config.has_assertion() {
        return assertion::sign_in(&http, &endpoints, server, config, &store).await;
    }
    manager.set_credential_store(store);
    client_credentials(&mut manager, server, config).await
}

/// Signs in as the client itself, with its secret.
pub(crate) async fn client_credentials(
    manager: &mut AuthorizationManager,
    server: &Url,
    config: &OAuth,
) -> Result<(), SignInError> {
    let (Some(client_id), Some(client_secret)) = (config.client_id.clone(), config.client_secret.clone())
    else {
        return Err(failed("client credentials need `clientId` and `clientSecret`"));
    };
    let mut resource = server.clone();
    resource.set_fragment(None);
    let config = ClientCredentialsConfig::ClientSecret {
        client_id,
        client_secret,
        scopes: config.scopes.clone(),
        resource: Some(resource.to_string()),
    };
    manager.validate_client_credentials_metadata(&config)?;
    manager.configure_client_credentials(&config)?;
    Ok(manager.exchange_client_credentials(&config).await.map(drop)?)
}

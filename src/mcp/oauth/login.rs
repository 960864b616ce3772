//! Sign-in through a browser, sign-out, and status, for the user.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use rmcp::transport::auth::{AuthError as RmcpError, AuthorizationRequest, AuthorizationSession};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::discovery::{Discovered, check_before, discover};
use super::failure::{SignInError, described, preview};
use super::issuer::is_same_issuer;
use super::tokens::{BoundCredentials, StoredSignIn, TokenStore, secret, unusable};
use super::unattended;
use crate::mcp::address::may_send_to;
use crate::mcp::settings::{HttpTransport, McpServer, McpTransport, OAuth};

/// How long a user may take in the browser, for example to find a password or a second factor.
const USER_TIME: Duration = Duration::from_secs(5 * 60);

/// Maximum time for discovery with registration, and for exchanging the code, each.
const EXCHANGE_TIME: Duration = Duration::from_secs(60);

/// Path of the redirect URI.
const CALLBACK: &str = "/callback";

/// Why signing in or out failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The server is a stdio server, which has no sign-in.
    #[error("server `{0}` is a process; only servers with a `url` can be signed in to")]
    NotHttp(String),
    /// The server answers requests without a token and names no authorization server, so there is nothing
    /// to sign in to.
    #[error("server `{0}` needs no sign-in: it answers without a token and names no authorization server")]
    NotNeeded(String),
    /// The server or its authorization server refused, or cannot be reached.
    #[error("signing in to server `{server}` failed: {problem}")]
    Failed {
        /// The server's name.
        server: String,
        /// The problem.
        problem: String,
    },
    /// The user did not finish in the browser in time.
    #[error("signing in to server `{0}` was not finished within 5 minutes")]
    Elapsed(String),
    /// The tokens could not be written or removed.
    #[error("the tokens of server `{server}` cannot be written or removed: {problem}")]
    Storage {
        /// The server's name.
        server: String,
        /// The problem.
        problem: String,
    },
}

/// The state of a user's sign-in to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthStatus {
    /// No tokens are stored.
    SignedOut,
    /// The stored sign-in is damaged, or no request can be made with it: signing in again replaces it.
    Unusable,
    /// A token is stored.
    SignedIn {
        /// How long it is still valid, if that is known.
        remaining: Option<Duration>,
        /// Whether it can be renewed without the user.
        renews: bool,
    },
}

/// Signs in to `server` and stores the tokens in the system's keyring, or below `directory` if
/// there is none.
///
/// `show` is called with the URL that the user must open in a browser on this machine. The URL is
/// always `https`, or `http` on this machine. `show` is not called for a server with [client
/// credentials](OAuth::client_credentials). Waits for the user for at most five minutes. Dropping the future
/// ends the sign-in; if the user has completed it in the browser by then, tokens may be stored.
///
/// # Errors
///
/// See [`AuthError`].
pub async fn login(server: &McpServer, directory: &Path, show: impl FnOnce(&Url)) -> Result<(), AuthError> {
    login_for(server, directory, &[], show).await
}

/// Signs in again for more scopes, such as those that a server has required for a call. Requests them together with the
/// configured scopes and those of the stored sign-in, so that no granted scope is lost. Otherwise like [`login`].
///
/// # Errors
///
/// See [`AuthError`].
pub async fn login_for(
    server: &McpServer,
    directory: &Path,
    scopes: &[String],
    show: impl FnOnce(&Url),
) -> Result<(), AuthError> {
    login_with(server, Arc::new(TokenStore::new(server.identity(), directory)), scopes, show).await
}

/// Removes the tokens of `server`. If the future is dropped, they may have been removed or not.
///
/// # Errors
///
/// If they cannot be removed.
pub async fn logout(server: &McpServer, directory: &Path) -> Result<(), AuthError> {
    http_transport(server)?;
    logout_with(server, &TokenStore::new(server.identity(), directory)).await
}

pub(crate) async fn logout_with(server: &McpServer, tokens: &TokenStore) -> Result<(), AuthError> {
    // Without the lock, a renewal in flight would store its tokens afterwards.
    let _lock = tokens.lock().await.map_err(|error| failure(server, &error.into()))?;
    tokens.clear().await.map_err(|error| failure(server, &error.into()))
}

/// Returns whether there are tokens for `server`. Reads only the local store, and changes nothing, so that the
/// future can be dropped.
///
/// # Errors
///
/// If the server is a stdio server.
pub async fn status(server: &McpServer, directory: &Path) -> Result<AuthStatus, AuthError> {
    http_transport(server)?;
    Ok(status_with(&TokenStore::new(server.identity(), directory)).await)
}

pub(crate) async fn status_with(tokens: &TokenStore) -> AuthStatus {
    let stored = tokens.load().await;
    // A key that cannot be read is none.
    let is_unusable =
        |stored: &StoredSignIn| unusable(&stored.credentials, stored.proof_key().is_some()).is_some();
    if stored.as_ref().is_some_and(is_unusable) || (stored.is_none() && tokens.has_file()) {
        return AuthStatus::Unusable;
    }
    match stored.as_ref().and_then(secret) {
        Some(secret) => AuthStatus::SignedIn { remaining: secret.remaining, renews: secret.can_renew },
        None => AuthStatus::SignedOut,
    }
}

pub(crate) async fn login_with(
    server: &McpServer,
    tokens: Arc<TokenStore>,
    scopes: &[String],
    show: impl FnOnce(&Url),
) -> Result<(), AuthError> {
    let http = http_transport(server)?;
    let mut config = http.oauth.clone().unwrap_or_default();
    let failed = |problem: String| AuthError::Failed { server: server.name.clone(), problem };
    let too_slow = || failed(format!("no answer within {} s", EXCHANGE_TIME.as_secs()));
    check_before(&http.url, &config).map_err(|error| failure(server, &error))?;
    let discovered = timeout(EXCHANGE_TIME, discover(&http.url, &config, None)).await;
    let discovered = discovered.map_err(|_elapsed| too_slow())?.map_err(|error| failure(server, &error))?;
    let mut granted = granted_before(&server.name, &tokens, &discovered.binding.issuer).await;
    if !scopes.is_empty() {
        if granted.is_empty() && config.scopes.is_empty() {
            granted = discovered.manager.select_initial_scopes(&[]).await;
        }
        for scope in granted.iter().chain(scopes) {
            if !config.scopes.contains(scope) {
                config.scopes.push(scope.clone());
            }
        }
    }
    if config.client_credentials {
        let lock = tokens.lock().await.map_err(|error| failure(server, &error.into()))?;
        let exchange = unattended::sign_in(discovered, &http.url, &config, &tokens, Arc::new(lock));
        let exchanged = timeout(EXCHANGE_TIME, exchange).await;
        return exchanged.map_err(|_elapsed| too_slow())?.map_err(|error| failure(server, &error));
    }
    let listener = TcpListener::bind(("127.0.0.1", 0)).await;
    let listener = listener.map_err(|error| failed(format!("cannot listen for the browser: {error}")))?;
    let port = listener.local_addr().map_err(|error| failed(error.to_string()))?.port();
    let redirect = format!("http://127.0.0.1:{port}{CALLBACK}");
    let session = timeout(EXCHANGE_TIME, begin(discovered, &tokens, &config, redirect)).await;
    let session = session.map_err(|_elapsed| too_slow())?.map_err(|error| failure(server, &error))?;
    let address = Url::parse(session.get_authorization_url()).map_err(|error| failed(error.to_string()))?;
    // The URL is opened on this machine, where other schemes start programs.
    if !may_send_to(&http.url, &address) {
        let problem =
            "the page to sign in at is not behind `https`, or is on this machine and the server is not";
        return Err(failed(problem.to_owned()));
    }
    let state = address.query_pairs().find(|(key, _)| key == "state").map(|(_, state)| state.into_owned());
    let Some(state) = state else { return Err(failed("the address to open has no `state`".to_owned())) };
    show(&address);
    let callback = timeout(USER_TIME, receive(listener, &state)).await;
    let callback = callback.map_err(|_elapsed| AuthError::Elapsed(server.name.clone()))?.map_err(failed)?;
    let code = callback.code().map_err(failed)?;
    // Without the lock, a renewal of the previous sign-in in flight would replace the new tokens.
    let _lock = tokens.lock().await.map_err(|error| failure(server, &error.into()))?;
    let exchanged = session.handle_callback_with_issuer(code, &state, callback.iss.as_deref());
    let exchanged = timeout(EXCHANGE_TIME, exchanged).await.map_err(|_elapsed| too_slow())?;
    exchanged.map_err(|error| failure(server, &error.into()))?;
    if tokens.load().await.as_ref().and_then(secret).is_some() {
        return Ok(());
    }
    Err(AuthError::Storage { server: server.name.clone(), problem: "they were not kept".to_owned() })
}

/// The scopes that the user has granted at this authorization server before. None if the user was signed in at another
/// one, which is logged.
async fn granted_before(server: &str, tokens: &TokenStore, issuer: &str) -> Vec<String> {
    let Some(before) = tokens.load().await else { return Vec::new() };
    if is_same_issuer(&before.binding.issuer, issuer) {
        return before.credentials.granted_scopes;
    }
    let (before, now) = (preview(&before.binding.issuer), preview(issuer));
    tracing::warn!(server, before, now, "signing in to another authorization server");
    Vec::new()
}

/// Registers this client if necessary, and makes the URL to open.
async fn begin(
    discovered: Discovered,
    tokens: &Arc<TokenStore>,
    config: &OAuth,
    redirect: String,
) -> Result<AuthorizationSession, SignInError> {
    let key = discovered.use_key(None);
    let Discovered { mut manager, endpoints, binding, .. } = discovered;
    // The id is the same at every authorization server.
    let has_fixed_id = config.client_id.is_some() || config.client_metadata_url.is_some();
    if has_fixed_id && config.issuer.is_none() {
        endpoints.check_mix_up(&binding.issuer)?;
    }
    manager.set_credential_store(BoundCredentials { tokens: Arc::clone(tokens), binding, lock: None, key });
    let mut request = AuthorizationRequest::new(redirect).with_client_name("cx");
    request = if config.scopes.is_empty() {
        request.with_initial_scope_selection()
    } else {
        request.with_scopes(config.scopes.clone())
    };
    if let Some(document) = &config.client_metadata_url {
        // rmcp uses it if the authorization server supports it and no `client_id` is configured.
        request = request.with_client_metadata_url(document);
    }
    if let Some(id) = &config.client_id {
        request = request.with_preregistered_client(id);
        if let Some(secret) = &config.client_secret {
            request = request.with_client_secret(secret);
        }
    }
    AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error.into())
}

/// The parameters of the redirect from the browser.
#[derive(Deserialize)]
struct Callback {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl Callback {
    /// The code to exchange for tokens.
    ///
    /// # Errors
    ///
    /// What the authorization server says instead, shortened.
    fn code(&self) -> Result<&str, String> {
        match (&self.code, &self.error) {
            (Some(code), None) => Ok(code),
            (_, error) => {
                let problem = self.error_description.as_ref().or(error.as_ref());
                Err(preview(problem.map_or("no code came", String::as_str)))
            }
        }
    }
}

#[derive(Clone)]
struct Receiver {
    state: Arc<str>,
    callbacks: mpsc::Sender<Callback>,
}

/// Waits for the one request with the right `state`. All other requests are refused and change
/// nothing: any page that the user has open can make the browser send requests here.
async fn receive(listener: TcpListener, state: &str) -> Result<Callback, String> {
    let (callbacks, mut received) = mpsc::channel(1);
    let receiver = Receiver { state: Arc::from(state), callbacks };
    let router = Router::new().route(CALLBACK, get(answer)).with_state(receiver);
    let done = CancellationToken::new();
    let serving = axum::serve(listener, router).with_graceful_shutdown(done.clone().cancelled_owned());
    // The server ends with this function: it is dropped, or finishes the answer in progress.
    let mut serving = std::pin::pin!(serving.into_future());
    tokio::select! {
        ended = &mut serving => Err(format!("listening for the browser failed: {ended:?}")),
        callback = received.recv() => {
            done.cancel();
            // The page has a few hundred bytes; a browser that keeps its connection open is not
            // waited for.
            let _elapsed = timeout(Duration::from_secs(1), serving).await;
            callback.ok_or_else(|| "nothing came from the browser".to_owned())
        }
    }
}

async fn answer(
    State(receiver): State<Receiver>,
    Query(callback): Query<Callback>,
) -> (StatusCode, Html<&'static str>) {
    if callback.state.as_deref() != Some(&*receiver.state) {
        return (
            StatusCode::BAD_REQUEST,
            Html("<!doctype html><title>cx</title><p>This is not the sign-in that was begun."),
        );
    }
    let page = if callback.code.is_some() && callback.error.is_none() {
        "<!doctype html><title>cx</title><p>You can close this page and go back to the terminal."
    } else {
        "<!doctype html><title>cx</title><p>Signing in was refused. The terminal says more."
    };
    // A second callback is ignored.
    let _one_is_enough = receiver.callbacks.try_send(callback);
    (StatusCode::OK, Html(page))
}

fn http_transport(server: &McpServer) -> Result<&HttpTransport, AuthError> {
    match &server.transport {
        McpTransport::Http(http) => Ok(http),
        McpTransport::Stdio(_) => Err(AuthError::NotHttp(server.name.clone())),
    }
}

fn failure(server: &McpServer, error: &SignInError) -> AuthError {
    let server = server.name.clone();
    match error {
        SignInError::Protocol(RmcpError::CredentialStoreError(problem)) => {
            AuthError::Storage { server, problem: problem.clone() }
        }
        SignInError::NotNeeded => AuthError::NotNeeded(server),
        error => AuthError::Failed { server, problem: described(error) },
    }
}

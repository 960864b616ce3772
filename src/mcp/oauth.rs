//! Signing in to servers behind an address: tokens for requests here, [`login`] for people.
//!
//! A run never opens a browser and never waits for a person. It uses the tokens that `cx auth login`
//! left, renews them when they expire, and otherwise says what to do.

mod http;
mod login;
mod tokens;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::http::HeaderValue;
use parking_lot::Mutex;
use rmcp::transport::auth::{
    AuthError as RmcpError, AuthorizationManager, ClientCredentialsConfig, OAuthClientConfig,
    StoredCredentials,
};
use tokio::time::timeout;
use url::{Host, Url};

pub use login::{AuthError, AuthStatus, login, logout, status};
use tokens::{Remembered, TokenStore, secret};

use self::http::OAuthHttp;
use super::http::sign_in;
use super::settings::{HttpTransport, McpServer, McpTransport, OAuth};
use crate::tools::{ToolError, ToolErrorCode};

/// Discovery and one token request. Each HTTP exchange in it has a shorter deadline of its own.
const RENEWAL_TIME: Duration = Duration::from_secs(30);

/// A token is renewed this long before it expires, so that it is still good when it arrives.
const EARLY: Duration = Duration::from_secs(30);

/// How long it is believed that nobody has signed in. A person who does so meanwhile waits no longer.
const ABSENT_TIME: Duration = Duration::from_secs(5);

/// The right to use one server, shared by all its connections. Lives as long as its server's entry.
pub(crate) struct Authorization {
    server: Arc<str>,
    url: Url,
    config: OAuth,
    tokens: Arc<TokenStore>,
    known: Mutex<Known>,
    /// Held while tokens are loaded or renewed, so that a hundred calls at once renew them once.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
enum Known {
    #[default]
    Nothing,
    /// There was no token at this time.
    Absent(Instant),
    Token(Token, Option<Instant>),
}

/// An access token as a header. Not shown by `Debug`.
#[derive(Clone)]
pub(super) struct Token(HeaderValue);

impl Token {
    fn new(secret: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(&format!("Bearer {secret}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authorization").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Authorization {
    /// The authorization for `server`, whose tokens are in the system's keyring or below
    /// `directory`. `None` for a server that is a process.
    pub(crate) fn new(server: &McpServer, directory: &Path) -> Option<Self> {
        Self::with_store(server, Arc::new(TokenStore::new(server.identity(), directory)))
    }

    fn with_store(server: &McpServer, tokens: Arc<TokenStore>) -> Option<Self> {
        let McpTransport::Http(HttpTransport { url, oauth, .. }) = &server.transport else { return None };
        Some(Self {
            server: Arc::from(server.name.as_str()),
            url: url.clone(),
            config: oauth.clone().unwrap_or_default(),
            tokens,
            known: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
        })
    }

    /// The token for a request to `url`; `None` if nobody has signed in.
    ///
    /// # Errors
    ///
    /// When there is a token that has expired and cannot be renewed now, or when it would be sent
    /// in clear.
    pub(super) async fn token(self: &Arc<Self>, url: &Url) -> Result<Option<Token>, ToolError> {
        let token = match self.fresh() {
            Some(known) => known,
            None => {
                let this = Arc::clone(self);
                self.to_its_end(async move {
                    let _one_at_a_time = this.renewing.lock().await;
                    match this.fresh() {
                        Some(known) => Ok(known),
                        None => this.load().await,
                    }
                })
                .await?
            }
        };
        self.for_address(url, token)
    }

    /// The token, unless it would be sent where it can be read.
    fn for_address(&self, url: &Url, token: Option<Token>) -> Result<Option<Token>, ToolError> {
        match token {
            Some(_) if !is_private(url) => {
                Err(self.unavailable("is behind `http`, where tokens could be read; use `https`"))
            }
            token => Ok(token),
        }
    }

    /// Does `work` to its end even if nobody waits for it any more: an authorization server that has
    /// given out a new refresh token takes the old one no longer, so it must be stored.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ToolError>> + Send + 'static,
    ) -> Result<T, ToolError> {
        let ended = tokio::spawn(work).await;
        ended.unwrap_or_else(|_runtime_ends| Err(self.unavailable("did not renew the sign-in")))
    }

    /// Another token instead of one that the server did not accept; `None` if a person has to sign
    /// in.
    ///
    /// # Errors
    ///
    /// As [`Authorization::token`].
    pub(super) async fn renew(
        self: &Arc<Self>,
        url: &Url,
        rejected: Option<&Token>,
    ) -> Result<Option<Token>, ToolError> {
        let (this, rejected) = (Arc::clone(self), rejected.cloned());
        let token = self.to_its_end(async move { this.renewed(rejected.as_ref()).await }).await?;
        self.for_address(url, token)
    }

    async fn renewed(&self, rejected: Option<&Token>) -> Result<Option<Token>, ToolError> {
        {
            let _one_at_a_time = self.renewing.lock().await;
            let is_rejected = |token: &Token| rejected.is_some_and(|rejected| rejected.0 == token.0);
            if let Some(Some(token)) = self.fresh()
                && !is_rejected(&token)
            {
                // Somebody else was faster.
                return Ok(Some(token));
            }
            *self.known.lock() = Known::Nothing;
            // Another process may have renewed it.
            let loaded = self.load().await?;
            if loaded.as_ref().is_some_and(|token| !is_rejected(token)) {
                return Ok(loaded);
            }
            if loaded.is_some() {
                *self.known.lock() = Known::Nothing;
                return self.renew_now().await;
            }
        }
        Ok(None)
    }

    /// What is known without waiting: a token that is still good, or that there is none.
    fn fresh(&self) -> Option<Option<Token>> {
        match &*self.known.lock() {
            Known::Token(token, expires) if expires.is_none_or(|at| at > Instant::now() + EARLY) => {
                Some(Some(token.clone()))
            }
            Known::Absent(since) if since.elapsed() < ABSENT_TIME => Some(None),
            _ => None,
        }
    }

    /// Loads what is stored, and renews it if it has expired.
    async fn load(&self) -> Result<Option<Token>, ToolError> {
        let stored = self.tokens.load().await;
        match stored.as_ref().and_then(secret) {
            Some(secret) if secret.remaining.is_none_or(|remaining| remaining > EARLY) => {
                Ok(self.keep(&secret.access_token, secret.remaining))
            }
            Some(_) => self.renew_now().await,
            None if self.config.client_credentials => self.renew_now().await,
            None => {
                *self.known.lock() = Known::Absent(Instant::now());
                Ok(None)
            }
        }
    }

    fn keep(&self, access_token: &str, remaining: Option<Duration>) -> Option<Token> {
        let token = Token::new(access_token)?;
        // A time that does not fit is far away.
        let expires = remaining.and_then(|remaining| Instant::now().checked_add(remaining));
        *self.known.lock() = Known::Token(token.clone(), expires);
        Some(token)
    }

    /// Gets a new token with what is stored or configured. The caller holds `renewing`.
    async fn renew_now(&self) -> Result<Option<Token>, ToolError> {
        let renewed = timeout(RENEWAL_TIME, self.exchange()).await;
        match renewed {
            Ok(Ok(())) => {}
            Ok(Err(RmcpError::AuthorizationRequired | RmcpError::TokenRefreshRejected(_))) => {
                // Another process may have used the same renewal a moment ago.
                let stored = self.tokens.load().await;
                if let Some(secret) = stored.as_ref().and_then(secret)
                    && secret.remaining.is_some_and(|remaining| remaining > EARLY)
                {
                    return Ok(self.keep(&secret.access_token, secret.remaining));
                }
                *self.known.lock() = Known::Absent(Instant::now());
                return Ok(None);
            }
            Ok(Err(error)) => {
                return Err(
                    self.unavailable(&format!("did not renew the sign-in: {}", login::described(&error)))
                );
            }
            Err(_elapsed) => {
                let seconds = RENEWAL_TIME.as_secs();
                return Err(self.unavailable(&format!("did not renew the sign-in within {seconds} s")));
            }
        }
        let stored = self.tokens.load().await;
        let Some(secret) = stored.as_ref().and_then(secret) else {
            return Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, sign_in(&self.server)));
        };
        Ok(self.keep(&secret.access_token, secret.remaining))
    }

    async fn exchange(&self) -> Result<(), RmcpError> {
        if !is_private(&self.url) {
            // Before anything secret is sent, and not only before the token is.
            let problem = "is behind `http`, where what is sent could be read; use `https`";
            return Err(RmcpError::InternalError(problem.to_owned()));
        }
        let mut manager = manager(&self.url, &self.tokens).await?;
        if self.config.client_credentials {
            return client_credentials(&mut manager, &self.url, &self.config).await;
        }
        if !manager.initialize_from_store().await? {
            return Err(RmcpError::AuthorizationRequired);
        }
        if let (Some(id), Some(secret)) = (&self.config.client_id, &self.config.client_secret) {
            // The store has no secrets of clients.
            let client = OAuthClientConfig::new(id, "http://127.0.0.1").with_client_secret(secret);
            manager.configure_client(client)?;
        }
        manager.refresh_token().await.map(drop)
    }

    fn unavailable(&self, problem: &str) -> ToolError {
        let server = &self.server;
        ToolError::new(ToolErrorCode::UpstreamUnavailable, format!("server `{server}` {problem}"))
    }
}

/// The state machine of one exchange, over our own HTTP and our own store.
async fn manager(url: &Url, tokens: &Arc<TokenStore>) -> Result<AuthorizationManager, RmcpError> {
    let http = OAuthHttp::new(url).map_err(|error| RmcpError::InternalError(error.message))?;
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url.as_str(), Arc::new(http)).await?;
    manager.set_credential_store(Remembered(Arc::clone(tokens)));
    Ok(manager)
}

/// Signs in as the client itself.
async fn client_credentials(
    manager: &mut AuthorizationManager,
    url: &Url,
    config: &OAuth,
) -> Result<(), RmcpError> {
    let (Some(client_id), Some(client_secret)) = (config.client_id.clone(), config.client_secret.clone())
    else {
        let problem = "client credentials need `clientId` and `clientSecret`";
        return Err(RmcpError::ClientCredentialsError(problem.to_owned()));
    };
    let resolution = manager.resolve_metadata().await?;
    manager.set_metadata(resolution.metadata);
    let mut resource = url.clone();
    resource.set_fragment(None);
    let config = ClientCredentialsConfig::ClientSecret {
        client_id,
        client_secret,
        scopes: config.scopes.clone(),
        resource: Some(resource.to_string()),
    };
    manager.validate_client_credentials_metadata(&config)?;
    manager.configure_client_credentials(&config)?;
    manager.exchange_client_credentials(&config).await.map(drop)
}

/// Whether nobody on the way can read what is sent there.
fn is_private(url: &Url) -> bool {
    url.scheme() == "https" || is_here(url)
}

/// Whether it is on this machine.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether `server` may send this client, or the person's browser, to `url`: behind `https`, or to
/// where the server itself is. What a server elsewhere says must not reach this machine's own ports.
fn may_send_to(server: &Url, url: &Url) -> bool {
    let is_at_home = url.origin() == server.origin() || (is_here(server) && is_here(url));
    match url.scheme() {
        "https" => !is_here(url) || is_at_home,
        "http" => is_at_home,
        _ => false,
    }
}

/// Whether there is a token at all in what was stored.
fn has_token(stored: Option<&StoredCredentials>) -> bool {
    stored.and_then(secret).is_some()
}

#[cfg(test)]
mod tests;

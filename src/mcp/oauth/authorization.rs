//! The tokens for requests to one server: cached, loaded, and renewed before they expire.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use rmcp::transport::auth::{AuthError as RmcpError, OAuthClientConfig};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::discovery::{Discovered, check_before, discover};
use super::dpop::{PROOF, ProofKey, SCHEME, asks_for_nonce};
use super::failed_renewals::FailedRenewals;
use super::failure::{SignInError, described};
use super::issuer::{IssuerError, is_same_issuer};
use super::tokens::{BoundCredentials, RENEWAL_TIME, RenewalLock, Secret, StoredSignIn, TokenStore, secret};
use super::unattended;
use crate::mcp::address::is_private;
use crate::mcp::errors::{closed, sign_in, sign_in_for};
use crate::mcp::settings::{HttpTransport, McpServer, McpTransport, OAuth};
use crate::tools::{ToolError, ToolErrorCode};

/// How long before its expiry a token is renewed, so that it is still valid when it arrives.
const EARLY: Duration = Duration::from_secs(30);

/// How long the absence of a token is cached. After signing in, a user waits at most this long.
const ABSENT_TIME: Duration = Duration::from_secs(5);

/// The time between two renewals because a server does not accept a token. If it does not accept a token that was just
/// issued, another one changes nothing, and the authorization server, which may be another party's, would get requests
/// for each call.
const BETWEEN_REJECTIONS: Duration = Duration::from_secs(60);

/// How long a token that has just come is used, even if it expires sooner: no authorization server has reason to issue
/// such a token. Renewing it for each request would be some ten requests each time, also to addresses that the server
/// names.
const MIN_USE: Duration = Duration::from_secs(5);

/// The authorization for one server, shared by all its connections. Lives as long as the server's
/// entry.
pub(crate) struct Authorization {
    server: Arc<str>,
    url: Url,
    config: OAuth,
    tokens: Arc<TokenStore>,
    cache: Mutex<TokenCache>,
    /// Held while tokens are loaded or renewed, so that a hundred concurrent calls renew them once. Callers wait for it
    /// themselves: a call that ends meanwhile leaves nothing behind that waits.
    renewing: Arc<tokio::sync::Mutex<()>>,
    /// When a new token came last.
    renewed_at: Mutex<Option<Instant>>,
    /// When a token was renewed last because the server did not accept it.
    rejected: Mutex<Option<Instant>>,
    failed: FailedRenewals,
    /// Cancelled when the server shuts down: no renewal starts any more.
    closing: CancellationToken,
}

#[derive(Default)]
enum TokenCache {
    #[default]
    Empty,
    /// There was no token at that time.
    Absent(Instant),
    Token(Token, Option<Instant>),
}

/// The known state of the token.
enum Cached {
    /// The token is valid.
    Token(Token),
    /// There was no token a moment ago.
    Absent,
    /// The token has to be loaded or renewed.
    Unknown,
}

/// An access token. Not shown by `Debug`.
#[derive(Clone)]
pub(crate) struct Token {
    /// The value of `Authorization`.
    header: HeaderValue,
    /// `None` for a token that its bearer may use.
    bound_to: Option<BoundTo>,
}

/// The key pair that a token is bound to.
#[derive(Clone)]
struct BoundTo {
    key: Arc<ProofKey>,
    token: Arc<str>,
}

impl Token {
    fn new(secret: &Secret) -> Option<Self> {
        let token = &secret.access_token;
        let scheme = if secret.key.is_some() { SCHEME } else { "Bearer" };
        let mut header = HeaderValue::from_str(&format!("{scheme} {token}")).ok()?;
        header.set_sensitive(true);
        let bound_to = secret.key.clone().map(|key| BoundTo { key, token: Arc::from(token.as_str()) });
        Some(Self { header, bound_to })
    }

    /// The value of `Authorization`.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Whether both are the same token.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.header == other.header
    }

    /// Whether the token is bound to a key, so that each request has a proof.
    pub(crate) fn is_bound(&self) -> bool {
        self.bound_to.is_some()
    }

    /// Sets the headers of a request: the token, and the proof that this client may use it, if it is bound to a key.
    pub(crate) fn authorize(&self, method: &Method, url: &Url, headers: &mut HeaderMap) {
        headers.insert(header::AUTHORIZATION, self.header());
        let bound_to = self.bound_to.as_ref();
        let proof = bound_to.and_then(|BoundTo { key, token }| key.proof(method, url, Some(&**token)));
        if let Some(proof) = proof {
            headers.insert(PROOF, proof);
        }
    }

    /// Takes up the value that the next proof has to have, if the answer says it. Returns whether the request was
    /// refused only because its proof did not have it.
    pub(crate) fn take_nonce(&self, url: &Url, status: StatusCode, headers: &HeaderMap) -> bool {
        let Some(BoundTo { key, .. }) = &self.bound_to else { return false };
        key.take_nonce(url, headers) && asks_for_nonce(status, headers)
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authorization").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Authorization {
    /// The authorization for `server`, with tokens in the system's keyring or below `directory`.
    /// `None` for a stdio server.
    pub(crate) fn new(server: &McpServer, directory: &Path) -> Option<Self> {
        Self::with_store(server, Arc::new(TokenStore::new(server.identity(), directory)))
    }

    pub(crate) fn with_store(server: &McpServer, tokens: Arc<TokenStore>) -> Option<Self> {
        let McpTransport::Http(HttpTransport { url, oauth, .. }) = &server.transport else { return None };
        Some(Self {
            server: Arc::from(server.name.as_str()),
            url: url.clone(),
            config: oauth.clone().unwrap_or_default(),
            tokens,
            cache: Mutex::default(),
            renewing: Arc::default(),
            renewed_at: Mutex::default(),
            rejected: Mutex::default(),
            failed: FailedRenewals::default(),
            closing: CancellationToken::new(),
        })
    }

    /// Returns the token for a request to `url`; `None` if the user has not signed in.
    ///
    /// # Errors
    ///
    /// If the token has expired and cannot be renewed now, or if it would be sent unencrypted.
    pub(crate) async fn token(self: &Arc<Self>, url: &Url) -> Result<Option<Token>, ToolError> {
        let token = match self.cached() {
            Cached::Token(token) => Some(token),
            Cached::Absent => None,
            Cached::Unknown => {
                let one_at_a_time = Arc::clone(&self.renewing).lock_owned().await;
                let this = Arc::clone(self);
                self.run_to_completion(async move {
                    let _one_at_a_time = one_at_a_time;
                    match this.cached() {
                        Cached::Token(token) => Ok(Some(token)),
                        Cached::Absent => Ok(None),
                        Cached::Unknown => this.load().await,
                    }
                })
                .await?
            }
        };
        self.check_address(url, token)
    }

    /// Returns the token, unless it would be sent unencrypted.
    fn check_address(&self, url: &Url, token: Option<Token>) -> Result<Option<Token>, ToolError> {
        match token {
            Some(_) if !is_private(url) => {
                Err(self.unavailable("is behind `http`, where tokens could be read; use `https`"))
            }
            token => Ok(token),
        }
    }

    /// Completes `work` even if its caller is cancelled. An authorization server that has
    /// issued a new refresh token no longer accepts the old one, so the new one must be stored.
    async fn run_to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ToolError>> + Send + 'static,
    ) -> Result<T, ToolError> {
        let ended = tokio::spawn(work).await;
        ended.unwrap_or_else(|_runtime_ends| Err(self.unavailable("did not renew the sign-in")))
    }

    /// Returns the stored token instead of one that lacks a scope, if the user has signed in again.
    ///
    /// # Errors
    ///
    /// If it would be sent unencrypted.
    pub(crate) async fn reload(
        &self,
        url: &Url,
        lacking: Option<&Token>,
    ) -> Result<Option<Token>, ToolError> {
        let _one_at_a_time = self.renewing.lock().await;
        let secret = self.stored().await.as_ref().and_then(secret);
        let is_valid = |secret: &Secret| secret.remaining.is_none_or(|remaining| remaining > EARLY);
        let is_other = |secret: &Secret| {
            Token::new(secret).is_some_and(|token| lacking.is_none_or(|lacking| !lacking.is_same(&token)))
        };
        let other = secret.filter(|secret| is_valid(secret) && is_other(secret));
        self.check_address(url, other.and_then(|secret| self.store_in_cache(&secret)))
    }

    /// Replaces a token that the server did not accept. `None` if the user has to sign in.
    ///
    /// # Errors
    ///
    /// The same as [`Authorization::token`]; and if one was replaced for this reason a moment ago.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        url: &Url,
        rejected: Option<&Token>,
    ) -> Result<Option<Token>, ToolError> {
        let one_at_a_time = Arc::clone(&self.renewing).lock_owned().await;
        let (this, rejected) = (Arc::clone(self), rejected.cloned());
        let renewed = self.run_to_completion(async move {
            let _one_at_a_time = one_at_a_time;
            this.renewed(rejected.as_ref()).await
        });
        self.check_address(url, renewed.await?)
    }

    /// As [`renew`](Self::renew). The caller holds `renewing`.
    async fn renewed(&self, rejected: Option<&Token>) -> Result<Option<Token>, ToolError> {
        let is_rejected = |token: &Token| rejected.is_some_and(|rejected| rejected.is_same(token));
        if let Cached::Token(token) = self.cached()
            && !is_rejected(&token)
        {
            // Another call has replaced it already.
            return Ok(Some(token));
        }
        *self.cache.lock() = TokenCache::Empty;
        // Another process may have renewed it.
        let loaded = self.load().await?;
        if loaded.as_ref().is_some_and(|token| !is_rejected(token)) {
            return Ok(loaded);
        }
        if loaded.is_none() {
            return Ok(None);
        }
        let last = *self.rejected.lock();
        if let Some(since) = last.map(|at| at.elapsed()).filter(|since| *since < BETWEEN_REJECTIONS) {
            return Err(self.not_accepted(BETWEEN_REJECTIONS.saturating_sub(since)));
        }
        *self.cache.lock() = TokenCache::Empty;
        let renewed = self.renew_now(loaded).await?;
        if renewed.is_some() {
            *self.rejected.lock() = Some(Instant::now());
        }
        Ok(renewed)
    }

    /// The error for a token that the server does not accept, shortly after another one. It stays in the cache: the
    /// server may accept it next time.
    fn not_accepted(&self, pause: Duration) -> ToolError {
        let seconds = BETWEEN_REJECTIONS.as_secs();
        let mut error = self.unavailable(&format!(
            "does not accept the token that it was sent, and the last one was renewed for that reason less than \
             {seconds} s ago; it is not renewed again before that time is over"
        ));
        error.retry_after = Some(pause);
        error
    }

    /// Waits until a renewal in progress has stored its tokens, for at most [`RENEWAL_TIME`]. Renewals after that fail.
    /// Called before the process ends, for the reason given at `run_to_completion`.
    pub(crate) async fn finish(&self) {
        self.closing.cancel();
        let _elapsed = timeout(RENEWAL_TIME, self.renewing.lock()).await;
    }

    /// The cached state, without loading anything.
    fn cached(&self) -> Cached {
        match &*self.cache.lock() {
            TokenCache::Token(token, expires)
                if expires.is_none_or(|at| at > Instant::now() + EARLY) || self.is_just_renewed() =>
            {
                Cached::Token(token.clone())
            }
            TokenCache::Absent(since) if since.elapsed() < ABSENT_TIME => Cached::Absent,
            TokenCache::Token(..) | TokenCache::Absent(_) | TokenCache::Empty => Cached::Unknown,
        }
    }

    /// The stored sign-in, if it is bound to the configured authorization server.
    async fn stored(&self) -> Option<StoredSignIn> {
        let stored = self.tokens.load().await?;
        let issuer = &stored.binding.issuer;
        let is_of = |configured: &String| is_same_issuer(configured, issuer);
        self.config.issuer.as_ref().is_none_or(is_of).then_some(stored)
    }

    /// Loads the stored token, and renews it if it has expired.
    async fn load(&self) -> Result<Option<Token>, ToolError> {
        let stored = self.stored().await;
        match stored.as_ref().and_then(secret) {
            Some(secret)
                if secret.remaining.is_none_or(|remaining| remaining > EARLY) || self.is_just_renewed() =>
            {
                Ok(self.store_in_cache(&secret))
            }
            Some(secret) => self.renew_now(Token::new(&secret)).await,
            None if self.config.client_credentials => self.renew_now(None).await,
            None => {
                *self.cache.lock() = TokenCache::Absent(Instant::now());
                Ok(None)
            }
        }
    }

    /// Whether a new token has come a moment ago, which is used for a while whatever its lifetime is.
    fn is_just_renewed(&self) -> bool {
        self.renewed_at.lock().is_some_and(|at| at.elapsed() < MIN_USE)
    }

    fn store_renewed(&self, secret: &Secret) -> Option<Token> {
        self.failed.clear();
        *self.renewed_at.lock() = Some(Instant::now());
        self.store_in_cache(secret)
    }

    fn store_in_cache(&self, secret: &Secret) -> Option<Token> {
        let token = Token::new(secret)?;
        // A time that overflows is far in the future.
        let expires = secret.remaining.and_then(|remaining| Instant::now().checked_add(remaining));
        *self.cache.lock() = TokenCache::Token(token.clone(), expires);
        Some(token)
    }

    /// Gets a new token in place of `stale`, using what is stored or configured. The caller holds
    /// `renewing`.
    ///
    /// Only one process at a time does so: where refresh tokens may be used once, a second use
    /// signs the user out.
    async fn renew_now(&self, stale: Option<Token>) -> Result<Option<Token>, ToolError> {
        if !self.failed.may_renew(stale.as_ref())? {
            *self.cache.lock() = TokenCache::Absent(Instant::now());
            return Ok(None);
        }
        let lock = tokio::select! {
            biased;
            () = self.closing.cancelled() => return Err(closed(&self.server)),
            lock = self.tokens.lock() => lock.map_err(|error| self.not_renewed(&error.into()))?,
        };
        if let Some(secret) = self.renewed_by_others(stale.as_ref()).await {
            return Ok(self.store_renewed(&secret));
        }
        let lock = Arc::new(lock);
        match timeout(RENEWAL_TIME, self.exchange(&lock)).await {
            Ok(Ok(())) => {}
            Ok(Err(SignInError::Protocol(
                RmcpError::AuthorizationRequired | RmcpError::TokenRefreshRejected(_),
            ))) => {
                // Another machine with the same home directory may just have used the refresh
                // token.
                if let Some(secret) = self.renewed_by_others(stale.as_ref()).await {
                    return Ok(self.store_renewed(&secret));
                }
                self.failed.record_refusal(stale);
                *self.cache.lock() = TokenCache::Absent(Instant::now());
                return Ok(None);
            }
            Ok(Err(error)) => return Err(self.failed.record(stale, self.not_renewed(&error))),
            Err(_elapsed) => {
                let seconds = RENEWAL_TIME.as_secs();
                let error = self.unavailable(&format!("did not renew the sign-in within {seconds} s"));
                return Err(self.failed.record(stale, error));
            }
        }
        let Some(secret) = self.stored().await.as_ref().and_then(secret) else {
            return Err(sign_in(&self.server, ""));
        };
        Ok(self.store_renewed(&secret))
    }

    /// The stored token, if it has replaced `stale` and has not expired.
    async fn renewed_by_others(&self, stale: Option<&Token>) -> Option<Secret> {
        let secret = self.stored().await.as_ref().and_then(secret)?;
        let token = Token::new(&secret)?;
        let is_new = stale.is_none_or(|stale| !stale.is_same(&token));
        (is_new && secret.remaining.is_none_or(|remaining| !remaining.is_zero())).then_some(secret)
    }

    async fn exchange(&self, lock: &Arc<RenewalLock>) -> Result<(), SignInError> {
        check_before(&self.url, &self.config)?;
        let stored = self.stored().await;
        let bound = stored.as_ref().map(|stored| &stored.binding);
        if bound.is_none() && !self.config.client_credentials {
            return Err(RmcpError::AuthorizationRequired.into());
        }
        let discovered = discover(&self.url, &self.config, bound).await?;
        let lock = Arc::clone(lock);
        if self.config.client_credentials {
            return unattended::sign_in(discovered, &self.url, &self.config, &self.tokens, lock).await;
        }
        let key = discovered.keep_key(stored.as_ref().and_then(StoredSignIn::proof_key));
        let Discovered { mut manager, binding, .. } = discovered;
        let (tokens, lock) = (Arc::clone(&self.tokens), Some(lock));
        manager.set_credential_store(BoundCredentials { tokens, binding, lock, key });
        if !manager.initialize_from_store().await? {
            return Err(RmcpError::AuthorizationRequired.into());
        }
        if let (Some(id), Some(secret)) = (&self.config.client_id, &self.config.client_secret) {
            // Client secrets are not stored.
            let client = OAuthClientConfig::new(id, "http://127.0.0.1").with_client_secret(secret);
            manager.configure_client(client)?;
        }
        Ok(manager.refresh_token().await.map(drop)?)
    }

    /// The error for a sign-in that could not be renewed. If a new sign-in is necessary, it says
    /// how.
    fn not_renewed(&self, error: &SignInError) -> ToolError {
        let (server, problem) = (&self.server, described(error));
        match error {
            SignInError::Issuer(IssuerError::Changed { .. } | IssuerError::TokenEndpointMoved { .. }) => {
                let problem = format!(
                    "server `{server}` did not renew the sign-in: {problem}. If the change is meant, sign in again: \
                     run `cx auth login {server}`"
                );
                sign_in_for(server, "", problem)
            }
            SignInError::Issuer(IssuerError::NotConfigured { .. }) => {
                let problem = format!(
                    "server `{server}` did not renew the sign-in: {problem}. If the change is meant, change \
                     `oauth.issuer` and sign in again: run `cx auth login {server}`"
                );
                sign_in_for(server, "", problem)
            }
            _ => self.unavailable(&format!("did not renew the sign-in: {problem}")),
        }
    }

    fn unavailable(&self, problem: &str) -> ToolError {
        let server = &self.server;
        ToolError::new(ToolErrorCode::UpstreamUnavailable, format!("server `{server}` {problem}"))
    }
}

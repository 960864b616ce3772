//! Stores tokens: in the system's keyring, or in a file that only the user can read.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::transport::auth::{
    AuthError as RmcpError, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::clock::seconds_since_1970;
use super::dpop::{ProofKey, SCHEME};
use super::failure::preview;
use super::issuer::Binding;
use crate::storage::files::Store;
use crate::storage::private::{self, PrivateDirectory};

/// The service name of cx in the keyring.
const SERVICE: &str = "cx";

/// Version of the file format. Tokens of version 1 are not bound to an authorization server.
const VERSION: u32 = 2;

/// Maximum time for the keyring. A keyring that works answers at once. A locked one may ask the
/// user, who is absent during a run; a machine without a session bus may wait for one.
const KEYRING_TIME: Duration = Duration::from_secs(3);

/// What this process knows of the system's keyring.
static SYSTEM_KEYRING: KeyringState = KeyringState::new();

/// Maximum time for discovery and one token request. Each of its HTTP exchanges has a shorter
/// deadline of its own.
pub(crate) const RENEWAL_TIME: Duration = Duration::from_secs(30);

/// How long to wait for another process that renews the same sign-in: as long as a renewal may
/// take, including reading tokens before and after it.
const MAX_LOCK_WAIT: Duration = RENEWAL_TIME.saturating_add(KEYRING_TIME).saturating_add(KEYRING_TIME);

/// Interval between attempts to take the lock. A renewal takes some hundred milliseconds.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The tokens of one server.
pub(crate) struct TokenStore {
    identity: String,
    directory: PathBuf,
    files: Store,
    /// Where tokens are stored if it takes them; else they are in a file.
    keyring: Option<Keyring>,
}

/// A keyring, whose functions may block for a long time.
pub(super) struct Keyring {
    pub(super) open: OpenEntry,
    pub(super) state: &'static KeyringState,
}

/// Why a keyring is not asked again. Each question costs a thread.
pub(super) struct KeyringState {
    /// Set when the system has no keyring.
    is_absent: AtomicBool,
    /// Set when it did not answer. It may have tokens.
    does_not_answer: AtomicBool,
}

impl KeyringState {
    pub(super) const fn new() -> Self {
        Self { is_absent: AtomicBool::new(false), does_not_answer: AtomicBool::new(false) }
    }

    fn set_does_not_answer(&self) {
        self.does_not_answer.store(true, Ordering::Relaxed);
    }
}

/// Opens the entry of a server's identity.
type OpenEntry = Arc<dyn Fn(&str) -> keyring::Result<Box<dyn KeyringEntry>> + Send + Sync>;

/// An entry of a keyring.
pub(super) trait KeyringEntry {
    fn read(&self) -> keyring::Result<String>;
    fn write(&self, text: &str) -> keyring::Result<()>;
    fn remove(&self) -> keyring::Result<()>;
}

impl KeyringEntry for keyring::Entry {
    fn read(&self) -> keyring::Result<String> {
        self.get_password()
    }

    fn write(&self, text: &str) -> keyring::Result<()> {
        self.set_password(text)
    }

    fn remove(&self) -> keyring::Result<()> {
        self.delete_credential()
    }
}

/// Opens an entry of the system's keyring.
fn system_entry(identity: &str) -> keyring::Result<Box<dyn KeyringEntry>> {
    Ok(Box::new(keyring::Entry::new(SERVICE, identity)?))
}

/// The stored tokens, and the authorization server that may renew them.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredSignIn {
    pub(crate) credentials: StoredCredentials,
    pub(crate) binding: Binding,
    /// The key pair that the tokens are bound to, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proof_key: Option<String>,
}

impl StoredSignIn {
    /// The key pair that is used with these tokens.
    pub(crate) fn proof_key(&self) -> Option<Arc<ProofKey>> {
        self.proof_key.as_deref().and_then(ProofKey::read)
    }
}

/// The lock for renewing, replacing or removing the tokens of one server, among all processes. It
/// is released when this is dropped; the kernel releases it if the process dies.
pub(crate) struct RenewalLock {
    _file: File,
}

/// The part of a stored sign-in that requests need.
pub(crate) struct Secret {
    pub(crate) access_token: String,
    /// How long it is still valid, if that is known.
    pub(crate) remaining: Option<Duration>,
    pub(crate) can_renew: bool,
    /// The key pair that the token is bound to, if it is.
    pub(crate) key: Option<Arc<ProofKey>>,
}

/// Extracts the token from `stored`. One that is bound to a key which is not there cannot be used.
pub(crate) fn secret(stored: &StoredSignIn) -> Option<Secret> {
    let credentials = &stored.credentials;
    let response = serde_json::to_value(credentials.token_response.as_ref()?).ok()?;
    let access_token = response["access_token"].as_str()?.to_owned();
    let lifetime = response["expires_in"].as_u64();
    let remaining = lifetime.zip(credentials.token_received_at).map(|(lifetime, received)| {
        let age = seconds_since_1970().saturating_sub(received);
        Duration::from_secs(lifetime.saturating_sub(age))
    });
    let can_renew = matches!(&response["refresh_token"], Value::String(token) if !token.is_empty());
    let is_bound = response["token_type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(SCHEME));
    let key = if is_bound { Some(stored.proof_key()?) } else { None };
    Some(Secret { access_token, remaining, can_renew, key })
}

/// Why no request can ever be made with these tokens, if so. An authorization server that issues such tokens is faulty,
/// and a sign-in that stored them would wrongly seem to have succeeded. `has_key` is whether a key was shown that the
/// tokens can be bound to.
pub(crate) fn unusable(credentials: &StoredCredentials, has_key: bool) -> Option<String> {
    let response = serde_json::to_value(credentials.token_response.as_ref()?).ok()?;
    let token = response["access_token"].as_str().unwrap_or_default();
    let kind = response["token_type"].as_str().unwrap_or_default();
    let problem = if token.is_empty() {
        "no access token".to_owned()
    } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        "an access token that cannot be sent: it has other characters than visible ASCII".to_owned()
    } else if kind.eq_ignore_ascii_case(SCHEME) && !has_key {
        format!("a token of the type `{SCHEME}`, which is bound to a key, although no key was sent")
    } else if !(kind.eq_ignore_ascii_case("bearer") || kind.eq_ignore_ascii_case(SCHEME)) {
        format!("a token of the type `{}`, and only `Bearer` and `{SCHEME}` can be used", preview(kind))
    } else if response["expires_in"].as_u64() == Some(0)
        && response["refresh_token"].as_str().is_none_or(str::is_empty)
    {
        "a token that had expired when it arrived, and none to renew it".to_owned()
    } else {
        return None;
    };
    Some(format!("the authorization server has issued {problem}"))
}

impl TokenStore {
    pub(crate) fn new(identity: String, directory: &Path) -> Self {
        let keyring = Keyring { open: Arc::new(system_entry), state: &SYSTEM_KEYRING };
        Self::with_keyring(identity, directory, Some(keyring))
    }

    /// A store that uses this keyring, or files only.
    pub(super) fn with_keyring(identity: String, directory: &Path, keyring: Option<Keyring>) -> Self {
        let directory = directory.join("tokens");
        Self { identity, files: Store::new(directory.clone()), directory, keyring }
    }

    /// A store that does not use the machine's keyring.
    #[cfg(test)]
    pub(crate) fn in_files(identity: String, directory: &Path) -> Self {
        Self::with_keyring(identity, directory, None)
    }

    /// Whether there is a file, valid or not.
    pub(crate) fn has_file(&self) -> bool {
        self.files.path(&self.identity).exists()
    }

    /// Loads the stored sign-in. If it cannot be parsed it counts as absent, and the user signs in
    /// again.
    pub(crate) async fn load(&self) -> Option<StoredSignIn> {
        // There is a file only if the keyring has not taken the last tokens: those that it has are older.
        match self.files.read(&self.identity, VERSION) {
            Ok(Some(stored)) => return Some(stored),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "stored tokens cannot be read"),
        }
        let text = self.keyring(|entry| match entry.read() {
            Ok(text) => Ok(Some(text)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(error),
        });
        let text = text.await.ok().flatten().flatten()?;
        serde_json::from_str(&text).ok()
    }

    pub(crate) async fn save(&self, stored: StoredSignIn) -> Result<(), RmcpError> {
        let failed = |error: String| RmcpError::CredentialStoreError(error);
        let text = serde_json::to_string(&stored).map_err(|error| failed(error.to_string()))?;
        if let Ok(Some(())) = self.keyring(move |entry| entry.write(&text)).await {
            // Removes a file that was written when there was no keyring, because it is outdated.
            return self.files.remove(&self.identity).map_err(|error| failed(error.to_string()));
        }
        self.files
            .update(&self.identity, VERSION, |_: Option<StoredSignIn>| (stored, ()))
            .map_err(|error| failed(error.to_string()))
    }

    /// Removes the tokens.
    ///
    /// # Errors
    ///
    /// If the file cannot be removed, or the keyring refuses or does not answer, such as when it is locked: tokens may be
    /// left there.
    pub(crate) async fn clear(&self) -> Result<(), RmcpError> {
        let removed = self.keyring(|entry| match entry.remove() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
            Err(error) => Err(error),
        });
        let removed = removed.await;
        let failed = |problem: String| RmcpError::CredentialStoreError(problem);
        self.files.remove(&self.identity).map_err(|error| failed(error.to_string()))?;
        removed.map(drop).map_err(|error| failed(format!("the keyring does not remove them: {error}")))
    }

    /// Waits until no other process renews, replaces or removes these tokens.
    ///
    /// # Errors
    ///
    /// If the lock file cannot be used, or another process holds it for longer than a renewal may
    /// take.
    pub(crate) async fn lock(&self) -> Result<RenewalLock, RmcpError> {
        let path = self.directory.join(format!("{}.renewal.lock", self.identity));
        let failed = |problem: String| {
            RmcpError::CredentialStoreError(format!("{} cannot be locked: {problem}", path.display()))
        };
        PrivateDirectory::create(&self.directory).map_err(|error| failed(error.to_string()))?;
        let file = private::open_lock(&path).map_err(|error| failed(error.to_string()))?;
        // Not `private::acquire`, which blocks its thread: this wait may take seconds, and must end when its call is
        // cancelled.
        let deadline = Instant::now() + MAX_LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(RenewalLock { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(LOCK_PAUSE).await,
                Err(TryLockError::WouldBlock) => {
                    let seconds = MAX_LOCK_WAIT.as_secs();
                    return Err(failed(format!("another process has kept it for {seconds} s")));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error.to_string())),
            }
        }
    }

    /// Asks the keyring. `None` if there is none.
    ///
    /// # Errors
    ///
    /// If it refuses, such as when it is locked, or does not answer this question or did not answer an earlier one.
    async fn keyring<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn KeyringEntry) -> keyring::Result<T> + Send + 'static,
    ) -> keyring::Result<Option<T>> {
        let Some(Keyring { open, state }) = &self.keyring else { return Ok(None) };
        if state.is_absent.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let no_answer = || keyring::Error::NoStorageAccess("it does not answer".into());
        if state.does_not_answer.load(Ordering::Relaxed) {
            return Err(no_answer());
        }
        let (open, identity) = (Arc::clone(open), self.identity.clone());
        let (answer, answered) = oneshot::channel();
        // A thread of its own: a runtime that shuts down waits for its blocking threads, and this
        // one may wait for a bus forever.
        let asked = std::thread::Builder::new().name("cx-keyring".to_owned()).spawn(move || {
            let result = open(&identity).and_then(|entry| ask(&*entry));
            let _receiver_gone = answer.send(result);
        });
        let result = match asked {
            Ok(_detached) => timeout(KEYRING_TIME, answered).await,
            Err(error) => return Err(keyring::Error::NoStorageAccess(error.into())),
        };
        match result {
            Ok(Ok(Ok(value))) => Ok(Some(value)),
            Ok(Ok(Err(keyring::Error::NoDefaultStore))) => {
                state.is_absent.store(true, Ordering::Relaxed);
                tracing::debug!("there is no keyring; tokens are kept in a file");
                Ok(None)
            }
            Ok(Ok(Err(error))) => {
                tracing::debug!(%error, "the keyring refuses; tokens are kept in a file");
                Err(error)
            }
            Ok(Err(_)) | Err(_) => {
                state.set_does_not_answer();
                tracing::warn!("the keyring does not answer; tokens are kept in a file");
                Err(no_answer())
            }
        }
    }
}

/// A [`TokenStore`] in the form of rmcp's trait, for credentials of one authorization server.
pub(crate) struct BoundCredentials {
    pub(crate) tokens: Arc<TokenStore>,
    pub(crate) binding: Binding,
    /// Held by a renewal from before it reads the tokens. A sign-in has no tokens to read, and
    /// takes the lock when the user has come back from the browser.
    pub(crate) lock: Option<Arc<RenewalLock>>,
    /// The key pair that the tokens are bound to, if they are.
    pub(crate) key: Option<Arc<ProofKey>>,
}

// Written without the macro of rmcp's trait: its crate would be needed for nothing else.
impl CredentialStore for BoundCredentials {
    fn load<'life, 'async_trait>(
        &'life self,
    ) -> BoxFuture<'async_trait, Result<Option<StoredCredentials>, RmcpError>>
    where
        'life: 'async_trait,
        Self: 'async_trait,
    {
        async { Ok(self.tokens.load().await.map(|stored| stored.credentials)) }.boxed()
    }

    fn save<'life, 'async_trait>(
        &'life self,
        credentials: StoredCredentials,
    ) -> BoxFuture<'async_trait, Result<(), RmcpError>>
    where
        'life: 'async_trait,
        Self: 'async_trait,
    {
        if credentials.token_response.is_none() {
            // As in `clear`: rmcp saves a client's id without tokens to remove the tokens.
            return async { Ok(()) }.boxed();
        }
        if let Some(problem) = unusable(&credentials, self.key.is_some()) {
            // The stored tokens stay unchanged.
            return async { Err(RmcpError::TokenExchangeFailed(problem)) }.boxed();
        }
        let proof_key = self.key.as_ref().map(|key| key.to_stored());
        self.tokens.save(StoredSignIn { credentials, binding: self.binding.clone(), proof_key }).boxed()
    }

    /// Keeps the tokens. rmcp clears them if a server names another authorization server, which any
    /// server can do; only the user removes them, with `cx auth logout`.
    fn clear<'life, 'async_trait>(&'life self) -> BoxFuture<'async_trait, Result<(), RmcpError>>
    where
        'life: 'async_trait,
        Self: 'async_trait,
    {
        async { Ok(()) }.boxed()
    }

    /// rmcp holds this from reading the refresh token until its successor is stored.
    fn acquire_refresh_guard<'life, 'async_trait>(
        &'life self,
    ) -> BoxFuture<'async_trait, Result<Option<CredentialRefreshGuard>, RmcpError>>
    where
        'life: 'async_trait,
        Self: 'async_trait,
    {
        let guard = self.lock.clone().map(CredentialRefreshGuard::new);
        async { Ok(guard) }.boxed()
    }
}

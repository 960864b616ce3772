//! Where tokens are kept: in the system's keyring, or in a file of the person's own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::transport::auth::{AuthError as RmcpError, CredentialStore, StoredCredentials};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::store::Store;

/// The keyring's name for what is ours.
const SERVICE: &str = "cx";

/// The format of the file.
const VERSION: u32 = 1;

/// A keyring that is there answers at once. One that is locked may ask the person, who is not there
/// during a run; a machine without a session bus may wait for one.
const KEYRING_TIME: Duration = Duration::from_secs(3);

/// The keyring did not answer. It is not asked again: each question costs a thread.
static NO_KEYRING: AtomicBool = AtomicBool::new(false);

/// The tokens of one server.
pub(super) struct TokenStore {
    identity: String,
    files: Store,
    uses_keyring: bool,
}

/// The part of what is stored that requests need.
pub(super) struct Secret {
    pub(super) access_token: String,
    /// How long it is still good, if that is known.
    pub(super) remaining: Option<Duration>,
    pub(super) can_renew: bool,
}

/// Reads the token out of `stored`.
pub(super) fn secret(stored: &StoredCredentials) -> Option<Secret> {
    let response = serde_json::to_value(stored.token_response.as_ref()?).ok()?;
    let access_token = response["access_token"].as_str()?.to_owned();
    let lifetime = response["expires_in"].as_u64();
    let remaining = lifetime.zip(stored.token_received_at).map(|(lifetime, received)| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Duration::from_secs(lifetime.saturating_sub(now.saturating_sub(received)))
    });
    let can_renew = matches!(&response["refresh_token"], Value::String(token) if !token.is_empty());
    Some(Secret { access_token, remaining, can_renew })
}

impl TokenStore {
    pub(super) fn new(identity: String, directory: &Path) -> Self {
        Self { identity, files: Store::new(directory.join("tokens")), uses_keyring: true }
    }

    /// A store that leaves the machine's keyring alone.
    #[cfg(test)]
    pub(super) fn in_files(identity: String, directory: &Path) -> Self {
        Self { uses_keyring: false, ..Self::new(identity, directory) }
    }

    /// What is stored. What cannot be read counts as nothing: the person signs in again.
    pub(super) async fn load(&self) -> Option<StoredCredentials> {
        let text = self.keyring(|entry| match entry.get_password() {
            Ok(text) => Ok(Some(text)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(error),
        });
        if let Some(Some(text)) = text.await
            && let Ok(stored) = serde_json::from_str(&text)
        {
            return Some(stored);
        }
        match self.files.read(&self.identity, VERSION) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(%error, "stored tokens cannot be read");
                None
            }
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), RmcpError> {
        let failed = |error: String| RmcpError::CredentialStoreError(error);
        let text = serde_json::to_string(&credentials).map_err(|error| failed(error.to_string()))?;
        if self.keyring(move |entry| entry.set_password(&text)).await.is_some() {
            // What an earlier, keyless time left is not valid any more.
            return self.files.remove(&self.identity).map_err(|error| failed(error.to_string()));
        }
        self.files
            .update(&self.identity, VERSION, |_: Option<StoredCredentials>| (credentials, ()))
            .map_err(|error| failed(error.to_string()))
    }

    pub(super) async fn clear(&self) -> Result<(), RmcpError> {
        let cleared = self.keyring(|entry| match entry.delete_credential() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
            Err(error) => Err(error),
        });
        let _or_there_is_none = cleared.await;
        self.files.remove(&self.identity).map_err(|error| RmcpError::CredentialStoreError(error.to_string()))
    }

    /// Asks the keyring; `None` if there is none that answers.
    async fn keyring<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&keyring::Entry) -> keyring::Result<T> + Send + 'static,
    ) -> Option<T> {
        if !self.uses_keyring || NO_KEYRING.load(Ordering::Relaxed) {
            return None;
        }
        let identity = self.identity.clone();
        let (answer, answered) = oneshot::channel();
        // A thread of its own: a runtime that shuts down would wait for one of its blocking threads,
        // and this one may wait for a bus for ever.
        let asked = std::thread::Builder::new().name("cx-keyring".to_owned()).spawn(move || {
            let result = keyring::Entry::new(SERVICE, &identity).and_then(|entry| ask(&entry));
            let _nobody_waits = answer.send(result);
        });
        let result = match asked {
            Ok(_detached) => timeout(KEYRING_TIME, answered).await,
            Err(_) => return None,
        };
        match result {
            Ok(Ok(Ok(value))) => Some(value),
            Ok(Ok(Err(error))) => {
                tracing::debug!(%error, "the keyring cannot be used; tokens are kept in a file");
                NO_KEYRING.store(matches!(error, keyring::Error::NoDefaultStore), Ordering::Relaxed);
                None
            }
            Ok(Err(_)) | Err(_) => {
                NO_KEYRING.store(true, Ordering::Relaxed);
                tracing::warn!("the keyring does not answer; tokens are kept in a file");
                None
            }
        }
    }
}

/// A [`TokenStore`] as rmcp wants one.
pub(super) struct Remembered(pub(super) Arc<TokenStore>);

// Written out because rmcp's trait is made by a macro of a crate that is needed for nothing else.
impl CredentialStore for Remembered {
    fn load<'life, 'async_trait>(
        &'life self,
    ) -> BoxFuture<'async_trait, Result<Option<StoredCredentials>, RmcpError>>
    where
        'life: 'async_trait,
        Self: 'async_trait,
    {
        self.0.load().map(Ok).boxed()
    }

    fn save<'life, 'async_trait>(
        &'life self,
        credentials: StoredCredentials,
    ) -> BoxFuture<'async_trait, Result<(), RmcpError>>
    where
        'life: 'async_trait,
        Self: 'async_trait,
    {
        self.0.save(credentials).boxed()
    }

    fn clear<'life, 'async_trait>(&'life self) -> BoxFuture<'async_trait, Result<(), RmcpError>>
    where
        'life: 'async_trait,
        Self: 'async_trait,
    {
        self.0.clear().boxed()
    }
}

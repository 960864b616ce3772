//! Tokens in a keyring that can be locked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::transport::auth::{OAuthTokenResponse, StoredCredentials};
use serde_json::json;
use tempfile::TempDir;

use super::super::issuer::Binding;
use super::super::tokens::{Keyring, KeyringEntry, KeyringState, StoredSignIn, TokenStore, secret};

/// A keyring with one entry.
#[derive(Clone, Default)]
struct FakeKeyring(Arc<FakeState>);

#[derive(Default)]
struct FakeState {
    text: Mutex<Option<String>>,
    is_locked: AtomicBool,
    hangs: AtomicBool,
}

impl FakeKeyring {
    fn set_locked(&self, is_locked: bool) {
        self.0.is_locked.store(is_locked, Ordering::Relaxed);
    }

    fn text(&self) -> keyring::Result<&Mutex<Option<String>>> {
        while self.0.hangs.load(Ordering::Relaxed) {
            std::thread::park();
        }
        match self.0.is_locked.load(Ordering::Relaxed) {
            true => Err(keyring::Error::NoStorageAccess("it is locked".into())),
            false => Ok(&self.0.text),
        }
    }
}

impl KeyringEntry for FakeKeyring {
    fn read(&self) -> keyring::Result<String> {
        self.text()?.lock().clone().ok_or(keyring::Error::NoEntry)
    }

    fn write(&self, text: &str) -> keyring::Result<()> {
        *self.text()?.lock() = Some(text.to_owned());
        Ok(())
    }

    fn remove(&self) -> keyring::Result<()> {
        self.text()?.lock().take().map(drop).ok_or(keyring::Error::NoEntry)
    }
}

fn sign_in(token: &str) -> StoredSignIn {
    let response = json!({ "access_token": token, "token_type": "Bearer" });
    let response: OAuthTokenResponse = serde_json::from_value(response).unwrap();
    let credentials = StoredCredentials::new("client".to_owned(), Some(response), Vec::new(), None);
    let issuer = "https://login.example.com".to_owned();
    StoredSignIn { credentials, binding: Binding { token_origin: issuer.clone(), issuer }, proof_key: None }
}

/// Tokens in the fake keyring, or below `directory` while that does not take them.
fn token_store(directory: &TempDir, fake: &FakeKeyring) -> TokenStore {
    static STATE: KeyringState = KeyringState::new();
    token_store_with(directory, fake, &STATE)
}

fn token_store_with(directory: &TempDir, fake: &FakeKeyring, state: &'static KeyringState) -> TokenStore {
    let entry = fake.clone();
    let open = move |_: &str| -> keyring::Result<Box<dyn KeyringEntry>> { Ok(Box::new(entry.clone())) };
    let keyring = Keyring { open: Arc::new(open), state };
    TokenStore::with_keyring("server".to_owned(), directory.path(), Some(keyring))
}

async fn token(tokens: &TokenStore) -> Option<String> {
    tokens.load().await.as_ref().and_then(secret).map(|secret| secret.access_token)
}

#[tokio::test]
async fn v_773_tokens_that_the_keyring_did_not_take_replace_those_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let fake = FakeKeyring::default();
    let tokens = token_store(&directory, &fake);
    tokens.save(sign_in("first")).await.unwrap();
    assert_eq!((token(&tokens).await.as_deref(), tokens.has_file()), (Some("first"), false));
    fake.set_locked(true);
    tokens.save(sign_in("second")).await.unwrap();
    assert_eq!((token(&tokens).await.as_deref(), tokens.has_file()), (Some("second"), true));
    // It still has the first ones.
    fake.set_locked(false);
    assert_eq!(token(&tokens).await.as_deref(), Some("second"));
    tokens.save(sign_in("third")).await.unwrap();
    assert_eq!((token(&tokens).await.as_deref(), tokens.has_file()), (Some("third"), false));
}

#[tokio::test]
async fn v_774_tokens_that_are_left_in_the_keyring_are_not_reported_as_removed() {
    let directory = tempfile::tempdir().unwrap();
    let fake = FakeKeyring::default();
    let tokens = token_store(&directory, &fake);
    tokens.save(sign_in("first")).await.unwrap();
    fake.set_locked(true);
    tokens.save(sign_in("second")).await.unwrap();
    let error = tokens.clear().await.unwrap_err().to_string();
    assert!(error.contains("the keyring does not remove them"), "{error}");
    assert!(!tokens.has_file());
    fake.set_locked(false);
    tokens.clear().await.unwrap();
    assert_eq!(token(&tokens).await, None);
    // Nothing is left to remove.
    tokens.clear().await.unwrap();
}

/// Its time is over at once here.
#[tokio::test(start_paused = true)]
async fn v_774_tokens_in_a_keyring_that_does_not_answer_are_not_reported_as_removed() {
    static STATE: KeyringState = KeyringState::new();
    let directory = tempfile::tempdir().unwrap();
    let fake = FakeKeyring::default();
    fake.0.hangs.store(true, Ordering::Relaxed);
    let tokens = token_store_with(&directory, &fake, &STATE);
    let error = tokens.clear().await.unwrap_err().to_string();
    assert!(error.contains("it does not answer"), "{error}");
    // It is not asked again.
    tokens.save(sign_in("first")).await.unwrap();
    assert!(tokens.has_file());
    let error = tokens.clear().await.unwrap_err().to_string();
    assert!(error.contains("it does not answer") && !tokens.has_file(), "{error}");
}

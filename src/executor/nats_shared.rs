//! What the front ends of a tenant share, on a NATS server: `src/nats/tenant.rs` as the store of `src/storage`.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use tokio::runtime::Handle;

use super::nats_worker::access;
use crate::error::Error;
use crate::nats::bucket::{Bucket, BucketError};
use crate::nats::server::Addresses;
use crate::nats::tenant::{RunsBounds, Tenant, TenantBucket};
use crate::run::history::HistoryLimits;
use crate::run::isolation::Isolation;
use crate::storage::shared::{SharedEntry, SharedError, SharedKeys, SharedStore};

/// The stores of a tenant.
pub(super) struct SharedStores {
    pub(super) state: Arc<dyn SharedStore>,
    pub(super) runs: Arc<dyn SharedStore>,
}

/// The stores that an executor shares, if it shares any. Connects to nothing yet.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the tenant's name or key file cannot be used.
pub(super) fn open(
    isolation: Option<&Isolation>,
    limits: HistoryLimits,
    runtime: &Handle,
) -> Result<Option<SharedStores>, Error> {
    let Some(Isolation::Nats(workers)) = isolation else { return Ok(None) };
    let Some(shared) = &workers.shared else { return Ok(None) };
    let invalid = |problem| Error::InvalidOptions { option: "isolation", problem };
    if shared.key_file.as_os_str().is_empty() {
        return Err(invalid("a tenant needs a key file (`tenantKeyFile`)".to_owned()));
    }
    let addresses = Addresses::parse(&workers.url, workers.credentials_file.is_some()).map_err(invalid)?;
    let runs = RunsBounds { bytes: limits.bytes, age: limits.age };
    let (access, runtime) = (access(workers), runtime.clone());
    let tenant = Tenant::new(&shared.name, &shared.key_file, addresses, access, runs, runtime);
    let tenant = Arc::new(tenant.map_err(invalid)?);
    let store = |bucket| Arc::new(TenantStore { tenant: Arc::clone(&tenant), bucket });
    Ok(Some(SharedStores { state: store(TenantBucket::State), runs: store(TenantBucket::Runs) }))
}

#[derive(Debug)]
struct TenantStore {
    tenant: Arc<Tenant>,
    bucket: TenantBucket,
}

impl TenantStore {
    async fn bucket(&self) -> Result<Bucket, SharedError> {
        self.tenant.bucket(self.bucket).await.map_err(SharedError::Away)
    }

    /// The error of a store.
    async fn failed(&self, bucket: &Bucket, error: BucketError) -> SharedError {
        match error {
            BucketError::Full => SharedError::Full,
            BucketError::Forged => SharedError::Damaged,
            BucketError::Unanswered => SharedError::Away(error.to_string()),
            BucketError::Missing => {
                self.tenant.reopen().await;
                SharedError::Refused(format!("the bucket `{}` was removed", bucket.name()))
            }
            BucketError::Refused(_) | BucketError::NoRandomNumbers => SharedError::Refused(error.to_string()),
        }
    }
}

impl SharedStore for TenantStore {
    fn hide(&self, kind: u8, name: &[u8]) -> Option<String> {
        self.tenant.hide(kind, name)
    }

    fn get(&self, key: String) -> BoxFuture<'_, Result<SharedEntry, SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            match bucket.get(&key).await {
                Ok(entry) => Ok(SharedEntry {
                    value: entry.value,
                    revision: entry.revision,
                    written_at: entry.written_at,
                }),
                Err(error) => Err(self.failed(&bucket, error).await),
            }
        }
        .boxed()
    }

    fn put(
        &self,
        key: String,
        value: Vec<u8>,
        expected: Option<u64>,
    ) -> BoxFuture<'_, Result<bool, SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            match bucket.put(&key, &value, expected).await {
                Ok(is_stored) => Ok(is_stored),
                Err(error) => Err(self.failed(&bucket, error).await),
            }
        }
        .boxed()
    }

    fn remove(&self, key: String, revision: u64) -> BoxFuture<'_, Result<(), SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            match bucket.remove(&key, Some(revision)).await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.failed(&bucket, error).await),
            }
        }
        .boxed()
    }

    fn remove_below(&self, prefix: String) -> BoxFuture<'_, Result<(), SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            match bucket.remove(&format!("{prefix}.*"), None).await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.failed(&bucket, error).await),
            }
        }
        .boxed()
    }

    fn keys(&self) -> BoxFuture<'_, Result<SharedKeys, SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            match bucket.keys().await {
                Ok((keys, newest)) => Ok(SharedKeys { keys, newest }),
                Err(error) => Err(self.failed(&bucket, error).await),
            }
        }
        .boxed()
    }
}

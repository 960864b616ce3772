//! The shared store of a tenant's front ends, on a NATS server: adapts `src/nats/tenant.rs` to
//! `src/storage`.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use tokio::runtime::Handle;

use super::nats_worker::access;
use crate::error::{Error, OptionName};
use crate::nats::bucket::{Bucket, BucketError};
use crate::nats::server::Addresses;
use crate::nats::tenant::{RunsBounds, Tenant, TenantBucket};
use crate::run::history::HistoryLimits;
use crate::run::isolation::Isolation;
use crate::storage::shared::{SharedEntry, SharedError, SharedKeys, SharedStore, SharedStores};

/// The stores that an executor shares, if it shares any. Connects to nothing yet.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the tenant's name or key file cannot be used.
pub(super) fn open(
    isolation: &Isolation,
    limits: HistoryLimits,
    runtime: &Handle,
) -> Result<Option<SharedStores>, Error> {
    let Isolation::Nats(workers) = isolation else { return Ok(None) };
    let Some(shared) = &workers.shared else { return Ok(None) };
    let invalid = |problem| Error::InvalidOptions { option: OptionName::Isolation, problem };
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

    /// What the bucket returned, with the error of a store.
    async fn result<T>(&self, bucket: &Bucket, result: Result<T, BucketError>) -> Result<T, SharedError> {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        Err(match error {
            BucketError::Full => SharedError::Full,
            BucketError::Forged => SharedError::Damaged,
            BucketError::Unanswered => SharedError::Away(error.to_string()),
            BucketError::Missing => {
                self.tenant.reopen().await;
                SharedError::Refused(format!("the bucket `{}` was removed", bucket.name()))
            }
            BucketError::Refused(_) | BucketError::NoRandomNumbers => SharedError::Refused(error.to_string()),
        })
    }
}

impl SharedStore for TenantStore {
    fn hide(&self, kind: u8, name: &[u8]) -> Option<String> {
        self.tenant.hide(kind, name)
    }

    fn get(&self, key: String) -> BoxFuture<'_, Result<SharedEntry, SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            let entry = self.result(&bucket, bucket.get(&key).await).await?;
            Ok(SharedEntry { value: entry.value, revision: entry.revision, written_at: entry.written_at })
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
            self.result(&bucket, bucket.put(&key, &value, expected).await).await
        }
        .boxed()
    }

    fn remove(&self, key: String, revision: u64) -> BoxFuture<'_, Result<(), SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            self.result(&bucket, bucket.remove(&key, Some(revision)).await).await
        }
        .boxed()
    }

    fn remove_below(&self, prefix: String) -> BoxFuture<'_, Result<(), SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            self.result(&bucket, bucket.remove(&format!("{prefix}.*"), None).await).await
        }
        .boxed()
    }

    fn keys(&self) -> BoxFuture<'_, Result<SharedKeys, SharedError>> {
        async move {
            let bucket = self.bucket().await?;
            let (keys, newest) = self.result(&bucket, bucket.keys().await).await?;
            Ok(SharedKeys { keys, newest })
        }
        .boxed()
    }
}

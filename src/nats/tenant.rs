//! The two buckets of a tenant, which its front ends share: the state of scripts, and records of runs. The
//! connection is made when it is first needed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::bucket::{Bucket, BucketError, BucketOptions};
use super::seal::tenant::TenantKey;
use super::server::{Access, Addresses, NatsServer};
use crate::text::{MAX_TENANT_NAME, is_tenant_name};

/// Maximum size of all state of a tenant, as of the file on one machine.
const MAX_STATE: i64 = 256 << 20;

/// Pause after a failure before the server is asked again: otherwise calls that wait for one
/// another would wait forever.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long the connection and the buckets may take.
const MAX_OPEN_TIME: Duration = Duration::from_secs(8);

/// Checks the name of a tenant, which is a part of the names of its buckets. The error is a sentence.
///
/// # Errors
///
/// If it is empty, too long, or has other characters.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if is_tenant_name(name) {
        return Ok(());
    }
    Err(format!("expected a name of 1 to {MAX_TENANT_NAME} lower-case letters, digits and hyphens: `{name}`"))
}

/// Which of a tenant's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TenantBucket {
    State,
    Runs,
}

/// Bounds of the records of runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunsBounds {
    pub(crate) bytes: usize,
    pub(crate) age: Duration,
}

/// A tenant on a NATS server.
#[derive(Debug)]
pub(crate) struct Tenant {
    name: String,
    key: TenantKey,
    addresses: Addresses,
    access: Access,
    runs: RunsBounds,
    runtime: Handle,
    /// A tokio mutex, because it is held while the connection is made: all calls that wait for it need the same one.
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
enum Open {
    #[default]
    No,
    Failed(Instant, String),
    Yes(Arc<Buckets>),
}

#[derive(Debug)]
struct Buckets {
    server: NatsServer,
    state: Bucket,
    runs: Bucket,
}

impl Tenant {
    /// A tenant of this name. Connects to nothing yet; `runtime` is where the connection will live. The error is a
    /// sentence.
    ///
    /// # Errors
    ///
    /// If the name, the address or the key file cannot be used.
    pub(crate) fn new(
        name: &str,
        key_file: &Path,
        addresses: Addresses,
        access: Access,
        runs: RunsBounds,
        runtime: Handle,
    ) -> Result<Self, String> {
        check_name(name)?;
        let key = TenantKey::read(key_file, name)?;
        Ok(Self { name: name.to_owned(), key, addresses, access, runs, runtime, open: Mutex::default() })
    }

    pub(crate) fn hide(&self, kind: u8, name: &[u8]) -> Option<String> {
        self.key.hide(kind, name)
    }

    /// A bucket, once there is a connection. The error is why there is none, as a sentence.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) async fn bucket(&self, which: TenantBucket) -> Result<Bucket, String> {
        let mut open = self.open.lock().await;
        let buckets = match &*open {
            Open::Yes(buckets) if !buckets.server.has_ended() => Arc::clone(buckets),
            Open::Failed(at, problem) if at.elapsed() < RETRY_AFTER => return Err(problem.clone()),
            Open::No | Open::Failed(..) | Open::Yes(_) => match self.connect().await {
                Ok(buckets) => {
                    let buckets = Arc::new(buckets);
                    *open = Open::Yes(Arc::clone(&buckets));
                    buckets
                }
                Err(problem) => {
                    tracing::warn!(problem, "what front ends share cannot be used");
                    *open = Open::Failed(Instant::now(), problem.clone());
                    return Err(problem);
                }
            },
        };
        Ok(match which {
            TenantBucket::State => buckets.state.clone(),
            TenantBucket::Runs => buckets.runs.clone(),
        })
    }

    /// Makes the connection and the buckets again at their next use, because a bucket was removed.
    pub(crate) async fn reopen(&self) {
        *self.open.lock().await = Open::No;
    }

    async fn connect(&self) -> Result<Buckets, String> {
        let state = BucketOptions {
            name: format!("cx-state-{}", self.name),
            description: "State of cx's scripts",
            max_bytes: MAX_STATE,
            max_age: Duration::ZERO,
            drops_oldest: false,
        };
        let runs = BucketOptions {
            name: format!("cx-runs-{}", self.name),
            description: "Records of cx's runs",
            max_bytes: i64::try_from(self.runs.bytes).unwrap_or(i64::MAX),
            max_age: self.runs.age,
            drops_oldest: true,
        };
        let (addresses, access, key) = (self.addresses.clone(), self.access.clone(), self.key.clone());
        // On the executor's runtime, which lives as long as this.
        let connecting = self.runtime.spawn(async move {
            let server = NatsServer::connect(&addresses, &access).await.map_err(|error| error.to_string())?;
            let problem =
                |error: BucketError| format!("the buckets of the NATS server cannot be used: {error}");
            Ok(Buckets {
                state: Bucket::open(&server, &key, state).await.map_err(problem)?,
                runs: Bucket::open(&server, &key, runs).await.map_err(problem)?,
                server,
            })
        });
        match timeout(MAX_OPEN_TIME, connecting).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(_ended)) => Err("the executor has ended".to_owned()),
            Err(_late) => Err(format!("`{}` does not answer", self.addresses)),
        }
    }
}

//! Records of runs that several front ends share, for clients that any of them may serve.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{OF_TENANT, RunRecord};
use crate::storage::shared::parts::{self, Stored};
use crate::storage::shared::{SharedError, SharedStore};

/// Maximum time that an answer waits for its record to be stored, and a script for a record to be read.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Maximum bytes of a shared record. Larger ones stay in the front end that made them.
const MAX_BYTES: usize = 16 << 20;

/// The kind of name that keys of run records are derived from.
const RUN: u8 = b'r';

/// Maximum bytes of a record that is stored as one entry.
const MAX_HERE: usize = 256 << 10;

/// Records that are shared.
pub(crate) struct SharedRuns(Arc<dyn SharedStore>);

/// The stored form of a record.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRecord {
    output: String,
    value: Option<String>,
    error: Option<String>,
    calls: String,
}

impl SharedRuns {
    pub(crate) fn new(store: Arc<dyn SharedStore>) -> Self {
        Self(store)
    }

    /// Stores a record for all front ends. If that fails, only this front end has it.
    pub(super) async fn keep(&self, tenant: &str, run: &RunRecord) {
        if run.bytes() > MAX_BYTES {
            return;
        }
        let kept = timeout(MAX_TIME, self.write(tenant, run)).await;
        if let Err(error) = kept.unwrap_or_else(|_elapsed| Err(late())) {
            tracing::warn!(%error, "the record of a run is not shared with other front ends");
        }
    }

    async fn write(&self, tenant: &str, run: &RunRecord) -> Result<(), SharedError> {
        let kept = StoredRecord {
            output: run.output.clone(),
            value: run.value.clone(),
            error: run.error.clone(),
            calls: run.calls.clone(),
        };
        let damaged = |_| SharedError::Damaged;
        let text = serde_json::to_string(&kept).map_err(damaged)?;
        let name = self.name(tenant, &run.id)?;
        let stored = if text.len() <= MAX_HERE {
            Stored::Here(text)
        } else {
            parts::write(&*self.0, &name, &text).await?
        };
        self.0.put(key(&name), serde_json::to_vec(&stored).map_err(damaged)?, None).await.map(drop)
    }

    /// The record of a run, if it is still kept. `id` is what a client says.
    ///
    /// # Errors
    ///
    /// If the shared store does not answer.
    pub(super) async fn find(
        &self,
        tenant: &str,
        client: &str,
        id: &str,
    ) -> Result<Option<Arc<RunRecord>>, SharedError> {
        // With a slash it would name a run of another tenant.
        if id.contains(OF_TENANT) {
            return Ok(None);
        }
        let kept = timeout(MAX_TIME, self.read(tenant, id)).await.unwrap_or_else(|_elapsed| Err(late()))?;
        let Some(kept) = kept else { return Ok(None) };
        Ok(Some(Arc::new(RunRecord {
            id: id.to_owned(),
            output: kept.output,
            value: kept.value,
            error: kept.error,
            calls: kept.calls,
            client: client.to_owned(),
            ended_at: Instant::now(),
        })))
    }

    async fn read(&self, tenant: &str, id: &str) -> Result<Option<StoredRecord>, SharedError> {
        let name = self.name(tenant, id)?;
        let Some(value) = self.0.get(key(&name)).await?.value else { return Ok(None) };
        let stored: Stored = serde_json::from_slice(&value).map_err(|_| SharedError::Damaged)?;
        // Parts of the oldest records may have been removed to make space for new ones.
        let Some(text) = parts::read(&*self.0, &name, &stored).await? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|_| SharedError::Damaged)
    }

    /// The name in keys of a run of a tenant; `tenant` is empty for a front end without tenants. `id` has no slash, so
    /// the name cannot be that of another tenant's run.
    fn name(&self, tenant: &str, id: &str) -> Result<String, SharedError> {
        let no_keys = || SharedError::Refused("the system provides no keys".to_owned());
        let name = if tenant.is_empty() { id.to_owned() } else { format!("{tenant}{OF_TENANT}{id}") };
        self.0.hide(RUN, name.as_bytes()).ok_or_else(no_keys)
    }
}

/// The error of what takes longer than [`MAX_TIME`].
fn late() -> SharedError {
    SharedError::Away(format!("no answer within {} s", MAX_TIME.as_secs()))
}

fn key(name: &str) -> String {
    format!("run.{name}")
}

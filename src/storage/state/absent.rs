//! Replaces the store in a build without the feature `state`. No store is ever made, so no run has state.

use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;

use super::call::StateCall;
use super::error::StateError;
use super::scope::StateScope;
use crate::error::Error;
use crate::storage::shared::SharedStore;

#[derive(Clone, Debug)]
pub struct StateStore(());

/// No state is shared in this build.
pub(crate) struct SharedState(());

impl SharedState {
    pub(crate) fn new(_store: Arc<dyn SharedStore>) -> Self {
        Self(())
    }
}

impl StateStore {
    pub(crate) fn sharing(self, _shared: SharedState) -> Self {
        self
    }

    pub(crate) fn clear(&self, _scope: &StateScope) -> Result<u64, Error> {
        Ok(0)
    }

    pub(crate) fn damaged_file(&self) -> Option<std::path::PathBuf> {
        None
    }
}

pub(crate) struct RunState(());

impl RunState {
    pub(crate) fn new(_store: StateStore, _scope: StateScope, _is_dry_run: bool) -> Self {
        Self(())
    }

    pub(crate) async fn call(
        &self,
        call: StateCall,
        _deadline: Instant,
        _runtime: &Handle,
    ) -> Result<String, StateError> {
        call.check()?;
        Err(StateError::Ended)
    }
}

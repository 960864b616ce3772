//! Replaces the shared store of front ends in a build without the feature `nats`.

use tokio::runtime::Handle;

use crate::error::Error;
use crate::run::history::HistoryLimits;
use crate::run::isolation::Isolation;
use crate::storage::shared::SharedStores;

/// There are none. The isolation itself is refused.
///
/// # Errors
///
/// None.
pub(super) fn open(
    _isolation: &Isolation,
    _limits: HistoryLimits,
    _runtime: &Handle,
) -> Result<Option<SharedStores>, Error> {
    Ok(None)
}

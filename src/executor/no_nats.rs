//! Replaces the queue on NATS servers in a build without the feature `nats`.

use tokio_util::sync::CancellationToken;

use super::core::Executor;
use super::queue::{QueueEvent, QueueOptions};
use crate::error::{Error, OptionName};

/// Refuses.
///
/// # Errors
///
/// Always.
#[expect(clippy::unused_async, reason = "as in builds that have it")]
pub(super) async fn work_for_queue(
    _executor: &Executor,
    _options: &QueueOptions,
    _observe: &(impl Fn(QueueEvent) + Send + Sync),
    _stop: &CancellationToken,
) -> Result<(), Error> {
    let problem = "queues are for Linux, in builds with the feature `nats`".to_owned();
    Err(Error::InvalidOptions { option: OptionName::Nats, problem })
}

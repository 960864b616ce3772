//! Execution of runs of other machines, which arrive over a queue.

use tokio_util::sync::CancellationToken;

use super::core::Executor;
use super::nats_lending;
use crate::error::{Error, OptionName};
use crate::machine;
use crate::run::isolation::NatsWorkers;

/// How a machine executes runs of a queue: `cx worker`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueOptions {
    /// The server and the key.
    pub nats: NatsWorkers,
    /// How many runs are executed at the same time, at least one.
    pub concurrency: usize,
    /// How many runs may wait in the queue, if this machine is the one that makes it.
    pub max_queued: u32,
}

impl QueueOptions {
    /// As many runs as there are processors, of a queue of at most 10,000.
    pub fn new(nats: NatsWorkers) -> Self {
        Self { nats, concurrency: machine::processors(), max_queued: 10_000 }
    }
}

/// What happens between a machine and the queue whose runs it executes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueEvent {
    /// From now on runs are taken.
    Joined,
    /// The queue cannot be used, and is tried again after a pause. The text is for people.
    NotJoined(String),
}

impl Executor {
    /// Executes runs of the executors that have [`Isolation::Nats`](crate::Isolation::Nats) with the same server and
    /// key, until `stop` is cancelled and the runs that are in flight have ended. Dropping the future ends those at
    /// once. They are executed in worker processes, and may use at most what clients of this executor may ask for
    /// ([`max_limits`](Self::max_limits)).
    ///
    /// A server that cannot be reached, or disconnects, is tried again until it is back. `observe`
    /// receives these events.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the server's address, the key or the credentials cannot be used, if this machine
    /// lacks what confines worker processes, or in builds without the feature `nats`; [`Error::Start`] if the system
    /// refuses a thread.
    pub async fn work_for_queue(
        &self,
        options: &QueueOptions,
        observe: impl Fn(QueueEvent) + Send + Sync,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        if options.concurrency == 0 {
            let problem = "a machine must execute at least one run at a time: `concurrency` is 0".to_owned();
            return Err(Error::InvalidOptions { option: OptionName::Nats, problem });
        }
        nats_lending::work_for_queue(self, options, &observe, stop).await
    }
}

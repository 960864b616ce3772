//! The slots for the calls in flight of a run and of the runs that it has called.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::in_force::RunLimits;
use crate::sync::Mutex;

/// As many slots as [`Limits::calls_in_flight`](super::Limits::calls_in_flight) in force. When an operator lowers the
/// limit, calls in flight continue, and no other call begins until fewer are left than the limit.
pub(crate) struct CallSlots {
    limits: RunLimits,
    free: Arc<Semaphore>,
    /// Number of slots, free and taken.
    count: Mutex<u32>,
}

impl CallSlots {
    pub(crate) fn new(limits: RunLimits) -> Self {
        let count = limits.now().calls_in_flight;
        Self { limits, free: Arc::new(Semaphore::new(count as usize)), count: Mutex::new(count) }
    }

    /// Waits for a slot, which is free again when the permit is dropped. Dropping the future stops the wait.
    ///
    /// # Errors
    ///
    /// Never fails, because the semaphore is never closed. An error would only mean that the run is over.
    pub(crate) async fn acquire(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        loop {
            self.add_missing();
            let permit = Arc::clone(&self.free).acquire_owned().await?;
            let mut count = self.count.lock();
            if *count <= self.limits.now().calls_in_flight {
                return Ok(permit);
            }
            // There is one slot too many: it is removed, and the call waits for another.
            *count -= 1;
            permit.forget();
        }
    }

    /// Adds the slots that a lower limit had removed, if the limit was raised again.
    fn add_missing(&self) {
        let most = self.limits.now().calls_in_flight;
        let mut count = self.count.lock();
        if let Some(missing @ 1..) = most.checked_sub(*count) {
            self.free.add_permits(missing as usize);
            *count = most;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use tokio::sync::watch;

    use super::*;
    use crate::run::limits::Limits;

    #[tokio::test]
    async fn a_lowered_limit_removes_slots_as_they_become_free() {
        let with = |calls_in_flight| Limits { calls_in_flight, ..Limits::CEILING };
        let (operator, max) = watch::channel(with(4));
        let slots = Arc::new(CallSlots::new(RunLimits::new(with(4), with(4), max)));
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(slots.acquire().await.unwrap());
        }
        let waits = || slots.acquire().now_or_never().is_none();
        // One waits already when the limit is lowered: no call that waits is exempt.
        let fourth = slots.acquire().await.unwrap();
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.acquire().await }
        });
        tokio::task::yield_now().await;
        operator.send_replace(with(2));
        drop(fourth);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished() && waits(), "3 of 2 are in flight");
        held.pop();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished() && waits(), "2 of 2 are in flight");
        held.pop();
        let second = waiting.await.unwrap().unwrap();
        assert!(waits(), "2 of 2 again");
        // Raised, but not beyond what the run started with.
        operator.send_replace(with(9));
        held.push(slots.acquire().await.unwrap());
        held.push(slots.acquire().await.unwrap());
        assert!(waits(), "4 of 4");
        drop(second);
        assert!(!waits());
    }
}

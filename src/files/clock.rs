//! The clock of the files in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::durations::nanoseconds;

/// The clock of the files in memory.
#[derive(Debug)]
pub(crate) enum Clock {
    /// The machine's, with a resolution.
    Real(Duration),
    /// Counts changes, so that a recorded run and its replay see the same.
    Counting(AtomicU64),
}

impl Clock {
    /// A clock that counts.
    pub(crate) fn counting() -> Self {
        Self::Counting(AtomicU64::new(0))
    }

    pub(super) fn now(&self) -> u64 {
        match self {
            Self::Real(resolution) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let now = nanoseconds(now);
                let resolution = nanoseconds(*resolution).max(1);
                now - now % resolution
            }
            Self::Counting(count) => {
                /// 2000-01-01: archives cannot have files from before 1980.
                const START: u64 = 946_684_800_000_000_000;
                START + count.fetch_add(1, Ordering::Relaxed) * 1_000_000
            }
        }
    }
}

//! Pauses between attempts to start a server.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// Minimum and maximum pause, with jitter, before another start of a server that did not start or
/// that died without having answered.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A call waits for a pause of at most this length. A longer pause is reported as an error.
const MAX_WAITED_PAUSE: Duration = Duration::from_secs(1);

/// When a server may be started again.
pub(crate) struct StartBackoff {
    /// The next attempt may not begin before this time.
    not_before: Option<Instant>,
    pauses: ExponentialBackoff,
}

impl StartBackoff {
    /// Without a pause before the first attempt.
    pub(crate) fn new() -> Self {
        let pauses = ExponentialBuilder::new()
            .with_min_delay(MIN_PAUSE)
            .with_max_delay(MAX_PAUSE)
            .without_max_times()
            .with_jitter();
        Self { not_before: None, pauses: pauses.build() }
    }

    /// Returns when an attempt may begin, and counts the attempt.
    ///
    /// # Errors
    ///
    /// The pause before the next attempt, if it is too long for a call to wait for.
    pub(crate) fn begin(&mut self, now: Instant) -> Result<Instant, Duration> {
        let not_before = self.not_before.map_or(now, |not_before| not_before.max(now));
        let pause = not_before - now;
        if pause > MAX_WAITED_PAUSE {
            return Err(pause);
        }
        let next_pause = self.pauses.next().unwrap_or(MAX_PAUSE);
        self.not_before = Some(not_before + next_pause);
        Ok(not_before)
    }

    /// The pause before the next attempt.
    pub(crate) fn pause(&self, now: Instant) -> Duration {
        self.not_before.map_or(Duration::ZERO, |not_before| not_before.saturating_duration_since(now))
    }

    /// Forgets all attempts: the server has answered.
    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests;

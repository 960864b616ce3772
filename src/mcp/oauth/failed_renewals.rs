//! The pauses after renewals that have failed.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::authorization::Token;
use crate::tools::ToolError;

/// The pause after the first failure, as long as a short disturbance of a network.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The pause that is not exceeded: a server that works again is used after it at the latest.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The renewals of one sign-in that have failed since the last one that has not. Without pauses between them each call
/// would be some ten requests, also to addresses that the server names.
#[derive(Default)]
pub(super) struct FailedRenewals(Mutex<Option<Failure>>);

struct Failure {
    /// The token that was to be replaced. Another one is of a new sign-in, which waits for nothing.
    stale: Option<Token>,
    /// `None` if it was refused, so that the user has to sign in.
    error: Option<ToolError>,
    at: Instant,
    pause: Duration,
}

impl Failure {
    fn is_of(&self, stale: Option<&Token>) -> bool {
        match (&self.stale, stale) {
            (Some(own), Some(stale)) => own.is_same(stale),
            (own, stale) => own.is_none() && stale.is_none(),
        }
    }
}

impl FailedRenewals {
    /// Whether `stale` may be renewed now: not during the pause after it was refused.
    ///
    /// # Errors
    ///
    /// The error of the last renewal, which says when the next one may be, during the pause after it has failed.
    pub(super) fn may_renew(&self, stale: Option<&Token>) -> Result<bool, ToolError> {
        let last = self.0.lock();
        let Some(failure) = last.as_ref().filter(|failure| failure.is_of(stale)) else { return Ok(true) };
        let left = failure.pause.saturating_sub(failure.at.elapsed());
        if left.is_zero() {
            return Ok(true);
        }
        let Some(mut error) = failure.error.clone() else { return Ok(false) };
        let seconds = left.as_secs() + 1;
        error.message = format!("{}; cx tries again in {seconds} s, or after another sign-in", error.message);
        error.retry_after = Some(left);
        Err(error)
    }

    /// Notes that `stale` could not be renewed. Returns the error.
    pub(super) fn record(&self, stale: Option<Token>, error: ToolError) -> ToolError {
        self.begin_pause(stale, Some(error.clone()));
        error
    }

    /// Notes that the authorization server has refused to renew `stale`.
    pub(super) fn record_refusal(&self, stale: Option<Token>) {
        self.begin_pause(stale, None);
    }

    fn begin_pause(&self, stale: Option<Token>, error: Option<ToolError>) {
        let mut last = self.0.lock();
        let before = last.as_ref().filter(|failure| failure.is_of(stale.as_ref()));
        let pause = before.map_or(FIRST_PAUSE, |failure| (2 * failure.pause).min(MAX_PAUSE));
        *last = Some(Failure { stale, error, at: Instant::now(), pause });
    }

    /// Notes that a new token has come.
    pub(super) fn clear(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ToolErrorCode;

    #[test]
    fn pauses_double_up_to_a_minute_and_begin_again_after_a_success() {
        let failed = FailedRenewals::default();
        let pause = || {
            failed.record(None, ToolError::new(ToolErrorCode::UpstreamUnavailable, "no"));
            failed.0.lock().as_ref().map(|failure| failure.pause.as_secs())
        };
        let pauses: Vec<u64> = std::iter::from_fn(pause).take(8).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        let error = failed.may_renew(None).unwrap_err();
        assert!(error.message.starts_with("no; cx tries again in "), "{}", error.message);
        assert!(error.retry_after.is_some_and(|left| left <= MAX_PAUSE));
        failed.record_refusal(None);
        assert_eq!(failed.may_renew(None), Ok(false));
        failed.clear();
        assert_eq!(failed.may_renew(None), Ok(true));
        assert_eq!(pause(), Some(1));
    }
}

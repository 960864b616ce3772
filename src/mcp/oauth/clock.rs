//! The time as tokens, assertions and proofs have it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Whole seconds since 1970 (`NumericDate` of RFC 7519); 0 if the clock of this machine is before that.
pub(super) fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

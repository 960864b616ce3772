//! The terms of a call as a message has them.

use serde::{Deserialize, Serialize};

use crate::run::call_terms::CallTerms;

/// See [`CallTerms`]. Zero for none.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WireTerms {
    id: u64,
    timeout_ms: f64,
}

impl From<CallTerms> for WireTerms {
    fn from(terms: CallTerms) -> Self {
        let timeout_ms = terms.timeout.map_or(0.0, |timeout| timeout.as_secs_f64() * 1_000.0);
        Self { id: terms.id.unwrap_or_default(), timeout_ms }
    }
}

impl From<WireTerms> for CallTerms {
    /// A script may have taken over the worker: these are bounded as those of any guest.
    fn from(terms: WireTerms) -> Self {
        Self::from_guest(terms.id, terms.timeout_ms)
    }
}

//! Replaces the HTTP requests of a run in a build without the feature `fetch`.

use std::sync::Arc;

use crate::run::grants::RunGrants;
use crate::run::limits::Limits;

/// No requests.
pub(super) struct Fetches;

impl Fetches {
    pub(super) fn new(_grants: &Arc<RunGrants>, _limits: &Limits) -> Self {
        Self
    }

    pub(super) fn finish(&self) {}
}

//! Which calls are made and approved, and how scripts and models find tools.

/// Approval of calls, and dry runs.
mod approval;
/// The guide that agents read.
mod guide;
/// What a failed run says of its tools.
mod hints;
/// Another configuration while scripts run.
mod reconfigure;
/// Judged queries over the tools of real servers: see `tests/search`.
mod search;

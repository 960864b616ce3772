//! The request for a worker of another machine, as its client (`remote_worker.rs`) and its server
//! (`src/server/http/workers.rs`) spell it.

use http::HeaderValue;

/// The protocol to which the connection is upgraded.
pub(crate) const PROTOCOL: HeaderValue = HeaderValue::from_static("cx-worker");

/// The header with the number of callers above the run that the worker is for; without it there are none.
pub(crate) const DEPTH: &str = "cx-worker-depth";

/// The header of a request for a worker whose run is not there yet. Its run gets a permit when it has come.
pub(crate) const AHEAD: &str = "cx-worker-ahead";

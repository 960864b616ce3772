//! HTTP requests of scripts: what they may ask for, which addresses they may reach, and the connections.
//! [`private`] finds addresses in the arguments of tools. [`response`], [`tls`] and [`media_type`] are for all HTTP of
//! cx.
//!
//! This module knows nothing of runs. `src/run/fetch.rs` decides about a script's calls of `fetch`, and passes in which
//! hosts a person has granted. A request goes through four steps: [`request`] checks what the script wrote,
//! [`connections`] checks the host, resolves it once and checks every address, connects to exactly those addresses, and
//! [`body`] bounds what comes back and decompresses it. A redirect goes through all of them again.

#[cfg(any(feature = "mcp", feature = "fetch", fuzzing))]
pub(crate) mod address;
#[cfg(feature = "fetch")]
pub(crate) mod body;
pub(crate) mod call;
#[cfg(feature = "fetch")]
pub(crate) mod connections;
#[cfg(feature = "fetch")]
mod gunzip;
#[cfg(feature = "fetch")]
pub(crate) mod head;
#[cfg(any(feature = "mcp", feature = "llm", feature = "http"))]
pub(crate) mod media_type;
#[cfg(any(feature = "mcp", feature = "fetch"))]
pub(crate) mod private;
#[cfg(feature = "fetch")]
pub(crate) mod request;
#[cfg(any(feature = "mcp", feature = "llm", feature = "fetch"))]
pub(crate) mod response;
#[cfg(any(feature = "mcp", feature = "llm", feature = "fetch"))]
pub(crate) mod tls;

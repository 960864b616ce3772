//! TypeScript: transpiled with swc and run in V8. This is the only module that uses deno_core, v8
//! and swc.
//!
//! [`engine::V8Engine`] creates isolates for the pool's worker threads. A run is transpiled and
//! executed on such a thread, and its isolate is dropped there.

pub(crate) mod engine;

mod call_sites;
mod host_calls;
mod instead;
mod isolate;
mod loader;
mod memory;
mod ops;
mod platform;
mod report;
mod stack_traces;
pub(crate) mod transpile;
mod uncaught;

pub(crate) use platform::V8_VERSION;
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) use platform::use_one_thread;

//! The V8 room: TypeScript in, an outcome out. The only place that names deno_core, v8 or swc.
//!
//! [`engine::V8Engine`] makes isolates for the pool's threads. A run is transpiled and executed there, and
//! the isolate is dropped on that thread.

pub(crate) mod engine;

mod host_calls;
mod isolate;
mod loader;
mod memory;
mod ops;
mod platform;
mod report;
pub(crate) mod transpile;

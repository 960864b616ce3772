//! The V8 room: TypeScript in, an outcome out. The only place that names deno_core, v8 or swc.
//!
//! [`pool::IsolatePool`] keeps threads, each with one warm [`isolate::Isolate`]. A run takes a
//! thread, is stripped and executed there, and the isolate is dropped on that thread. The
//! [`watchdog`] ends runs at their limits and answers in the thread's place if it never does.

pub(crate) mod pool;

mod door;
mod isolate;
mod loader;
mod memory;
mod ops;
mod platform;
mod report;
mod strip;
mod watchdog;

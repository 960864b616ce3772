//! The script engines and what they share: the worker pool, the watchdog, and the host functions
//! that a script can call.
//!
//! It owns the threads and the processes that execute scripts: `engines.rs` starts those of a language at its first run,
//! and they end with the executor. Whether a script may do what it asks for is decided in [`crate::run`], behind the
//! interface in `host.rs`.

#[cfg(not(all(feature = "typescript", feature = "python", feature = "process", target_os = "linux")))]
mod absent;
pub(crate) mod allocator;
pub(crate) mod backend;
pub(crate) mod compile;
pub(crate) mod engines;
pub(crate) mod failure;
mod fence;
pub(crate) mod hints;
pub(crate) mod host;
pub(crate) mod host_calls;
pub(crate) mod instance;
#[cfg(any(feature = "python", feature = "typescript"))]
mod mend;
pub(crate) mod pool;
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) mod process;
#[cfg(feature = "python")]
pub(crate) mod python;
pub(crate) mod resident;
pub(crate) mod stack;
pub(crate) mod stop;
#[cfg(any(feature = "python", feature = "typescript"))]
mod survey;
pub(crate) mod thread_root;
#[cfg(feature = "typescript")]
pub(crate) mod typescript;
pub(crate) mod watchdog;

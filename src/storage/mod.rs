//! Persistent data: files that only their owner can change, and the state of scripts.

pub(crate) mod files;
pub(crate) mod private;
pub(crate) mod scripts;
pub(crate) mod state;

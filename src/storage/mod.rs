//! What is kept: files that only their owner can change, the history of runs, and the state of scripts.

pub(crate) mod files;
pub(crate) mod state;

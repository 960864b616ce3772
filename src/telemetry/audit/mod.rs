//! The audit trail: records what scripts did, one event a line, in files that reveal later changes.
//!
//! [`ExecutorBuilder::audit`](crate::ExecutorBuilder::audit) switches it on. `docs/audit.md` lists the
//! events and says what a trail proves and what it does not.
//!
//! Each line contains the SHA-256 of the previous line, across all processes that write to the directory: they append
//! under one lock. A checkpoint is the number of lines and the last one's hash, signed. Editing, removing or reordering
//! lines breaks the chain; truncating the end contradicts a checkpoint. The owner of the directory and its key can
//! write another trail, which only a checkpoint that is stored elsewhere contradicts.

mod append;
mod canonical;
mod note;
mod open;
mod options;
mod queue;
mod read;
mod record;
mod records;
mod trail;
mod verify;

pub use append::write_checkpoint;
pub use options::{AuditOptions, AuditStatus};
pub use read::{AuditLine, AuditReader};
pub use trail::AuditTrail;
pub use verify::{AuditProblem, Verification, VerifyOptions, verify};

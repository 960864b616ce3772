//! What reading the tokens again has found.

/// What a [`TokenReader`](super::TokenReader) or a [`TenantReader`](super::TenantReader) has found.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenReading<T> {
    /// The tokens are those of the last call.
    Unchanged,
    /// The tokens differ from those of the last call: these are the new ones.
    Changed(T),
    /// The tokens cannot be read; the last ones stay in force. The message says why, and must not contain a token: it
    /// is in the log, in `health` and in the audit trail.
    Failed(String),
}

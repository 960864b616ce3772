//! Tests whose long form takes minutes: see `soak`, `soak-attackers` and `walk` in the Makefile.

/// Attacks of docs/threats.md, group LD, by number: load over a long time.
mod soak;
/// Attackers and honest clients share one server.
mod soak_attackers;
/// A walker over every function that a script can reach, with hostile receivers and arguments.
pub(crate) mod walk;

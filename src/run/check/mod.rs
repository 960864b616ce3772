//! The check of a script before it runs: which tools its text calls, and what is wrong with these
//! calls.
//!
//! An engine reads the text and makes a [`survey`]; [`judge`] compares it with the catalog, the
//! rules and the schemas; [`failed`] adds findings to the error of a run that has failed. A finding
//! is an error if no run of the script can succeed, else a warning. Only errors prevent a run, so
//! the survey records of each call whether every successful run has to make it.

mod budget;
pub(crate) mod failed;
mod judge;
mod literal;
mod look_up;
mod refusal;
pub(crate) mod survey;

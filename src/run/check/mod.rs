//! The check of a script before it runs: what its text says that it will call, and what is wrong with that.
//!
//! An engine reads the text and makes a [`survey`]; [`judge`] compares it with the catalog, the rules and the
//! schemas; [`failed`] adds what it finds to the error of a run that has failed. A finding is an error if a run of the script cannot succeed, and a warning otherwise. Only errors
//! keep a script from running, so the survey says of each call whether every run that succeeds has to make it.

pub(crate) mod failed;
pub(crate) mod finding;
mod judge;
pub(crate) mod survey;

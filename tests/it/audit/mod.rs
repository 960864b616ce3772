//! The audit trail, from outside.

mod command;
mod kills;
mod models;
mod requests;
mod required;

//! The audit trail, seen from outside.

mod command;
mod events;
mod kills;
mod models;
mod requests;
mod required;

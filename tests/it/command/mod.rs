//! The command, its configuration files, and what its documents say about it.

/// The command, as a process.
mod cli;
/// Configuration files as the command finds, trusts and shows them.
mod config;
/// The demo.
mod examples;
/// What differs between machines: language, time zone, directories, disks.
mod machine;
/// How clients are told about the server.
mod setup;

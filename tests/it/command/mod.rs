//! The command, its configuration files, and what its documents say about it.

/// The command, as a process.
mod cli;
/// Configuration files as the command finds, trusts and shows them.
mod config;
/// The demo.
mod examples;
/// What differs between machines: language, time zone, directories, disks.
mod machine;
/// What is printed, and what becomes of it.
mod output;
/// How clients are told about the server.
mod setup;
/// Processes with little memory, few threads or descriptors, and small files.
mod small_machines;
/// What the command does at a terminal.
mod terminal;
/// What is known of servers and tools, also of those that are not well.
mod tools;

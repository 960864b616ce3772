//! The command, its configuration files, and what its documents say about it.

/// Scripts that are checked, and run again when they change.
mod check;
/// The command, as a process.
mod cli;
/// What `cx setup` makes of the files of clients.
mod clients;
/// Clocks that are far off.
mod clocks;
/// Scripts for shells and pages for `man`, by the programs that read them.
mod completions;
/// Configuration files as the command finds, trusts and shows them.
mod config;
/// What `cx doctor` finds, and how it is to be mended.
mod doctor;
/// The demo.
mod examples;
/// A home directory for the command.
mod home;
/// Language models that environment variables configure.
mod llm;
/// What differs between machines: language, time zone, directories, disks.
mod machine;
/// What is printed, and what becomes of it.
mod output;
/// A prompt whose inputs are scripts.
mod repl;
/// Recordings of runs, and replays without servers.
mod replay;
/// Saved scripts.
mod scripts;
/// How clients are told about the server.
mod setup;
/// Processes with little memory, few threads or descriptors, and small files.
mod small_machines;
/// What `cx sync` refreshes, and what runs it every day.
mod sync;
/// What the command does at a terminal.
mod terminal;
/// What is known of servers and tools, also of those that are not well.
mod tools;
/// `cx top`, once and at a terminal.
mod top;
/// Traces of runs, as pages and for Perfetto.
mod trace;
/// Declarations for editors and type checkers.
mod types;
/// The page of runs, servers and approvals, and of one run.
mod ui;

//! The command, its configuration files, and what its documents say about it.

/// Arguments that would be ignored, and what commands print as JSON.
mod arguments;
/// Scripts that are checked, and run again when they change.
mod check;
/// The command, as a process.
mod cli;
/// How `cx setup` changes the files of clients.
mod clients;
/// Clocks that are far off.
mod clocks;
/// Scripts for shells and pages for `man`, by the programs that read them.
mod completions;
/// Configuration files as the command finds, trusts and shows them.
mod config;
/// The configuration in effect, as it is shown.
mod config_shown;
/// What `cx doctor` finds, and the remedies that it names.
mod doctor;
/// The demo.
mod examples;
/// What a person grants to scripts, and what the environment does not add.
mod grants;
/// A home directory for the command.
mod home;
/// Language models that environment variables configure.
mod llm;
/// What differs between machines: language, time zone, directories, disks.
mod machine;
/// Output of the command, and its readers.
mod output;
/// Pipes and endless files in the place of others.
mod pipes;
/// A prompt whose inputs are scripts.
mod repl;
/// Recordings of runs, and replays without servers.
mod replay;
/// Saved scripts.
mod scripts;
/// How clients are configured for the server.
mod setup;
/// How `cx setup` connects to the servers that it finds.
mod setup_servers;
/// Processes with little memory, few threads or descriptors, and small files.
mod small_machines;
/// What `cx sync` refreshes, and what runs it every day.
mod sync;
/// What the command does at a terminal.
mod terminal;
/// What is known of servers and tools, also of failing ones.
mod tools;
/// `cx top`, once and at a terminal.
mod top;
/// Traces of runs, as pages and for Perfetto.
mod trace;
/// Declarations for editors and type checkers.
mod types;
/// The page of runs, servers and approvals, and of one run.
mod ui;

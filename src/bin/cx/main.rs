//! The `cx` command.

mod allocator;
mod args;
mod audit;
mod audit_watch;
mod auth;
mod browser;
mod cache;
mod check;
mod completions;
mod config;
mod confirm;
mod console;
mod delivery;
mod diagnostic;
mod doctor;
mod document;
mod dry_run;
mod exit;
mod http;
mod known;
mod logging;
mod metrics;
mod notify;
mod options;
mod output;
mod pins;
mod process;
mod progress;
mod prometheus;
mod question;
mod reading;
mod reload;
mod repl;
mod replay;
mod rules;
mod run;
mod run_id;
mod running;
mod runs;
mod savings;
mod scripts;
mod secret;
mod serve;
mod setup;
mod setup_command;
mod signals;
mod source;
mod state;
mod stderr;
mod sync;
mod telemetry;
mod terminal;
mod text;
mod tokens_file;
mod tools;
mod top;
mod trace;
mod trail_runs;
mod trust;
mod type_problem;
mod typecheck;
mod types;
mod ui;
mod watch;
mod worker;
mod writer;

use std::env;
use std::time::Duration;

use clap::Parser as _;

use crate::args::{Arguments, Command};
use crate::exit::ExitStatus;
use crate::output::OutputError;
use crate::writer::Stream;

/// How long the last output may take if its reader does not read. A completed run has already waited for its reader.
const MAX_FLUSH: Duration = Duration::from_millis(200);

fn main() {
    // Does not return in a worker process.
    cx::worker_process();
    allocator::limit_arenas();
    process::survive_file_size_limit();
    exit::exit(process::with_memory(command).unwrap_or_else(|error| finish(Err(error.into()))))
}

/// Runs the command that the arguments select.
fn command() -> ExitStatus {
    finish(match Arguments::try_parse() {
        Ok(arguments) => perform(arguments.command),
        Err(error) => return_usage(&error),
    })
}

/// Reports why a command failed, and waits for its output.
fn finish(status: anyhow::Result<ExitStatus>) -> ExitStatus {
    let mut status = status.unwrap_or_else(|error| diagnostic::report(&error, wants_json()));
    // Output that a run printed before it failed, and the reason of the failure.
    if let Some(error) = writer::flush(MAX_FLUSH) {
        status = diagnostic::report(&OutputError::from(error).into(), false);
        writer::flush(MAX_FLUSH);
    }
    status
}

fn perform(command: Command) -> anyhow::Result<ExitStatus> {
    match command {
        Command::Setup(arguments) => setup_command::run(&arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Repl(arguments) => repl::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Worker(arguments) => worker::run(&arguments),
        Command::Tools(command) => tools::run(command),
        Command::Types(arguments) => types::run(&arguments),
        Command::Sync(arguments) => sync::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Cache(command) => cache::run(&command),
        Command::State(command) => state::run(command),
        Command::Auth(arguments) => auth::run(arguments),
        Command::Config(command) => config::run(command),
        Command::Audit(arguments) => audit::run(arguments),
        Command::Runs(arguments) => runs::run(&arguments),
        Command::Ui(arguments) => ui::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Scripts(command) => scripts::run(command),
        Command::Trust(arguments) => trust::run(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => completions::man(&arguments),
    }
}

/// Prints the output of the argument parser: an error, or `--help` and `--version`.
fn return_usage(error: &clap::Error) -> anyhow::Result<ExitStatus> {
    if error.use_stderr() && wants_json() {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        // The rest is the usage, or where to find it, for people.
        let end =
            ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|start| text.find(start)).min();
        let message = text[..end.unwrap_or(text.len())].trim();
        return Ok(diagnostic::print_failure(diagnostic::INVALID_ARGUMENTS, message, None));
    }
    let render = |stream| match terminal::has_color(stream) {
        true => error.render().ansi().to_string(),
        false => error.render().to_string(),
    };
    if error.use_stderr() {
        diagnostic::print_usage(&render(Stream::Stderr));
        return Ok(ExitStatus::Usage);
    }
    output::print_help(&render(Stream::Stdout))?;
    Ok(ExitStatus::Success)
}

/// Whether `--json` is among the arguments, even if they cannot be parsed.
fn wants_json() -> bool {
    env::args_os().skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

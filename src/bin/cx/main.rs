//! The `cx` command.

mod allocator;
mod args;
mod auth;
mod cache;
mod config;
mod console;
mod diagnostic;
mod exit;
mod http;
mod logging;
mod output;
mod pins;
mod question;
mod reload;
mod run;
mod serve;
mod setup;
mod signals;
mod state;
mod text;
mod tools;
mod trust;
mod types;

use clap::Parser as _;

use crate::args::{Arguments, Command};
use crate::exit::ExitStatus;

fn main() {
    allocator::limit_arenas();
    let status = match Arguments::try_parse() {
        Ok(arguments) => match arguments.command {
            Command::Run(arguments) => run::run(arguments),
            Command::Serve(arguments) => serve::run(arguments),
            Command::Tools(command) => tools::run(command),
            Command::Types(arguments) => types::run(&arguments),
            Command::Cache(command) => cache::run(&command),
            Command::State(command) => state::run(command),
            Command::Auth(arguments) => auth::run(arguments),
            Command::Config(command) => config::run(command),
            Command::Trust(arguments) => trust::run(&arguments),
        },
        Err(error) => {
            // `--help` and `--version` also arrive here and are not errors.
            let status = if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Success };
            let _ = error.print();
            Ok(status)
        }
    };
    exit::exit(status.unwrap_or_else(|error| {
        diagnostic::print_chain(&error);
        ExitStatus::Usage
    }))
}

//! The `cx` command.

mod args;
mod auth;
mod config;
mod console;
mod diagnostic;
mod exit;
mod http;
mod output;
mod run;
mod serve;
mod state;
mod tools;
mod trust;

use clap::Parser as _;

use crate::args::{Arguments, Command};
use crate::exit::ExitStatus;

fn main() {
    let status = match Arguments::try_parse() {
        Ok(arguments) => match arguments.command {
            Command::Run(arguments) => run::run(arguments),
            Command::Serve(arguments) => serve::run(arguments),
            Command::Tools(command) => tools::run(command),
            Command::Types(arguments) => tools::types(&arguments),
            Command::Cache(command) => tools::cache(&command),
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

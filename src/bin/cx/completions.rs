//! `cx completions` and `cx man`: generated from the same description of the arguments as `--help`.

use std::fs;
use std::io;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::generate;
use clap_mangen::Man;

use crate::args::{Arguments, CompletionsArguments, ManArguments};
use crate::document;
use crate::exit::ExitStatus;
use crate::output::print_text;
use crate::text::shown_path;

/// Prints a shell's completion script.
///
/// # Errors
///
/// If stdout cannot be written.
pub(crate) fn completions(arguments: &CompletionsArguments) -> anyhow::Result<ExitStatus> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut Arguments::command(), "cx", &mut script);
    print_text(&String::from_utf8(script).context("failed to make the script")?)?;
    Ok(ExitStatus::Success)
}

/// Prints the manual page of `cx`, or writes the pages of all subcommands into a directory.
///
/// # Errors
///
/// If they cannot be written.
pub(crate) fn man(arguments: &ManArguments) -> anyhow::Result<ExitStatus> {
    // The title of a page has cx's own version only.
    let mut command = without_help(Arguments::command().long_version(env!("CARGO_PKG_VERSION")));
    command.build();
    let Some(directory) = &arguments.out else {
        print_text(&page(command).context("failed to make the page")?)?;
        return Ok(ExitStatus::Success);
    };
    fs::create_dir_all(directory).with_context(|| format!("failed to make `{}`", shown_path(directory)))?;
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        let path = directory.join(format!("{name}.1"));
        let page = page(command).with_context(|| format!("failed to make the page of `{name}`"))?;
        document::check_regular(&path)
            .and_then(|()| document::replace(&path, &page))
            .with_context(|| format!("failed to write `{}`", shown_path(&path)))?;
    }
    Ok(ExitStatus::Success)
}

/// Removes the subcommand `help` of each command, whose pages would be empty.
fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn page(command: clap::Command) -> io::Result<String> {
    let mut page = Vec::new();
    // For a subcommand the default would be its name without a version.
    Man::new(command).source(concat!("cx ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    String::from_utf8(page).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

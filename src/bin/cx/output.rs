//! The only module that writes to stdout.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;

use cx::{Json, LogLevel, Output};
use serde::Deserialize;
use serde_json::Value;

use crate::diagnostic::print_note;
use crate::text::printable;

/// Prints a piece of a script's output as it is produced.
///
/// # Errors
///
/// If stdout is closed: its reader wants no more output.
pub(crate) fn print_entry(entry: &Output) -> io::Result<()> {
    match entry {
        Output::Log { level: LogLevel::Warn | LogLevel::Error, text } => {
            print_note(text);
            Ok(())
        }
        Output::Log { text, .. } => print_line(&printable(text)),
        Output::Emit(block) => print_line(&printable(&emitted_text(block))),
    }
}

/// Prints the script's value: indented on a terminal, compact otherwise.
///
/// # Errors
///
/// If stdout is closed.
pub(crate) fn print_value(value: &Json) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return print_line(value.text());
    }
    match value.value() {
        // For a script that returns nothing, nothing is printed.
        Some(Value::Null) => Ok(()),
        Some(value) => print_line(&printable(&format!("{value:#}"))),
        // Too many values for an indented form to be readable.
        None => print_line(&printable(value.text())),
    }
}

/// Prints the result of a script as one JSON text.
///
/// # Errors
///
/// If stdout is closed.
pub(crate) fn print_result(json: &str) -> io::Result<()> {
    print_line(json)
}

/// Prints what a command has to say, as readable lines. A closed stdout is no failure: its reader
/// wants no more output.
pub(crate) fn print_text(text: &str) {
    let _closed = print_line(printable(text).trim_end_matches('\n'));
}

/// Prints what a command has to say, as compact JSON. A closed stdout is no failure.
pub(crate) fn print_json(json: &str) {
    let _closed = print_line(json);
}

fn print_line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// Stdin and stdout for a protocol, without the standard library's buffers and locks, which the end
/// of the process would have to wait for.
///
/// # Errors
///
/// If one of them is closed.
pub(crate) fn pipes() -> io::Result<(tokio::fs::File, tokio::fs::File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((File::from(input).into(), File::from(output).into()))
}

/// The text of a text block; for other blocks a description of what they are.
fn emitted_text(block: &Json) -> String {
    /// The fields of a block that are shown; each may be missing.
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Shown {
        r#type: Option<String>,
        text: Option<String>,
        data: Option<String>,
        mime_type: Option<String>,
    }
    let Shown { r#type, text, data, mime_type } = block.deserialize().unwrap_or_default();
    if let Some(text) = text {
        return text;
    }
    let kind = r#type.unwrap_or_else(|| "block".to_owned());
    let bytes = data.map_or(0, |data| data.len() / 4 * 3);
    match mime_type {
        Some(mime_type) => format!("[{kind}: {mime_type}, {bytes} bytes]"),
        None => format!("[{kind}]"),
    }
}

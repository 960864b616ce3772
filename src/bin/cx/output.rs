//! The only writer of stdout.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;

use cx::{Json, LogLevel, Output};
use serde::Deserialize;
use serde_json::Value;

/// Prints a piece of a script's output as it comes.
///
/// # Errors
///
/// When stdout is closed: whoever read it has seen enough.
pub(crate) fn print_entry(entry: &Output) -> io::Result<()> {
    match entry {
        Output::Log { level: LogLevel::Warn | LogLevel::Error, text } => {
            // Nothing can be said about a closed stderr.
            let _ = writeln!(io::stderr().lock(), "{}", printable(text));
            Ok(())
        }
        Output::Log { text, .. } => print_line(&printable(text)),
        Output::Emit(block) => print_line(&printable(&emitted_text(block))),
    }
}

/// Prints the script's value: for people on a terminal, for programs elsewhere.
///
/// # Errors
///
/// When stdout is closed.
pub(crate) fn print_value(value: &Json) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return print_line(value.text());
    }
    match value.value() {
        // A script that returns nothing has said what it has to say.
        Some(Value::Null) => Ok(()),
        Some(value) => print_line(&printable(&format!("{value:#}"))),
        // Of so many values nobody reads an indented form.
        None => print_line(&printable(value.text())),
    }
}

/// Prints what a command has to say. That nobody listens is no failure: the work is done.
pub(crate) fn print_note(text: &str) {
    let _ = print_line(&printable(text));
}

/// Prints one compact JSON text.
///
/// # Errors
///
/// When stdout is closed.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    print_line(&value.to_string())
}

/// Prints what is one compact JSON text already.
///
/// # Errors
///
/// When stdout is closed.
pub(crate) fn print_json_text(text: &str) -> io::Result<()> {
    print_line(text)
}

/// Prints lines for people, without control characters.
///
/// # Errors
///
/// When stdout is closed.
pub(crate) fn print_text(text: &str) -> io::Result<()> {
    print_line(printable(text).trim_end_matches('\n'))
}

fn print_line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// Stdin and stdout as a protocol has them: no buffers and locks of the standard library's, which whoever ends the
/// process would have to wait for.
///
/// # Errors
///
/// When one of them is closed.
pub(crate) fn pipes() -> io::Result<(tokio::fs::File, tokio::fs::File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((File::from(input).into(), File::from(output).into()))
}

/// A text block's text, and of other blocks what they are.
fn emitted_text(block: &Json) -> String {
    /// What is shown of a block; all of it may be missing.
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

/// `text` without control characters that could move a terminal's cursor or change its title. They
/// are shown as escapes.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        // Bidirectional overrides reorder what is read.
        let hidden = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (character.is_control() && !matches!(character, '\n' | '\t')) || hidden {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

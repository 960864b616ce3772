//! Prints the output of commands to stdout. A failed write is an error, so that output is never lost silently.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use cx::{CancellationToken, Json, LogLevel, Output};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;

use crate::exit::ExitStatus;
use crate::process;
use crate::text::{counted, printable};
use crate::writer::{self, Stream, Writer};

/// Maximum bytes of a script's line that are escaped and queued at once.
const MAX_CHUNK: usize = 8 << 10;

/// Stdout could not be written.
#[derive(Debug)]
pub(crate) struct OutputError(io::Error);

impl OutputError {
    pub(crate) fn status(&self) -> ExitStatus {
        if self.is_closed_pipe() { ExitStatus::ClosedPipe } else { ExitStatus::Output }
    }

    /// Whether the reader has closed stdout, as `head` does. The reader caused it, so nothing is reported.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.0.kind() == ErrorKind::BrokenPipe
    }
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

/// The system's error is part of the message, so there is no source.
impl std::error::Error for OutputError {}

impl fmt::Display for OutputError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "failed to write to stdout: {}", self.0)
    }
}

/// Prints a piece of a script's output as it is produced. Waits while earlier output is not read,
/// until `cancel` is cancelled.
pub(crate) fn print_entry(writer: &Writer, entry: &Output, cancel: &CancellationToken) {
    let emitted;
    let (stream, text) = match entry {
        Output::Log { level: LogLevel::Warn | LogLevel::Error, text } => (Stream::Stderr, text),
        Output::Log { text, .. } => (Stream::Stdout, text),
        Output::Emit(block) => {
            emitted = emitted_text(block);
            (Stream::Stdout, &emitted)
        }
        // The library and the command have the same version.
        _ => return,
    };
    // In chunks: escaped text can be eight times as long as what the script printed.
    let mut rest = text.as_str();
    loop {
        let mut end = rest.floor_char_boundary(MAX_CHUNK);
        if end < rest.len() && rest.as_bytes().get(end) == Some(&b'\n') {
            // The two characters of a line terminator are not separated.
            end += 1;
        }
        let (chunk, more) = rest.split_at(end);
        let line_end = if more.is_empty() { "\n" } else { "" };
        let chunk = printable(&format!("{chunk}{line_end}"));
        if !writer.push_or_wait(stream, &chunk, cancel) {
            // A line of which no part was printed counts as not printed: the script ended there.
            if rest.len() < text.len() && stream == Stream::Stdout {
                writer.cut(rest.len());
            }
            return;
        }
        if more.is_empty() {
            return;
        }
        rest = more;
    }
}

/// Prints the script's value: indented on a terminal, compact otherwise. `null`, which a script that returns nothing
/// has, is printed only where something must be: not on a terminal, and not after the lines that the script has
/// printed, so that a file with them has nothing else.
///
/// # Errors
///
/// If stdout cannot be written.
pub(crate) fn print_value(value: &Json, has_printed: bool) -> Result<(), OutputError> {
    let is_terminal = io::stdout().is_terminal();
    if (is_terminal || has_printed) && value.text() == "null" {
        return Ok(());
    }
    if !is_terminal {
        return print_line(value.text());
    }
    match value.value() {
        Some(value) => print_line(&printable(&format!("{value:#}"))),
        // Too many values for an indented form to be readable.
        None => print_line(&printable(value.text())),
    }
}

/// Prints readable lines of a command.
///
/// # Errors
///
/// If stdout cannot be written.
pub(crate) fn print_text(text: &str) -> Result<(), OutputError> {
    print_line(printable(text).trim_end_matches('\n'))
}

/// Prints text for other programs: JSON, or lines of a table or file. On a terminal it is escaped, because it contains
/// names that scripts and servers chose.
///
/// # Errors
///
/// If stdout cannot be written.
pub(crate) fn print_json(json: &str) -> Result<(), OutputError> {
    if io::stdout().is_terminal() { print_line(&printable(json)) } else { print_line(json) }
}

/// Prints text that is complete and may have colors.
///
/// # Errors
///
/// If stdout cannot be written.
pub(crate) fn print_help(text: &str) -> Result<(), OutputError> {
    Ok(writer::write(Stream::Stdout, text)?)
}

fn print_line(text: &str) -> Result<(), OutputError> {
    Ok(writer::write(Stream::Stdout, &format!("{text}\n"))?)
}

/// Waits for this time, for a command that prints what happens.
///
/// # Errors
///
/// If the reader of stdout has closed it. Printing would notice that only when something happens.
pub(crate) fn wait_for(time: Duration) -> Result<(), OutputError> {
    let stdout = io::stdout();
    // The end of a reader is reported without being asked for.
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let wait = Timespec::try_from(time).ok();
    // A signal only makes the wait shorter.
    let _ready = poll(&mut polled, wait.as_ref());
    if polled[0].revents().is_empty() { Ok(()) } else { Err(io::Error::from(ErrorKind::BrokenPipe).into()) }
}

/// Stdin and stdout for a protocol, without the standard library's buffers and locks, which the exit of the process
/// would have to wait for.
///
/// # Errors
///
/// If one of them is closed.
pub(crate) fn pipes() -> io::Result<(tokio::fs::File, tokio::fs::File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    if process::had_no_stdout() {
        return Err(no_stdout());
    }
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((File::from(input).into(), File::from(output).into()))
}

/// The terminal at stdout, for a program that draws on the whole screen, without the standard library's buffer.
///
/// # Errors
///
/// If stdout is closed.
pub(crate) fn screen() -> io::Result<File> {
    if process::had_no_stdout() {
        return Err(no_stdout());
    }
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Not [`ErrorKind::BrokenPipe`], which means a reader that has read enough.
fn no_stdout() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "stdout is closed")
}

/// The text of a text block; for other blocks a description of what they are.
fn emitted_text(block: &Json) -> String {
    /// What the text of a block needs. Read alone: what else is in the block may be of any type.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct BlockText {
        r#type: Option<String>,
        text: Option<String>,
    }
    /// The other fields that are shown, of a block or of its resource; each may be missing.
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Shown {
        text: Option<String>,
        data: Option<String>,
        blob: Option<String>,
        uri: Option<String>,
        mime_type: Option<String>,
        resource: Option<Box<Self>>,
    }
    let BlockText { r#type, text } = block.deserialize().unwrap_or_default();
    if let Some(text) = text {
        return text;
    }
    let kind = r#type.unwrap_or_else(|| "block".to_owned());
    let mut shown: Shown = block.deserialize().unwrap_or_default();
    let Shown { text, data, blob, uri, mime_type, .. } = match shown.resource.take() {
        Some(resource) => *resource,
        None => shown,
    };
    let decoded = |data: String| data.trim_end_matches('=').len() * 3 / 4;
    let bytes = text.map(|text| text.len()).or_else(|| data.or(blob).map(decoded));
    let facts = [uri, mime_type, bytes.map(|bytes| counted(bytes, "byte"))];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    if facts.is_empty() { format!("[{kind}]") } else { format!("[{kind}: {}]", facts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_is_shown_as_its_text_or_as_what_it_is() {
        for (block, shown) in [
            (json!({ "type": "text", "text": "a" }), "a"),
            (json!({ "type": "text", "text": "a", "uri": 1, "data": null, "resource": [] }), "a"),
            (
                json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" }),
                "[image: image/png, 3 bytes]",
            ),
            (json!({ "type": "audio", "data": "iVBORw==" }), "[audio: 4 bytes]"),
            (json!({ "type": "audio", "data": "AQ==" }), "[audio: 1 byte]"),
            (json!({ "type": "image", "data": 1 }), "[image]"),
            (
                json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "abc" } }),
                "[resource: file:///a, 3 bytes]",
            ),
            (json!({ "type": 1 }), "[block]"),
        ] {
            let written = block.to_string();
            assert_eq!(emitted_text(&block.into()), shown, "{written}");
        }
    }
}

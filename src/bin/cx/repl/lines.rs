//! Inputs as plain lines: from a pipe or a file, or from a terminal without cursor movement.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use anyhow::{Context as _, ensure};
use cx::{CancellationToken, Language};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::pieces::GrowingInput;
use crate::writer::{self, Stream};

/// The result of reading an input.
pub(super) enum Typed {
    Input(String),
    /// Ctrl-C: the typed text is discarded.
    Dropped,
    /// The input has ended.
    End,
}

/// Reads inputs from stdin line by line. Nothing beyond the lines of an input is read before it is run, so that
/// approval prompts at the same terminal get their answers.
pub(super) struct PlainLines {
    language: Language,
    /// Maximum bytes of an input: those that a script may have.
    max_bytes: usize,
    /// Whether a user types, so that a prompt is shown.
    is_terminal: bool,
    /// The read in progress. It continues after Ctrl-C, because it cannot be stopped.
    reading: Option<JoinHandle<io::Result<Option<Vec<u8>>>>>,
}

impl PlainLines {
    pub(super) fn new(language: Language, max_bytes: usize) -> Self {
        Self { language, max_bytes, is_terminal: io::stdin().is_terminal(), reading: None }
    }

    pub(super) fn has_prompt(&self) -> bool {
        self.is_terminal
    }

    /// Reads the next input, which continues on the next line while a bracket or text is open.
    ///
    /// # Errors
    ///
    /// If stdin cannot be read or is not UTF-8, or the input is longer than a script may be.
    pub(super) async fn read(&mut self, caret: &str, gone: &CancellationToken) -> anyhow::Result<Typed> {
        // Created for each input, so that an interrupt during a script does not affect the prompt.
        let mut interrupt = signal(SignalKind::interrupt()).context("failed to watch for interrupts")?;
        let mut input = String::new();
        let mut growing = GrowingInput::new(self.language);
        loop {
            if self.is_terminal {
                let prompt = if input.is_empty() { format!("{caret}> ") } else { "... ".to_owned() };
                writer::write(Stream::Stderr, &prompt).context("failed to write the prompt")?;
            }
            let max_bytes = self.max_bytes;
            let reading =
                self.reading.get_or_insert_with(|| tokio::task::spawn_blocking(move || read_line(max_bytes)));
            let line = tokio::select! {
                line = reading => line.context("failed to read from stdin")?,
                _ = interrupt.recv() => {
                    // The terminal has shown `^C`.
                    let _closed = writer::write(Stream::Stderr, "\n");
                    return Ok(if self.is_terminal { Typed::Dropped } else { Typed::End });
                }
                () = gone.cancelled() => return Ok(Typed::End),
            };
            self.reading = None;
            let Some(line) = line.context("failed to read from stdin")? else {
                if self.is_terminal {
                    let _closed = writer::write(Stream::Stderr, "\n");
                }
                // An unfinished input at the end is run, so that its error is reported.
                return Ok(if input.trim().is_empty() { Typed::End } else { Typed::Input(input) });
            };
            ensure!(
                input.len() + line.len() <= max_bytes,
                "an input on stdin is longer than {max_bytes} bytes, the most that a script may have \
                 (`limits.maxSourceBytes`)"
            );
            let line = String::from_utf8(line).context("failed to read from stdin")?;
            if !input.is_empty() {
                input.push('\n');
            }
            input.push_str(&line);
            if input.starts_with(':') || !growing.goes_on(&input) {
                return Ok(Typed::Input(input));
            }
        }
    }
}

/// One line without its end; `None` at the end of stdin. Of a line that is longer than `max_bytes` only the beginning
/// is read, which is longer too.
fn read_line(max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    // Two bytes more, for the end of a line of the maximum length.
    let max_read = (max_bytes as u64).saturating_add(2);
    if io::stdin().lock().take(max_read).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    while line.last().is_some_and(|last| b"\r\n".contains(last)) {
        line.pop();
    }
    Ok(Some(line))
}

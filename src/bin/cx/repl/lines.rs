//! Inputs as plain lines: from a pipe or a file, or from a terminal without cursor movement.

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use cx::{CancellationToken, Language};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::pieces;
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
    /// Whether a user types, so that a prompt is shown.
    is_terminal: bool,
    /// The read in progress. It continues after Ctrl-C, because it cannot be stopped.
    reading: Option<JoinHandle<io::Result<Option<String>>>>,
}

impl PlainLines {
    pub(super) fn new(language: Language) -> Self {
        Self { language, is_terminal: io::stdin().is_terminal(), reading: None }
    }

    pub(super) fn has_prompt(&self) -> bool {
        self.is_terminal
    }

    /// Reads the next input, which continues on the next line while a bracket or text is open.
    ///
    /// # Errors
    ///
    /// If stdin cannot be read.
    pub(super) async fn read(&mut self, caret: &str, gone: &CancellationToken) -> anyhow::Result<Typed> {
        // Created for each input, so that an interrupt during a script does not affect the prompt.
        let mut interrupt = signal(SignalKind::interrupt()).context("failed to watch for interrupts")?;
        let mut input = String::new();
        loop {
            if self.is_terminal {
                let prompt = if input.is_empty() { format!("{caret}> ") } else { "... ".to_owned() };
                writer::write(Stream::Stderr, &prompt).context("failed to write the prompt")?;
            }
            let reading = self.reading.get_or_insert_with(|| tokio::task::spawn_blocking(read_line));
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
            if !input.is_empty() {
                input.push('\n');
            }
            input.push_str(&line);
            if input.starts_with(':') || !pieces::goes_on(self.language, &input) {
                return Ok(Typed::Input(input));
            }
        }
    }
}

/// One line without its end; `None` at the end of stdin.
fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
}

//! Inputs as plain lines: from a pipe or a file, and at a terminal that has no cursor to move.

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use cx::{CancellationToken, Language};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::pieces;
use crate::writer::{self, Stream};

/// What was read.
pub(super) enum Typed {
    Input(String),
    /// Ctrl-C: what was typed so far does not count.
    Dropped,
    /// There is no more.
    End,
}

/// Reads inputs from stdin line by line. Nothing but the lines of an input is read before it is run, so that
/// approval prompts at the same terminal get their answers.
pub(super) struct PlainLines {
    language: Language,
    /// Whether a user types: then there is a prompt.
    is_terminal: bool,
    /// The line that is being read. It goes on being read after Ctrl-C, because nothing can stop that.
    reading: Option<JoinHandle<io::Result<Option<String>>>>,
}

impl PlainLines {
    pub(super) fn new(language: Language) -> Self {
        Self { language, is_terminal: io::stdin().is_terminal(), reading: None }
    }

    pub(super) fn has_prompt(&self) -> bool {
        self.is_terminal
    }

    /// Reads the next input, which goes on in the next line while something is open.
    ///
    /// # Errors
    ///
    /// If stdin cannot be read.
    pub(super) async fn read(&mut self, caret: &str, gone: &CancellationToken) -> anyhow::Result<Typed> {
        // Made anew: an interrupt of a script is none of the prompt.
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
                // What is open at the end has its error as a script.
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

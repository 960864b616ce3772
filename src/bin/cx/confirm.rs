//! Confirmation at the terminal, for commands that need one.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use anyhow::{Context as _, bail};
use rustix::termios::{QueueSelector, tcflush};

use crate::question::is_yes;
use crate::writer::{self, Stream};

/// Asks a yes-or-no question. Any answer but yes, and no answer, count as no.
///
/// # Errors
///
/// If stdin is not a terminal. The message then uses `without` to say what `--yes` does.
pub(crate) fn confirm(question: &str, without: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("cannot ask for confirmation, because stdin is not a terminal; --yes {without} without it");
    }
    writer::write(Stream::Stderr, &format!("{question} [y/N] ")).context("failed to ask")?;
    // Input typed before the question was shown is not an answer to it.
    tcflush(io::stdin(), QueueSelector::IFlush).context("failed to ask")?;
    let mut answer = String::new();
    // Users do not type more than a word.
    io::stdin().lock().take(100).read_line(&mut answer).context("failed to read the answer")?;
    Ok(is_yes(&answer))
}

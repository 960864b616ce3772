//! Capabilities of the terminal: colors and width; and whether it is this command's now.

use std::env;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;

use anstream::{AutoStream, ColorChoice};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use crate::writer::Stream;

/// Minimum width. Smaller ones are ignored, because a terminal without a user can report any width.
const MIN_WIDTH: usize = 40;

/// Whether the stream takes colors: if it is a terminal other than `TERM=dumb`, unless `NO_COLOR` is
/// set or `CLICOLOR` is 0; always if `CLICOLOR_FORCE` is set.
pub(crate) fn has_color(stream: Stream) -> bool {
    let choice = match stream {
        Stream::Stdout => AutoStream::choice(&io::stdout()),
        Stream::Stderr => AutoStream::choice(&io::stderr()),
    };
    choice != ColorChoice::Never
}

/// Whether stdin is a terminal, so that keys can be read.
pub(crate) fn has_input() -> bool {
    io::stdin().is_terminal()
}

/// Whether the command is interactive: stdin and stdout are terminals.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether a shell has the command in the background of the terminal at stdin. Who changes a terminal there is stopped
/// by the system, whole processes at once, and stopped again after each `SIGCONT`.
pub(crate) fn is_in_background() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground != getpgrp())
}

/// Whether programs can move the cursor of this terminal, which an editor or a question with a list needs.
#[expect(
    clippy::disallowed_methods,
    reason = "a variable of the terminal's, which is no configuration of cx"
)]
pub(crate) fn moves_cursor() -> bool {
    env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Whether a temporary line may be shown on stderr: only if the terminal supports escape sequences.
pub(crate) fn shows_progress() -> bool {
    io::stderr().is_terminal() && has_color(Stream::Stderr)
}

/// The width of the stream's terminal in columns; `None` if it is not a terminal.
pub(crate) fn width(stream: Stream) -> Option<usize> {
    let size = match stream {
        Stream::Stdout => tcgetwinsize(io::stdout().as_fd()),
        Stream::Stderr => tcgetwinsize(io::stderr().as_fd()),
    };
    let columns = usize::from(size.ok()?.ws_col);
    (columns > 0).then(|| columns.max(MIN_WIDTH))
}

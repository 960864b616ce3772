//! Shows on one temporary line of stderr what a command is waiting for.

use std::time::Duration;

use cx::text::one_line;
use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal;

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Maximum number of servers that are named.
const MAX_NAMES: usize = 4;

/// A line that shows what the command is waiting for, and for how long. Nothing is shown if stderr is not a terminal,
/// or a terminal without colors. Dropping it removes the line.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Shows the line.
    pub(crate) fn start(message: impl Into<String>) -> Self {
        if !terminal::shows_progress() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(message.into());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Shows that these servers are asked for their tools.
    pub(crate) fn asking(servers: &[String]) -> Self {
        let names: Vec<String> =
            servers.iter().take(MAX_NAMES).map(|name| format!("`{}`", one_line(name))).collect();
        let more = match servers.len().saturating_sub(MAX_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Self::start(format!("asking {}{more} for their tools", names.join(", ")))
    }

    /// Replaces the text of the line.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.0.set_message(message.into());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

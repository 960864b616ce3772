//! What is being waited for, on one line of stderr that goes away.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// A line that says what is being waited for, and for how long already. Nothing is shown if stderr is no
/// terminal. Dropping it removes the line.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Shows the line.
    pub(crate) fn start(message: impl Into<String>) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(message.into());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Replaces what the line says.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.0.set_message(message.into());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

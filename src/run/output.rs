//! Output of a run while it is running: printed lines, content blocks and progress.

use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::errors::over;
use crate::run::ledger::Logged;
use crate::run::observer::RunEvent;
use crate::run::result::{LogLevel, Output};
use crate::text;
use crate::tools::{Progress, ToolError, ToolErrorCode};

/// Maximum characters of the message of a progress report.
const MAX_PROGRESS_MESSAGE: usize = 1_000;

impl ExecutionContext {
    /// Whether the script has printed or emitted anything.
    pub(crate) fn has_output(&self) -> bool {
        self.ledger.lock().has_output()
    }

    /// Prints a line of the host about the call that it is answering.
    pub(super) fn log_for_call(&self, level: LogLevel, text: String) {
        let text = match self.tape() {
            Some(tape) => tape.defer_line(level, text),
            None => Some(text),
        };
        if let Some(text) = text {
            self.log(level, text);
        }
    }

    /// Stores as much of a printed line as the output limit allows. The output listener gets the whole line, the
    /// listener of kept output the stored part.
    pub(crate) fn log(&self, level: LogLevel, text: String) {
        if self.tape().is_some_and(|tape| tape.is_stopped()) {
            return;
        }
        // The ledger is not locked while a listener runs.
        let logged = self.ledger.lock().log(level, &text, &self.limits());
        if logged == Logged::Over {
            return;
        }
        let mut entry = Output::Log { level, text };
        if let Some(listener) = &self.script.on_output {
            self.listening.call(|| listener(&entry, &self.cancel));
        }
        if let (Logged::Kept(bytes), Output::Log { text, .. }) = (logged, &entry) {
            self.observation().emit(|| RunEvent::Printed { level: Some(level), text: &text[..bytes] });
        }
        if let (Some(listener), Logged::Kept(bytes), Output::Log { text, .. }) =
            (&self.script.on_kept_output, logged, &mut entry)
        {
            text.truncate(bytes);
            self.listening.call(|| listener(&entry));
        }
    }

    /// Passes a progress report of the script to the listener.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` for negative numbers, infinities and NaN.
    pub(crate) fn report(&self, mut report: Progress) -> Result<(), ToolError> {
        let is_amount = |number: f64| number.is_finite() && number >= 0.0;
        if !is_amount(report.progress) || !report.total.is_none_or(is_amount) {
            let message = "progress: `done` and `total` must be numbers from 0 on";
            return Err(ToolError::new(ToolErrorCode::InvalidArguments, message));
        }
        let Some(listener) = &self.script.on_report else { return Ok(()) };
        if let Some(message) = &mut report.message {
            message.truncate(text::start(message, MAX_PROGRESS_MESSAGE).len());
        }
        {
            let mut ledger = self.ledger.lock();
            if ledger.is_over() {
                return Err(over());
            }
            report.progress = ledger.advance(report.progress);
        }
        self.listening.call(|| listener(&report));
        Ok(())
    }

    /// Stores a content block and passes it to the listeners.
    ///
    /// # Errors
    ///
    /// `ResultTooLarge` if all blocks together are larger than one result may be.
    pub(crate) fn emit(&self, block: Json) -> Result<(), ToolError> {
        {
            let mut ledger = self.ledger.lock();
            if ledger.is_over() {
                return Err(over());
            }
            ledger.emit(block.clone(), &self.limits())?;
        }
        self.observation().emit(|| RunEvent::Printed { level: None, text: block.text() });
        let entry = Output::Emit(block);
        if let Some(listener) = &self.script.on_output {
            self.listening.call(|| listener(&entry, &self.cancel));
        }
        if let Some(listener) = &self.script.on_kept_output {
            self.listening.call(|| listener(&entry));
        }
        Ok(())
    }
}

//! Describes a recording as text.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Delivered, RecordedAnswer, Recording};
use crate::run::result::{Outcome, Output};
use crate::text::visible_preview;
use crate::tools::SCRIPTS_SERVER;

/// Maximum characters of a request and of a line of output.
const MAX_SHOWN: usize = 160;

/// Maximum number of calls that are listed.
const MAX_LISTED: usize = 1_000;

/// What a recording lacks of a Python script that used granted directories.
const UNRECORDED_FILES: &str = "what the script found in granted directories; a replay has no such directories, and goes another way there";

impl Recording {
    /// Describes the recording for people: the script, the calls in order with their times and sizes, the outcome, what
    /// was masked and what was left out. All text of the recording is escaped, so that an untrusted recording cannot
    /// control a terminal.
    pub fn explain(&self) -> String {
        let header = &self.header;
        let mut text = String::new();
        // Writing to a String never fails.
        let _ = write!(
            text,
            "{}: {} of {}, recorded by cx {}\n\n",
            preview(&header.name),
            counted(header.source.lines().count(), "line"),
            header.language.title(),
            preview(&header.version)
        );
        let input = header.input.as_ref().map_or(0, |input| input.text().len());
        let _ = writeln!(text, "Input: {}", if input == 0 { "none".to_owned() } else { bytes(input) });
        // The server of saved scripts is built in, not configured.
        let configured = header.servers.iter().filter(|name| ***name != *SCRIPTS_SERVER);
        let servers: Vec<String> = configured.map(|name| preview(name)).collect();
        let servers = if servers.is_empty() { "none".to_owned() } else { servers.join(", ") };
        let _ = writeln!(text, "Servers that the script could see: {servers}");
        let _ = writeln!(
            text,
            "Limits: {:?} wall time, {:?} CPU time, {} memory; time zone {}{}\n",
            header.limits.wall_time,
            header.limits.cpu_time,
            bytes(header.limits.memory_bytes),
            preview(&header.time_zone),
            if header.is_dry_run { "; a dry run" } else { "" }
        );
        self.explain_calls(&mut text);
        self.explain_rest(&mut text);
        text
    }

    fn explain_calls(&self, text: &mut String) {
        let _ = writeln!(text, "Calls, in the order in which the script made them: {}", self.calls.len());
        for (position, call) in self.calls.iter().enumerate().take(MAX_LISTED) {
            let answer = match &call.answer {
                RecordedAnswer::Given(Ok(answer)) => bytes(answer.len()),
                RecordedAnswer::Given(Err(error)) => format!("failed with {}", error.code),
                RecordedAnswer::None => "not answered before the run ended".to_owned(),
                RecordedAnswer::LeftOut(size) => format!("the answer of {} is left out", bytes(*size)),
            };
            let took = match &call.answer {
                RecordedAnswer::None => String::new(),
                _ => format!(" after {}", time(call.took)),
            };
            let _ = writeln!(
                text,
                "{:>4}. at {}: {} -> {answer}{took}{}",
                position + 1,
                time(call.made),
                preview(&call.request.to_string()),
                if call.is_masked { " (masked)" } else { "" }
            );
        }
        if self.calls.len() > MAX_LISTED {
            let _ = writeln!(text, "      and {} more", self.calls.len() - MAX_LISTED);
        }
    }

    fn explain_rest(&self, text: &mut String) {
        let timers = self.turns.iter().filter(|turn| matches!(turn.delivered, Delivered::Timer(_))).count();
        let readings: usize = self.turns.iter().map(|turn| turn.wall.len() + turn.monotonic.len()).sum();
        let _ = writeln!(
            text,
            "\nTimers that fired: {timers}; steps of the clocks that the script read: {readings}"
        );
        let end = &self.end;
        let printed = end.logs.iter().filter(|entry| matches!(entry, Output::Log { .. })).count();
        let _ = writeln!(text, "Output: {} printed, {} emitted", entries(printed), end.logs.len() - printed);
        let outcome = match &end.outcome {
            Outcome::Returned(value) => {
                format!("the value {}, {}", preview(value.text()), bytes(value.text().len()))
            }
            Outcome::Failed(error) => format!("the error {}", preview(&error.to_string())),
        };
        let _ = writeln!(text, "Outcome: {outcome}");
        let masked = self.calls.iter().filter(|call| call.is_masked).count();
        let _ = match self.header.masked {
            0 => writeln!(text, "Masked: nothing that looks like a secret was found"),
            1 => writeln!(
                text,
                "Masked: 1 secret, in {masked} of the calls; a replay uses the mask in its place"
            ),
            found => writeln!(
                text,
                "Masked: {found} different secrets, in {masked} of the calls; a replay uses the masks in their place"
            ),
        };
        if end.has_unrecorded_files {
            let _ = writeln!(text, "Not recorded: {UNRECORDED_FILES}");
        }
        if let Some(missing) = &end.missing {
            let _ =
                writeln!(text, "Left out, because the recording has reached a bound: {}", preview(missing));
        }
    }
}

/// Text of the recording, in one line of bounded length without control characters.
fn preview(text: &str) -> String {
    visible_preview(text, MAX_SHOWN)
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn entries(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn bytes(count: usize) -> String {
    match count {
        0..1024 => counted(count, "byte"),
        1024..1_048_576 => format!("{} KiB", count / 1024),
        _ => format!("{} MiB", count >> 20),
    }
}

fn time(time: Duration) -> String {
    let milliseconds = time.as_micros() as f64 / 1000.0;
    if milliseconds < 1000.0 {
        format!("{milliseconds:.1} ms")
    } else {
        format!("{:.2} s", milliseconds / 1000.0)
    }
}

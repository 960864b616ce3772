//! The last lines that a server process wrote to its stderr, for error messages.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::text::preview;

/// Bytes of a server's stderr that are kept: its tail, with room for a long stack trace.
const MAX_TAIL_BYTES: usize = 64 * 1024;

/// Bytes of the tail that an error message is made from.
const MAX_RENDERED_BYTES: usize = 4 * 1024;

/// Lines of an error message, and characters of each. They are for a model that has to tell its user
/// what is wrong; the developer of the server starts it by hand and sees everything.
const MAX_LINES: usize = 12;
const MAX_LINE_CHARACTERS: usize = 200;

/// Beginnings of lines that are unrelated to a failure.
const NOISE: &[&str] = &["npm notice", "npm warn", "npm WARN"];

/// The last bytes of a stream.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    /// How many bytes there were in all.
    pub(crate) total: u64,
}

impl Tail {
    fn push(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        let piece = &piece[piece.len().saturating_sub(MAX_TAIL_BYTES)..];
        let surplus = (self.bytes.len() + piece.len()).saturating_sub(MAX_TAIL_BYTES);
        self.bytes.drain(..surplus);
        self.bytes.extend(piece);
    }

    /// Renders the end of the tail as text for a terminal: without escape sequences and other control characters,
    /// without an incomplete first line, and without most of the noise.
    pub(crate) fn render(&self) -> String {
        let skipped = self.bytes.len().saturating_sub(MAX_RENDERED_BYTES);
        let bytes: Vec<u8> = self.bytes.iter().skip(skipped).copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = if skipped > 0 { text.split_once('\n').map_or(&*text, |(_, rest)| rest) } else { &*text };
        condensed(&without_controls(text)).trim().to_owned()
    }
}

/// Reads a stream to its end and keeps its tail.
pub(crate) async fn drain(mut stderr: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        tail.lock().push(&buffer[..length]);
    }
}

/// The last lines of a text that are not empty. The frames of a stack trace are only counted: the
/// error is before or after them.
fn condensed(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut frames = Frames::default();
    let is_noise = |line: &str| line.trim().is_empty() || NOISE.iter().any(|noise| line.starts_with(noise));
    for line in text.lines().filter(|line| !is_noise(line)) {
        if !frames.takes(line) {
            lines.extend(frames.end());
            lines.push(preview(line.trim_end(), MAX_LINE_CHARACTERS));
        }
    }
    lines.extend(frames.end());
    lines[lines.len().saturating_sub(MAX_LINES)..].join("\n")
}

/// The frames of a stack trace: `    at main (index.js:3:9)`, `  File "main.py", line 3` with the
/// source below it, `   4: core::panicking::panic`.
#[derive(Default)]
struct Frames {
    count: usize,
    /// Indentation of Python's last frame. Lines that are indented further belong to it.
    python: Option<usize>,
}

impl Frames {
    /// Whether the line is part of a frame. Counts it if it begins one.
    fn takes(&mut self, line: &str) -> bool {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let is_numbered = || {
            let number = content.trim_start_matches(|digit: char| digit.is_ascii_digit());
            number.len() < content.len() && number.starts_with(": ")
        };
        if indent > 0 && content.starts_with("File \"") {
            self.python = Some(indent);
        } else if self.python.is_some_and(|frame| indent > frame) {
            return true;
        } else if indent == 0 || !(content.starts_with("at ") || is_numbered()) {
            return false;
        }
        self.count += 1;
        true
    }

    /// Ends a stack trace. Returns the line that stands for it.
    fn end(&mut self) -> Option<String> {
        let count = std::mem::take(self).count;
        (count > 0).then(|| format!("    [{count} stack frame{}]", if count == 1 { "" } else { "s" }))
    }
}

fn without_controls(text: &str) -> String {
    let is_final = |next: &char| ('@'..='~').contains(next);
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // Colors and cursor movements: `ESC [`, parameters, and one final letter or sign.
            if characters.next_if_eq(&'[').is_some() {
                while characters.next_if(|next| !is_final(next) && !next.is_control()).is_some() {}
                characters.next_if(is_final);
            }
        } else if !character.is_control() || character == '\n' || character == '\t' {
            clean.push(character);
        }
    }
    clean
}

#[cfg(test)]
mod tests;

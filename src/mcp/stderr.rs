//! The last lines that a server process wrote to its stderr, for error messages.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of a server's stderr that are kept: its tail, with room for a long stack trace.
const MAX_TAIL_BYTES: usize = 64 * 1024;

/// Bytes of it that an error message contains.
const MAX_RENDERED_BYTES: usize = 4 * 1024;

/// The last bytes of a stream.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    fn push(&mut self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(MAX_TAIL_BYTES)..];
        let surplus = (self.bytes.len() + piece.len()).saturating_sub(MAX_TAIL_BYTES);
        self.bytes.drain(..surplus);
        self.bytes.extend(piece);
    }

    /// Renders the end of the tail as text for a terminal, without escape sequences and other
    /// control characters, and without an incomplete first line.
    pub(crate) fn render(&self) -> String {
        let skipped = self.bytes.len().saturating_sub(MAX_RENDERED_BYTES);
        let bytes: Vec<u8> = self.bytes.iter().skip(skipped).copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = if skipped > 0 { text.split_once('\n').map_or(&*text, |(_, rest)| rest) } else { &*text };
        without_controls(text).trim().to_owned()
    }
}

/// Reads a stream to its end and keeps its tail.
pub(crate) async fn drain(mut stderr: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        tail.lock().push(&buffer[..length]);
    }
}

/// Adds the stderr tail of a process to an error message.
pub(crate) fn with_stderr_tail(message: String, stderr_tail: &str) -> String {
    if stderr_tail.is_empty() { message } else { format!("{message}; the end of its stderr:\n{stderr_tail}") }
}

fn without_controls(text: &str) -> String {
    let is_final = |next: &char| ('@'..='~').contains(next);
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // Colours and cursor movements: `ESC [`, parameters, and one final letter or sign.
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

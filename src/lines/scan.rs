//! Finds the `id` of a message that cannot be parsed, so that its caller can be answered instead of
//! waiting until a timeout.

use serde_json::value::RawValue;

/// Maximum length in bytes of a key or id that is examined. Our ids are short numbers; clients' ids
/// are at most UUIDs.
const MAX_TEXT: usize = 64;

/// Nesting depth up to which the kinds of brackets are tracked. Deeper brackets are only counted.
const DEEPEST: usize = 256;

/// Reads a line in pieces and finds the top-level `id`, wherever it is in the line: before the
/// result, as most servers write it, or after it, as the TypeScript SDK does.
///
/// It knows only the JSON syntax of strings and nesting, so it tolerates most kinds of damage. Its
/// memory is constant.
#[derive(Default)]
pub(crate) struct IdScan {
    /// The open brackets, the first [`DEEPEST`] of them by kind.
    open: Vec<u8>,
    deeper: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the string has an escape of something else than the character after it, such as `\u0031`.
    is_encoded: bool,
    /// The string or number being read, if it is at the top level.
    text: Vec<u8>,
    /// Whether the last top-level string was `id` and only a colon has been seen since.
    expects_id: bool,
    /// Whether the last top-level string was `id`, before its colon.
    saw_id_key: bool,
    /// Whether `text` is a number that is the value of `id`.
    in_number: bool,
    found: Option<FoundId>,
}

/// An id as written in its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundId {
    text: String,
    in_quotes: bool,
}

impl FoundId {
    /// The id as a number, even if it is quoted, because some servers answer so.
    pub(crate) fn as_number(&self) -> Option<i64> {
        self.text.parse().ok()
    }

    /// The id as JSON, for the reply.
    pub(crate) fn to_json(&self) -> Option<Box<RawValue>> {
        let text = if self.in_quotes { serde_json::to_string(&self.text).ok()? } else { self.text.clone() };
        RawValue::from_string(text).ok()
    }
}

impl IdScan {
    /// The id in a complete line, if there is one.
    pub(crate) fn of_line(line: &[u8]) -> Option<FoundId> {
        let mut scan = Self::default();
        scan.feed(line);
        scan.found
    }

    /// The id, if it has been read completely.
    pub(crate) fn found(&self) -> Option<&FoundId> {
        self.found.as_ref()
    }

    /// Reads the next bytes of the line.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.found.is_some() {
                return;
            }
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.step_in_string(byte);
            return;
        }
        if self.in_number {
            if byte.is_ascii_digit() {
                self.keep(byte);
                return;
            }
            self.in_number = false;
            // `1.5`, `1e400` and `12a` begin with a number. The answer to that number would be another's.
            if matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
                self.take_id(false);
            } else {
                self.forget_key();
            }
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.is_encoded = false;
                self.text.clear();
            }
            b'{' | b'[' => {
                self.forget_key();
                if self.open.len() < DEEPEST {
                    self.open.push(byte);
                } else {
                    self.deeper = self.deeper.saturating_add(1);
                }
            }
            b'}' => self.close(b'{'),
            b']' => self.close(b'['),
            b':' => {
                self.expects_id = self.saw_id_key;
                self.saw_id_key = false;
            }
            b'0'..=b'9' if self.expects_id => {
                self.in_number = true;
                self.text.clear();
                self.keep(byte);
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.forget_key(),
        }
    }

    fn step_in_string(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
            self.is_encoded |= !matches!(byte, b'"' | b'\\' | b'/');
            self.keep(byte);
            return;
        }
        match byte {
            b'\\' => self.escaped = true,
            b'"' => {
                self.in_string = false;
                if self.expects_id && self.is_encoded {
                    self.forget_key();
                } else if self.expects_id {
                    self.take_id(true);
                } else {
                    self.saw_id_key = self.open.len() == 1 && self.text == b"id";
                }
            }
            _ => self.keep(byte),
        }
    }

    /// Closes the innermost bracket of this kind, and the brackets inside it that were left open by
    /// the damage. A bracket that closes nothing is part of the damage.
    fn close(&mut self, kind: u8) {
        self.forget_key();
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if let Some(position) = self.open.iter().rposition(|&open| open == kind) {
            self.open.truncate(position);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.open.len() == 1 && self.text.len() < MAX_TEXT {
            self.text.push(byte);
        }
    }

    fn take_id(&mut self, in_quotes: bool) {
        // A text that fills the buffer may have been truncated, and could then match another id.
        if self.text.len() < MAX_TEXT
            && let Ok(text) = std::str::from_utf8(&self.text)
        {
            self.found = Some(FoundId { text: text.to_owned(), in_quotes });
        }
        self.forget_key();
    }

    fn forget_key(&mut self) {
        self.saw_id_key = false;
        self.expects_id = false;
    }
}

#[cfg(test)]
mod tests;

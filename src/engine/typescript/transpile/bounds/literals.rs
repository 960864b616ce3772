//! Reads tokens that are not code: strings, templates, regular expressions, comments.

use super::frame::{Boundary, LINK, Previous};
use super::limits::SourceRefusal;
use super::scanner::{Scanner, is_word};

impl Scanner<'_> {
    /// As [`Scanner::skip_line`], for a line that may be a comment.
    pub(super) fn comment_line(&mut self) -> bool {
        self.skip_line();
        true
    }

    pub(super) fn skip_line(&mut self) {
        let rest = self.rest();
        let mut from = 0;
        // A line also ends at U+2028 and U+2029, whose encoding starts with this byte.
        while let Some(found) = rest[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r' | 0xe2)) {
            from += found;
            if rest[from] != 0xe2 || matches!(rest.get(from..from + 3), Some([_, 0x80, 0xa8 | 0xa9])) {
                self.at += from;
                return;
            }
            from += 1;
        }
        self.at += rest.len();
    }

    pub(super) fn skip_comment(&mut self) {
        let body = &self.source[self.at + 2..];
        let length = body.find("*/").map_or(body.len(), |end| end + 2);
        if body[..length].contains(['\n', '\r', '\u{2028}', '\u{2029}']) {
            self.line_ended();
        }
        self.at += 2 + length;
    }

    pub(super) fn string(&mut self, quote: u8) -> Result<(), SourceRefusal> {
        if self.boundary == Boundary::Newline {
            self.frame.end_statement();
        }
        self.operand_begins();
        if self.previous != Previous::Operator {
            self.add(LINK)?;
        }
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' if self.rest().starts_with(b"\\\r\n") => self.at += 3,
                b'\\' => self.at += 2,
                // The string is not closed on its line; the parser reports that.
                b'\n' | b'\r' => break,
                _ => {
                    self.at += 1;
                    if byte == quote {
                        break;
                    }
                }
            }
        }
        self.at = self.at.min(self.source.len());
        self.after(Previous::Operand);
        Ok(())
    }

    /// Reads the characters of a template up to its end or the next `${`.
    pub(super) fn template(&mut self) -> Result<(), SourceRefusal> {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    break;
                }
                b'$' if self.peek(1) == Some(b'{') => {
                    self.at += 2;
                    return self.push(b'`');
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.source.len());
        self.after(Previous::Operand);
        Ok(())
    }

    /// Returns whether the regular expression ends, which it must do on its line. The parser stops
    /// at one that does not.
    pub(super) fn regular_expression(&mut self) -> bool {
        let mut ends = false;
        self.operand_begins();
        self.at += 1;
        let mut in_class = false;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' | b'\r' => break,
                0xe2 if matches!(self.rest(), [_, 0x80, 0xa8 | 0xa9, ..]) => break,
                b'\\' if !matches!(self.peek(1), Some(b'\n' | b'\r')) => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    self.at += 1;
                    ends = true;
                    break;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.source.len());
        // Flags belong to the literal and are not a separate word.
        self.at += self.rest().iter().take_while(|byte| is_word(**byte)).count();
        self.after(Previous::Operand);
        ends
    }
}

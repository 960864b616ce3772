//! Weighs operators.

use super::frame::{Boundary, LEVEL, LINK, Previous};
use super::limits::SourceRefusal;
use super::scanner::Scanner;

impl Scanner<'_> {
    /// Returns whether the parser may skip the line here: HTML-like comments and merge conflict
    /// markers.
    pub(super) fn is_skipped_by_parser(&self, byte: u8) -> bool {
        match byte {
            b'<' if self.rest().starts_with(b"<!--") => true,
            b'<' => self.newline && self.rest().starts_with(b"<<<<<<<"),
            b'-' => self.rest().starts_with(b"-->"),
            b'=' => self.newline && self.rest().starts_with(b"======="),
            b'>' => self.newline && self.rest().starts_with(b">>>>>>>"),
            b'|' => self.newline && self.rest().starts_with(b"|||||||"),
            _ => false,
        }
    }

    pub(super) fn operator(&mut self, byte: u8) -> Result<(), SourceRefusal> {
        // The operator continues the statement unless a semicolon has ended it. A decorator starts
        // a statement.
        if byte == b'@' && self.boundary != Boundary::None {
            self.frame.end_statement();
        }
        self.operand_begins();
        let binary = matches!(self.previous, Previous::Operand);
        let doubled = self.peek(1) == Some(byte);
        let link = if binary { LINK } else { LEVEL };
        let before_object = match byte {
            b'=' => self.peek(1) != Some(b'>'),
            b':' => self.frame.is_object || self.frame.questions > 0,
            b'?' | b'&' | b'|' => true,
            _ => false,
        };
        let mut length = 1;
        let mut previous = Previous::Operator;
        let weight = match byte {
            b'.' => {
                previous = Previous::Dot;
                // `...` is one token, and what follows it is not a member name.
                if self.rest().starts_with(b"...") {
                    length = 3;
                    previous = Previous::Operator;
                }
                LINK
            }
            b'=' if self.peek(1) == Some(b'>') => {
                length = 2;
                // Between `?` and `:` it is parsed with and without the type before it.
                self.frame.doublings += u32::from(self.frame.conditional);
                // What a function type returns may be a conditional type, which is a part of the constraint then.
                self.frame.constraints = 0;
                self.frame.scopes += 1;
                LEVEL
            }
            // `==` and `===`; `<=` and `!=` below.
            b'=' if doubled => {
                length = if self.peek(2) == Some(b'=') { 3 } else { 2 };
                link
            }
            b'<' if self.peek(1) == Some(b'=') => {
                length = 2;
                link
            }
            b'?' if self.peek(1) == Some(b'.') => {
                length = 2;
                previous = Previous::Dot;
                LINK
            }
            b'?' | b'*' if doubled => {
                length = 2;
                if byte == b'?' { link } else { LEVEL }
            }
            b'?' => {
                self.frame.conditional = true;
                self.frame.questions += 1;
                LEVEL
            }
            b':' => {
                self.frame.returns |= self.after_parameters;
                self.colon();
                LEVEL
            }
            b'=' | b'~' => LEVEL,
            b'<' => {
                self.frame.angles += 1;
                self.frame.tried += 1;
                // A generic arrow function is tried before a type assertion.
                self.frame.doublings += u32::from(!binary);
                0
            }
            b'>' => {
                self.frame.tried = self.frame.tried.saturating_sub(1);
                if self.frame.angles > 0 {
                    self.frame.tallest = self.frame.tallest.max(self.frame.path());
                    self.frame.angles -= 1;
                }
                previous = Previous::Angle;
                LINK
            }
            b'+' | b'-' if doubled => {
                length = 2;
                previous = Previous::Either;
                link
            }
            b'!' if self.peek(1) == Some(b'=') => {
                length = if self.peek(2) == Some(b'=') { 3 } else { 2 };
                link
            }
            b'!' => {
                // After an operand it is a non-null assertion, and the operand continues.
                if self.previous != Previous::Operator && !self.newline {
                    previous = Previous::Either;
                }
                link
            }
            b'&' | b'|' if doubled => {
                length = 2;
                link
            }
            b'@' => {
                // The resolver visits decorators twice. Consecutive decorators do not nest in each
                // other.
                self.frame.decorated = true;
                0
            }
            b'#' => 0,
            _ => link,
        };
        // No type continues with these.
        if matches!(byte, b'&' | b'|' | b'?' | b'=' if doubled)
            || matches!(byte, b'+' | b'*' | b'%' | b'/' | b'^')
        {
            self.frame.tried = 0;
        }
        self.at += length;
        self.after(previous);
        if byte == b'?' && length == 1 {
            self.frame.end_constraints();
        }
        self.before_object = before_object;
        self.add(weight)
    }
}

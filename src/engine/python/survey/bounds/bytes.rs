//! The depth of a source by its bytes, in a tenth of the time that its tokens take. Sources that
//! Ruff's lexer could read differently are [`Measured::Unclear`].

use super::levels::Levels;

/// The result of measuring the bytes of a source.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Measured {
    /// The greatest depth of its tree is at most this.
    Depth(usize),
    /// The bracket at this offset has no partner.
    Unpaired { at: usize },
    /// Only the lexer can measure the source.
    Unclear,
}

/// A construct that is open.
#[derive(Clone, Copy, Debug)]
enum Bracket {
    Statement,
    /// A bracket at an offset.
    Plain(u8, usize),
    /// An f-string with its quote, and whether there are three of them.
    Text {
        quote: u8,
        is_triple: bool,
    },
    /// Braces in an f-string.
    Interpolation,
}

/// Measures `source`.
pub(super) fn measure(source: &str) -> Measured {
    let mut scanner = Scanner {
        bytes: source.as_bytes(),
        at: 0,
        levels: Levels::new(Bracket::Statement),
        indents: Vec::new(),
        outer: None,
    };
    match scanner.scan() {
        Some(()) => match scanner.levels.open.get(1).map(|level| level.bracket) {
            None => Measured::Depth(scanner.levels.greatest),
            Some(Bracket::Plain(_, at)) => Measured::Unpaired { at },
            Some(_) => Measured::Unclear,
        },
        None => match scanner.bytes.get(scanner.at) {
            // Only closing brackets end the scan of a source that is clear.
            Some(b')' | b']' | b'}') => match scanner.innermost() {
                Bracket::Plain(_, at) => Measured::Unpaired { at },
                Bracket::Statement => Measured::Unpaired { at: scanner.at },
                _ => Measured::Unclear,
            },
            _ => Measured::Unclear,
        },
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    levels: Levels<Bracket>,
    /// The indentations of the blocks, without that of the first.
    indents: Vec<usize>,
    /// The quote of the f-string whose braces are read. A nested one is left to the lexer.
    outer: Option<u8>,
}

impl Scanner<'_> {
    fn innermost(&self) -> Bracket {
        self.levels.open.last().map_or(Bracket::Statement, |level| level.bracket)
    }

    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Reads the source. `None` if it stops before the end.
    fn scan(&mut self) -> Option<()> {
        self.indent()?;
        while let Some(byte) = self.byte() {
            match byte {
                b' ' => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word()?,
                b'0'..=b'9' => self.number()?,
                b'\'' | b'"' => self.text(byte, false)?,
                b'(' | b'[' => self.open(byte),
                b'{' if self.outer.is_some() => return self.unclear(),
                b'{' => self.open(byte),
                b')' | b']' | b'}' => self.close(byte)?,
                b',' => {
                    self.at += 1;
                    self.levels.comma();
                }
                b'#' | b'\n' | b'\r' if self.outer.is_some() => return self.unclear(),
                b'#' => self.skip_to_line_end(),
                b'\n' | b'\r' => {
                    self.at += 1;
                    if !self.levels.is_in_bracket() {
                        self.levels.end_statement();
                        self.indent()?;
                    }
                }
                b';' => {
                    self.at += 1;
                    match self.levels.is_in_bracket() {
                        true => self.levels.pass(),
                        false => self.levels.end_statement(),
                    }
                }
                b':' if matches!(self.innermost(), Bracket::Interpolation) => self.format()?,
                b'\t' | b'\x0c' => self.at += 1,
                // A continued line, control characters, and names in other scripts.
                b'\\' | b'\x7f' | ..b' ' => return self.unclear(),
                _ if !byte.is_ascii() => return self.unclear(),
                _ => {
                    self.at += 1;
                    self.levels.pass();
                }
            }
        }
        Some(())
    }

    /// Ends the scan, because only the lexer can measure the source.
    fn unclear(&mut self) -> Option<()> {
        self.at = self.bytes.len();
        None
    }

    fn open(&mut self, bracket: u8) {
        self.levels.open(Bracket::Plain(bracket, self.at));
        self.at += 1;
    }

    fn close(&mut self, closing: u8) -> Option<()> {
        if let (b'}', Bracket::Interpolation) = (closing, self.innermost()) {
            self.levels.close(|_| true);
            self.levels.pass();
            self.outer = None;
            self.at += 1;
            return self.go_on();
        }
        let opened = match closing {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        if !self.levels.close(|bracket| matches!(bracket, Bracket::Plain(found, _) if found == opened)) {
            return None;
        }
        self.levels.pass();
        self.at += 1;
        Some(())
    }

    fn skip_to_line_end(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
    }

    /// Reads the indentation of a statement.
    fn indent(&mut self) -> Option<()> {
        let start = self.at;
        while self.byte() == Some(b' ') {
            self.at += 1;
        }
        let width = self.at - start;
        match self.byte() {
            // No statement.
            None | Some(b'\n' | b'\r' | b'#') => return Some(()),
            Some(b'\t' | b'\x0c') => return self.unclear(),
            Some(_) => {}
        }
        let is_dedent = self.indents.last().is_some_and(|innermost| *innermost > width);
        while self.indents.pop_if(|outer| *outer > width).is_some() {}
        let outer = self.indents.last().copied().unwrap_or(0);
        if width > outer {
            if is_dedent {
                return self.unclear();
            }
            self.indents.push(width);
        }
        self.levels.blocks = self.indents.len();
        self.levels.measure();
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        let word = &rest[..length];
        match self.byte() {
            Some(quote @ (b'\'' | b'"')) => return self.prefixed(word, quote),
            Some(byte) if !byte.is_ascii() => return self.unclear(),
            _ => {}
        }
        if matches!(word, b"lambda" | b"yield") {
            self.levels.keep();
        } else if is_keyword(word) {
            self.levels.pass();
        }
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        while matches!(self.byte(), Some(b'0'..=b'9' | b'_')) {
            self.at += 1;
        }
        match self.byte() {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'\'' | b'"') => self.unclear(),
            _ => Some(()),
        }
    }

    /// Reads a string after a word that should be its prefix.
    fn prefixed(&mut self, word: &[u8], quote: u8) -> Option<()> {
        let (first, second) = match word {
            [first] => (first.to_ascii_lowercase(), None),
            [first, second] => (first.to_ascii_lowercase(), Some(second.to_ascii_lowercase())),
            _ => return self.unclear(),
        };
        match (first, second) {
            (b'r' | b'b' | b'u', None) | (b'r', Some(b'b')) | (b'b', Some(b'r')) => self.text(quote, false),
            (b'f', None) => self.text(quote, true),
            _ => self.unclear(),
        }
    }

    /// Reads a string from its quotes on.
    fn text(&mut self, quote: u8, is_interpolated: bool) -> Option<()> {
        // Another string inside of an f-string.
        if let Some(outer) = self.outer {
            let rest = &self.bytes[self.at + 1..];
            let length = rest.iter().position(|byte| *byte == quote);
            let Some(inner) = length.map(|length| &rest[..length]) else { return self.unclear() };
            let is_clear = |byte: &u8| !matches!(byte, b'\\' | b'{' | b'}' | b'\n' | b'\r') && *byte != outer;
            if is_interpolated || quote == outer || inner.is_empty() || !inner.iter().all(is_clear) {
                return self.unclear();
            }
            self.at += inner.len() + 2;
            return Some(());
        }
        let is_triple = self.bytes[self.at..].starts_with(&[quote; 3]);
        self.at += if is_triple { 3 } else { 1 };
        if is_interpolated {
            self.levels.open(Bracket::Text { quote, is_triple });
            return self.go_on();
        }
        while let Some(byte) = self.byte() {
            match byte {
                b'\\' if self.bytes.get(self.at + 1) == Some(&b'\r') => return self.unclear(),
                b'\\' => self.at += 2,
                _ if byte == quote && !is_triple => {
                    self.at += 1;
                    return Some(());
                }
                _ if byte == quote && self.bytes[self.at..].starts_with(&[quote; 3]) => {
                    self.at += 3;
                    return Some(());
                }
                b'\n' | b'\r' if !is_triple => return self.unclear(),
                _ => self.at += 1,
            }
        }
        self.unclear()
    }

    /// Reads the text of an f-string up to its braces or its end.
    fn go_on(&mut self) -> Option<()> {
        let Bracket::Text { quote, is_triple } = self.innermost() else { return self.unclear() };
        self.levels.comma();
        while let Some(byte) = self.byte() {
            let next = self.bytes.get(self.at + 1).copied();
            match byte {
                _ if byte == quote && (!is_triple || self.bytes[self.at..].starts_with(&[quote; 3])) => {
                    self.at += if is_triple { 3 } else { 1 };
                    self.levels.close(|_| true);
                    self.levels.pass();
                    return Some(());
                }
                b'{' | b'}' if next == Some(byte) => self.at += 2,
                b'{' => {
                    self.at += 1;
                    self.levels.open(Bracket::Interpolation);
                    self.outer = Some(quote);
                    return Some(());
                }
                b'}' => return self.unclear(),
                b'\\' if matches!(next, Some(b'{' | b'}' | b'N' | b'\r') | None) => return self.unclear(),
                b'\\' => self.at += 2,
                b'\n' | b'\r' if !is_triple => return self.unclear(),
                _ => self.at += 1,
            }
        }
        self.unclear()
    }

    /// Reads the format after the colon of an interpolation.
    fn format(&mut self) -> Option<()> {
        self.levels.pass();
        while let Some(byte) = self.byte() {
            match byte {
                b'}' => return Some(()),
                b'{' | b'\'' | b'"' | b'\\' | b'\n' | b'\r' => return self.unclear(),
                _ => self.at += 1,
            }
        }
        self.unclear()
    }
}

fn is_keyword(word: &[u8]) -> bool {
    matches!(
        word,
        b"False"
            | b"None"
            | b"True"
            | b"and"
            | b"as"
            | b"assert"
            | b"async"
            | b"await"
            | b"break"
            | b"case"
            | b"class"
            | b"continue"
            | b"def"
            | b"del"
            | b"elif"
            | b"else"
            | b"except"
            | b"finally"
            | b"for"
            | b"from"
            | b"global"
            | b"if"
            | b"import"
            | b"in"
            | b"is"
            | b"match"
            | b"nonlocal"
            | b"not"
            | b"or"
            | b"pass"
            | b"raise"
            | b"return"
            | b"try"
            | b"type"
            | b"while"
            | b"with"
    )
}

//! The scanner: tokens, open brackets and the weight of the path to the current token.

use super::frame::{Boundary, Content, Frame, LEVEL, LINK, Previous};
use super::limits::{MAX_BRACKETS, MAX_WEIGHT, MAX_WORK, SourceRefusal};
use super::readings::Readings;
use super::words::{self, Word};

/// Number of doublings after which any token is too much work, so that the count cannot overflow.
const MAX_DOUBLINGS: u32 = 24;

/// Cost, in bytes read per byte, of an attempt at type arguments, and of a level in an enum. With
/// these costs a source that contains nothing else takes a quarter of a second.
const TRIED: u32 = 4;
const COPIED: u32 = 8;

/// Number of scopes that cost as much as reading a byte. A name is looked up in each scope around
/// it, and names of a scope are collected once more for each: 112 scopes around a source that
/// contains only short names use up the whole bound.
const SCOPES: u32 = 16;

/// Cost, in bytes read, of two labels of which one is in the statement of the other. If they have one name, swc makes an
/// error of some 200 bytes: a source that contains nothing else makes 60 MB of them.
const LABELS: u64 = 32;

/// Number of doublings for the first bracket in the parenthesis of a type: swc reads it twice to find out whether it is a
/// parameter, and then once more.
const READ_AHEAD: u32 = 2;

/// Weight up to which an enum's initializer costs no more than other code.
const SMALL_ENUM: u32 = 60;

/// When `Scanner::run` returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At the end of the source.
    AtEnd,
    /// After the line terminator of the current line of code.
    AfterLine,
}

/// Position and state of one reading of the source.
#[derive(Debug, Clone)]
pub(super) struct Scanner<'a> {
    pub(super) source: &'a str,
    pub(super) at: usize,
    pub(super) outer: Vec<Frame>,
    pub(super) frame: Frame,
    /// Weight of the path through the outer frames.
    pub(super) above: u32,
    /// Weight of the heaviest path so far.
    pub(super) heaviest: u32,
    /// Angle brackets and doublings of the outer frames.
    pub(super) outer_angles: u32,
    pub(super) outer_doublings: u32,
    /// Scopes around the current frame.
    pub(super) outer_scopes: u32,
    /// Whether the last word was `enum`, or the name after it.
    pub(super) enum_head: bool,
    /// Whether the previous token is a word.
    pub(super) after_word: bool,
    /// Whether a `{` would begin an object, a pattern or an object type here, and certainly no block.
    pub(super) before_object: bool,
    /// Whether the previous token is a parenthesis that may begin the parameters of a function type, or a modifier after
    /// it: swc reads the pattern that follows to find out.
    pub(super) before_parameter: bool,
    /// Whether the previous token is a parenthesis that may end parameters.
    pub(super) after_parameters: bool,
    /// Whether the previous token is `get` or `set`: swc reads what follows as an accessor of an object type, and again
    /// if it is none.
    pub(super) after_accessor: bool,
    /// Whether only words have followed the last word `infer`: swc tries the type after an `extends` that comes next as a
    /// constraint, and reads it again if it is none.
    pub(super) after_infer: bool,
    /// Bytes that swc reads, including repeated reads, and the offset up to which they are counted.
    pub(super) work: u64,
    pub(super) counted: usize,
    pub(super) previous: Previous,
    pub(super) boundary: Boundary,
    /// Whether a line terminator precedes the current token.
    pub(super) newline: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let mut scanner = Self {
            source,
            at: 0,
            outer: Vec::new(),
            frame: Frame::default(),
            above: 0,
            heaviest: 0,
            outer_angles: 0,
            outer_doublings: 0,
            outer_scopes: 0,
            enum_head: false,
            after_word: false,
            before_object: false,
            before_parameter: false,
            after_parameters: false,
            after_accessor: false,
            after_infer: false,
            work: 0,
            counted: 0,
            previous: Previous::Operator,
            boundary: Boundary::None,
            newline: true,
        };
        if source.starts_with("#!") {
            scanner.skip_line();
        }
        scanner
    }

    /// Reads until `stop`. Returns whether source is left.
    pub(super) fn run(&mut self, readings: &mut Readings<'a>, stop: Stop) -> Result<bool, SourceRefusal> {
        while let Some(byte) = self.peek(0) {
            if self.work > MAX_WORK {
                return Err(SourceRefusal::TooMuchWork { at: self.at });
            }
            match byte {
                b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'\n' | b'\r' => {
                    self.at += 1;
                    self.line_ended();
                    if stop == Stop::AfterLine {
                        return Ok(true);
                    }
                }
                b'/' if self.peek(1) == Some(b'/') => self.skip_line(),
                b'/' if self.peek(1) == Some(b'*') => self.skip_comment(),
                b'/' => {
                    if self.slash(readings)? && stop == Stop::AfterLine {
                        return Ok(true);
                    }
                }
                b'"' | b'\'' => self.string(byte)?,
                b'`' => {
                    self.operand_begins();
                    self.frame.doublings += u32::from(self.previous == Previous::Angle);
                    self.add(LINK)?;
                    self.at += 1;
                    self.template()?;
                }
                b'(' | b'[' | b'{' => self.open(byte)?,
                b')' | b']' | b'}' => self.close(byte)?,
                b',' => {
                    self.at += 1;
                    self.boundary = Boundary::None;
                    // Inside type arguments the levels above the comma still count. A member of an
                    // enum is not an argument: an apparent angle bracket before its comma was a
                    // shift operator.
                    if self.frame.in_enum && self.frame.bracket == b'{' {
                        self.frame.end_statement();
                    } else if self.frame.angles == 0 {
                        self.frame.end_element();
                    }
                    self.after(Previous::Operator);
                    self.before_object = true;
                }
                b';' => {
                    self.at += 1;
                    self.after(Previous::Operator);
                    self.boundary = Boundary::Semicolon;
                }
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'\\' => self.word()?,
                0x80.. => self.wide()?,
                _ if self.is_skipped_by_parser(byte) => {
                    self.fork(readings, Self::comment_line)?;
                    if stop == Stop::AfterLine {
                        return Ok(true);
                    }
                }
                _ => self.operator(byte)?,
            }
        }
        Ok(false)
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.source.as_bytes()[self.at..]
    }

    pub(super) fn after(&mut self, previous: Previous) {
        self.previous = previous;
        self.newline = false;
        self.after_word = false;
        self.before_object = false;
        self.before_parameter = false;
        self.after_parameters = false;
        self.after_accessor = false;
        self.after_infer = false;
        // For every `<` after an operand swc tries to parse type arguments until that fails. An
        // initializer in an enum is visited again for each enum around it.
        let mut times = u64::from(1 + TRIED * (self.outer_angles + self.frame.angles));
        times += u64::from((self.outer_scopes + self.frame.scopes) / SCOPES);
        if self.frame.in_enum {
            times += u64::from(COPIED * (self.above + self.frame.path()).saturating_sub(SMALL_ENUM));
        }
        let doublings = (self.outer_doublings + self.frame.doublings).min(MAX_DOUBLINGS);
        self.work += ((self.at - self.counted) as u64 * times) << doublings;
        self.counted = self.at;
    }

    pub(super) fn line_ended(&mut self) {
        self.newline = true;
        if self.previous == Previous::Operand && self.boundary == Boundary::None {
            self.boundary = Boundary::Newline;
        }
    }

    /// Adds `weight` to the path to the current token.
    pub(super) fn add(&mut self, weight: u32) -> Result<(), SourceRefusal> {
        self.frame.weight += weight;
        self.weigh()
    }

    fn weigh(&mut self) -> Result<(), SourceRefusal> {
        self.heaviest = self.heaviest.max(self.above + self.frame.height());
        if self.heaviest > MAX_WEIGHT {
            return Err(SourceRefusal::TooDeep { at: self.at });
        }
        Ok(())
    }

    /// Called when a token starts that is not a word: the previous statement has ended only if a
    /// semicolon precedes.
    pub(super) fn operand_begins(&mut self) {
        match std::mem::replace(&mut self.boundary, Boundary::None) {
            Boundary::Semicolon => self.frame.end_statement(),
            Boundary::None | Boundary::Brace | Boundary::Newline => {}
        }
    }

    /// Called when a word starts: the previous statement may have ended.
    fn word_begins(&mut self, word: &[u8]) {
        if std::mem::replace(&mut self.boundary, Boundary::None) != Boundary::None && !words::continues(word)
        {
            let labels = self.frame.labels;
            self.frame.end_statement();
            if words::is_last_part(word) {
                self.frame.labels = labels;
            }
            self.previous = Previous::Operator;
        }
    }

    /// Counts the `:` at this position if it may follow a label. swc compares each label with those of all statements
    /// around it, and makes an error for each of the same name.
    pub(super) fn colon(&mut self) {
        if self.frame.questions > 0 {
            self.frame.questions -= 1;
            return;
        }
        let ends_case = std::mem::take(&mut self.frame.in_case);
        let in_block = matches!(self.frame.bracket, 0 | b'{') && !self.frame.is_object;
        if self.after_word && in_block && !ends_case {
            self.work += LABELS * u64::from(self.frame.labels_around + self.frame.labels);
            self.frame.labels += 1;
        }
    }

    /// The bytes of the word that starts here. `\u{61}` is part of it, and its braces are not brackets. Only digits are
    /// looked at: a search for the brace would take quadratic time where there is none.
    fn word_length(&self) -> usize {
        let rest = self.rest();
        let mut length = 0;
        loop {
            length += rest[length..].iter().take_while(|byte| is_word(**byte)).count();
            if !rest[..length].ends_with(b"\\u") || rest.get(length) != Some(&b'{') {
                return length;
            }
            let digits = rest[length + 1..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            if rest.get(length + 1 + digits) != Some(&b'}') {
                return length;
            }
            length += digits + 2;
        }
    }

    fn word(&mut self) -> Result<(), SourceRefusal> {
        let length = self.word_length();
        let word = &self.rest()[..length];
        self.word_begins(word);
        let class = match self.previous {
            Previous::Dot => Word::Operand,
            _ => words::classify(word),
        };
        let named = self.previous == Previous::Dot;
        if !matches!(self.previous, Previous::Operator | Previous::Dot) {
            self.add(LEVEL)?;
        }
        match word {
            // The resolver visits the `extends` clause of a class twice.
            b"class" if !named => self.frame.doublings += 1,
            // `for (var of …` is parsed once to check that no variable is declared.
            b"of" | b"in" if self.previous == Previous::Either => self.frame.doublings += 1,
            b"enum" if !named => self.enum_head = true,
            // Each namespace collects the names of the namespaces inside it.
            b"namespace" | b"module" if !named => self.frame.scopes += 1,
            b"case" | b"default" if !named => self.frame.in_case = true,
            _ if class == Word::Head => self.frame.scopes += 1,
            _ => {}
        }
        let (before_parameter, after_infer) = (self.before_parameter, self.after_infer);
        let constrains = after_infer && words::may_be(word, b"extends");
        if constrains {
            self.frame.begin_constraint();
        }
        self.at += length;
        self.after(match class {
            Word::Operand => Previous::Operand,
            Word::Prefix => Previous::Prefix,
            Word::Either => Previous::Either,
            Word::Head => Previous::Head,
        });
        self.after_word = true;
        self.before_object = !named && words::precedes_object(word);
        self.before_parameter = before_parameter;
        self.after_accessor = words::may_be(word, b"get") || words::may_be(word, b"set");
        self.after_infer = words::may_be(word, b"infer") || (after_infer && !constrains);
        Ok(())
    }

    /// A character that is not ASCII: part of a word, white space or an error.
    fn wide(&mut self) -> Result<(), SourceRefusal> {
        let Some(character) = self.source[self.at..].chars().next() else {
            return Ok(());
        };
        if matches!(character, '\u{2028}' | '\u{2029}') {
            self.at += character.len_utf8();
            self.line_ended();
        } else if character.is_alphanumeric() {
            self.word_begins(b"");
            if !matches!(self.previous, Previous::Operator | Previous::Dot) {
                self.add(LEVEL)?;
            }
            let rest = &self.source[self.at..];
            self.at += rest
                .find(|next: char| !(next.is_alphanumeric() || next == '_' || next == '$'))
                .unwrap_or(rest.len());
            let after_infer = self.after_infer;
            self.after(Previous::Operand);
            self.after_word = true;
            self.after_infer = after_infer;
        } else {
            self.at += character.len_utf8();
            // A name may begin with `℘`.
            self.after_word = true;
        }
        Ok(())
    }

    fn open(&mut self, bracket: u8) -> Result<(), SourceRefusal> {
        self.operand_begins();
        self.add(LINK)?;
        self.at += 1;
        self.push(bracket)
    }

    pub(super) fn push(&mut self, bracket: u8) -> Result<(), SourceRefusal> {
        if self.outer.len() >= MAX_BRACKETS {
            return Err(SourceRefusal::TooDeep { at: self.at - 1 });
        }
        let content = match self.previous {
            Previous::Head => Content::Head,
            // `for await (`, or a call.
            Previous::Either | Previous::Angle => Content::Unclear,
            _ => Content::Operand,
        };
        let in_enum = self.frame.in_enum || (bracket == b'{' && std::mem::take(&mut self.enum_head));
        // After a line terminator a word may have been a statement of its own: `return`.
        let is_object = bracket == b'{' && self.before_object && !(self.newline && self.after_word);
        // What else has statements in it is a function, in which no label around it holds.
        let is_block = bracket == b'{' && !is_object;
        let labels_around = if is_block { self.frame.labels_around + self.frame.labels } else { 0 };
        self.above += LEVEL + self.frame.path();
        self.outer_angles += self.frame.angles;
        // The arguments of `f<T>(…)` are parsed again if they contain an error: then `<` is a
        // comparison.
        let read_again = u32::from(self.previous == Previous::Angle)
            + self.frame.tries(bracket)
            + u32::from(self.frame.returns)
            + READ_AHEAD * u32::from(self.before_parameter && matches!(bracket, b'{' | b'['))
            + u32::from(self.after_accessor && bracket == b'[');
        let may_be_parameters = bracket == b'(' && self.previous != Previous::Operand;
        let in_tried = self.frame.in_tried || self.frame.tried > 0;
        self.outer_doublings += self.frame.doublings + u32::from(self.frame.decorated) + read_again;
        self.outer_scopes += self.frame.scopes + 1;
        self.outer.push(self.frame);
        self.frame = Frame {
            bracket,
            content,
            in_enum,
            is_object,
            labels_around,
            may_be_parameters,
            read_again,
            in_tried,
            ..Frame::default()
        };
        self.after(Previous::Operator);
        self.before_object = matches!(bracket, b'(' | b'[');
        self.before_parameter = may_be_parameters;
        self.boundary = Boundary::None;
        self.weigh()
    }

    fn close(&mut self, bracket: u8) -> Result<(), SourceRefusal> {
        self.at += 1;
        self.boundary = Boundary::None;
        let closes =
            matches!((self.frame.bracket, bracket), (b'(', b')') | (b'[', b']') | (b'{' | b'`', b'}'));
        // A bracket that closes nothing is an error for the parser to report. Ignoring it here can
        // only make the estimate too high.
        let Some(outer) = closes.then(|| self.outer.pop()).flatten() else {
            self.after(Previous::Either);
            return Ok(());
        };
        let mut closed = std::mem::replace(&mut self.frame, outer);
        closed.end_statement();
        self.above -= LEVEL + self.frame.path();
        self.outer_angles -= self.frame.angles;
        self.outer_doublings -= self.frame.doublings + u32::from(self.frame.decorated) + closed.read_again;
        self.outer_scopes -= self.frame.scopes + 1;
        self.frame.tallest = self.frame.tallest.max(LEVEL + closed.peak);
        self.weigh()?;
        match (closed.bracket, closed.content) {
            (b'`', _) => return self.template(),
            (b'(', Content::Head) => self.after(Previous::HeadEnd),
            (b'(', Content::Unclear) => self.after(Previous::Either),
            (b'{', _) => {
                self.after(Previous::Brace);
                self.boundary = Boundary::Brace;
            }
            _ => self.after(Previous::Operand),
        }
        self.after_parameters = closed.may_be_parameters;
        Ok(())
    }
}

/// Returns whether a byte can be part of an ASCII word.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\')
}

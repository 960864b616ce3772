//! Decides whether an input continues on the next line.
//!
//! This decides only where Enter begins a new line, so it need not know the languages as their
//! compilers do: Alt+Enter always begins one, and an empty line at the end always completes an input.

use cx::Language;

/// An open construct at the end of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    /// A bracket, with the one that closes it.
    Bracket(char),
    /// A template literal of TypeScript, or a string of Python in triple quotes, by its quote.
    Text(Quote),
    /// A comment of TypeScript between `/*` and `*/`.
    Comment,
    /// A string of one line, by its quote, whose line ends with a backslash.
    String(char),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    Backtick,
    Triple(char),
}

/// Whether Enter at the end of `input` begins another line of it.
pub(crate) fn goes_on(language: Language, input: &str) -> bool {
    GrowingInput::new(language).goes_on(input)
}

/// An input that grows by whole lines. Each of its characters is read once.
pub(crate) struct GrowingInput {
    language: Language,
    /// The innermost construct is the last.
    open: Vec<Inside>,
    /// Whether a bracket is closed that is not open. Further lines cannot correct this.
    is_mismatched: bool,
    /// The number of bytes that were read.
    bytes_read: usize,
}

impl GrowingInput {
    pub(crate) fn new(language: Language) -> Self {
        Self { language, open: Vec::new(), is_mismatched: false, bytes_read: 0 }
    }

    /// Whether Enter at the end of `input` begins another line of it. `input` begins with that of the last call.
    pub(crate) fn goes_on(&mut self, input: &str) -> bool {
        self.read(input);
        // After a line end the user has typed an empty line.
        if input.ends_with('\n') || self.is_mismatched {
            return false;
        }
        if !self.open.is_empty() || input.ends_with('\\') {
            return true;
        }
        if self.language != Language::Python {
            return false;
        }
        // A block continues until an empty line.
        let last = input.lines().next_back().unwrap_or_default();
        let code = without_comment(last).trim_end();
        code.ends_with(':') || (input.contains('\n') && last.starts_with([' ', '\t']))
    }

    /// Reads what is new. Strings that end with their line, comments and regular expressions are skipped.
    fn read(&mut self, input: &str) {
        let is_python = self.language == Language::Python;
        let mut rest = input.get(self.bytes_read..).unwrap_or_default();
        self.bytes_read = input.len();
        while !self.is_mismatched
            && let Some(next) = rest.chars().next()
        {
            let after = rest.get(next.len_utf8()..).unwrap_or_default();
            match self.open.last().copied() {
                Some(Inside::Text(quote)) => {
                    rest = after_in_text(quote, next, after, &mut self.open);
                    continue;
                }
                Some(Inside::Comment) => {
                    rest = self.after_comment(rest);
                    continue;
                }
                Some(Inside::String(quote)) => {
                    // `next` is the end of the line behind the backslash.
                    self.open.pop();
                    rest = self.after_string(after, quote);
                    continue;
                }
                Some(Inside::Bracket(_)) | None => {}
            }
            rest = match next {
                '#' if is_python => skip_line(after),
                '/' if !is_python && after.starts_with('/') => skip_line(after),
                '/' if !is_python && after.starts_with('*') => {
                    self.open.push(Inside::Comment);
                    skip_one(after)
                }
                '/' if !is_python => {
                    let before = input.len().checked_sub(rest.len()).and_then(|end| input.get(..end));
                    if begins_value(before.unwrap_or_default()) {
                        skip_regular_expression(after)
                    } else {
                        after
                    }
                }
                '"' | '\'' if is_python && starts_with_two(after, next) => {
                    self.open.push(Inside::Text(Quote::Triple(next)));
                    skip_one(skip_one(after))
                }
                '"' | '\'' => self.after_string(after, next),
                '`' if !is_python => {
                    self.open.push(Inside::Text(Quote::Backtick));
                    after
                }
                '(' | '[' | '{' => {
                    self.open.push(Inside::Bracket(match next {
                        '(' => ')',
                        '[' => ']',
                        _ => '}',
                    }));
                    after
                }
                ')' | ']' | '}' => {
                    self.is_mismatched = self.open.pop() != Some(Inside::Bracket(next));
                    after
                }
                _ => after,
            };
        }
    }

    /// The text after the end of the open comment.
    fn after_comment<'a>(&mut self, text: &'a str) -> &'a str {
        let Some((_, after)) = text.split_once("*/") else { return "" };
        self.open.pop();
        after
    }

    /// The text after a string of one line. An unclosed string ends with its line, and the compiler reports it.
    fn after_string<'a>(&mut self, text: &'a str, quote: char) -> &'a str {
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let after = skip_one(rest);
            rest = match next {
                '\\' if after.is_empty() => {
                    self.open.push(Inside::String(quote));
                    after
                }
                '\\' => skip_one(after),
                '\n' => return rest,
                next if next == quote => return after,
                _ => after,
            };
        }
        rest
    }
}

fn without_comment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(code, _)| code)
}

/// The rest of an input after the character `next` of a text with this quote. `after` is what follows the character.
fn after_in_text<'a>(quote: Quote, next: char, after: &'a str, open: &mut Vec<Inside>) -> &'a str {
    match (quote, next) {
        (_, '\\') => skip_one(after),
        (Quote::Backtick, '`') => {
            open.pop();
            after
        }
        (Quote::Backtick, '$') if after.starts_with('{') => {
            open.push(Inside::Bracket('}'));
            skip_one(after)
        }
        (Quote::Triple(quote), next) if next == quote && starts_with_two(after, quote) => {
            open.pop();
            skip_one(skip_one(after))
        }
        _ => after,
    }
}

fn starts_with_two(text: &str, quote: char) -> bool {
    let mut characters = text.chars();
    characters.next() == Some(quote) && characters.next() == Some(quote)
}

fn skip_one(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.as_str()
}

fn skip_line(text: &str) -> &str {
    text.find('\n').and_then(|end| text.get(end..)).unwrap_or_default()
}

/// Words after which a value begins, so that `/` is not a division.
const BEFORE_VALUES: [&str; 13] = [
    "await",
    "case",
    "delete",
    "do",
    "else",
    "in",
    "instanceof",
    "of",
    "return",
    "throw",
    "typeof",
    "void",
    "yield",
];

/// Whether a value begins after this TypeScript text, so that `/` begins a regular expression. After a closing bracket
/// it is treated as a division.
fn begins_value(before: &str) -> bool {
    let before = before.trim_end();
    let is_of_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    match before.chars().next_back() {
        None => true,
        Some(last) if is_of_word(last) => {
            let word = before.rsplit(|letter: char| !is_of_word(letter)).next().unwrap_or_default();
            let is_member = before.strip_suffix(word).is_some_and(|rest| rest.ends_with('.'));
            BEFORE_VALUES.contains(&word) && !is_member
        }
        Some(last) => !matches!(last, ')' | ']' | '}' | '"' | '\'' | '`' | '.' | '#' | '@'),
    }
}

/// The text after a regular expression, without its flags. An unclosed one ends with its line.
fn skip_regular_expression(text: &str) -> &str {
    let mut rest = text;
    let mut is_in_class = false;
    while let Some(next) = rest.chars().next() {
        let after = skip_one(rest);
        match next {
            '\n' => return rest,
            '/' if !is_in_class => return after,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            _ => {}
        }
        // A backslash does not continue it on the next line.
        rest = if next == '\\' && !after.starts_with('\n') { skip_one(after) } else { after };
    }
    rest
}

#[cfg(test)]
mod tests {
    use cx::Language;

    use super::{GrowingInput, goes_on};

    const COMPLETE_TS: &[&str] = &[
        "1 + 1",
        "await tools.fs.list({ path: '/' })",
        "const a = '(' // {",
        "`a ${[1].map((x) => `${x}`)} b`",
        "/* ( */ 1",
        "'it\\'s ('",
        ")",
        "f(]",
        "if (x) { y }",
        "return [\n1,\n2]",
        "\"(",
        "f(\n",
        "x.replace(/'/g, '')",
        "x.match(/[/(]\\(/)?.[0] ?? /`/",
        "return /[{]/.test(x)",
        "/\"/",
        "a / b / c",
        "x.of / 2 + y['in'] / 2",
        "(x.of / 2) / 3",
        "(a + b) / (c) / d",
    ];
    const OPEN_TS: &[&str] = &[
        "f(",
        "{",
        "for (const x of y) {\n  z()",
        "`a",
        "`a ${b",
        "/* a",
        "[1, // ]",
        "f('(', `)`",
        "x.replace(/)/g, (",
        "a / (b / `",
        "xs[1] / f('/",
        "x.of / f(y / 2",
    ];
    const COMPLETE_PY: &[&str] = &[
        "1 + 1",
        "x = '(' # [",
        "'''a'''",
        "\"\"\"a\n(\"\"\"",
        "if x:\n    y()\n",
        "d = {'a': 1}",
        "'it\\'s ('",
        "x = 1 # note:",
    ];
    const OPEN_PY: &[&str] = &[
        "f(",
        "if x:",
        "if x:\n    y()",
        "def f():  # why",
        "'''a",
        "x = \\",
        "{'a': [",
        "class A:\n\tb = 1",
    ];

    #[test]
    fn an_input_goes_on_while_something_is_open() {
        for (language, complete, open) in
            [(Language::TypeScript, COMPLETE_TS, OPEN_TS), (Language::Python, COMPLETE_PY, OPEN_PY)]
        {
            for input in complete {
                assert!(!goes_on(language, input), "{input}");
            }
            for input in open {
                assert!(goes_on(language, input), "{input}");
                assert!(!goes_on(language, &format!("{input}\n")), "an empty line completes {input}");
            }
        }
    }

    /// Reading line by line must not change the answer.
    #[test]
    fn an_input_may_grow() {
        let more = ["/* (\n[ */ (\n1)", "/*/\n*/ 1", "'a\\\n('\n(", "x = /[\\\n(\n)", ")\n(", "`\\\n${(\n`"];
        for language in [Language::TypeScript, Language::Python] {
            for input in [COMPLETE_TS, OPEN_TS, COMPLETE_PY, OPEN_PY, &more].concat() {
                let mut growing = GrowingInput::new(language);
                for (end, _) in input.match_indices('\n').chain([(input.len(), "")]) {
                    let begun = &input[..end];
                    assert_eq!(growing.goes_on(begun), goes_on(language, begun), "{begun:?}");
                }
            }
        }
    }
}

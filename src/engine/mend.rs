//! Blanks the parts of a source that a parser rejects, so that the rest can be read. They become
//! spaces, so that locations stay the same.
//!
//! This is a heuristic. Only the additional findings of an error depend on it: the script is
//! refused in any case.

/// Maximum number of attempts for one source. Each is followed by parsing all of it again.
pub(super) const MAX_MENDS: usize = 8;

/// Maximum number of lines that are taken out together.
const MAX_LINES: usize = 200;

/// Blanks the line of an error at `at` in `text`, or only a closing bracket there. Adds missing
/// closing brackets to text that ends too early. Returns whether anything was changed.
#[cfg(feature = "typescript")]
pub(super) fn mend(text: &mut String, at: usize, language: Lexis) -> bool {
    let at = text.floor_char_boundary(at);
    if text[at..].trim().is_empty() {
        return close(text, language);
    }
    if matches!(text.as_bytes().get(at), Some(b')' | b']' | b'}')) {
        blank(text, at..at + 1, |_| false);
        return true;
    }
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    take_out(text, start, language)
}

/// Blanks the line that begins at `start`, and the lines that continue what it begins.
pub(super) fn take_out(text: &mut String, start: usize, language: Lexis) -> bool {
    let line_end = |from: usize| text[from..].find('\n').map_or(text.len(), |length| from + length);
    let mut end = line_end(start);
    if text[start..end].trim().is_empty() {
        return false;
    }
    let mut left = brackets(&text[start..end], language);
    if goes_on(&text[start..end]) {
        let indentation = indentation(&text[start..]);
        for _ in 0..MAX_LINES {
            if left.open.is_empty() || end == text.len() {
                break;
            }
            let next = line_end(end + 1);
            let line = &text[end + 1..next];
            // A line that begins a statement does not continue this one.
            let is_statement = indentation >= self::indentation(line)
                && !line.trim_start().starts_with([')', ']', '}'])
                && !line.trim().is_empty();
            if is_statement {
                break;
            }
            left.read(&text[end..next], end - start, language);
            end = next;
        }
        blank(text, start..end, |_| false);
    } else if let Some(statement) = language.statement(text[start..end].trim())
        && brackets(&text[..start], language).open.is_empty()
    {
        let first = start + indentation(&text[start..]);
        blank(text, start..end, |_| false);
        text.replace_range(first..first + statement.len(), statement);
    } else {
        // Blocks that the line begins and ends stay blocks.
        let kept =
            left.open.iter().chain(&left.closing).filter(|(_, bracket)| matches!(bracket, b'{' | b'}'));
        let kept: Vec<usize> = kept.map(|(at, _)| start + at).collect();
        blank(text, start..end, |at| language.has_blocks_in_brackets() && kept.contains(&at));
    }
    true
}

/// The lexical rules of a language that decide which brackets are code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lexis {
    #[cfg(feature = "typescript")]
    TypeScript,
    #[cfg(feature = "python")]
    Python,
}

impl Lexis {
    fn has_blocks_in_brackets(self) -> bool {
        match self {
            #[cfg(feature = "typescript")]
            Self::TypeScript => true,
            #[cfg(feature = "python")]
            Self::Python => false,
        }
    }

    /// A statement that takes the place of a line, where a block must not be empty.
    fn statement(self, line: &str) -> Option<&'static str> {
        let statement: Option<&'static str> = match self {
            #[cfg(feature = "typescript")]
            Self::TypeScript => None,
            #[cfg(feature = "python")]
            Self::Python if line.ends_with(':') => Some("if 1:"),
            #[cfg(feature = "python")]
            Self::Python => Some("pass"),
        };
        statement.filter(|statement| line.len() >= statement.len())
    }

    /// The marks of the string of several lines that `text` begins with, if it begins with one.
    fn long_quote(self, text: &str) -> Option<&'static str> {
        let quotes: &[&'static str] = match self {
            #[cfg(feature = "typescript")]
            Self::TypeScript => &["`"],
            #[cfg(feature = "python")]
            Self::Python => &["\"\"\"", "'''"],
        };
        quotes.iter().copied().find(|quote| text.starts_with(quote))
    }

    fn comment(self) -> &'static str {
        match self {
            #[cfg(feature = "typescript")]
            Self::TypeScript => "//",
            #[cfg(feature = "python")]
            Self::Python => "#",
        }
    }
}

fn indentation(line: &str) -> usize {
    line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Whether the brackets that a line leaves open continue its statement, because they are not
/// blocks.
fn goes_on(line: &str) -> bool {
    let line = line.trim_end();
    let before = |end: &str| {
        let before = line.strip_suffix(end).map(str::trim_end);
        before.is_some_and(|before| before.ends_with(['(', '[', '{', ',', ':', '=', '?']))
    };
    line.ends_with(['(', '[', ',']) || before("{")
}

/// The brackets of a text that have no partner in it.
#[derive(Default)]
struct Brackets {
    open: Vec<(usize, u8)>,
    closing: Vec<(usize, u8)>,
}

fn brackets(text: &str, language: Lexis) -> Brackets {
    let mut found = Brackets::default();
    found.read(text, 0, language);
    found
}

impl Brackets {
    /// Reads the next part of a text, which begins at `offset`.
    fn read(&mut self, text: &str, offset: usize, language: Lexis) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if text[text.floor_char_boundary(at)..].starts_with(language.comment()) {
                at = text[at..].find('\n').map_or(bytes.len(), |length| at + length);
                continue;
            }
            if let Some(quote) = language.long_quote(&text[text.floor_char_boundary(at)..]) {
                let rest = &text[at + quote.len()..];
                at = rest.find(quote).map_or(bytes.len(), |length| at + length + 2 * quote.len());
                continue;
            }
            match byte {
                b'"' | b'\'' => {
                    at += 1;
                    while let Some(&inner) = bytes.get(at).filter(|inner| **inner != b'\n') {
                        at += if inner == b'\\' { 2 } else { 1 };
                        if inner == byte {
                            break;
                        }
                    }
                    continue;
                }
                b'(' | b'[' | b'{' => self.open.push((offset + at, byte)),
                b')' | b']' | b'}' => {
                    let opened = match byte {
                        b')' => b'(',
                        b']' => b'[',
                        _ => b'{',
                    };
                    match self.open.pop_if(|(_, last)| *last == opened) {
                        Some(_) => {}
                        None => self.closing.push((offset + at, byte)),
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

/// Closes the brackets that are open at the end of a text.
#[cfg(feature = "typescript")]
fn close(text: &mut String, language: Lexis) -> bool {
    let found = brackets(text, language);
    if found.open.is_empty() || !found.closing.is_empty() {
        return false;
    }
    text.push('\n');
    for (_, bracket) in found.open.iter().rev() {
        text.push(match bracket {
            b'(' => ')',
            b'[' => ']',
            _ => '}',
        });
    }
    true
}

/// Replaces a part of a text by spaces, except for line breaks and the characters that are kept.
fn blank(text: &mut String, part: std::ops::Range<usize>, is_kept: impl Fn(usize) -> bool) {
    let spaces: String = text[part.clone()]
        .bytes()
        .enumerate()
        .map(|(at, byte)| match byte {
            b'\n' => '\n',
            _ if byte.is_ascii() && is_kept(part.start + at) => char::from(byte),
            _ => ' ',
        })
        .collect();
    text.replace_range(part, &spaces);
}

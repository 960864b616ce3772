//! Finds code inside a Markdown fence, for both languages. `python-wasm/guest/cx_guest/fences.py` does the same for
//! the interpreter.

use crate::tools::Language;

/// A part of the author's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) text: &'a str,
    /// Lines of the author's text before the part.
    pub(super) lines_before: u32,
}

/// Returns the content of the fence that comes first in [`fenced`], if the text begins with a fence: no text
/// that does is a program as a whole.
pub(super) fn leading(source: &str, language: Language) -> Option<Part<'_>> {
    marker(source.trim_start())?;
    fenced(source, language).into_iter().next()
}

/// Returns the fenced parts of `source` in the order in which they should be tried.
///
/// Fences of the language come first, then fences that name no language. Fences of other languages are not
/// code for this engine. A fence that opens where a string of several lines may be open is ignored, because it
/// may be part of it.
pub(super) fn fenced(source: &str, language: Language) -> Vec<Part<'_>> {
    let mut named = Vec::new();
    let mut unnamed = Vec::new();
    let mut collect = |words: &str, text, lines_before| {
        let part = Part { text, lines_before };
        match words.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default() {
            "" => unnamed.push(part),
            word if names(language).contains(&&*word.to_ascii_lowercase()) => named.push(part),
            _ => {}
        }
    };
    let mut open: Option<(&str, &str, usize, u32)> = None;
    let mut at = 0;
    let mut in_string = false;
    for (number, line) in (0_u32..).zip(source.split_inclusive('\n')) {
        let start = at;
        at += line.len();
        match (open, marker(line.trim_start())) {
            (None, Some((fence, words))) if !in_string => open = Some((fence, words, at, number + 1)),
            (Some((fence, words, from, before)), Some((closing, ""))) if closing.starts_with(fence) => {
                collect(words, &source[from..start], before);
                open = None;
            }
            (None, _) => in_string ^= string_marks(line, language) % 2 == 1,
            (Some(_), _) => {}
        }
    }
    if let Some((_, words, from, before)) = open {
        collect(words, &source[from..], before);
    }
    named.append(&mut unnamed);
    named
}

/// How many marks of a line begin or end a string of several lines.
fn string_marks(line: &str, language: Language) -> usize {
    match language {
        Language::TypeScript => line.bytes().filter(|byte| *byte == b'`').count(),
        Language::Python => line.matches("\"\"\"").count() + line.matches("'''").count(),
    }
}

/// What fences of a language say after their marks.
const fn names(language: Language) -> &'static [&'static str] {
    match language {
        Language::TypeScript => {
            &["ts", "typescript", "mts", "cts", "tsx", "js", "javascript", "mjs", "cjs", "jsx"]
        }
        Language::Python => &["python", "py", "python3", "py3"],
    }
}

/// Returns the fence and the language of a line that opens or closes one.
fn marker(line: &str) -> Option<(&str, &str)> {
    let line = line.lines().next()?;
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let length = line.bytes().take_while(|byte| char::from(*byte) == sign).count();
    let language = line[length..].trim();
    (length >= 3 && !language.contains('`')).then_some((&line[..length], language))
}

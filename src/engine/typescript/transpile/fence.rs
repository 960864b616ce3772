//! Finds code inside a Markdown fence.

/// A part of the author's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) text: &'a str,
    /// Lines of the author's text before the part.
    pub(super) lines_before: u32,
}

/// Returns the content of the first fence in `source`, if the fence opens on the first non-blank
/// line.
pub(super) fn leading(source: &str) -> Option<Part<'_>> {
    let first = source.trim_start();
    marker(first)?;
    fenced(source).into_iter().next()
}

/// Returns the fenced parts of `source` in the order in which they should be tried.
///
/// TypeScript and JavaScript come first, then fences that name no language. Fences of other
/// languages are not code for this engine. A fence that opens after an odd number of backticks is
/// ignored, because it may be part of an open template literal.
pub(super) fn fenced(source: &str) -> Vec<Part<'_>> {
    let mut named = Vec::new();
    let mut unnamed = Vec::new();
    let mut open: Option<(&str, &str, usize, u32)> = None;
    let mut at = 0;
    let mut odd_backticks = false;
    for (number, line) in (0_u32..).zip(source.split_inclusive('\n')) {
        let start = at;
        at += line.len();
        match (open, marker(line.trim_start())) {
            (None, Some((fence, language))) if !odd_backticks => {
                open = Some((fence, language, at, number + 1));
            }
            (Some((fence, language, from, before)), Some((closing, ""))) if closing.starts_with(fence) => {
                collect(
                    &mut named,
                    &mut unnamed,
                    language,
                    Part { text: &source[from..start], lines_before: before },
                );
                open = None;
            }
            (None, _) => odd_backticks ^= line.bytes().filter(|byte| *byte == b'`').count() % 2 == 1,
            (Some(_), _) => {}
        }
    }
    if let Some((_, language, from, before)) = open {
        collect(&mut named, &mut unnamed, language, Part { text: &source[from..], lines_before: before });
    }
    named.append(&mut unnamed);
    named
}

fn collect<'a>(named: &mut Vec<Part<'a>>, unnamed: &mut Vec<Part<'a>>, language: &str, part: Part<'a>) {
    let word = language.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "ts" | "typescript" | "mts" | "cts" | "tsx" | "js" | "javascript" | "mjs" | "cjs" | "jsx" => {
            named.push(part);
        }
        "" => unnamed.push(part),
        _ => {}
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

//! Finds the author's place of a place in the generated code.

use swc_common::{BytePos, LineCol};

use super::Place;

/// Byte position that the parser gives the first byte of the source: swc keeps 0 for nodes that nobody wrote.
pub(super) const FIRST_BYTE: BytePos = BytePos(1);

/// Where the tokens of the generated code came from.
///
/// Kept as the printer wrote it, twelve bytes a token in order of the generated place, and searched only when
/// an error needs a place. No source map is built: nobody but this type would read it.
#[derive(Debug)]
pub(crate) struct Positions {
    /// What was parsed: the author's text, or the part of it that a Markdown fence holds.
    source: Box<str>,
    /// Lines of the author's text before `source`.
    lines_before: u32,
    tokens: Vec<(BytePos, LineCol)>,
    /// Lines of the generated code before the first token.
    prefix_lines: u32,
}

impl Positions {
    pub(super) fn new(
        source: &str,
        lines_before: u32,
        tokens: Vec<(BytePos, LineCol)>,
        prefix_lines: u32,
    ) -> Self {
        Self { source: source.into(), lines_before, tokens, prefix_lines }
    }

    /// Returns the author's place of a generated place. Both count from 1, columns in UTF-16 units as V8 does.
    ///
    /// `None` where nobody wrote what stands there: the wrapper, and the helpers of decorators.
    pub(crate) fn original(&self, line: u32, column: u32) -> Option<Place> {
        let line = line.checked_sub(1 + self.prefix_lines)?;
        let column = column.checked_sub(1)?;
        let after = self.tokens.partition_point(|(_, place)| (place.line, place.col) <= (line, column));
        let (byte, place) = self.tokens.get(after.checked_sub(1)?)?;
        // A token of an earlier line says nothing about this one.
        (place.line == line).then(|| place_of(&self.source, self.lines_before, *byte))
    }
}

/// Returns the author's place of a byte of what was parsed.
pub(super) fn place_of(source: &str, lines_before: u32, byte: BytePos) -> Place {
    let offset = source.floor_char_boundary(byte.0.saturating_sub(FIRST_BYTE.0) as usize);
    let before = &source[..offset];
    let mut lines = lines_before;
    let mut line_start = 0;
    for (index, _) in before.match_indices(['\n', '\r', '\u{2028}', '\u{2029}']) {
        let rest = &source[index..];
        // CR LF is one end of line, counted at its second half.
        if rest.starts_with("\r\n") {
            continue;
        }
        lines += 1;
        line_start = index + rest.chars().next().map_or(0, char::len_utf8);
    }
    let column = before[line_start..].encode_utf16().count();
    Place { line: lines + 1, column: u32::try_from(column).unwrap_or(u32::MAX - 1) + 1 }
}

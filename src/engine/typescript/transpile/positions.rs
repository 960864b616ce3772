//! Maps locations in the generated code to locations in the author's text.

use std::cell::OnceCell;

use swc_common::{BytePos, LineCol};

/// Byte position of the first byte of the source in the parser: swc reserves 0 for generated nodes.
pub(super) const FIRST_BYTE: BytePos = BytePos(1);

/// A source location in the author's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column, from 1, in UTF-16 units as V8 counts.
    pub(crate) column: u32,
}

/// The source positions of the tokens of the generated code.
///
/// They are kept as the printer wrote them, twelve bytes per token in the order of the generated
/// code, and searched only when an error needs a location. No source map is built, because only
/// this type would read it.
#[derive(Debug)]
pub(crate) struct Positions {
    /// The parsed source: the author's text, or the part of it inside a Markdown fence.
    source: Box<str>,
    /// Lines of the author's text before `source`.
    lines_before: u32,
    /// Built at the first lookup. A script may write a stack of any length, and each line of it is
    /// a lookup.
    index: OnceCell<LocationIndex>,
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
        Self { source: source.into(), lines_before, index: OnceCell::new(), tokens, prefix_lines }
    }

    /// Returns the author's location of a generated location. Both count from 1, columns in UTF-16
    /// units as V8 does.
    ///
    /// Returns `None` for generated code that has no source: the wrapper, and the helpers of
    /// decorators.
    pub(crate) fn original(&self, line: u32, column: u32) -> Option<Location> {
        let line = line.checked_sub(1 + self.prefix_lines)?;
        let column = column.checked_sub(1)?;
        let after =
            self.tokens.partition_point(|(_, location)| (location.line, location.col) <= (line, column));
        let (byte, location) = self.tokens.get(after.checked_sub(1)?)?;
        // A token of an earlier line does not determine the location on this one.
        (location.line == line).then(|| {
            let index = self.index.get_or_init(|| LocationIndex::new(&self.source, self.lines_before));
            index.location(&self.source, *byte)
        })
    }
}

/// Returns the author's location of a byte of the parsed source. Reads the source up to that byte;
/// use [`LocationIndex`] for many lookups.
pub(super) fn location_of(source: &str, lines_before: u32, byte: BytePos) -> Location {
    let offset = offset_of(source, byte);
    let mut line = lines_before + 1;
    let mut line_start = 0;
    for start in line_starts(&source[..offset], source) {
        line += 1;
        line_start = start;
    }
    Location { line, column: column(units(&source[line_start..offset])) }
}

/// Distance in bytes between offsets whose UTF-16 units are indexed: the most that one lookup
/// reads.
const BLOCK: usize = 1 << 10;

/// Maps byte offsets of a text to locations, each by binary search.
#[derive(Debug)]
pub(super) struct LocationIndex {
    lines_before: u32,
    /// Byte offset of the start of each line except the first.
    starts: Vec<u32>,
    /// UTF-16 units before each multiple of [`BLOCK`].
    units: Vec<u32>,
}

impl LocationIndex {
    pub(super) fn new(source: &str, lines_before: u32) -> Self {
        let starts = line_starts(source, source).filter_map(|start| u32::try_from(start).ok()).collect();
        let mut before = 0;
        let mut blocks = Vec::with_capacity(source.len() / BLOCK + 1);
        for block in 0..=source.len() / BLOCK {
            blocks.push(before);
            let end = source.floor_char_boundary((block + 1) * BLOCK);
            before += units(&source[source.floor_char_boundary(block * BLOCK)..end]);
        }
        Self { lines_before, starts, units: blocks }
    }

    /// Returns the location of a byte of `source`, which must be the indexed text.
    pub(super) fn location(&self, source: &str, byte: BytePos) -> Location {
        let offset = offset_of(source, byte);
        let lines = self.starts.partition_point(|start| *start as usize <= offset);
        let line_start = lines.checked_sub(1).map_or(0, |last| self.starts[last] as usize);
        let before = |offset: usize| {
            let block = offset / BLOCK;
            let known = self.units.get(block).copied().unwrap_or(0);
            known + units(&source[source.floor_char_boundary(block * BLOCK)..offset])
        };
        let line = self.lines_before + 1 + u32::try_from(lines).unwrap_or(u32::MAX >> 1);
        Location { line, column: column(before(offset) - before(line_start)) }
    }
}

fn offset_of(source: &str, byte: BytePos) -> usize {
    source.floor_char_boundary(byte.0.saturating_sub(FIRST_BYTE.0) as usize)
}

/// Returns where lines start in `text`, which is a prefix of `source`. CR LF is one line
/// terminator, which ends at the LF.
fn line_starts<'a>(text: &'a str, source: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(['\n', '\r', '\u{2028}', '\u{2029}'])
        .filter(|(index, _)| !source[*index..].starts_with("\r\n"))
        .map(|(index, end)| index + end.len())
}

fn units(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX >> 1)
}

/// Returns the column, from 1, after this many units of the line.
fn column(units: u32) -> u32 {
    units.saturating_add(1)
}

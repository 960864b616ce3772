//! Removes members of an object in a JSON text as a person would: with their lines and the comments in these, without
//! a comma or a blank line too many. A comment in a line of its own stays. It is often about more than the next member,
//! or is a disabled entry.

use std::collections::HashSet;
use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, parse_to_ast};

use crate::config::document::JSON;

/// What is between the members of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Space,
    Newline,
    Comma,
    Comment,
}

/// A member of the object.
struct Member {
    is_gone: bool,
    start: usize,
    value_end: usize,
    /// The position of the comma behind it.
    comma: Option<usize>,
}

impl Member {
    /// The position behind it and its comma.
    fn end(&self) -> usize {
        self.comma.map_or(self.value_end, |comma| comma + 1)
    }
}

/// A part of the text that goes.
struct Gone {
    range: Range<usize>,
    /// Whether it is whole lines.
    is_lines: bool,
}

/// The text without these members of the object at the end of `keys`.
///
/// # Errors
///
/// If one of them is not in it.
pub(super) fn remove(text: &str, keys: &[String], names: &[String]) -> Result<String, String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &JSON).map_err(|error| error.to_string())?;
    let root = parsed.value.as_ref().and_then(|value| value.as_object()).ok_or("it is not an object")?;
    let object = keys.iter().try_fold(root, |object, key| object.get_object(key));
    let properties = object.map(|object| object.properties.as_slice()).unwrap_or_default();
    let present: HashSet<&str> = properties.iter().map(|member| member.name.as_str()).collect();
    if let Some(missing) = names.iter().find(|name| !present.contains(name.as_str())) {
        return Err(format!("`{missing}` is not in it any more"));
    }
    let Some(object) = object else { return Ok(text.to_owned()) };
    let inside = object.range.start + 1..object.range.end.saturating_sub(1);
    let members = members(text, properties, &inside, names);
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    for gone in gone(text, &members, &inside) {
        rest.push_str(&text[at..gone.range.start]);
        at = gone.range.end;
        if gone.is_lines {
            at += close_gap(&mut rest, &text[at..]);
        }
    }
    rest.push_str(&text[at..]);
    let inside = inside.start..rest.len() - (text.len() - inside.end);
    if rest[inside.clone()].trim().is_empty() {
        rest.replace_range(inside, "");
    }
    Ok(rest)
}

fn members(
    text: &str,
    properties: &[ast::ObjectProp<'_>],
    inside: &Range<usize>,
    names: &[String],
) -> Vec<Member> {
    let names: HashSet<&str> = names.iter().map(String::as_str).collect();
    let next = properties.iter().skip(1).map(|next| next.range().start).chain([inside.end]);
    let member = |(property, next): (&ast::ObjectProp<'_>, usize)| {
        let range = property.range();
        let mut behind = pieces(text, range.end..next).into_iter();
        let comma = behind.find(|(piece, _)| *piece == Piece::Comma).map(|(_, range)| range.start);
        let is_gone = names.contains(property.name.as_str());
        Member { is_gone, start: range.start, value_end: range.end, comma }
    };
    properties.iter().zip(next).map(member).collect()
}

/// The parts of the text that go, in order.
fn gone(text: &str, members: &[Member], inside: &Range<usize>) -> Vec<Gone> {
    let mut gone = Vec::new();
    // If nothing follows the last member that stays, it has a comma only where the last member had one.
    let last_kept = members.iter().rposition(|member| !member.is_gone);
    let has_last_comma = members.last().is_some_and(|member| member.comma.is_some());
    let mut dangling = last_kept.filter(|last| last + 1 < members.len() && !has_last_comma);
    let mut first = 0;
    while let Some(member) = members.get(first) {
        let mut next = first + 1;
        if !member.is_gone {
            first = next;
            continue;
        }
        // Those in one line are one part.
        while let Some(other) = members.get(next).filter(|other| other.is_gone)
            && !text[members[next - 1].end()..other.start].contains('\n')
        {
            next += 1;
        }
        let before = first.checked_sub(1).map_or(inside.start, |before| members[before].end());
        let (mut start, mut begins_line) = line_start(text, before..member.start);
        if let Some(kept) = dangling.take_if(|kept| *kept + 1 == first).map(|kept| &members[kept])
            && let Some(comma) = kept.comma
        {
            if start == comma + 1 && !begins_line {
                // A comment before the comma is about the member that stays.
                let between = text[kept.value_end..comma].trim_end_matches([' ', '\t']);
                (start, begins_line) = (kept.value_end + between.len(), between.ends_with('\n'));
            } else {
                gone.push(Gone { range: comma..comma + 1, is_lines: false });
            }
        }
        let end = members[next - 1].end();
        let after = end..members.get(next).map_or(inside.end, |next| next.start);
        let (range, is_lines) = match line_end(text, after) {
            Some(line_end) if begins_line => (start..line_end, true),
            // What follows in the line takes the place.
            None if begins_line || next < members.len() => {
                (start + spaces(&text[start..])..end + spaces(&text[end..]), false)
            }
            _ => (start..end, false),
        };
        gone.push(Gone { range, is_lines });
        first = next;
    }
    gone
}

/// The start of the line that ends with this part of the text, and `true`; or where in the line something other than a
/// comment ends, and `false`.
fn line_start(text: &str, part: Range<usize>) -> (usize, bool) {
    let mut start = part.end;
    for (piece, range) in pieces(text, part).into_iter().rev() {
        match piece {
            Piece::Newline => return (range.end, true),
            Piece::Comma => break,
            Piece::Comment if text[range.clone()].contains('\n') => break,
            Piece::Space | Piece::Comment => start = range.start,
        }
    }
    (start, false)
}

/// The end of the line that begins with this part of the text, if nothing but comments is in it.
fn line_end(text: &str, part: Range<usize>) -> Option<usize> {
    for (piece, range) in pieces(text, part) {
        match piece {
            Piece::Newline => return Some(range.end),
            Piece::Comma => return None,
            Piece::Comment if text[range].contains('\n') => return None,
            Piece::Space | Piece::Comment => {}
        }
    }
    None
}

/// Removes the blank lines that are too many where lines have gone: before the end of the object, after its beginning,
/// and those after other blank lines. Returns how many bytes of what follows go too.
fn close_gap(kept: &mut String, follows: &str) -> usize {
    let written = kept.trim_end().len();
    let newlines = kept[written..].matches('\n').count();
    if follows.trim_start_matches([' ', '\t']).starts_with('}') {
        let line_end = kept[written..].find('\n').map_or(kept.len(), |newline| written + newline + 1);
        kept.truncate(line_end);
        return 0;
    }
    if newlines < 2 && !kept[..written].ends_with('{') {
        return 0;
    }
    let lines = follows.split_inclusive('\n');
    lines.take_while(|line| line.ends_with('\n') && line.trim().is_empty()).map(str::len).sum()
}

/// The number of spaces and tabs at the start of a text.
fn spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

/// The pieces of a part of the text that is between members, and where they are.
fn pieces(text: &str, part: Range<usize>) -> Vec<(Piece, Range<usize>)> {
    let mut pieces = Vec::new();
    let mut start = part.start;
    while start < part.end {
        let rest = &text[start..part.end];
        let until = |end: &[char]| rest.find(end).unwrap_or(rest.len());
        let (piece, length) = match rest.as_bytes() {
            [b'\n', ..] => (Piece::Newline, 1),
            [b',', ..] => (Piece::Comma, 1),
            [b'/', b'/', ..] => (Piece::Comment, until(&['\n', '\r'])),
            [b'/', ..] => (
                Piece::Comment,
                rest.match_indices("*/").find(|(at, _)| *at >= 2).map_or(rest.len(), |(at, _)| at + 2),
            ),
            _ => (Piece::Space, until(&['\n', ',', '/'])),
        };
        pieces.push((piece, start..start + length));
        start += length;
    }
    pieces
}

#[cfg(test)]
mod tests;

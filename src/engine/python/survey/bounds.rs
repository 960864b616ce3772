//! Bounds on the nesting of a source, checked before it is parsed: the parser grows its stack, but
//! the code that reads and drops the tree recurses.
//!
//! Every bracket and every block is a level. So is each operator, dot and keyword since the last
//! comma of its bracket. This is an upper bound of the tree's depth for every rule of the grammar.
//! Almost every source is measured by its bytes. Where Ruff's lexer could read the bytes
//! differently, its tokens are counted.

mod bytes;
mod levels;
mod tokens;

use self::bytes::Measured;

/// Maximum depth of a tree. Scripts that people write stay below a third of it; the threads of interpreters have
/// 2 MB of stack, and a level of the tree takes up to 8 KB in an unoptimized build.
const MAX_DEPTH: usize = 100;

/// Maximum number of different indentations of a source. Where the parser recovers from an error it sees blocks that
/// the tokens do not have, but none without an indentation of its own.
const MAX_INDENTATIONS: u32 = 50;

/// Why a source is not parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// Its tree may be too deep.
    TooDeep,
    /// The bracket at this offset has no partner. The parser would go on, in a way that is not
    /// bounded here.
    Unpaired { at: usize },
}

/// Checks that the tree of `source` has at most [`MAX_DEPTH`] levels.
pub(super) fn check(source: &str) -> Result<(), Bound> {
    if indentations(source) > MAX_INDENTATIONS {
        return Err(Bound::TooDeep);
    }
    match bytes::measure(source) {
        Measured::Depth(depth) if depth <= MAX_DEPTH => Ok(()),
        Measured::Unpaired { at } => Err(Bound::Unpaired { at }),
        Measured::Depth(_) | Measured::Unclear => match tokens::depth(source) {
            Some(depth) if depth <= MAX_DEPTH => Ok(()),
            _ => Err(Bound::TooDeep),
        },
    }
}

/// How many different numbers of spaces and tabs begin the lines of a source.
fn indentations(source: &str) -> u32 {
    let mut seen = 0_u128;
    // In two steps, because one character is looked for many bytes at a time.
    for line in source.split('\n').flat_map(|line| line.split('\r')) {
        let width = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\x0c')).count();
        match u32::try_from(width).ok().and_then(|width| 1_u128.checked_shl(width)) {
            Some(bit) => seen |= bit,
            None => return u32::MAX,
        }
    }
    seen.count_ones()
}

#[cfg(test)]
mod tests;

//! Refuses source that would nest too deeply, before the parser sees it.
//!
//! The parser, every pass, the printer and the destructor of the tree recurse once per level, and a
//! stack that overflows kills the process: no `catch_unwind` helps. So the height of the tree is
//! over-approximated here, in one pass over the bytes that does not recurse. What may nest to the right
//! (`!`, `=>`, `?:`, `else if`, words in a row such as `await await`) weighs ten; a link of a chain that the
//! parser reads in a loop (`+`, `.`, a call) weighs one, because only the visitors recurse over it.
//!
//! Time is bounded in the same pass, because swc has no end of it on a few constructs: see [`MAX_WORK`].
//!
//! The estimate must never be too low. Whoever could make this scanner believe that code is a string
//! would hide brackets from it, and JavaScript has one place where that can be tried: `/` is a division
//! or opens a regular expression, depending on grammar that is not known here. Where the token before it
//! does not decide, both readings are followed until they agree again.

mod frame;
mod literals;
mod operators;
mod scanner;
mod words;

#[cfg(test)]
mod tests;

use scanner::{Scanner, Stop};

/// Brackets and templates open at one time. Real programs stay below 40.
pub(super) const MAX_BRACKETS: usize = 1_000;

/// Largest weight on one path through the tree: 20,000 links of a chain or 2,000 levels of nesting. On a
/// 256 MB stack that leaves 13 KB a link and 130 KB a level; `transpile/tests/bounds.rs` runs each construct there.
pub(super) const MAX_WEIGHT: u32 = 20_000;

/// Most bytes that swc may read, with those it reads again. It cannot be cancelled, and some constructs double its
/// time for all that they hold: a generic arrow function that turns out to be a type assertion, an arrow function
/// in a conditional expression, a class in the `extends` of a class. Eight times the largest source is a second.
pub(super) const MAX_WORK: u64 = 8 << 20;

/// Times that both readings of a `/` are followed. Hand-written code needs none or one.
const MAX_READINGS: u32 = 64;

/// Why the source is refused, with the byte where that was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The tree could be higher than the stack allows.
    TooDeep {
        /// Byte offset of the token that is one too deep.
        at: usize,
    },
    /// The parser would read more than [`MAX_WORK`] bytes.
    TooMuchWork {
        /// Byte offset where the bound is passed.
        at: usize,
    },
    /// Too many `/` of which only the grammar knows whether they divide.
    Unclear {
        /// Byte offset of the last such `/`.
        at: usize,
    },
}

/// Returns an error if parsing `source` could exhaust the stack, or would take too much work.
pub(super) fn check(source: &str) -> Result<(), Refusal> {
    weight(source).map(drop)
}

/// Returns the largest weight that a path through the tree of `source` can have, in any of its readings.
pub(super) fn weight(source: &str) -> Result<u32, Refusal> {
    let mut readings = MAX_READINGS;
    let mut pending = vec![Scanner::new(source)];
    let mut heaviest = 0;
    while let Some(mut scanner) = pending.pop() {
        scanner.run(&mut readings, &mut pending, Stop::AtEnd)?;
        heaviest = heaviest.max(scanner.heaviest);
    }
    Ok(heaviest)
}

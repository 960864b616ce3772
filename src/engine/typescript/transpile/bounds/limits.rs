//! The bounds of source, and the refusal of what is beyond them.

/// Maximum number of brackets and templates open at one time. Real programs stay below 40.
pub(in super::super) const MAX_BRACKETS: usize = 1_000;

/// Maximum weight of one path through the tree: 20,000 links of a chain or 2,000 levels of nesting.
/// On a 256 MB stack that leaves 13 KB per link and 130 KB per level; `transpile/tests/bounds.rs`
/// tests each construct at this bound.
pub(in super::super) const MAX_WEIGHT: u32 = 20_000;

/// Maximum number of bytes that swc may read, including repeated reads. swc cannot be cancelled,
/// and some constructs double its time for everything inside them: a generic arrow function that
/// turns out to be a type assertion, an arrow function in a conditional expression, a class in the
/// `extends` of a class. The bound is eight times the largest source, which takes about a second.
pub(in super::super) const MAX_WORK: u64 = 8 << 20;

/// Why the source is refused, with the byte offset where that was detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum SourceRefusal {
    /// The tree could be higher than the stack allows.
    TooDeep {
        /// Byte offset of the token that is one too deep.
        at: usize,
    },
    /// The parser would read more than [`MAX_WORK`] bytes.
    TooMuchWork {
        /// Byte offset where the bound is exceeded.
        at: usize,
    },
    /// Too many `/` that are a division or a regular expression depending on the grammar.
    Unclear {
        /// Byte offset of the last such `/`.
        at: usize,
    },
}

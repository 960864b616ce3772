//! Refuses source that would nest too deeply, before it is parsed.
//!
//! The parser, every pass, the printer and the destructor of the tree recurse once per level, and a
//! stack overflow kills the process; `catch_unwind` cannot prevent it. So the height of the tree is
//! over-approximated here, in one non-recursive scan of the bytes. Constructs that may nest to the
//! right (`!`, `=>`, `?:`, `else if`, sequences of words such as `await await`) weigh ten. A link
//! of a chain that the parser reads in a loop (`+`, `.`, a call) weighs one, because only the
//! visitors recurse over it.
//!
//! The same scan bounds time, because swc takes exponential time on a few constructs: see
//! [`limits::MAX_WORK`]. Which these are is not known from a list: the fuzz target `nestings` holds
//! the work that is counted here against the time that swc takes for what a grammar allows.
//!
//! swc's feature `stacker` grows the stack instead, where a function asks for it: one function of
//! the parser and some passes do, but neither the printer nor the destructor. Nor does it bound
//! time. So the feature is off (docs/decisions/0023).
//!
//! The estimate must never be too low. Source that made this scanner mistake code for a string
//! could hide brackets from it. JavaScript has one token where that can be tried: `/` is a division
//! or starts a regular expression, depending on grammar that the scanner does not know. Where the
//! previous token does not decide, both readings are followed until they agree again.

mod frame;
mod limits;
mod literals;
mod operators;
mod readings;
mod scanner;
mod words;

#[cfg(test)]
mod tests;

pub(super) use limits::SourceRefusal;
use readings::Readings;
use scanner::{Scanner, Stop};

/// Maximum number of times that both readings of a `/` are followed beyond the line. Hand-written
/// code needs none.
const MAX_READINGS: u32 = 64;

/// Maximum number of bytes that are read again to follow both readings of each `/`: twice the
/// largest source, in a fraction of the time that swc takes for it.
const MAX_REREAD: usize = 2 << 20;

/// Maximum number of readings that begin inside each other on one line. Each takes stack, and the readings double with
/// each.
const MAX_NESTED: u32 = 100;

/// Returns an error if parsing `source` could overflow the stack, or would take too much work.
pub(super) fn check(source: &str) -> Result<(), SourceRefusal> {
    weight(source).map(drop)
}

/// Returns the maximum weight of a path through the tree of `source`, in any of its readings.
pub(super) fn weight(source: &str) -> Result<u32, SourceRefusal> {
    let mut heaviest = 0;
    follow(source, |reading| heaviest = heaviest.max(reading.heaviest))?;
    Ok(heaviest)
}

/// Returns how many bytes swc may read for `source`, including repeated reads, in any of its readings.
#[cfg(any(test, fuzzing))]
pub(super) fn work(source: &str) -> Result<u64, SourceRefusal> {
    let mut work = 0;
    follow(source, |reading| work = work.max(reading.work))?;
    Ok(work)
}

/// Calls `ended` with each reading of `source`, at its end.
fn follow<'a>(source: &'a str, mut ended: impl FnMut(&Scanner<'a>)) -> Result<(), SourceRefusal> {
    let mut readings = Readings {
        left: MAX_READINGS,
        nested: MAX_NESTED,
        bytes: MAX_REREAD,
        pending: vec![Scanner::new(source)],
    };
    while let Some(mut scanner) = readings.pending.pop() {
        scanner.run(&mut readings, Stop::AtEnd)?;
        ended(&scanner);
    }
    Ok(())
}

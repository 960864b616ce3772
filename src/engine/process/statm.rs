//! The memory of another process, as the kernel counts it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Memory that a worker may use beyond what it had before the run and twice the run's limit. V8 collects late, and
/// collected memory is not returned immediately. The engine in the worker enforces the exact limit; this one is for a
/// worker that was taken over.
pub(super) const SLACK_BYTES: usize = 128 << 20;

/// The resident memory of the process of this `statm` file, in bytes. It is 0 if the process has ended and is not reaped,
/// and also if only its first thread has ended: the kernel tells nothing of the memory of the others then. `None` if the
/// process was reaped.
pub(super) fn resident_bytes(statm: &File) -> Option<usize> {
    let mut text = [0; 128];
    let count = statm.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..count)?).ok()?;
    let pages: usize = text.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size())
}

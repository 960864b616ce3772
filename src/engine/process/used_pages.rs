//! Which memory a run uses, found out before there is one. A forked worker shares all memory with its fork server, and
//! has to copy a page when it first writes it, or to map it when it first reads it of a file. For a short script of
//! Python these are some 300 pages, which take longer than the script.
//!
//! So the fork server forks a process that executes a script of its own, reports which pages that took, and ends. Each
//! worker takes the same pages for itself before it is asked for a run.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use rustix::process::{Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid};

use super::connection::end_process;
use super::fork_server::{self, Mapping};
use super::forks::is_readable;

/// Maximum time until the process reports. Without a report workers are slower and no less right.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Maximum number of parts of memory that are reported. A short run has some 500.
const MAX_PARTS: usize = 16_384;

/// The size of one page in `/proc/self/pagemap`, and its flags: `Documentation/admin-guide/mm/pagemap.rst` of Linux.
const ENTRY_BYTES: usize = 8;
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;
const MAPPED_ONCE: u64 = 1 << 56;

/// Maximum number of pages of which the flags are read at once.
const PAGES_AT_ONCE: usize = 8192;

/// How runs use a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageUse {
    /// It is of a file, and only read.
    Read,
    Write,
}

/// A part of the address space, in whole pages, and how runs use it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    pages: Range<usize>,
    usage: PageUse,
}

/// The pages that runs use.
#[derive(Default)]
pub(super) struct UsedPages(Vec<Part>);

impl UsedPages {
    /// Those that `run` uses in a process which is forked for it. None if that fails: the reason is only logged.
    ///
    /// Call it on the thread, and in the depth of calls, on which workers execute runs.
    pub(super) fn measure(run: impl FnOnce()) -> Self {
        measure(run).unwrap_or_else(|error| {
            tracing::debug!(%error, "it is not known which memory runs use");
            Self::default()
        })
    }

    /// Prefaults these pages: copies those that runs write, and maps those that they read. Called in a process that the
    /// same parent has forked.
    pub(super) fn prefault(&self) {
        for Part { pages, usage } in &self.0 {
            let advice = match usage {
                PageUse::Read => Advice::LinuxPopulateRead,
                PageUse::Write => Advice::LinuxPopulateWrite,
            };
            #[expect(unsafe_code, reason = "no safe crate has this call for memory of others")]
            // SAFETY: it changes nothing that this process could see of its memory.
            let _unknown_before_linux_5_14 =
                unsafe { madvise(std::ptr::without_provenance_mut(pages.start), pages.len(), advice) };
        }
    }
}

fn measure(run: impl FnOnce()) -> io::Result<UsedPages> {
    let mappings = fork_server::mappings()?;
    let (reading, mut writing) = io::pipe()?;
    let Some(child) = fork_server::fork()? else {
        let _ends_by_itself_otherwise = set_parent_process_death_signal(Some(Signal::KILL));
        drop(reading);
        run();
        let _sent = used_pages(&mappings).and_then(|parts| send(&parts, &mut writing));
        // The report is complete before what the libraries do at the end of a process, without their threads.
        drop(writing);
        end_process();
    };
    drop(writing);
    let parts = receive(reading);
    // It ends by itself, or has failed to in time.
    let _killed = kill_process(child, Signal::KILL);
    while matches!(waitpid(Some(child), WaitOptions::empty()), Err(Errno::INTR)) {}
    parts.map(UsedPages)
}

/// The pages of `mappings` that this process has used since it was forked.
fn used_pages(mappings: &[Mapping]) -> io::Result<Vec<Part>> {
    let page_bytes = rustix::param::page_size();
    let map = File::open("/proc/self/pagemap")?;
    let mut entries = vec![0; PAGES_AT_ONCE * ENTRY_BYTES];
    let mut parts: Vec<Part> = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.is_readable) {
        let mut page = mapping.addresses.start / page_bytes;
        let end = mapping.addresses.end / page_bytes;
        while page < end && parts.len() < MAX_PARTS {
            let count = PAGES_AT_ONCE.min(end - page);
            let Some(entries) = entries.get_mut(..count * ENTRY_BYTES) else { break };
            if map.read_exact_at(entries, (page * ENTRY_BYTES) as u64).is_err() {
                // Such as that of `[vsyscall]`, which is not of the process. Old machines can read it.
                break;
            }
            for (page, entry) in (page..).zip(entries.as_chunks::<ENTRY_BYTES>().0) {
                if let Some(usage) = usage(u64::from_ne_bytes(*entry)) {
                    add(&mut parts, page * page_bytes..(page + 1) * page_bytes, usage);
                }
            }
            page += count;
        }
    }
    Ok(parts)
}

/// How this process has used a page. What it has neither copied nor mapped is mapped twice or not at all.
fn usage(entry: u64) -> Option<PageUse> {
    match (entry & PRESENT != 0, entry & OF_FILE != 0, entry & MAPPED_ONCE != 0) {
        (true, true, _) => Some(PageUse::Read),
        (true, false, true) => Some(PageUse::Write),
        _ => None,
    }
}

/// Adds pages, to the last part where they continue it.
fn add(parts: &mut Vec<Part>, pages: Range<usize>, usage: PageUse) {
    match parts.last_mut() {
        Some(last) if last.pages.end == pages.start && last.usage == usage => last.pages.end = pages.end,
        _ => parts.push(Part { pages, usage }),
    }
}

/// A part, as it is sent: the first and the last address, of which the lowest bit says how it is used.
const PART_BYTES: usize = 2 * size_of::<usize>();

fn send(parts: &[Part], pipe: &mut PipeWriter) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(parts.len() * PART_BYTES);
    for Part { pages, usage } in parts {
        bytes.extend(pages.start.to_ne_bytes());
        bytes.extend((pages.end | usize::from(*usage == PageUse::Write)).to_ne_bytes());
    }
    pipe.write_all(&bytes)
}

/// # Errors
///
/// If it takes too long, or the process has ended without a report.
fn receive(mut pipe: PipeReader) -> io::Result<Vec<Part>> {
    let began = Instant::now();
    let mut bytes = Vec::new();
    let mut chunk = [0; 1 << 14];
    loop {
        if !is_readable(&pipe, MAX_TIME.saturating_sub(began.elapsed())) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match pipe.read(&mut chunk)? {
            0 => break,
            count => bytes.extend(chunk.get(..count).unwrap_or_default()),
        }
    }
    if bytes.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the process that executes a sample has failed",
        ));
    }
    let part = |bytes: &[u8; PART_BYTES]| {
        let (addresses, _) = bytes.as_chunks::<{ size_of::<usize>() }>();
        let [start, end] = addresses else { return None };
        let (start, end) = (usize::from_ne_bytes(*start), usize::from_ne_bytes(*end));
        let usage = if end & 1 == 1 { PageUse::Write } else { PageUse::Read };
        Some(Part { pages: start..end & !1, usage })
    };
    Ok(bytes.as_chunks::<PART_BYTES>().0.iter().filter_map(part).collect())
}

#[cfg(test)]
mod tests;

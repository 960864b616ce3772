//! A linear memory's address range, which starts from the initial memory image and can be restored
//! to it.
//!
//! A run writes to about 700 of the 9,000 pages. In a new mapping, each of them costs a page fault
//! that copies the page, and interrupts to other cores if the page was read before; that was half
//! of the time of all processors. In a reused mapping these pages exist already. What one run wrote
//! never reaches another: the kernel reports which pages differ from the image's own, and each of
//! them is read from the image again.
//!
//! wasmtime's pooling allocator keeps written pages in the same way only with `PAGEMAP_SCAN`, which
//! needs Linux 6.7; without it, all pages beyond a fixed prefix are discarded after each run. It
//! also reserves the address space of all its memories at the start, refuses runs beyond their
//! number, and cannot release the unmodified pages of an idle memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::ptr;
use std::slice;

use parking_lot::RwLock;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

/// Maximum bytes of written pages that an idle memory may keep. If a run has written more, all its
/// pages are discarded.
pub(super) const MAX_KEPT: usize = 6 << 20;

/// Size in bytes of an entry of `/proc/self/pagemap`.
pub(super) const ENTRY: usize = 8;

/// Flags of such an entry, from the kernel's `Documentation/admin-guide/mm/pagemap.rst`: the page
/// is in memory; it is in swap; it is a page of a file, so nothing was written to it in a private
/// mapping.
pub(super) const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_A_FILE: u64 = 1 << 61;

/// The initial memory image: a part of a file that is never modified.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) file: File,
    /// Offset of the image in the file. A multiple of the page size.
    pub(super) offset: u64,
    /// A multiple of the page size.
    pub(super) length: usize,
}

impl Image {
    /// Creates an image in an unnamed file that is removed when the process ends. Nobody can change it afterwards: it is
    /// the beginning of all interpreters, also of those in processes that are forked of this one.
    ///
    /// # Errors
    ///
    /// If the system cannot create such a file.
    pub(super) fn in_memory(bytes: &[u8]) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        let file = {
            use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = File::from(memfd_create("cx-python", flags)?);
            file.write_all_at(bytes, 0)?;
            let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
            fcntl_add_seals(&file, seals)?;
            file
        };
        #[cfg(not(target_os = "linux"))]
        let file = {
            let file = tempfile::tempfile()?;
            file.write_all_at(bytes, 0)?;
            file
        };
        Ok(Self { file, offset: 0, length: bytes.len() })
    }
}

/// An exclusive address range: a guard, the accessible part, the part it can grow into, and a
/// guard.
pub(super) struct Mapping {
    start: *mut u8,
    /// Bytes between the two guards.
    pub(super) capacity: usize,
    /// Bytes of each guard.
    pub(super) guard: usize,
}

#[expect(unsafe_code, reason = "it is an address")]
// SAFETY: the mapping belongs to no thread, and only `&mut self` changes it.
unsafe impl Send for Mapping {}
#[expect(unsafe_code, reason = "it is an address")]
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Placeholder left where a mapping was moved out.
    pub(super) const NONE: Self = Self { start: ptr::null_mut(), capacity: 0, guard: 0 };

    /// Reserves an address range of which nothing can be accessed.
    pub(super) fn new(capacity: usize, guard: usize) -> io::Result<Self> {
        let length = guard.checked_mul(2).and_then(|guards| guards.checked_add(capacity));
        let length = length.ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        #[expect(unsafe_code, reason = "memory is mapped")]
        // SAFETY: the kernel chooses the address, so the range overlaps nothing else.
        let start =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), flags) }?;
        Ok(Self { start: start.cast(), capacity, guard })
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.start.wrapping_add(self.guard)
    }

    /// Makes the bytes from `from` to `to` accessible. Both are multiples of the page size.
    pub(super) fn open(&mut self, from: usize, to: usize) -> io::Result<()> {
        self.protect(from, to, MprotectFlags::READ | MprotectFlags::WRITE)
    }

    fn protect(&mut self, from: usize, to: usize, flags: MprotectFlags) -> io::Result<()> {
        if from > to || to > self.capacity {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        #[expect(unsafe_code, reason = "memory is protected")]
        // SAFETY: the range lies in this mapping, as was checked, and nothing borrows from it.
        unsafe { rustix::mm::mprotect(self.base().wrapping_add(from).cast(), to - from, flags) }?;
        Ok(())
    }

    /// Makes the first bytes accessible, as a private copy-on-write mapping of the image.
    pub(super) fn map(&mut self, image: &Image) -> io::Result<()> {
        if image.length > self.capacity {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        #[expect(unsafe_code, reason = "a file is mapped")]
        // SAFETY: it replaces only the beginning of this mapping, as was checked. The file is
        // neither changed nor truncated: it is replaced by renaming, never written to.
        unsafe {
            rustix::mm::mmap(self.base().cast(), image.length, protection, flags, &image.file, image.offset)
        }?;
        Ok(())
    }

    /// Restores the image in the first `size` bytes, and makes everything beyond the image
    /// inaccessible.
    pub(super) fn restore(&mut self, image: &Image, size: usize) -> io::Result<()> {
        if size > image.length {
            self.forget(image.length, size)?;
            self.protect(image.length, size, MprotectFlags::empty())?;
        }
        let written = written(self.base(), image.length)?;
        if written.iter().map(|pages| pages.len()).sum::<usize>() > MAX_KEPT {
            return self.forget(0, image.length);
        }
        for range in written {
            #[expect(unsafe_code, reason = "memory is overwritten")]
            // SAFETY: the range lies in the part that is mapped for reading and writing, and
            // nothing borrows from it.
            let pages =
                unsafe { slice::from_raw_parts_mut(self.base().wrapping_add(range.start), range.len()) };
            image.file.read_exact_at(pages, image.offset + range.start as u64)?;
        }
        Ok(())
    }

    /// Resets a range to its content when it was mapped: the image, or zeros.
    fn forget(&mut self, from: usize, to: usize) -> io::Result<()> {
        forget(self.base(), from, to)
    }

    /// Copies the first `length` bytes, which must be accessible in both mappings.
    pub(super) fn copy_from(&mut self, other: &Self, length: usize) {
        #[expect(unsafe_code, reason = "memory moves")]
        // SAFETY: different mappings do not overlap, and both have `length` bytes.
        unsafe {
            ptr::copy_nonoverlapping(other.base(), self.base(), length);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.start.is_null() {
            return;
        }
        #[expect(unsafe_code, reason = "memory is unmapped")]
        // SAFETY: it is the whole mapping, and nothing holds an address in it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.capacity + 2 * self.guard) };
    }
}

/// Removes the unmodified pages of a private file mapping from resident memory. Nothing may write
/// to the range meanwhile.
///
/// # Errors
///
/// If the system does not report which pages were modified.
pub(super) fn give_back(base: *mut u8, length: usize) -> io::Result<()> {
    let mut from = 0;
    for written in written(base, length)?.into_iter().chain(std::iter::once(length..length)) {
        if from < written.start {
            forget(base, from, written.start)?;
        }
        from = written.end;
    }
    Ok(())
}

/// Resets a range of a mapping to its content when it was mapped: the image, or zeros.
fn forget(base: *mut u8, from: usize, to: usize) -> io::Result<()> {
    #[expect(unsafe_code, reason = "memory is given back")]
    // SAFETY: every caller takes the range from a private mapping that nothing reads or writes as
    // Rust values meanwhile.
    unsafe { rustix::mm::madvise(base.wrapping_add(from).cast(), to - from, Advice::LinuxDontNeed) }?;
    Ok(())
}

/// What the kernel says of the pages of this process. `None` where there is no `/proc`, and before it is needed.
static PAGEMAP: RwLock<Option<File>> = RwLock::new(None);

/// Opens what [`written`] reads, unless that is open. A worker process can open no file once it has its sandbox.
pub(super) fn open_pagemap() {
    if PAGEMAP.read().is_none() {
        reopen_pagemap();
    }
}

/// The same in a process that was forked: the open file says what pages the other process has.
pub(super) fn reopen_pagemap() {
    *PAGEMAP.write() = File::open("/proc/self/pagemap").ok();
}

/// The pages among the first `length` bytes of a mapping that differ from the file's own, as byte
/// ranges.
pub(super) fn written(base: *const u8, length: usize) -> io::Result<Vec<Range<usize>>> {
    open_pagemap();
    let pagemap = PAGEMAP.read();
    let pagemap = pagemap.as_ref().ok_or(io::ErrorKind::NotFound)?;
    let page = rustix::param::page_size();
    let mut entries = vec![0; length / page * ENTRY];
    pagemap.read_exact_at(&mut entries, (base as usize / page * ENTRY) as u64)?;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (number, entry) in entries.as_chunks().0.iter().enumerate() {
        let entry = u64::from_ne_bytes(*entry);
        if entry & (PRESENT | SWAPPED) == 0 || entry & OF_A_FILE != 0 {
            continue;
        }
        let start = number * page;
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end += page,
            _ => ranges.push(start..start + page),
        }
    }
    Ok(ranges)
}

#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/entries/restore.rs"]
pub(crate) mod fuzzing;

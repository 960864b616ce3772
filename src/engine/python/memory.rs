//! Pool of linear memories. After a run, dirty pages are restored from the initial memory image, so
//! that the mapping can be reused.
//!
//! A run writes to about 700 of the 9,000 pages. In a new mapping, each of them costs a page fault
//! that copies the page, and interrupts to other cores if the page was read before; that was half
//! of the time of all processors. In a reused mapping these pages exist already. What one run wrote
//! never reaches another: the kernel reports which pages differ from the image's own, and each of
//! them is read from the image again.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::ptr;
use std::slice;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

/// Maximum number of idle memories. Bursts of runs create more, which are unmapped afterwards.
const MAX_IDLE: usize = 4;

/// Maximum bytes of written pages that an idle memory may keep. If a run has written more, all its
/// pages are discarded.
const MAX_KEPT: usize = 6 << 20;

/// Additional address space for a memory that has to move, so that it does not move at each growth.
const MOVED_RESERVATION: usize = 64 << 20;

/// Size in bytes of an entry of `/proc/self/pagemap`.
const ENTRY: usize = 8;

/// Flags of such an entry, from the kernel's `Documentation/admin-guide/mm/pagemap.rst`: the page
/// is in memory; it is in swap; it is a page of a file, so nothing was written to it in a private
/// mapping.
const PRESENT: u64 = 1 << 63;
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
    /// Creates an image in an unnamed file that is removed when the process ends.
    ///
    /// # Errors
    ///
    /// If the system cannot create such a file.
    pub(super) fn in_memory(bytes: &[u8]) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        let file = File::from(rustix::fs::memfd_create("cx-python", rustix::fs::MemfdFlags::CLOEXEC)?);
        #[cfg(not(target_os = "linux"))]
        let file = tempfile::tempfile()?;
        file.write_all_at(bytes, 0)?;
        Ok(Self { file, offset: 0, length: bytes.len() })
    }
}

/// Creates memories and takes them back. Clones share the pool.
#[derive(Clone, Default)]
pub(super) struct Memories {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    image: OnceLock<Image>,
    idle: Mutex<Vec<Mapping>>,
}

impl Memories {
    /// Sets the image. From now on, memories of the image's length start from it.
    pub(super) fn set_image(&self, image: Image) {
        // A second image would be identical, because there is only one component.
        let _ = self.shared.image.set(image);
    }

    /// Unmaps the idle memories.
    pub(super) fn forget_idle(&self) {
        // Unmapped after the lock is released.
        let _idle = std::mem::take(&mut *self.shared.idle.lock());
    }

    fn make(&self, minimum: usize, reserved: usize, guard: usize) -> io::Result<Memory> {
        let image = self.shared.image.get().filter(|image| image.length == minimum);
        let idle = image.and_then(|_| self.shared.idle.lock().pop());
        let capacity = reserved.max(minimum);
        let mapping = match idle {
            Some(mapping) if mapping.capacity == capacity && mapping.guard == guard => mapping,
            _ => {
                let mut mapping = Mapping::new(capacity, guard)?;
                match image {
                    Some(image) => mapping.map(image)?,
                    None => mapping.open(0, minimum)?,
                }
                mapping
            }
        };
        let origin = image.is_some().then(|| Arc::clone(&self.shared));
        let place = Arc::new(Place::default());
        if let Some(image) = image {
            *place.span.lock() = Some((mapping.base() as usize, image.length));
            NEWEST.set(Some(Arc::clone(&place)));
        }
        Ok(Memory { mapping, size: minimum, origin, place })
    }
}

thread_local! {
    /// The location of the memory that this thread created last. wasmtime does not tell a
    /// [`MemoryCreator`] which instance a memory is for.
    static NEWEST: RefCell<Option<Arc<Place>>> = const { RefCell::new(None) };
}

/// The location of a memory that started from the image, while it exists and has not moved.
#[derive(Default)]
pub(super) struct Place {
    /// The memory's address and the image's length.
    span: Mutex<Option<(usize, usize)>>,
}

impl Place {
    /// The location of the memory that this thread created last, if it started from the image. Can
    /// be taken once for each memory.
    pub(super) fn newest() -> Option<Arc<Self>> {
        NEWEST.take()
    }

    /// Removes unmodified image pages from resident memory. They are read from the file again when
    /// they are accessed. The guest sees no change, but it must not run meanwhile: a concurrent
    /// write to such a page would be lost.
    ///
    /// # Errors
    ///
    /// If the system does not report which pages were modified.
    pub(super) fn give_back(&self) -> io::Result<()> {
        // Held until the call returns, so that the memory is not unmapped meanwhile.
        let span = self.span.lock();
        let Some((address, length)) = *span else { return Ok(()) };
        give_back(ptr::without_provenance_mut(address), length)
    }
}

#[expect(unsafe_code, reason = "the trait is: code for WebAssembly relies on guarded memory")]
// SAFETY: a memory has `reserved` bytes of address space, or its minimum if that is more, between
// two guards of at least the requested size. Only `size` bytes of it can be accessed, and nothing
// else has its address. The address space belongs to a `Mapping`, which no other memory has at the
// same time.
unsafe impl MemoryCreator for Memories {
    fn new_memory(
        &self,
        _type: MemoryType,
        minimum: usize,
        _maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let made = self.make(minimum, reserved.unwrap_or(0), guard);
        made.map(|memory| Box::new(memory) as Box<dyn LinearMemory>)
            .map_err(|error| format!("no address space for a memory of {minimum} bytes: {error}"))
    }
}

/// One interpreter's memory.
struct Memory {
    mapping: Mapping,
    /// Bytes that can be accessed.
    size: usize,
    /// The pool that the mapping returns to, if the memory started from the image.
    origin: Option<Arc<Shared>>,
    /// Shared with the interpreter.
    place: Arc<Place>,
}

#[expect(unsafe_code, reason = "the trait is: code for WebAssembly relies on guarded memory")]
// SAFETY: see `Memories`. It moves only when it grows beyond its capacity.
unsafe impl LinearMemory for Memory {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.mapping.capacity
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        if size > self.mapping.capacity {
            // Happens only where address space is scarce; see `engine.rs`.
            let mut larger = Mapping::new(size.saturating_add(MOVED_RESERVATION), self.mapping.guard)?;
            larger.open(0, size)?;
            larger.copy_from(&self.mapping, self.size);
            *self.place.span.lock() = None;
            self.mapping = larger;
            self.origin = None;
        } else {
            self.mapping.open(self.size, size)?;
        }
        self.size = size;
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        self.mapping.base()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        *self.place.span.lock() = None;
        let Some(origin) = self.origin.take() else { return };
        let Some(image) = origin.image.get() else { return };
        if origin.idle.lock().len() >= MAX_IDLE {
            return;
        }
        let mut mapping = std::mem::replace(&mut self.mapping, Mapping::NONE);
        match mapping.restore(image, self.size) {
            Ok(()) => {
                let mut idle = origin.idle.lock();
                if idle.len() < MAX_IDLE {
                    idle.push(mapping);
                }
            }
            // `/proc` is missing, or there is no memory. The next memory is mapped anew.
            Err(error) => tracing::debug!(%error, "the memory of a Python script is not used again"),
        }
    }
}

/// An exclusive address range: a guard, the accessible part, the part it can grow into, and a
/// guard.
struct Mapping {
    start: *mut u8,
    /// Bytes between the two guards.
    capacity: usize,
    /// Bytes of each guard.
    guard: usize,
}

#[expect(unsafe_code, reason = "it is an address")]
// SAFETY: the mapping belongs to no thread, and only `&mut self` changes it.
unsafe impl Send for Mapping {}
#[expect(unsafe_code, reason = "it is an address")]
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Placeholder left where a mapping was moved out.
    const NONE: Self = Self { start: ptr::null_mut(), capacity: 0, guard: 0 };

    /// Reserves an address range of which nothing can be accessed.
    fn new(capacity: usize, guard: usize) -> io::Result<Self> {
        let length = guard.checked_mul(2).and_then(|guards| guards.checked_add(capacity));
        let length = length.ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        #[expect(unsafe_code, reason = "memory is mapped")]
        // SAFETY: the kernel chooses the address, so the range overlaps nothing else.
        let start =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), flags) }?;
        Ok(Self { start: start.cast(), capacity, guard })
    }

    fn base(&self) -> *mut u8 {
        self.start.wrapping_add(self.guard)
    }

    /// Makes the bytes from `from` to `to` accessible. Both are multiples of the page size.
    fn open(&mut self, from: usize, to: usize) -> io::Result<()> {
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
    fn map(&mut self, image: &Image) -> io::Result<()> {
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
    fn restore(&mut self, image: &Image, size: usize) -> io::Result<()> {
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
    fn copy_from(&mut self, other: &Self, length: usize) {
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

/// The pages among the first `length` bytes of a mapping that differ from the file's own, as byte
/// ranges.
fn written(base: *const u8, length: usize) -> io::Result<Vec<Range<usize>>> {
    static PAGEMAP: OnceLock<Option<File>> = OnceLock::new();
    let pagemap = PAGEMAP.get_or_init(|| File::open("/proc/self/pagemap").ok());
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

#[cfg(test)]
mod tests;

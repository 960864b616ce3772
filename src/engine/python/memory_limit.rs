//! Limits of a guest's memory, tables and instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::ResourceLimiter;

use crate::files::MemoryBudget;

/// Upper bounds for the component's parts. Measured: 14 core instances, 2 tables and 1 memory. The
/// bounds are higher, because another build of CPython may be split differently.
const MAX_INSTANCES: usize = 40;
const MAX_TABLES: usize = 8;
const MAX_MEMORIES: usize = 2;

/// Maximum number of elements of one table. 5,674 of CPython's functions have their address taken.
pub(super) const MAX_TABLE_ELEMENTS: usize = 20_000;

/// Bytes of a page of linear memory, by which it grows.
const PAGE: usize = 64 << 10;

/// Bytes of a list for a guest whose memory can hardly grow: a piece of this size is free in it, or nothing goes on.
const MIN_LIST: usize = 4 << 10;

/// The memory of a guest, which other threads read and limit.
#[derive(Debug)]
pub(crate) struct GuestMemory {
    limit: AtomicUsize,
    used: AtomicUsize,
}

impl GuestMemory {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: AtomicUsize::new(limit), used: AtomicUsize::new(0) }
    }

    /// Maximum bytes of a list that a host function returns where it may return less than was asked for. The guest
    /// allocates it before it gets it, and where that fails the C library ends the run instead of a `MemoryError`.
    /// The host does not know what is free in the guest, only by how much its memory, which never shrinks, may grow.
    /// One page of that is for the allocator. `files` are the bytes of the run's files in memory.
    pub(super) fn largest_list(&self, files: usize) -> usize {
        let room = self.limit.load(Ordering::Relaxed).saturating_sub(self.used()).saturating_sub(files);
        (room / PAGE * PAGE).saturating_sub(PAGE).max(MIN_LIST)
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Lowers the limit in bytes while a run uses the guest. Returns whether the guest has more.
    pub(crate) fn lower_limit(&self, bytes: usize) -> bool {
        self.limit.fetch_min(bytes, Ordering::Relaxed) > bytes && self.used() > bytes
    }
}

/// Counts the bytes of all linear memories of a guest together. Growth that exceeds the limit, with
/// the run's files in memory, is refused, which CPython turns into a `MemoryError`. Other memory
/// that the host holds for the guest is not counted.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    shared: Arc<GuestMemory>,
    pub(super) files: Option<Arc<MemoryBudget>>,
    /// `used` before the last growth, which the system may still refuse.
    before: usize,
    refused: bool,
    /// Whether the log says that the system has refused memory.
    has_warned: bool,
}

impl MemoryLimiter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            shared: Arc::new(GuestMemory::new(limit)),
            files: None,
            before: 0,
            refused: false,
            has_warned: false,
        }
    }

    /// The memory's size and limit, for other threads.
    pub(crate) fn shared(&self) -> Arc<GuestMemory> {
        Arc::clone(&self.shared)
    }

    /// Bytes that the guest has. Linear memory never shrinks, so at the end this is the peak.
    pub(crate) fn used(&self) -> usize {
        self.shared.used()
    }

    /// Bytes of the files of its run that are in memory.
    pub(crate) fn files_used(&self) -> usize {
        self.files.as_ref().map_or(0, |files| files.used())
    }

    /// Whether the guest has requested more memory than its limit, or than the system could
    /// provide.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused
    }

    /// Sets the limit in bytes for all later growth.
    pub(crate) fn set_limit(&mut self, bytes: usize) {
        self.shared.limit.store(bytes, Ordering::Relaxed);
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let used = self.used();
        let wanted = used.saturating_sub(current).saturating_add(desired);
        if wanted.saturating_add(self.files_used()) > self.shared.limit.load(Ordering::Relaxed)
            || maximum.is_some_and(|maximum| desired > maximum)
        {
            self.refused = true;
            return Ok(false);
        }
        self.before = used;
        self.shared.used.store(wanted, Ordering::Relaxed);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        // Once for each guest: a script may try again thousands of times a second.
        if !std::mem::replace(&mut self.has_warned, true) {
            tracing::warn!(%error, "the system has no memory for a Python script");
        }
        self.shared.used.store(self.before, Ordering::Relaxed);
        self.refused = true;
        Ok(())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

//! Pool of linear memories. After a run, dirty pages are restored from the initial memory image, so
//! that the mapping can be reused.
//!
//! wasmtime asks for a memory through [`MemoryCreator`] when it makes an interpreter, and drops it
//! with the interpreter. `memory.rs` has what happens to the memory, and why none of wasmtime's own
//! allocators is used.

use std::cell::RefCell;
use std::io;
use std::ptr;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use super::memory::{self, Image, Mapping, give_back};

/// Maximum number of idle memories. Bursts of runs create more, which are unmapped afterwards.
const MAX_IDLE: usize = 4;

/// Additional address space for a memory that has to move, so that it does not move at each growth.
const MOVED_RESERVATION: usize = 64 << 20;

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
        memory::open_pagemap();
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
        let location = Arc::new(MemoryLocation::default());
        if let Some(image) = image {
            *location.span.lock() = Some((mapping.base() as usize, image.length));
            NEWEST.set(Some(Arc::clone(&location)));
        }
        Ok(Memory { mapping, size: minimum, origin, location })
    }
}

thread_local! {
    /// The location of the memory that this thread created last. wasmtime does not tell a
    /// [`MemoryCreator`] which instance a memory is for.
    static NEWEST: RefCell<Option<Arc<MemoryLocation>>> = const { RefCell::new(None) };
}

/// The location of a memory that started from the image, while it exists and has not moved.
#[derive(Default)]
pub(super) struct MemoryLocation {
    /// The memory's address and the image's length.
    span: Mutex<Option<(usize, usize)>>,
}

impl MemoryLocation {
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
    location: Arc<MemoryLocation>,
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
            *self.location.span.lock() = None;
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
        *self.location.span.lock() = None;
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
            // `/proc` is missing, or there is no memory. The next memory is mapped again.
            Err(error) => tracing::debug!(%error, "the memory of a Python script is not used again"),
        }
    }
}

#[cfg(test)]
mod tests;

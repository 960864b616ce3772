//! Memory accounting for one isolate: V8's heap, array buffers, external strings and the memory
//! that V8 allocates beside its heap, counted together against the run's limit.
//!
//! Buffers are counted when they are allocated. The rest is read from V8's statistics after each
//! collection, and while a script runs at each tick of the watchdog, because external memory grows
//! without a collection.
#![expect(unsafe_code, reason = "V8 takes its allocator and its callbacks as C functions")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use deno_core::{JsRuntime, v8};

use crate::engine::stop::{Stop, StopReason};
use crate::files::MemoryBudget;

/// Additional heap in bytes that V8 may use while it unwinds a script that exceeded the limit.
///
/// A single allocation can be as large as V8's largest string or array (1 GB each), and V8 aborts
/// the process if that does not fit. This is address space: only touched pages become memory.
const HEADROOM_BYTES: usize = 2 << 30;

/// Bytes beyond its limit from which the thread of an abandoned run is parked: as many as V8's
/// largest string or array has.
const MAX_BEYOND: usize = if cfg!(test) { 64 << 20 } else { 1 << 30 };

/// Allocations up to this size in bytes are never refused: every small typed array uses the
/// allocator, including V8's own, and V8 aborts where it does not expect a refusal.
const NEVER_REFUSED_BYTES: usize = 64;

/// Buffers may not use this fraction (1/16) of the limit, so that a script that catches the refusal
/// of a buffer can continue for a while.
const HEAP_RESERVE: usize = 16;

/// Alignment of every buffer in bytes, as in V8's own allocator.
const ALIGNMENT: usize = 16;

/// Counts one isolate's memory and stops its run at the limit.
pub(crate) struct MemoryMeter {
    limit: AtomicUsize,
    /// Bytes of the heap and of V8's allocations beside it, when last read.
    heap: AtomicUsize,
    /// Bytes of external strings, and of buffers from other allocators, when last read. For a while
    /// after a collection this includes the buffers that the collection freed.
    external: AtomicUsize,
    buffers: AtomicUsize,
    /// The memory that the run's scratch directory takes.
    files: OnceLock<Arc<MemoryBudget>>,
    refused: AtomicBool,
    /// Whether the isolate has been asked to read its statistics and has not done so yet.
    is_reading: AtomicBool,
    stop: Arc<Stop>,
}

impl MemoryMeter {
    pub(crate) fn new(limit: usize, stop: Arc<Stop>) -> Self {
        Self {
            limit: AtomicUsize::new(limit),
            heap: AtomicUsize::new(0),
            external: AtomicUsize::new(0),
            buffers: AtomicUsize::new(0),
            files: OnceLock::new(),
            refused: AtomicBool::new(false),
            is_reading: AtomicBool::new(false),
            stop,
        }
    }

    /// Sets the limit in bytes for the run that uses the isolate.
    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Lowers the limit in bytes while a run uses the isolate.
    fn lower_limit(&self, bytes: usize) {
        self.limit.fetch_min(bytes, Ordering::Relaxed);
    }

    /// Counts the scratch directory of the run together with the isolate.
    pub(crate) fn count_files(self: &Arc<Self>, files: &Arc<MemoryBudget>) {
        let meter = Arc::downgrade(self);
        files.attach_engine(move || meter.upgrade().map_or(0, |meter| meter.of_isolate()));
        // An isolate has one run.
        let _is_set = self.files.set(Arc::clone(files));
    }

    /// Bytes used: the buffers and the scratch directory now, and the rest when it was last read.
    pub(crate) fn used(&self) -> usize {
        self.of_isolate() + self.of_files()
    }

    fn of_isolate(&self) -> usize {
        [&self.heap, &self.external, &self.buffers].iter().map(|part| part.load(Ordering::Relaxed)).sum()
    }

    fn of_files(&self) -> usize {
        self.files.get().map_or(0, |files| files.used())
    }

    /// Whether a buffer was ever refused.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Reads the isolate's statistics. Returns whether the memory is beyond the limit.
    pub(crate) fn read(&self, isolate: &mut v8::Isolate) -> bool {
        let statistics = isolate.get_heap_statistics();
        // V8's external memory includes the buffers of our allocator as well as those that V8 was
        // given.
        let external = statistics.external_memory().saturating_sub(self.buffers.load(Ordering::Relaxed));
        self.external.store(external, Ordering::Relaxed);
        self.heap.store(statistics.used_heap_size() + statistics.malloced_memory(), Ordering::Relaxed);
        self.used() > self.limit.load(Ordering::Relaxed)
    }

    /// Checks a run that ended before any other check, and stops it, belatedly, if it is beyond the
    /// limit.
    pub(crate) fn check_at_end(&self, isolate: &mut v8::Isolate) {
        if self.read(isolate) && self.stop.reason().is_none() {
            self.collect_and_check(isolate);
        }
    }

    /// Stops the run if it is beyond the limit after a garbage collection. External memory is freed
    /// after the collection that found it unused; this collects at least twice, so that it is
    /// freed.
    fn collect_and_check(&self, isolate: &mut v8::Isolate) {
        isolate.low_memory_notification();
        if self.read(isolate) {
            self.stop.request(StopReason::Memory);
        }
    }

    /// Stops the run if the heap after a collection and the buffers are together beyond the limit.
    fn note_collected(&self, heap: usize) {
        self.heap.store(heap, Ordering::Relaxed);
        // Without the scratch directory: what a small collection leaves in the heap may be garbage.
        if heap + self.buffers.load(Ordering::Relaxed) > self.limit.load(Ordering::Relaxed) {
            self.stop.request(StopReason::Memory);
        }
    }

    /// Whether a run that was answered without its thread goes on to take memory: the heap has `heap`
    /// bytes. V8 looks for a termination only after thousands of turns of a loop, each of which may
    /// take megabytes.
    fn is_out_of_hand(&self, heap: usize) -> bool {
        let most = self.limit.load(Ordering::Relaxed).saturating_add(MAX_BEYOND);
        self.stop.is_abandoned() && heap.saturating_add(self.buffers.load(Ordering::Relaxed)) > most
    }

    fn take(&self, bytes: usize) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let room = (limit - limit / HEAP_RESERVE).saturating_sub(self.heap.load(Ordering::Relaxed));
        let room = room.saturating_sub(self.of_files());
        let taken = self.buffers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let wanted = used.checked_add(bytes)?;
            (wanted <= room || bytes <= NEVER_REFUSED_BYTES).then_some(wanted)
        });
        if taken.is_err() {
            self.refused.store(true, Ordering::Relaxed);
        }
        taken.is_ok()
    }
}

/// Creates the allocator of an isolate; `meter` counts its buffers.
pub(crate) fn buffer_allocator(meter: &Arc<MemoryMeter>) -> v8::SharedRef<v8::Allocator> {
    static CALLBACKS: v8::RustAllocatorVtable<MemoryMeter> =
        v8::RustAllocatorVtable { allocate, allocate_uninitialized, free, drop: drop_meter };
    // SAFETY: the handle is an owned reference that the vtable's `drop` releases, and the vtable's
    // functions take exactly this type.
    unsafe { v8::new_rust_allocator(Arc::into_raw(Arc::clone(meter)), &CALLBACKS) }.make_shared()
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

unsafe extern "C" fn allocate(meter: &MemoryMeter, bytes: usize) -> *mut c_void {
    let Some(layout) = layout(bytes).filter(|_| meter.take(bytes)) else {
        return ptr::null_mut();
    };
    // SAFETY: the layout's size is not zero.
    unsafe { alloc_zeroed(layout) }.cast()
}

unsafe extern "C" fn allocate_uninitialized(meter: &MemoryMeter, bytes: usize) -> *mut c_void {
    let Some(layout) = layout(bytes).filter(|_| meter.take(bytes)) else {
        return ptr::null_mut();
    };
    // SAFETY: the layout's size is not zero. V8 calls this only where it writes every byte.
    unsafe { alloc(layout) }.cast()
}

unsafe extern "C" fn free(meter: &MemoryMeter, data: *mut c_void, bytes: usize) {
    if let Some(layout) = layout(bytes)
        && !data.is_null()
    {
        meter.buffers.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: V8 passes a pointer that one of the two functions above returned, with the same
        // size, so this is the layout of the allocation.
        unsafe { dealloc(data.cast(), layout) };
    }
}

unsafe extern "C" fn drop_meter(meter: *const MemoryMeter) {
    // SAFETY: `buffer_allocator` made this pointer with `Arc::into_raw`, and V8 calls this once.
    drop(unsafe { Arc::from_raw(meter) });
}

/// Installs the memory checks of a new isolate.
pub(crate) fn watch_heap(runtime: &mut JsRuntime, meter: &Arc<MemoryMeter>) {
    let near_limit_meter = Arc::clone(meter);
    runtime
        .add_near_heap_limit_callback(move |current, _initial| near_heap_limit(&near_limit_meter, current));
    let isolate = runtime.v8_isolate();
    let handle = isolate.thread_safe_handle();
    // Weak, because the meter owns the `Stop` that owns this function.
    let read_meter = Arc::downgrade(meter);
    meter.stop.attach_measure(move |limit| {
        let Some(meter) = read_meter.upgrade() else { return };
        meter.lower_limit(limit);
        // One request at a time: an isolate that waits for a tool processes none, so they would
        // accumulate.
        if !meter.is_reading.swap(true, Ordering::Relaxed) {
            // The isolate owns a reference to the meter, so it is dropped before the meter,
            // together with its pending interrupt requests.
            handle.request_interrupt(read_statistics, Arc::as_ptr(&meter).cast_mut().cast());
        }
    });
    // The isolate holds an allocator that holds a reference to the meter, so it is dropped before
    // the meter.
    let data = Arc::as_ptr(meter).cast_mut().cast();
    isolate.add_gc_epilogue_callback(after_collection, data, v8::GCType::kGCTypeAll);
    isolate.set_oom_error_handler(out_of_memory);
}

/// Returns the new heap limit when the heap comes near the current one.
fn near_heap_limit(meter: &MemoryMeter, current: usize) -> usize {
    // This callback cannot tell how much V8 needs, and if the new limit is too low, V8 aborts. V8
    // also calls it when a single allocation is larger than what is left, when a buffer was
    // refused, and when the run's limit is above the isolate's initial one; none of these means
    // that the run is beyond its limit. So the heap limit is always raised, and the statistics
    // after collections decide.
    if !meter.has_refused() && current >= meter.limit.load(Ordering::Relaxed) {
        meter.stop.request(StopReason::Memory);
    }
    current.saturating_add(HEADROOM_BYTES)
}

unsafe extern "C" fn after_collection(
    isolate: v8::UnsafeRawIsolatePtr,
    _kind: v8::GCType,
    _flags: v8::GCCallbackFlags,
    data: *mut c_void,
) {
    // SAFETY: V8 calls this on the isolate's own thread while the isolate lives; reading statistics
    // allocates nothing and runs no script.
    let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
    // SAFETY: see `watch_heap`: the meter outlives the isolate.
    let meter = unsafe { &*data.cast::<MemoryMeter>() };
    // External memory is freed after the collection, on another thread, and is still counted here.
    let heap = isolate.get_heap_statistics().used_heap_size();
    meter.note_collected(heap);
    if meter.is_out_of_hand(heap) {
        // The thread counts as hung already. What it has is lost either way; here it takes no more.
        park();
    }
}

unsafe extern "C" fn read_statistics(isolate: v8::UnsafeRawIsolatePtr, data: *mut c_void) {
    // SAFETY: V8 calls this on the isolate's own thread between two instructions of a script, where
    // garbage collection is allowed.
    let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
    // SAFETY: see `watch_heap`: the meter outlives the isolate.
    let meter = unsafe { &*data.cast::<MemoryMeter>() };
    meter.is_reading.store(false, Ordering::Relaxed);
    if meter.read(&mut isolate) && meter.stop.reason().is_none() {
        meter.collect_and_check(&mut isolate);
    }
}

/// Called when V8 is out of memory. Returning would abort the process, and unwinding is not
/// possible here, so the thread is parked forever. The watchdog replies in its place and counts the
/// worker as hung.
unsafe extern "C" fn out_of_memory(_location: *const c_char, _details: &v8::OomDetails) {
    park();
}

/// How many threads are parked forever.
#[cfg(test)]
static PARKED: AtomicUsize = AtomicUsize::new(0);

#[cfg(test)]
pub(super) fn parked() -> usize {
    PARKED.load(Ordering::Relaxed)
}

/// Parks the thread forever.
fn park() -> ! {
    #[cfg(test)]
    PARKED.fetch_add(1, Ordering::Relaxed);
    loop {
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64 << 20;

    #[test]
    fn v_652_only_an_abandoned_run_far_beyond_its_limit_is_out_of_hand() {
        let stop = Arc::new(Stop::default());
        let meter = MemoryMeter::new(LIMIT, Arc::clone(&stop));
        let far = LIMIT + MAX_BEYOND + 1;
        assert!(!meter.is_out_of_hand(far), "the run may be about to stop");
        stop.request(StopReason::Memory);
        assert!(!meter.is_out_of_hand(far), "the run may be about to stop");
        stop.abandon();
        assert!(meter.is_out_of_hand(far));
        assert!(!meter.is_out_of_hand(far - 1), "one operation of V8 takes as much");
    }
}

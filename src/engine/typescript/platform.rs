//! The process's V8 platform with its language and time zone, and the thread from which all isolate
//! threads are started.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use deno_core::{JsRuntime, v8};
use parking_lot::{Mutex, MutexGuard};

use super::transpile::STACK_BYTES;
use crate::engine::thread_root::ThreadRoot;
use crate::machine;
use crate::machine::probe::{self, CodeMemory};
use crate::run::time_zone::TimeZone;

/// The version of V8 that this program is linked with.
pub(crate) const V8_VERSION: &str = v8::VERSION_STRING;

/// Address space in bytes that V8 reserves when it starts. It needs 16 GiB for the objects of its C++ library, at an
/// address that is a multiple of that and has one bit set: it reserves three times as much and keeps a third. Where
/// only 32 GiB are free, it tries some addresses at random, and in one of sixteen starts it finds none and ends the
/// process.
const PLATFORM_ADDRESS_SPACE: usize = 48 << 30;

/// Address space in bytes that an isolate may need at once: its code range of 128 MiB, for which
/// twice as much is reserved at first, and the arena that the C library gives its thread.
const ISOLATE_ADDRESS_SPACE: usize = 512 << 20;

/// Memory in bytes that an isolate maps for writing beside its heap: its code range, which is
/// executable too.
const ISOLATE_PRIVATE_MEMORY: usize = 192 << 20;

/// Memory in bytes that V8 and the first isolate map for writing.
const PRIVATE_MEMORY: usize = 128 << 20;

/// Stack size in bytes that the threads of V8's own pool usually have: the system's default.
const POOL_STACK: usize = 8 << 20;

/// Stack size in bytes that these threads need.
const MIN_DEFAULT_STACK: u64 = 512 << 10;

/// V8 uses about 1 MB of the stack. Sources are parsed on the same thread and may need all of it.
static ROOT: ThreadRoot = ThreadRoot::new("cx-v8-root", start_platform, STACK_BYTES);

/// Runs `task` on a new thread that may hold isolates.
///
/// V8 protects its memory with keys that a thread inherits from the thread that created the
/// platform, so isolate threads must descend from that thread. A library does not own `main`, so a
/// root of its own creates the platform and starts all others. It lives as long as the process,
/// like V8, which cannot be started a second time.
///
/// # Errors
///
/// If the operating system refuses a thread, or what V8 needs to start.
pub(crate) fn spawn(name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    ROOT.spawn(name, task)
}

/// Whether V8 uses no threads of its own.
static IS_SINGLE_THREADED: AtomicBool = AtomicBool::new(false);

/// Lets V8 compile and collect garbage on the threads of its isolates, as it must in a process that is forked. Call it
/// before the first isolate is made. In a worker process there is one run at a time and often another worker for each
/// processor, so that V8's threads would gain little.
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) fn use_one_thread() {
    IS_SINGLE_THREADED.store(true, Ordering::Relaxed);
}

/// Calls `draw` while contexts whose `Math.random` has not been called yet take this seed, which must not be 0, instead
/// of drawing one from the generator that their isolate has had from its beginning.
#[cfg(all(feature = "process", target_os = "linux"))]
pub(super) fn with_random_seed<T>(seed: u32, draw: impl FnOnce() -> T) -> T {
    // The flag is a positive `int`.
    v8::V8::set_flags_from_string(&format!("--random-seed={}", (seed >> 1).max(1)));
    let drawn = draw();
    v8::V8::set_flags_from_string("--random-seed=0");
    drawn
}

/// Starts V8. Has no effect after the first time.
///
/// # Errors
///
/// If the system refuses what V8 needs. V8 would end the process.
fn start_platform() -> io::Result<()> {
    static IS_STARTED: AtomicBool = AtomicBool::new(false);
    // Only the root thread calls this, so there is no race.
    if IS_STARTED.load(Ordering::Relaxed) {
        return Ok(());
    }
    probe::executable_memory(CodeMemory::WrittenAndExecuted)?;
    probe::default_stack(MIN_DEFAULT_STACK)?;
    probe::address_space(PLATFORM_ADDRESS_SPACE + ISOLATE_ADDRESS_SPACE)?;
    probe::private_memory(PRIVATE_MEMORY)?;
    // Those of V8's pool, of which deno_core starts at most four, and of the first isolate.
    let granted = probe::threads(machine::processors().min(4) + 1, POOL_STACK)?;
    // V8 keeps the pages of dropped isolates for later ones, for 8 seconds by default. With 1
    // second, the next run of a busy server still finds them. After a large run they are released
    // at once: see `isolate::release_pooled_pages`.
    v8::V8::set_flags_from_string("--memory-pool-timeout=1");
    if IS_SINGLE_THREADED.load(Ordering::Relaxed) {
        v8::V8::set_flags_from_string("--single-threaded");
        // For `with_random_seed`.
        v8::V8::set_flags_from_string("--no-freeze-flags-after-init");
    }
    // For its seeds V8 would open a file, which a worker process cannot, and then fall back to the
    // clock.
    v8::V8::set_entropy_source(fill_random);
    JsRuntime::init_platform(None);
    drop(granted);
    set_locale_and_time_zone();
    IS_STARTED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Where the seeds of `Math.random` and of hash tables come from.
fn fill_random(bytes: &mut [u8]) -> bool {
    getrandom::fill(bytes).is_ok()
}

/// The language of all scripts: the same on every machine.
const LOCALE: &str = "en-US";

#[expect(unsafe_code, reason = "the `v8` crate sets the language, but not the time zone")]
unsafe extern "C" {
    /// ICU's own function, which is linked with V8. The number is ICU's version: after an upgrade of
    /// V8 the linker asks for it. `time_zone` ends with 0.
    fn ucal_setDefaultTimeZone_77(time_zone: *const u16, status: *mut i32);
}

/// Sets what ICU would take from `LC_ALL`, `LANG`, `TZ` and `/etc/localtime`: a script would behave
/// differently on each machine, and learn where that machine is. ICU has one default language and
/// one default time zone for the process. No isolate has read them yet.
fn set_locale_and_time_zone() {
    v8::icu::set_default_locale(LOCALE);
    if let Err(status) = set_default_time_zone(TimeZone::UTC) {
        tracing::warn!(status, "scripts in TypeScript see the time zone of the machine");
    }
}

/// Sets ICU's default time zone. The error is ICU's status.
fn set_default_time_zone(time_zone: TimeZone) -> Result<(), i32> {
    let name: Vec<u16> = time_zone.name().encode_utf16().chain([0]).collect();
    let mut status = 0;
    // SAFETY: the declaration is that of ICU's `ucal.h` (`UChar` is 16 bits, `UErrorCode` an `int`).
    // Both pointers are valid during the call, the text ends with 0, and ICU keeps neither.
    #[expect(unsafe_code, reason = "a function of ICU")]
    unsafe {
        ucal_setDefaultTimeZone_77(name.as_ptr(), &raw mut status);
    }
    // Warnings of ICU are negative.
    if status > 0 { Err(status) } else { Ok(()) }
}

/// Calls `read` while `time_zone` is ICU's default.
///
/// An isolate copies the default when a date first needs it, and keeps the copy. So each isolate
/// reads it in here, also the usual one: outside, it could meet that of another run. What reads the
/// default each time, `Intl`, is told the time zone by the guest half (`js/13_time_zone.js`).
///
/// # Errors
///
/// The status of ICU. `read` is not called then.
pub(super) fn with_default_time_zone<T>(time_zone: TimeZone, read: impl FnOnce() -> T) -> Result<T, i32> {
    static DEFAULT: Mutex<()> = Mutex::new(());
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            if let Err(status) = set_default_time_zone(TimeZone::UTC) {
                tracing::warn!(status, "ICU keeps the time zone of a run as its default");
            }
        }
    }
    let _only_one = DEFAULT.lock();
    if time_zone == TimeZone::UTC {
        return Ok(read());
    }
    // Dropped before the lock.
    let _reset = Reset;
    set_default_time_zone(time_zone)?;
    Ok(read())
}

/// The heap limits of all isolates together, in bytes: what their heaps may take at most.
static PROMISED: AtomicUsize = AtomicUsize::new(0);

/// The address space for the heap of one isolate, counted until this is dropped.
pub(super) struct HeapSpace {
    bytes: usize,
}

impl Drop for HeapSpace {
    fn drop(&mut self) {
        PROMISED.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Permission to make one isolate.
pub(super) struct MakingIsolate {
    _only_one: Option<MutexGuard<'static, ()>>,
}

/// Checks that there is address space and memory for another isolate with a heap of `heap_bytes`,
/// beside what the heaps of the others may take. Where these are limited, isolates are made one after the other, so
/// that none takes what was found for another one.
///
/// # Errors
///
/// If there is not enough. V8 would end the process.
pub(super) fn make_isolate(heap_bytes: usize) -> io::Result<(MakingIsolate, HeapSpace)> {
    static MAKING: Mutex<()> = Mutex::new(());
    let is_limited = machine::is_memory_limited();
    let only_one = is_limited.then(|| MAKING.lock());
    let promised = PROMISED.fetch_add(heap_bytes, Ordering::Relaxed);
    let heap = HeapSpace { bytes: heap_bytes };
    if is_limited {
        let heaps = heap_bytes.saturating_add(promised);
        probe::address_space(ISOLATE_ADDRESS_SPACE.saturating_add(heaps))?;
        probe::private_memory(ISOLATE_PRIVATE_MEMORY.saturating_add(heaps))?;
    }
    Ok((MakingIsolate { _only_one: only_one }, heap))
}

//! The process's V8 platform with its language and time zone, and the thread from which all isolate
//! threads are started.

use std::io;

use deno_core::{JsRuntime, v8};

use super::transpile::STACK_BYTES;
use crate::engine::thread_root::ThreadRoot;

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
/// If the operating system refuses a thread.
pub(crate) fn spawn(name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    ROOT.spawn(name, task)
}

/// Has no effect after the first time.
fn start_platform() {
    // V8 keeps the pages of dropped isolates for later ones, for 8 seconds by default. With 1
    // second, the next run of a busy server still finds them, and memory that a large run left is
    // released soon.
    v8::V8::set_flags_from_string("--memory-pool-timeout=1");
    JsRuntime::init_platform(None);
    set_locale_and_time_zone();
}

/// The language and the time zone of all scripts: the same on every machine, as in Python.
const LOCALE: &str = "en-US";
const TIME_ZONE: &str = "UTC";

#[expect(unsafe_code, reason = "the `v8` crate sets the language, but not the time zone")]
unsafe extern "C" {
    /// ICU's own function, which is linked with V8. The number is ICU's version: after an upgrade of
    /// V8 the linker asks for it. `time_zone` ends with 0.
    fn ucal_setDefaultTimeZone_77(time_zone: *const u16, status: *mut i32);
}

/// Sets what ICU would take from `LC_ALL`, `LANG`, `TZ` and `/etc/localtime`: a script would behave
/// differently on each machine, and learn where that machine is. ICU has one language and one time
/// zone for the process. No isolate has read them yet.
fn set_locale_and_time_zone() {
    v8::icu::set_default_locale(LOCALE);
    let time_zone: Vec<u16> = TIME_ZONE.encode_utf16().chain([0]).collect();
    let mut status = 0;
    // SAFETY: the declaration is that of ICU's `ucal.h` (`UChar` is 16 bits, `UErrorCode` an `int`).
    // Both pointers are valid during the call, the text ends with 0, and ICU keeps neither.
    #[expect(unsafe_code, reason = "a function of ICU")]
    unsafe {
        ucal_setDefaultTimeZone_77(time_zone.as_ptr(), &raw mut status);
    }
    // Warnings of ICU are negative.
    if status > 0 {
        tracing::warn!(status, "scripts in TypeScript see the time zone of the machine");
    }
}

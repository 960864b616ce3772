//! The process's V8 platform, and the thread from which all isolate threads are started.

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
}

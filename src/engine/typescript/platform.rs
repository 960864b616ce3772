//! The process's V8 platform, and the thread from which all isolate threads are spawned.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use deno_core::{JsRuntime, v8};

use super::transpile::STACK_BYTES;

type Task = Box<dyn FnOnce() + Send>;

struct Request {
    name: String,
    task: Task,
    started: Sender<io::Result<()>>,
}

/// Runs `task` on a new thread that may hold isolates.
///
/// V8 protects its memory with keys that a thread inherits from the thread that created the
/// platform, so isolate threads must descend from that thread. A library does not own `main`, so a
/// separate root thread creates the platform and starts all others. It lives as long as the
/// process, like V8, which cannot be started a second time.
///
/// # Errors
///
/// If the operating system refuses a thread.
pub(crate) fn spawn(name: String, task: Task) -> io::Result<()> {
    static ROOT: OnceLock<Sender<Request>> = OnceLock::new();
    let lost = || io::Error::other("the V8 root thread is gone");
    let root = match ROOT.get() {
        Some(root) => root,
        None => {
            let root = start_root()?;
            ROOT.get_or_init(|| root)
        }
    };
    let (started, answer) = channel();
    root.send(Request { name, task, started }).map_err(|_| lost())?;
    answer.recv().map_err(|_| lost())?
}

/// Starts a root thread. If two callers race, the thread of the loser ends without an effect,
/// because the platform is created at the first request.
fn start_root() -> io::Result<Sender<Request>> {
    let (root, requests) = channel::<Request>();
    thread::Builder::new().name("cx-v8-root".to_owned()).spawn(move || {
        for Request { name, task, started } in requests {
            // The flag and `init_platform` have no effect after the first time. V8 keeps the pages
            // of dropped isolates for later ones, for 8 seconds by default. With 1 second, the next
            // run of a busy server still finds them, and memory that a large run left is released
            // soon.
            v8::V8::set_flags_from_string("--memory-pool-timeout=1");
            JsRuntime::init_platform(None);
            // V8 uses about 1 MB of the stack. Sources are parsed on the same thread and may need
            // all of it. Untouched pages cost nothing.
            let spawned = thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(task);
            // The caller waits for this answer, so the receiver still exists.
            let _ = started.send(spawned.map(drop));
        }
    })?;
    Ok(root)
}

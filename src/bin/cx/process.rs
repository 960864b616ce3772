//! Settings of the command for its whole process. A program that embeds cx makes its own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::{Resource, getrlimit};

/// Stack size in bytes with which the command runs: the usual size of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// Minimum free memory in bytes. With less, nothing works: the C library and the standard library end the process when
/// a small allocation fails.
const MIN_MEMORY: usize = 64 << 20;

/// Makes a write beyond the limit of a file's size (`ulimit -f`) an error of that write, "File too
/// large", instead of the end of the process.
///
/// The signal has a handler that does nothing instead of being ignored, because executed programs inherit ignored
/// signals, and servers would see that.
pub(crate) fn survive_file_size_limit() {
    extern "C" fn do_nothing(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = do_nothing;
    #[expect(unsafe_code, reason = "no safe crate sets a handler without a thread or a descriptor")]
    // SAFETY: all bytes of a `sigaction` may be zero: no flags, and a mask to be emptied. The handler
    // does nothing, so it may interrupt anything. A failure changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        let _ = libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}

/// Whether this process was started without a stdout (`cx run … >&-`).
static HAD_NO_STDOUT: AtomicBool = AtomicBool::new(false);

/// Whether this process was started without a stdout. The standard library has then opened `/dev/null` as descriptor 1,
/// so that no other file gets that number, and writes to it are lost without an error.
pub(crate) fn had_no_stdout() -> bool {
    HAD_NO_STDOUT.load(Ordering::Relaxed)
}

/// The C library runs this before the standard library examines the descriptors. Afterwards a closed stdout cannot be
/// distinguished from `/dev/null`, which others also open for reading and writing.
#[cfg(target_os = "linux")]
#[used]
#[expect(unsafe_code, reason = "nothing else runs this early")]
// SAFETY: the section has functions that are called once, without arguments that matter.
#[unsafe(link_section = ".init_array")]
static LOOK_AT_STDOUT: extern "C" fn() = {
    extern "C" fn look() {
        #[expect(unsafe_code, reason = "there is no safe type for a descriptor that may be closed")]
        // SAFETY: asks for flags of a number, which may be that of no descriptor. Uses nothing that is
        // not ready before `main`.
        let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        HAD_NO_STDOUT.store(is_closed, Ordering::Relaxed);
    }
    look
};

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoResult {
    /// The error says how much memory is needed, and what limits it.
    #[error(transparent)]
    NoMemory(#[from] io::Error),
    #[error("the command panicked")]
    Panicked,
}

/// Runs `command` where it has a stack of [`STACK_BYTES`], whatever `ulimit -s` says.
///
/// # Errors
///
/// If there is no memory for it, or it panics.
pub(crate) fn with_memory<R: Send>(command: fn() -> R) -> Result<R, NoResult> {
    cx::check_machine(0, 0, MIN_MEMORY)?;
    let limit = getrlimit(Resource::Stack).current;
    if limit.is_none_or(|bytes| bytes >= STACK_BYTES as u64) {
        return Ok(command());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("cx-main".to_owned()).stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, command)?;
        // A panic was printed where it happened.
        running.join().map_err(|_panic| NoResult::Panicked)
    })
}

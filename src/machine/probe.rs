//! Finds out whether the system grants something, by asking for it and giving it back.
//!
//! V8, wasmtime and tokio end the process or panic where the system refuses what they need. A limit
//! cannot be computed from files: several of them and other processes take part. What a probe has
//! seen may be gone when it is needed, so a probe asks for more than that.

use std::error::Error;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr;
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use rustix::process::{Pid, Resource, getrlimit};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Default stack size of threads in bytes, of the standard library and of tokio.
const STACK_BYTES: usize = 2 << 20;

/// What the system refuses, and which limit is to be raised.
///
/// It is the source of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Shortage(String);

impl Shortage {
    fn into_error(self, errno: Errno) -> io::Error {
        io::Error::new(io::Error::from(errno).kind(), self)
    }

    /// Whether an error is a shortage, or has one as its cause: the same call fails until a limit
    /// is raised.
    pub(crate) fn is_cause(error: &(dyn Error + 'static)) -> bool {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<Self>() {
                return true;
            }
            // An I/O error hides what it was made of: its source is the source of that.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = match inner {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        false
    }
}

/// Checks that `bytes` more of address space can be reserved at once. Nothing of it becomes memory.
///
/// # Errors
///
/// Says how much is needed, and the limit.
pub(crate) fn address_space(bytes: usize) -> io::Result<()> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    map_and_unmap(bytes, ProtFlags::empty(), flags).map_err(|errno| no_address_space(bytes, errno))
}

fn no_address_space(bytes: usize, errno: Errno) -> io::Error {
    let problem = match getrlimit(Resource::As).current {
        Some(limit) => too_small(bytes as u64, super::address_space_used(), limit),
        None => format!(
            "{} of address space are needed, and the system refuses them: {errno}",
            megabytes(bytes as u64)
        ),
    };
    Shortage(problem).into_error(errno)
}

/// Says that the limit of address space is too small, and how to raise it.
fn too_small(needed: u64, used: Option<u64>, limit: u64) -> String {
    let (in_use, at_least) = match used {
        Some(used) => (
            format!("the {} that are", megabytes(used)),
            // `ulimit` counts kilobytes.
            format!(", or at least `ulimit -v {}`", used.saturating_add(needed).div_ceil(1024)),
        ),
        None => ("what is".to_owned(), String::new()),
    };
    format!(
        "{} of address space are needed beside {in_use} in use, and the limit is {}: raise it with `ulimit -v \
         unlimited`{at_least}",
        megabytes(needed),
        megabytes(limit)
    )
}

fn megabytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Checks that `bytes` more of memory can be mapped for reading and writing. Nothing of it is
/// touched, so it does not become resident memory.
///
/// # Errors
///
/// Says how much is needed, and the limits.
pub(crate) fn private_memory(bytes: usize) -> io::Result<()> {
    address_space(bytes)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let writable = ProtFlags::READ | ProtFlags::WRITE;
    map_and_unmap(bytes, writable, flags).map_err(|errno| {
        let needed = megabytes(bytes as u64);
        let limit = getrlimit(Resource::Data).current;
        let limit = limit.map_or_else(|| "unlimited".to_owned(), megabytes);
        let problem = format!(
            "{needed} more of memory are needed, and the system refuses them: {errno}; raise the limit of \
             private memory (`ulimit -d`, here {limit})"
        );
        Shortage(problem).into_error(errno)
    })
}

fn map_and_unmap(bytes: usize, protection: ProtFlags, flags: MapFlags) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "memory is mapped and unmapped")]
    // SAFETY: the kernel chooses the address, so the range overlaps nothing else. Nothing has its
    // address when it is unmapped.
    unsafe {
        let start = rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, protection, flags)?;
        let _ = rustix::mm::munmap(start, bytes);
    }
    Ok(())
}

/// What an engine does with memory for machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeMemory {
    /// Makes written memory executable, and then writes no more.
    WrittenThenExecuted,
    /// Writes and executes the same memory.
    WrittenAndExecuted,
}

/// Checks that memory can be made executable. Service managers and kernels can forbid it.
///
/// # Errors
///
/// Says what forbids it.
pub(crate) fn executable_memory(code: CodeMemory) -> io::Result<()> {
    let bytes = rustix::param::page_size();
    let flags = MapFlags::PRIVATE;
    let writable = ProtFlags::READ | ProtFlags::WRITE;
    #[expect(unsafe_code, reason = "memory is mapped")]
    // SAFETY: the kernel chooses the address, so the page overlaps nothing else.
    let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, writable, flags) }?;
    let execute = match code {
        CodeMemory::WrittenThenExecuted => MprotectFlags::READ | MprotectFlags::EXEC,
        CodeMemory::WrittenAndExecuted => MprotectFlags::READ | MprotectFlags::WRITE | MprotectFlags::EXEC,
    };
    #[expect(unsafe_code, reason = "memory is protected and unmapped")]
    // SAFETY: it is the page that was mapped above, and nothing has its address.
    let protected = unsafe {
        let protected = rustix::mm::mprotect(start, bytes, execute);
        let _ = rustix::mm::munmap(start, bytes);
        protected
    };
    protected.map_err(|errno| {
        let problem = format!(
            "memory for machine code is needed, and this system forbids to make memory executable ({errno}): \
             `MemoryDenyWriteExecute=yes` of systemd, PR_SET_MDWE, a filter of system calls or SELinux's \
             `execmem`; allow it for this process"
        );
        Shortage(problem).into_error(errno)
    })
}

/// Threads that can be started. Until it is dropped no other probe takes any, for the moment for which it has them.
#[derive(Debug)]
pub(crate) struct GrantedThreads {
    _only_probe: MutexGuard<'static, ()>,
}

/// Checks that `count` more threads can run at the same time, each with a stack of `stack_bytes`.
///
/// # Errors
///
/// Says how many are needed, and the limits.
pub(crate) fn threads(count: usize, stack_bytes: usize) -> io::Result<GrantedThreads> {
    static PROBES: Mutex<()> = Mutex::new(());
    let granted = GrantedThreads { _only_probe: PROBES.lock() };
    let gate = Mutex::new(());
    let ids = Mutex::new(Vec::new());
    let started = thread::scope(|scope| {
        // While it is closed, all of them exist.
        let closed = gate.lock();
        let start = |number| {
            let thread = thread::Builder::new().name("cx-probe".to_owned()).stack_size(stack_bytes);
            let waiting = thread.spawn_scoped(scope, || {
                ids.lock().push(rustix::thread::gettid());
                drop(gate.lock());
            });
            waiting.map(drop).map_err(|error| (number, error))
        };
        let started = (0..count).try_for_each(start);
        drop(closed);
        started
    });
    wait_until_gone(&ids.into_inner());
    started.map(|()| granted).map_err(|(number, error): (usize, io::Error)| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
        let (which, limits) = (ordinal(number + 1), limits_of_threads());
        let problem =
            format!("{count} more threads are needed, and the system refuses the {which}: {error}; {limits}");
        Shortage(problem).into_error(errno)
    })
}

/// The error of a thread that the system refused, with what its limits are. It may be granted later,
/// when others have ended.
pub(crate) fn refused_thread(error: &io::Error, stack_bytes: usize) -> io::Error {
    let (stack, limits) = (megabytes(stack_bytes as u64), limits_of_threads());
    io::Error::new(
        error.kind(),
        format!("the system refuses a thread with a stack of {stack}: {error}; {limits}"),
    )
}

fn limits_of_threads() -> String {
    let limit = getrlimit(Resource::Nproc).current;
    let limit = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    format!(
        "the limits are those of the user (`ulimit -u`, here {limit}), of its control group (`pids.max`, Docker's \
         `--pids-limit`) and of memory for stacks (`ulimit -v`, `ulimit -d`)"
    )
}

/// Waits until the system does not count threads any more that have ended: that is a moment after
/// they can be joined, or much later where all processors are busy.
fn wait_until_gone(ids: &[Pid]) {
    const PAUSE: Duration = Duration::from_micros(50);
    const MAX_PAUSES: usize = 20_000;
    let counts = |id: &Pid| Path::new(&format!("/proc/self/task/{}", id.as_raw_nonzero())).exists();
    for id in ids {
        let _gone = (0..MAX_PAUSES).find(|_| {
            let is_gone = !counts(id);
            if !is_gone {
                thread::sleep(PAUSE);
            }
            is_gone
        });
    }
}

fn ordinal(number: usize) -> String {
    match number {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        _ => format!("{number}th"),
    }
}

/// Checks that `count` more file descriptors can be open at the same time.
///
/// # Errors
///
/// Says how many are needed, and the limit.
pub(crate) fn descriptors(count: usize) -> io::Result<()> {
    let mut open = Vec::with_capacity(count.div_ceil(2));
    for _ in 0..count.div_ceil(2) {
        // Two descriptors each, without any file.
        match UnixStream::pair() {
            Ok(pair) => open.push(pair),
            Err(error) => {
                drop(open);
                return Err(no_descriptors(count, &error));
            }
        }
    }
    Ok(())
}

fn no_descriptors(count: usize, error: &io::Error) -> io::Error {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::MFILE);
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let problem = format!(
        "{count} more file descriptors are needed, and the system refuses them: {error}; raise the limit \
         (`ulimit -n`, here {limit})"
    );
    Shortage(problem).into_error(errno)
}

/// Checks that threads which a library starts with the system's own stack size get at least `bytes`
/// of it.
///
/// # Errors
///
/// Says how much is needed, and the limit.
pub(crate) fn default_stack(bytes: u64) -> io::Result<()> {
    match getrlimit(Resource::Stack).current {
        Some(limit) if limit < bytes => {
            let problem = format!(
                "a stack of {} KiB is needed, and the limit is {} KiB: raise it with `ulimit -s {}`",
                bytes >> 10,
                limit >> 10,
                // The usual limit.
                8 << 10
            );
            Err(Shortage(problem).into_error(Errno::NOMEM))
        }
        _ => Ok(()),
    }
}

/// Checks that a file, even one in memory, may have `bytes`.
///
/// # Errors
///
/// Says how much is needed, and the limit.
pub(crate) fn file_size(bytes: usize) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < bytes as u64 => {
            let problem = format!(
                "a file in memory of {} is needed, and the limit of a file's size is {} KiB: raise it with \
                 `ulimit -f unlimited`",
                megabytes(bytes as u64),
                limit >> 10
            );
            Err(Shortage(problem).into_error(Errno::FBIG))
        }
        _ => Ok(()),
    }
}

/// Runs `work` on a thread of the runtime's that may block.
///
/// # Errors
///
/// If there is no thread for it. tokio would panic.
pub(crate) fn spawn_blocking<R: Send + 'static>(
    runtime: &Handle,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    // One more than is needed, because threads are started without a probe too.
    let _granted = if super::has_few_threads() { Some(threads(2, STACK_BYTES)?) } else { None };
    Ok(runtime.spawn_blocking(work))
}

/// Checks that this process can have `threads` more threads, `descriptors` more file descriptors and
/// `memory_bytes` more of memory at the same time.
///
/// A program can call it before it makes a tokio runtime, which panics if it gets no thread, or no
/// descriptors for its signals. An executor checks for itself what it needs.
///
/// # Errors
///
/// Says what is needed, and which limit is in the way.
pub fn check_machine(threads: usize, descriptors: usize, memory_bytes: usize) -> io::Result<()> {
    if memory_bytes > 0 {
        private_memory(memory_bytes)?;
    }
    self::descriptors(descriptors)?;
    self::threads(threads, STACK_BYTES).map(drop)
}

#[cfg(test)]
mod tests;

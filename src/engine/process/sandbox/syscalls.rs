//! The system calls that a worker process may make once it is warm, as traces of the scripts of
//! `tests/scripts` in both engines show them: `make syscalls` traces again and prints what differs.
//! Reviewed by hand: none of them opens, connects, executes or names anything outside the process.
//! Those with conditions are in `sandbox.rs`.

/// A call's name and number.
pub(super) const ALLOWED: &[(&str, i64)] = &[
    // Memory.
    ("brk", libc::SYS_brk),
    ("mprotect", libc::SYS_mprotect),
    ("mremap", libc::SYS_mremap),
    ("munmap", libc::SYS_munmap),
    ("pkey_mprotect", libc::SYS_pkey_mprotect),
    ("membarrier", libc::SYS_membarrier),
    // Threads and their signals.
    ("exit", libc::SYS_exit),
    ("exit_group", libc::SYS_exit_group),
    ("getpid", libc::SYS_getpid),
    ("getppid", libc::SYS_getppid),
    ("gettid", libc::SYS_gettid),
    ("restart_syscall", libc::SYS_restart_syscall),
    ("rseq", libc::SYS_rseq),
    ("rt_sigaction", libc::SYS_rt_sigaction),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    ("rt_sigreturn", libc::SYS_rt_sigreturn),
    // Of the calling thread, which has the number 0: `absent` in `sandbox.rs` has the other numbers.
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("sched_yield", libc::SYS_sched_yield),
    ("set_robust_list", libc::SYS_set_robust_list),
    ("sigaltstack", libc::SYS_sigaltstack),
    // Random numbers, and the times that this process has computed.
    ("getrandom", libc::SYS_getrandom),
    ("getrusage", libc::SYS_getrusage),
    // Files that are open: the image of the interpreter's memory, and which pages of a memory were modified.
    ("pread64", libc::SYS_pread64),
    // The connection, and the event loop of the runtime.
    ("close", libc::SYS_close),
    ("epoll_create1", libc::SYS_epoll_create1),
    ("epoll_ctl", libc::SYS_epoll_ctl),
    ("epoll_pwait", libc::SYS_epoll_pwait),
    #[cfg(target_arch = "x86_64")]
    ("epoll_wait", libc::SYS_epoll_wait),
    ("eventfd2", libc::SYS_eventfd2),
    ("ppoll", libc::SYS_ppoll),
    ("read", libc::SYS_read),
    ("recvfrom", libc::SYS_recvfrom),
    ("sendto", libc::SYS_sendto),
    ("write", libc::SYS_write),
];

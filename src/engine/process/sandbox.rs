//! The sandbox of a worker process on Linux. It is complete before the worker sees a script.
//!
//! The filter of system calls allows no call that opens, connects or signals anything. Landlock
//! without any rule opens no file whatever the filter allows; from Linux 6.7 on it also refuses TCP
//! connections, from 6.12 on signals to processes outside. It covers neither UDP nor Unix sockets.
//! The other measures reduce what a mistake in these two would expose: no network device, no new
//! privileges, no environment, no descriptor but the connection, and limits of resources and threads.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
};
use landlock::{RulesetStatus, Scope};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior, setrlimit,
};
use rustix::thread::UnshareFlags;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::machine::{self, SandboxFeatures};

mod syscalls;

/// Descriptors that a worker may have: the connection, its runtime, its engine.
const MAX_DESCRIPTORS: u64 = 64;

/// Threads that a worker may have beyond those that its engine makes for each processor.
const MAX_THREADS: usize = 64;

/// Address space that a worker may map beside what it has when it begins: V8 needs 48 GiB to start. Pages that are only
/// read are all the same page of zeros, and the kernel does not count their page tables as memory of the process: a 512th
/// of the address space.
const MORE_ADDRESS_SPACE: u64 = 128 << 30;

/// The measure that a worker has a user namespace and a network namespace of its own.
const NAMESPACES: &str = "network namespace";

/// The newest interface of Landlock that this file knows of. What an older kernel lacks is left out.
const LANDLOCK: ABI = ABI::V6;

/// Which measures of the sandbox are active, and which are missing, with the reason.
#[derive(Clone, Debug, Default)]
pub(super) struct Confinement {
    pub(super) active: Vec<String>,
    pub(super) missing: Vec<String>,
    /// Whether the process has a user namespace that no other process is in.
    has_own_users: bool,
    /// The ids of the process's user and group outside of its user namespace, where it has made one.
    outside: Option<(u32, u32)>,
    /// Address space in bytes that the process had when it could still ask for it; 0 if the system does not tell.
    address_space: u64,
}

impl Confinement {
    pub(super) fn record(&mut self, measure: &str, result: Result<(), String>) {
        match result {
            Ok(()) if self.active.iter().any(|active| active == measure) => {}
            Ok(()) => self.active.push(measure.to_owned()),
            Err(problem) => self.missing.push(format!("{measure}: {problem}")),
        }
    }
}

/// Makes the kernel kill this process when the thread that started it ends.
pub(super) fn end_with_parent(confinement: &mut Confinement) {
    let dies = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    confinement.record("ends with its parent", dies.map_err(|error| error.to_string()));
}

/// Gives this process, and those that it forks, a network without devices, where the system allows it. Call it before
/// the process has other threads: with them it has no effect.
pub(super) fn leave_network(confinement: &mut Confinement) {
    // Without privileges, other namespaces need a user namespace. Where that is not allowed, and
    // where the engine has threads already because it had to be compiled, the filter of system calls
    // makes no socket.
    let network = UnshareFlags::NEWUSER | UnshareFlags::NEWNET;
    // Read before, because inside a new user namespace no user has an id until one is mapped.
    let outside = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    // A service manager may permit some kinds of namespaces only, and one call fails as a whole.
    if unshare(network | UnshareFlags::NEWIPC).or_else(|_| unshare(network)).is_ok() {
        confinement.active.push(NAMESPACES.to_owned());
        confinement.has_own_users = true;
        confinement.outside = Some(outside);
    }
}

/// Lets the processes that this one forks leave the user namespace that it has made: only a user whom a namespace knows
/// may make another one in it.
pub(super) fn map_users(confinement: &Confinement) {
    // The namespace of its executor is not its own to change.
    let Some((user, group)) = confinement.outside else { return };
    let files = [
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        // Without it an unprivileged process may not map its group.
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in files {
        if let Err(error) = std::fs::write(file, text) {
            // The processes stay in this namespace, and the system does not limit their threads.
            tracing::debug!(file, %error, "the users of a namespace are not set");
        }
    }
}

/// Call it first in a process that was forked after [`leave_network`], on its only thread. The network without devices
/// is the fork server's. In a user namespace of its own this process has no privileges over it, and its threads are
/// counted apart.
pub(super) fn begin_forked(confinement: &mut Confinement) {
    if confinement.active.iter().any(|measure| measure == NAMESPACES) {
        confinement.has_own_users = unshare(UnshareFlags::NEWUSER).is_ok();
    } else {
        // The fork server may only have had too many threads, as after it has compiled its engine.
        leave_network(confinement);
    }
}

/// Takes the opening of files away from this process. Call it when everything is open, on the first thread and before
/// the engine has started others: most of these restrictions apply to the calling thread and to the threads that it
/// starts.
pub(super) fn close_files(confinement: &mut Confinement) {
    // Before Linux 6.4 rustix reads the auxiliary vector, with the page size in it, from a file,
    // which can no longer be opened afterwards.
    let _read = rustix::param::page_size();
    end_before_others();
    // In the user namespace the process has other credentials, and a change of credentials clears
    // this setting.
    end_with_parent(confinement);
    confinement.address_space = machine::address_space_used().unwrap_or(0);
    let limits = [(Resource::Fsize, 0), (Resource::Memlock, 0), (Resource::Nofile, MAX_DESCRIPTORS)];
    let limited = limits.into_iter().try_for_each(|(resource, most)| limit(resource, most));
    confinement.record("resource limits", limited.map_err(|error| error.to_string()));
    // Not a limit of 0, with which the kernel still starts the program of `core_pattern` for each core dump, as root
    // (`core(5)`), nor one of 1, which cannot be set where a service has 0. From here on the files of this process in
    // `/proc` belong to root. It has opened those that it needs; its executor has opened that of its memory before the
    // first message.
    let dumpable = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    confinement.record("no core dumps", dumpable.map_err(|error| error.to_string()));
    let privileges = rustix::thread::set_no_new_privs(true);
    confinement.record("no new privileges", privileges.map_err(|error| error.to_string()));
    confinement.record("landlock", landlock());
}

/// Limits a resource of this process, which may have a lower limit already.
fn limit(resource: Resource, most: u64) -> rustix::io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
}

/// Lets the kernel end this process rather than its executor, or its fork server, with which all workers end, when the
/// machine has no memory left.
fn end_before_others() {
    /// What is added to the score by which the kernel chooses: this process counts as if it had a tenth of the memory
    /// of the machine in addition (`proc_pid_oom_score_adj(5)`).
    const RAISE: i32 = 100;
    const MAX_SCORE: i32 = 1000;
    const FILE: &str = "/proc/self/oom_score_adj";
    let now = std::fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse::<i32>().ok());
    if let Some(now) = now {
        // Without it the kernel chooses as it would anyway.
        let _raised = std::fs::write(FILE, now.saturating_add(RAISE).min(MAX_SCORE).to_string());
    }
}

fn unshare(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    #[expect(unsafe_code, reason = "leaving namespaces changes what the whole process sees")]
    // SAFETY: the table of descriptors stays shared, so no descriptor means something else afterwards.
    unsafe {
        rustix::thread::unshare_unsafe(namespaces)
    }
}

fn landlock() -> Result<(), String> {
    let failed = |error: landlock::RulesetError| error.to_string();
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.restrict_self())
        .map_err(failed)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("this kernel does not have it".to_owned()),
    }
}

/// Restricts all threads of this process to the system calls of the list, and their number. Call it when the engine
/// is warm: calls that an engine needs only to start are not on the list. `processors` are those of the machine.
pub(super) fn filter_calls(confinement: &mut Confinement, processors: usize) {
    let most = confinement.address_space.saturating_add(MORE_ADDRESS_SPACE);
    confinement
        .record("limit of address space", limit(Resource::As, most).map_err(|error| error.to_string()));
    limit_threads(confinement, processors);
    confinement.record("seccomp", seccomp());
}

/// Threads that a worker may have.
pub(super) fn max_threads(processors: usize) -> usize {
    processors.saturating_mul(2).saturating_add(MAX_THREADS)
}

/// Limits the threads of this process, where it has a user namespace of its own: elsewhere the limit is one of all
/// processes of the user, as it is everywhere before Linux 5.14. The kernel limits no processes of the machine's root.
fn limit_threads(confinement: &mut Confinement, processors: usize) {
    /// The version of Landlock's interface that Linux 5.19 has.
    const MIN_LANDLOCK: u32 = 2;
    let version = SandboxFeatures::of_kernel().landlock_abi;
    if !confinement.has_own_users || version.is_none_or(|version| version < MIN_LANDLOCK) {
        return;
    }
    let most = u64::try_from(max_threads(processors)).unwrap_or(u64::MAX);
    if limit(Resource::Nproc, most).is_ok() {
        confinement.active.push("limit of threads".to_owned());
    }
}

fn seccomp() -> Result<(), String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let refused = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().unsigned_abs());
    let unknown = SeccompAction::Errno(rustix::io::Errno::NOSYS.raw_os_error().unsigned_abs());
    let absent = absent().map_err(|error| error.to_string())?;
    let allowed = rules().map_err(|error| error.to_string())?;
    let programs = [
        SeccompFilter::new(absent, SeccompAction::Allow, unknown, architecture),
        SeccompFilter::new(allowed, refused, SeccompAction::Allow, architecture),
    ];
    for program in programs {
        let program: BpfProgram = program
            .and_then(TryInto::try_into)
            .map_err(|error: seccompiler::BackendError| error.to_string())?;
        seccompiler::apply_filter_all_threads(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Calls that fail as if the kernel did not have them, because the C library does without them then.
fn absent() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    // The C library asks by its number for the processors of a thread whose attributes are wanted, such as its stack.
    // Of another process, the call tells whether there is one of that number.
    let is_by_number = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    Ok(BTreeMap::from([
        // Its flags are in memory, which a filter cannot read. Those of `clone` are an argument.
        (libc::SYS_clone3, Vec::new()),
        (libc::SYS_sched_getaffinity, vec![SeccompRule::new(vec![is_by_number])?]),
    ]))
}

/// The list, with conditions for the calls that can do more than a worker needs.
fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    let own = u64::from(rustix::process::getpid().as_raw_nonzero().get().unsigned_abs());
    let is = |argument, length, value| SeccompCondition::new(argument, length, SeccompCmpOp::Eq, value);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        syscalls::ALLOWED.iter().map(|(_name, number)| (*number, Vec::new())).collect();
    // The second filter allows it; the first one refuses it.
    rules.insert(libc::SYS_clone3, Vec::new());
    // Threads, and no processes.
    let thread = u64::from((libc::CLONE_THREAD | libc::CLONE_VM).unsigned_abs());
    let is_thread = SeccompCondition::new(0, Qword, SeccompCmpOp::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    rules.insert(libc::SYS_futex, rules_of_futexes()?);
    // Signals to its own threads, for `abort`.
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![is(0, Dword, own)?])?]);
    // To read its own limits, and to change none.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(0, Dword, 0)?, is(2, Qword, 0)?])?]);
    // Names of threads and of mappings.
    let names = [libc::PR_SET_NAME, libc::PR_SET_VMA];
    let names = names
        .into_iter()
        .map(|option| SeccompRule::new(vec![is(0, Dword, u64::from(option.unsigned_abs()))?]));
    rules.insert(libc::SYS_prctl, names.collect::<Result<_, _>>()?);
    // The flags of a descriptor, and copies of it.
    let commands = [libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL, libc::F_DUPFD_CLOEXEC];
    let commands = commands
        .into_iter()
        .map(|command| SeccompRule::new(vec![is(1, Dword, u64::from(command.unsigned_abs()))?]));
    rules.insert(libc::SYS_fcntl, commands.collect::<Result<_, _>>()?);
    rules.extend(rules_of_memory()?);
    // A negative clock id is the CPU clock of another process, which would show when that one computes.
    let last = u64::from(libc::CLOCK_TAI.unsigned_abs());
    for call in [libc::SYS_clock_getres, libc::SYS_clock_gettime, libc::SYS_clock_nanosleep] {
        let is_of_the_system = SeccompCondition::new(0, Dword, SeccompCmpOp::Le, last)?;
        rules.insert(call, vec![SeccompRule::new(vec![is_of_the_system])?]);
    }
    Ok(rules)
}

/// The conditions for waiting and waking: no lock that has the number of its owner in it, for which the kernel tells
/// whether there is a thread of that number. No lock of a worker inherits priorities, which is what such locks are for.
fn rules_of_futexes() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const FLAGS: u32 = (libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).unsigned_abs();
    const COMMANDS: [i32; 7] = [
        libc::FUTEX_WAIT,
        libc::FUTEX_WAKE,
        libc::FUTEX_WAIT_BITSET,
        libc::FUTEX_WAKE_BITSET,
        // Condition variables of older C libraries.
        libc::FUTEX_REQUEUE,
        libc::FUTEX_CMP_REQUEUE,
        libc::FUTEX_WAKE_OP,
    ];
    let rule = |command: i32| {
        let without_flags = SeccompCmpOp::MaskedEq(u64::from(!FLAGS));
        let command = u64::from(command.unsigned_abs());
        let is_this = SeccompCondition::new(1, SeccompCmpArgLen::Dword, without_flags, command)?;
        SeccompRule::new(vec![is_this])
    };
    COMMANDS.into_iter().map(rule).collect()
}

/// The conditions for memory: all that a worker has is its own, and the kernel counts it while it is mapped.
fn rules_of_memory() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    use SeccompCmpArgLen::Dword;
    /// `MADV_GUARD_INSTALL` and `MADV_GUARD_REMOVE` of Linux 6.13, which libc does not define: guard pages at the ends
    /// of stacks.
    const GUARD_INSTALL: i32 = 102;
    const GUARD_REMOVE: i32 = 103;
    /// No advice that moves memory to where it is not counted, such as `MADV_PAGEOUT`, or that shares it with others.
    const ADVICE: &[i32] = &[
        libc::MADV_NORMAL,
        libc::MADV_RANDOM,
        libc::MADV_SEQUENTIAL,
        libc::MADV_WILLNEED,
        libc::MADV_DONTNEED,
        libc::MADV_FREE,
        libc::MADV_DONTFORK,
        libc::MADV_DOFORK,
        libc::MADV_HUGEPAGE,
        libc::MADV_NOHUGEPAGE,
        libc::MADV_DONTDUMP,
        libc::MADV_DODUMP,
        libc::MADV_POPULATE_READ,
        libc::MADV_POPULATE_WRITE,
        GUARD_INSTALL,
        GUARD_REMOVE,
    ];
    // Pages of a shared mapping can stay when they are not mapped any more, and then count for no process. Neither do
    // huge pages that the machine has reserved.
    let kind = SeccompCmpOp::MaskedEq(u64::from((libc::MAP_TYPE | libc::MAP_HUGETLB).unsigned_abs()));
    let is_private = SeccompCondition::new(3, Dword, kind, u64::from(libc::MAP_PRIVATE.unsigned_abs()))?;
    let advice = ADVICE.iter().map(|advice| {
        let is_this = SeccompCondition::new(2, Dword, SeccompCmpOp::Eq, u64::from(advice.unsigned_abs()))?;
        SeccompRule::new(vec![is_this])
    });
    Ok(BTreeMap::from([
        (libc::SYS_mmap, vec![SeccompRule::new(vec![is_private])?]),
        (libc::SYS_madvise, advice.collect::<Result<_, _>>()?),
    ]))
}

#[cfg(test)]
mod tests;

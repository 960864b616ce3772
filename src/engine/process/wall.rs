//! What confines a worker process on Linux, put up before it sees a script.
//!
//! Two walls stand for themselves: Landlock, without any rule, so that no file can be opened, no port be connected to
//! and no process outside be signalled; and a filter of system calls, which has no call that opens or connects
//! anything. The rest makes both smaller: no network of its own, no new privileges, no environment, no descriptors
//! but the connection, and limits of resources.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
};
use landlock::{RulesetStatus, Scope};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use rustix::thread::UnshareFlags;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

mod syscalls;

/// Descriptors that a worker may have: the connection, its runtime, its engine.
const MAX_DESCRIPTORS: u64 = 64;

/// The newest interface of Landlock that this file knows of. What an older kernel lacks is left out.
const LANDLOCK: ABI = ABI::V6;

/// What was put up, and what could not be.
#[derive(Debug, Default)]
pub(super) struct Walls {
    pub(super) up: Vec<String>,
    pub(super) missing: Vec<String>,
}

impl Walls {
    pub(super) fn note(&mut self, wall: &str, result: Result<(), String>) {
        match result {
            Ok(()) if self.up.iter().any(|up| up == wall) => {}
            Ok(()) => self.up.push(wall.to_owned()),
            Err(problem) => self.missing.push(format!("{wall}: {problem}")),
        }
    }
}

/// The kernel kills this process when the thread ends that has started it.
pub(super) fn end_with_parent(walls: &mut Walls) {
    let dies = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    walls.note("ends with its parent", dies.map_err(|error| error.to_string()));
}

/// From here on this process has no network and can open no file. Call it when everything is open, on the first thread
/// and before the engine has others: what another thread may open is not this thread's to say.
pub(super) fn close_files(walls: &mut Walls) {
    // Before Linux 6.4 rustix reads this, and with it all that the kernel tells a new process, from a file: now or never.
    let _read = rustix::param::page_size();
    // Without privileges, only a namespace of users may have others. Where that is not allowed, and where the engine
    // has threads already because it had to be compiled, the two walls below are enough.
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    #[expect(unsafe_code, reason = "leaving namespaces changes what the whole process sees")]
    // SAFETY: the table of descriptors stays shared, so no descriptor means something else afterwards.
    let unshared = unsafe { rustix::thread::unshare_unsafe(flags) };
    if unshared.is_ok() {
        walls.up.push("network namespace".to_owned());
    }
    // Whoever is another user now has to ask again.
    end_with_parent(walls);
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Memlock, 0),
        (Resource::Nofile, MAX_DESCRIPTORS),
    ];
    let limited = limits.into_iter().try_for_each(|(resource, most)| {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
    });
    walls.note("resource limits", limited.map_err(|error| error.to_string()));
    let privileges = rustix::thread::set_no_new_privs(true);
    walls.note("no new privileges", privileges.map_err(|error| error.to_string()));
    walls.note("landlock", landlock());
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

/// From here on no thread of this process can make another system call than those of the list. Call it when the engine
/// is warm: what it does once is not on the list.
pub(super) fn filter_calls(walls: &mut Walls) {
    walls.note("seccomp", seccomp());
}

fn seccomp() -> Result<(), String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let refused = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().unsigned_abs());
    // Its flags are in memory, which a filter cannot read. The C library then uses `clone`, whose flags it can.
    let absent = SeccompAction::Errno(rustix::io::Errno::NOSYS.raw_os_error().unsigned_abs());
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let allowed = rules().map_err(|error| error.to_string())?;
    let programs = [
        SeccompFilter::new(clone3, SeccompAction::Allow, absent, architecture),
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

/// The list, with conditions for the calls that can do more than a worker needs.
fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    let own = u64::from(rustix::process::getpid().as_raw_nonzero().get().unsigned_abs());
    let is = |argument, length, value| SeccompCondition::new(argument, length, SeccompCmpOp::Eq, value);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        syscalls::ALLOWED.iter().map(|(_name, number)| (*number, Vec::new())).collect();
    // In the list it is for both filters; the first one refuses it.
    rules.insert(libc::SYS_clone3, Vec::new());
    // Threads, and no processes.
    let thread = u64::from((libc::CLONE_THREAD | libc::CLONE_VM).unsigned_abs());
    let is_thread = SeccompCondition::new(0, Qword, SeccompCmpOp::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    // To abort.
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
    Ok(rules)
}

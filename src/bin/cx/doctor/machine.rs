//! Checks what the machine and its limits grant this process, and what its kernel offers for sandboxes.

use cx::text::one_line;
use cx::{Config, Executor, Isolation, Machine, MemorySource, SandboxFeatures};
use serde_json::Value;

use super::report::Check;

const SECTION: &str = "machine";
const SANDBOX: &str = "sandbox features of the kernel";

/// The minimum for one script, and the increment for each further one: docs/limits.md.
const THREADS: usize = 8;
const DESCRIPTORS: usize = 24;

/// File descriptors of each stdio server.
const SERVER_DESCRIPTORS: usize = 3;

/// Memory, processors, and the limits that are too small.
pub(super) fn check(executor: &Executor, config: &Config) -> Vec<Check> {
    let machine = Machine::of_process();
    let processors = match machine.processors {
        1 => "one that this process may use".to_owned(),
        count => format!("{count} that this process may use at the same time"),
    };
    vec![
        memory(executor, &machine),
        Check::ok(SECTION, "processors", processors).with("processors", machine.processors),
        limits(executor, config),
    ]
}

fn memory(executor: &Executor, machine: &Machine) -> Check {
    let stats = executor.run_stats();
    let (all, one) = (stats.max_memory_bytes, executor.limits().memory_bytes);
    let decided_by = match stats.memory_source {
        MemorySource::Option => "as configured".to_owned(),
        source => format!("half of the {} of {}", mebibytes(machine.memory_bytes), named(source)),
    };
    let at_once = (all / one.max(1)).min(stats.max_running);
    let scripts = if at_once == 1 { "one script" } else { "scripts" };
    let count = if at_once == 1 { String::new() } else { format!("{at_once} ") };
    let message = format!(
        "all scripts together have {}, {decided_by}: {count}{scripts} of {} at a time",
        mebibytes(all as u64),
        mebibytes(one as u64)
    );
    let check = if at_once > 1 {
        Check::ok(SECTION, "memory", message)
    } else {
        let hint = match stats.memory_source {
            MemorySource::Option => "raise `totalMemoryBytes`, or lower `limits.memoryBytes`",
            MemorySource::ControlGroup => {
                "give the container or service more memory, or lower `limits.memoryBytes`"
            }
            MemorySource::AddressSpace => "raise `ulimit -v`, or lower `limits.memoryBytes`",
            MemorySource::DataSegment => "raise `ulimit -d`, or lower `limits.memoryBytes`",
            _ => "lower `limits.memoryBytes`: others wait while one runs",
        };
        Check::warning(SECTION, "memory", message, hint)
    };
    check
        .with("totalBytes", all)
        .with("source", stats.memory_source.as_str())
        .with("usableBytes", machine.memory_bytes)
        .with("scriptBytes", one)
}

fn named(source: MemorySource) -> &'static str {
    match source {
        MemorySource::ControlGroup => "its control group",
        MemorySource::AddressSpace => "its address space (`ulimit -v`)",
        MemorySource::DataSegment => "its private memory (`ulimit -d`)",
        _ => "the machine",
    }
}

/// Checks for the threads and descriptors of one script and all servers, and then of as many scripts as may run at a
/// time.
fn limits(executor: &Executor, config: &Config) -> Check {
    const NAME: &str = "limits of the process";
    let descriptors = DESCRIPTORS + SERVER_DESCRIPTORS * config.servers.len();
    if let Err(error) = cx::check_machine(THREADS, descriptors, 0) {
        return refused(&error.to_string());
    }
    let runs = executor.run_stats().max_running;
    match cx::check_machine(THREADS + runs, descriptors + runs, 0) {
        Ok(()) => Check::ok(
            SECTION,
            NAME,
            format!("enough threads and file descriptors for {runs} scripts at a time"),
        ),
        Err(error) => Check::warning(
            SECTION,
            NAME,
            format!("enough for one script, and not for {runs} at a time: {error}"),
            "raise the limit that is named here, or serve fewer scripts at a time with `--max-runs`",
        ),
    }
}

/// The problem of a process that lacks resources of the system.
pub(super) fn refused(problem: &str) -> Check {
    let hint = "raise the limit that is named here; docs/limits.md, \"Small machines and containers\", has what is \
        needed";
    Check::problem(SECTION, "limits of the process", problem, hint)
}

/// What the kernel offers for sandboxes, and whether the configuration uses it, if there is one. This is only reported.
pub(super) fn sandbox(config: Option<&Config>) -> Vec<Check> {
    let features = SandboxFeatures::of_kernel();
    let ok = |name: &str, message: String| Check::ok(SANDBOX, name, message);
    let is_there = |is_there: bool| if is_there { "there" } else { "not there" }.to_owned();
    let landlock = match features.landlock_abi {
        Some(version) => format!("there, version {version} of its interface"),
        None => "not there".to_owned(),
    };
    let cgroup = match &features.cgroup_v2 {
        None => "not mounted".to_owned(),
        Some(group) => {
            let controllers = match group.controllers.as_slice() {
                [] => "no controllers".to_owned(),
                controllers => controllers.join(", "),
            };
            let delegated = if group.is_delegated { "writable" } else { "not writable" };
            let workers =
                if group.worker_groups.is_some() { "; each worker process gets its own" } else { "" };
            format!("{} is {delegated}; {controllers}{workers}", group.directory.display())
        }
    };
    let group = features.cgroup_v2.as_ref();
    let mut checks = vec![
        ok("Landlock", landlock).with("abi", features.landlock_abi),
        ok("seccomp", is_there(features.seccomp)).with("available", features.seccomp),
        ok("user namespaces", is_there(features.user_namespaces)).with("available", features.user_namespaces),
        ok("control groups, version 2", cgroup)
            .with("mounted", group.is_some())
            .with("controllers", group.map_or(Value::Null, |group| group.controllers.clone().into()))
            .with("delegated", group.is_some_and(|group| group.is_delegated))
            .with("forWorkers", group.is_some_and(|group| group.worker_groups.is_some())),
        worker_processes(&features, config),
    ];
    checks.extend(config.and_then(elsewhere));
    checks
}

/// Where scripts are executed, if that is not this machine. The checks of the engines show whether it works.
fn elsewhere(config: &Config) -> Option<Check> {
    let whose = match config.isolation.as_ref()? {
        Isolation::Remote(_) => "by the worker processes of",
        Isolation::Nats(_) => "by the workers of the queue at",
        _ => return None,
    };
    // As it is shown: without a password that someone has written into it.
    let json = config.to_json();
    let url = json["isolation"]["url"].as_str().unwrap_or_default();
    let message = format!("scripts are executed {whose} {}", one_line(url));
    Some(Check::ok(SANDBOX, "other machines", message).with("url", one_line(url)))
}

/// What worker processes lack without user namespaces, which `isolation.require` does not insist on.
const WITHOUT_NAMESPACES: &str = ". Without user namespaces they have no network of their own, so that only the filter \
    of system calls keeps them from this machine's, and the number of their threads is bounded in control groups only";

/// What confines worker processes here, and whether the configuration uses them.
fn worker_processes(features: &SandboxFeatures, config: Option<&Config>) -> Check {
    const NAME: &str = "worker processes";
    let boundaries = [("Landlock", features.landlock_abi.is_some()), ("seccomp", features.seccomp)];
    let missing: Vec<&str> =
        boundaries.iter().filter_map(|(name, is_there)| (!is_there).then_some(*name)).collect();
    let is_configured = config.map(|config| matches!(config.isolation, Some(Isolation::Process(_))));
    let is_wanted = is_configured == Some(true);
    let wanted = match is_configured {
        Some(true) => "configured",
        Some(false) => "not configured",
        None => "not known whether they are configured",
    };
    let check = if !missing.is_empty() {
        let message = format!("{wanted}; this kernel lacks what confines them: {}", missing.join(", "));
        match is_wanted {
            true => Check::warning(
                SANDBOX,
                NAME,
                message,
                "use a kernel of version 5.13 or later with Landlock switched on; docs/isolation.md says what each \
                 sandbox boundary does",
            ),
            false => Check::ok(SANDBOX, NAME, message),
        }
    } else {
        let message = format!("{wanted}; everything is there that has to confine them");
        let without = if features.user_namespaces { "" } else { WITHOUT_NAMESPACES };
        Check::ok(SANDBOX, NAME, format!("{message}{without}"))
    };
    check.with("configured", is_configured).with("missing", missing)
}

/// An amount of memory for people.
fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_lack_without_user_namespaces_is_said() {
        let mut features = SandboxFeatures::of_kernel();
        (features.landlock_abi, features.seccomp) = (Some(6), true);
        for user_namespaces in [true, false] {
            features.user_namespaces = user_namespaces;
            let check = format!("{:?}", worker_processes(&features, None));
            assert!(check.contains("status: Ok"), "{check}");
            assert_eq!(check.contains("no network of their own"), !user_namespaces, "{check}");
        }
    }
}

//! What this process may use of the machine: memory, processors, address space, threads and file
//! descriptors.
//!
//! A machine's own figures are not what a process may use: a container or a service manager
//! restricts it (control groups), and so do resource limits (`ulimit`). [`probe`] finds out whether
//! something can be had before a library asks for it that ends the process if it cannot.

mod cgroup;
pub(crate) mod probe;
mod sandbox;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::LazyLock;

use rustix::process::{Resource, getrlimit};

pub use self::probe::check_machine;
pub use self::sandbox::{CgroupV2, SandboxFeatures};

/// Maximum bytes read of a file of the kernel's. A machine with ten thousand mounts has 2 MB of
/// them.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What restricts the memory of all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemorySource {
    /// An option or the configuration.
    Option,
    /// A control group: the process's own or one above it. Containers and services have one.
    ControlGroup,
    /// The limit of the address space, `ulimit -v`.
    AddressSpace,
    /// The limit of private memory, `ulimit -d`.
    DataSegment,
    /// The machine's memory: nothing restricts the process to less.
    Machine,
}

impl MemorySource {
    /// The source's name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Option => "option",
            Self::ControlGroup => "cgroup",
            Self::AddressSpace => "RLIMIT_AS",
            Self::DataSegment => "RLIMIT_DATA",
            Self::Machine => "machine",
        }
    }
}

/// What this process may use of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// Memory in bytes: the least of the machine's and of what restricts the process. Swap space is not
    /// counted.
    pub memory_bytes: u64,
    /// What decides about `memory_bytes`.
    pub memory_source: MemorySource,
    /// Processors that it may use at the same time, at least one. The quota of a container counts,
    /// rounded down.
    pub processors: usize,
}

impl Machine {
    /// What this process may use at this moment. Reads a few files of the kernel's.
    pub fn of_process() -> Self {
        let Memory { bytes, source } = memory();
        Self { memory_bytes: bytes, memory_source: source, processors: processors() }
    }
}

impl SandboxFeatures {
    /// What the kernel has. Reads a few of its files, and changes nothing.
    pub fn of_kernel() -> Self {
        Self::read(sandbox::landlock_abi(), &read)
    }
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) bytes: u64,
    pub(crate) source: MemorySource,
}

/// The memory that this process may use: the least of what the machine has, the limits of its
/// control groups, and its resource limits. Swap space is not counted.
pub(crate) fn memory() -> Memory {
    let system = rustix::system::sysinfo();
    let machine = (system.totalram as u64).saturating_mul(system.mem_unit.into());
    let limits = [
        (cgroup::limit(&cgroup::MEMORY, &read), MemorySource::ControlGroup),
        (getrlimit(Resource::As).current, MemorySource::AddressSpace),
        (getrlimit(Resource::Data).current, MemorySource::DataSegment),
    ];
    least(machine, &limits)
}

/// The least amount. Of equal ones that which is easier to change: the machine's comes last.
fn least(machine: u64, limits: &[(Option<u64>, MemorySource)]) -> Memory {
    let limits = limits.iter().filter_map(|&(bytes, source)| Some(Memory { bytes: bytes?, source }));
    let machine = Memory { bytes: machine, source: MemorySource::Machine };
    limits.chain([machine]).min_by_key(|memory| memory.bytes).unwrap_or(machine)
}

/// The number of processors that this process may use at the same time, at least one. On Linux the
/// standard library takes the least of the processors that the process may run on and of the quota
/// of its control groups, rounded down; two processors for a quota of 2.5.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whether this process may run out of threads: a limit allows fewer than any program should need.
/// Read once.
pub(crate) fn has_few_threads() -> bool {
    const MANY: u64 = 4_096;
    static HAS_FEW: LazyLock<bool> = LazyLock::new(|| {
        let limits = [getrlimit(Resource::Nproc).current, cgroup::limit(&cgroup::PIDS, &read)];
        is_memory_limited() || limits.into_iter().flatten().any(|limit| limit < MANY)
    });
    *HAS_FEW
}

/// Whether the address space or the private memory of this process is limited (`ulimit -v`, `-d`).
pub(crate) fn is_memory_limited() -> bool {
    [Resource::As, Resource::Data].into_iter().any(|resource| getrlimit(resource).current.is_some())
}

/// The address space that this process uses, in bytes; `None` where the system does not report it, and in a worker
/// process, which can open no file.
pub(crate) fn address_space_used() -> Option<u64> {
    let statm = read(Path::new("/proc/self/statm"))?;
    let pages = statm.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// The start of a file as text; `None` if it cannot be read.
fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;

//! The control group of a worker process, where a service manager has delegated groups to cx.
//! `resources.rs` looks at a worker's memory every few milliseconds; the kernel enforces the limit
//! of a group at each allocation. A group also limits threads, and allows no swap space. The files
//! are described in `Documentation/admin-guide/cgroup-v2.rst` of Linux.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Pid;

use super::sandbox::max_threads;
use crate::machine::{self, SandboxFeatures};

/// The prefix of the names of groups. The executor's process id and the number of the group follow.
const NAME: &str = "cx-worker-";

/// The directory in which the groups of workers are made; `None` if there is none. Looked up once.
static PARENT: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| prepare(SandboxFeatures::of_kernel().cgroup_v2?.worker_groups?));

/// A directory in which groups can be made, with nothing of earlier executors in it; `None` if they cannot be.
fn prepare(parent: PathBuf) -> Option<PathBuf> {
    remove_left_over(&parent);
    match write(&parent, "cgroup.subtree_control", "+memory +pids") {
        Ok(()) => Some(parent),
        Err(error) => {
            tracing::warn!(%error, group = %parent.display(), "worker processes have no control groups");
            None
        }
    }
}

/// A worker's group. Dropping this removes it, if the worker was reaped.
#[derive(Debug)]
pub(super) struct Group {
    directory: PathBuf,
}

impl Group {
    /// A group with the process `pid` in it; `None` if there is none here, or it cannot be made.
    pub(super) fn for_process(pid: Pid) -> Option<Self> {
        Self::make(PARENT.as_ref()?, pid)
    }

    fn make(parent: &Path, pid: Pid) -> Option<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("{NAME}{}-{number}", std::process::id()));
        let made = std::fs::create_dir(&directory).and_then(|()| {
            let group = Self { directory };
            group.begin(pid)?;
            Ok(group)
        });
        made.inspect_err(|error| tracing::warn!(%error, "a worker process has no control group")).ok()
    }

    fn begin(&self, pid: Pid) -> io::Result<()> {
        let threads = max_threads(machine::processors());
        write(&self.directory, "pids.max", &threads.to_string())?;
        // A kernel without swap space has no such file.
        let _absent = write(&self.directory, "memory.swap.max", "0");
        write(&self.directory, "cgroup.procs", &pid.as_raw_nonzero().to_string())
    }

    /// The kernel kills the worker when it needs more than these bytes.
    pub(super) fn limit_memory(&self, bytes: usize) {
        if let Err(error) = write(&self.directory, "memory.max", &bytes.to_string()) {
            tracing::warn!(%error, "the memory of a worker process has no limit of the kernel's");
        }
    }

    /// Whether the kernel has killed the worker because of its memory.
    pub(super) fn was_out_of_memory(&self) -> bool {
        let events = std::fs::read_to_string(self.directory.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.is_some_and(|kills| kills.trim() != "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir(&self.directory) {
            tracing::debug!(%error, "the control group of a worker process stays");
        }
    }
}

fn write(group: &Path, file: &str, text: &str) -> io::Result<()> {
    // These files are there already. Creating one would be a fault.
    let mut file = std::fs::OpenOptions::new().write(true).open(group.join(file))?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// Removes the groups of executors that have ended: those of their last workers, which were not
/// reaped, and all groups of an executor that was killed. A group with a process in it stays.
fn remove_left_over(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split_once('-'));
        if let Some((process, _)) = process
            && !Path::new("/proc").join(process).exists()
        {
            let _in_use = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;

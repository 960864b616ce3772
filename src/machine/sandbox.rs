//! What the kernel has for restricting processes. Nothing here restricts anything: it is reported to the
//! person who decides how cx and its servers are run.

use std::path::{Path, PathBuf};

use super::cgroup;

/// Files that forbid an unprivileged process to make user namespaces, and the value with which they do:
/// of every kernel, of Debian's, and of Ubuntu's.
const USER_NAMESPACE_SWITCHES: [(&str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
];

/// What the kernel has for restricting processes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxFeatures {
    /// The version of Landlock's interface; `None` if the kernel does not have it, or has it switched
    /// off.
    pub landlock_abi: Option<u32>,
    /// Whether processes can filter their system calls.
    pub seccomp: bool,
    /// Whether an unprivileged process can make user namespaces, as far as files say. A container's
    /// filter of system calls may still forbid it.
    pub user_namespaces: bool,
    /// This process's group in version 2 of control groups; `None` if that is not mounted here.
    pub cgroup_v2: Option<CgroupV2>,
}

/// A control group of version 2.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CgroupV2 {
    /// Its directory.
    pub directory: PathBuf,
    /// What can be limited in it, such as `memory` and `pids`.
    pub controllers: Vec<String>,
    /// Whether this process may make groups below it.
    pub is_delegated: bool,
    /// The group above it, if that was delegated to this process and its memory can be distributed: worker processes
    /// get groups there. A group that has processes itself cannot distribute its memory.
    pub worker_groups: Option<PathBuf>,
}

impl SandboxFeatures {
    /// What files of the kernel's say, which `read` reads, and what it has of Landlock.
    pub(super) fn read(landlock_abi: Option<u32>, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let is_forbidden =
            |(path, value): &(&str, &str)| read(Path::new(path)).is_some_and(|text| text.trim() == *value);
        Self {
            landlock_abi,
            seccomp: read(Path::new("/proc/sys/kernel/seccomp/actions_avail")).is_some(),
            user_namespaces: Path::new("/proc/self/ns/user").exists()
                && !USER_NAMESPACE_SWITCHES.iter().any(is_forbidden),
            cgroup_v2: cgroup::directory_of_v2(read).map(|directory| CgroupV2::read(directory, read)),
        }
    }
}

impl CgroupV2 {
    fn read(directory: PathBuf, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let controllers = read(&directory.join("cgroup.controllers")).unwrap_or_default();
        let access = rustix::fs::access(&directory, rustix::fs::Access::WRITE_OK);
        Self {
            controllers: controllers.split_whitespace().map(str::to_owned).collect(),
            is_delegated: access.is_ok(),
            worker_groups: directory.parent().filter(|above| distributes(above, read)).map(Path::to_owned),
            directory,
        }
    }
}

/// Whether this process may make groups below `group` and give them parts of its memory.
fn distributes(group: &Path, read: &dyn Fn(&Path) -> Option<String>) -> bool {
    let has_memory = read(&group.join("cgroup.controllers"))
        .is_some_and(|controllers| controllers.split_whitespace().any(|name| name == "memory"));
    let may_write = |name: &str| rustix::fs::access(group.join(name), rustix::fs::Access::WRITE_OK).is_ok();
    let may_use = ["", "cgroup.procs", "cgroup.subtree_control"].into_iter().all(may_write);
    // The superuser may write everywhere, also where another program makes the groups.
    let is_ours =
        || !rustix::process::geteuid().is_root() || is_marked(group) || is_top_of_container(group, read);
    has_memory && may_use && is_ours()
}

/// Whether a service manager has marked the group as delegated, as systemd does.
fn is_marked(group: &Path) -> bool {
    ["user.delegate", "trusted.delegate"].into_iter().any(|name| {
        let mut value = [0_u8; 8];
        let length = rustix::fs::getxattr(group, name, &mut value).unwrap_or(0);
        value.get(..length) == Some(b"1")
    })
}

/// Whether the group is the uppermost one that a container sees. The uppermost group of the machine
/// has no file `cgroup.type`.
fn is_top_of_container(group: &Path, read: &dyn Fn(&Path) -> Option<String>) -> bool {
    let is_group = |path: &Path| read(&path.join("cgroup.controllers")).is_some();
    read(&group.join("cgroup.type")).is_some() && !group.parent().is_some_and(is_group)
}

/// Asks the kernel for the version of Landlock's interface, which makes no rules.
#[cfg(target_os = "linux")]
pub(super) fn landlock_abi() -> Option<u32> {
    /// `LANDLOCK_CREATE_RULESET_VERSION` of `linux/landlock.h`.
    const VERSION: libc::c_uint = 1;
    #[expect(unsafe_code, reason = "no safe crate has this call without all of Landlock")]
    // SAFETY: with this flag the call takes no attributes and no size, and returns a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION)
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn landlock_abi() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests;

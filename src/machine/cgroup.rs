//! The limits of this process's control groups, of version 1, version 2 or both.
//!
//! `/proc/self/cgroup` names the process's group in each hierarchy, `/proc/self/mountinfo` says where
//! hierarchies are mounted: `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst` and
//! `cgroup-v1/pids.rst` of Linux, and proc(5).
//!
//! The standard library reads the limit of processors only (`available_parallelism`). Crates for
//! control groups are made for creating and changing them; here a few files are read.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// Maximum number of groups, from the process's own upwards, whose limits are read.
const MAX_DEPTH: usize = 64;

/// A controller of control groups, with the names of the files of a group that have its limits.
pub(super) struct Controller {
    name: &'static str,
    files_of_v1: &'static [&'static str],
    files_of_v2: &'static [&'static str],
}

/// Bytes of memory. In version 2 the kernel kills beyond the first limit, and beyond the second it
/// delays every allocation until nothing works any more.
pub(super) const MEMORY: Controller = Controller {
    name: "memory",
    files_of_v1: &["memory.limit_in_bytes"],
    files_of_v2: &["memory.max", "memory.high"],
};

/// Processes and threads.
pub(super) const PIDS: Controller =
    Controller { name: "pids", files_of_v1: &["pids.max"], files_of_v2: &["pids.max"] };

/// Reads a file; `None` if it cannot be read.
type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The least limit of the process's groups and of those above them. `None` if there is none, or no
/// control groups.
pub(super) fn limit(controller: &Controller, read: Read<'_>) -> Option<u64> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    // A machine may have both versions, and then either may have the limits.
    let limits = groups.lines().filter_map(|line| limit_of(controller, line, &mounts, read));
    limits.min()
}

/// The directory of the process's group of version 2. `None` if that is not mounted here.
pub(super) fn directory_of_v2(read: Read<'_>) -> Option<PathBuf> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let mounts = mounts.lines().filter_map(Mount::parse).filter(|mount| mount.controllers.is_none());
    let shown = mounts.map(|mount| (mount.below_root(Path::new(path)).map(Path::to_owned), mount));
    let (below, mount) = shown.max_by_key(|(below, _)| below.is_some())?;
    Some(mount.directory.join(below.unwrap_or_default()))
}

/// The least limit of the group that a line of `/proc/self/cgroup` names, and of those above it.
fn limit_of(controller: &Controller, line: &str, mounts: &[Mount], read: Read<'_>) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let is_v2 = id == "0" && controllers.is_empty();
    if !is_v2 && !has(controllers, controller.name) {
        return None;
    }
    let files = if is_v2 { controller.files_of_v2 } else { controller.files_of_v1 };
    let path = Path::new(path);
    let is_its = |mount: &&Mount| match &mount.controllers {
        None => is_v2,
        Some(controllers) => !is_v2 && has(controllers, controller.name),
    };
    let mounts = mounts.iter().filter(is_its);
    // Of several mounts of one hierarchy, takes the one that shows the group. If none does, each
    // shows the part of the hierarchy that this process sees, which begins with its own group or
    // one above it.
    let (mount, below) =
        mounts.map(|mount| (mount, mount.below_root(path))).max_by_key(|(_, below)| below.is_some())?;
    let directory = mount.directory.join(below.unwrap_or(Path::new("")));
    let groups = directory.ancestors().take_while(|group| group.starts_with(&mount.directory));
    let files = groups.take(MAX_DEPTH).flat_map(|group| files.iter().map(|file| group.join(file)));
    files.filter_map(|file| parse_limit(&read(&file)?)).min()
}

/// Whether a list with commas has a name.
fn has(list: &str, name: &str) -> bool {
    list.split(',').any(|listed| listed == name)
}

/// Reads a number. `None` for `max`, which means that there is no limit, and for any other text.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// A place where a hierarchy of groups is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// For version 1 a list of its controllers, among other options.
    controllers: Option<String>,
    /// The group that is seen as the directory itself.
    root: PathBuf,
    directory: PathBuf,
}

impl Mount {
    /// Reads a line of `/proc/self/mountinfo`; `None` if it is another kind of mount.
    fn parse(line: &str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, directory) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1).unwrap_or(""));
        let controllers = match name {
            "cgroup2" => None,
            "cgroup" => Some(options.to_owned()),
            _ => return None,
        };
        Some(Self { controllers, root: unescape(root), directory: unescape(directory) })
    }

    /// The path of a group below this mount. `None` if the group cannot be seen here.
    fn below_root<'a>(&self, group: &'a Path) -> Option<&'a Path> {
        let below = group.strip_prefix(&self.root).ok()?;
        // A process outside of its namespace of groups has a path with `..`.
        below.components().all(|part| matches!(part, Component::Normal(_))).then_some(below)
    }
}

/// Replaces the escapes of a path in `/proc/self/mountinfo`: a backslash and three octal digits.
fn unescape(text: &str) -> PathBuf {
    let text = text.as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match text.get(at..at + 4) {
            Some(&[b'\\', high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7']) => {
                bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                at += 4;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests;

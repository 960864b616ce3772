//! Detects changes of the files that a configuration is read from.
//!
//! It compares the system's metadata of each file (device, inode, size, times of change) instead of using watches.
//! inotify would need a watch for each directory of a chain of links, as in mounted config maps of Kubernetes, reports
//! nothing on network file systems, and would require a crate for each system. Checking a file takes some ten
//! microseconds.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::environment::{Directories, Environment};
use super::error::ConfigError;
use super::resolved::{Config, LoadOptions};
use super::trust::TrustStore;

/// How long after a change a file counts as changed again. Two changes within the resolution of the file system's clock
/// cannot be distinguished by their times; the resolution of some network file systems is two seconds.
const CLOCK_RESOLUTION: Duration = Duration::from_secs(3);

/// How long the files must be unchanged before they are read, and how many times that is checked.
const REST: Duration = Duration::from_millis(50);
const MAX_LOOKS: usize = 20;

/// Maximum number of files that are checked. Real configurations have a few dozen; a directory of servers may have
/// 1,000.
const MAX_FILES: usize = 4_096;

/// Loads a configuration, and detects when it has to be loaded again: when one of its files is changed, replaced,
/// removed or created, when a file is trusted or the trust is revoked, and when a link points elsewhere. Variables of
/// the environment cannot change.
///
/// ```no_run
/// # fn follow(executor: &cx::Executor) -> Result<(), Box<dyn std::error::Error>> {
/// use cx::{ConfigFiles, Discovery, LoadOptions};
///
/// let workspace = std::env::current_dir()?;
/// let options = LoadOptions { workspace, files: Vec::new(), discover: Discovery::All };
/// let mut files = ConfigFiles::new(options);
/// // Every two seconds or so, on a thread that may block:
/// if files.have_changed() {
///     match files.load() {
///         Ok(config) => println!("{}", executor.reconfigure(config)?),
///         Err(error) => drop(executor.report_config_failure(error.to_string())),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ConfigFiles {
    options: LoadOptions,
    /// The state of the files of the last load, recorded before the load.
    seen: BTreeMap<PathBuf, PathState>,
    clock_resolution: Duration,
}

/// The system's metadata of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathState {
    /// The path was not checked before the load, so it may have changed since.
    Unknown,
    /// There is nothing at the path that can be opened.
    Missing,
    /// There is a file or a directory.
    There {
        /// The metadata of the path itself, which may be a link.
        link: Identity,
        /// The metadata of the link's target.
        target: Identity,
        /// Whether it was changed so recently that a further change might not be visible.
        is_recent: bool,
    },
}

/// Metadata that differs if the content differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// The time of change, also of owner and permissions, which determine whether a file may be used.
    changed: (i64, i64),
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Identity {
    /// The time of change, in whole seconds. Unlike the time of modification it cannot be set.
    fn changed_at(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(self.changed.0).unwrap_or(0))
    }
}

impl PathState {
    /// The state of a path, in a file system whose clock has this resolution.
    fn read(path: &Path, resolution: Duration) -> Self {
        let (Ok(link), Ok(target)) = (path.symlink_metadata(), path.metadata()) else { return Self::Missing };
        let (link, target) = (Identity::from(&link), Identity::from(&target));
        let is_recent = target.changed_at().elapsed().is_ok_and(|age| age < resolution);
        Self::There { link, target, is_recent }
    }

    /// Whether a file that was in this state is certainly unchanged, according to its present state.
    fn is_still(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Missing, Self::Missing) => true,
            (
                Self::There { link, target, is_recent: false },
                Self::There { link: link_now, target: target_now, .. },
            ) => link == link_now && target == target_now,
            _ => false,
        }
    }
}

impl ConfigFiles {
    /// The files that these options lead to. Reads nothing yet; the first
    /// [`have_changed`](Self::have_changed) is true.
    pub fn new(options: LoadOptions) -> Self {
        Self { options, seen: BTreeMap::new(), clock_resolution: CLOCK_RESOLUTION }
    }

    /// Loads the configuration as [`Config::load`] does, and records its files. A later load first waits until nothing
    /// has been written to them for 50 ms, for at most a second, because not every program replaces a file atomically.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// As [`Config::load`]. The files of the last configuration and the file with the mistake are then still watched.
    pub fn load(&mut self) -> Result<Config, ConfigError> {
        // Recorded before the files are read, so that the next check detects a change during the load.
        let before = self.look_at_rest();
        let loaded = Config::load(&self.options);
        let mut paths: Vec<PathBuf> = match &loaded {
            Ok(config) => config.looked_at(),
            Err(error) => before.keys().cloned().chain([error.file().to_owned()]).collect(),
        };
        paths.extend(trust_list());
        paths.truncate(MAX_FILES);
        let state = |path: PathBuf| {
            let state = before.get(&path).copied().unwrap_or(PathState::Unknown);
            (path, state)
        };
        self.seen = paths.into_iter().map(state).collect();
        loaded
    }

    /// Whether a file differs from what the last [`load`](Self::load) read, or might: for some
    /// seconds after a change a file counts as changed again. Blocks while the system looks the
    /// files up.
    pub fn have_changed(&self) -> bool {
        let now = |path: &Path| PathState::read(path, self.clock_resolution);
        self.seen.is_empty() || self.seen.iter().any(|(path, seen)| !seen.is_still(&now(path)))
    }

    /// The states of the files when nothing writes to them any longer, or after [`MAX_LOOKS`] checks.
    fn look_at_rest(&self) -> BTreeMap<PathBuf, PathState> {
        let mut states = self.look();
        if self.seen.is_empty() {
            return states;
        }
        for _ in 0..MAX_LOOKS {
            std::thread::sleep(REST);
            let before = std::mem::replace(&mut states, self.look());
            if states == before {
                break;
            }
        }
        states
    }

    fn look(&self) -> BTreeMap<PathBuf, PathState> {
        let state = |path: &PathBuf| (path.clone(), PathState::read(path, self.clock_resolution));
        self.seen.keys().map(state).collect()
    }
}

/// Files that a program checks from time to time for changes, as [`ConfigFiles`] does.
///
/// ```
/// let directory = std::env::temp_dir();
/// let mut files = cx::WatchedFiles::new([directory.join("no-such-file")]);
/// assert!(!files.have_changed());
/// ```
#[derive(Debug)]
pub struct WatchedFiles {
    seen: BTreeMap<PathBuf, PathState>,
}

impl WatchedFiles {
    /// Records the present state of the files.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let state = |path: PathBuf| (path.clone(), PathState::read(&path, CLOCK_RESOLUTION));
        Self { seen: paths.into_iter().take(MAX_FILES).map(state).collect() }
    }

    /// Whether a file was changed, replaced, removed or made since the last check, or might have been: for
    /// some seconds after a change a file counts as changed again. Blocks while the system looks the files
    /// up.
    pub fn have_changed(&self) -> bool {
        self.seen.iter().any(|(path, seen)| !seen.is_still(&PathState::read(path, CLOCK_RESOLUTION)))
    }

    /// Checks the files again.
    pub fn look(&mut self) {
        for (path, seen) in &mut self.seen {
            *seen = PathState::read(path, CLOCK_RESOLUTION);
        }
    }
}

/// The list of trusted files.
fn trust_list() -> Option<PathBuf> {
    Directories::in_environment(&Environment::from_process())
        .map(|directories| TrustStore::path(&directories))
}

#[cfg(test)]
mod tests;

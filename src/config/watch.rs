//! Notices changes of the files that a configuration is read from.
//!
//! It compares what the system says of each file (device, inode, size, times of change) and keeps
//! no watches: those of inotify would need one for each directory of a chain of links, as Kubernetes
//! has them in mounted config maps, report nothing on network file systems, and bring a crate for
//! each system. A look takes some ten microseconds for each file.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::environment::{Directories, Environment};
use super::error::ConfigError;
use super::resolved::{Config, LoadOptions};
use super::trust::TrustStore;

/// How long after a change a file counts as changed again. Two changes within the resolution of the
/// file system's clock cannot be told apart by their times; that of some network file systems is two
/// seconds.
const CLOCK_RESOLUTION: Duration = Duration::from_secs(3);

/// How long the files must be unchanged before they are read, and how often that is tried.
const REST: Duration = Duration::from_millis(50);
const MAX_LOOKS: usize = 20;

/// Maximum number of files that are looked at. Real configurations have a few dozen; a directory of
/// servers may have 1,000.
const MAX_FILES: usize = 4_096;

/// Loads a configuration, and notices when it has to be loaded again: when one of the files that it
/// is read from is changed, replaced, removed or created, when a file is trusted or the trust is
/// revoked, and when a link points elsewhere. Variables of the environment cannot change.
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
    /// The files of the last load, as they were before it.
    seen: BTreeMap<PathBuf, State>,
    clock_resolution: Duration,
}

/// What the system says of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was not looked at before the load, so it may have changed since.
    Unknown,
    /// There is nothing that can be opened.
    Missing,
    /// There is a file or a directory.
    There {
        /// Of the path itself, which may be a link.
        link: Identity,
        /// Of what it leads to.
        target: Identity,
        /// Whether it was changed so recently that a further change might not be visible.
        is_recent: bool,
    },
}

/// What differs if the content differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Also of the owner and the permissions, on which the use of a file depends.
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

impl State {
    /// The state of a path, in a file system whose clock has this resolution.
    fn of(path: &Path, resolution: Duration) -> Self {
        let (Ok(link), Ok(target)) = (path.symlink_metadata(), path.metadata()) else { return Self::Missing };
        let (link, target) = (Identity::from(&link), Identity::from(&target));
        let is_recent = target.changed_at().elapsed().is_ok_and(|age| age < resolution);
        Self::There { link, target, is_recent }
    }

    /// Whether a file that was in this state is unchanged for sure, by its present state.
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

    /// Loads the configuration, as [`Config::load`] does, and remembers its files. A later load first
    /// waits until nothing has been written to them for 50 ms, for at most a second: not every
    /// program replaces a file at once. Blocks.
    ///
    /// # Errors
    ///
    /// As [`Config::load`]. The files of the last configuration are then still looked at, and the one
    /// with the mistake.
    pub fn load(&mut self) -> Result<Config, ConfigError> {
        // Looked at before they are read: a change during the load is then seen by the next look.
        let before = self.look_at_rest();
        let loaded = Config::load(&self.options);
        let mut paths: Vec<PathBuf> = match &loaded {
            Ok(config) => config.looked_at(),
            Err(error) => before.keys().cloned().chain([error.file().to_owned()]).collect(),
        };
        paths.extend(trust_list());
        paths.truncate(MAX_FILES);
        let state = |path: PathBuf| {
            let state = before.get(&path).copied().unwrap_or(State::Unknown);
            (path, state)
        };
        self.seen = paths.into_iter().map(state).collect();
        loaded
    }

    /// Whether a file differs from what the last [`load`](Self::load) read, or might: for some
    /// seconds after a change a file counts as changed again. Blocks while the system looks the
    /// files up.
    pub fn have_changed(&self) -> bool {
        let now = |path: &Path| State::of(path, self.clock_resolution);
        self.seen.is_empty() || self.seen.iter().any(|(path, seen)| !seen.is_still(&now(path)))
    }

    /// The states of the files when nothing writes to them, or after [`MAX_LOOKS`].
    fn look_at_rest(&self) -> BTreeMap<PathBuf, State> {
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

    fn look(&self) -> BTreeMap<PathBuf, State> {
        let state = |path: &PathBuf| (path.clone(), State::of(path, self.clock_resolution));
        self.seen.keys().map(state).collect()
    }
}

/// Files that a program looks at from time to time, to notice changes as [`ConfigFiles`] does.
///
/// ```
/// let directory = std::env::temp_dir();
/// let mut files = cx::WatchedFiles::new([directory.join("no-such-file")]);
/// assert!(!files.have_changed());
/// ```
#[derive(Debug)]
pub struct WatchedFiles {
    seen: BTreeMap<PathBuf, State>,
}

impl WatchedFiles {
    /// Looks at the files as they are now.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let state = |path: PathBuf| (path.clone(), State::of(&path, CLOCK_RESOLUTION));
        Self { seen: paths.into_iter().take(MAX_FILES).map(state).collect() }
    }

    /// Whether a file was changed, replaced, removed or made since the last look, or might have been: for
    /// some seconds after a change a file counts as changed again. Blocks while the system looks the files
    /// up.
    pub fn have_changed(&self) -> bool {
        self.seen.iter().any(|(path, seen)| !seen.is_still(&State::of(path, CLOCK_RESOLUTION)))
    }

    /// Looks at the files again.
    pub fn look(&mut self) {
        for (path, seen) in &mut self.seen {
            *seen = State::of(path, CLOCK_RESOLUTION);
        }
    }
}

/// The list of trusted files.
fn trust_list() -> Option<PathBuf> {
    Directories::in_environment(&Environment::of_process()).map(|directories| TrustStore::path(&directories))
}

#[cfg(test)]
mod tests;

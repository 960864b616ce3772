//! Paths as people write them.

use std::path::{Path, PathBuf};

use crate::config::environment::Environment;

/// The path of a program as it is found on the `PATH`, which stays valid when the program is replaced by a newer
/// version. `program` itself if it is not found there.
pub fn on_path(program: &Path) -> PathBuf {
    let environment = Environment::from_process();
    let (Some(name), Ok(this)) = (program.file_name(), program.canonicalize()) else {
        return program.to_owned();
    };
    let directories = std::env::split_paths(environment.get("PATH").unwrap_or_default());
    let candidates = directories.filter(|directory| directory.is_absolute());
    let mut candidates = candidates.map(|directory| directory.join(name));
    candidates
        .find(|path| path.canonicalize().is_ok_and(|path| path == this))
        .unwrap_or_else(|| program.to_owned())
}

/// Replaces the home directory at the start of a path by `~`; returns other paths unchanged.
pub fn below_home(path: &Path) -> PathBuf {
    let home = Environment::from_process().home();
    let below = home.and_then(|home| path.strip_prefix(home).ok().map(|below| Path::new("~").join(below)));
    below.unwrap_or_else(|| path.to_owned())
}

/// The user's home directory.
pub fn home_directory() -> Option<PathBuf> {
    Environment::from_process().home()
}

/// The variables that determine the locations of programs and of cx's own files, and that a system timer does not have
/// by itself.
pub fn timer_environment() -> Vec<(String, String)> {
    let environment = Environment::from_process();
    let names = ["PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];
    let value = |name: &str| Some((name.to_owned(), environment.get(name)?.to_owned()));
    names.into_iter().filter_map(value).collect()
}

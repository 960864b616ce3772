//! The process's environment, read once, and the directories derived from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Set for every server process, to this process's own value plus one.
pub(super) const DEPTH: &str = "CX_DEPTH";

/// Stands for the file in messages about variables, and in the origins of their values.
pub(super) const ORIGIN: &str = "the environment";

/// A snapshot of the variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process. A variable that is not UTF-8 counts as missing.
    pub(super) fn from_process() -> Self {
        let variables = std::env::vars_os();
        Self(
            variables
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn from_variables<const N: usize>(variables: [(&str, &str); N]) -> Self {
        Self(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    #[cfg(test)]
    pub(super) fn from_pairs(variables: &[(String, String)]) -> Self {
        Self(variables.iter().cloned().collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names of all variables, sorted.
    #[cfg(feature = "cli")]
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A variable that holds an absolute path. Empty and relative values count as missing, as the
    /// XDG specification requires.
    fn directory(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.directory("HOME")
    }

    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    pub(super) fn config_home(&self) -> Option<PathBuf> {
        self.directory("XDG_CONFIG_HOME").or_else(|| Some(self.home()?.join(".config")))
    }

    /// The number of executors that started one another down to this one. A value that is not a
    /// number was not set by an executor and counts as 0.
    pub(super) fn depth(&self) -> u32 {
        self.get(DEPTH).and_then(|depth| depth.parse().ok()).unwrap_or(0)
    }
}

/// The user's directories for cx's files, by the XDG base directory specification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Directories {
    /// Data that can be fetched again: `$XDG_CACHE_HOME/cx`, or `~/.cache/cx`.
    pub cache: PathBuf,
    /// Data that cannot be fetched again, such as trusted files and pinned tool definitions: `$XDG_STATE_HOME/cx`, or
    /// `~/.local/state/cx`.
    pub state: PathBuf,
    /// Files that the user writes: `$XDG_CONFIG_HOME/cx`, or `~/.config/cx`.
    pub config: PathBuf,
}

impl Directories {
    /// The directories derived from this process's environment; they need not exist. `None` if it has neither `HOME`
    /// nor all three variables, as in some containers.
    pub fn from_environment() -> Option<Self> {
        Self::in_environment(&Environment::from_process())
    }

    pub(super) fn in_environment(environment: &Environment) -> Option<Self> {
        let below = |name: &str, usual: &str| {
            let directory = environment.directory(name).or_else(|| Some(environment.home()?.join(usual)));
            directory.map(|directory| directory.join("cx"))
        };
        Some(Self {
            cache: below("XDG_CACHE_HOME", ".cache")?,
            state: below("XDG_STATE_HOME", ".local/state")?,
            config: below("XDG_CONFIG_HOME", ".config")?,
        })
    }
}

/// The variable, with its value, that every server process is given, so that an executor that
/// starts itself through others is detected.
pub(crate) fn depth_for_children() -> (&'static str, String) {
    (DEPTH, Environment::from_process().depth().saturating_add(1).to_string())
}

/// The path without links and `..`. If that cannot be determined, the absolute path.
pub(super) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

//! Grants: the directories and hosts that a user lets scripts reach.

mod host;

use std::fmt;
use std::path::{Component, Path, PathBuf};

pub use self::host::{HostPattern, InvalidHostPattern};
use crate::error::{Error, OptionName};
pub(crate) use crate::files::Access;
use crate::files::{GrantedDirectory, SCRATCH};
use crate::text::visible;

/// Maximum number of directories, and of hosts, in one list.
const MAX_ITEMS: usize = 100;

/// Maximum number of items that a message shows.
const MAX_SHOWN: usize = 8;

/// The directories and hosts that scripts may reach. The default is none.
///
/// A person grants them: on the command line, in the user's own configuration, or as an embedder with
/// [`ExecutorBuilder::grants`](crate::ExecutorBuilder::grants). A run can only ask for less, with
/// [`Script::permissions`](crate::Script::permissions).
///
/// ```
/// # use cx::Grants;
/// let grants = Grants {
///     read: vec!["/srv/reports".into()],
///     write: vec!["/srv/reports/out".into()],
///     net: vec!["api.example.com:443".parse()?],
/// };
/// # Ok::<(), cx::InvalidHostPattern>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Directories whose files scripts may read and list: absolute paths without `..`.
    pub read: Vec<PathBuf>,
    /// Directories in which scripts may create, change and delete files. To read there too, a directory
    /// must be in both lists.
    pub write: Vec<PathBuf>,
    /// Hosts that scripts may send requests to.
    pub net: Vec<HostPattern>,
}

/// What a run asks for of the [`Grants`]. The default asks for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Directories to read, each of them granted or inside a granted one. `None` means all granted directories, an
    /// empty list none.
    pub read: Option<Vec<PathBuf>>,
    /// Directories to write to, in the same way.
    pub write: Option<Vec<PathBuf>>,
    /// Hosts to reach, in the same way.
    pub net: Option<Vec<HostPattern>>,
}

/// The grants of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunGrants {
    /// The directories, each once for reading and once for writing.
    pub(crate) directories: Vec<GrantedDirectory>,
    pub(crate) net: Vec<HostPattern>,
    /// The granted hosts, before `permissions` restrict them: a run that asks for one host of a pattern does not make
    /// that host one that a person has granted by name.
    pub(crate) granted_net: Vec<HostPattern>,
}

impl Grants {
    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty() && self.net.is_empty()
    }

    /// These grants and others, which the same person has given elsewhere.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        add(&mut self.read, other.read);
        add(&mut self.write, other.write);
        add(&mut self.net, other.net);
        self
    }

    /// Restricts these grants to those that `other` covers. An entry of `other` is only compared and never becomes a
    /// grant itself: a directory inside a granted one could be a link that leaves it, and one host of a pattern could
    /// be private. So an entry of `other` that is only a part of a grant keeps nothing of it, and one that covers a
    /// grant keeps all of it.
    #[must_use]
    pub fn restricted_to(&self, other: &Permissions) -> Self {
        let directories = |own: &[PathBuf], asked: &Option<Vec<PathBuf>>| match asked {
            Some(asked) => kept(own, |own| asked.iter().any(|asked| own.starts_with(asked))),
            None => own.to_vec(),
        };
        Self {
            read: directories(&self.read, &other.read),
            write: directories(&self.write, &other.write),
            net: match &other.net {
                Some(asked) => kept(&self.net, |own| asked.iter().any(|asked| asked.covers(own))),
                None => self.net.clone(),
            },
        }
    }

    /// Checks the paths.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] names the first path that is relative, has `..` in it or is the scratch
    /// directory, or the list that is too long.
    pub fn validate(&self) -> Result<(), Error> {
        for (option, paths) in [(OptionName::AllowRead, &self.read), (OptionName::AllowWrite, &self.write)] {
            check_length(option, paths.len())?;
            for path in paths {
                if let Err(problem) = check_path(path) {
                    return Err(Error::InvalidOptions { option, problem });
                }
                if path == Path::new(SCRATCH) {
                    let problem = format!(
                        "`{SCRATCH}` is the scratch directory of scripts, which is in memory and needs no grant; \
                         name a directory in it, or another one"
                    );
                    return Err(Error::InvalidOptions { option, problem });
                }
            }
        }
        check_length(OptionName::AllowNet, self.net.len())
    }

    /// The grants of a run that asks for `permissions`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if it asks for more than is granted; the message lists the grants.
    pub(crate) fn of_run(&self, permissions: &Permissions) -> Result<RunGrants, Error> {
        let (read, write) = (permissions.read.as_deref(), permissions.write.as_deref());
        let mut directories = asked_directories("read", &self.read, read, Access::Read)?;
        directories.extend(asked_directories("write", &self.write, write, Access::Write)?);
        let net = asked_hosts(&self.net, permissions.net.as_deref())?;
        Ok(RunGrants { directories, net, granted_net: self.net.clone() })
    }
}

impl RunGrants {
    /// The paths of the directories with this access.
    pub(crate) fn paths(&self, access: Access) -> impl Iterator<Item = &Path> {
        let granted = self.directories.iter().filter(move |directory| directory.access == access);
        granted.map(|directory| directory.path.as_path())
    }

    /// Whether nothing is granted.
    pub(crate) fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.net.is_empty()
    }
}

/// The directories of a run that asks for these; `None` asks for all that are granted. `kind` is the name of the list.
fn asked_directories(
    kind: &str,
    granted: &[PathBuf],
    asked: Option<&[PathBuf]>,
    access: Access,
) -> Result<Vec<GrantedDirectory>, Error> {
    let directory =
        |root: &Path, path: &Path| GrantedDirectory { root: root.to_owned(), path: path.to_owned(), access };
    let Some(asked) = asked else {
        return Ok(granted.iter().map(|path| directory(path, path)).collect());
    };
    check_length(OptionName::Permissions, asked.len())?;
    let mut directories = Vec::new();
    for path in asked {
        check_path(path)
            .map_err(|problem| Error::InvalidOptions { option: OptionName::Permissions, problem })?;
        // The most specific root applies, because it restricts links the most.
        let roots = granted.iter().filter(|root| path.starts_with(root));
        match roots.max_by_key(|root| root.as_os_str().len()) {
            Some(root) => directories.push(directory(root, path)),
            // Every run has the scratch directory.
            None if path.starts_with(SCRATCH) => {}
            None => return Err(exceeds(kind, &path.display(), granted.iter().map(|path| path.display()))),
        }
    }
    Ok(directories)
}

/// The hosts of a run that asks for these; `None` asks for all that are granted.
fn asked_hosts(granted: &[HostPattern], asked: Option<&[HostPattern]>) -> Result<Vec<HostPattern>, Error> {
    let Some(asked) = asked else { return Ok(granted.to_vec()) };
    check_length(OptionName::Permissions, asked.len())?;
    match asked.iter().find(|asked| !granted.iter().any(|granted| granted.covers(asked))) {
        Some(asked) => Err(exceeds("net", asked, granted.iter())),
        None => Ok(asked.to_vec()),
    }
}

/// Checks a path that a person or a client has written.
fn check_path(path: &Path) -> Result<(), String> {
    let shown = visible(&path.display().to_string());
    if !path.is_absolute() {
        return Err(format!("expected an absolute path of a directory: `{shown}`"));
    }
    // `.` and doubled slashes are no components.
    if path.components().any(|component| component == Component::ParentDir) {
        return Err(format!("expected a path without `..`: `{shown}`"));
    }
    Ok(())
}

fn check_length(option: OptionName, length: usize) -> Result<(), Error> {
    if length > MAX_ITEMS {
        let problem = format!("expected at most {MAX_ITEMS} entries in a list: {length}");
        return Err(Error::InvalidOptions { option, problem });
    }
    Ok(())
}

/// The error of a run that asks for more than is granted.
fn exceeds(kind: &str, asked: &dyn fmt::Display, granted: impl Iterator<Item = impl fmt::Display>) -> Error {
    let granted: Vec<String> = granted.map(|item| format!("`{}`", visible(&item.to_string()))).collect();
    let shown = match granted.len() {
        0 => "nothing is".to_owned(),
        count if count > MAX_SHOWN => {
            format!("{} and {} more are", granted[..MAX_SHOWN].join(", "), count - MAX_SHOWN)
        }
        1 => format!("{} is", granted[0]),
        _ => format!("{} are", granted.join(", ")),
    };
    let asked = visible(&asked.to_string());
    let problem = format!(
        "`{kind}`: `{asked}` is not granted, {shown}; a person grants more with --allow-{kind}, and `permissions` \
         only asks for less"
    );
    Error::InvalidOptions { option: OptionName::Permissions, problem }
}

/// The items that fulfill the predicate.
fn kept<T: Clone>(items: &[T], is_kept: impl Fn(&T) -> bool) -> Vec<T> {
    items.iter().filter(|item| is_kept(item)).cloned().collect()
}

/// Adds the items that are missing.
fn add<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

#[cfg(test)]
mod tests;

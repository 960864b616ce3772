//! A folder of script files: listed and read within bounds, changed atomically.
//!
//! A file is a script if its name is a script's name with `.ts`, `.js` or `.py`. Links are never followed, so that a
//! script is always a file of its folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::ownership::Ownership;
use super::private::{self, PrivateDirectory};

/// Maximum number of scripts in a folder. The names of all are in lists that models read.
pub(crate) const MAX_SCRIPTS: usize = 200;

/// Maximum bytes of one script: a quarter of what a run may have, because a script is read whenever it is listed again.
pub(crate) const MAX_SCRIPT_BYTES: u64 = 256 << 10;

/// Maximum entries of a folder that are examined, of any kind.
const MAX_ENTRIES: usize = 10_000;

/// Maximum characters of a name.
pub(crate) const MAX_NAME: usize = 64;

/// Who can write to a folder, which decides what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderOwner {
    /// The user: no other user may be able to change its files.
    User,
    /// The author of the workspace. The caller decides which contents it trusts.
    Workspace,
}

/// What a file's name ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Extension {
    Ts,
    Js,
    Py,
}

impl Extension {
    const ALL: [Self; 3] = [Self::Ts, Self::Js, Self::Py];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ts => "ts",
            Self::Js => "js",
            Self::Py => "py",
        }
    }

    /// The extension of a path.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        Self::ALL.into_iter().find(|known| known.as_str() == extension)
    }
}

/// A folder, which need not exist.
#[derive(Clone, Debug)]
pub(crate) struct ScriptFolder {
    directory: PathBuf,
    owner: FolderOwner,
}

/// A file of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptFile {
    /// The script's name: the file's without its extension.
    pub(crate) name: String,
    pub(crate) extension: Extension,
    pub(crate) path: PathBuf,
    /// Differs when the file has changed.
    stamp: Stamp,
}

/// What the system says about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64),
}

/// The files of a folder, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderList {
    pub(crate) files: Vec<ScriptFile>,
    /// Files that look like scripts but are not, and why.
    pub(crate) problems: Vec<(PathBuf, String)>,
}

/// Whether scripts can have this name: 1 to 64 of `a-z0-9_-`, the first a letter or a digit.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= MAX_NAME
        && name.bytes().next().is_some_and(is_plain)
        && name.bytes().all(|byte| is_plain(byte) || b"_-".contains(&byte))
}

impl ScriptFolder {
    pub(crate) fn new(directory: PathBuf, owner: FolderOwner) -> Self {
        Self { directory, owner }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The files, without reading them. A folder that does not exist has none.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read, or another user can change it.
    pub(crate) fn list(&self) -> io::Result<FolderList> {
        let mut list = FolderList::default();
        if self.owner == FolderOwner::Workspace && self.has_link() {
            return Err(other("it is behind a link, and links in a workspace are not followed"));
        }
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(list),
            Err(error) => return Err(error),
        };
        if self.owner == FolderOwner::User {
            // As `private.rs` checks its directories. The hint is for folders that the user has made.
            let ownership = Ownership::from_metadata(&fs::metadata(&self.directory)?);
            if !ownership.is_ours() || ownership.others_may_write() {
                return Err(other("it belongs to or can be written by another user: chmod go-w it"));
            }
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries.take(MAX_ENTRIES) {
            paths.push(entry?.path());
        }
        paths.sort();
        for path in paths {
            let Some(extension) = Extension::from_path(&path) else { continue };
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if name.starts_with('.') {
                // A temporary file of an editor, or a file that is being written.
                continue;
            }
            match self.check(&path, &name) {
                Ok(_) if list.files.len() == MAX_SCRIPTS => {
                    list.problems.push((path, format!("a folder can have {MAX_SCRIPTS} scripts")));
                    break;
                }
                Ok(stamp) => list.files.push(ScriptFile { name, extension, path, stamp }),
                Err(problem) => list.problems.push((path, problem)),
            }
        }
        Ok(list)
    }

    fn check(&self, path: &Path, name: &str) -> Result<Stamp, String> {
        if !is_name(name) {
            return Err(format!(
                "a script's name is 1 to {MAX_NAME} of `a-z`, `0-9`, `_` and `-`, and begins with a letter or a digit"
            ));
        }
        let metadata = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
        if metadata.is_symlink() {
            return Err("it is a link, and links are not followed: put the file here".to_owned());
        }
        if !metadata.is_file() {
            return Err("it is not a file".to_owned());
        }
        if metadata.len() > MAX_SCRIPT_BYTES {
            return Err(format!("it has {} bytes, a script at most {MAX_SCRIPT_BYTES}", metadata.len()));
        }
        Ok(Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Reads a file of the folder in one go.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is too large or not UTF-8, is a link by now, or is in a user's folder and
    /// another user can change it.
    pub(crate) fn read(&self, file: &ScriptFile) -> io::Result<String> {
        let opened = match self.owner {
            FolderOwner::User => private::open_file(&file.path)?,
            // The files may have come with the workspace, from anybody. Trust is checked elsewhere.
            FolderOwner::Workspace => private::open_without_links(&file.path)?,
        };
        read_bounded(opened)
    }

    /// Writes a script, readable by its user only. The folder is created if it is missing.
    ///
    /// # Errors
    ///
    /// If the name or the size is not permitted, the folder is full, or it cannot be written; with
    /// [`ErrorKind::AlreadyExists`] if there is a script of this name and `replace` is false.
    pub(crate) fn save(
        &self,
        name: &str,
        extension: Extension,
        text: &str,
        replace: bool,
    ) -> io::Result<PathBuf> {
        if !is_name(name) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "not a script's name"));
        }
        if text.len() as u64 > MAX_SCRIPT_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the script is too large"));
        }
        let directory = PrivateDirectory::create(&self.directory)?;
        let _lock = private::lock(&self.directory.join(".lock"))?;
        let list = self.list()?;
        let same: Vec<&ScriptFile> = list.files.iter().filter(|file| file.name == name).collect();
        if !same.is_empty() && !replace {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "there is a script of this name"));
        }
        if same.is_empty() && list.files.len() >= MAX_SCRIPTS {
            let message = format!("the folder has {MAX_SCRIPTS} scripts, which is the most: remove some");
            return Err(io::Error::new(ErrorKind::StorageFull, message));
        }
        let file_name = format!("{name}.{}", extension.as_str());
        directory.replace(&file_name, ".new-script", |file| file.write_all(text.as_bytes()))?;
        directory.sync()?;
        for other in same.into_iter().filter(|file| file.extension != extension) {
            directory.remove(&format!("{name}.{}", other.extension.as_str()))?;
        }
        Ok(self.directory.join(file_name))
    }

    /// Removes the script of this name. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// If the folder cannot be changed.
    pub(crate) fn remove(&self, name: &str) -> io::Result<bool> {
        if !is_name(name) || !self.directory.exists() {
            return Ok(false);
        }
        let directory = PrivateDirectory::create(&self.directory)?;
        let _lock = private::lock(&self.directory.join(".lock"))?;
        let mut was_there = false;
        for extension in Extension::ALL {
            let file_name = format!("{name}.{}", extension.as_str());
            if fs::symlink_metadata(self.directory.join(&file_name)).is_ok_and(|file| !file.is_dir()) {
                directory.remove(&file_name)?;
                was_there = true;
            }
        }
        Ok(was_there)
    }

    /// Whether the folder, or the hidden directory that it is in, is a link.
    fn has_link(&self) -> bool {
        let above = self.directory.parent();
        self.directory.is_symlink() || above.is_some_and(Path::is_symlink)
    }
}

fn read_bounded(file: File) -> io::Result<String> {
    if !file.metadata()?.is_file() {
        return Err(other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SCRIPT_BYTES {
        return Err(other("it is larger than a script may be"));
    }
    String::from_utf8(bytes).map_err(|_| other("it is not UTF-8"))
}

fn other(problem: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests;

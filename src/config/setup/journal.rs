//! Makes the planned changes, and undoes them.
//!
//! Each change of setup has a directory in the state directory, with a copy of every file, and a journal of the
//! contents before and after. The journal is written before the first file is changed, so that the change can be undone
//! even if the process dies meanwhile.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{SetupError, io};
use super::lock::SetupLock;
use super::plan::{FileChange, Plan, is_unchanged};
use crate::config::file::read_again;
use crate::storage::files::{Store, sha256};
use crate::storage::private::{PrivateDirectory, remove_if_present};
use crate::storage::regular::read_regular;
use crate::storage::replace::replace_file;

/// The document in the directory of one change, and its format.
const JOURNAL: &str = "journal";
const VERSION: u32 = 1;

/// How many changes are kept. Their copies have secrets, as the files had.
const MAX_KEPT: usize = 20;

/// Maximum bytes of a copy: more than of any file that setup changes.
const MAX_COPY: u64 = 32 << 20;

/// The result of applying a plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Applied {
    /// The directory with the copies of the files as they were.
    pub copies: PathBuf,
}

/// The result of undoing a change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Undone {
    /// The files that were restored. A file that did not exist before was removed.
    pub files: Vec<PathBuf>,
    /// Those of them that others had changed since, each with a copy of what it had.
    pub replaced: Vec<(PathBuf, PathBuf)>,
}

#[derive(Default, Serialize, Deserialize)]
struct Journal {
    files: Vec<JournalEntry>,
    is_undone: bool,
}

#[derive(Serialize, Deserialize)]
struct JournalEntry {
    path: PathBuf,
    /// SHA-256 of the content before; `None` if there was no file. The name of the copy is the file's position in the
    /// list.
    before: Option<String>,
    after: String,
    /// Whether the file was never written, or was put back at once: its content is not of this change.
    #[serde(default)]
    is_back: bool,
}

impl Plan {
    /// Writes the files. Each is replaced as a whole and keeps its permissions; the target of a symbolic link is
    /// replaced, not the link. If a file cannot be written, those that were written are restored.
    ///
    /// # Errors
    ///
    /// If a file was changed since the plan was made, or one cannot be written. No file is changed then, but with
    /// [`SetupError::HalfWritten`].
    pub fn apply(&self, lock: &SetupLock) -> Result<Applied, SetupError> {
        let root = &lock.root;
        for change in &self.changes {
            if !is_unchanged(&change.path, change.before.as_deref()).map_err(io(&change.path))? {
                return Err(SetupError::Changed { path: change.path.clone() });
            }
        }
        let copies = keep_copies(root, &self.changes)?;
        for (position, change) in self.changes.iter().enumerate() {
            if let Err(problem) = write_unchanged(change) {
                let written = self.changes.get(..position).unwrap_or_default();
                let left = take_back(written, &copies);
                let problem = match left.is_empty() {
                    true => problem,
                    false => SetupError::HalfWritten { problem: Box::new(problem), left },
                };
                return Err(problem);
            }
        }
        prune(root);
        Ok(Applied { copies })
    }
}

/// Undoes the last change that was not undone yet. If a file was changed since, nothing is undone; with `force` the old
/// contents are restored nevertheless.
///
/// # Errors
///
/// If there is nothing to undo, a file was changed since, or one cannot be written.
pub fn undo(lock: &SetupLock, force: bool) -> Result<Undone, SetupError> {
    let (directory, journal) = last_change(&lock.root)?;
    let mut to_restore = Vec::new();
    let mut changed = Vec::new();
    for (position, entry) in journal.files.iter().enumerate().filter(|(_, entry)| !entry.is_back) {
        let copy = directory.join(position.to_string());
        let before =
            entry.before.is_some().then(|| read_regular(&copy, MAX_COPY)).transpose().map_err(io(&copy))?;
        let now = read_again(&entry.path).map_err(io(&entry.path))?;
        if now == before {
            continue;
        }
        if now.as_deref().map(sha256).as_deref() != Some(&*entry.after) {
            changed.push((position, entry.path.clone(), now));
        }
        to_restore.push((entry.path.clone(), before));
    }
    if !changed.is_empty() && !force {
        return Err(SetupError::ChangedSince {
            files: changed.into_iter().map(|(_, path, _)| path).collect(),
        });
    }
    let replaced = keep_changed(&directory, changed)?;
    for (path, before) in &to_restore {
        put_back(path, before.as_deref()).map_err(io(path))?;
    }
    change_journal(&directory, |journal| journal.is_undone = true)?;
    Ok(Undone { files: to_restore.into_iter().map(|(path, _)| path).collect(), replaced })
}

/// The directory and the journal of the last change that was not undone yet.
fn last_change(root: &Path) -> Result<(PathBuf, Journal), SetupError> {
    for number in numbers(root).into_iter().rev() {
        let directory = root.join(number.to_string());
        let journal: Option<Journal> =
            Store::new(&directory).read(JOURNAL, VERSION).map_err(io(&directory))?;
        if let Some(journal) = journal.filter(|journal| !journal.is_undone) {
            return Ok((directory, journal));
        }
    }
    Err(SetupError::NothingToUndo)
}

/// Copies files that were changed since, before their old content replaces what a user has written. Returns each with
/// its copy.
fn keep_changed(
    directory: &Path,
    changed: Vec<(usize, PathBuf, Option<Vec<u8>>)>,
) -> Result<Vec<(PathBuf, PathBuf)>, SetupError> {
    let mut kept = Vec::new();
    for (position, path, now) in changed {
        let Some(now) = now else { continue };
        let name = format!("{position}.replaced");
        let copied = PrivateDirectory::create(directory)
            .and_then(|private| private.replace(&name, ".new", |file| file.write_all(&now)));
        copied.map_err(io(directory))?;
        kept.push((path, directory.join(name)));
    }
    Ok(kept)
}

/// Copies the files, and writes the journal of what they become.
fn keep_copies(root: &Path, changes: &[FileChange]) -> Result<PathBuf, SetupError> {
    let number = numbers(root).last().map_or(1, |last| last + 1);
    let path = root.join(number.to_string());
    let directory = PrivateDirectory::create(&path).map_err(io(&path))?;
    let mut files = Vec::new();
    for (position, change) in changes.iter().enumerate() {
        if let Some(before) = &change.before {
            directory
                .replace(&position.to_string(), ".new", |file| file.write_all(before))
                .map_err(io(&path))?;
        }
        files.push(JournalEntry {
            path: change.path.clone(),
            before: change.before.as_deref().map(sha256),
            after: sha256(&change.after),
            is_back: false,
        });
    }
    let journal = Journal { files, is_undone: false };
    Store::new(&path).update(JOURNAL, VERSION, |_: Option<Journal>| (journal, ())).map_err(io(&path))?;
    Ok(path)
}

/// Writes a file that is still as it was when the change was planned: the copies may have taken a while.
fn write_unchanged(change: &FileChange) -> Result<(), SetupError> {
    let path = &change.path;
    if !is_unchanged(path, change.before.as_deref()).map_err(io(path))? {
        return Err(SetupError::Changed { path: path.clone() });
    }
    write(path, &change.after).map_err(io(path))
}

/// Puts back the files that were written of a change that cannot be finished. Returns those that are left: that cannot
/// be written, as on a full disk, or that another program has written since. Only these can be undone later.
fn take_back(written: &[FileChange], copies: &Path) -> Vec<PathBuf> {
    let left: Vec<PathBuf> =
        written.iter().filter(|done| !is_taken_back(done)).map(|done| done.path.clone()).collect();
    // On a full disk this fails too, and the caller has to say why the change was not finished. If all files are as
    // before, an undo later finds that, and only marks it.
    let _unmarked = change_journal(copies, |journal| {
        journal.is_undone = left.is_empty();
        journal.files.iter_mut().for_each(|entry| entry.is_back = !left.contains(&entry.path));
    });
    left
}

/// Puts a file back that is as this change has written it. Returns whether it is as before.
fn is_taken_back(done: &FileChange) -> bool {
    let is_ours = is_unchanged(&done.path, Some(&done.after)).unwrap_or(false);
    is_ours && put_back(&done.path, done.before.as_deref()).is_ok()
}

fn change_journal(directory: &Path, change: impl FnOnce(&mut Journal)) -> Result<(), SetupError> {
    let changed = |journal: Option<Journal>| {
        let mut journal = journal.unwrap_or_default();
        change(&mut journal);
        (journal, ())
    };
    Store::new(directory).update(JOURNAL, VERSION, changed).map_err(io(directory))
}

/// The numbers of the changes, in order.
fn numbers(root: &Path) -> Vec<u64> {
    let entries = fs::read_dir(root).into_iter().flatten();
    let mut numbers: Vec<u64> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Removes the oldest changes.
fn prune(root: &Path) {
    let numbers = numbers(root);
    let old = numbers.len().saturating_sub(MAX_KEPT);
    for number in numbers.into_iter().take(old) {
        let _ = fs::remove_dir_all(root.join(number.to_string()));
    }
}

/// Gives a file the content that it had, or removes it if there was none.
fn put_back(path: &Path, before: Option<&[u8]>) -> io::Result<()> {
    match before {
        Some(bytes) => write(path, bytes),
        None => remove_if_present(path),
    }
}

/// Replaces a file as a whole. A new file is readable by the user only, because it may receive secrets; its directory
/// is created.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    replace_file(path, bytes, 0o600)
}

#[cfg(test)]
mod tests;

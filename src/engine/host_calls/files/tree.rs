//! Operations on a directory and everything in it.

use crate::files::{Entry, EntryKind, FileError, FileErrorCode, GuestPath, RunFiles};
use crate::steps::end_step;

/// Maximum entries that one operation on a whole directory visits.
const MAX_WALKED: usize = 100_000;

/// Maximum bytes of the paths that it collects.
const MAX_WALKED_BYTES: usize = 16 << 20;

/// Maximum depth of nested directories that such an operation follows.
const MAX_DEPTH: usize = 256;

/// Maximum number of files and directories that are removed from memory before the script's thread can be stopped.
const STEP: usize = 64;

/// All entries below a directory, as paths from it. Links are not followed.
pub(super) async fn list(files: &RunFiles, path: &GuestPath) -> Result<Vec<Entry>, FileError> {
    let _alone = files.budget().wait_to_walk().await;
    walk(files, path).await
}

async fn walk(files: &RunFiles, path: &GuestPath) -> Result<Vec<Entry>, FileError> {
    const TOO_DEEP: &str = "more than 256 directories in each other are not followed: begin further down";
    const TOO_MANY: &str =
        "at most 100,000 entries, with 16 MiB of paths, are visited at once: visit each directory by itself";
    let mut found: Vec<Entry> = Vec::new();
    // Not as whole paths: `path` itself may have two thousand names, and there may be as many directories as entries.
    let mut waiting = vec![(String::new(), 0)];
    let mut bytes = 0;
    while let Some((prefix, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(FileError::with_hint(FileErrorCode::Loop, TOO_DEEP));
        }
        let directory = if prefix.is_empty() { path.clone() } else { path.join(&prefix)? };
        // Directories in memory are there at once: without it the run could not be stopped before the end.
        end_step().await;
        for Entry { name, kind } in files.entries(&directory).await? {
            let below = format!("{prefix}{name}");
            bytes += below.len();
            if found.len() == MAX_WALKED || bytes > MAX_WALKED_BYTES {
                return Err(FileError::with_hint(FileErrorCode::Unsupported, TOO_MANY));
            }
            if kind == EntryKind::Directory {
                waiting.push((format!("{below}/"), depth + 1));
            }
            found.push(Entry { name: below, kind });
        }
    }
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Removes a file, or a directory with everything in it. Links are removed and not followed.
pub(super) async fn remove(files: &RunFiles, path: &GuestPath, recursive: bool) -> Result<(), FileError> {
    if files.metadata(path, false).await?.kind != EntryKind::Directory {
        return files.remove_file(path).await;
    }
    if !recursive {
        return Err(FileErrorCode::IsDirectory.into());
    }
    let _alone = files.budget().wait_to_walk().await;
    let entries = walk(files, path).await?;
    // The contents of a directory come after it in the list, so they are removed first.
    for (number, Entry { name, kind }) in entries.iter().rev().enumerate() {
        if number.is_multiple_of(STEP) {
            end_step().await;
        }
        let path = path.join(name)?;
        match kind {
            EntryKind::Directory => files.remove_directory(&path).await?,
            _ => files.remove_file(&path).await?,
        }
    }
    files.remove_directory(path).await
}

#[cfg(test)]
mod tests;

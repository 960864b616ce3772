//! Operations on a directory and everything in it.

use crate::files::{Entry, EntryKind, FileError, FileErrorCode, GuestPath, RunFiles};

/// Maximum entries that one operation on a whole directory visits.
const MAX_WALKED: usize = 100_000;

/// Maximum bytes of the paths that it collects.
const MAX_WALKED_BYTES: usize = 16 << 20;

/// Maximum depth of nested directories that such an operation follows.
const MAX_DEPTH: usize = 256;

/// All entries below a directory, as paths from it. Links are not followed.
pub(super) async fn walk(files: &RunFiles, path: &GuestPath) -> Result<Vec<Entry>, FileError> {
    const TOO_DEEP: &str = "more than 256 directories in each other are not followed: begin further down";
    const TOO_MANY: &str =
        "at most 100,000 entries, with 16 MiB of paths, are visited at once: visit each directory by itself";
    let mut found: Vec<Entry> = Vec::new();
    let mut waiting = vec![(String::new(), path.clone(), 0)];
    let mut bytes = 0;
    while let Some((prefix, directory, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(FileError::with_hint(FileErrorCode::Loop, TOO_DEEP));
        }
        for Entry { name, kind } in files.entries(&directory).await? {
            let below = format!("{prefix}{name}");
            bytes += below.len();
            if found.len() == MAX_WALKED || bytes > MAX_WALKED_BYTES {
                return Err(FileError::with_hint(FileErrorCode::Unsupported, TOO_MANY));
            }
            if kind == EntryKind::Directory {
                waiting.push((format!("{below}/"), directory.join(&name)?, depth + 1));
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
    let entries = walk(files, path).await?;
    // The contents of a directory come after it in the list, so they are removed first.
    for Entry { name, kind } in entries.iter().rev() {
        let path = path.join(name)?;
        match kind {
            EntryKind::Directory => files.remove_directory(&path).await?,
            _ => files.remove_file(&path).await?,
        }
    }
    files.remove_directory(path).await
}

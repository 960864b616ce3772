//! Trusted workspace files, identified by path and content.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::describe::describe;
use super::environment::{Directories, canonical};
use super::error::{ConfigError, Finding, FindingKind};
use super::file::{self, Provenance};
use super::scripts::facts;
use crate::storage::files::{Store, sha256};
use crate::storage::scripts::Extension;
use crate::text::code_lines;

const NAME: &str = "trust";
const VERSION: u32 = 1;

/// Maximum number of trusted files: more than a user ever has, while the file stays small.
const MAX_FILES: usize = 10_000;

#[derive(Serialize, Deserialize, Default)]
struct Document {
    files: BTreeMap<String, TrustedContent>,
}

#[derive(Serialize, Deserialize)]
struct TrustedContent {
    sha256: String,
}

/// The user's list of trusted files, in the state directory.
#[derive(Clone, Debug)]
pub struct TrustStore {
    store: Store,
}

/// A file before it is trusted, with a description of what it would start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrustRequest {
    /// The file's path, with links resolved.
    pub path: PathBuf,
    /// SHA-256, in hexadecimal, of the same bytes that [`description`](Self::description) was made
    /// from.
    pub sha256: String,
    /// What the file would start and change, or a script's code, one item per line, in full, with hidden characters
    /// escaped as in approval prompts. Of variables and headers only the names are shown.
    pub description: Vec<String>,
}

/// A trusted file, and whether it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrustedFile {
    /// The file's path, with links resolved.
    pub path: PathBuf,
    /// SHA-256 of the trusted content, in hexadecimal.
    pub sha256: String,
    /// Whether the file still has that content.
    pub is_unchanged: bool,
}

impl TrustStore {
    /// The list in the state directory. The file is created when the first file is trusted.
    pub fn new(directories: &Directories) -> Self {
        Self { store: Store::new(&directories.state) }
    }

    /// Where the list is.
    pub(super) fn path(directories: &Directories) -> PathBuf {
        Store::new(&directories.state).path(NAME)
    }

    /// Whether the file with exactly this content was trusted.
    ///
    /// # Errors
    ///
    /// If the list cannot be read, or other users can write to it.
    pub(super) fn is_trusted(&self, path: &Path, bytes: &[u8]) -> io::Result<bool> {
        let document: Document = self.store.read(NAME, VERSION)?.unwrap_or_default();
        let Some(path) = path.to_str() else { return Ok(false) };
        Ok(document.files.get(path).is_some_and(|content| content.sha256 == sha256(bytes)))
    }

    /// Trusts a file with the content that was described.
    ///
    /// # Errors
    ///
    /// If the list cannot be written or is full, or the path is not UTF-8.
    pub fn trust(&self, request: &TrustRequest) -> io::Result<()> {
        let path = request.path.to_str().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "only files whose path is UTF-8 can be trusted")
        })?;
        let content = TrustedContent { sha256: request.sha256.clone() };
        self.store.update(NAME, VERSION, |document: Option<Document>| {
            let mut document = document.unwrap_or_default();
            if document.files.len() >= MAX_FILES && !document.files.contains_key(path) {
                let message = format!("{MAX_FILES} files are trusted already: revoke some");
                return (document, Err(io::Error::new(io::ErrorKind::StorageFull, message)));
            }
            document.files.insert(path.to_owned(), content);
            (document, Ok(()))
        })?
    }

    /// Revokes the trust in a file, which may be gone or be a link by now. Returns whether it was trusted.
    ///
    /// # Errors
    ///
    /// If the list cannot be written.
    pub fn revoke(&self, path: &Path) -> io::Result<bool> {
        let in_directory = path.file_name().zip(path.parent()).map(|(name, directory)| {
            let is_here = directory.as_os_str().is_empty();
            canonical(if is_here { Path::new(".") } else { directory }).join(name)
        });
        let paths = [Some(canonical(path)), in_directory, Some(path.to_owned())];
        self.store.update(NAME, VERSION, |document: Option<Document>| {
            let mut document = document.unwrap_or_default();
            let mut was_trusted = false;
            for path in paths.iter().flatten() {
                was_trusted |= document.files.remove(&*path.to_string_lossy()).is_some();
            }
            (document, was_trusted)
        })
    }

    /// All trusted files, by path.
    ///
    /// # Errors
    ///
    /// If the list cannot be read.
    pub fn list(&self) -> io::Result<Vec<TrustedFile>> {
        let document: Document = self.store.read(NAME, VERSION)?.unwrap_or_default();
        let file = |(path, content): (String, TrustedContent)| {
            let path = PathBuf::from(path);
            let bytes = file::read(&path, Provenance::Workspace).ok().flatten();
            let is_unchanged = bytes.is_some_and(|bytes| sha256(&bytes) == content.sha256);
            TrustedFile { path, sha256: content.sha256, is_unchanged }
        };
        Ok(document.files.into_iter().map(file).collect())
    }
}

impl TrustRequest {
    /// Reads a file once, both to hash and to describe it.
    ///
    /// # Errors
    ///
    /// If it cannot be read or has mistakes: a file that cannot be parsed cannot be trusted. If it is a script in
    /// another folder.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let error = |findings| ConfigError::new(path, findings);
        let bytes = file::read(&resolved, Provenance::Named).map_err(|finding| error(vec![finding]))?;
        let bytes = bytes.unwrap_or_default();
        let description = match script_extension(&resolved) {
            Some(extension) => describe_script(extension, &resolved, &bytes).map_err(error)?,
            None if Extension::from_path(&resolved).is_some() => {
                let problem = format!(
                    "only scripts in a folder `{}` need trust; `cx run` runs any other as it is",
                    facts::WORKSPACE_FOLDER
                );
                return Err(error(vec![FindingKind::NoScript(problem).into()]));
            }
            None => describe(&resolved, &bytes).map_err(error)?,
        };
        Ok(Self { path: resolved, sha256: sha256(&bytes), description })
    }
}

/// The extension of a script in a workspace's folder of scripts; `None` for other files.
fn script_extension(path: &Path) -> Option<Extension> {
    let is_in_folder = path.parent().is_some_and(|folder| folder.ends_with(facts::WORKSPACE_FOLDER));
    Extension::from_path(path).filter(|_| is_in_folder)
}

/// The complete code of a script, after its metadata.
fn describe_script(extension: Extension, path: &Path, bytes: &[u8]) -> Result<Vec<String>, Vec<Finding>> {
    let source = file::text(bytes).map_err(|finding| vec![finding])?;
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let mut lines = facts::describe(name, extension, source)
        .map_err(|problem| vec![Finding::from(FindingKind::NoScript(problem))])?;
    lines.extend(code_lines(source));
    Ok(lines)
}

#[cfg(test)]
mod tests;

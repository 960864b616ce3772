//! Small private files of the user: caches, pins, trust, tokens. Each is complete or absent.
//!
//! Each file is one JSON document with a version and a checksum. A change is made under a lock that
//! all processes respect, and replaces the file atomically: a reader sees the old or the new file,
//! and a process that dies during a change leaves the old one. A torn file or one of another
//! version counts as missing.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::private::{self, PrivateDirectory};

/// Maximum size of a document in bytes. No real document comes near it.
const MAX_DOCUMENT: u64 = 256 * 1024 * 1024;

/// A directory of documents. Each has a name and a type.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    /// Whether an unusable file is an error instead of counting as missing.
    is_binding: bool,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct StoredDocument<'a> {
    /// Version of the format of `document`. Other versions are not read.
    version: u32,
    /// SHA-256 of the text of `document`, in hexadecimal. Detects torn files.
    sha256: String,
    #[serde(borrow)]
    document: &'a RawValue,
}

impl Store {
    /// A store in this directory, which is created at the first write.
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), is_binding: false }
    }

    /// Makes this a store for documents that decide something, such as permissions. A torn document or one of another
    /// version is then an error, because treating it as missing would change the decision.
    #[must_use]
    pub(crate) fn binding(mut self) -> Self {
        self.is_binding = true;
        self
    }

    /// Reads the document with this name. Returns `None` if there is none that can be used.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read, or belongs to another user.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str, version: u32) -> io::Result<Option<T>> {
        match open(&self.path(name)) {
            Ok(file) => {
                let document = read_document(file, name, version)?;
                if document.is_none() && self.is_binding {
                    let path = self.path(name);
                    let message = format!("{} is damaged or of another version of cx", path.display());
                    return Err(io::Error::new(ErrorKind::InvalidData, message));
                }
                Ok(document)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the document by the first value that `change` returns, while holding its lock.
    /// Returns the second value. Blocks, usually for less than a millisecond.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or if another process holds the lock for two seconds.
    pub(crate) fn update<T: DeserializeOwned + Serialize, R>(
        &self,
        name: &str,
        version: u32,
        change: impl FnOnce(Option<T>) -> (T, R),
    ) -> io::Result<R> {
        let directory = PrivateDirectory::create(&self.directory)?;
        let _lock = self.lock(name)?;
        let (document, returned) = change(self.read(name, version)?);
        write(&directory, name, version, &document)?;
        Ok(returned)
    }

    /// Replaces a document that cannot be used, and keeps the unusable file under another name, where it replaces an
    /// earlier one. `replacement` gets the path of that file. Returns the document, which another process may have
    /// replaced meanwhile. The document exists at every moment. Blocks.
    ///
    /// # Errors
    ///
    /// If the files cannot be written, or if another process holds the lock for two seconds.
    pub(crate) fn set_aside<T: DeserializeOwned + Serialize>(
        &self,
        name: &str,
        version: u32,
        replacement: impl FnOnce(PathBuf) -> T,
    ) -> io::Result<T> {
        let directory = PrivateDirectory::create(&self.directory)?;
        let _lock = self.lock(name)?;
        match self.clone().binding().read(name, version) {
            Ok(Some(document)) => return Ok(document),
            Err(error) if error.kind() != ErrorKind::InvalidData => return Err(error),
            Ok(None) | Err(_) => {}
        }
        let (path, aside) = (self.path(name), self.directory.join(format!("{name}.damaged")));
        private::remove_if_present(&aside)?;
        // A hard link, because renaming would leave the document missing until the replacement is written.
        match fs::hard_link(&path, &aside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let document = replacement(aside);
        write(&directory, name, version, &document)?;
        Ok(document)
    }

    /// Removes the document. A missing document is not an error.
    ///
    /// # Errors
    ///
    /// As [`Store::update`].
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        if !self.directory.exists() {
            return Ok(());
        }
        let _lock = self.lock(name)?;
        private::remove_if_present(&self.path(name))
    }

    /// The names of all documents, sorted.
    ///
    /// # Errors
    ///
    /// If the directory exists and cannot be read.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name().into_string().ok()?;
                name.strip_suffix(".json").map(str::to_owned)
            })
            .collect();
        names.sort();
        Ok(names)
    }

    /// Deletes all documents whose names begin with `prefix`, and returns how many there were.
    ///
    /// # Errors
    ///
    /// As [`Store::names`] and [`Store::remove`]. Those before the one that cannot be deleted are deleted then.
    pub(crate) fn remove_all(&self, prefix: &str) -> io::Result<usize> {
        let names: Vec<String> = self.names()?.into_iter().filter(|name| name.starts_with(prefix)).collect();
        names.iter().try_for_each(|name| self.remove(name))?;
        Ok(names.len())
    }

    /// The path of the document with this name.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        debug_assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
            "{name}"
        );
        self.directory.join(format!("{name}.json"))
    }

    /// Acquires the lock of one document. It is a separate file, because the document itself is
    /// replaced. It is not removed with the document: a process that waits for it would otherwise
    /// hold a lock on a file that other processes no longer see.
    fn lock(&self, name: &str) -> io::Result<File> {
        private::lock(&self.directory.join(format!("{name}.lock")))
    }
}

/// Writes a document. The caller holds its lock.
fn write(
    directory: &PrivateDirectory,
    name: &str,
    version: u32,
    document: &impl Serialize,
) -> io::Result<()> {
    let document = serde_json::value::to_raw_value(document)?;
    let envelope = StoredDocument { version, sha256: sha256(document.get().as_bytes()), document: &document };
    let text = serde_json::to_vec(&envelope)?;
    // One temporary name per document, used only by the holder of its lock.
    directory.replace(&format!("{name}.json"), &format!(".new-{name}"), |file| file.write_all(&text))
}

/// Opens a document for reading.
fn open(path: &Path) -> io::Result<File> {
    let file = private::open_file(path)?;
    if file.metadata()?.len() > MAX_DOCUMENT {
        let message = format!("{} is larger than any document of cx", path.display());
        return Err(io::Error::new(ErrorKind::InvalidData, message));
    }
    Ok(file)
}

fn read_document<T: DeserializeOwned>(mut file: File, name: &str, version: u32) -> io::Result<Option<T>> {
    let mut text = String::new();
    if let Err(error) = file.read_to_string(&mut text) {
        if error.kind() == ErrorKind::InvalidData {
            return Ok(damaged(name));
        }
        return Err(error);
    }
    let Ok(envelope) = serde_json::from_str::<StoredDocument<'_>>(&text) else { return Ok(damaged(name)) };
    if envelope.version != version {
        return Ok(None);
    }
    if envelope.sha256 != sha256(envelope.document.get().as_bytes()) {
        return Ok(damaged(name));
    }
    Ok(serde_json::from_str(envelope.document.get()).ok().or_else(|| damaged(name)))
}

fn damaged<T>(name: &str) -> Option<T> {
    tracing::warn!(name, "a damaged file is ignored");
    None
}

/// The name of the document about something that another program has named, such as a server.
pub(crate) fn hashed_name(prefix: &str, name: &str) -> String {
    digest_name(prefix, &sha256(name.as_bytes()))
}

/// The name of the document about something that a SHA-256 in hexadecimal identifies, such as a server's tools. Half of
/// it is enough to distinguish what one user has.
pub(crate) fn digest_name(prefix: &str, digest: &str) -> String {
    format!("{prefix}{}", digest.get(..32).unwrap_or(digest))
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    // Not `hex::encode`, which collects characters and took a noticeable part of the audit writer's time in a profile.
    let mut text = [0; 64];
    let is_encoded = hex::encode_to_slice(Sha256::digest(bytes), &mut text).is_ok();
    str::from_utf8(&text).ok().filter(|_| is_encoded).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;

//! Paths as scripts write them.

use std::path::Path;

use super::error::{FileError, FileErrorCode};

/// Maximum length of a path in bytes, as on Linux.
const MAX_PATH: usize = 4_096;

/// Maximum length of one name in bytes, as on Linux.
const MAX_NAME: usize = 255;

/// An absolute path without `.`, `..`, empty names and a slash at its end. `/` is the empty list of names.
///
/// `..` is resolved here, by the text: it removes the name before it. The system would first follow a link of that
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuestPath {
    names: Vec<String>,
    /// The path ends with a slash or a dot, so that it can only be a directory.
    pub(crate) must_be_directory: bool,
}

impl GuestPath {
    pub(crate) const ROOT: Self = Self { names: Vec::new(), must_be_directory: true };

    /// Reads a path. A relative one starts at `self`.
    ///
    /// # Errors
    ///
    /// If it is empty or too long, or has a NUL character.
    pub(crate) fn join(&self, text: &str) -> Result<Self, FileError> {
        if text.is_empty() {
            return Err(FileErrorCode::NoEntry.into());
        }
        // Bounded before it is split.
        if text.len() > MAX_PATH {
            return Err(FileErrorCode::NameTooLong.into());
        }
        if text.contains('\0') {
            return Err(FileErrorCode::Invalid.into());
        }
        let mut names = if text.starts_with('/') { Vec::new() } else { self.names.clone() };
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                name if name.len() > MAX_NAME => return Err(FileErrorCode::NameTooLong.into()),
                name => names.push(name.to_owned()),
            }
        }
        if names.iter().map(|name| name.len() + 1).sum::<usize>() > MAX_PATH {
            return Err(FileErrorCode::NameTooLong.into());
        }
        let last = text.rsplit('/').next().unwrap_or_default();
        let must_be_directory = names.is_empty() || matches!(last, "" | "." | "..");
        Ok(Self { names, must_be_directory })
    }

    /// Reads an absolute path.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub(crate) fn parse(text: &str) -> Result<Self, FileError> {
        Self::ROOT.join(text)
    }

    /// The path of a directory of the machine; `None` if it is not UTF-8.
    pub(crate) fn of_directory(path: &Path) -> Option<Self> {
        Self::parse(path.to_str()?).ok()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The names below `directory`, if this path is in it or the same.
    pub(crate) fn below<'a>(&'a self, directory: &Self) -> Option<&'a [String]> {
        self.names.strip_prefix(directory.names.as_slice())
    }
}

impl std::fmt::Display for GuestPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.names.is_empty() {
            return formatter.write_str("/");
        }
        self.names.iter().try_for_each(|name| write!(formatter, "/{name}"))
    }
}

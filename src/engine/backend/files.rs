//! Files for back ends: the scratch directory of a run, and what a person has granted.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::host_client::unreadable;
use super::run::BackendRun;
use crate::engine::host_calls::files::{FileBlock, FileCall};
use crate::engine::host_calls::query::Query;
use crate::net::call::GuestBytes;
use crate::tools::{ToolError, ToolErrorCode};

/// How a file is written, as flags of Node.
const REPLACE: &str = "w";
const APPEND: &str = "a";

/// Why an operation on a file of a run has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct BackendFileError {
    /// The name that POSIX has for it, such as `ENOENT`; or the code of a [`ToolError`] if the host did not come to
    /// the file.
    pub code: String,
    /// What it means, and what to do about it. It has no path of the machine that the script has not written itself.
    pub message: String,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendDirectoryEntry {
    /// The name in the directory.
    pub name: String,
    /// What it is: `file`, `directory`, `link`, or `special` for a device, a fifo or a socket.
    pub kind: String,
}

/// What the host answers in place of a value, if an operation has failed.
#[derive(Deserialize)]
struct Failed {
    failed: Failure,
}

#[derive(Deserialize)]
struct Failure {
    code: String,
    message: String,
    hint: Option<String>,
}

impl From<ToolError> for BackendFileError {
    fn from(error: ToolError) -> Self {
        Self { code: error.code.as_str().to_owned(), message: error.message }
    }
}

impl From<Failure> for BackendFileError {
    fn from(failure: Failure) -> Self {
        let Failure { code, message, hint } = failure;
        let message = match hint {
            Some(hint) => format!("{message} ({hint})"),
            None => message,
        };
        Self { code, message }
    }
}

/// Paths are absolute, or start in the scratch directory, `/tmp`. Other directories exist only if a person has granted
/// them. [`query`](Self::query) has operations without a method here: making and removing directories, removing,
/// renaming and copying files, and their sizes and times.
impl BackendRun {
    /// Reads a whole file of at most three quarters of [`Limits::result_bytes`](crate::Limits::result_bytes).
    ///
    /// # Errors
    ///
    /// `ENOENT` for what does not exist or is not granted, `EFBIG` for a larger file, and whatever else the system
    /// says.
    pub fn read_file(&self, path: &str) -> BoxFuture<'static, Result<Vec<u8>, BackendFileError>> {
        let read = self.operate::<String>(FileCall::ReadFile { path: path.to_owned(), text: false });
        async move { bytes(GuestBytes::Base64(read.await?)).map_err(BackendFileError::from) }.boxed()
    }

    /// Writes a file, in place of one that exists.
    ///
    /// # Errors
    ///
    /// `EACCES` for what is not granted, `ENOSPC` if the scratch directory is full, which counts as memory
    /// of the run, `EDQUOT` or `EFBIG` beyond the limits of files, and whatever else the system says.
    pub fn write_file(&self, path: &str, bytes: &[u8]) -> BoxFuture<'static, Result<(), BackendFileError>> {
        self.write(path, bytes, REPLACE)
    }

    /// Writes to the end of a file, which is made if it does not exist: for what is too long for one query.
    ///
    /// # Errors
    ///
    /// As [`write_file`](Self::write_file).
    pub fn append_to_file(
        &self,
        path: &str,
        bytes: &[u8],
    ) -> BoxFuture<'static, Result<(), BackendFileError>> {
        self.write(path, bytes, APPEND)
    }

    /// The entries of a directory, in the order of their names.
    ///
    /// # Errors
    ///
    /// As [`read_file`](Self::read_file); `ENOTDIR` for a file.
    pub fn list_directory(
        &self,
        path: &str,
    ) -> BoxFuture<'static, Result<Vec<BackendDirectoryEntry>, BackendFileError>> {
        let call = FileCall::ReadDirectory { path: path.to_owned(), recursive: false };
        let listed = self.operate::<Vec<(String, String)>>(call);
        let entry = |(name, kind)| BackendDirectoryEntry { name, kind };
        async move { listed.await.map(|entries| entries.into_iter().map(entry).collect()) }.boxed()
    }

    /// Emits a file as a content block: an image or audio as such, anything else as a resource. Without a type, the
    /// name and the content of the file say what it is.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENTS` for a file that cannot be read, `RESULT_TOO_LARGE` if all blocks together are larger than a
    /// result may be.
    pub fn emit_file(
        &self,
        path: &str,
        mime_type: Option<&str>,
    ) -> BoxFuture<'static, Result<(), ToolError>> {
        let file = FileBlock { path: path.to_owned(), mime_type: mime_type.map(str::to_owned) };
        let (block, host) = (self.client.ask(&Query::FileBlock { file }), Arc::clone(&self.client.host));
        async move { host.emit(&block.await?).map(drop) }.boxed()
    }

    fn write(
        &self,
        path: &str,
        bytes: &[u8],
        flag: &str,
    ) -> BoxFuture<'static, Result<(), BackendFileError>> {
        let (data, base64) = match GuestBytes::from(bytes) {
            GuestBytes::Text(text) => (text, false),
            GuestBytes::Base64(text) => (text, true),
        };
        self.operate(FileCall::WriteFile { path: path.to_owned(), data, base64, flag: flag.to_owned() })
    }

    /// Performs an operation whose value is no object.
    fn operate<T: DeserializeOwned + Send + 'static>(
        &self,
        call: FileCall,
    ) -> BoxFuture<'static, Result<T, BackendFileError>> {
        let answer = self.client.ask(&Query::File { call });
        async move { value(&answer.await?) }.boxed()
    }
}

/// The value of an operation; it is no object.
fn value<T: DeserializeOwned>(answer: &str) -> Result<T, BackendFileError> {
    if answer.starts_with('{') {
        let Failed { failed } = serde_json::from_str(answer).map_err(|error| unreadable(&error))?;
        return Err(failed.into());
    }
    serde_json::from_str(answer).map_err(|error| unreadable(&error).into())
}

/// The bytes that an answer has.
pub(super) fn bytes(answered: GuestBytes) -> Result<Vec<u8>, ToolError> {
    answered.into_bytes().map_err(|error| {
        let message = format!("the answer of the host has bytes that are not base64: {error}");
        ToolError::new(ToolErrorCode::UpstreamProtocol, message)
    })
}

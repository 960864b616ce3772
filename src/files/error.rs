//! Why a file operation has failed.

use std::borrow::Cow;
use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileError {
    pub(crate) code: FileErrorCode,
    /// What to do about it, where the code does not say enough.
    pub(crate) hint: Option<Cow<'static, str>>,
}

/// The kinds of errors, with the names that POSIX has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileErrorCode {
    Access,
    BadDescriptor,
    Busy,
    CrossDevice,
    Exists,
    FileTooLarge,
    Invalid,
    Io,
    IsDirectory,
    Loop,
    NameTooLong,
    NoEntry,
    NoSpace,
    NotDirectory,
    NotEmpty,
    NotPermitted,
    Quota,
    ReadOnly,
    TooManyOpen,
    Unsupported,
}

impl FileErrorCode {
    /// The name, as in `err.code` of Node.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Access => "EACCES",
            Self::BadDescriptor => "EBADF",
            Self::Busy => "EBUSY",
            Self::CrossDevice => "EXDEV",
            Self::Exists => "EEXIST",
            Self::FileTooLarge => "EFBIG",
            Self::Invalid => "EINVAL",
            Self::Io => "EIO",
            Self::IsDirectory => "EISDIR",
            Self::Loop => "ELOOP",
            Self::NameTooLong => "ENAMETOOLONG",
            Self::NoEntry => "ENOENT",
            Self::NoSpace => "ENOSPC",
            Self::NotDirectory => "ENOTDIR",
            Self::NotEmpty => "ENOTEMPTY",
            Self::NotPermitted => "EPERM",
            Self::Quota => "EDQUOT",
            Self::ReadOnly => "EROFS",
            Self::TooManyOpen => "EMFILE",
            Self::Unsupported => "ENOTSUP",
        }
    }

    /// What it means.
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::Access => "permission denied",
            Self::BadDescriptor => "the file is not open for this",
            Self::Busy => "busy",
            Self::CrossDevice => "not in the same granted directory",
            Self::Exists => "file already exists",
            Self::FileTooLarge => "file too large",
            Self::Invalid => "invalid argument",
            Self::Io => "input/output error",
            Self::IsDirectory => "is a directory",
            Self::Loop => "too many links",
            Self::NameTooLong => "name too long",
            Self::NoEntry => "no such file or directory",
            Self::NoSpace => "no space left",
            Self::NotDirectory => "not a directory",
            Self::NotEmpty => "directory not empty",
            Self::NotPermitted => "operation not permitted",
            Self::Quota => "quota exceeded",
            Self::ReadOnly => "read-only file system",
            Self::TooManyOpen => "too many open files",
            Self::Unsupported => "operation not supported",
        }
    }
}

impl FileError {
    /// The error with a hint.
    pub(crate) const fn with_hint(code: FileErrorCode, hint: &'static str) -> Self {
        Self { code, hint: Some(Cow::Borrowed(hint)) }
    }
}

impl From<FileErrorCode> for FileError {
    fn from(code: FileErrorCode) -> Self {
        Self { code, hint: None }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code.message())?;
        self.hint.as_deref().map_or(Ok(()), |hint| write!(formatter, " ({hint})"))
    }
}

impl std::error::Error for FileError {}

/// An error of the system. Its text is not passed on: it may have paths of the machine.
impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        use rustix::io::Errno;

        let code = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ACCESS) => FileErrorCode::Access,
            Some(Errno::PERM) => FileErrorCode::NotPermitted,
            Some(Errno::NOENT) => FileErrorCode::NoEntry,
            Some(Errno::EXIST) => FileErrorCode::Exists,
            Some(Errno::NOTDIR) => FileErrorCode::NotDirectory,
            Some(Errno::ISDIR) => FileErrorCode::IsDirectory,
            Some(Errno::NOTEMPTY) => FileErrorCode::NotEmpty,
            Some(Errno::NAMETOOLONG) => FileErrorCode::NameTooLong,
            Some(Errno::LOOP) => FileErrorCode::Loop,
            Some(Errno::NOSPC) => FileErrorCode::NoSpace,
            Some(Errno::DQUOT) => FileErrorCode::Quota,
            Some(Errno::FBIG) => FileErrorCode::FileTooLarge,
            Some(Errno::ROFS) => FileErrorCode::ReadOnly,
            Some(Errno::XDEV) => FileErrorCode::CrossDevice,
            Some(Errno::BUSY | Errno::TXTBSY) => FileErrorCode::Busy,
            Some(Errno::MFILE | Errno::NFILE) => FileErrorCode::TooManyOpen,
            Some(Errno::INVAL) => FileErrorCode::Invalid,
            // A fifo without a reader, a device that does not exist.
            Some(Errno::NXIO | Errno::NODEV) => FileErrorCode::Access,
            Some(_) => FileErrorCode::Io,
            None => match error.kind() {
                // What cap-std says of a path that leaves its directory.
                io::ErrorKind::PermissionDenied => FileErrorCode::Access,
                io::ErrorKind::NotFound => FileErrorCode::NoEntry,
                io::ErrorKind::AlreadyExists => FileErrorCode::Exists,
                io::ErrorKind::InvalidInput => FileErrorCode::Invalid,
                _ => FileErrorCode::Io,
            },
        };
        code.into()
    }
}

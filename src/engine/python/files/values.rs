//! The values of `wasi:filesystem` for those of cx's files.

use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types;

use crate::files::{EntryKind, FileError, FileErrorCode, Metadata};

pub(super) fn fs_error(error: &FileError) -> FsError {
    code(error).into()
}

pub(super) fn code(error: &FileError) -> types::ErrorCode {
    use types::ErrorCode as Code;

    match error.code {
        FileErrorCode::Access => Code::Access,
        FileErrorCode::BadDescriptor => Code::BadDescriptor,
        FileErrorCode::Busy => Code::Busy,
        FileErrorCode::CrossDevice => Code::CrossDevice,
        FileErrorCode::Exists => Code::Exist,
        FileErrorCode::FileTooLarge => Code::FileTooLarge,
        FileErrorCode::Invalid => Code::Invalid,
        FileErrorCode::Io => Code::Io,
        FileErrorCode::IsDirectory => Code::IsDirectory,
        FileErrorCode::Loop => Code::Loop,
        FileErrorCode::NameTooLong => Code::NameTooLong,
        FileErrorCode::NoEntry => Code::NoEntry,
        FileErrorCode::NoSpace => Code::InsufficientSpace,
        FileErrorCode::NotDirectory => Code::NotDirectory,
        FileErrorCode::NotEmpty => Code::NotEmpty,
        FileErrorCode::NotPermitted => Code::NotPermitted,
        FileErrorCode::Quota => Code::Quota,
        FileErrorCode::ReadOnly => Code::ReadOnly,
        // WASI has no code for too many open files.
        FileErrorCode::TooManyOpen => Code::InsufficientMemory,
        FileErrorCode::Unsupported => Code::Unsupported,
    }
}

pub(super) fn descriptor_type(kind: EntryKind) -> types::DescriptorType {
    match kind {
        EntryKind::File => types::DescriptorType::RegularFile,
        EntryKind::Directory => types::DescriptorType::Directory,
        EntryKind::Link => types::DescriptorType::SymbolicLink,
        EntryKind::Special => types::DescriptorType::Unknown,
    }
}

pub(super) fn stat(metadata: &Metadata) -> types::DescriptorStat {
    let time = Datetime {
        seconds: metadata.modified / 1_000_000_000,
        nanoseconds: (metadata.modified % 1_000_000_000) as u32,
    };
    types::DescriptorStat {
        type_: descriptor_type(metadata.kind),
        link_count: 1,
        size: metadata.size,
        data_access_timestamp: Some(time),
        data_modification_timestamp: Some(time),
        status_change_timestamp: Some(time),
    }
}

pub(super) fn hash(metadata: &Metadata) -> types::MetadataHashValue {
    types::MetadataHashValue { lower: metadata.id.1, upper: metadata.id.0 }
}

/// The time in nanoseconds; `None` is now.
pub(super) fn new_time(time: types::NewTimestamp) -> Option<u64> {
    match time {
        types::NewTimestamp::NoChange | types::NewTimestamp::Now => None,
        types::NewTimestamp::Timestamp(time) => {
            Some(time.seconds.saturating_mul(1_000_000_000).saturating_add(time.nanoseconds.into()))
        }
    }
}

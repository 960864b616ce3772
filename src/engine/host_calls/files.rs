//! Files as scripts in TypeScript use them: the operations of Node's `fs/promises`; and files as content
//! blocks for `emit`.
//!
//! An operation that fails is answered with `{"failed": {code, message, ...}}`, of which the guest makes an
//! error like Node's. Bytes are base64.

mod tree;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::tree::{list, remove};
use crate::files::{Entry, EntryKind, FileError, FileErrorCode, GuestPath, Metadata, OpenMode, RunFiles};
use crate::run::context::ExecutionContext;
use crate::text::ids::short_random_id;
use crate::text::{start, visible_preview};
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum number of names that are tried for a temporary directory.
const MAX_TRIES: usize = 100;

/// Random letters at the end of the name of a temporary directory, as in Node.
const RANDOM_LETTERS: usize = 6;

/// Maximum bytes of a query for a content block.
const MAX_BLOCK_REQUEST: usize = 64 << 10;

/// Maximum bytes of a media type with its parameters.
const MAX_MEDIA_TYPE: usize = 1_024;

/// Maximum characters of a path in a message.
const MAX_SHOWN: usize = 200;

/// An operation of a script.
#[derive(Deserialize, Serialize)]
#[serde(tag = "op", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum FileCall {
    ReadFile { path: String, text: bool },
    WriteFile { path: String, data: String, base64: bool, flag: String },
    ReadDirectory { path: String, recursive: bool },
    MakeDirectory { path: String, recursive: bool },
    MakeTemporary { prefix: String },
    Remove { path: String, recursive: bool, force: bool },
    RemoveFile { path: String },
    RemoveDirectory { path: String },
    Stat { path: String, follow: bool },
    Rename { path: String, to: String },
    Copy { path: String, to: String, exclusive: bool },
    Access { path: String, write: bool },
    Truncate { path: String, size: f64 },
}

/// A file that becomes a content block.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FileBlock {
    pub(crate) path: String,
    pub(crate) mime_type: Option<String>,
}

impl FileCall {
    /// The path, and a second one.
    fn paths(&self) -> (&str, Option<&str>) {
        match self {
            Self::ReadFile { path, .. }
            | Self::WriteFile { path, .. }
            | Self::ReadDirectory { path, .. }
            | Self::MakeDirectory { path, .. }
            | Self::Remove { path, .. }
            | Self::RemoveFile { path }
            | Self::RemoveDirectory { path }
            | Self::Stat { path, .. }
            | Self::Access { path, .. }
            | Self::Truncate { path, .. } => (path, None),
            Self::MakeTemporary { prefix } => (prefix, None),
            Self::Rename { path, to } | Self::Copy { path, to, .. } => (path, Some(to)),
        }
    }
}

/// A relative path starts in the scratch directory, as in Python.
fn resolve(path: &str) -> Result<GuestPath, FileError> {
    GuestPath::parse(crate::files::SCRATCH)?.join(path)
}

/// Performs an operation. Answers as JSON text.
pub(super) async fn perform(context: &ExecutionContext, call: FileCall) -> Result<String, ToolError> {
    let (path, to) = call.paths();
    let shown = |path: &str| visible_preview(path, MAX_SHOWN);
    let (path, to) = (shown(path), to.map(shown));
    match operate(context, call).await {
        Ok(value) => Ok(value.to_string()),
        Err(FileError { code, hint }) => Ok(json!({ "failed": {
            "code": code.as_str(),
            "message": code.message(),
            "hint": hint,
            "path": path,
            "dest": to,
        }})
        .to_string()),
    }
}

async fn operate(context: &ExecutionContext, call: FileCall) -> Result<Value, FileError> {
    let files = context.files();
    match call {
        FileCall::ReadFile { path, text } => {
            let bytes = read_all(files, context.limits().result_bytes, &resolve(&path)?).await?;
            Ok(if text {
                Value::from(String::from_utf8_lossy(&bytes).into_owned())
            } else {
                Value::from(STANDARD.encode(bytes))
            })
        }
        FileCall::WriteFile { path, data, base64, flag } => {
            write(files, &path, data, base64, &flag).await.map(|()| Value::Null)
        }
        FileCall::ReadDirectory { path, recursive } => {
            let path = resolve(&path)?;
            let entries = if recursive { list(files, &path).await? } else { files.entries(&path).await? };
            Ok(entries.into_iter().map(|Entry { name, kind }| json!([name, kind_name(kind)])).collect())
        }
        FileCall::MakeDirectory { path, recursive } => {
            let path = resolve(&path)?;
            if !recursive {
                files.create_directory(&path).await?;
                return Ok(Value::Null);
            }
            make_all(files, &path).await.map(Value::from)
        }
        FileCall::MakeTemporary { prefix } => make_temporary(context, &prefix).await.map(Value::from),
        FileCall::Remove { path, recursive, force } => {
            let path = resolve(&path)?;
            match remove(files, &path, recursive).await {
                Err(error) if force && error.code == FileErrorCode::NoEntry => Ok(Value::Null),
                result => result.map(|()| Value::Null),
            }
        }
        FileCall::RemoveFile { path } => files.remove_file(&resolve(&path)?).await.map(|()| Value::Null),
        FileCall::RemoveDirectory { path } => {
            files.remove_directory(&resolve(&path)?).await.map(|()| Value::Null)
        }
        FileCall::Stat { path, follow } => files.metadata(&resolve(&path)?, follow).await.map(stat_json),
        FileCall::Rename { path, to } => {
            files.rename(&resolve(&path)?, &resolve(&to)?).await.map(|()| Value::Null)
        }
        FileCall::Copy { path, to, exclusive } => {
            copy(files, &resolve(&path)?, &resolve(&to)?, exclusive).await.map(|()| Value::Null)
        }
        FileCall::Access { path, write } => {
            let path = resolve(&path)?;
            files.metadata(&path, true).await?;
            files.check_access(&path, write)?;
            Ok(Value::Null)
        }
        FileCall::Truncate { path, size } => truncate(files, &path, size).await.map(|()| Value::Null),
    }
}

/// Writes a file. `data` is Base64 if `is_base64` is set.
async fn write(
    files: &RunFiles,
    path: &str,
    data: String,
    is_base64: bool,
    flag: &str,
) -> Result<(), FileError> {
    // In a granted directory it waits for earlier operations.
    let _held = files.budget().hold_waiting(data.len()).ok_or_else(too_much_waits)?;
    let bytes = if is_base64 {
        STANDARD.decode(data).map_err(|_| FileError::from(FileErrorCode::Invalid))?
    } else {
        data.into_bytes()
    };
    let mode = write_mode(flag)?;
    let file = files.open(&resolve(path)?, mode).await?;
    if !bytes.is_empty() {
        file.write(0, bytes).await?;
    }
    Ok(())
}

fn stat_json(Metadata { kind, size, modified, id }: Metadata) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "JavaScript has no other numbers")]
    let milliseconds = modified as f64 / 1e6;
    json!({ "kind": kind_name(kind), "size": size, "mtimeMs": milliseconds, "ino": id.1 & ((1 << 53) - 1) })
}

async fn truncate(files: &RunFiles, path: &str, size: f64) -> Result<(), FileError> {
    let mode = OpenMode { write: true, ..OpenMode::default() };
    let file = files.open(&resolve(path)?, mode).await?;
    if !(0.0..=9_007_199_254_740_991.0).contains(&size) {
        return Err(FileErrorCode::Invalid.into());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to fit")]
    let size = size as u64;
    file.set_size(size).await
}

fn too_much_waits() -> FileError {
    const WAITING: &str =
        "what is written at the same time counts as memory of the run: await some of it first";
    FileError::with_hint(FileErrorCode::NoSpace, WAITING)
}

/// All of a file. It becomes a result of the script's, and is bounded as such.
async fn read_all(files: &RunFiles, result_bytes: usize, path: &GuestPath) -> Result<Vec<u8>, FileError> {
    const TOO_LARGE: &str = "at most `maxResultBytes` of the limits are read at once";
    let file = files.open(path, OpenMode { read: true, ..OpenMode::default() }).await?;
    let Metadata { kind, size, .. } = file.metadata().await?;
    if kind == EntryKind::Directory {
        return Err(FileErrorCode::IsDirectory.into());
    }
    let too_large = || FileError::with_hint(FileErrorCode::FileTooLarge, TOO_LARGE);
    // As base64 it is a third larger.
    let most = result_bytes / 4 * 3;
    if size > most as u64 {
        return Err(too_large());
    }
    // Each part waits for other operations. An operation that has not begun holds nothing that others wait for, so it
    // may wait too.
    let _held = files.budget().wait_to_hold(usize::try_from(size).unwrap_or(most)).await;
    let mut bytes = Vec::new();
    loop {
        let part = file.read(bytes.len() as u64, usize::MAX).await?;
        if part.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&part);
        // It may grow meanwhile.
        if bytes.len() > most {
            return Err(too_large());
        }
    }
}

/// Node's flags of files that are written.
fn write_mode(flag: &str) -> Result<OpenMode, FileError> {
    const UNKNOWN: &str = "expected the flag w, wx, a, ax or r+";
    let write = OpenMode { write: true, create: true, ..OpenMode::default() };
    let append = OpenMode { append: true, create: true, ..OpenMode::default() };
    match flag {
        "w" | "w+" => Ok(OpenMode { truncate: true, ..write }),
        "wx" | "xw" | "wx+" => Ok(OpenMode { exclusive: true, ..write }),
        "a" | "a+" => Ok(append),
        "ax" | "xa" | "ax+" => Ok(OpenMode { exclusive: true, ..append }),
        "r+" => Ok(OpenMode { create: false, ..write }),
        _ => Err(FileError::with_hint(FileErrorCode::Invalid, UNKNOWN)),
    }
}

fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Link => "link",
        EntryKind::Special => "special",
    }
}

/// Creates a directory and those above it. Returns the first one that it has created.
async fn make_all(files: &RunFiles, path: &GuestPath) -> Result<Option<String>, FileError> {
    let mut first = None;
    let mut current = GuestPath::ROOT;
    for name in path.names() {
        current = current.join(name)?;
        if is_directory(files, &current).await? {
            continue;
        }
        match files.create_directory(&current).await {
            Ok(()) => {
                first.get_or_insert_with(|| current.to_string());
            }
            // Another operation of the script, or another program, may have created it meanwhile.
            Err(error) if error.code == FileErrorCode::Exists => {
                if !is_directory(files, &current).await? {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(first)
}

/// Whether there is a directory at a path; `false` if there is nothing.
///
/// # Errors
///
/// `NotDirectory` if there is something else.
async fn is_directory(files: &RunFiles, path: &GuestPath) -> Result<bool, FileError> {
    match files.metadata(path, true).await {
        Ok(metadata) if metadata.kind == EntryKind::Directory => Ok(true),
        Ok(_) => Err(FileErrorCode::NotDirectory.into()),
        Err(error) if error.code == FileErrorCode::NoEntry => Ok(false),
        Err(error) => Err(error),
    }
}

async fn make_temporary(context: &ExecutionContext, prefix: &str) -> Result<String, FileError> {
    for _ in 0..MAX_TRIES {
        // A replay has the recorded name.
        let random = short_random_id().map_err(|_| FileError::from(FileErrorCode::Io))?;
        let path = resolve(&format!("{prefix}{}", start(&random, RANDOM_LETTERS)))?;
        match context.files().create_directory(&path).await {
            Err(error) if error.code == FileErrorCode::Exists => {}
            result => return result.map(|()| path.to_string()),
        }
    }
    Err(FileErrorCode::Exists.into())
}

async fn copy(files: &RunFiles, from: &GuestPath, to: &GuestPath, exclusive: bool) -> Result<(), FileError> {
    const SAME: &str = "both paths are the same file";
    let source = files.open(from, OpenMode { read: true, ..OpenMode::default() }).await?;
    let metadata = source.metadata().await?;
    if metadata.kind == EntryKind::Directory {
        return Err(FileErrorCode::IsDirectory.into());
    }
    if files.metadata(to, true).await.is_ok_and(|existing| existing.id == metadata.id) {
        return Err(FileError::with_hint(FileErrorCode::Invalid, SAME));
    }
    let mode = OpenMode { write: true, create: true, truncate: true, exclusive, ..OpenMode::default() };
    let target = files.open(to, mode).await?;
    let mut offset = 0;
    loop {
        let part = source.read(offset, usize::MAX).await?;
        if part.is_empty() {
            return Ok(());
        }
        let length = part.len() as u64;
        target.write(offset, part).await?;
        offset += length;
    }
}

/// Answers a query for the content block of one of `files`, if `request` is one.
pub(crate) fn file_block(
    files: &Arc<RunFiles>,
    result_bytes: usize,
    request: &str,
) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
    #[derive(Deserialize)]
    struct Request {
        kind: String,
        file: FileBlock,
    }
    // No path and no type is longer than this.
    if request.len() > MAX_BLOCK_REQUEST {
        return None;
    }
    let Request { kind, file } = serde_json::from_str(request).ok()?;
    let files = Arc::clone(files);
    (kind == "fileBlock").then(|| async move { block(&files, result_bytes, file).await }.boxed())
}

/// The content block of a file: an image or audio as such, anything else as a resource.
pub(super) async fn block(
    files: &RunFiles,
    result_bytes: usize,
    block: FileBlock,
) -> Result<String, ToolError> {
    let FileBlock { path, mime_type } = block;
    // It waits with the file.
    if let Some(length) = mime_type.as_ref().map(String::len).filter(|&length| length > MAX_MEDIA_TYPE) {
        let message = format!("emit: the mimeType has {length} bytes, at most {MAX_MEDIA_TYPE} are possible");
        return Err(ToolError::new(ToolErrorCode::InvalidArguments, message));
    }
    let bytes = async { read_all(files, result_bytes, &resolve(&path)?).await };
    let shown = visible_preview(&path, MAX_SHOWN);
    let bytes = bytes.await.map_err(|error| {
        ToolError::new(
            ToolErrorCode::InvalidArguments,
            format!("emit: {}: {error}: `{shown}`", error.code.as_str()),
        )
    })?;
    let resolved = resolve(&path).map(|path| path.to_string()).unwrap_or_default();
    let mime_type = mime_type.unwrap_or_else(|| mime_of(&resolved, &bytes).to_owned());
    let kind = mime_type.split('/').next().unwrap_or_default();
    let block = match (kind, std::str::from_utf8(&bytes)) {
        ("image" | "audio", _) if mime_type != "image/svg+xml" => {
            json!({ "type": kind, "mimeType": mime_type, "data": STANDARD.encode(&bytes) })
        }
        (_, Ok(text)) => {
            json!({ "type": "resource", "resource": { "uri": uri(&resolved), "mimeType": mime_type, "text": text } })
        }
        (_, Err(_)) => json!({ "type": "resource", "resource": {
            "uri": uri(&resolved), "mimeType": mime_type, "blob": STANDARD.encode(&bytes),
        }}),
    };
    Ok(block.to_string())
}

/// A `file:` address of the path.
fn uri(path: &str) -> String {
    use std::fmt::Write as _;

    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// The type by the ending of the name.
fn mime_of(path: &str, bytes: &[u8]) -> &'static str {
    let ending =
        path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "json" => "application/json",
        "md" => "text/markdown",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        _ if std::str::from_utf8(bytes).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;

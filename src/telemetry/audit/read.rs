//! Reads the lines of a trail.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::append::{NO_HASH, read_end};
use crate::json;
use crate::storage::regular::open_regular;

/// The ending of each file of lines. The day precedes it.
pub(super) const ENDING: &str = ".jsonl";

/// Maximum bytes of a line. Lines of cx are far shorter.
pub(super) const MAX_LINE_BYTES: u64 = 1 << 20;

/// Maximum sequence number that is continued. A thousand lines a second take 70,000 years.
const MAX_SEQUENCE: u64 = 1 << 51;

/// One line of a trail.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditLine {
    /// The file's name.
    pub file: String,
    /// Number of the line in its file, from 1.
    pub number: u64,
    /// The line's text, without its terminator. Invalid UTF-8 is replaced.
    pub text: String,
    /// Its fields. `None` if it is not a JSON object, or has many more values than lines of cx.
    pub fields: Option<Map<String, Value>>,
    /// Whether the line has its terminator. The last line may be incomplete while it is written.
    pub is_complete: bool,
}

impl AuditLine {
    /// The text of a field.
    pub fn text_of(&self, field: &str) -> Option<&str> {
        self.fields.as_ref()?.get(field)?.as_str()
    }
}

/// Reads the lines of all files in order, and those that are appended later.
#[derive(Debug)]
pub struct AuditReader {
    directory: PathBuf,
    current: Option<CurrentFile>,
    /// The first file to read, if not the oldest.
    first: Option<String>,
}

/// The file from which lines are read now.
#[derive(Debug)]
struct CurrentFile {
    name: String,
    reader: BufReader<File>,
    /// Number of lines that were read of it.
    lines: u64,
    /// The offset of the next line.
    offset: u64,
}

impl CurrentFile {
    /// A file of which nothing was read. Its first line begins at this offset.
    fn new(name: String, file: File, offset: u64) -> Self {
        Self { name, reader: BufReader::new(file), lines: 0, offset }
    }
}

impl AuditReader {
    /// Reads from the first line of the trail in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), current: None, first: None }
    }

    /// Reads from the first line of the newest file.
    pub(super) fn of_newest_file(directory: &Path) -> io::Result<Self> {
        let first = files(directory)?.pop();
        Ok(Self { directory: directory.to_owned(), current: None, first })
    }

    /// Reads from the first line that begins in the last `bytes` of the trail, for programs that show recent events: a
    /// trail may cover years. Line numbers of the first file start there.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn near_end(directory: impl Into<PathBuf>, bytes: u64) -> io::Result<Self> {
        let directory = directory.into();
        let mut left = bytes;
        let mut first = None;
        for name in files(&directory)?.into_iter().rev() {
            let size = match fs::metadata(directory.join(&name)) {
                Ok(metadata) => metadata.len(),
                // Removed meanwhile, because it is too old.
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            };
            if size > left {
                // If a file extends across the bound, reading starts at the beginning of a line.
                let begins = line_after(&directory.join(&name), size - left)?;
                // If there is no line end there, the following files are read.
                if begins.is_some() || first.is_none() {
                    first = Some((name, begins.unwrap_or(size)));
                }
                break;
            }
            left -= size;
            first = Some((name, 0));
        }
        let Some((name, begins)) = first else { return Ok(Self::new(directory)) };
        let file = open(&directory.join(&name))?;
        Ok(Self { directory, current: Some(CurrentFile::new(name, file, begins)), first: None })
    }

    /// The next line, or `None` if there is none now. An incomplete line is returned only if `incomplete` is set;
    /// otherwise the result is `None`, and a later call reads it again.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn next_line(&mut self, incomplete: bool) -> io::Result<Option<AuditLine>> {
        self.next_line_with(incomplete, || ())
    }

    /// The same. `at_end` is called where other processes may write: when the current file has no other line, before it
    /// is known whether there is another file.
    fn next_line_with(
        &mut self,
        incomplete: bool,
        mut at_end: impl FnMut(),
    ) -> io::Result<Option<AuditLine>> {
        let mut next = None;
        loop {
            if let Some(line) = self.line_of_current(incomplete)? {
                return Ok(Some(line));
            }
            if next.is_none() {
                at_end();
                next = self.name_after_current()?;
                // What was appended before the next file was made comes first. Nothing is appended after that.
                if self.current.is_some() && next.is_some() {
                    continue;
                }
            }
            let Some(name) = next.take() else { return Ok(None) };
            let file = open(&self.directory.join(&name))?;
            self.current = Some(CurrentFile::new(name, file, 0));
        }
    }

    /// The next line of the current file.
    fn line_of_current(&mut self, incomplete: bool) -> io::Result<Option<AuditLine>> {
        let Some(CurrentFile { name, reader, lines, offset }) = &mut self.current else { return Ok(None) };
        let mut bytes = Vec::new();
        // A whole line stays as it is. What was read of an incomplete one may have been set aside since.
        if !reader.buffer().contains(&b'\n') {
            reader.seek(SeekFrom::Start(*offset))?;
        }
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)?;
        let is_complete = bytes.last() == Some(&b'\n');
        if read == 0 {
            return Ok(None);
        }
        if !(is_complete || incomplete) {
            // A line that is too long may have its end in the buffer.
            reader.seek(SeekFrom::Start(*offset))?;
            return Ok(None);
        }
        bytes.truncate(bytes.len() - usize::from(is_complete));
        *lines += 1;
        *offset += read as u64;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // A trail may be another's: a line as a tree can take ninety times as much.
        let is_small = json::check(&text, json::budget(text.len())).is_ok();
        let fields = is_small.then(|| serde_json::from_slice(&bytes).ok()).flatten();
        let (file, number) = (name.clone(), *lines);
        Ok(Some(AuditLine { file, number, text, fields, is_complete }))
    }

    /// The name of the file after the current one, or of the first.
    fn name_after_current(&self) -> io::Result<Option<String>> {
        let current = self.current.as_ref().map(|current| current.name.as_str());
        Ok(files(&self.directory)?.into_iter().find(|name| match current {
            Some(current) => name.as_str() > current,
            None => self.first.as_ref().is_none_or(|first| name >= first),
        }))
    }
}

/// The offset of the first line that begins at or after this offset of a file. `None` if there is none within the
/// maximum length of a line.
fn line_after(path: &Path, offset: u64) -> io::Result<Option<u64>> {
    let Some(before) = offset.checked_sub(1) else { return Ok(Some(0)) };
    let mut file = open(path)?;
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    let read = BufReader::new(file.take(MAX_LINE_BYTES)).read_until(b'\n', &mut bytes)?;
    Ok((bytes.last() == Some(&b'\n')).then_some(before + read as u64))
}

/// The names of the files with lines, the oldest first. None if there is no directory.
pub(super) fn files(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| day(name).is_some()).collect();
    names.sort();
    Ok(names)
}

/// The day in a file's name; `None` if it is not a file of lines.
pub(super) fn day(name: &str) -> Option<String> {
    let day = name.strip_suffix(ENDING)?;
    let is_day = day.len() == "2026-11-22".len()
        && day.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_day.then(|| day.to_owned())
}

/// The sequence number and the hash of a line; `None` if it is not a line of a trail. Both are written into the next line
/// as they are, and the number grows with each: what another program has written is not continued.
pub(super) fn chain_fields(line: &[u8]) -> Option<(u64, String)> {
    let fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let hash = fields.get("hash")?.as_str()?;
    let is_hash = hash.len() == NO_HASH.len() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let sequence = fields.get("seq")?.as_u64()?;
    (is_hash && sequence <= MAX_SEQUENCE).then(|| (sequence, hash.to_owned()))
}

/// The sequence number and the hash of a file's last line; 0 and no hash if it has none.
pub(super) fn last_of(path: &Path) -> io::Result<(u64, String)> {
    let mut file = open(path)?;
    let bytes = file.metadata()?.len();
    let (end, _) = tail(&mut file, bytes)?;
    let found = end.split(|&byte| byte == b'\n').rev().find_map(chain_fields);
    Ok(found.unwrap_or_else(|| (0, NO_HASH.to_owned())))
}

/// The end of a file with its last lines, and the offset at which it begins.
pub(super) fn tail(file: &mut File, bytes: u64) -> io::Result<(Vec<u8>, u64)> {
    read_end(file, bytes, 2 * MAX_LINE_BYTES)
}

/// A small file of the trail as text; `None` if it does not exist.
pub(super) fn small_file(path: &Path) -> io::Result<Option<String>> {
    match open(path) {
        Ok(file) => {
            let mut text = String::new();
            file.take(MAX_LINE_BYTES).read_to_string(&mut text)?;
            Ok(Some(text))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file of the trail. Its error names the file, because a trail has many.
fn open(path: &Path) -> io::Result<File> {
    open_regular(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        _ => error,
    })
}

#[cfg(test)]
mod tests;

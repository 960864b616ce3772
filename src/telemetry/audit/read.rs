//! Reads the lines of a trail.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::append::{NO_HASH, read_end};
use crate::json;
use crate::storage::regular::open_regular;

/// The ending of each file of lines. The day precedes it.
pub(super) const ENDING: &str = ".jsonl";

/// Maximum bytes of a line. Lines of cx are far shorter.
pub(super) const MAX_LINE_BYTES: u64 = 1 << 20;

/// Maximum bytes in which the end of a line that is too long is searched, and the last line of a file that ends with
/// something else. A file of terabytes without a line end takes no space on a disk, because nothing was ever written to
/// it.
const MAX_REST_BYTES: u64 = 64 << 20;

/// Bytes of a file's beginning by which it is known: the first line's time and hash.
const START_BYTES: usize = 256;

/// Maximum sequence number that is continued. A thousand lines a second take 70,000 years.
const MAX_SEQUENCE: u64 = 1 << 51;

#[cfg(test)]
thread_local! {
    /// Number of listings of directories on this thread.
    static LISTINGS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// One line of a trail.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditLine {
    /// The file's name.
    pub file: String,
    /// Number of the line in its file, from 1.
    pub number: u64,
    /// The line's text, without its terminator. Invalid UTF-8 is replaced. Of a line of more than 1 MiB only the start.
    pub text: String,
    /// Its fields. `None` if it is not a JSON object, is longer than 1 MiB, or has many more values than lines of cx.
    pub fields: Option<Map<String, Value>>,
    /// Whether the line has its terminator, or is too long to be one that is being written. The last line may be
    /// incomplete while it is written.
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
    /// The names of the next files. The directory is listed again when they have been read: a listing for each file
    /// would take quadratic time.
    next: VecDeque<String>,
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
    /// Its first bytes, as they were last read.
    start: Vec<u8>,
}

impl CurrentFile {
    /// A file of which nothing was read. Its first line begins at this offset.
    fn new(name: String, file: File, offset: u64) -> Self {
        Self { name, reader: BufReader::new(file), lines: 0, offset, start: Vec::new() }
    }

    /// Whether the file begins as before. If not, it was emptied in place: nothing else changes what is written.
    fn begins_as_before(&mut self) -> io::Result<bool> {
        let mut start = vec![0; START_BYTES];
        let read = self.reader.get_ref().read_at(&mut start, 0)?;
        start.truncate(read);
        let mut both = start.iter().zip(&self.start);
        let is_same = both.all(|(now, before)| now == before) && (read > 0 || self.start.is_empty());
        if is_same {
            self.start = start;
        }
        Ok(is_same)
    }
}

impl AuditReader {
    /// Reads from the first line of the trail in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), current: None, first: None, next: VecDeque::new() }
    }

    /// Reads from the first line of the newest file.
    pub(super) fn of_newest_file(directory: &Path) -> io::Result<Self> {
        let first = files(directory)?.pop();
        Ok(Self { first, ..Self::new(directory) })
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
                // If a file extends across the bound, reading starts at the beginning of a line, or within one that is
                // too long: its rest is no line either.
                let begins = line_after(&directory.join(&name), size - left)?.unwrap_or(size - left);
                first = Some((name, begins));
                break;
            }
            left -= size;
            first = Some((name, 0));
        }
        let Some((name, begins)) = first else { return Ok(Self::new(directory)) };
        let file = open(&directory.join(&name))?;
        Ok(Self { current: Some(CurrentFile::new(name, file, begins)), ..Self::new(directory) })
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
        let mut has_next = false;
        loop {
            if let Some(line) = self.line_of_current(incomplete)? {
                return Ok(Some(line));
            }
            if !has_next {
                at_end();
                has_next = self.has_next_file()?;
                // What was appended before the next file was made comes first. Nothing is appended after that.
                if self.current.is_some() && has_next {
                    continue;
                }
            }
            if let Some(file) = self.replacement(incomplete)? {
                // What was appended before the other file was moved away comes first.
                if let Some(line) = self.line_of_current(incomplete)? {
                    return Ok(Some(line));
                }
                self.current = Some(file);
                has_next = false;
                continue;
            }
            let Some(name) = self.next.pop_front() else { return Ok(None) };
            has_next = false;
            let path = self.directory.join(&name);
            match open(&path) {
                Ok(file) => self.current = Some(CurrentFile::new(name, file, 0)),
                // Removed since the directory was listed, because it is too old.
                Err(error) if is_removed(&error, &path) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next line of the current file.
    fn line_of_current(&mut self, incomplete: bool) -> io::Result<Option<AuditLine>> {
        let Some(current) = &mut self.current else { return Ok(None) };
        // A whole line stays as it is. What was read of an incomplete one may have been set aside since.
        if !current.reader.buffer().contains(&b'\n') {
            if !current.begins_as_before()? {
                return Ok(None);
            }
            current.reader.seek(SeekFrom::Start(current.offset))?;
        }
        let CurrentFile { name, reader, lines, offset, .. } = current;
        let mut bytes = Vec::new();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)?;
        let has_end = bytes.last() == Some(&b'\n');
        if read == 0 {
            return Ok(None);
        }
        // No process writes such a line. If it counted as one that is being written, it would hide all lines after it.
        let is_too_long = !has_end && read as u64 == MAX_LINE_BYTES;
        if !(has_end || is_too_long || incomplete) {
            reader.seek(SeekFrom::Start(*offset))?;
            return Ok(None);
        }
        bytes.truncate(bytes.len() - usize::from(has_end));
        *lines += 1;
        *offset += read as u64;
        if is_too_long {
            let rest = reader.by_ref().take(MAX_REST_BYTES).skip_until(b'\n')? as u64;
            *offset = if rest < MAX_REST_BYTES { *offset + rest } else { reader.seek(SeekFrom::End(0))? };
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // A trail may be another's: a line as a tree can take ninety times as much.
        let is_small = !is_too_long && json::check(&text, json::budget(text.len())).is_ok();
        let fields = is_small.then(|| serde_json::from_slice(&bytes).ok()).flatten();
        let (file, number) = (name.clone(), *lines);
        Ok(Some(AuditLine { file, number, text, fields, is_complete: has_end || is_too_long }))
    }

    /// The file that stands in place of the current one, if that was moved away, removed or emptied: writers make a new
    /// one of the same day, or begin this one again. One that was emptied is not read again after an `incomplete` line,
    /// which the next writer sets aside.
    fn replacement(&mut self, incomplete: bool) -> io::Result<Option<CurrentFile>> {
        let Some(current) = &mut self.current else { return Ok(None) };
        let path = self.directory.join(&current.name);
        let identity = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
        let known = identity(&current.reader.get_ref().metadata()?);
        let found = match fs::metadata(&path) {
            Ok(metadata) if identity(&metadata) == known => {
                if incomplete {
                    return Ok(None);
                }
                if current.begins_as_before()? {
                    // A writer may have removed lines of which it could write a part only.
                    current.offset = current.offset.min(metadata.len());
                    return Ok(None);
                }
                open(&path)
            }
            Ok(_) => open(&path),
            Err(error) => Err(error),
        };
        match found {
            Ok(file) => Ok(Some(CurrentFile::new(current.name.clone(), file, 0))),
            // There is none yet, or it is gone again.
            Err(error) if is_removed(&error, &path) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a file after the current one, or a first one. Its name is the first of `next`.
    fn has_next_file(&mut self) -> io::Result<bool> {
        if self.next.is_empty() {
            let current = self.current.as_ref().map(|current| current.name.as_str());
            let is_next = |name: &String| match current {
                Some(current) => name.as_str() > current,
                None => self.first.as_ref().is_none_or(|first| name >= first),
            };
            self.next = files(&self.directory)?.into_iter().filter(is_next).collect();
        }
        Ok(!self.next.is_empty())
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
    #[cfg(test)]
    LISTINGS.set(LISTINGS.get() + 1);
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

/// The sequence number and the hash of a line; `None` if it is not a line of a trail, or too long for one. Both are
/// written into the next line as they are, and the number grows with each: what another program has written is not
/// continued.
pub(super) fn chain_fields(line: &[u8]) -> Option<(u64, String)> {
    if line.len() as u64 >= MAX_LINE_BYTES {
        return None;
    }
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

/// The end of a file with its last lines, and the offset at which it begins. It has 2 MiB at most, or 64 MiB if those
/// have no line of a trail: after a power failure a file may end with megabytes of zeros.
pub(super) fn tail(file: &mut File, bytes: u64) -> io::Result<(Vec<u8>, u64)> {
    let (end, begins) = read_end(file, bytes, 2 * MAX_LINE_BYTES)?;
    let mut lines = end.split(|&byte| byte == b'\n').rev();
    if begins == 0 || lines.any(|line| chain_fields(line).is_some()) {
        return Ok((end, begins));
    }
    read_end(file, bytes, MAX_REST_BYTES)
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

/// Whether a file could not be opened because it was removed, and not because it is a link that leads to none.
fn is_removed(error: &io::Error, path: &Path) -> bool {
    error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err()
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

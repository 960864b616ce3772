//! Checks a trail: each line's form and hash, the chain, and the checkpoints.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, ErrorKind};
use std::path::Path;

use serde_json::{Map, Value};

use super::append::{CHECKPOINT, NO_HASH, PUBLIC_KEY};
use super::canonical;
use super::note::{Checkpoint, Verifier};
use super::read::{AuditLine, AuditReader, small_file};
use crate::storage::files::sha256;
use crate::text::{preview, start_bytes};

/// Maximum number of problems that are listed; others are counted.
const MAX_LISTED: usize = 100;

/// Maximum number of open calls, of writers and of removed files that are tracked.
const MAX_KEPT: usize = 100_000;

/// Maximum bytes of a text that is stored of a line. Ids and hashes are shorter. The trail may be another user's, with
/// texts of a megabyte.
const MAX_TEXT: usize = 128;

/// What a trail is compared with, in addition to the content of its directory.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// The public key, if it is known from elsewhere. Otherwise the key in the directory is used, which the owner of
    /// the directory can replace.
    pub key: Option<String>,
    /// Checkpoints that were stored elsewhere, as signed notes.
    pub checkpoints: Vec<String>,
    /// Whether only the newest file is checked, that of the last day with events. Missing lines before it are then not
    /// detected.
    pub newest_file_only: bool,
}

/// A problem of a trail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditProblem {
    /// The file's name.
    pub file: String,
    /// The line in it, from 1; 0 for a problem of the trail as a whole.
    pub line: u64,
    /// What is wrong.
    pub problem: String,
}

/// The result of a verification.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Verification {
    /// Number of lines.
    pub lines: u64,
    /// Sequence numbers of the first and the last line.
    pub first: u64,
    /// See `first`.
    pub last: u64,
    /// Hash of the last line.
    pub head: String,
    /// The number of processes that have written.
    pub writers: usize,
    /// The number of checkpoints that agree with the chain.
    pub checkpoints: usize,
    /// The last line that a checkpoint of the directory covers. Lines after it could be cut off without a trace.
    pub signed_through: u64,
    /// The number of calls that were about to be sent and have no end, because their process was killed.
    pub open_calls: usize,
    /// The public key that the checkpoints were checked with.
    pub key: Option<String>,
    /// Notable facts that are not problems: gaps that the trail itself reports, and times that go back.
    pub notices: Vec<String>,
    /// The first hundred problems.
    pub problems: Vec<AuditProblem>,
    /// The number of all problems.
    pub problem_count: usize,
}

impl Verification {
    /// Whether there are no problems.
    pub fn is_ok(&self) -> bool {
        self.problem_count == 0
    }
}

/// The state of a verification.
struct Check {
    newest_file_only: bool,
    found: Verification,
    verifier: Option<Verifier>,
    /// Checkpoints that were not reached yet, and their origin.
    expected: Vec<(Checkpoint, String)>,
    previous: Option<Previous>,
    writers: BTreeSet<String>,
    open: HashSet<(String, u64)>,
    /// Ends of files that retention has removed: sequence number and hash of the last line.
    removed: HashSet<(u64, String)>,
}

struct Previous {
    sequence: u64,
    hash: String,
    at: String,
}

/// Checks the trail in `directory`.
///
/// # Errors
///
/// If its files cannot be read, or an option is not a valid key or checkpoint.
pub fn verify(directory: &Path, options: &VerifyOptions) -> io::Result<Verification> {
    let known = match &options.key {
        Some(key) => Some(key.clone()),
        None => small_file(&directory.join(PUBLIC_KEY))?,
    };
    let verifier = known.as_deref().and_then(Verifier::parse);
    if options.key.is_some() && verifier.is_none() {
        return Err(invalid("the key is not a public key of a trail"));
    }
    let mut check = Check {
        newest_file_only: options.newest_file_only,
        found: Verification { key: verifier.as_ref().map(Verifier::render), ..Verification::default() },
        verifier,
        expected: Vec::new(),
        previous: None,
        writers: BTreeSet::new(),
        open: HashSet::new(),
        removed: HashSet::new(),
    };
    for (position, note) in options.checkpoints.iter().enumerate() {
        let whence = format!("the kept checkpoint {}", position + 1);
        let checkpoint = check.verifier.as_ref().and_then(|key| Checkpoint::parse(key.verify(note)?));
        match checkpoint {
            Some(checkpoint) => check.expected.push((checkpoint, whence)),
            None => check.problem("", 0, format!("{whence} is not signed with the trail's key")),
        }
    }
    let last_checkpoint = small_file(&directory.join(CHECKPOINT))?;
    let has_checkpoint = last_checkpoint.is_some();
    if let Some(note) = last_checkpoint {
        match check.verifier.as_ref().and_then(|key| Checkpoint::parse(key.verify(&note)?)) {
            Some(checkpoint) => {
                check.found.signed_through = checkpoint.size;
                check.expected.push((checkpoint, "the last checkpoint".to_owned()));
            }
            None => check.problem(CHECKPOINT, 0, "its signature is not that of the trail's key".to_owned()),
        }
    }
    let mut reader = if options.newest_file_only {
        AuditReader::of_newest_file(directory)?
    } else {
        AuditReader::new(directory)
    };
    let mut first_file = None;
    while let Some(line) = reader.next_line(true)? {
        first_file.get_or_insert_with(|| line.file.clone());
        check.line(&line);
    }
    if !has_checkpoint && check.found.lines > 0 {
        let problem = "there is no last checkpoint, which each trail has from its first line on: it was removed, or \
            lost with the machine's power, and lines may be missing at the end";
        check.problem(CHECKPOINT, 0, problem.to_owned());
    }
    check.end(first_file.as_deref().unwrap_or_default());
    Ok(check.found)
}

impl Check {
    fn problem(&mut self, file: &str, line: u64, problem: String) {
        self.found.problem_count += 1;
        if self.found.problems.len() < MAX_LISTED {
            self.found.problems.push(AuditProblem { file: file.to_owned(), line, problem });
        }
    }

    fn notice(&mut self, notice: String) {
        if self.found.notices.len() < MAX_LISTED {
            self.found.notices.push(notice);
        }
    }

    fn line(&mut self, line: &AuditLine) {
        self.found.lines += 1;
        let (file, number) = (line.file.as_str(), line.number);
        if !line.is_complete {
            let notice = "the last line is incomplete: its writer was killed or is writing; the next writer sets \
                it aside";
            return self.notice(format!("{file}:{number}: {notice}"));
        }
        let Some(fields) = &line.fields else {
            return self.problem(file, number, "it is not a JSON object".to_owned());
        };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let sequence = fields.get("seq").and_then(Value::as_u64).unwrap_or_default();
        let (hash, before) = (text("hash"), text("prev"));
        let mut hashed = fields.clone();
        hashed.shift_remove("hash");
        if sha256(&canonical::object(&hashed)) != hash || canonical::object(fields) != line.text.as_bytes() {
            self.problem(file, number, format!("line {sequence} is not what was written: its hash differs"));
        }
        self.chain(line, sequence, &before, &text("at"));
        self.content(line, fields, sequence, &before);
        while let Some(position) = self.expected.iter().position(|(expected, _)| expected.size == sequence) {
            let (checkpoint, whence) = self.expected.swap_remove(position);
            self.compare(file, number, &checkpoint, &hash, &whence);
        }
        self.found.first = if self.found.first == 0 { sequence } else { self.found.first };
        self.found.last = sequence;
        self.found.head.clone_from(&hash);
        self.previous = Some(Previous { sequence, hash, at: text("at") });
    }

    /// Compares a line with the one before.
    fn chain(&mut self, line: &AuditLine, sequence: u64, before: &str, at: &str) {
        let (file, number) = (line.file.as_str(), line.number);
        let Some(previous) = self.previous.take() else {
            if self.newest_file_only {
                // The preceding line is in another file.
            } else if sequence > 1 {
                // A later line about retention may explain it.
                self.expected_start(sequence, before);
            } else if before != NO_HASH {
                self.problem(file, number, "the first line follows another".to_owned());
            }
            return;
        };
        if previous.sequence.checked_add(1) != Some(sequence) {
            let problem = if sequence > previous.sequence {
                format!("{} lines are missing before line {sequence}", sequence - previous.sequence - 1)
            } else {
                format!("line {sequence} follows line {}", previous.sequence)
            };
            self.problem(file, number, problem);
        } else if before != previous.hash {
            let problem = format!("line {} was changed, or line {sequence} was", previous.sequence);
            self.problem(file, number, problem);
        }
        if at < previous.at.as_str() {
            let (before, now) = (quoted(&previous.at), quoted(at));
            self.notice(format!("{file}:{number}: the time goes back from {before} to {now}"));
        }
    }

    /// Records that the trail begins with a later line.
    fn expected_start(&mut self, sequence: u64, before: &str) {
        let checkpoint = Checkpoint { origin: String::new(), size: sequence - 1, hash: before.to_owned() };
        self.expected.push((checkpoint, String::new()));
    }

    /// Processes the event of a line that concerns the trail itself.
    fn content(&mut self, line: &AuditLine, fields: &Map<String, Value>, sequence: u64, before: &str) {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let (file, number) = (line.file.as_str(), line.number);
        if self.writers.len() < MAX_KEPT {
            self.writers.insert(kept(text("writer")));
        }
        let call = || (kept(text("run")), fields.get("call").and_then(Value::as_u64).unwrap_or_default());
        match text("event") {
            "call.will" if self.open.len() < MAX_KEPT => {
                self.open.insert(call());
            }
            "call.did" => {
                self.open.remove(&call());
            }
            "checkpoint" => {
                let note = text("note");
                match self.verifier.as_ref().and_then(|key| Checkpoint::parse(key.verify(note)?)) {
                    Some(checkpoint) if checkpoint.size.checked_add(1) == Some(sequence) => {
                        self.found.signed_through = self.found.signed_through.max(checkpoint.size);
                        self.compare(file, number, &checkpoint, before, "the checkpoint");
                    }
                    _ => self.problem(
                        file,
                        number,
                        "its checkpoint is not signed with the trail's key".to_owned(),
                    ),
                }
            }
            "retention" if self.removed.len() < MAX_KEPT => {
                let through = fields.get("through").and_then(Value::as_u64).unwrap_or_default();
                self.removed.insert((through, kept(text("throughHash"))));
            }
            "lines.dropped" => {
                let count = fields.get("count").and_then(Value::as_u64).unwrap_or_default();
                let reason = quoted(text("reason"));
                self.notice(format!("{file}:{number}: {count} events were not written: {reason}"));
            }
            "line.damaged" => {
                let aside = quoted(text("file"));
                self.notice(format!("{file}:{number}: an incomplete line was set aside: {aside}"));
            }
            _ => {}
        }
    }

    fn compare(&mut self, file: &str, number: u64, checkpoint: &Checkpoint, hash: &str, whence: &str) {
        if checkpoint.hash == hash {
            self.found.checkpoints += 1;
        } else {
            let size = checkpoint.size;
            self.problem(
                file,
                number,
                format!("{whence} has another hash of line {size}: lines were rewritten"),
            );
        }
    }

    /// Checks that remain when all lines were read.
    fn end(&mut self, first_file: &str) {
        let (first, last) = (self.found.first, self.found.last);
        for (checkpoint, whence) in std::mem::take(&mut self.expected) {
            let size = checkpoint.size;
            if whence.is_empty() {
                if self.removed.contains(&(size, checkpoint.hash)) {
                    self.notice(format!("{size} lines were removed after their retention time"));
                } else {
                    let problem = format!(
                        "{size} lines before it are missing, and no line says that they were removed"
                    );
                    self.problem(first_file, 1, problem);
                }
            } else if size > last {
                let problem = format!("{} lines are missing at the end: {whence} has {size}", size - last);
                self.problem("", 0, problem);
            } else if size > 0 && size < first {
                self.notice(format!("{whence} is of line {size}, which was removed"));
            } else if size > 0 {
                self.problem("", 0, format!("{whence} is of line {size}, which is missing"));
            }
        }
        if self.verifier.is_none() && self.found.lines > 0 {
            self.problem(PUBLIC_KEY, 0, "there is no public key: no checkpoint can be checked".to_owned());
        }
        self.found.writers = self.writers.len();
        self.found.open_calls = self.open.len();
    }
}

/// The part of a line's text that is compared with others.
fn kept(text: &str) -> String {
    start_bytes(text, MAX_TEXT).to_owned()
}

/// A text of a line in a message.
fn quoted(text: &str) -> String {
    preview(text, MAX_TEXT)
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests;

//! Appends lines to the files of a trail, which several processes may share.
//!
//! All processes append to one chain under one lock, and read the last line's hash again if another process has written
//! since. Separate chains would need no lock, but then the whole file of a process could be removed without a trace,
//! and there would be no order between processes. The lock is held while a batch is written, well below a millisecond,
//! and never by a thread of a run.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use super::note::{Checkpoint, Signer};
use super::options::AuditOptions;
use super::read;
use super::record::Fields;
use super::records::{Record, Records};
use crate::storage::files::sha256;
use crate::storage::private::{self, PrivateDirectory};
use crate::text::ids::random_bytes;
use crate::text::{rfc3339, rfc3339_seconds, start_of_day};

/// The files for the lock, the secret key, the public key, and the last checkpoint.
const LOCK: &str = "lock";
pub(super) const SECRET_KEY: &str = "key";
pub(super) const PUBLIC_KEY: &str = "key.pub";
pub(super) const CHECKPOINT: &str = "checkpoint";

/// The hash before the first line.
pub(super) const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Maximum bytes of the memory for lines that is kept from one batch to the next.
const MAX_KEPT_TEXT: usize = 1 << 20;

/// Maximum bytes of a key's file.
const MAX_KEY_BYTES: u64 = 4 << 10;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// One process's access to the files of a trail.
pub(super) struct Appender {
    options: AuditOptions,
    signer: Option<Signer>,
    head: Option<Head>,
    /// Whether lines were written since the last checkpoint.
    is_unsigned: bool,
    /// The memory of the last batch's lines. To grow to a hundred kilobytes again is a visible part of the
    /// writer's time.
    text: Vec<u8>,
}

/// The end of the chain, as this process last wrote or read it.
#[derive(Clone)]
struct Head {
    file: String,
    inode: u64,
    bytes: u64,
    sequence: u64,
    hash: String,
}

/// An incomplete line at the end of a day's file, whose writer was killed or whose system failed.
struct IncompleteLine {
    day: String,
    /// Where it begins.
    begins: u64,
    bytes: Vec<u8>,
}

/// An open trail whose lock is held.
struct Locked<'a> {
    directory: PrivateDirectory,
    path: &'a Path,
    _lock: File,
}

impl Appender {
    pub(super) fn new(options: AuditOptions) -> Self {
        Self { options, signer: None, head: None, is_unsigned: false, text: Vec::new() }
    }

    /// Appends a line for each record, and performs other due work: a new day's file, removal of old files. Either all
    /// lines are written or none. Returns whether a [`checkpoint`](Self::checkpoint) is due. Blocks.
    ///
    /// # Errors
    ///
    /// If the lines cannot be written. Once they are, a file that cannot be removed is only logged: the lines are not
    /// lost.
    pub(super) fn append(&mut self, records: &Records, writer: &str) -> io::Result<bool> {
        let options = self.options.clone();
        let locked = Locked::new(&options.directory)?;
        self.prepare_key(&locked)?;
        let names = locked.day_files()?;
        let (mut head, incomplete) = self.find_head(&locked, &names)?;
        let damaged = incomplete.iter().map(|line| locked.set_aside(line));
        let damaged = damaged.collect::<io::Result<Vec<Fields>>>()?;
        if names.is_empty() {
            // A trail has a checkpoint before it has a line, so a trail without a checkpoint has lost it.
            locked.replace(CHECKPOINT, &self.sign(&head))?;
        }
        let today = date(SystemTime::now());
        // If the clock goes back, the latest file is still used.
        let day = names.last().map_or(today.clone(), |last| today.max(last.clone()));
        let (retention, expired) =
            if names.contains(&day) { (None, Vec::new()) } else { self.expired(&locked, &names)? };
        let mut own = Records::default();
        let damaged = damaged.into_iter().map(|fields| ("line.damaged", fields));
        for (event, fields) in damaged.chain(retention.map(|fields| ("retention", fields))) {
            own.push(&stamped(event, writer, fields));
        }
        let (mut text, mut line) = (std::mem::take(&mut self.text), Vec::new());
        text.clear();
        let interval = u64::from(options.checkpoint_lines.max(1));
        for record in own.texts().chain(records.texts()) {
            head.add(record, &mut text, &mut line);
            if head.sequence.is_multiple_of(interval) {
                let mut checkpoint = Records::default();
                checkpoint.push(&stamped("checkpoint", writer, vec![("note", self.sign(&head).into())]));
                for record in checkpoint.texts() {
                    head.add(record, &mut text, &mut line);
                }
            }
        }
        let name = format!("{day}{}", read::ENDING);
        (head.inode, head.bytes) = locked.append(&name, &text).inspect_err(|_| self.head = None)?;
        head.file = day;
        if text.capacity() <= MAX_KEPT_TEXT {
            self.text = text;
        }
        // Only after the line that says so is written.
        for file in expired {
            if let Err(error) = locked.directory.remove(&file) {
                tracing::warn!(%error, file, "a file of the audit trail that is too old is not removed");
            }
        }
        let is_due =
            self.head.as_ref().is_none_or(|before| before.sequence / interval != head.sequence / interval);
        self.is_unsigned = true;
        self.head = Some(head);
        Ok(is_due)
    }

    /// Signs the end of the chain, if this process has written since the last checkpoint.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(super) fn checkpoint(&mut self) -> io::Result<()> {
        if !self.is_unsigned {
            return Ok(());
        }
        let options = self.options.clone();
        let locked = Locked::new(&options.directory)?;
        let names = locked.day_files()?;
        // Lines of other processes are signed too.
        let head = self.find_head(&locked, &names)?.0;
        locked.replace(CHECKPOINT, &self.sign(&head))?;
        self.head = Some(head);
        self.is_unsigned = false;
        Ok(())
    }

    /// A signed checkpoint of the end of the chain. Blocks.
    fn signed_head(&mut self) -> io::Result<String> {
        let options = self.options.clone();
        let locked = Locked::new(&options.directory)?;
        // A copy of a trail has no key. A new one would replace the public key that proves what the copy contains.
        let missing = || {
            let message =
                format!("{} is missing, and only that key signs the trail", locked.secret_key().display());
            io::Error::new(ErrorKind::NotFound, message)
        };
        self.signer = Some(locked.read_key()?.ok_or_else(missing)?);
        let names = locked.day_files()?;
        let (head, _) = self.find_head(&locked, &names)?;
        Ok(self.sign(&head))
    }

    fn sign(&self, head: &Head) -> String {
        let Some(signer) = &self.signer else { return String::new() };
        let origin = signer.verifier().name;
        signer.sign(&Checkpoint { origin, size: head.sequence, hash: head.hash.clone() }.render())
    }

    /// Reads the key, or makes it at the first use.
    fn prepare_key(&mut self, locked: &Locked<'_>) -> io::Result<()> {
        if self.signer.is_some() {
            return Ok(());
        }
        let signer = match locked.read_key()? {
            Some(signer) => signer,
            None => {
                let id = random_bytes::<4>()?;
                let made = Signer::generate(&format!("cx-audit-{}", hex::encode(id)));
                let (secret, signer) = made.ok_or_else(|| {
                    io::Error::new(ErrorKind::Unsupported, "the system has no random numbers")
                })?;
                // The public half is written first: nothing can be signed with it alone.
                locked.replace(PUBLIC_KEY, &format!("{}\n", signer.verifier().render()))?;
                locked.replace(SECRET_KEY, &format!("{secret}\n"))?;
                signer
            }
        };
        self.signer = Some(signer);
        Ok(())
    }

    /// Finds the end of the chain, and incomplete lines. Changes nothing: only who writes the next line, which reports
    /// them, sets them aside.
    fn find_head(&self, locked: &Locked<'_>, names: &[String]) -> io::Result<(Head, Vec<IncompleteLine>)> {
        let mut incomplete = Vec::new();
        for day in names.iter().rev() {
            let name = format!("{day}{}", read::ENDING);
            let mut file = locked.directory.open(&name, OFlags::RDONLY)?;
            let metadata = private::check_file(&file, &locked.path.join(&name))?;
            let known = self.head.as_ref().filter(|head| {
                head.file == *day && head.inode == metadata.ino() && head.bytes == metadata.len()
            });
            if let Some(head) = known {
                return Ok((head.clone(), incomplete));
            }
            let (tail, begins) = read::tail(&mut file, metadata.len())?;
            let complete = tail.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            // A line whose beginning was not found stays where it is.
            if complete < tail.len() && (complete > 0 || begins == 0) {
                let (begins, bytes) = (begins + complete as u64, tail[complete..].to_vec());
                incomplete.push(IncompleteLine { day: day.clone(), begins, bytes });
            }
            let lines = tail[..complete].split(|&byte| byte == b'\n').rev();
            let mut chained = lines.filter_map(read::chain_fields);
            if let Some((sequence, hash)) = chained.next() {
                let (inode, bytes) = (metadata.ino(), begins + complete as u64);
                return Ok((Head { file: day.clone(), inode, bytes, sequence, hash }, incomplete));
            }
        }
        let hash = NO_HASH.to_owned();
        Ok((Head { file: String::new(), inode: 0, bytes: 0, sequence: 0, hash }, incomplete))
    }

    /// The files that are older than the retention time, and the fields of the line about them, by which a verifier
    /// knows where the chain begins. Their age is that at the newest file, and not now: the clock may be ahead for a
    /// moment. The newest file always stays, because it contains the end.
    fn expired(&self, locked: &Locked<'_>, names: &[String]) -> io::Result<(Option<Fields>, Vec<String>)> {
        let Some((newest, earlier)) = names.split_last() else { return Ok((None, Vec::new())) };
        // cx gives no file a name that is no date.
        let Some((days, newest)) = self.options.retention_days.zip(start_of_day(newest)) else {
            return Ok((None, Vec::new()));
        };
        let oldest = newest.checked_sub(DAY * days).map(date).unwrap_or_default();
        let removed: Vec<&str> =
            earlier.iter().map(String::as_str).filter(|day| *day < oldest.as_str()).collect();
        let Some(last) = removed.last() else { return Ok((None, Vec::new())) };
        let name = |day: &&str| format!("{day}{}", read::ENDING);
        let (sequence, hash) = read::last_of(&locked.path.join(name(last)))?;
        let fields = vec![
            ("removed", removed.clone().into()),
            ("through", sequence.into()),
            ("throughHash", hash.into()),
        ];
        Ok((Some(fields), removed.iter().map(name).collect()))
    }
}

impl<'a> Locked<'a> {
    fn new(path: &'a Path) -> io::Result<Self> {
        let directory = PrivateDirectory::create(path)?;
        Ok(Self { directory, path, _lock: private::lock(&path.join(LOCK))? })
    }

    fn secret_key(&self) -> PathBuf {
        self.path.join(SECRET_KEY)
    }

    /// The key that signs; `None` if there is none.
    fn read_key(&self) -> io::Result<Option<Signer>> {
        let path = self.secret_key();
        let file = match self.directory.open(SECRET_KEY, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        private::check_file(&file, &path)?;
        let mut text = String::new();
        file.take(MAX_KEY_BYTES).read_to_string(&mut text)?;
        let invalid = || io::Error::new(ErrorKind::InvalidData, format!("{} is not a key", path.display()));
        Signer::parse(&text).map(Some).ok_or_else(invalid)
    }

    /// The days of which there are files, the oldest first.
    fn day_files(&self) -> io::Result<Vec<String>> {
        let mut days: Vec<String> =
            self.directory.names()?.iter().filter_map(|name| read::day(name)).collect();
        days.sort();
        Ok(days)
    }

    /// Appends lines to the file with this name, all or none. Returns its inode and its size.
    fn append(&self, name: &str, text: &[u8]) -> io::Result<(u64, u64)> {
        let mut file = self.directory.open(name, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?;
        let metadata = private::check_file(&file, &self.path.join(name))?;
        let mut last_byte = *b"\n";
        if let Some(at) = metadata.len().checked_sub(1) {
            file.read_exact_at(&mut last_byte, at)?;
        }
        // An incomplete line that was not set aside gets an end: otherwise the next line would be a part of it.
        let missing_end: &[u8] = if last_byte == *b"\n" { b"" } else { b"\n" };
        if let Err(error) = file.write_all(missing_end).and_then(|()| file.write_all(text)) {
            // A partially written line is removed.
            let _ = file.set_len(metadata.len());
            return Err(error);
        }
        Ok((metadata.ino(), metadata.len() + (missing_end.len() + text.len()) as u64))
    }

    /// Replaces a small file. Not synced: after a power failure a checkpoint may be missing, not wrong.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let temporary = format!(".new-{name}");
        self.directory.replace_unsynced(name, &temporary, |file| file.write_all(text.as_bytes()))
    }

    /// Moves an incomplete line to a file of its own. Returns the fields of the line about it.
    fn set_aside(&self, line: &IncompleteLine) -> io::Result<Fields> {
        let IncompleteLine { day, begins, bytes } = line;
        let hash = sha256(String::from_utf8_lossy(bytes).as_bytes());
        let name = format!("damaged-{day}-{}", &hash[..16]);
        let mut file = self.directory.open(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        file.write_all(bytes)?;
        self.directory.open(&format!("{day}{}", read::ENDING), OFlags::WRONLY)?.set_len(*begins)?;
        Ok(vec![("file", name.into()), ("bytes", bytes.len().into()), ("sha256", hash.into())])
    }
}

impl Head {
    /// Adds a record to the chain, and its line to `text`. `line` is overwritten.
    fn add(&mut self, record: Record<'_>, text: &mut Vec<u8>, line: &mut Vec<u8>) {
        self.sequence += 1;
        let sequence = self.sequence.to_string();
        let Record([begin, to_prev, to_seq, end]) = record;
        let (prev, seq) = (self.hash.as_bytes(), sequence.as_bytes());
        line.clear();
        for part in [begin, to_prev, b"\"prev\":\"", prev, b"\",", to_seq, b"\"seq\":", seq, b",", end] {
            line.extend_from_slice(part);
        }
        self.hash = sha256(line);
        let (before, after) = line.split_at(begin.len());
        for part in [before, b"\"hash\":\"", self.hash.as_bytes(), b"\",", after, b"\n"] {
            text.extend_from_slice(part);
        }
    }
}

/// The fields of an event of the trail itself.
fn stamped(event: &str, writer: &str, mut fields: Fields) -> Fields {
    let at = rfc3339(SystemTime::now());
    fields.extend([("event", event.into()), ("writer", writer.into()), ("at", at.into())]);
    fields
}

/// The day of a time, in UTC, as files are named.
pub(super) fn date(time: SystemTime) -> String {
    let mut text = rfc3339_seconds(time);
    text.truncate("2026-11-22".len());
    text
}

/// Signs the end of the trail in `directory`, and returns the checkpoint as a signed note. If it is stored where the
/// owner of the trail cannot change it, it proves later that nothing before it was rewritten.
///
/// # Errors
///
/// If the trail has no line or, as a copy, no key, or its files cannot be used.
pub fn write_checkpoint(directory: &Path) -> io::Result<String> {
    if read::files(directory)?.is_empty() {
        let message = format!("there is no audit trail in {}", directory.display());
        return Err(io::Error::new(ErrorKind::NotFound, message));
    }
    Appender::new(AuditOptions::new(PathBuf::from(directory))).signed_head()
}

/// Reads the last `max` bytes of a file. Returns them and where they begin.
pub(super) fn read_end(file: &mut File, bytes: u64, max: u64) -> io::Result<(Vec<u8>, u64)> {
    let begins = bytes.saturating_sub(max);
    file.seek(SeekFrom::Start(begins))?;
    let mut end = Vec::new();
    file.take(max).read_to_end(&mut end)?;
    Ok((end, begins))
}

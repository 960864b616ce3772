//! Traces of runs as files: `cx run --trace`, `cx serve --traces`.

mod chrome;
pub(crate) mod drawing;
pub(crate) mod html;
mod lanes;
mod notices;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use cx::RunTrace;
use cx::command::Ownership;
use parking_lot::Mutex;

use self::drawing::Drawing;
use self::notices::Notices;
use crate::text::shown_path;
use crate::{diagnostic, document};

/// Maximum number of traces that `cx serve --traces` keeps, and of bytes of all of them.
const MAX_FILES: usize = 200;
const MAX_BYTES: u64 = 256 << 20;

/// Maximum number of pages that `cx runs open` leaves.
const MAX_SHOWN_FILES: usize = 20;

/// Maximum number of traces that wait to be written; others are dropped.
const MAX_WAITING: usize = 16;

/// How long writing the last traces may delay the exit.
const MAX_LAST_WRITE: Duration = Duration::from_secs(2);

/// The prefix and ending of the names of kept traces.
const PREFIX: &str = "run-";
const SUFFIX: &str = ".html";

/// The form of a trace, determined by its file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceFormat {
    /// Chrome's format.
    Json,
    /// A page.
    Html,
}

impl TraceFormat {
    /// The format that the end of a file's name says.
    ///
    /// # Errors
    ///
    /// If the name ends with neither `.json` nor `.html`.
    pub(crate) fn from_path(path: &Path) -> anyhow::Result<Self> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("json") => Ok(Self::Json),
            Some("html" | "htm") => Ok(Self::Html),
            _ => bail!(
                "--trace {}: expected a name that ends with .html (a page) or .json (for Perfetto)",
                shown_path(path)
            ),
        }
    }

    fn render(self, trace: &RunTrace) -> String {
        match self {
            Self::Json => chrome::render(trace),
            Self::Html => html::render(&Drawing::from(trace)),
        }
    }
}

/// Writes a trace to a file that only its user can read, whole or not at all.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn write(path: &Path, format: TraceFormat, trace: &RunTrace) -> io::Result<()> {
    document::replace_private(path, &format.render(trace))
}

/// Writes the traces of a server to a directory, from a separate thread.
pub(crate) struct TraceDirectory {
    /// `None` marks the end.
    sender: SyncSender<Option<RunTrace>>,
    writing: JoinHandle<()>,
    notices: Arc<Mutex<Notices>>,
}

impl TraceDirectory {
    /// Makes the directory if it is missing, and starts the thread that writes to it.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made, or if others can write to it.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        make_directory(path)?;
        let shown = shown_path(path);
        let metadata = fs::metadata(path).with_context(|| format!("failed to read `{shown}`"))?;
        let ownership = Ownership::from_metadata(&metadata);
        if ownership.others_may_write() {
            bail!("--traces {shown}: others may write to this directory: `chmod go-w` it");
        }
        if !ownership.is_ours() {
            bail!("--traces {shown}: this directory belongs to another user: name one of your own");
        }
        let (sender, traces) = sync_channel::<Option<RunTrace>>(MAX_WAITING);
        let notices = Arc::<Mutex<Notices>>::default();
        let (directory, written) = (path.to_owned(), Arc::clone(&notices));
        let writing = std::thread::Builder::new()
            .name("cx-traces".to_owned())
            .spawn(move || {
                for trace in traces.into_iter().map_while(|trace| trace) {
                    let kept = keep(&directory, &trace);
                    let mut notices = written.lock();
                    let line = match kept {
                        Ok(()) => notices.keep(Instant::now()),
                        Err(error) => lose(&mut notices, || {
                            format!("no trace can be written to `{}`: {error}", shown_path(&directory))
                        }),
                    };
                    drop(notices);
                    print(line);
                }
            })
            .context("failed to start a thread")?;
        Ok(Self { sender, writing, notices })
    }

    /// The listener that receives the traces of runs.
    pub(crate) fn listener(&self) -> impl Fn(RunTrace) + Send + Sync + 'static {
        let (sender, notices) = (self.sender.clone(), Arc::clone(&self.notices));
        move |trace| match sender.try_send(Some(trace)) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => {
                let dropped = || "traces are dropped: runs end faster than traces are written".to_owned();
                let line = lose(&mut notices.lock(), dropped);
                print(line);
            }
        }
    }

    /// Writes the remaining traces, for as long as that may delay the exit.
    pub(crate) fn finish(self) {
        let ends = Instant::now() + MAX_LAST_WRITE;
        let mut is_told = false;
        while !self.writing.is_finished() && Instant::now() < ends {
            is_told = is_told || self.sender.try_send(None).is_ok();
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Counts a trace that was lost. Returns the line to print, if there is one.
fn lose(notices: &mut Notices, reason: impl FnOnce() -> String) -> Option<String> {
    metrics::counter!("cx_traces_lost_total").increment(1);
    notices.lose(Instant::now(), reason)
}

fn print(line: Option<String>) {
    if let Some(line) = line {
        diagnostic::print_note(&line);
    }
}

/// Writes a page for a browser, and removes the oldest such pages beyond the maximum: a browser reads a page after this
/// program has ended. Returns the page's path.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn write_shown(directory: &Path, run: &str, drawing: &Drawing) -> anyhow::Result<PathBuf> {
    make_directory(directory)?;
    let shown = shown_path(directory);
    let path = directory.join(format!("{PREFIX}{run}{SUFFIX}"));
    let written = document::replace_private(&path, &html::render(drawing))
        .and_then(|()| remove_oldest(directory, MAX_SHOWN_FILES));
    written.with_context(|| format!("failed to write a page to `{shown}`"))?;
    Ok(path)
}

/// Makes a directory that only its user can read, and those above it, if it is missing.
fn make_directory(path: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("failed to make the directory `{}`", shown_path(path)))
}

/// Removes the pages that were written first.
fn remove_oldest(directory: &Path, max: usize) -> io::Result<()> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_own = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_own && let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) {
            pages.push((modified, entry.path()));
        }
    }
    pages.sort_unstable();
    let count = pages.len().saturating_sub(max);
    pages.into_iter().take(count).try_for_each(|(_, path)| remove(&path))
}

/// The page of a run among those that a server keeps in a directory, if it exists.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn find(directory: &Path, run: &str) -> io::Result<Option<PathBuf>> {
    let end = format!("-{run}{SUFFIX}");
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_meant = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(&end));
        if is_meant && entry.file_type()?.is_file() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Writes a trace, and removes the oldest ones beyond the bounds.
fn keep(directory: &Path, trace: &RunTrace) -> io::Result<()> {
    let time = trace.requested.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
    // By time, so that the names sort in the order of the runs.
    let name = format!("{PREFIX}{time:013}-{}{SUFFIX}", trace.id);
    write(&directory.join(name), TraceFormat::Html, trace)?;
    let mut kept: Vec<(PathBuf, u64)> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_own = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_own {
            kept.push((entry.path(), entry.metadata().map_or(0, |metadata| metadata.len())));
        }
    }
    kept.sort_unstable();
    let (mut files, mut bytes) = (kept.len(), kept.iter().map(|(_, bytes)| bytes).sum::<u64>());
    for (path, size) in kept {
        if files <= MAX_FILES && bytes <= MAX_BYTES {
            break;
        }
        remove(&path)?;
        (files, bytes) = (files - 1, bytes - size);
    }
    Ok(())
}

/// Removes a file that another process may have removed already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

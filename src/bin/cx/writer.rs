//! Writes a run's output to stdout and stderr, from a separate thread.
//!
//! A write to a full pipe blocks until its reader reads. Neither the script's thread nor the one that handles signals
//! may make such a write, because the run could then not be stopped. Both streams go through one queue, because on a
//! terminal their order matters.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cx::CancellationToken;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::{process, stderr};

/// While the queue has more bytes than this, a script that prints waits. Larger than a pipe, so that a reader that
/// keeps up is always busy.
const CAPACITY: usize = 256 << 10;

/// Maximum bytes of one piece of the queue, which is written at once. Longer text is split.
const MAX_PIECE: usize = 64 << 10;

/// What a piece costs in addition to its bytes.
const PIECE_OVERHEAD: usize = 64;

/// How often a script that waits for the reader checks whether its run has to end.
const CHECK: Duration = Duration::from_millis(10);

/// Pause before the next write to a full stream that is non-blocking, because a program that shares the stream made it
/// so.
const RETRY: Duration = Duration::from_millis(5);

/// Maximum time of the last write to stderr when stdout is not read. Both may be one pipe.
const MAX_LAST_NOTE: Duration = Duration::from_millis(50);

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// The queue of the process's output, and its thread's state.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Mutex<Queue>,
    /// Signals that the queue or its state has changed.
    changed: Condvar,
    /// Signals that a piece was written.
    written: Notify,
    /// Bytes of the current piece of stdout that are not written yet.
    in_flight: AtomicUsize,
    /// Cancelled when stdout fails: a script whose output is lost must not continue.
    on_failure: CancellationToken,
}

#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    /// Cost of the pieces.
    bytes: usize,
    /// Number of pieces ever queued, and of those that are written or dropped.
    queued: u64,
    done: u64,
    is_paused: bool,
    /// Whether the reader was abandoned, so that nothing waits for it any longer.
    is_abandoned: bool,
    /// Why stdout could not be written. Later output to it is dropped.
    failure: Option<io::Error>,
    has_failed: bool,
    /// Bytes of a line whose beginning was queued and whose end was not.
    cut: usize,
    /// Whether a script has printed something to stdout.
    has_output: bool,
}

#[derive(Debug)]
struct Piece {
    stream: Stream,
    bytes: Vec<u8>,
}

static WRITER: OnceLock<&'static Writer> = OnceLock::new();

/// Starts the thread. From then on all output of this process goes through it. `on_failure` is cancelled when stdout
/// fails.
///
/// # Errors
///
/// If the system refuses the thread or the descriptors.
pub(crate) fn start(on_failure: CancellationToken) -> anyhow::Result<&'static Writer> {
    let out = duplicate(Stream::Stdout).context("failed to open stdout")?;
    let err = duplicate(Stream::Stderr).context("failed to open stderr")?;
    // It and its thread live until the process ends, because the thread may hang in a write.
    let writer: &'static Writer = Box::leak(Box::new(Writer {
        queue: Mutex::default(),
        changed: Condvar::new(),
        written: Notify::new(),
        in_flight: AtomicUsize::new(0),
        on_failure,
    }));
    std::thread::Builder::new()
        .name("cx-output".to_owned())
        .spawn(move || writer.run(&out, &err))
        .map_err(|error| match cx::check_machine(1, 0, 0) {
            // It says which limit to raise.
            Err(shortage) => shortage,
            // A thread has ended since, or there is space for the stack of the one that was tried, which is smaller.
            Ok(()) => std::io::Error::new(
                error.kind(),
                format!(
                    "more threads are needed than there may be, or more address space (`ulimit -u`, `ulimit -v`): \
                     {error}"
                ),
            ),
        })
        .context("failed to start the thread of the output")?;
    // Only one run starts it.
    Ok(*WRITER.get_or_init(|| writer))
}

/// Writes all of `text`: to the queue if the thread was started, else at once. A failure of stderr cannot be reported;
/// a failure of the queue is reported by [`Writer::failure`]. A service drops what is not read from its stderr.
///
/// # Errors
///
/// Those of a write to stdout.
pub(crate) fn write(stream: Stream, text: &str) -> io::Result<()> {
    if let Some(writer) = WRITER.get() {
        writer.push(stream, text);
        return Ok(());
    }
    if stream == Stream::Stderr && stderr::is_of_service() {
        stderr::write(text.as_bytes());
        return Ok(());
    }
    let written = duplicate(stream).and_then(|file| write_all(&file, text.as_bytes(), |_| ()));
    if stream == Stream::Stderr { Ok(()) } else { written }
}

/// Waits for at most `max_wait` until everything in the queue is written, if there is one. Returns
/// why stdout could not be written.
pub(crate) fn flush(max_wait: Duration) -> Option<io::Error> {
    let writer = WRITER.get()?;
    let deadline = Instant::now() + max_wait;
    let mut queue = writer.queue.lock();
    queue.is_paused = false;
    while queue.done < queue.queued && !queue.is_abandoned && Instant::now() < deadline {
        writer.changed.notify_all();
        writer.changed.wait_for(&mut queue, CHECK);
    }
    queue.failure.take()
}

/// Whether a script has printed something to stdout. Its result need not have it, because that is bounded.
pub(crate) fn has_output() -> bool {
    WRITER.get().is_some_and(|writer| writer.queue.lock().has_output)
}

impl Writer {
    /// Queues text of the command itself, however long: it is in memory already, and the caller must not wait.
    fn push(&self, stream: Stream, text: &str) {
        let mut queue = self.queue.lock();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(MAX_PIECE));
            queue.push(stream, piece);
            rest = more;
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// Queues text that can be dropped, such as a progress report. Drops it while the queue is full or paused.
    pub(crate) fn push_or_drop(&self, stream: Stream, text: &str) {
        let has_room = {
            let queue = self.queue.lock();
            !queue.is_paused && queue.bytes < CAPACITY
        };
        if has_room {
            self.push(stream, text);
        }
    }

    /// Queues a piece of a script's output of at most [`MAX_PIECE`] bytes. Waits while the queue is
    /// full, until `cancel` is cancelled. Returns whether it was queued.
    pub(crate) fn push_or_wait(&self, stream: Stream, text: &str, cancel: &CancellationToken) -> bool {
        let mut queue = self.queue.lock();
        while queue.bytes >= CAPACITY && !cancel.is_cancelled() {
            self.changed.wait_for(&mut queue, CHECK);
        }
        let is_taken = queue.bytes < CAPACITY;
        if is_taken {
            queue.has_output |= stream == Stream::Stdout;
            queue.push(stream, text);
        }
        drop(queue);
        self.changed.notify_all();
        is_taken
    }

    /// Counts the end of a line that cannot be queued, because the run has to end.
    pub(crate) fn cut(&self, bytes: usize) {
        self.queue.lock().cut += bytes;
    }

    /// Writes nothing more until [`resume`](Self::resume), so that nothing appears below a prompt.
    /// Before that, waits for at most `max_wait` until everything that was queued is written.
    pub(crate) async fn pause(&self, max_wait: Duration) {
        let until = self.queue.lock().queued;
        let _late = tokio::time::timeout(max_wait, self.wait_written(until)).await;
        self.queue.lock().is_paused = true;
        // The piece that the thread has begun to write meanwhile appears above the prompt too.
        let begun = self.queue.lock().begun();
        let _late = tokio::time::timeout(max_wait, self.wait_written(begun)).await;
    }

    pub(crate) fn resume(&self) {
        self.queue.lock().is_paused = false;
        self.changed.notify_all();
    }

    /// Waits until everything that was queued is written, or stdout has failed. The queue must not
    /// be paused.
    pub(crate) async fn finish(&self) {
        let until = self.queue.lock().queued;
        self.wait_written(until).await;
    }

    async fn wait_written(&self, until: u64) {
        loop {
            // Created before the check, so that it is notified of later changes.
            let written = self.written.notified();
            if self.queue.lock().done >= until {
                return;
            }
            written.await;
        }
    }

    /// Why stdout could not be written.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.queue.lock().failure.take()
    }

    /// Bytes for stdout that are not written yet.
    pub(crate) fn unwritten(&self) -> usize {
        let queue = self.queue.lock();
        let waiting = queue.pieces.iter().filter(|piece| piece.stream == Stream::Stdout);
        let waiting: usize = waiting.map(|piece| piece.bytes.len()).sum();
        waiting + queue.cut + self.in_flight.load(Ordering::Relaxed)
    }

    /// Abandons the reader: writes what is queued for stderr, and a note, from this thread, because
    /// the writing thread may hang in a write to stdout. Stderr may be the same pipe, so this waits
    /// for [`MAX_LAST_NOTE`] at most.
    pub(crate) fn abandon(&self, note: &str) {
        let mut text: Vec<u8> = Vec::new();
        {
            let mut queue = self.queue.lock();
            queue.is_abandoned = true;
            for piece in std::mem::take(&mut queue.pieces) {
                if piece.stream == Stream::Stderr {
                    text.extend(piece.bytes);
                }
            }
        }
        text.extend(note.as_bytes());
        let (done, wait) = mpsc::channel();
        let _refused = std::thread::Builder::new().name("cx-last-note".to_owned()).spawn(move || {
            let written = duplicate(Stream::Stderr).and_then(|file| write_all(&file, &text, |_| ()));
            let _gone = done.send(written);
        });
        let _late = wait.recv_timeout(MAX_LAST_NOTE);
    }

    /// The body of the thread.
    fn run(&self, out: &File, err: &File) {
        let mut queue = self.queue.lock();
        loop {
            let Some(piece) = queue.next() else {
                self.changed.wait(&mut queue);
                continue;
            };
            // Wakes the threads that wait for space.
            self.changed.notify_all();
            let written = MutexGuard::unlocked(&mut queue, || match piece.stream {
                Stream::Stdout => {
                    let left = |bytes| self.in_flight.store(bytes, Ordering::Relaxed);
                    let written = write_all(out, &piece.bytes, left);
                    left(0);
                    written
                }
                Stream::Stderr => write_all(err, &piece.bytes, |_| ()).or(Ok(())),
            });
            queue.done += 1;
            if let Err(error) = written
                && !queue.has_failed
            {
                queue.failure = Some(error);
                queue.has_failed = true;
                queue.drop_stdout();
                self.on_failure.cancel();
            }
            self.written.notify_waiters();
        }
    }
}

impl Queue {
    fn push(&mut self, stream: Stream, text: &str) {
        if self.has_failed && stream == Stream::Stdout {
            return;
        }
        match self.pieces.back_mut() {
            Some(last) if last.stream == stream && last.bytes.len() + text.len() <= MAX_PIECE => {
                last.bytes.extend_from_slice(text.as_bytes());
                self.bytes += text.len();
            }
            _ => {
                self.pieces.push_back(Piece { stream, bytes: text.as_bytes().to_vec() });
                self.bytes += text.len() + PIECE_OVERHEAD;
                self.queued += 1;
            }
        }
    }

    fn next(&mut self) -> Option<Piece> {
        if self.is_paused {
            return None;
        }
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.bytes.len() + PIECE_OVERHEAD;
        Some(piece)
    }

    /// Number of pieces that were taken out of the queue.
    fn begun(&self) -> u64 {
        self.queued - self.pieces.len() as u64
    }

    fn drop_stdout(&mut self) {
        let before = self.pieces.len();
        self.pieces.retain(|piece| piece.stream != Stream::Stdout);
        self.done += (before - self.pieces.len()) as u64;
        self.bytes = self.pieces.iter().map(|piece| piece.bytes.len() + PIECE_OVERHEAD).sum();
    }
}

/// The stream without the standard library's buffer and lock: a thread that hangs in a write would hold that lock and
/// block all others.
fn duplicate(stream: Stream) -> io::Result<File> {
    if stream == Stream::Stdout && process::had_no_stdout() {
        // Writes to it fail as those to a closed descriptor.
        return File::open("/dev/null");
    }
    let descriptor = match stream {
        Stream::Stdout => io::stdout().as_fd().try_clone_to_owned(),
        Stream::Stderr => io::stderr().as_fd().try_clone_to_owned(),
    };
    Ok(File::from(descriptor?))
}

/// Writes everything, and reports the number of remaining bytes after each write.
fn write_all(mut file: &File, bytes: &[u8], left: impl Fn(usize)) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        left(rest.len());
        match file.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

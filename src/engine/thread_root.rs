//! Threads from which others are started.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::machine::probe::refused_thread;

type Task = Box<dyn FnOnce() + Send>;

struct Request {
    name: String,
    task: Task,
    started: Sender<io::Result<()>>,
}

/// A thread that starts the worker threads of an engine and does nothing else.
///
/// A thread inherits from the one that starts it: its priority, which workers lower for good when
/// their run is long, and for V8 its access to protected memory. So workers are not started by each
/// other. The root lives as long as the process.
pub(crate) struct ThreadRoot {
    name: &'static str,
    /// Called on the root before it starts a thread. The thread is not started if it fails.
    prepare: fn() -> io::Result<()>,
    /// Stack size of the threads that it starts, in bytes. Untouched pages cost nothing.
    stack_bytes: usize,
    requests: OnceLock<Sender<Request>>,
}

impl ThreadRoot {
    pub(crate) const fn new(name: &'static str, prepare: fn() -> io::Result<()>, stack_bytes: usize) -> Self {
        Self { name, prepare, stack_bytes, requests: OnceLock::new() }
    }

    /// Runs `task` on a new thread.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread, or the root cannot be prepared.
    pub(crate) fn spawn(&'static self, name: String, task: Task) -> io::Result<()> {
        let lost = || io::Error::new(io::ErrorKind::BrokenPipe, format!("the thread {} is gone", self.name));
        let root = match self.requests.get() {
            Some(root) => root,
            None => {
                let root = self.start()?;
                self.requests.get_or_init(|| root)
            }
        };
        let (started, answer) = channel();
        root.send(Request { name, task, started }).map_err(|_| lost())?;
        answer.recv().map_err(|_| lost())?
    }

    /// Starts the root. If two callers race, the thread of the loser ends without an effect,
    /// because nothing happens before the first request.
    fn start(&'static self) -> io::Result<Sender<Request>> {
        let (root, requests) = channel::<Request>();
        thread::Builder::new().name(self.name.to_owned()).spawn(move || {
            for Request { name, task, started } in requests {
                let thread = thread::Builder::new().name(name).stack_size(self.stack_bytes);
                let start = || thread.spawn(task).map_err(|error| refused_thread(&error, self.stack_bytes));
                let spawned = (self.prepare)().and_then(|()| start().map(drop));
                // The caller waits for this answer, so the receiver still exists.
                let _ = started.send(spawned);
            }
        })?;
        Ok(root)
    }
}

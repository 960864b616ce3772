//! A worker's end of its connection. The script's thread reads and writes it itself, without a thread between: a host
//! call is two switches of processes and none of threads.
//!
//! Messages are buffered until the script's thread is idle or waits for a reply, or until the
//! worker's other thread flushes them (every few milliseconds).
//!
//! While answers are queued for a worker, the executor does not read: each side would wait for the
//! other. So a worker reads while it waits to write, and never the other way round.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::sync::oneshot;

use super::frames::{self, Decoder, FrameError, RunNumber};
use super::spin::Spin;
use super::wire::{self, FromWorker, Reply, Start, ToWorker};
use crate::engine::host::Answer;
use crate::files::{FileAnswer, FileError};
use crate::run::limits::Limits;
use crate::tools::ToolError;

/// The buffer is flushed when it has more bytes than this.
const MAX_COLLECTED: usize = 64 * 1024;

/// The exit status of a worker whose run was stopped for its memory, if it could not send that. Shells, Rust and the
/// system use others, and so do processes that stand for workers elsewhere (`lost`).
pub(super) const OVER_MEMORY: i32 = 84;

/// How long the last message of a watchdog may wait for the connection, and then for the socket.
const LAST_WAIT: Duration = Duration::from_millis(50);

/// A worker's end of its connection to the executor.
pub(super) struct Connection {
    socket: OwnedFd,
    state: Mutex<SocketState>,
}

struct SocketState {
    decoder: Decoder,
    out: Vec<u8>,
    /// Bytes at the start of `out` that the socket has accepted.
    written: usize,
    run: RunNumber,
    /// Maximum bytes of a message of the run.
    max_bytes: usize,
    calls: HashMap<u64, Waiter>,
    last_call: u64,
    reply: Option<Reply>,
    /// In order of arrival: the executor sends the first run before the worker is warm.
    orders: VecDeque<ToWorker>,
    /// Messages of the run that have arrived.
    seen: u64,
    /// Whether the last message to the executor said that the script waits.
    said_waiting: bool,
}

/// What waits for the answer to a call.
pub(super) enum Waiter {
    Answer(oneshot::Sender<Answer>),
    Names(oneshot::Sender<Result<Vec<String>, ToolError>>),
    File(oneshot::Sender<Result<FileAnswer, FileError>>),
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Connection {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            state: Mutex::new(SocketState {
                decoder: Decoder::skipping(wire::MAX_START_BYTES),
                out: Vec::new(),
                written: 0,
                run: RunNumber::NONE,
                max_bytes: wire::message_bytes(&Limits::CEILING),
                calls: HashMap::new(),
                last_call: 0,
                reply: None,
                orders: VecDeque::new(),
                seen: 0,
                said_waiting: false,
            }),
        }
    }

    /// The socket, for a fork server, which has another use for it after its first message.
    ///
    /// # Errors
    ///
    /// If the process may have no more descriptors.
    pub(super) fn clone_socket(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// Queues a message.
    ///
    /// # Errors
    ///
    /// If it is too long.
    pub(super) fn send(&self, message: &FromWorker) -> Result<(), FrameError> {
        self.state.lock().queue(&self.socket, message)
    }

    /// Queues a short message if its run is in flight. The executor ignores later messages of a
    /// run.
    pub(super) fn send_in_run(&self, message: &FromWorker) {
        let mut state = self.state.lock();
        if state.run != RunNumber::NONE {
            let _fits = state.queue(&self.socket, message);
        }
    }

    /// Queues a call, to which `waiter` gets the answer.
    ///
    /// # Errors
    ///
    /// If it is too long.
    pub(super) fn begin(
        &self,
        waiter: Waiter,
        message: impl FnOnce(u64) -> FromWorker,
    ) -> Result<(), FrameError> {
        let mut state = self.state.lock();
        state.last_call += 1;
        let call = state.last_call;
        // First, because what is queued may be sent, and its answer read, at once.
        state.calls.insert(call, waiter);
        let queued = state.queue(&self.socket, &message(call));
        if queued.is_err() {
            state.calls.remove(&call);
        }
        queued
    }

    /// Sends the queued messages. Blocks while the executor does not read, and handles what arrives
    /// meanwhile.
    pub(super) fn flush(&self) {
        self.state.lock().flush(&self.socket);
    }

    /// Sends of the queued messages what the socket accepts, unless another thread uses the
    /// connection, which then sends them.
    pub(super) fn try_flush(&self) {
        if let Some(mut state) = self.state.try_lock() {
            state.write(&self.socket);
        }
    }

    /// Sends the queued messages, and one that says that the script waits.
    pub(super) fn flush_waiting(&self) {
        let mut state = self.state.lock();
        if !state.said_waiting {
            let SocketState { out, run, max_bytes, seen, said_waiting, .. } = &mut *state;
            // The message is short, so it fits. It is only queued here: sending may also read messages, which `seen`
            // would not count.
            let _fits = frames::append(out, *run, &FromWorker::Waiting { seen: *seen }, *max_bytes);
            *said_waiting = true;
        }
        state.flush(&self.socket);
    }

    /// Queues a message that the script computes, if the last one said that it waits.
    pub(super) fn note_computing(&self) {
        let mut state = self.state.lock();
        if state.said_waiting {
            let _fits = state.queue(&self.socket, &FromWorker::Computing);
        }
    }

    /// Asks for something and waits for the reply.
    pub(super) fn ask(&self, message: &FromWorker) -> Result<Reply, FrameError> {
        self.send(message)?;
        Ok(self.await_reply())
    }

    /// Waits for the next reply.
    pub(super) fn await_reply(&self) -> Reply {
        self.flush();
        loop {
            if let Some(reply) = self.state.lock().reply.take() {
                return reply;
            }
            self.receive(true);
        }
    }

    /// Waits for the next order: to begin a run, or to continue it after the survey.
    pub(super) fn await_order(&self) -> ToWorker {
        self.flush();
        loop {
            if let Some(order) = self.state.lock().orders.pop_front() {
                return order;
            }
            self.receive(true);
        }
    }

    /// The same for an order that comes soon.
    pub(super) fn await_order_soon(&self, spin: &Spin) -> ToWorker {
        self.flush();
        let look = || {
            let _received = self.receive(false);
            self.state.lock().orders.pop_front()
        };
        spin.find_expected(look).unwrap_or_else(|| self.await_order())
    }

    /// Begins the run of `start`: from here on frames have its number.
    pub(super) fn enter(&self, run: RunNumber, start: &Start) {
        let mut state = self.state.lock();
        state.run = run;
        state.max_bytes = wire::message_bytes(&start.limits.limits());
        (state.seen, state.last_call, state.said_waiting) = (0, 0, false);
        state.calls.clear();
        state.reply = None;
    }

    /// Ends the run with its last message.
    ///
    /// # Errors
    ///
    /// If `last` is too long. The run has then not ended.
    pub(super) fn leave(&self, last: &FromWorker) -> Result<(), FrameError> {
        let mut state = self.state.lock();
        state.queue(&self.socket, last)?;
        state.flush(&self.socket);
        state.run = RunNumber::NONE;
        state.calls.clear();
        Ok(())
    }

    /// The same from another thread than the run's, which holds the connection while it waits for its executor: then
    /// nothing is sent, and neither is what the socket does not take soon. Returns whether all was sent.
    pub(super) fn try_leave(&self, last: &FromWorker) -> bool {
        let Some(mut state) = self.state.try_lock_for(LAST_WAIT) else { return false };
        let SocketState { out, run, max_bytes, .. } = &mut *state;
        if frames::append(out, *run, last, *max_bytes).is_err() {
            return false;
        }
        state.write(&self.socket);
        if !state.out.is_empty() {
            let wait = Timespec { tv_sec: 0, tv_nsec: LAST_WAIT.subsec_nanos().into() };
            let _ready = poll(&mut [PollFd::new(&self.socket, PollFlags::OUT)], Some(&wait));
            state.write(&self.socket);
        }
        state.out.is_empty()
    }

    /// The number of the run, for attacks.
    #[cfg(test)]
    pub(super) fn run(&self) -> RunNumber {
        self.state.lock().run
    }

    /// Sends bytes that are no frame.
    #[cfg(test)]
    pub(super) fn send_raw(&self, bytes: &[u8]) {
        self.flush();
        send(&self.socket, bytes, SendFlags::NOSIGNAL).unwrap();
    }

    /// Reads what has arrived. With `blocks` it waits until something arrives.
    ///
    /// Ends the process when the executor has gone, because a worker serves only its executor.
    pub(super) fn receive(&self, blocks: bool) -> Received {
        self.state.lock().receive(&self.socket, blocks)
    }

    /// How many messages of the run have arrived.
    pub(super) fn seen(&self) -> u64 {
        self.state.lock().seen
    }

    /// Waits until more messages of the run have arrived than `seen`, or a part of one.
    pub(super) fn receive_beyond(&self, seen: u64) {
        let mut state = self.state.lock();
        if state.seen == seen {
            state.receive(&self.socket, true);
        }
    }
}

/// What [`Connection::receive`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) bytes: usize,
    pub(super) messages: usize,
    pub(super) may_have_more: bool,
}

impl SocketState {
    fn queue(&mut self, socket: &OwnedFd, message: &FromWorker) -> Result<(), FrameError> {
        self.said_waiting = false;
        let (run, max_bytes) = (self.run, self.max_bytes);
        frames::append(&mut self.out, run, message, max_bytes)?;
        if self.out.len() - self.written > MAX_COLLECTED {
            self.flush(socket);
        }
        Ok(())
    }

    fn flush(&mut self, socket: &OwnedFd) {
        loop {
            self.write(socket);
            if self.out.is_empty() {
                return;
            }
            let mut ready = [PollFd::new(socket, PollFlags::IN | PollFlags::OUT)];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_gone) => end_process(),
            }
            if !ready[0].revents().difference(PollFlags::OUT).is_empty() {
                self.receive(socket, false);
            }
        }
    }

    /// Sends as much as the socket accepts.
    fn write(&mut self, socket: &OwnedFd) {
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match send(socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_gone) => end_process(),
            }
        }
        self.written = 0;
        self.out.clear();
        self.out.shrink_to(MAX_COLLECTED * 2);
    }

    fn receive(&mut self, socket: &OwnedFd, blocks: bool) -> Received {
        let flags = if blocks { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let space = self.decoder.space();
        let room = space.len();
        let count = match recv(socket, space, flags) {
            Ok((0, _)) => end_process(),
            Ok((count, _)) => count,
            Err(Errno::AGAIN) => return Received { bytes: 0, messages: 0, may_have_more: false },
            Err(Errno::INTR) => return Received { bytes: 0, messages: 0, may_have_more: true },
            Err(_gone) => end_process(),
        };
        self.decoder.filled(count);
        let mut messages = 0;
        loop {
            let run = self.run;
            match self.decoder.next::<ToWorker>(run) {
                Ok(Some(message)) => {
                    messages += 1;
                    self.dispatch(message);
                }
                Ok(None) => break,
                // The executor is trusted and is the same program, so this is a bug that cannot be handled here.
                Err(_broken) => end_process(),
            }
        }
        Received { bytes: count, messages, may_have_more: count == room }
    }

    fn dispatch(&mut self, message: ToWorker) {
        self.seen += 1;
        // The last `Waiting` that the executor got did not count this message.
        self.said_waiting = false;
        match message {
            // A script that has ended waits for nothing.
            ToWorker::Answer { call, answer } => {
                if let Some(Waiter::Answer(waiter)) = self.calls.remove(&call) {
                    let _gone = waiter.send(answer.map_err(ToolError::from));
                }
            }
            ToWorker::Names { call, names } => {
                if let Some(Waiter::Names(waiter)) = self.calls.remove(&call) {
                    let _gone = waiter.send(names.map_err(ToolError::from));
                }
            }
            ToWorker::File { call, answer } => {
                if let Some(Waiter::File(waiter)) = self.calls.remove(&call) {
                    let _gone = waiter.send(answer);
                }
            }
            ToWorker::Reply(reply) => self.reply = Some(reply),
            order @ (ToWorker::Hello(_) | ToWorker::Start(_) | ToWorker::Proceed) => {
                self.orders.push_back(order);
            }
        }
    }
}

/// Ends the worker immediately: without an executor there is nothing to clean up.
pub(crate) fn end_process() -> ! {
    end_process_with(0)
}

/// The same with an exit status.
#[expect(clippy::exit, reason = "a worker without an executor has nothing left to do on any thread")]
pub(crate) fn end_process_with(status: i32) -> ! {
    std::process::exit(status)
}

/// Makes the socket to the executor a stream, for a process that stands for a worker elsewhere.
/// Must be called in a tokio runtime.
///
/// # Errors
///
/// If the system refuses it.
#[cfg(any(feature = "mcp", feature = "nats"))]
pub(crate) fn adopt(socket: OwnedFd) -> io::Result<tokio::net::UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(socket)
}

/// The socket over which a worker was started: its standard input. Closes everything that the
/// worker has inherited beside its standard streams, so call it before anything is opened. Returns
/// whether that succeeded.
///
/// # Errors
///
/// If the standard input is no connection.
pub(crate) fn own_socket() -> io::Result<(OwnedFd, io::Result<()>)> {
    const FIRST: libc::c_uint = 3;
    #[expect(unsafe_code, reason = "no safe crate closes what it has not opened")]
    // SAFETY: this process has only begun: nothing in it has a descriptor above the standard streams yet.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, 0) };
    // Kernels before Linux 5.9 do not have this call.
    let closed = if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::net::getpeername(&socket)?;
    Ok((socket, closed))
}

#[cfg(test)]
mod tests;

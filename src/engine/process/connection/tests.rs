use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::*;

/// More than the kernel stores for a connection in either direction.
const LARGE: usize = 4 << 20;

/// Longer than any machine needs.
const LONG: Duration = Duration::from_secs(60);

fn answer(call: u64, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let message = ToWorker::Answer { call, answer: Ok("x".repeat(bytes)) };
    frames::append(&mut out, RunNumber::NONE, &message, wire::MAX_START_BYTES).unwrap();
    out
}

fn call(connection: &Connection) -> oneshot::Receiver<Answer> {
    let (waiter, answer) = oneshot::channel();
    let message = |call| FromWorker::Query { call, text: "y".repeat(1_000) };
    connection.begin(Waiter::Answer(waiter), message).unwrap();
    answer
}

/// The executor here reads nothing before the worker has read its answer.
#[test]
fn v_566_a_worker_reads_while_it_cannot_write() {
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    // Alive until the end: without its executor a worker ends its process.
    let _also_theirs = theirs.try_clone().unwrap();
    let connection = Arc::new(Connection::new(mine.into()));
    let worker = Arc::clone(&connection);
    let (done, both) = mpsc::channel();
    let is_written = done.clone();
    thread::spawn(move || {
        let mut answers: Vec<_> = (0..LARGE / 1_000).map(|_| call(&worker)).collect();
        worker.flush();
        // The end of the answer may have come after the last write.
        let answer = loop {
            if let Ok(answer) = answers[0].try_recv() {
                break answer;
            }
            worker.receive(true);
        };
        done.send(answer.unwrap().len()).unwrap();
    });
    thread::spawn(move || {
        theirs.write_all(&answer(1, LARGE)).unwrap();
        let mut read = vec![0; LARGE];
        theirs.read_exact(&mut read).unwrap();
        is_written.send(LARGE).unwrap();
    });
    for _ in 0..2 {
        assert_eq!(both.recv_timeout(LONG), Ok(LARGE));
    }
}

/// The thread that flushes every few milliseconds is the watchdog of the worker.
#[test]
fn v_566_the_watchdog_of_a_worker_does_not_wait_to_write() {
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    let connection = Arc::new(Connection::new(mine.into()));
    let queued = Arc::new(Mutex::new(0));
    let (done, is_done) = mpsc::channel();
    let (other, count) = (Arc::clone(&connection), Arc::clone(&queued));
    thread::spawn(move || {
        while other.state.lock().out.is_empty() {
            let _answer = call(&other);
            *count.lock() += other.state.lock().out.len();
            other.try_flush();
        }
        done.send(()).unwrap();
    });
    is_done.recv_timeout(LONG).unwrap();
    // Nothing is lost: the rest is sent later.
    thread::spawn(move || connection.flush());
    theirs.set_read_timeout(Some(LONG)).unwrap();
    let mut read = vec![0; *queued.lock()];
    theirs.read_exact(&mut read).unwrap();
    let mut decoder = Decoder::new(wire::MAX_START_BYTES);
    for piece in read.chunks(1_000) {
        decoder.space()[..piece.len()].copy_from_slice(piece);
        decoder.filled(piece.len());
        while let Some(message) = decoder.next::<FromWorker>(RunNumber::NONE).unwrap() {
            assert!(matches!(message, FromWorker::Query { text, .. } if text.len() == 1_000));
        }
    }
    assert!(decoder.is_empty());
}

//! How the thread of the scripts waits: for the script's future, for what arrives on the connection, and for timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::io::unix::AsyncFd;

use crate::engine::process::connection::Connection;
use crate::engine::process::spin::Spin;

/// How often the script's future is polled before the runtime looks at its timers.
const MAX_TURNS: u32 = 64;

/// Polls `future`, and reads the connection while it waits. `polls_calls` says whether the future polls the calls of
/// the script itself, and not tasks of the runtime.
pub(super) async fn drive<T>(
    readiness: &AsyncFd<Arc<Connection>>,
    processors: usize,
    polls_calls: bool,
    future: impl Future<Output = T>,
) -> T {
    let mut future = std::pin::pin!(future);
    let connection = readiness.get_ref();
    let mut spin = Spin::new(processors);
    let outer = std::future::poll_fn(|task| Poll::Ready(task.waker().clone())).await;
    let wakes = Arc::new(Wakes { outer, is_awake: AtomicBool::new(true), is_woken: AtomicBool::new(true) });
    let waker = Waker::from(Arc::clone(&wakes));
    // Whether something has arrived since the last poll.
    let mut has_news = false;
    std::future::poll_fn(|task| {
        wakes.is_awake.store(true, Ordering::SeqCst);
        for _ in 0..MAX_TURNS {
            let (mut has_arrived, mut has_read) = (false, false);
            while let Poll::Ready(Ok(mut guard)) = readiness.poll_read_ready(task) {
                let received = connection.receive(false);
                has_arrived |= received.messages > 0;
                has_read |= received.bytes > 0;
                if !received.may_have_more {
                    guard.clear_ready();
                }
            }
            if has_arrived {
                break;
            }
            if has_read && !has_news && !wakes.is_woken.load(Ordering::SeqCst) {
                // The script cannot continue with a part of a message.
                wakes.sleep();
                return Poll::Pending;
            }
            if !std::mem::take(&mut has_news) {
                connection.note_computing();
            }
            wakes.is_woken.store(false, Ordering::SeqCst);
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(outcome);
            }
            // It has more to do, or a blocking call has read what it waits for.
            if wakes.is_woken.load(Ordering::SeqCst) || readiness.poll_read_ready(task).is_ready() {
                has_news = true;
                continue;
            }
            let seen = connection.seen();
            connection.flush_waiting();
            if connection.seen() != seen {
                // Something has arrived while it was sent. The executor is told again that the script waits.
                break;
            }
            if spin.find(|| (connection.receive(false).messages > 0).then_some(())).is_some() {
                if polls_calls {
                    // No turn of the runtime is needed, which would ask the system for events, and read nothing.
                    has_news = true;
                    continue;
                }
                break;
            }
            wakes.sleep();
            return Poll::Pending;
        }
        // The runtime has a turn: V8's calls wait for their answers in tasks of its own, and there
        // are timers.
        has_news = true;
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Wakes the task of [`drive`] if it sleeps. While it polls, the next poll is one turn of its loop
/// and not one of the runtime, which would ask the system for events first.
struct Wakes {
    outer: Waker,
    is_awake: AtomicBool,
    is_woken: AtomicBool,
}

impl Wakes {
    /// Before the task sleeps.
    fn sleep(&self) {
        self.is_awake.store(false, Ordering::SeqCst);
        if self.is_woken.load(Ordering::SeqCst) {
            // It was woken in the meantime: by another thread, or by what has arrived.
            self.outer.wake_by_ref();
        }
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        if !self.is_awake.load(Ordering::SeqCst) {
            self.outer.wake_by_ref();
        }
    }
}

//! Long work in steps, between which the run that it is for can be stopped.

use std::future::poll_fn;
use std::task::Poll;

/// Ends a step of work on a script's thread: its task is polled again at once. Not `yield_now` of tokio, which may wake
/// its caller only when the thread has nothing else to do: a blocking call of the script would wait for itself.
pub(crate) fn end_step() -> impl Future<Output = ()> {
    let mut has_ended = false;
    poll_fn(move |task| {
        if std::mem::replace(&mut has_ended, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
}

//! Futures on a thread of a model.

use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::{Current, Reason, Status, any, current};

struct TaskWaker(Current);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.0.execution.state.lock();
        let task = &mut state.tasks[self.0.task];
        task.is_woken = true;
        if matches!(task.status, Status::Waits { on: Reason::Waker, .. }) {
            task.status = Status::Ready;
        }
    }
}

/// Polls `future` until it is complete. In between, waits for its wakers and for the timers of
/// [`super::types::sleep`].
#[track_caller]
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    poll_times(future, usize::MAX).expect("as many polls as it takes")
}

/// As [`block_on`], but drops the future after `polls` polls, or when it is woken after them.
#[track_caller]
pub(crate) fn poll_times<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let me = current().expect("in a model");
    let waker = Waker::from(Arc::new(TaskWaker(me.clone())));
    let mut future = pin!(future);
    for left in (0..polls).rev() {
        me.step("poll", Location::caller());
        {
            let mut state = me.execution.state.lock();
            let task = &mut state.tasks[me.task];
            (task.is_woken, task.timer) = (false, None);
        }
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let (is_woken, timer) = {
            let state = me.execution.state.lock();
            (state.tasks[me.task].is_woken, state.tasks[me.task].timer)
        };
        if left == 0 && any(2) == 0 {
            break;
        }
        if !is_woken {
            me.wait(Reason::Waker, timer);
        }
    }
    None
}

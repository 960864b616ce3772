//! A request of a script that is in flight while there is a tape.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Answer, Tape, TapeMode};
use crate::run::recording::Delivered;

/// A request that was made. Completes when its answer is delivered.
pub(crate) struct Performed {
    tape: Arc<Tape>,
    /// `None` if the recording has no space for it.
    item: Option<Delivered>,
    /// In a recording: the future of the real answer.
    real: Option<BoxFuture<'static, Answer>>,
    answer: Option<Answer>,
    is_polled: bool,
    is_queued: bool,
}

impl Performed {
    pub(super) fn new(
        tape: Arc<Tape>,
        item: Option<Delivered>,
        real: Option<BoxFuture<'static, Answer>>,
    ) -> Self {
        Self { tape, item, real, answer: None, is_polled: false, is_queued: false }
    }

    /// The request's item on the tape.
    pub(crate) fn item(&self) -> Option<Delivered> {
        self.item
    }
}

impl Future for Performed {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Answer> {
        let this = &mut *self;
        let is_first = !std::mem::replace(&mut this.is_polled, true);
        let Some(item) = this.item else {
            // The recording ignores it from now on.
            return this.real.as_mut().map_or(Poll::Pending, |real| real.poll_unpin(task));
        };
        if let Some(real) = &mut this.real {
            if this.answer.is_none() {
                // The lock is not held while the host works.
                if let TapeMode::Recording(recorder) = &mut *this.tape.state.lock() {
                    recorder.answering = Some(item);
                }
                let polled = real.poll_unpin(task);
                if let TapeMode::Recording(recorder) = &mut *this.tape.state.lock() {
                    recorder.answering = None;
                    if polled.is_ready() {
                        recorder.note_answered(item);
                    }
                }
                let Poll::Ready(answer) = polled else { return Poll::Pending };
                this.answer = Some(answer);
            }
            let Some(answer) = &this.answer else { return Poll::Pending };
            let mut woken = None;
            let is_delivered = match &mut *this.tape.state.lock() {
                TapeMode::Recording(recorder) => {
                    let is_queued = std::mem::replace(&mut this.is_queued, true);
                    recorder.deliver(item, answer, is_first, is_queued, task.waker(), &mut woken)
                }
                TapeMode::Replaying(_) => true,
            };
            if let Some(waker) = woken {
                waker.wake();
            }
            return match this.answer.take_if(|_| is_delivered) {
                Some(answer) => Poll::Ready(answer),
                None => Poll::Pending,
            };
        }
        let polled = match &mut *this.tape.state.lock() {
            TapeMode::Recording(_) => Poll::Pending,
            TapeMode::Replaying(replayer) => replayer.poll(item, task.waker()),
        };
        this.tape.wake_stopped();
        polled
    }
}

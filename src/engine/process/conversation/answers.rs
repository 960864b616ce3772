//! Answers to a worker: those of calls are sent when the calls end, those of a tape at once.

use std::sync::Arc;
use std::task::Poll;

use futures::StreamExt as _;

use super::{Answered, Call, Conversation, Event};
use crate::engine::host::{MAX_CALLS, RunHost};
use crate::engine::process::wire::{self, CallError, FromWorker, Reply, ToWorker};
use crate::tools::{ToolError, ToolErrorCode};

impl Conversation {
    /// Polls a call for the first time, so that it has begun before anything else is read.
    pub(super) fn begin_call(
        &mut self,
        host: &Arc<dyn RunHost>,
        mut future: Call,
        call: u64,
    ) -> Result<Option<Event>, String> {
        // Engines have checked this; a worker that was taken over has not.
        if self.calls.len() >= MAX_CALLS {
            let message = format!("{} calls are in flight; await some of them first", self.calls.len());
            let refused = Err(ToolError::new(ToolErrorCode::QueueFull, message));
            self.answer(call, Answered::Text(refused))?;
        } else {
            let mut task = std::task::Context::from_waker(std::task::Waker::noop());
            match future.as_mut().poll(&mut task) {
                Poll::Ready((call, answered)) => self.answer(call, answered)?,
                // It is polled again with the task's waker, because it is new there.
                Poll::Pending => self.calls.push(future),
            }
        }
        if host.tape().is_some() {
            self.reply(Reply::Begun)?;
        }
        Ok(None)
    }

    /// Records that a call of the run has failed, so that its worker may say that the run failed because of it.
    pub(super) fn record_failure(&mut self, error: ToolError) -> CallError {
        if !self.failure_codes.contains(&error.code) {
            self.failure_codes.push(error.code);
        }
        error.into()
    }

    pub(super) fn answer(&mut self, call: u64, answered: Answered) -> Result<(), String> {
        let message = match answered {
            Answered::Text(answer) => {
                ToWorker::Answer { call, answer: answer.map_err(|error| self.record_failure(error)) }
            }
            Answered::Names(names) => {
                ToWorker::Names { call, names: names.map_err(|error| self.record_failure(error)) }
            }
            Answered::File(answer) => ToWorker::File { call, answer },
        };
        self.send(&message)
    }

    pub(super) fn handle_tape(&mut self, message: FromWorker, host: &Arc<dyn RunHost>) -> Result<(), String> {
        let tape = host.tape().ok_or("it asks for a tape, which the run has not")?;
        let reply = match message {
            FromWorker::OpenTurn => {
                tape.open_turn();
                Reply::Done
            }
            FromWorker::OpenWait(timeout_ms) => Reply::Wait(tape.open_wait(timeout_ms).into()),
            FromWorker::CloseWait(has_delivered) => {
                tape.close_wait(has_delivered);
                Reply::Done
            }
            FromWorker::SetBlocking(is_blocking) => {
                tape.set_blocking(is_blocking);
                Reply::Done
            }
            FromWorker::ReadClock { is_wall, real } => {
                Reply::Clock(tape.read_clock(wire::clock(is_wall), real))
            }
            FromWorker::Random(count) => {
                let mut bytes = vec![0; (count as usize).min(wire::MAX_RANDOM)];
                tape.fill_random(&mut bytes);
                Reply::Random(bytes)
            }
            _ => return Err("a message that is none".to_owned()),
        };
        // Answers that this delivers arrive before the script continues.
        let mut task = std::task::Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some((call, answered))) = self.calls.poll_next_unpin(&mut task) {
            self.answer(call, answered)?;
        }
        self.reply(reply)
    }
}

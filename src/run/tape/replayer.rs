//! Plays a recording back.
//!
//! Calls are compared with the recorded ones in the order in which the script makes them. Timers,
//! waits and clock readings are not compared: an edited script may have others. Additional timers
//! and waits pass as fast as possible, and clocks continue from the last recorded reading.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::difference::{
    Difference, both_requests, difference_of_outcome, difference_of_output, outcome_text, preview,
};
use super::parts::{Answer, Wait};
use crate::durations::nanoseconds;
use crate::run::errors::over;
use crate::run::recording::{
    Cursor, Delivered, GuestClock, RecordedAnswer, Recording, Request, is_same_text,
};
use crate::run::result::{ErrorCode, ExecuteResult, LogLevel, Outcome, ScriptError};

/// Nanoseconds by which a clock advances with each reading that the recording does not have.
const CLOCK_STEP: u64 = 100_000;

/// Why a replay has ended before its script.
enum StopReason {
    /// The recorded run was stopped here too.
    AsRecorded,
    Differs(Difference),
}

/// The state of a tape that plays back.
pub(super) struct Replayer {
    recording: Arc<Recording>,
    cancel: CancellationToken,
    pub(super) blocking: u32,
    stopped: Option<StopReason>,
    calls_made: usize,
    /// Timers by their time in a clock that counts only delays, for those that the recording does not deliver.
    running_timers: BTreeSet<(Duration, usize)>,
    /// The time of each timer that was started, by position, so that no search is needed.
    timer_times: Vec<Duration>,
    /// The time of the last timer that was delivered without the recording.
    timer_time: Duration,
    /// The index of the current turn.
    turn: usize,
    /// Number of waits in the current turn so far.
    waits: u64,
    granted: Option<Delivered>,
    wakers: HashMap<Delivered, Waker>,
    wall: ReplayedClock,
    monotonic: ReplayedClock,
}

#[derive(Default)]
struct ReplayedClock {
    /// The position in the clock readings of the current turn.
    cursor: Cursor,
    last: u64,
}

impl Replayer {
    pub(super) fn new(recording: Arc<Recording>) -> Self {
        Self {
            wall: ReplayedClock { last: nanoseconds(recording.header.started), ..ReplayedClock::default() },
            recording,
            cancel: CancellationToken::new(),
            blocking: 0,
            stopped: None,
            calls_made: 0,
            running_timers: BTreeSet::new(),
            timer_times: Vec::new(),
            timer_time: Duration::ZERO,
            turn: 0,
            waits: 0,
            granted: None,
            wakers: HashMap::new(),
            monotonic: ReplayedClock::default(),
        }
    }

    pub(super) fn recording(&self) -> &Recording {
        &self.recording
    }

    pub(super) fn begin(&mut self, cancel: CancellationToken) {
        self.cancel = cancel;
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    pub(super) fn cancel(&self) -> CancellationToken {
        self.cancel.clone()
    }

    pub(super) fn begin_call(&mut self, request: &Request) -> Delivered {
        let position = self.calls_made;
        self.calls_made += 1;
        match self.recording.calls.get(position) {
            Some(recorded) if request.is_same(&recorded.request) => {}
            Some(recorded) => {
                let [expected, found] = both_requests(&recorded.request, request);
                self.differ(position, expected, found);
            }
            None => {
                let expected = match &self.recording.end.missing {
                    Some(missing) => {
                        format!("nothing: the recording has reached its bound and lacks {missing}")
                    }
                    None => "no further call".to_owned(),
                };
                self.differ(position, expected, preview(request));
            }
        }
        Delivered::Call(position)
    }

    pub(super) fn begin_timer(&mut self, delay: Duration) -> Delivered {
        let position = self.timer_times.len();
        let time = self.timer_time.saturating_add(delay);
        self.timer_times.push(time);
        self.running_timers.insert((time, position));
        Delivered::Timer(position)
    }

    fn differ(&mut self, position: usize, expected: String, found: String) {
        let call = Some(position as u64 + 1);
        self.stopped.get_or_insert(StopReason::Differs(Difference { call, expected, found }));
    }

    /// The request of the recorded call at this position.
    fn recorded_request(&self, position: usize) -> String {
        self.recording.calls.get(position).map(|call| preview(&call.request)).unwrap_or_default()
    }

    /// Polls a request.
    pub(super) fn poll(&mut self, item: Delivered, waker: &Waker) -> Poll<Answer> {
        if self.is_stopped() {
            // A blocking operation has to return; other requests stay pending until the end.
            return if self.blocking > 0 { Poll::Ready(Err(over())) } else { Poll::Pending };
        }
        let recording = Arc::clone(&self.recording);
        let recorded = match item {
            Delivered::Call(position) => recording.calls.get(position).map(|call| (position, call)),
            Delivered::Timer(_) | Delivered::End => None,
        };
        if let Some((position, call)) = recorded {
            if let (RecordedAnswer::LeftOut(bytes), true) = (&call.answer, call.is_immediate) {
                self.lack(position, *bytes);
                return self.poll(item, waker);
            }
            if let (RecordedAnswer::Given(answer), true) =
                (&call.answer, call.is_immediate || self.blocking > 0)
            {
                return Poll::Ready(answer.clone());
            }
            if self.blocking > 0 {
                self.end_without(position);
                return self.poll(item, waker);
            }
        }
        if self.granted != Some(item) {
            self.wakers.insert(item, waker.clone());
            return Poll::Pending;
        }
        self.granted = None;
        match recorded {
            None => Poll::Ready(Ok("null".to_owned())),
            Some((_, call)) => match &call.answer {
                RecordedAnswer::Given(answer) => Poll::Ready(answer.clone()),
                RecordedAnswer::None | RecordedAnswer::LeftOut(_) => Poll::Pending,
            },
        }
    }

    /// Ends the replay where the recording lacks an answer.
    fn lack(&mut self, position: usize, bytes: usize) {
        let found = "a recording in which this answer was left out".to_owned();
        self.differ(position, format!("an answer of {bytes} bytes"), found);
    }

    /// Ends the replay at a call whose answer the recorded run never received.
    fn end_without(&mut self, position: usize) {
        if self.was_stopped() {
            self.stopped.get_or_insert(StopReason::AsRecorded);
            return;
        }
        let expected = match &self.recording.end.missing {
            Some(missing) => format!("what the recording lacks, because it has reached its bound: {missing}"),
            None => "an end of the run before this call was answered".to_owned(),
        };
        self.differ(position, expected, "a script that waits for the answer".to_owned());
    }

    /// Whether a limit or the user ended the recorded run.
    fn was_stopped(&self) -> bool {
        matches!(
            &self.recording.end.outcome,
            Outcome::Failed(ScriptError {
                code: ErrorCode::Timeout
                    | ErrorCode::CpuLimit
                    | ErrorCode::Cancelled
                    | ErrorCode::MemoryLimit,
                tool_code: None,
                ..
            })
        )
    }

    /// Ends the replay where the recorded run was stopped.
    fn stop_as_recorded(&mut self) {
        self.stopped = Some(StopReason::AsRecorded);
        self.cancel.cancel();
    }

    fn next_turn(&mut self) {
        self.turn += 1;
        self.waits = 0;
        self.wall.cursor = Cursor::default();
        self.monotonic.cursor = Cursor::default();
    }

    fn grant(&mut self, item: Delivered) -> Option<Waker> {
        self.granted = Some(item);
        self.wakers.remove(&item)
    }

    /// The timer to deliver where the recording delivers none: the one with the earliest time. The clocks advance to
    /// that time.
    fn next_timer(&mut self) -> Option<Delivered> {
        let (time, position) = self.running_timers.pop_first()?;
        self.advance_clocks(time.saturating_sub(self.timer_time));
        self.timer_time = self.timer_time.max(time);
        Some(Delivered::Timer(position))
    }

    /// Advances both clocks by a time that the recorded run did not wait for.
    fn advance_clocks(&mut self, by: Duration) {
        for clock in [&mut self.wall, &mut self.monotonic] {
            clock.last = clock.last.saturating_add(nanoseconds(by));
        }
    }

    pub(super) fn open_turn(&mut self) -> Option<Waker> {
        loop {
            if self.is_stopped() || self.granted.is_some() {
                return None;
            }
            match self.recording.turns.get(self.turn).map(|turn| turn.delivered) {
                Some(Delivered::Call(position)) if position < self.calls_made => {
                    return self.deliver_call(position);
                }
                Some(Delivered::Timer(position)) => {
                    self.next_turn();
                    // An edited script may not have started this timer.
                    if let Some(&time) = self.timer_times.get(position)
                        && self.running_timers.remove(&(time, position))
                    {
                        self.timer_time = self.timer_time.max(time);
                        return self.grant(Delivered::Timer(position));
                    }
                }
                next => {
                    let is_end = !matches!(next, Some(Delivered::Call(_)));
                    if is_end && self.was_stopped() {
                        self.stop_as_recorded();
                        return None;
                    }
                    if let Some(timer) = self.next_timer() {
                        return self.grant(timer);
                    }
                    self.get_stuck(next);
                    return None;
                }
            }
        }
    }

    /// Ends the turn with the answer to a call that the script has made.
    fn deliver_call(&mut self, position: usize) -> Option<Waker> {
        if let Some(&RecordedAnswer::LeftOut(bytes)) =
            self.recording.calls.get(position).map(|call| &call.answer)
        {
            self.lack(position, bytes);
            self.cancel.cancel();
            return None;
        }
        self.next_turn();
        self.grant(Delivered::Call(position))
    }

    /// Ends a replay in which the script waits for ever: either for a call that was never answered, or the recording
    /// continues with a call that the script has not made.
    fn get_stuck(&mut self, next: Option<Delivered>) {
        match next {
            Some(Delivered::Call(position)) => {
                let found = "a script that waits and does not make this call".to_owned();
                self.differ(position, self.recorded_request(position), found);
            }
            _ => {
                let turns = self.recording.turns.iter();
                let delivered: HashSet<Delivered> = turns.map(|turn| turn.delivered).collect();
                let is_open = |call: &usize| {
                    let recorded = self.recording.calls.get(*call);
                    !delivered.contains(&Delivered::Call(*call))
                        && recorded.is_some_and(|call| !call.is_immediate)
                };
                // If there is none, the script waits for something else, and the engine will say so.
                let Some(position) = (0..self.calls_made).find(is_open) else { return };
                self.end_without(position);
            }
        }
        self.cancel.cancel();
    }

    pub(super) fn open_wait(&mut self, timeout_ms: Option<f64>) -> (Wait, Option<Waker>) {
        if self.is_stopped() || self.granted.is_some() {
            return (Wait::Delivers, None);
        }
        let recorded = self.recording.turns.get(self.turn).map(|turn| (turn.waits, turn.delivered));
        let (waits, delivered) = recorded.unwrap_or_default();
        if timeout_ms.is_some() && self.waits < waits {
            self.waits += 1;
            return (Wait::Empty, None);
        }
        match delivered {
            Delivered::Call(position) if position < self.calls_made => {
                (Wait::Delivers, self.deliver_call(position))
            }
            Delivered::End if self.was_stopped() => {
                self.stop_as_recorded();
                (Wait::Delivers, None)
            }
            next => {
                if let Some(timeout) = timeout_ms {
                    // An edited script may wait for longer, or more often.
                    let passed = Duration::try_from_secs_f64(timeout.max(0.0) / 1000.0).unwrap_or_default();
                    self.advance_clocks(passed);
                    return (Wait::Empty, None);
                }
                self.get_stuck(Some(next));
                (Wait::Delivers, None)
            }
        }
    }

    pub(super) fn read_clock(&mut self, clock: GuestClock) -> u64 {
        let turn = self.recording.turns.get(self.turn);
        let (state, readings) = match clock {
            GuestClock::Wall => (&mut self.wall, turn.map(|turn| &turn.wall)),
            GuestClock::Monotonic => (&mut self.monotonic, turn.map(|turn| &turn.monotonic)),
        };
        let recorded = readings.and_then(|readings| readings.at(&mut state.cursor));
        let value = recorded.unwrap_or_else(|| state.last.saturating_add(CLOCK_STEP));
        // A wall clock may go backwards.
        state.last = if clock == GuestClock::Monotonic { value.max(state.last) } else { value };
        state.last
    }

    pub(super) fn lines(&self, position: usize) -> Vec<(LogLevel, String)> {
        self.recording.calls.get(position).map(|call| call.lines.clone()).unwrap_or_default()
    }

    pub(super) fn closing_lines(&self) -> Vec<(LogLevel, String)> {
        if self.is_stopped() { Vec::new() } else { self.recording.end.closing.clone() }
    }

    pub(super) fn complete(&mut self, result: &mut ExecuteResult) -> Option<Difference> {
        let end = &self.recording.end;
        match self.stopped.take() {
            Some(StopReason::Differs(difference)) => return Some(difference),
            Some(StopReason::AsRecorded) => result.outcome = end.outcome.clone(),
            None => {}
        }
        if self.calls_made < self.recording.calls.len() {
            let position = self.calls_made;
            return Some(Difference {
                call: Some(position as u64 + 1),
                expected: self.recorded_request(position),
                found: format!("the end of the script: {}", outcome_text(&result.outcome)),
            });
        }
        // What the host knew of the calls: all of them were the same.
        result.tool_calls.clone_from(&end.tool_calls);
        result.returned.clone_from(&end.returned);
        result.planned_calls.clone_from(&end.planned_calls);
        result.sampling.clone_from(&end.sampling);
        result.usage.tool_calls = end.usage.tool_calls;
        result.usage.tool_calls_refused = end.usage.tool_calls_refused;
        result.usage.tool_result_bytes = end.usage.tool_result_bytes;
        result.usage.planned_calls_dropped = end.usage.planned_calls_dropped;
        if let (Outcome::Failed(error), Outcome::Failed(recorded)) = (&mut result.outcome, &end.outcome)
            && error.code == recorded.code
            && is_same_text(&error.message, &recorded.message)
        {
            error.hint.clone_from(&recorded.hint);
            error.retry_after = recorded.retry_after;
        }
        difference_of_output(&result.logs, &end.logs)
            .or_else(|| difference_of_outcome(&result.outcome, &end.outcome))
    }
}

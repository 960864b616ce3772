//! Records a run.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio_util::sync::CancellationToken;

use super::parts::{Answer, Facts, MAX_CLOCK_STEPS};
use crate::run::recording::{
    Delivered, GuestClock, Header, MAX_CALLS, MAX_KEPT_BYTES, MAX_TURNS, RecordedAnswer, RecordedCall,
    RecordedEnd, Recording, Request, Turn,
};
use crate::run::result::{ExecuteResult, LogLevel};
use crate::run::script::Script;
use crate::tools::ToolErrorCode;

/// The state of a tape that records.
pub(super) struct Recorder {
    seed: [u8; 32],
    header: Option<Header>,
    /// Cancelled when the run has to end.
    cancel: Option<CancellationToken>,
    began: Instant,
    calls: Vec<RecordedCall>,
    timers: Vec<f64>,
    turns: Vec<Turn>,
    /// The current turn.
    turn: Turn,
    kept_bytes: usize,
    missing: Option<String>,
    pub(super) has_unrecorded_files: bool,
    /// How many blocking operations are in progress.
    pub(super) blocking: u32,
    /// The item whose answer the host is computing.
    pub(super) answering: Option<Delivered>,
    pub(super) closing: Vec<(LogLevel, String)>,
    /// Items that have their answer and wait for a turn.
    queue: VecDeque<Delivered>,
    wakers: HashMap<Delivered, Waker>,
    /// The item that has the turn.
    granted: Option<Delivered>,
    /// Whether the next item that is ready gets the turn.
    is_open: bool,
    /// Timers that have not fired, by time.
    running_timers: BTreeSet<(Instant, usize)>,
    deadlines: Vec<Instant>,
    /// The last reading of each clock.
    last_wall: u64,
    last_monotonic: u64,
    clock_steps: usize,
}

impl Recorder {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self {
            seed,
            header: None,
            cancel: None,
            began: Instant::now(),
            calls: Vec::new(),
            timers: Vec::new(),
            turns: Vec::new(),
            turn: Turn::default(),
            kept_bytes: 0,
            missing: None,
            has_unrecorded_files: false,
            blocking: 0,
            answering: None,
            closing: Vec::new(),
            queue: VecDeque::new(),
            wakers: HashMap::new(),
            granted: None,
            is_open: false,
            running_timers: BTreeSet::new(),
            deadlines: Vec::new(),
            last_wall: 0,
            last_monotonic: 0,
            clock_steps: 0,
        }
    }

    pub(super) fn begin(&mut self, script: &Script, facts: Facts) {
        self.began = Instant::now();
        self.cancel = Some(facts.cancel);
        self.header = Some(Header {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            language: script.language,
            name: script.name.clone(),
            source: script.source.clone(),
            input: script.input.clone(),
            limits: facts.limits,
            time_zone: facts.time_zone.to_owned(),
            clock_resolution: facts.clock_resolution,
            servers: facts.servers,
            has_network: facts.has_network,
            seed: self.seed,
            is_dry_run: script.is_dry_run,
            started: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            masked: 0,
        });
    }

    pub(super) fn begin_call(&mut self, request: Request) -> Option<Delivered> {
        if self.is_full(self.calls.len() >= MAX_CALLS, || format!("what follows call {MAX_CALLS}")) {
            return None;
        }
        let bytes = request.bytes();
        if !self.keep(bytes) {
            self.missing = Some(format!("what follows call {}", self.calls.len()));
            return None;
        }
        self.calls.push(RecordedCall {
            request,
            answer: RecordedAnswer::None,
            lines: Vec::new(),
            is_immediate: false,
            made: self.began.elapsed(),
            took: Duration::ZERO,
            is_masked: false,
        });
        Some(Delivered::Call(self.calls.len() - 1))
    }

    pub(super) fn begin_timer(&mut self, milliseconds: f64, delay: Duration) -> Option<Delivered> {
        if self.is_full(self.timers.len() >= MAX_TURNS, || format!("what follows timer {MAX_TURNS}")) {
            return None;
        }
        self.timers.push(milliseconds);
        let (position, deadline) = (self.timers.len() - 1, Instant::now() + delay);
        self.deadlines.push(deadline);
        self.running_timers.insert((deadline, position));
        Some(Delivered::Timer(position))
    }

    /// Whether recording has stopped, because a bound is reached.
    fn is_full(&mut self, is_reached: bool, what: impl FnOnce() -> String) -> bool {
        if is_reached && self.missing.is_none() {
            self.missing = Some(what());
        }
        self.missing.is_some()
    }

    fn keep(&mut self, bytes: usize) -> bool {
        let is_kept = self.kept_bytes.saturating_add(bytes) <= MAX_KEPT_BYTES;
        if is_kept {
            self.kept_bytes += bytes;
        }
        is_kept
    }

    pub(super) fn note_answered(&mut self, item: Delivered) {
        if let Delivered::Call(position) = item
            && let Some(call) = self.calls.get_mut(position)
        {
            call.took = self.began.elapsed().saturating_sub(call.made);
        }
    }

    /// Whether an existing answer can be delivered now. If so, it is recorded. `woken` is another item that has the
    /// turn.
    pub(super) fn deliver(
        &mut self,
        item: Delivered,
        answer: &Answer,
        is_first: bool,
        is_queued: bool,
        waker: &Waker,
        woken: &mut Option<Waker>,
    ) -> bool {
        if let Delivered::Call(position) = item
            && (is_first || self.blocking > 0)
        {
            if is_queued {
                self.queue.retain(|queued| *queued != item);
            }
            self.record_answer(position, answer, true);
            return true;
        }
        match item {
            Delivered::Timer(position) => self.queue_timers_until(position),
            Delivered::Call(_) if !is_queued => self.queue.push_back(item),
            Delivered::Call(_) | Delivered::End => {}
        }
        if self.granted.is_none() && self.is_open {
            self.granted = self.queue.pop_front();
        }
        if self.granted != Some(item) {
            self.wakers.insert(item, waker.clone());
            *woken = self.granted.and_then(|granted| self.wakers.remove(&granted));
            return false;
        }
        (self.granted, self.is_open) = (None, false);
        self.wakers.remove(&item);
        if let Delivered::Call(position) = item
            && !self.record_answer(position, answer, false)
        {
            return true;
        }
        self.turn.delivered = item;
        self.end_turn();
        true
    }

    /// Queues the timers up to this one, by time.
    fn queue_timers_until(&mut self, position: usize) {
        let Some(&deadline) = self.deadlines.get(position) else { return };
        while let Some(&first) = self.running_timers.first()
            && first <= (deadline, position)
        {
            self.running_timers.pop_first();
            self.queue.push_back(Delivered::Timer(first.1));
        }
    }

    /// Records an answer. Returns `false` for a call that was cancelled at the end of the run: it counts as unanswered.
    /// One that the script has ended itself has its error as its answer.
    fn record_answer(&mut self, position: usize, answer: &Answer, is_immediate: bool) -> bool {
        let is_over = self.cancel.as_ref().is_some_and(CancellationToken::is_cancelled);
        if is_over && answer.as_ref().is_err_and(|error| error.code == ToolErrorCode::Cancelled) {
            return false;
        }
        let bytes = match answer {
            Ok(text) => text.len(),
            Err(error) => error.message.len() + error.content.as_ref().map_or(0, |json| json.text().len()),
        };
        let is_kept = self.keep(bytes);
        let Some(call) = self.calls.get_mut(position) else { return false };
        call.is_immediate = is_immediate;
        call.answer =
            if is_kept { RecordedAnswer::Given(answer.clone()) } else { RecordedAnswer::LeftOut(bytes) };
        true
    }

    fn end_turn(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        if !self.is_full(self.turns.len() >= MAX_TURNS, || format!("what follows turn {MAX_TURNS}")) {
            self.turns.push(turn);
        }
    }

    /// Allows the next ready item to be delivered. Returns the waker of the task that waits for it.
    pub(super) fn open_turn(&mut self) -> Option<Waker> {
        if self.granted.is_some() {
            return None;
        }
        self.granted = self.queue.pop_front();
        self.is_open = true;
        self.granted.and_then(|granted| self.wakers.remove(&granted))
    }

    pub(super) fn close_wait(&mut self, has_delivered: bool) {
        if !has_delivered {
            self.turn.waits += 1;
            self.is_open = false;
            if let Some(granted) = self.granted.take() {
                self.queue.push_front(granted);
            }
        }
    }

    pub(super) fn read_clock(&mut self, clock: GuestClock, real: u64) -> u64 {
        // Doubles with each eighth beyond the bound.
        let beyond = self.clock_steps.saturating_sub(MAX_CLOCK_STEPS) / (MAX_CLOCK_STEPS / 8);
        let coarse = if self.clock_steps > MAX_CLOCK_STEPS { 1_000_000 << beyond.min(30) } else { 1 };
        let value = real - real % coarse;
        let (last, readings) = match clock {
            GuestClock::Wall => (&mut self.last_wall, &mut self.turn.wall),
            GuestClock::Monotonic => (&mut self.last_monotonic, &mut self.turn.monotonic),
        };
        // A coarser clock must not go back.
        let value = if coarse > 1 || clock == GuestClock::Monotonic { value.max(*last) } else { value };
        *last = value;
        self.clock_steps += usize::from(readings.add(value));
        value
    }

    pub(super) fn defer_line(&mut self, level: LogLevel, text: String) -> Option<String> {
        if let Some(Delivered::Call(position)) = self.answering
            && self.keep(text.len())
            && let Some(call) = self.calls.get_mut(position)
        {
            call.lines.push((level, text));
            return None;
        }
        Some(text)
    }

    pub(super) fn lines(&self, position: usize) -> Vec<(LogLevel, String)> {
        self.calls.get(position).map(|call| call.lines.clone()).unwrap_or_default()
    }

    pub(super) fn finish(&mut self, result: &ExecuteResult) -> Option<Recording> {
        let header = self.header.take()?;
        // The time from the last delivery to the end.
        self.turn.delivered = Delivered::End;
        self.turns.push(std::mem::take(&mut self.turn));
        Some(Recording {
            header,
            calls: std::mem::take(&mut self.calls),
            timers: std::mem::take(&mut self.timers),
            turns: std::mem::take(&mut self.turns),
            end: RecordedEnd {
                outcome: result.outcome.clone(),
                logs: result.logs.clone(),
                closing: std::mem::take(&mut self.closing),
                tool_calls: result.tool_calls.clone(),
                returned: result.returned.clone(),
                planned_calls: result.planned_calls.clone(),
                sampling: result.sampling.clone(),
                usage: result.usage,
                missing: self.missing.take(),
                has_unrecorded_files: self.has_unrecorded_files,
            },
        })
    }
}

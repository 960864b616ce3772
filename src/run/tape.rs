//! The tape of a run: records what the host gives to a script, or plays a recording back.
//!
//! A script depends only on what its host gives it. The engines are deterministic otherwise: V8 and CPython have one
//! thread each, and a script sees nothing outside of them. So a recording contains exactly what crosses the trust
//! boundary towards the guest, in its order:
//!
//! - **Answers** to calls and queries, as the text that the guest receives (`src/engine/host_calls.rs`).
//!   Servers, catalogue, policies, approvals, state and language models are on the other side of this cut: a
//!   replay reaches none of them.
//! - **The order of delivery.** While a tape is there, a script gets one answer or timer at a time, and only
//!   when its event loop has nothing else to do (a *turn*): in TypeScript when the loop is idle
//!   (`open_turn`), in Python in a `wait` (`open_wait`). An answer that the host has immediately takes no turn.
//!   A replay delivers in the same turns, and sleeps in none of them.
//! - **Clock readings**, as the script made them, per turn; equal readings in a row are one step
//!   ([`Readings`](super::recording::Readings)). A logical clock was the alternative: it would need no
//!   readings, but a script that waits in a loop for the time to pass would never end, or see time pass
//!   faster than its calls. Beyond `MAX_CLOCK_STEPS` the recorded clock gets coarser instead of longer.
//! - **A seed.** Random bytes come from it, also those of `Math.random` (`js/70_tape.js`) and of Python's
//!   generator, which is seeded again when the run starts.
//!
//! With a tape, timers of TypeScript are host calls, because the event loop of deno_core fires its own timers by its
//! own clock. Without a tape, the only cost for a run is the check whether there is one.
//!
//! What is not played back: garbage collection (`WeakRef`, `FinalizationRegistry`), memory and CPU limits.

mod difference;
mod parts;
mod performed;
mod random;
mod recorder;
mod replayer;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use parking_lot::Mutex;

pub use self::difference::Difference;
pub(crate) use self::parts::{Answer, Facts, Wait};
pub(crate) use self::performed::Performed;
use self::random::SeededBytes;
use self::recorder::Recorder;
use self::replayer::Replayer;
use crate::run::finding::Finding;
use crate::run::recording::{Delivered, GuestClock, Recording, Request};
use crate::run::result::{ErrorCode, ExecuteResult, LogLevel, Outcome, ScriptError};
use crate::run::script::Script;

/// The tape of one run. Shared by the script's thread, which uses it, and the executor.
pub(crate) struct Tape {
    state: Mutex<TapeMode>,
    random: Mutex<SeededBytes>,
    /// The start of the monotonic clock of TypeScript.
    started: OnceLock<Instant>,
}

enum TapeMode {
    Recording(Box<Recorder>),
    Replaying(Box<Replayer>),
}

impl Tape {
    /// A tape that records.
    pub(crate) fn recording(seed: [u8; 32]) -> Arc<Self> {
        Self::new(seed, TapeMode::Recording(Box::new(Recorder::new(seed))))
    }

    /// A tape that plays a recording back.
    pub(crate) fn replaying(recording: Arc<Recording>) -> Arc<Self> {
        Self::new(recording.header.seed, TapeMode::Replaying(Box::new(Replayer::new(recording))))
    }

    fn new(seed: [u8; 32], state: TapeMode) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(state),
            random: Mutex::new(SeededBytes::new(seed)),
            started: OnceLock::new(),
        })
    }

    /// Begins the run. Must be called once, before anything else.
    pub(crate) fn begin(&self, script: &Script, facts: Facts) {
        self.started.get_or_init(Instant::now);
        match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => recorder.begin(script, facts),
            TapeMode::Replaying(replayer) => replayer.begin(facts.cancel),
        }
    }

    /// The names of the servers that the script sees in a replay.
    pub(crate) fn servers(&self) -> Option<Vec<Arc<str>>> {
        match &*self.state.lock() {
            TapeMode::Recording(_) => None,
            TapeMode::Replaying(replayer) => Some(replayer.recording().header.servers.clone()),
        }
    }

    /// Whether the script has `fetch`. In a replay: whether the recorded script had it. Otherwise `is_granted`.
    pub(crate) fn has_network(&self, is_granted: bool) -> bool {
        match &*self.state.lock() {
            TapeMode::Recording(_) => is_granted,
            TapeMode::Replaying(replayer) => replayer.recording().header.has_network,
        }
    }

    /// Whether this is a replay.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(&*self.state.lock(), TapeMode::Replaying(_))
    }

    /// In a replay: why the check refused `source` before the recorded run. A replay has no servers that a check could
    /// ask.
    pub(crate) fn recorded_refusal(&self, source: &str) -> Option<ScriptError> {
        let TapeMode::Replaying(replayer) = &*self.state.lock() else { return None };
        let recording = replayer.recording();
        match &recording.end.outcome {
            Outcome::Failed(error)
                if error.code == ErrorCode::CheckFailed && *recording.header.source == *source =>
            {
                Some(error.clone())
            }
            _ => None,
        }
    }

    /// In a replay: the recorded findings of the check, if the script is unchanged and its run had failed.
    pub(crate) fn problems(&self, source: &str) -> Option<Vec<Finding>> {
        let TapeMode::Replaying(replayer) = &*self.state.lock() else { return None };
        let recording = replayer.recording();
        Some(match &recording.end.outcome {
            Outcome::Failed(error) if *recording.header.source == *source => error.problems.clone(),
            _ => Vec::new(),
        })
    }

    /// The resolution of the clocks in a replay.
    pub(crate) fn clock_resolution(&self) -> Option<Duration> {
        match &*self.state.lock() {
            TapeMode::Recording(_) => None,
            TapeMode::Replaying(replayer) => Some(replayer.recording().header.clock_resolution),
        }
    }

    /// Performs a request of the script: a recording calls `real`, a replay uses the recorded answer. The request has
    /// been made when this returns.
    pub(crate) fn perform(
        self: &Arc<Self>,
        request: Request,
        real: impl FnOnce() -> BoxFuture<'static, Answer>,
    ) -> Performed {
        let (item, is_real) = match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => (recorder.begin_call(request), true),
            TapeMode::Replaying(replayer) => (Some(replayer.begin_call(&request)), false),
        };
        self.wake_stopped();
        Performed::new(Arc::clone(self), item, is_real.then(real))
    }

    /// Starts a timer. Its answer is `null`.
    pub(crate) fn timer(self: &Arc<Self>, milliseconds: f64) -> Performed {
        // The minimum delay is one millisecond, as in browsers and deno_core.
        let milliseconds =
            if milliseconds >= 1.0 { milliseconds.min(f64::from(i32::MAX)).trunc() } else { 1.0 };
        let delay = Duration::from_secs_f64(milliseconds / 1000.0);
        let (item, is_real) = match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => (recorder.begin_timer(milliseconds, delay), true),
            TapeMode::Replaying(replayer) => (Some(replayer.begin_timer(delay)), false),
        };
        let sleep = || -> BoxFuture<'static, Answer> {
            // Made now, because the delay counts from now.
            let sleep = tokio::time::sleep(delay);
            Box::pin(async move {
                sleep.await;
                Ok("null".to_owned())
            })
        };
        Performed::new(Arc::clone(self), item, is_real.then(sleep))
    }

    /// While blocking is set, answers are delivered as soon as they exist, because the script's thread blocks until it
    /// has them. Calls can be nested.
    pub(crate) fn set_blocking(&self, is_blocking: bool) {
        let mut state = self.state.lock();
        let blocking = match &mut *state {
            TapeMode::Recording(recorder) => &mut recorder.blocking,
            TapeMode::Replaying(replayer) => &mut replayer.blocking,
        };
        *blocking = if is_blocking { blocking.saturating_add(1) } else { blocking.saturating_sub(1) };
    }

    /// Lets one answer or timer be delivered. TypeScript: called when the event loop has nothing else to do.
    pub(crate) fn open_turn(&self) {
        let waker = match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => recorder.open_turn(),
            TapeMode::Replaying(replayer) => replayer.open_turn(),
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// As [`open_turn`](Self::open_turn), for a wait of Python of at most `timeout_ms`.
    pub(crate) fn open_wait(&self, timeout_ms: Option<f64>) -> Wait {
        let (wait, waker) = match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => (Wait::Real, recorder.open_turn()),
            TapeMode::Replaying(replayer) => replayer.open_wait(timeout_ms),
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        wait
    }

    /// Ends a wait of Python.
    pub(crate) fn close_wait(&self, has_delivered: bool) {
        if let TapeMode::Recording(recorder) = &mut *self.state.lock() {
            recorder.close_wait(has_delivered);
        }
    }

    /// A reading of a clock in nanoseconds. In a recording it is `real`.
    pub(crate) fn read_clock(&self, clock: GuestClock, real: u64) -> u64 {
        match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => recorder.read_clock(clock, real),
            TapeMode::Replaying(replayer) => replayer.read_clock(clock),
        }
    }

    /// Time since the start of the recorded run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Fills `bytes` with random bytes.
    pub(crate) fn fill_random(&self, bytes: &mut [u8]) {
        self.random.lock().fill(bytes);
    }

    /// Keeps a line that the host prints while it answers a call, to print it when the answer is delivered.
    /// Returns the line if no call is being answered.
    pub(crate) fn defer_line(&self, level: LogLevel, text: String) -> Option<String> {
        match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => recorder.defer_line(level, text),
            TapeMode::Replaying(_) => Some(text),
        }
    }

    /// The lines of a call whose answer is delivered.
    pub(crate) fn lines(&self, item: Option<Delivered>) -> Vec<(LogLevel, String)> {
        let Some(Delivered::Call(position)) = item else { return Vec::new() };
        match &*self.state.lock() {
            TapeMode::Recording(recorder) => recorder.lines(position),
            TapeMode::Replaying(replayer) => replayer.lines(position),
        }
    }

    /// The lines that the host prints about the outcome. In a replay these are the recorded ones.
    pub(crate) fn closing_lines(&self, lines: Vec<(LogLevel, String)>) -> Vec<(LogLevel, String)> {
        match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => {
                recorder.closing.clone_from(&lines);
                lines
            }
            TapeMode::Replaying(replayer) => replayer.closing_lines(),
        }
    }

    /// Whether a replay was ended before its script: further output of the script is not shown.
    pub(crate) fn is_stopped(&self) -> bool {
        match &*self.state.lock() {
            TapeMode::Recording(_) => false,
            TapeMode::Replaying(replayer) => replayer.is_stopped(),
        }
    }

    /// Ends the run of a replay that differs from its recording.
    fn wake_stopped(&self) {
        let cancel = match &*self.state.lock() {
            TapeMode::Replaying(replayer) if replayer.is_stopped() => replayer.cancel(),
            _ => return,
        };
        cancel.cancel();
    }

    /// Records that the script used granted directories in a way that is not recorded.
    pub(crate) fn note_unrecorded_files(&self) {
        if let TapeMode::Recording(recorder) = &mut *self.state.lock() {
            recorder.has_unrecorded_files = true;
        }
    }

    /// The recording of a run that has this result; `None` if it was never begun.
    pub(crate) fn finish_recording(&self, result: &ExecuteResult) -> Option<Recording> {
        match &mut *self.state.lock() {
            TapeMode::Recording(recorder) => recorder.finish(result),
            TapeMode::Replaying(_) => None,
        }
    }

    /// Completes the result of a replay with the host's records of the recorded run. Returns the first difference.
    pub(crate) fn complete(&self, result: &mut ExecuteResult) -> Option<Difference> {
        match &mut *self.state.lock() {
            TapeMode::Recording(_) => None,
            TapeMode::Replaying(replayer) => replayer.complete(result),
        }
    }
}

//! One isolate: created and warmed up ahead of time, used for one script, and dropped on its
//! thread.

mod snapshot;

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use deno_core::{JsRuntime, PollEventLoopOptions, v8};

use self::snapshot::{EntryPoints, restore, take_entry_points};
use super::host_calls::start_options;
use super::loader::ServerModules;
use super::memory::{self, MemoryMeter};
use super::ops::{HostInterface, StreamsSource};
use super::platform::{self, HeapSpace};
use super::stack_traces::StackTraces;
use super::transpile::{Positions, transpile};
use super::uncaught;
use crate::engine::host::{HostCalls, RunHost, RunTape};
use crate::engine::stop::Stop;
use crate::run::time_zone::TimeZone;
#[cfg(all(feature = "process", target_os = "linux"))]
use crate::text::ids::random_bytes;

/// What build.rs makes of deno_web's code for streams.
static STREAMS: &str = include_str!(concat!(env!("OUT_DIR"), "/streams.js"));

/// How a script ended, before locations are mapped to the author's text.
pub(crate) enum RawOutcome {
    /// The value as JSON text.
    Value(String),
    /// The report of `describe` in `js/40_errors.js`, as JSON text.
    Threw(String),
    /// V8 rejects the transpiled source; line and column of the generated code, from 1.
    Refused { message: String, line: u32, column: u32 },
    /// The script awaits a promise that nothing can settle.
    NeverSettles,
    /// The script's value is this many bytes of JSON or more.
    TooLarge(usize),
    /// The run was stopped; the reason is in its [`Stop`].
    Stopped,
    /// An internal inconsistency. It is reported instead of causing a panic.
    Broken(String),
}

/// A warm isolate whose globals exist and that has run no script yet.
pub(crate) struct Isolate {
    runtime: JsRuntime,
    start: v8::Global<v8::Function>,
    main: v8::Global<v8::Function>,
    set_time_zone: v8::Global<v8::Function>,
    modules: Rc<ServerModules>,
    pub(crate) meter: Arc<MemoryMeter>,
    pub(crate) stop: Arc<Stop>,
    /// Dropped after the isolate.
    _heap_space: HeapSpace,
}

impl Isolate {
    /// Creates an isolate on the current thread. A tokio runtime must be entered there: V8 posts
    /// delayed tasks to it and aborts without one.
    ///
    /// # Errors
    ///
    /// If the snapshot does not fit the engine, or there is no address space for another isolate.
    pub(crate) fn new(memory_bytes: usize) -> Result<Self, String> {
        let made = platform::make_isolate(memory_bytes).map_err(|error| error.to_string())?;
        let (_making, heap_space) = made;
        let stop = Arc::new(Stop::default());
        let meter = Arc::new(MemoryMeter::new(memory_bytes, Arc::clone(&stop)));
        let modules = Rc::new(ServerModules::default());
        let mut runtime = restore(&meter, &modules, memory_bytes)?;
        memory::watch_heap(&mut runtime, &meter);
        let handle = runtime.v8_isolate().thread_safe_handle();
        stop.attach(move || {
            handle.terminate_execution();
        });
        let EntryPoints { start, run, set_time_zone, fail_run } = take_entry_points(&mut runtime)?;
        uncaught::listen(runtime.v8_isolate(), fail_run)?;
        let mut isolate =
            Self { runtime, start, main: run, set_time_zone, modules, meter, stop, _heap_space: heap_space };
        isolate.set_time_zone(TimeZone::UTC)?;
        isolate.warm_up()?;
        isolate.count_memory();
        Ok(isolate)
    }

    /// Executes the path of a run once, up to the call of the script. This moves first-time work of
    /// V8 and the processor out of the run: it is a third of a trivial run's time.
    pub(super) fn warm_up(&mut self) -> Result<(), String> {
        let transpiled = transpile("0", 1, &|| false).map_err(|failed| failed.error.to_string())?;
        deno_core::scope!(scope, self.runtime);
        let undefined: v8::Local<v8::Value> = v8::undefined(scope).into();
        let text = |text: &str| v8::String::new(scope, text).ok_or("no memory for a string");
        let (options, source) = (
            text(r#"{"servers":[],"clock":1,"tape":false,"network":false,"input":null}"#)?,
            text(&transpiled.code)?,
        );
        let started = v8::Local::new(scope, &self.start).call(scope, undefined, &[options.into()]);
        let script = v8::Script::compile(scope, source, None).and_then(|script| script.run(scope));
        if started.is_none() || script.is_none() {
            return Err("the bootstrap does not run".to_owned());
        }
        Ok(())
    }

    /// Moves `Math.random` to a place of its own, in an isolate that other processes have, too, because they were forked.
    /// V8 takes a seed of 31 bits; the first numbers of its sequence are skipped, so that there are 2^43 such places.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
    #[cfg(all(feature = "process", target_os = "linux"))]
    pub(super) fn reseed(&mut self) -> Result<(), String> {
        const MAX_SKIPPED: u16 = (1 << 12) - 1;
        let [a, b, c, d, e, f] = random_bytes().map_err(|error| format!("no random numbers: {error}"))?;
        let (seed, skipped) = (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]) & MAX_SKIPPED);
        deno_core::scope!(scope, self.runtime);
        let code = format!("for (let left = {skipped}; left >= 0; left--) Math.random()");
        let code = v8::String::new(scope, &code).ok_or("no memory for a string")?;
        let drawn = platform::with_random_seed(seed, || {
            v8::Script::compile(scope, code, None).and_then(|script| script.run(scope)).is_some()
        });
        if drawn { Ok(()) } else { Err("`Math.random` does not run".to_owned()) }
    }

    /// Sets the time zone of everything that reads the local one. Dates that there are already keep
    /// theirs.
    ///
    /// # Errors
    ///
    /// If ICU or V8 fails, or the isolate was stopped.
    fn set_time_zone(&mut self, time_zone: TimeZone) -> Result<(), String> {
        if time_zone != TimeZone::UTC {
            // V8 drops the default that it has cached, and does not read the machine's time zone.
            self.runtime
                .v8_isolate()
                .date_time_configuration_change_notification(v8::TimeZoneDetection::Skip);
        }
        deno_core::scope!(scope, self.runtime);
        let name = v8::String::new(scope, time_zone.name()).ok_or("no memory for a string")?;
        let undefined: v8::Local<v8::Value> = v8::undefined(scope).into();
        let set = v8::Local::new(scope, &self.set_time_zone);
        let called = platform::with_default_time_zone(time_zone, || {
            set.call(scope, undefined, &[name.into()]).is_some()
        });
        match called {
            Ok(true) => Ok(()),
            Ok(false) => Err("the bootstrap cannot set the time zone".to_owned()),
            Err(status) => Err(format!("ICU cannot set the time zone `{time_zone}`: status {status}")),
        }
    }

    /// Runs `code`, an expression that evaluates to an async function, to its end.
    ///
    /// Returns when the function's promise settles, when nothing can settle it any more, or soon
    /// after the run's token is cancelled. Everything else that the script started is abandoned.
    pub(crate) async fn run(
        &mut self,
        run: &Arc<dyn RunHost>,
        code: String,
        positions: Rc<Positions>,
    ) -> RawOutcome {
        StackTraces::install(self.runtime.v8_isolate(), run.script_name(), positions);
        let host: Rc<dyn HostInterface> = Rc::new(HostCalls::new(Arc::clone(run)));
        {
            let state = self.runtime.op_state();
            let mut state = state.borrow_mut();
            state.put(host);
            state.put(StreamsSource(STREAMS));
            // `performance.now()` counts from the run's start, not from when the isolate was warmed
            // up.
            state.put(deno_web::StartTime::default());
        }
        self.meter.count_files(run.files().budget());
        self.modules.start(Arc::clone(run));
        let time_zone = run.time_zone();
        // A warm isolate has UTC already.
        if time_zone != TimeZone::UTC
            && let Err(problem) = self.set_time_zone(time_zone)
        {
            let is_stopped = self.stop.reason().is_some();
            return if is_stopped { RawOutcome::Stopped } else { RawOutcome::Broken(problem) };
        }
        let promise = match self.begin(&**run, code) {
            Ok(promise) => promise,
            Err(outcome) => return outcome,
        };
        let tape = run.tape();
        let settled = tokio::select! {
            biased;
            () = run.cancelled().cancelled() => return RawOutcome::Stopped,
            settled = poll_fn(|task| match tape.as_deref() {
                None => self.poll_settled(&promise, task),
                Some(tape) => self.poll_with_tape(tape, &promise, task),
            }) => settled,
        };
        self.meter.check_at_end(self.runtime.v8_isolate());
        // A cancelled call raises an error in the script, which may have ended the script just now.
        if self.stop.reason().is_some() || run.cancelled().is_cancelled() {
            return RawOutcome::Stopped;
        }
        match settled {
            Ok(value) => self.read(&value, run.limits().result_bytes),
            Err(outcome) => outcome,
        }
    }

    /// Polls the event loop until `promise` settles, and returns its value.
    ///
    /// deno_core's `resolve` does this too, but for a promise that never settles it leaks a waker,
    /// which keeps the thread's runtime and its two descriptors. Each run that is stopped while it
    /// waits would leak them.
    fn poll_settled(
        &mut self,
        promise: &v8::Global<v8::Promise>,
        task: &mut Context<'_>,
    ) -> Poll<Result<v8::Global<v8::Value>, RawOutcome>> {
        self.modules.next_turn();
        let ended = match self.runtime.poll_event_loop(task, PollEventLoopOptions::default()) {
            Poll::Ready(Err(error)) => return Poll::Ready(Err(RawOutcome::Broken(error.to_string()))),
            Poll::Ready(Ok(())) => true,
            Poll::Pending => false,
        };
        deno_core::scope!(scope, self.runtime);
        let promise = v8::Local::new(scope, promise);
        match promise.state() {
            v8::PromiseState::Fulfilled => {
                let value = promise.result(scope);
                Poll::Ready(Ok(v8::Global::new(scope, value)))
            }
            v8::PromiseState::Rejected => {
                let reason = promise.result(scope);
                let message = v8::Exception::create_message(scope, reason).get(scope);
                Poll::Ready(Err(RawOutcome::Broken(message.to_rust_string_lossy(scope))))
            }
            v8::PromiseState::Pending if ended => Poll::Ready(Err(RawOutcome::NeverSettles)),
            v8::PromiseState::Pending => Poll::Pending,
        }
    }

    /// As [`Self::poll_settled`], but lets the tape deliver something when the event loop has
    /// nothing else to do, that is, when it was not woken while it was polled.
    fn poll_with_tape(
        &mut self,
        tape: &dyn RunTape,
        promise: &v8::Global<v8::Promise>,
        task: &mut Context<'_>,
    ) -> Poll<Result<v8::Global<v8::Value>, RawOutcome>> {
        let noticed =
            Arc::new(NoticedWaker { waker: task.waker().clone(), is_woken: AtomicBool::new(false) });
        let waker = Waker::from(Arc::clone(&noticed));
        let polled = self.poll_settled(promise, &mut Context::from_waker(&waker));
        if polled.is_pending() && !noticed.is_woken.load(Ordering::Relaxed) {
            tape.open_turn();
        }
        polled
    }

    /// Compiles `code` without running it. The value is `null`.
    pub(crate) fn compile(&mut self, run: &dyn RunHost, code: String) -> RawOutcome {
        deno_core::scope!(scope, self.runtime);
        v8::tc_scope!(let scope, scope);
        match compile(scope, run, code) {
            Ok(Some(_)) => RawOutcome::Value("null".to_owned()),
            Ok(None) => failure(scope, &self.stop),
            Err(outcome) => outcome,
        }
    }

    /// Compiles the script and calls it. Exceptions of guest code are caught in the guest; this
    /// returns the promise of the run's outcome.
    fn begin(&mut self, run: &dyn RunHost, code: String) -> Result<v8::Global<v8::Promise>, RawOutcome> {
        deno_core::scope!(scope, self.runtime);
        v8::tc_scope!(let scope, scope);
        let options = string(scope, &start_options(run))?;
        let undefined: v8::Local<v8::Value> = v8::undefined(scope).into();
        let start = v8::Local::new(scope, &self.start);
        if start.call(scope, undefined, &[options.into()]).is_none() {
            return Err(failure(scope, &self.stop));
        }
        let main = compile(scope, run, code)?.and_then(|script| script.run(scope));
        let Some(main) = main else {
            return Err(failure(scope, &self.stop));
        };
        let entry = v8::Local::new(scope, &self.main);
        let Some(promise) = entry.call(scope, undefined, &[main]) else {
            return Err(failure(scope, &self.stop));
        };
        let Ok(promise) = v8::Local::<v8::Promise>::try_from(promise) else {
            return Err(RawOutcome::Broken("the bootstrap's answer is not a promise".to_owned()));
        };
        // Rejections are checked by the caller.
        promise.mark_as_handled();
        Ok(v8::Global::new(scope, promise))
    }

    /// Reads the outcome that `run` in `js/90_bootstrap.js` promised.
    fn read(&mut self, value: &v8::Global<v8::Value>, max: usize) -> RawOutcome {
        deno_core::scope!(scope, self.runtime);
        let value = v8::Local::new(scope, value);
        let Ok(text) = v8::Local::<v8::String>::try_from(value) else {
            return RawOutcome::Broken("the bootstrap's outcome is not text".to_owned());
        };
        // Checked before the text is copied. Its first character is a mark, which does not count.
        if text.length() > max + 1 {
            return RawOutcome::TooLarge(text.length() - 1);
        }
        marked_outcome(text.to_rust_string_lossy(scope), max)
    }

    /// Bytes of heap and buffers now.
    pub(crate) fn count_memory(&mut self) -> usize {
        self.meter.read(self.runtime.v8_isolate());
        self.meter.used()
    }
}

/// The outcome in a text of the bootstrap: a value after `+`, or a report after `-`, of at most `max` bytes.
fn marked_outcome(mut text: String, max: usize) -> RawOutcome {
    let Some(mark) = text.chars().next() else {
        return RawOutcome::Broken("the bootstrap's outcome is empty".to_owned());
    };
    text.drain(..mark.len_utf8());
    match mark {
        _ if text.len() > max => RawOutcome::TooLarge(text.len()),
        '+' => RawOutcome::Value(text),
        '-' => RawOutcome::Threw(text),
        _ => RawOutcome::Broken(format!("the bootstrap's outcome has the mark {mark:?}")),
    }
}

/// A waker that knows whether it was used.
struct NoticedWaker {
    waker: Waker,
    is_woken: AtomicBool,
}

impl Wake for NoticedWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Relaxed);
        self.waker.wake_by_ref();
    }
}

/// Releases the pages of dropped isolates that V8 keeps for later ones, whichever thread they were
/// used on. Takes some milliseconds. Called like [`Isolate::new`].
///
/// V8's own timer does not suffice: a page that is added to the pool within five seconds of the
/// timer's last start, when the pool has been empty since, starts none, and stays until another
/// page comes (`MemoryPool::PostDelayedReleaseTaskIfNeeded`, `src/heap/memory-pool.cc`). What
/// releases the whole pool is critical memory pressure, of which an isolate must be told. A new one
/// has little garbage to collect. It must be of cx's snapshot: all isolates share what is read-only,
/// so after one of another snapshot, made when there is no other isolate, V8 would abort at the next.
///
/// # Errors
///
/// As for [`Isolate::new`].
pub(super) fn release_pooled_pages(memory_bytes: usize) -> Result<(), String> {
    let made = platform::make_isolate(memory_bytes).map_err(|error| error.to_string())?;
    let (_making, _heap_space) = made;
    let meter = Arc::new(MemoryMeter::new(memory_bytes, Arc::default()));
    let mut runtime = restore(&meter, &Rc::default(), memory_bytes)?;
    runtime.v8_isolate().memory_pressure_notification(v8::MemoryPressureLevel::Critical);
    Ok(())
}

fn string<'s>(scope: &v8::PinScope<'s, '_, ()>, text: &str) -> Result<v8::Local<'s, v8::String>, RawOutcome> {
    // Fails only beyond V8's maximum string length, which is far above every limit.
    v8::String::new(scope, text).ok_or_else(|| RawOutcome::Broken("text too long for V8".to_owned()))
}

/// Compiles the script under its name. `None` if V8 rejects it.
fn compile<'s>(
    scope: &v8::PinScope<'s, '_>,
    run: &dyn RunHost,
    code: String,
) -> Result<Option<v8::Local<'s, v8::Script>>, RawOutcome> {
    let name = string(scope, run.script_name())?;
    let source = string(scope, &code)?;
    drop(code);
    let origin = v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, -1, None, false, false, false, None);
    Ok(v8::Script::compile(scope, source, Some(&origin)))
}

/// Why a call into V8 failed: the run was stopped, or V8 rejects the source. Errors of guest code
/// never get here.
fn failure(scope: &mut v8::PinnedRef<'_, v8::TryCatch<v8::HandleScope>>, stop: &Stop) -> RawOutcome {
    if stop.reason().is_some() || scope.has_terminated() {
        return RawOutcome::Stopped;
    }
    let Some(message) = scope.message() else {
        return RawOutcome::Broken("V8 gave no reason".to_owned());
    };
    let line = message.get_line_number(scope).and_then(|line| u32::try_from(line).ok());
    let column = u32::try_from(message.get_start_column()).unwrap_or(0) + 1;
    let text = message.get(scope).to_rust_string_lossy(scope);
    RawOutcome::Refused { message: text, line: line.unwrap_or(1), column }
}

#[cfg(test)]
mod tests;

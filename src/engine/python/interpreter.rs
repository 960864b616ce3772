//! One interpreter: made ahead of time, used for one script, and dropped.

use std::io;
use std::path::Path;
use std::sync::Arc;

use wasmtime::component::HasSelf;
use wasmtime::{Store, Trap, UpdateDeadline};

use super::bindings::{Guest, GuestPre, Script};
use super::compiled::{CompileError, PackedCode, Source};
use super::engine::PythonEngine;
use super::host::Host;
use super::memories::MemoryLocation;
use super::report::{self, GuestExit};
use super::survey;
use super::wasi::GuestState;
use crate::engine::compile::{CodeForm, CompileProgress};
use crate::engine::host::{RunHost, RunTape};
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::stop::{Stop, StopReason};
use crate::engine::thread_root::ThreadRoot;
use crate::json::Json;
use crate::run::check::survey::Survey;
use crate::run::result::{ErrorCode, Outcome, ScriptError};
use crate::run::time_zone::TimeZone;
use crate::tools::names::python_name;

/// The version of CPython in the component. It is a constant because only a script could ask for it.
pub(crate) const PYTHON_VERSION: &str = "3.14.0";

/// The version of wasmtime in the lock file, because wasmtime does not export its own. An embedder may have another
/// patch release.
pub(crate) const WASMTIME_VERSION: &str = "48.0.8";

/// CPython, and the guest's side of the host interface, as built by `python-wasm/build.sh`.
const COMPONENT: Source<'static> = Source {
    compressed: cx_python_component::COMPRESSED,
    sha256: cx_python_component::SHA256,
    code: if cx_python_component::CODE.is_empty() {
        None
    } else {
        Some(PackedCode { compressed: cx_python_component::CODE, sha256: cx_python_component::CODE_SHA256 })
    },
};

/// Bytes that a run's limit must allow beyond what an interpreter uses from its start. With less,
/// not even the error message fits.
const MIN_ROOM: usize = 1 << 20;

/// Minimum memory limit in bytes of an interpreter that has no run yet, even if runs may use less.
/// At that point only our own code runs, so a script's limit does not apply.
const MIN_TO_START: usize = 64 << 20;

/// Stack size in bytes of the threads of interpreters, whose code has stacks of its own.
const STACK_BYTES: usize = 2 << 20;

/// Creates interpreters.
pub(crate) struct Interpreters {
    engine: PythonEngine,
    linked: GuestPre<GuestState<Host>>,
    /// Memory limit in bytes of an interpreter that has no run yet.
    memory_bytes: usize,
}

impl Interpreters {
    /// Loads the machine code from a cache directory, or makes it; see [`PythonEngine::shared`].
    /// Blocks.
    ///
    /// # Errors
    ///
    /// If there is no memory for the engine, no code for it, or if the component cannot be linked.
    pub(crate) fn load(
        form: CodeForm,
        caches: &[&Path],
        memory_bytes: usize,
        on_progress: &dyn Fn(CompileProgress),
    ) -> Result<Self, CompileError> {
        let engine = PythonEngine::shared(&COMPONENT, form, caches, on_progress)?;
        let linked = link(&engine).map_err(CompileError::engine)?;
        Ok(Self { engine, linked, memory_bytes: memory_bytes.max(MIN_TO_START) })
    }
}

fn link(engine: &PythonEngine) -> wasmtime::Result<GuestPre<GuestState<Host>>> {
    let mut linker = engine.linker::<Host>()?;
    Guest::add_to_linker::<_, HasSelf<GuestState<Host>>>(&mut linker, |state| state)?;
    GuestPre::new(linker.instantiate_pre(engine.component())?)
}

impl Engine for Interpreters {
    const THREAD: &'static str = "cx-py";
    type Instance = Interpreter;
    type Prepared = ();

    fn spawn(&self, name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        static ROOT: ThreadRoot = ThreadRoot::new("cx-py-root", || Ok(()), STACK_BYTES);
        ROOT.spawn(name, task)
    }

    async fn make(&self) -> Result<Interpreter, String> {
        let stop = Arc::new(Stop::default());
        let (host, sink) = Host::new();
        let mut store = self.engine.store(GuestState::new(host, self.memory_bytes, &sink));
        let order = Arc::clone(&stop);
        // Traps instead of only yielding: code that calls no host function must be stopped here.
        store.epoch_deadline_callback(move |store| match order.reason() {
            Some(_) => Err(wasmtime::format_err!("the run has to stop")),
            // The code itself stops at the limit that the run started with. Setting another one here has no effect:
            // the function that is interrupted here keeps its count in a register.
            None if store.data().run.fuel().is_some() && store.data().run.exceeds_fuel(store.get_fuel()?) => {
                Err(Trap::OutOfFuel.into())
            }
            None => Ok(UpdateDeadline::Continue(1)),
        });
        // Weak, because the stop order owns this function.
        let (memory, order) = (store.data().memory.shared(), Arc::downgrade(&stop));
        stop.attach_measure(move |limit| {
            if memory.lower_limit(limit)
                && let Some(order) = order.upgrade()
            {
                order.request(StopReason::Memory);
            }
        });
        if self.engine.form() == CodeForm::CountsFuel {
            // What is done ahead of a run does not count.
            store.set_fuel(u64::MAX).map_err(|error| format!("{error:#}"))?;
        }
        let made = async {
            let guest = self.linked.instantiate_async(&mut store).await?;
            guest.call_prepare(&mut store).await?;
            Ok::<_, wasmtime::Error>(guest)
        };
        match made.await {
            Ok(guest) => Ok(Interpreter {
                store,
                guest,
                stop,
                engine: self.engine.clone(),
                location: MemoryLocation::newest(),
            }),
            Err(error) => Err(format!("{error:#}")),
        }
    }

    #[cfg(all(feature = "process", target_os = "linux"))]
    fn begin_forked(&self) {
        super::memory::reopen_pagemap();
    }

    #[cfg(all(feature = "process", target_os = "linux"))]
    async fn renew(&self, interpreter: &mut Interpreter) -> Result<(), String> {
        let Interpreter { guest, store, .. } = interpreter;
        guest.call_prepare(store).await.map_err(|error| format!("{error:#}"))
    }

    fn prepare(&self, host: &dyn RunHost, source: &str) -> Result<(), Box<Unprepared>> {
        report::check_size(source, host.limits().source_bytes).map_err(|error| (*error).into())
    }

    fn tick(&self) {
        self.engine.tick();
    }

    fn trim(&self) {
        self.engine.trim();
    }
}

/// Finds what a script calls without an interpreter, for a script that is executed elsewhere.
///
/// # Errors
///
/// The run's error, for a source that is too large.
pub(crate) fn read(host: &dyn RunHost, source: &str) -> Result<Survey, Box<Unprepared>> {
    report::check_size(source, host.limits().source_bytes)
        .map_err(|error| Box::<Unprepared>::from(*error))?;
    Ok(survey::survey(source))
}

/// A CPython that has not run any script code yet.
pub(crate) struct Interpreter {
    store: Store<GuestState<Host>>,
    guest: Guest,
    stop: Arc<Stop>,
    engine: PythonEngine,
    /// The location of its memory, if that started from the image. No guest code runs unless
    /// `store` is borrowed.
    location: Option<Arc<MemoryLocation>>,
}

impl Instance<Interpreters> for Interpreter {
    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    fn set_memory_limit(&mut self, bytes: usize) {
        self.store.data_mut().memory.set_limit(bytes);
    }

    async fn survey(
        &mut self,
        _host: &Arc<dyn RunHost>,
        source: &str,
        (): &mut (),
    ) -> Result<Survey, Outcome> {
        Ok(survey::survey(source))
    }

    async fn execute(&mut self, host: &Arc<dyn RunHost>, source: &str, (): ()) -> Outcome {
        if let Some(error) = self.too_little_memory(&**host) {
            return Outcome::Failed(error);
        }
        if let Some(tape) = host.tape()
            && let Err(error) = self.start_tape(&**host, tape).await
        {
            return Outcome::Failed(*error);
        }
        if let Err(error) = self.start(host) {
            return Outcome::Failed(*error);
        }
        let exit = tokio::select! {
            biased;
            () = host.cancelled().cancelled() => GuestExit::Stopped,
            exit = run(&self.guest, &mut self.store, &**host, source) => exit,
        };
        self.outcome(exit, &**host, source)
    }

    async fn check(&mut self, host: &Arc<dyn RunHost>, source: &str, (): ()) -> Outcome {
        if let Some(error) = self.too_little_memory(&**host) {
            return Outcome::Failed(error);
        }
        if let Err(error) = self.start(host) {
            return Outcome::Failed(*error);
        }
        let exit = tokio::select! {
            biased;
            () = host.cancelled().cancelled() => GuestExit::Stopped,
            loaded = load(&self.guest, &mut self.store, &**host, source) => match loaded {
                Ok(()) => GuestExit::Answered("+null".to_owned()),
                Err(exit) => exit,
            },
        };
        self.outcome(exit, &**host, source)
    }

    fn memory_bytes(&self) -> usize {
        let state = self.store.data();
        state.memory.used() + state.memory.files_used()
    }

    fn fuel_used(&self) -> Option<u64> {
        Some(self.store.data().run.fuel()?.saturating_sub(self.store.get_fuel().ok()?))
    }

    fn trim(&mut self) {
        self.engine.trim_idle();
        if let Some(Err(error)) = self.location.as_deref().map(MemoryLocation::give_back) {
            tracing::debug!(%error, "an idle interpreter keeps its memory");
        }
    }
}

impl Interpreter {
    /// Assigns a run to the interpreter.
    ///
    /// # Errors
    ///
    /// If the run has a limit of fuel and the code counts none. The executor prevents that.
    fn start(&mut self, host: &Arc<dyn RunHost>) -> Result<(), Box<ScriptError>> {
        let fuel = host.limits().fuel;
        if let Some(fuel) = fuel {
            self.store.set_fuel(fuel).map_err(|error| {
                Box::new(ScriptError::new(ErrorCode::EngineUnavailable, format!("{error:#}")))
            })?;
        }
        let state = self.store.data_mut();
        state.clock.set(host.clock_resolution());
        state.start_files(host.files());
        state.run.start(host, fuel);
        Ok(())
    }

    /// Restarts the interpreter's clocks and random numbers with those of a tape. At its warm-up it
    /// was not yet known that its run would have one.
    async fn start_tape(
        &mut self,
        host: &dyn RunHost,
        tape: Arc<dyn RunTape>,
    ) -> Result<(), Box<ScriptError>> {
        let clock = &self.store.data().clock;
        clock.set(host.clock_resolution());
        clock.set_tape(tape);
        self.guest
            .call_prepare(&mut self.store)
            .await
            .map_err(|error| Box::new(ScriptError::new(ErrorCode::EngineUnavailable, format!("{error:#}"))))
    }

    fn outcome(&self, exit: GuestExit, host: &dyn RunHost, source: &str) -> Outcome {
        // A cancelled call raises an error in the script, which may have ended the script just now.
        let exit = if self.stop.reason().is_some() || host.cancelled().is_cancelled() {
            GuestExit::Stopped
        } else {
            exit
        };
        let state = self.store.data();
        report::outcome(
            exit,
            &report::Evidence {
                host,
                source,
                stopped: self.stop.reason(),
                memory_refused: state.memory.was_refused(),
                has_given: &|code| state.run.has_given(code),
            },
        )
    }

    /// The error for a run whose limit is below what the interpreter already uses.
    fn too_little_memory(&self, host: &dyn RunHost) -> Option<ScriptError> {
        let used = self.store.data().memory.used();
        let limit = host.limits().memory_bytes;
        (limit < used + MIN_ROOM).then(|| {
            let message = format!(
                "Python has {used} bytes of memory before a script runs, the run may use no more than {limit}"
            );
            ScriptError::new(ErrorCode::MemoryLimit, message)
                .with_hint(format!("ask for at least {} bytes of memory", used + 2 * MIN_ROOM))
        })
    }
}

/// Compiles the script. The error is how the run ends instead.
async fn load(
    guest: &Guest,
    store: &mut Store<GuestState<Host>>,
    host: &dyn RunHost,
    source: &str,
) -> Result<(), GuestExit> {
    let names = host.server_names();
    let servers: Vec<[String; 2]> = names.iter().map(|name| [name.to_string(), python_name(name)]).collect();
    let script = Script {
        source: source.to_owned(),
        name: host.script_name().to_owned(),
        input: host.input().map_or("null", Json::text).to_owned(),
        servers: serde_json::json!(servers).to_string(),
        argument_bytes: u32::try_from(host.limits().argument_bytes).unwrap_or(u32::MAX),
        result_bytes: u32::try_from(host.limits().result_bytes).unwrap_or(u32::MAX),
        time_zone: Some(host.time_zone())
            .filter(|time_zone| *time_zone != TimeZone::UTC)
            .map(|time_zone| time_zone.name().to_owned()),
        network: host.has_network(),
    };
    match guest.call_load(&mut *store, &script).await {
        Ok(None) => Ok(()),
        Ok(Some(report)) => Err(GuestExit::Refused(report)),
        Err(trap) => Err(GuestExit::Trapped(trap)),
    }
}

async fn run(
    guest: &Guest,
    store: &mut Store<GuestState<Host>>,
    host: &dyn RunHost,
    source: &str,
) -> GuestExit {
    if let Err(exit) = load(guest, store, host, source).await {
        return exit;
    }
    match guest.call_run(&mut *store).await {
        Ok(answer) => GuestExit::Answered(answer),
        Err(trap) => GuestExit::Trapped(trap),
    }
}

#[cfg(test)]
mod tests;

//! The wasmtime engine: its settings, and the stores that it creates.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};

use super::compiled::{self, CompileError, Runnable, Source};
use super::compiler;
use super::memories::Memories;
use super::memory;
use super::settings;
use super::wasi::{self, GuestState};
use crate::engine::compile::{CodeForm, CompileProgress};
use crate::machine::probe::{self, CodeMemory};

/// Stack size of WebAssembly code, in bytes. It is large enough that CPython exhausts its own stack
/// first: 1 MB in linear memory, which CPython checks and reports as a `RecursionError`. With 8
/// MiB, nested JSON and the destruction of a long chain of objects trapped. The stack is mapped
/// lazily: what a guest touches of it is not counted as its memory, but is bounded by this size.
const WASM_STACK: usize = 32 * 1024 * 1024;

/// Stack size of a guest together with the host functions that it calls, in bytes. Host functions
/// have the difference to [`WASM_STACK`].
const ASYNC_STACK: usize = WASM_STACK + 2 * 1024 * 1024;

/// Limit of the address space, in bytes, below which full reservations for memories are not made.
/// Each full reservation takes 4 GiB of address space that is never touched.
const AMPLE_ADDRESS_SPACE: u64 = 64 * 1024 * 1024 * 1024;

/// Memory in bytes that is mapped to load the machine code and to start the first interpreter.
const LOAD_MEMORY: usize = 192 << 20;

/// Bytes reserved for a memory where address space is scarce. A memory that grows beyond this
/// moves. Each access to it is bounds-checked, which costs a third of the speed.
const SCARCE_RESERVATION: u64 = 64 * 1024 * 1024;

/// Maximum size in bytes of the arguments of one host call: the largest value that any run's limits
/// allow, plus 64 KiB.
const HOSTCALL_BYTES: usize = crate::run::limits::Limits::CEILING.result_bytes + 64 * 1024;

/// Maximum number of resource handles that one guest may hold. CPython holds fewer than ten, and for each open
/// file a descriptor and a stream or two. The number of open files has a lower bound of its own.
const MAX_HANDLES: usize = 1_024;

/// CPython as machine code. There is one per process and form.
#[derive(Clone)]
pub(crate) struct PythonEngine {
    engine: Engine,
    component: Component,
    memories: Memories,
    form: CodeForm,
}

impl std::fmt::Debug for PythonEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PythonEngine").finish_non_exhaustive()
    }
}

impl PythonEngine {
    /// Loads the machine code from a cache directory, or unpacks it into the first one that can be used.
    /// Blocks for some milliseconds, for a part of a second when it unpacks, or for seconds if it has to
    /// compile. Without a cache directory every process does that.
    ///
    /// # Errors
    ///
    /// If the system has no memory for the engine, or if there is no code for it.
    pub(crate) fn load(
        source: &Source<'_>,
        form: CodeForm,
        caches: &[&Path],
        on_progress: &dyn Fn(CompileProgress),
    ) -> Result<Self, CompileError> {
        check_machine().map_err(|error| CompileError::Engine(error.into()))?;
        let memories = Memories::default();
        let config = config(address_space(), memories.clone(), form);
        let engine = Engine::new(&config).map_err(CompileError::engine)?;
        // The code in the program counts no fuel.
        let code = source.code.filter(|_| form == CodeForm::Plain);
        let source = Source { code, ..*source };
        let Runnable { component, image } =
            compiled::load(&engine, &source, compiler::INCLUDED, caches, on_progress)?;
        if let Some(image) = image {
            memories.set_image(image);
        }
        Ok(Self { engine, component, memories, form })
    }

    /// The engine with another component instead of CPython.
    #[cfg(test)]
    pub(super) fn with_component(binary: &[u8], form: CodeForm) -> wasmtime::Result<Self> {
        let memories = Memories::default();
        let engine = Engine::new(&config(address_space(), memories.clone(), form))?;
        let component = Component::new(&engine, binary)?;
        Ok(Self { engine, component, memories, form })
    }

    /// As [`load`](Self::load), but once per process and form: later calls wait for the first one
    /// and share its result, even with other cache directories.
    pub(crate) fn shared(
        source: &Source<'_>,
        form: CodeForm,
        caches: &[&Path],
        on_progress: &dyn Fn(CompileProgress),
    ) -> Result<Self, CompileError> {
        static PLAIN: Mutex<Option<PythonEngine>> = Mutex::new(None);
        static COUNTS_FUEL: Mutex<Option<PythonEngine>> = Mutex::new(None);
        let mut loaded = match form {
            CodeForm::Plain => PLAIN.lock(),
            CodeForm::CountsFuel => COUNTS_FUEL.lock(),
        };
        if let Some(engine) = &*loaded {
            return Ok(engine.clone());
        }
        let engine = Self::load(source, form, caches, on_progress)?;
        Ok(loaded.insert(engine).clone())
    }

    /// Creates a linker with everything that the component imports except the host functions.
    ///
    /// # Errors
    ///
    /// If the component imports something that cannot be refused.
    pub(crate) fn linker<R: Send + 'static>(&self) -> wasmtime::Result<Linker<GuestState<R>>> {
        wasi::linker(&self.engine, &self.component)
    }

    pub(crate) fn form(&self) -> CodeForm {
        self.form
    }

    pub(crate) fn component(&self) -> &Component {
        &self.component
    }

    /// Creates a store for one interpreter and one run. The guest yields to the async runtime at
    /// each [`PythonEngine::tick`], so that its future can be dropped. A caller that needs a trap
    /// there instead sets another `epoch_deadline_callback`.
    pub(crate) fn store<R: Send + 'static>(&self, state: GuestState<R>) -> Store<GuestState<R>> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.memory);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        store.set_hostcall_fuel(HOSTCALL_BYTES);
        store.set_max_component_handles(MAX_HANDLES);
        store
    }

    /// Releases the idle memories that are kept for later interpreters.
    pub(crate) fn trim(&self) {
        self.memories.forget_idle();
    }

    /// Idle trim: releases the memories that are kept for later interpreters, and the pages of
    /// CPython's code if they are backed by a file. Interpreters that run meanwhile read those
    /// pages again.
    pub(super) fn trim_idle(&self) {
        self.memories.forget_idle();
        let code = self.component.image_range();
        let length = code.end as usize - code.start as usize;
        // Code pages are never written to.
        if let Err(error) = memory::give_back(code.start.cast_mut(), length) {
            tracing::debug!(%error, "idle code stays in memory");
        }
    }

    /// Makes all running guests reach a point where they can be stopped.
    pub(crate) fn tick(&self) {
        self.engine.increment_epoch();
    }
}

/// Checks that the system grants what wasmtime needs to load code and to start an interpreter.
fn check_machine() -> io::Result<()> {
    probe::executable_memory(CodeMemory::WrittenThenExecuted)?;
    probe::private_memory(LOAD_MEMORY)
}

/// Maximum address space of this process in bytes (`ulimit -v`).
fn address_space() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::As).current.unwrap_or(u64::MAX)
}

/// The wasmtime settings. The machine code depends on those of `settings.rs`, and on whether address space is ample,
/// which the code in the program assumes.
pub(super) fn config(address_space: u64, memories: Memories, form: CodeForm) -> Config {
    let mut config = Config::new();
    settings::configure(&mut config);
    config
        .consume_fuel(form == CodeForm::CountsFuel)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        .wasm_backtrace_max_frames(NonZeroUsize::new(20))
        .with_host_memory(Arc::new(memories));
    if address_space < AMPLE_ADDRESS_SPACE {
        config
            .memory_reservation(SCARCE_RESERVATION)
            .memory_reservation_for_growth(SCARCE_RESERVATION)
            .memory_guard_size(64 * 1024);
    }
    config
}

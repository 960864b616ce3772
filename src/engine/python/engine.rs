//! The wasmtime engine: its settings, and the stores that it makes.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};

use super::compiled::{self, CompileError, CompileProgress, Runnable, Source};
use super::memory::{self, Memories};
use super::wasi::{self, State};

/// Stack of WebAssembly code. So large that CPython comes to the end of its own stack first, 1 MB in linear memory,
/// which it counts and ends as a `RecursionError`; with 8 MiB, nested JSON and the destruction of a long chain of
/// objects were traps. Mapped lazily: what a guest touches of it is not counted as its memory, but is bounded by this.
const WASM_STACK: usize = 32 * 1024 * 1024;

/// Stack of a guest and of the host functions that it calls; what these have is the difference.
const ASYNC_STACK: usize = WASM_STACK + 2 * 1024 * 1024;

/// Address space below which memories are not reserved whole: each takes 4 GiB of it, untouched.
const AMPLE_ADDRESS_SPACE: u64 = 64 * 1024 * 1024 * 1024;

/// Bytes reserved for a memory where address space is scarce. One that grows beyond moves, and each access to it is
/// checked, which costs a third of the speed.
const SCARCE_RESERVATION: u64 = 64 * 1024 * 1024;

/// Bytes that one call of a guest may bring to the host: the largest value that a run can be allowed, and a little.
const HOSTCALL_BYTES: usize = crate::run::limits::Limits::CEILING.result_bytes + 64 * 1024;

/// Handles of resources that one guest may hold. CPython holds fewer than ten.
const MAX_HANDLES: usize = 256;

/// CPython, compiled for this machine. One for each process.
#[derive(Clone)]
pub(crate) struct PythonEngine {
    engine: Engine,
    component: Component,
    memories: Memories,
}

impl std::fmt::Debug for PythonEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PythonEngine").finish_non_exhaustive()
    }
}

impl PythonEngine {
    /// Loads the compiled code from the cache directory, or compiles it first. Blocks: for some milliseconds, or for
    /// seconds the first time. Without a directory it is compiled in every process.
    ///
    /// # Errors
    ///
    /// When the system has no room for the engine or the component is not one.
    pub(crate) fn load(
        source: &Source<'_>,
        cache: Option<&Path>,
        on_progress: &dyn Fn(CompileProgress),
    ) -> Result<Self, CompileError> {
        let memories = Memories::default();
        let config = config(address_space(), memories.clone());
        let engine = Engine::new(&config).map_err(CompileError::engine)?;
        let Runnable { component, image } = compiled::load(&engine, source, cache, on_progress)?;
        if let Some(image) = image {
            memories.set_image(image);
        }
        Ok(Self { engine, component, memories })
    }

    /// The engine with another component in the place of CPython.
    #[cfg(test)]
    pub(super) fn with_component(binary: &[u8]) -> wasmtime::Result<Self> {
        let memories = Memories::default();
        let engine = Engine::new(&config(address_space(), memories.clone()))?;
        let component = Component::new(&engine, binary)?;
        Ok(Self { engine, component, memories })
    }

    /// As [`load`](Self::load), but once for the whole process: later calls share what the first has loaded,
    /// whatever their cache directory, and wait for it.
    pub(crate) fn shared(
        source: &Source<'_>,
        cache: Option<&Path>,
        on_progress: &dyn Fn(CompileProgress),
    ) -> Result<Self, CompileError> {
        static LOADED: Mutex<Option<PythonEngine>> = Mutex::new(None);
        let mut loaded = LOADED.lock();
        if let Some(engine) = &*loaded {
            return Ok(engine.clone());
        }
        let engine = Self::load(source, cache, on_progress)?;
        Ok(loaded.insert(engine).clone())
    }

    /// A linker with everything that the component needs except the host functions.
    ///
    /// # Errors
    ///
    /// When the component imports something that cannot be refused.
    pub(crate) fn linker<R: Send + 'static>(&self) -> wasmtime::Result<Linker<State<R>>> {
        wasi::linker(&self.engine, &self.component)
    }

    pub(crate) fn component(&self) -> &Component {
        &self.component
    }

    /// A store for one interpreter and one run. The guest yields to the async runtime at each [`PythonEngine::tick`],
    /// so that its future can be dropped; who wants it to trap there sets another `epoch_deadline_callback`.
    pub(crate) fn store<R: Send + 'static>(&self, state: State<R>) -> Store<State<R>> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.memory);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        store.set_hostcall_fuel(HOSTCALL_BYTES);
        store.set_max_component_handles(MAX_HANDLES);
        store
    }

    /// Gives back the memories that are kept for interpreters to come.
    pub(crate) fn trim(&self) {
        self.memories.forget_idle();
    }

    /// Gives back what is kept for interpreters to come, and CPython's code as far as it is in a file. Interpreters that
    /// run meanwhile read theirs again.
    pub(super) fn rest(&self) {
        self.memories.forget_idle();
        let code = self.component.image_range();
        let length = code.end as usize - code.start as usize;
        // Nobody writes to code.
        if let Err(error) = memory::give_back(code.start.cast_mut(), length) {
            tracing::debug!(%error, "idle code stays in memory");
        }
    }

    /// Lets all guests that run come to a point where they can be stopped.
    pub(crate) fn tick(&self) {
        self.engine.increment_epoch();
    }
}

/// Bytes of address space that this process may have (`ulimit -v`).
fn address_space() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::As).current.unwrap_or(u64::MAX)
}

/// The settings, which are part of what the code is compiled for.
///
/// Measured with two cores and `sum(i*i for i in range(10**6))`: 160 ms without interruption, 187 ms with epochs,
/// 206 ms with fuel.
fn config(address_space: u64, memories: Memories) -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .consume_fuel(false)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        .wasm_backtrace_max_frames(NonZeroUsize::new(20))
        // Nobody unwinds through the guest but wasmtime, which has its own tables.
        .native_unwind_info(false)
        .generate_address_map(false)
        // The guest starts from a picture of its memory, which is not in the component.
        .with_host_memory(Arc::new(memories))
        .memory_init_cow(false)
        // The component needs none of these. What cannot be compiled cannot be attacked.
        .concurrency_support(false)
        .wasm_memory64(false)
        .wasm_relaxed_simd(false)
        .wasm_wide_arithmetic(false)
        .shared_memory(false);
    if address_space < AMPLE_ADDRESS_SPACE {
        config
            .memory_reservation(SCARCE_RESERVATION)
            .memory_reservation_for_growth(SCARCE_RESERVATION)
            .memory_guard_size(64 * 1024);
    }
    config
}

//! The wasmtime engine: its settings, and the stores that it makes.

use std::num::NonZeroUsize;
use std::path::Path;

use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};

use super::compiled::{self, CompileError, CompileProgress, Source};
use super::wasi::{self, State};

/// Stack of WebAssembly code. CPython checks its own depth and raises `RecursionError` well before.
const WASM_STACK: usize = 2 * 1024 * 1024;

/// Stack of a guest and of the host functions that it calls; what these have is the difference. Touched lazily.
const ASYNC_STACK: usize = 4 * 1024 * 1024;

/// Bytes that one call of a guest may bring to the host. Arguments of a tool are limited more strictly and earlier;
/// a result is the largest thing that comes: 16 MiB and its copy.
const HOSTCALL_BYTES: usize = 64 * 1024 * 1024;

/// Handles of resources that one guest may hold. CPython holds fewer than ten.
const MAX_HANDLES: usize = 256;

/// CPython, compiled for this machine. One for each process.
#[derive(Clone)]
pub(crate) struct PythonEngine {
    engine: Engine,
    component: Component,
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
        let engine = Engine::new(&config()).map_err(CompileError::engine)?;
        let component = compiled::load(&engine, source, cache, on_progress)?;
        Ok(Self { engine, component })
    }

    /// A linker with all that the component needs but the door.
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

    /// Lets all guests that run come to a point where they can be stopped.
    pub(crate) fn tick(&self) {
        self.engine.increment_epoch();
    }
}

/// The settings, which are part of what the code is compiled for.
fn config() -> Config {
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
        // The guest starts from a picture of its memory, which the system copies page by page as it is written to.
        .memory_init_cow(true)
        // The component needs none of these. What cannot be compiled cannot be attacked.
        .concurrency_support(false)
        .wasm_memory64(false)
        .wasm_relaxed_simd(false)
        .wasm_wide_arithmetic(false)
        .shared_memory(false);
    config
}

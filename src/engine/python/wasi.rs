//! What an interpreter sees of WASI: clocks, random numbers, a closed stdin and two outputs.
//!
//! There is no file system, no network and no environment. Every function of `wasi:sockets` and `wasi:filesystem` is
//! ours and does nothing, so that none of the code that could open a file or a socket is linked to the guest at all.
//! Where such a function can fail it fails as "access denied", which is an `OSError` in Python; the others take a
//! handle that nobody can have, and trap. An import that is not named here is an error when the component is linked.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tokio_util::bytes::Bytes;
use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{
    Component, HasData, Linker, LinkerInstance, Resource, ResourceTable, ResourceType, Val,
};
use wasmtime::{Engine, ResourceLimiter, StoreContextMut};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::{cli, clocks, random};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, IoError, OutputStream, Pollable, StreamResult,
};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView as _};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// Bytes of one request for random numbers. CPython asks for 256 at a time.
const MAX_RANDOM_SIZE: u64 = 64 * 1024;

/// Streams and pollables that a guest may hold at once. CPython holds three and one for each `sleep`.
const MAX_RESOURCES: usize = 256;

/// Bytes that one write may have. What is larger comes in several.
const MAX_WRITE: usize = 64 * 1024;

/// What the component consists of, as measured: 14 core instances, 2 tables and 1 memory. Some more, because
/// another build of CPython may be cut otherwise.
const MAX_INSTANCES: usize = 40;
const MAX_TABLES: usize = 8;
const MAX_MEMORIES: usize = 2;

/// Elements of one table. CPython's functions that have an address are 5,674.
const MAX_TABLE_ELEMENTS: usize = 20_000;

/// Where the guest writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandardStream {
    Stdout,
    Stderr,
}

/// Takes what the guest writes, at most [`MAX_WRITE`] bytes at a time. It must not block; to drop is allowed, and
/// the guest does not learn of it: a stream that refuses would be a trap or an `OSError` in the middle of a `print`.
pub(crate) type Sink = Arc<dyn Fn(StandardStream, &[u8]) + Send + Sync>;

/// All that belongs to one interpreter on the host's side. `R` is what the host functions keep about the run.
pub(crate) struct State<R> {
    wasi: WasiCtx,
    table: ResourceTable,
    /// The memory that the guest has and may have.
    pub(crate) memory: MemoryLimiter,
    /// The run that the interpreter serves.
    pub(crate) run: R,
}

impl<R> fmt::Debug for State<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("State").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl<R> State<R> {
    /// A guest with at most `memory_bytes` of memory, which writes to `sink`.
    pub(crate) fn new(run: R, memory_bytes: usize, sink: &Sink) -> Self {
        let output = |stream| Output { stream, sink: Arc::clone(sink) };
        let wasi = WasiCtx::builder()
            .stdout(output(StandardStream::Stdout))
            .stderr(output(StandardStream::Stderr))
            .max_random_size(MAX_RANDOM_SIZE)
            // Nothing that asks these is linked. They are here for the day on which something is.
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        Self { wasi, table, memory: MemoryLimiter::new(memory_bytes), run }
    }
}

impl<R: Send> WasiView for State<R> {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Counts the bytes of all linear memories of a guest together and refuses what goes beyond the limit. CPython makes
/// a `MemoryError` of that. Not counted: what the host holds for the guest.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: usize,
    used: usize,
    /// `used` before the last growth, which the system may still refuse.
    before: usize,
    refused: bool,
}

impl MemoryLimiter {
    fn new(limit: usize) -> Self {
        Self { limit, used: 0, before: 0, refused: false }
    }

    /// Bytes that the guest has. Memory never shrinks: at the end it is the highest.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Whether the guest has asked for more than it may have, or than the system gives.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused
    }

    /// Sets the limit in bytes for all later growth.
    pub(crate) fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.used.saturating_sub(current).saturating_add(desired);
        if wanted > self.limit || maximum.is_some_and(|maximum| desired > maximum) {
            self.refused = true;
            return Ok(false);
        }
        self.before = self.used;
        self.used = wanted;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        tracing::warn!(%error, "the system has no memory for a Python script");
        self.used = self.before;
        self.refused = true;
        Ok(())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

/// A linker with everything that `component` needs of WASI. The caller adds the host functions.
///
/// # Errors
///
/// When the component imports a function of files or sockets in a form that cannot be refused.
pub(crate) fn linker<R: Send + 'static>(
    engine: &Engine,
    component: &Component,
) -> wasmtime::Result<Linker<State<R>>> {
    let mut linker = Linker::new(engine);
    allow(&mut linker)?;
    for (name, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        if !(name.starts_with("wasi:sockets/") || name.starts_with("wasi:filesystem/")) {
            continue;
        }
        let mut refused = linker.instance(name)?;
        for (function, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => {
                    refused.resource(function, resource(function), |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(signature) => refuse(&mut refused, function, &signature)?,
                // Types; there is nothing to define.
                _ => {}
            }
        }
    }
    Ok(linker)
}

/// The interfaces that are real.
fn allow<R: Send + 'static>(linker: &mut Linker<State<R>>) -> wasmtime::Result<()> {
    use wasmtime_wasi::p2::bindings::io::{error, poll, streams};

    let l = linker;
    error::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    poll::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    streams::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(l, State::clocks)?;
    clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, State::clocks)?;
    random::random::add_to_linker::<_, WasiRandom>(l, State::random)?;
    cli::environment::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::exit::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::stdin::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::stdout::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::stderr::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, State::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, State::cli)?;
    Ok(())
}

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// The type behind a resource. The interfaces of files and sockets name again what `wasi:io` has.
fn resource(name: &str) -> ResourceType {
    match name {
        "error" => ResourceType::host::<IoError>(),
        "input-stream" => ResourceType::host::<DynInputStream>(),
        "output-stream" => ResourceType::host::<DynOutputStream>(),
        "pollable" => ResourceType::host::<DynPollable>(),
        _ => ResourceType::host::<Nothing>(),
    }
}

/// What stands behind every handle of a file, a directory or a socket: there are none.
struct Nothing;

/// Defines a function that opens nothing and finds nothing.
fn refuse<R: 'static>(
    linker: &mut LinkerInstance<'_, State<R>>,
    function: &str,
    signature: &ComponentFunc,
) -> wasmtime::Result<()> {
    match function {
        // Without it there is no address lookup to be refused. The handle has no state.
        "instance-network" => {
            let nothing = |_: StoreContextMut<'_, State<R>>, ()| Ok((Resource::<Nothing>::new_own(0),));
            return linker.func_wrap(function, nothing);
        }
        "get-directories" => {
            let none =
                |_: StoreContextMut<'_, State<R>>, ()| Ok((Vec::<(Resource<Nothing>, String)>::new(),));
            return linker.func_wrap(function, none);
        }
        _ => {}
    }
    let denied = signature.results().next().as_ref().and_then(denied);
    let name = function.to_owned();
    linker.func_new(function, move |_, _, _, results| match (&denied, results) {
        (Some(denied), [result]) => {
            *result = Val::Result(Err(Some(Box::new(Val::Enum(denied.clone())))));
            Ok(())
        }
        _ => Err(wasmtime::format_err!("`{name}` was called, though there are neither files nor sockets")),
    })
}

/// The name of "access denied" in a result of this type.
fn denied(result: &Type) -> Option<String> {
    let Type::Result(result) = result else { return None };
    let Some(Type::Enum(error)) = result.err() else { return None };
    error.names().find(|name| matches!(*name, "access-denied" | "access")).map(str::to_owned)
}

/// One of the two outputs. Always ready, never full.
#[derive(Clone)]
struct Output {
    stream: StandardStream,
    sink: Sink,
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Asked for by the third version of WASI only, which is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        for part in bytes.chunks(MAX_WRITE) {
            (self.sink)(self.stream, part);
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_WRITE)
    }
}

impl Pollable for Output {
    fn ready<'a, 'b>(&'a mut self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests;

//! The part of WASI that an interpreter gets: clocks, random numbers, a closed stdin and two
//! outputs.
//!
//! There is no network and no environment, and of files there are those of the run (`files.rs`). Every
//! function of `wasi:sockets` is implemented here and does nothing, so that no code that could open a
//! socket is linked to the guest. Such a function returns "access denied" if its type allows an error,
//! which is an `OSError` in Python. The others take a handle that no guest can hold, and trap. An import
//! that is not named here is an error when the component is linked.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio_util::bytes::Bytes;
use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{
    Component, HasData, Linker, LinkerInstance, Resource, ResourceTable, ResourceType, Val,
};
use wasmtime::{Engine, StoreContextMut};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, IoError, OutputStream, Pollable, StreamResult,
};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView};

use super::files;
use super::memory_limit::MemoryLimiter;
use crate::durations::nanoseconds;
use crate::engine::host::RunTape;
use crate::files::RunFiles;
use crate::run::recording::GuestClock;
use crate::text::ids::fill_random;

/// Maximum size in bytes of one request for random numbers. CPython requests 256 at a time.
const MAX_RANDOM_SIZE: u64 = 64 * 1024;

/// Maximum number of streams, pollables and descriptors that a guest may hold. CPython holds three, plus
/// one for each `sleep`, and for each open file a descriptor and a stream or two. The number of open files
/// has a lower bound of its own.
const MAX_RESOURCES: usize = 2_048;

/// Maximum size of one write in bytes. Larger output arrives in several writes.
const MAX_WRITE: usize = 64 * 1024;

/// An output stream of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandardStream {
    Stdout,
    Stderr,
}

/// Receives what the guest writes, at most [`MAX_WRITE`] bytes at a time. It must not block. It may
/// drop output without telling the guest: a stream that refuses a write would cause a trap or an
/// `OSError` in the middle of a `print`.
pub(crate) type Sink = Arc<dyn Fn(StandardStream, &[u8]) + Send + Sync>;

/// What a guest's clocks and random numbers depend on. It can be changed while the guest exists.
#[derive(Clone, Default)]
pub(crate) struct ClockSettings(Arc<ClockState>);

#[derive(Default)]
struct ClockState {
    /// In nanoseconds; zero counts as one.
    resolution: AtomicU64,
    /// Records the readings, or has those of a recorded run.
    tape: OnceLock<Arc<dyn RunTape>>,
}

impl ClockSettings {
    /// Zero stands for the system's own resolution.
    pub(crate) fn set(&self, resolution: Duration) {
        self.0.resolution.store(nanoseconds(resolution), Ordering::Relaxed);
    }

    fn nanoseconds(&self) -> u64 {
        self.0.resolution.load(Ordering::Relaxed).max(1)
    }

    /// Takes clocks and random numbers from a tape from now on.
    pub(crate) fn set_tape(&self, tape: Arc<dyn RunTape>) {
        // A guest has one run.
        let _is_set = self.0.tape.set(tape);
    }

    /// A reading of a clock in nanoseconds. `real` reads the machine's clock.
    fn read(&self, clock: GuestClock, real: impl FnOnce() -> u64) -> u64 {
        match self.0.tape.get() {
            Some(tape) => tape.read_clock(clock, real()),
            None => real(),
        }
    }
}

/// The guest's clocks. They are coarse, because with fine ones a script could time what other runs
/// of the process do.
struct CoarseClock {
    started: Instant,
    settings: ClockSettings,
}

impl HostMonotonicClock for CoarseClock {
    fn resolution(&self) -> u64 {
        self.settings.nanoseconds()
    }

    fn now(&self) -> u64 {
        self.settings.read(GuestClock::Monotonic, || {
            let now = nanoseconds(self.started.elapsed());
            now - now % self.settings.nanoseconds()
        })
    }
}

impl HostWallClock for CoarseClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(self.settings.nanoseconds())
    }

    fn now(&self) -> Duration {
        let nanoseconds = self.settings.read(GuestClock::Wall, || {
            // A clock before 1970 counts as 1970.
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let part = u64::from(now.subsec_nanos());
            let coarse = part - part % self.settings.nanoseconds();
            now.as_secs().saturating_mul(1_000_000_000).saturating_add(coarse)
        });
        Duration::from_nanos(nanoseconds)
    }
}

/// The host's state of one interpreter. `R` is what the host functions keep about the run.
pub(crate) struct GuestState<R> {
    wasi: WasiCtx,
    table: ResourceTable,
    /// Counts and limits the guest's memory.
    pub(crate) memory: MemoryLimiter,
    /// The clocks that the guest reads.
    pub(crate) clock: ClockSettings,
    /// The files of the run. An idle interpreter has none.
    pub(super) files: Option<Arc<RunFiles>>,
    /// The run that the interpreter serves.
    pub(crate) run: R,
}

impl<R> fmt::Debug for GuestState<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GuestState").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl<R> GuestState<R> {
    /// The state of a guest with at most `memory_bytes` of memory, which writes to `sink`.
    pub(crate) fn new(run: R, memory_bytes: usize, sink: &Sink) -> Self {
        let output = |stream| Output { stream, sink: Arc::clone(sink) };
        let clock = ClockSettings::default();
        let coarse = || CoarseClock { started: Instant::now(), settings: clock.clone() };
        let wasi = WasiCtx::builder()
            .wall_clock(coarse())
            .monotonic_clock(coarse())
            .stdout(output(StandardStream::Stdout))
            .stderr(output(StandardStream::Stderr))
            // Nothing that uses these settings is linked. They are set in case something is later.
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        Self { wasi, table, memory: MemoryLimiter::new(memory_bytes), clock, files: None, run }
    }

    /// Gives the guest the files of its run. Those in memory count as memory of the guest.
    pub(crate) fn start_files(&mut self, files: &Arc<RunFiles>) {
        let guest = self.memory.shared();
        files.budget().attach_engine(move || guest.used());
        self.memory.files = Some(Arc::clone(files.budget()));
        self.files = Some(Arc::clone(files));
    }

    pub(super) fn file_system(&mut self) -> files::FileSystem<'_> {
        let memory = self.memory.shared();
        files::FileSystem { table: &mut self.table, files: self.files.as_ref(), memory }
    }
}

impl<R: Send> WasiView for GuestState<R> {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Creates a linker with everything that `component` needs of WASI. The caller adds the host
/// functions.
///
/// # Errors
///
/// If the component imports a function for sockets whose type cannot be refused.
pub(crate) fn linker<R: Send + 'static>(
    engine: &Engine,
    component: &Component,
) -> wasmtime::Result<Linker<GuestState<R>>> {
    let mut linker = Linker::new(engine);
    allow(&mut linker)?;
    for (name, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        if !name.starts_with("wasi:sockets/") {
            continue;
        }
        let mut refused = linker.instance(name)?;
        for (function, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => {
                    refused.resource(function, resource(function), |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(signature) => refuse(&mut refused, function, &signature)?,
                // Types need no definition.
                _ => {}
            }
        }
    }
    Ok(linker)
}

/// Links the interfaces that have a real implementation.
fn allow<R: Send + 'static>(linker: &mut Linker<GuestState<R>>) -> wasmtime::Result<()> {
    use wasmtime_wasi::p2::bindings::io::{error, poll, streams};

    let l = linker;
    error::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    poll::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    streams::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(l, GuestState::clocks)?;
    clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, GuestState::clocks)?;
    random::random::add_to_linker::<_, GuestRandom>(l, random_source)?;
    filesystem::types::add_to_linker::<_, files::GuestFiles>(l, GuestState::file_system)?;
    filesystem::preopens::add_to_linker::<_, files::GuestFiles>(l, GuestState::file_system)?;
    cli::environment::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::exit::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::stdin::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::stdout::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::stderr::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, GuestState::cli)?;
    Ok(())
}

/// Random numbers of the machine, or of a tape.
struct GuestRandom;

impl HasData for GuestRandom {
    type Data<'a> = RandomSource;
}

/// Random numbers of the machine come from the system each time: a generator of this process would be the same one in
/// each process that is forked of it.
struct RandomSource {
    tape: Option<Arc<dyn RunTape>>,
}

fn random_source<R: Send>(state: &mut GuestState<R>) -> RandomSource {
    RandomSource { tape: state.clock.0.tape.get().cloned() }
}

impl RandomSource {
    fn fill(&self, bytes: &mut [u8]) -> wasmtime::Result<()> {
        match &self.tape {
            Some(tape) => tape.fill_random(bytes),
            None => fill_random(bytes)?,
        }
        Ok(())
    }
}

impl random::random::Host for RandomSource {
    fn get_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        if length > MAX_RANDOM_SIZE {
            return Err(wasmtime::format_err!("more than {MAX_RANDOM_SIZE} random bytes at once"));
        }
        let mut bytes = vec![0; usize::try_from(length)?];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// The host type of a resource. The interfaces for sockets re-export resources of `wasi:io`.
fn resource(name: &str) -> ResourceType {
    match name {
        "error" => ResourceType::host::<IoError>(),
        "input-stream" => ResourceType::host::<DynInputStream>(),
        "output-stream" => ResourceType::host::<DynOutputStream>(),
        "pollable" => ResourceType::host::<DynPollable>(),
        _ => ResourceType::host::<Nothing>(),
    }
}

/// The type of every socket handle. No such handle exists.
struct Nothing;

/// Defines a function that opens nothing.
fn refuse<R: 'static>(
    linker: &mut LinkerInstance<'_, GuestState<R>>,
    function: &str,
    signature: &ComponentFunc,
) -> wasmtime::Result<()> {
    // Without a network handle the guest could not call the address lookup that is refused. The handle has no
    // state.
    if function == "instance-network" {
        let nothing = |_: StoreContextMut<'_, GuestState<R>>, ()| Ok((Resource::<Nothing>::new_own(0),));
        return linker.func_wrap(function, nothing);
    }
    let denied = signature.results().next().as_ref().and_then(denied);
    let name = function.to_owned();
    linker.func_new(function, move |_, _, _, results| match (&denied, results) {
        (Some(denied), [result]) => {
            *result = Val::Result(Err(Some(Box::new(Val::Enum(denied.clone())))));
            Ok(())
        }
        _ => Err(wasmtime::format_err!("`{name}` was called, though there are no sockets")),
    })
}

/// The name of the "access denied" error in a result of this type.
fn denied(result: &Type) -> Option<String> {
    let Type::Result(result) = result else { return None };
    let Some(Type::Enum(error)) = result.err() else { return None };
    error.names().find(|name| matches!(*name, "access-denied" | "access")).map(str::to_owned)
}

/// One of the two output streams. It is always ready and never full.
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
        // Used only by the third version of WASI, which is not linked.
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

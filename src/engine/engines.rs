//! The engines of all languages. Each is started when it is first needed. Here and in
//! `engines/languages.rs` it is decided which of them a run can have in this build; nowhere else.

mod languages;
mod options;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use self::languages::{python, typescript};
pub(crate) use self::options::{CompileListener, EngineOptions, WorkerProgram};
use crate::engine::backend::{Backend, BackendEngine};
use crate::engine::compile::CodeForm;
use crate::engine::instance::Engine;
use crate::engine::pool::job::Job;
use crate::engine::pool::{Pool, PoolStats};
use crate::error::{Error, OptionName};
use crate::machine::probe;
use crate::run::script::Language;

/// The languages whose engines this build has: those whose features are on.
pub(crate) const AVAILABLE: &[Language] = &[
    #[cfg(feature = "typescript")]
    Language::TypeScript,
    #[cfg(feature = "python")]
    Language::Python,
];

/// The versions of the engines; `None` for those that this build does not have.
pub(crate) const V8_VERSION: Option<&str> = typescript::V8_VERSION;
pub(crate) const PYTHON_VERSION: Option<&str> = python::PYTHON_VERSION;
pub(crate) const WASMTIME_VERSION: Option<&str> = python::WASMTIME_VERSION;

/// Checks that this build has the language's engine.
///
/// # Errors
///
/// [`Error::InvalidOptions`] with the feature that has to be on.
pub(crate) fn require(language: Language) -> Result<(), Error> {
    if AVAILABLE.contains(&language) {
        return Ok(());
    }
    // The features have the names of the languages.
    let (name, feature) = (language.title(), language.as_str());
    let problem = format!("this build has no {name}: enable the feature `{feature}` of the crate `cx`");
    Err(Error::InvalidOptions { option: OptionName::Language, problem })
}

/// The engines of an executor, each with its pool. One starts at the first run that needs it.
pub(crate) struct Engines {
    options: EngineOptions,
    typescript: OnceCell<Pool<typescript::Engine>>,
    /// Shared with the task that starts it, which continues when no caller waits any more.
    python: Arc<OnceCell<Pool<python::Engine>>>,
    /// The same for runs with a limit of fuel, which few programs have.
    python_with_fuel: Arc<OnceCell<Pool<python::Engine>>>,
    /// Worker processes of each [`WorkerKind`], instead of all of these.
    workers: [OnceCell<Pool<processes::Engine>>; 3],
    /// The embedder's own, instead of everything else.
    backend: OnceCell<Pool<BackendEngine>>,
}

/// What the worker processes of one pool execute.
#[derive(Clone, Copy)]
enum WorkerKind {
    TypeScript,
    Python,
    PythonWithFuel,
}

impl WorkerKind {
    fn new(language: Language, form: CodeForm) -> Self {
        match (language, form) {
            (Language::TypeScript, _) => Self::TypeScript,
            (Language::Python, CodeForm::Plain) => Self::Python,
            (Language::Python, CodeForm::CountsFuel) => Self::PythonWithFuel,
        }
    }
}

impl fmt::Debug for Engines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Engines")
            .field("typescript", &self.stats(Language::TypeScript))
            .field("python", &self.stats(Language::Python))
            .finish()
    }
}

impl Engines {
    pub(crate) fn new(options: EngineOptions) -> Self {
        Self {
            options,
            typescript: OnceCell::new(),
            python: Arc::default(),
            python_with_fuel: Arc::default(),
            workers: Default::default(),
            backend: OnceCell::new(),
        }
    }

    /// Cache directories for machine code, best first.
    #[cfg(all(feature = "process", any(feature = "http", feature = "nats"), target_os = "linux"))]
    pub(crate) fn caches(&self) -> &[std::path::PathBuf] {
        &self.options.caches
    }

    /// Starts an engine if it has not been started. Does not wait for warm instances.
    ///
    /// # Errors
    ///
    /// If this build does not have the engine, the operating system refuses a thread, or Python
    /// cannot be loaded.
    pub(crate) async fn start(
        &self,
        language: Language,
        form: CodeForm,
        runtime: &Handle,
    ) -> Result<(), Error> {
        if let Some(backend) = &self.options.backend {
            return self.start_backend(backend);
        }
        if let Some(program) = &self.options.workers {
            return self.start_workers(program, WorkerKind::new(language, form)).map(drop);
        }
        match language {
            Language::TypeScript => self.start_typescript(),
            Language::Python if self.python(form).initialized() => Ok(()),
            Language::Python => self.spawn_python(form, runtime).await.unwrap_or(Err(Error::Closed)),
        }
    }

    /// As [`start`](Self::start), and completes when `warm` instances for runs without limits of
    /// their own are ready.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub(crate) async fn warm(&self, language: Language, runtime: &Handle) -> Result<(), Error> {
        self.start(language, self.options.form, runtime).await?;
        if let Some(pool) = self.backend.get() {
            pool.warm().await;
            return Ok(());
        }
        if let Some(pool) = self.workers[WorkerKind::new(language, self.options.form) as usize].get() {
            pool.warm().await;
            processes::warm(pool, runtime).await;
            return Ok(());
        }
        match language {
            Language::TypeScript => {
                if let Some(pool) = self.typescript.get() {
                    pool.warm().await;
                }
            }
            Language::Python => {
                if let Some(pool) = self.python(self.options.form).get() {
                    pool.warm().await;
                }
            }
        }
        Ok(())
    }

    fn python(&self, form: CodeForm) -> &Arc<OnceCell<Pool<python::Engine>>> {
        match form {
            CodeForm::Plain => &self.python,
            CodeForm::CountsFuel => &self.python_with_fuel,
        }
    }

    /// Starts Python without waiting for it. A failure is reported by the first run.
    pub(crate) fn start_python_in_background(&self, runtime: &Handle) {
        if self.options.backend.is_some() {
            // It is started already, or by the first run.
            return;
        }
        if let Some(program) = &self.options.workers {
            if let Err(error) =
                self.start_workers(program, WorkerKind::new(Language::Python, self.options.form))
            {
                tracing::warn!(%error, "no worker processes for Python");
            }
            return;
        }
        drop(self.spawn_python(self.options.form, runtime));
    }

    /// Starts Python in a task of its own, so that what was unpacked or compiled is not lost when its
    /// caller goes away.
    fn spawn_python(&self, form: CodeForm, runtime: &Handle) -> JoinHandle<Result<(), Error>> {
        let (python, mut options) = (Arc::clone(self.python(form)), self.options.clone());
        if form != options.form {
            // Runs of this form are rare: one warm instance is enough.
            options = EngineOptions { form, warm: 1, ..options };
        }
        runtime.spawn(async move { python.get_or_try_init(|| start_python(options)).await.map(drop) })
    }

    /// As [`start`](Self::start), for the engine that needs no waiting.
    pub(crate) fn start_typescript(&self) -> Result<(), Error> {
        if let Some(backend) = &self.options.backend {
            return self.start_backend(backend);
        }
        if let Some(program) = &self.options.workers {
            return self.start_workers(program, WorkerKind::TypeScript).map(drop);
        }
        require(Language::TypeScript)?;
        let options = &self.options;
        start_pool(&self.typescript, Language::TypeScript.title(), options.warm, options.trim_after, || {
            typescript::engine(options)
        })
    }

    fn start_backend(&self, backend: &Arc<dyn Backend>) -> Result<(), Error> {
        let (warm, trim_after) = (self.options.warm, self.options.trim_after);
        start_pool(&self.backend, "the back end", warm, trim_after, || Ok(BackendEngine(Arc::clone(backend))))
    }

    /// Starts the worker processes of a kind, if they have not been started.
    fn start_workers(&self, program: &WorkerProgram, kind: WorkerKind) -> Result<(), Error> {
        let options = &self.options;
        let (language, warm) = match kind {
            WorkerKind::TypeScript => (Language::TypeScript, options.warm),
            WorkerKind::Python => (Language::Python, options.warm),
            // Such runs are rare.
            WorkerKind::PythonWithFuel => (Language::Python, options.warm.min(1)),
        };
        require(language)?;
        start_pool(&self.workers[kind as usize], "worker processes", warm, options.trim_after, || {
            processes::engine(program, kind, warm, options)
        })
    }

    /// Submits a run to its engine, which must have been started.
    pub(crate) fn submit(&self, job: Job) {
        if let Some(pool) = self.backend.get() {
            return pool.submit(job);
        }
        let (language, form) = (job.script.language, CodeForm::from(&job.environment.limits.now()));
        if let Some(pool) = self.workers[WorkerKind::new(language, form) as usize].get() {
            return pool.submit(job);
        }
        match language {
            Language::TypeScript => submit_to(self.typescript.get(), job),
            Language::Python => submit_to(self.python(form).get(), job),
        }
    }

    /// Removes machine code from the caches and returns the number of files removed.
    ///
    /// # Errors
    ///
    /// If a file cannot be removed.
    pub(crate) fn clear_cache(&self) -> io::Result<usize> {
        self.options.caches.iter().map(|cache| python::clear_cache(cache)).sum()
    }

    /// The state of the engine's pool now; all zero before it is started.
    pub(crate) fn stats(&self, language: Language) -> PoolStats {
        if let Some(pool) = self.backend.get() {
            return pool.stats();
        }
        if self.options.workers.is_some() {
            let kinds = match language {
                Language::TypeScript => &self.workers[..1],
                Language::Python => &self.workers[1..],
            };
            let pools = kinds.iter().filter_map(|pool| pool.get());
            return pools.map(Pool::stats).fold(PoolStats::default(), PoolStats::and);
        }
        match language {
            Language::TypeScript => self.typescript.get().map(Pool::stats).unwrap_or_default(),
            Language::Python => {
                let pools = [&self.python, &self.python_with_fuel];
                let [plain, with_fuel] = pools.map(|pool| pool.get().map(Pool::stats).unwrap_or_default());
                plain.and(with_fuel)
            }
        }
    }
}

/// Submits a run to the pool of its engine. Without a pool the run fails.
fn submit_to<E: Engine>(pool: Option<&Pool<E>>, job: Job) {
    match pool {
        Some(pool) => pool.submit(job),
        None => {
            let _gone = job.reply.send(Err(Error::Closed));
        }
    }
}

/// Starts the pool of an engine, which errors call `what`, unless it has been started.
///
/// # Errors
///
/// If the engine cannot be made, or the system refuses a thread.
fn start_pool<E: Engine>(
    cell: &OnceCell<Pool<E>>,
    what: &'static str,
    warm: usize,
    trim_after: Duration,
    engine: impl FnOnce() -> io::Result<E>,
) -> Result<(), Error> {
    if cell.initialized() {
        return Ok(());
    }
    let pool = engine().and_then(|engine| Pool::new(engine, warm, trim_after));
    // Another caller may have been faster; then the threads and processes of this pool end.
    let _quicker = cell.set(pool.map_err(|source| Error::Start { what, source })?);
    Ok(())
}

async fn start_python(options: EngineOptions) -> Result<Pool<python::Engine>, Error> {
    require(Language::Python)?;
    let failed = |source| Error::Start { what: Language::Python.title(), source };
    let started = probe::spawn_blocking(&Handle::current(), move || {
        let engine = python::engine(&options)?;
        Pool::new(engine, options.warm, options.trim_after)
    });
    let pool = started.map_err(failed)?.await;
    pool.map_err(io::Error::from).flatten().map_err(failed)
}

#[cfg(all(feature = "process", target_os = "linux"))]
mod processes {
    use std::io;

    use tokio::runtime::Handle;

    use super::{EngineOptions, WorkerKind};
    use crate::engine::pool::Pool;
    use crate::engine::process::WorkerProgram;
    pub(super) use crate::engine::process::processes::Processes as Engine;
    use crate::engine::process::workers::{WorkerOptions, Workers};

    /// Workers of `program`, of which `warm` are started ahead of time.
    pub(super) fn engine(
        program: &WorkerProgram,
        kind: WorkerKind,
        warm: usize,
        options: &EngineOptions,
    ) -> io::Result<Engine> {
        let workers = Workers::new(WorkerOptions {
            program: program.clone(),
            spare: warm,
            is_python: !matches!(kind, WorkerKind::TypeScript),
            counts_fuel: matches!(kind, WorkerKind::PythonWithFuel),
            memory_bytes: options.memory_bytes,
            caches: options.caches.clone(),
        })?;
        Ok(Engine::new(workers))
    }

    /// Completes when the processes are warm.
    pub(super) async fn warm(pool: &Pool<Engine>, runtime: &Handle) {
        let mut warm = std::pin::pin!(pool.engine().warm());
        std::future::poll_fn(|task| {
            // The caller may have no timers.
            let _entered = runtime.enter();
            warm.as_mut().poll(task)
        })
        .await;
    }
}

#[cfg(not(all(feature = "process", target_os = "linux")))]
mod processes {
    use std::io;

    use tokio::runtime::Handle;

    use super::{EngineOptions, WorkerKind};
    pub(super) use crate::engine::absent::Absent as Engine;
    use crate::engine::absent::WorkerProgram;
    use crate::engine::pool::Pool;

    pub(super) fn engine(
        program: &WorkerProgram,
        _kind: WorkerKind,
        _warm: usize,
        _options: &EngineOptions,
    ) -> io::Result<Engine> {
        match *program {}
    }

    pub(super) async fn warm(_pool: &Pool<Engine>, _runtime: &Handle) {}
}

/// Makes this process a worker. `socket` is the connection to the executor.
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) fn work((socket, closed): (std::os::fd::OwnedFd, std::io::Result<()>)) -> ! {
    let starting = crate::engine::process::worker::begin(socket, closed);
    let options = EngineOptions {
        warm: 1,
        trim_after: Duration::MAX,
        memory_bytes: starting.memory_bytes(),
        form: starting.form(),
        caches: starting.caches().to_vec(),
        on_compile: None,
        workers: None,
        backend: None,
    };
    if starting.is_python() {
        match python::engine(&options) {
            Ok(engine) => starting.serve(engine),
            Err(error) => starting.fail(&error.to_string()),
        }
    }
    typescript::use_one_thread();
    match typescript::engine(&options) {
        Ok(engine) => starting.serve(engine),
        Err(error) => starting.fail(&error.to_string()),
    }
}

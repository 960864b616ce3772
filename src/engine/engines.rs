//! The engines of all languages. Each is started when it is first needed. This is the only file
//! that names all of them, and the only one that asks which of them this build has.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use crate::engine::compile::{CodeForm, CompileProgress};
use crate::engine::pool::{Job, Pool, PoolStats};
use crate::error::Error;
use crate::machine::probe;
use crate::run::script::Language;

/// The languages whose engines this build has: those whose features are on.
pub(crate) const AVAILABLE: &[Language] = &[
    #[cfg(feature = "typescript")]
    Language::TypeScript,
    #[cfg(feature = "python")]
    Language::Python,
];

/// Checks that this build has the language's engine.
///
/// # Errors
///
/// [`Error::InvalidOptions`] with the feature that has to be on.
pub(crate) fn require(language: Language) -> Result<(), Error> {
    if AVAILABLE.contains(&language) {
        return Ok(());
    }
    let (name, feature) = match language {
        Language::TypeScript => ("TypeScript", "typescript"),
        Language::Python => ("Python", "python"),
    };
    let problem = format!("this build has no {name}: enable the feature `{feature}` of the crate `cx`");
    Err(Error::InvalidOptions { option: "language", problem })
}

/// Called when Python's machine code is not ready, on one of the executor's threads.
pub(crate) type CompileListener = Arc<dyn Fn(CompileProgress) + Send + Sync>;

/// Options of all engines.
#[derive(Clone)]
pub(crate) struct EngineOptions {
    /// Number of idle instances to keep ready for each language.
    pub(crate) warm: usize,
    /// How long an instance waits for a run before its idle trim.
    pub(crate) trim_after: Duration,
    /// Memory limit in bytes of runs that set none of their own.
    pub(crate) memory_bytes: usize,
    /// The form of Python's code for those runs.
    pub(crate) form: CodeForm,
    /// Cache directories for machine code, best first.
    pub(crate) caches: Vec<PathBuf>,
    pub(crate) on_compile: Option<CompileListener>,
}

pub(crate) struct Engines {
    options: EngineOptions,
    typescript: OnceCell<Pool<typescript::Engine>>,
    /// Shared with the task that starts it, which continues when no caller waits any more.
    python: Arc<OnceCell<Pool<python::Engine>>>,
    /// The same for runs with a limit of fuel, which few programs have.
    python_with_fuel: Arc<OnceCell<Pool<python::Engine>>>,
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
        }
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
        drop(self.spawn_python(self.options.form, runtime));
    }

    /// Starts Python in a task of its own, so that what was unpacked or compiled is not lost when its
    /// caller goes away.
    fn spawn_python(&self, form: CodeForm, runtime: &Handle) -> JoinHandle<Result<(), Error>> {
        let (python, mut options) = (Arc::clone(self.python(form)), self.options.clone());
        if form != options.form {
            // An exception among the runs: one instance is enough.
            options = EngineOptions { form, warm: 1, ..options };
        }
        runtime.spawn(async move { python.get_or_try_init(|| start_python(options)).await.map(drop) })
    }

    /// As [`start`](Self::start), for the engine that needs no waiting.
    pub(crate) fn start_typescript(&self) -> Result<(), Error> {
        if self.typescript.initialized() {
            return Ok(());
        }
        require(Language::TypeScript)?;
        let pool = typescript::engine(&self.options)
            .and_then(|engine| Pool::new(engine, self.options.warm, self.options.trim_after))
            .map_err(|source| Error::Start { what: "TypeScript", source })?;
        // Another caller may have been faster; then this pool's threads end.
        let _quicker = self.typescript.set(pool);
        Ok(())
    }

    /// Submits a run to its engine, which must have been started.
    pub(crate) fn submit(&self, job: Job) {
        let job = match job.script.language {
            Language::TypeScript => match self.typescript.get() {
                Some(pool) => return pool.submit(job),
                None => job,
            },
            Language::Python => match self.python(CodeForm::from(&job.environment.limits)).get() {
                Some(pool) => return pool.submit(job),
                None => job,
            },
        };
        let _gone = job.reply.send(Err(Error::Closed));
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
        match language {
            Language::TypeScript => self.typescript.get().map(Pool::stats).unwrap_or_default(),
            Language::Python => {
                let pools = [&self.python, &self.python_with_fuel];
                let [plain, with_fuel] = pools.map(|pool| pool.get().map(Pool::stats).unwrap_or_default());
                PoolStats {
                    ready: plain.ready + with_fuel.ready,
                    hung: plain.hung + with_fuel.hung,
                    waiting: plain.waiting + with_fuel.waiting,
                }
            }
        }
    }
}

async fn start_python(options: EngineOptions) -> Result<Pool<python::Engine>, Error> {
    require(Language::Python)?;
    let failed = |source| Error::Start { what: "Python", source };
    let started = probe::spawn_blocking(&Handle::current(), move || {
        let engine = python::engine(&options)?;
        Pool::new(engine, options.warm, options.trim_after)
    });
    let pool = started.map_err(failed)?.await;
    pool.map_err(io::Error::other).and_then(|pool| pool).map_err(failed)
}

#[cfg(feature = "typescript")]
mod typescript {
    use std::io;

    use super::EngineOptions;
    pub(super) use crate::engine::typescript::engine::V8Engine as Engine;

    pub(super) fn engine(options: &EngineOptions) -> io::Result<Engine> {
        Ok(Engine { memory_bytes: options.memory_bytes })
    }
}

#[cfg(not(feature = "typescript"))]
mod typescript {
    use std::io;

    use super::EngineOptions;
    pub(super) use crate::engine::absent::Absent as Engine;

    pub(super) fn engine(_options: &EngineOptions) -> io::Result<Engine> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(feature = "python")]
mod python {
    use std::io;
    use std::path::{Path, PathBuf};

    use super::EngineOptions;
    pub(super) use crate::engine::python::compiled::clear as clear_cache;
    pub(super) use crate::engine::python::interpreter::Interpreters as Engine;

    /// Loads the machine code, or makes it. Blocks.
    pub(super) fn engine(options: &EngineOptions) -> io::Result<Engine> {
        let listener = |progress| {
            if let Some(listener) = &options.on_compile {
                listener(progress);
            }
        };
        let caches: Vec<&Path> = options.caches.iter().map(PathBuf::as_path).collect();
        Engine::load(options.form, &caches, options.memory_bytes, &listener).map_err(io::Error::other)
    }
}

#[cfg(not(feature = "python"))]
mod python {
    use std::io;
    use std::path::Path;

    use super::EngineOptions;
    pub(super) use crate::engine::absent::Absent as Engine;

    pub(super) fn engine(_options: &EngineOptions) -> io::Result<Engine> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes nothing: this build has not made anything.
    pub(super) fn clear_cache(_directory: &Path) -> io::Result<usize> {
        Ok(0)
    }
}

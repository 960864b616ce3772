//! The engine of each language, as this build has it. No other file makes all of them.

#[cfg(feature = "typescript")]
pub(super) mod typescript {
    use std::io;

    use crate::engine::engines::options::EngineOptions;
    pub(in crate::engine::engines) use crate::engine::typescript::engine::V8Engine as Engine;

    pub(in crate::engine::engines) const V8_VERSION: Option<&str> =
        Some(crate::engine::typescript::V8_VERSION);

    pub(in crate::engine::engines) fn engine(options: &EngineOptions) -> io::Result<Engine> {
        Ok(Engine { memory_bytes: options.memory_bytes })
    }

    #[cfg(all(feature = "process", target_os = "linux"))]
    pub(in crate::engine::engines) use crate::engine::typescript::use_one_thread;
}

#[cfg(not(feature = "typescript"))]
pub(super) mod typescript {
    use std::io;

    pub(in crate::engine::engines) use crate::engine::absent::Absent as Engine;
    use crate::engine::engines::options::EngineOptions;

    pub(in crate::engine::engines) const V8_VERSION: Option<&str> = None;

    pub(in crate::engine::engines) fn engine(_options: &EngineOptions) -> io::Result<Engine> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There is nothing to set.
    #[cfg(all(feature = "process", target_os = "linux"))]
    pub(in crate::engine::engines) fn use_one_thread() {}
}

#[cfg(feature = "python")]
pub(super) mod python {
    use std::io;
    use std::path::{Path, PathBuf};

    use crate::engine::engines::options::EngineOptions;
    pub(in crate::engine::engines) use crate::engine::python::compiled::clear as clear_cache;
    pub(in crate::engine::engines) use crate::engine::python::interpreter::Interpreters as Engine;

    pub(in crate::engine::engines) const PYTHON_VERSION: Option<&str> =
        Some(crate::engine::python::interpreter::PYTHON_VERSION);
    pub(in crate::engine::engines) const WASMTIME_VERSION: Option<&str> =
        Some(crate::engine::python::interpreter::WASMTIME_VERSION);

    /// Loads the machine code, or makes it. Blocks.
    pub(in crate::engine::engines) fn engine(options: &EngineOptions) -> io::Result<Engine> {
        let listener = |progress| {
            if let Some(listener) = &options.on_compile {
                listener(progress);
            }
        };
        let caches: Vec<&Path> = options.caches.iter().map(PathBuf::as_path).collect();
        Engine::load(options.form, &caches, options.memory_bytes, &listener).map_err(io::Error::from)
    }
}

#[cfg(not(feature = "python"))]
pub(super) mod python {
    use std::io;
    use std::path::Path;

    pub(in crate::engine::engines) use crate::engine::absent::Absent as Engine;
    use crate::engine::engines::options::EngineOptions;

    pub(in crate::engine::engines) const PYTHON_VERSION: Option<&str> = None;
    pub(in crate::engine::engines) const WASMTIME_VERSION: Option<&str> = None;

    pub(in crate::engine::engines) fn engine(_options: &EngineOptions) -> io::Result<Engine> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes nothing: this build has not made anything.
    pub(in crate::engine::engines) fn clear_cache(_directory: &Path) -> io::Result<usize> {
        Ok(0)
    }
}

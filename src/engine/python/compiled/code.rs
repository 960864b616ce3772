//! Machine code with its memory image, and how it becomes runnable.

use std::io::{self, ErrorKind};

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::python::memory::Image;
use crate::machine::probe;

/// Why there is no machine code at all. A failure to store it is only logged as a warning.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error("cannot set up WebAssembly on this system")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot decompress the Python component; this build of cx is damaged")]
    Decompress(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot compile the Python component for this machine")]
    Compile(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "this program's machine code for Python cannot be used here: {reason}; a build of cx with the \
         feature `compile` compiles it for this machine"
    )]
    NoCompiler { reason: String },
}

impl From<CompileError> for io::Error {
    /// For an engine that cannot be started: an error of the system keeps its kind.
    fn from(error: CompileError) -> Self {
        let kind = match &error {
            CompileError::Engine(source) => {
                source.downcast_ref::<Self>().map_or(ErrorKind::Unsupported, Self::kind)
            }
            CompileError::Decompress(_) => ErrorKind::InvalidData,
            CompileError::Compile(_) | CompileError::NoCompiler { .. } => ErrorKind::Unsupported,
        };
        Self::new(kind, error)
    }
}

impl CompileError {
    pub(in crate::engine::python) fn engine(error: wasmtime::Error) -> Self {
        Self::Engine(error.into_boxed_dyn_error())
    }
}

/// A component that is ready to be instantiated.
pub(in crate::engine::python) struct Runnable {
    pub(in crate::engine::python) component: Component,
    /// The initial memory image, if it is not part of the component.
    pub(in crate::engine::python) image: Option<Image>,
}

/// Machine code and memory image, the content of a cache file.
pub(super) struct Compiled {
    pub(super) code: Vec<u8>,
    /// May be empty.
    pub(super) image: Vec<u8>,
}

/// Makes code runnable that this process has made or verified. The code stays in this process's
/// memory. The inner error is wasmtime's reason why it does not run this code.
pub(super) fn adopt(
    engine: &Engine,
    compiled: &Compiled,
) -> Result<wasmtime::Result<Runnable>, CompileError> {
    #[expect(unsafe_code, reason = "compiled code has no safe way in")]
    // SAFETY: every caller has the code from the compiler, from the program itself, whose build script
    // compiled it, or from a file that passed `Directory::open` and `check_file` of `directory.rs`:
    // `Directory::write` wrote it, and only this user can write there.
    let component = unsafe { Component::deserialize(engine, &compiled.code) };
    let component = match component {
        Ok(component) => component,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let in_memory =
        || probe::file_size(compiled.image.len()).and_then(|()| Image::in_memory(&compiled.image));
    let image = (!compiled.image.is_empty()).then(in_memory).transpose();
    let image = image.map_err(|error| CompileError::Engine(error.into()))?;
    Ok(Ok(Runnable { component, image }))
}

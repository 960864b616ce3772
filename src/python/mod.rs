//! Python: CPython, compiled to WebAssembly, under wasmtime.
//!
//! The only room that names wasmtime. An [`engine::PythonEngine`] lives as long as the process and holds the
//! compiled code; a [`wasi::State`] belongs to one interpreter, which serves one run.

pub(crate) mod engine;

pub(crate) mod compiled;
pub(crate) mod wasi;

//! Python: CPython, compiled to WebAssembly, run by wasmtime.
//!
//! This is the only module that uses wasmtime. An [`engine::PythonEngine`] lives as long as the
//! process and holds the machine code. An [`interpreter::Interpreter`] is made from it ahead of
//! time, serves one run, and is dropped.

pub(crate) mod compiled;
pub(crate) mod engine;
mod file_stream;
mod files;
pub(crate) mod interpreter;

#[cfg(any(test, feature = "compile"))]
mod compiler;
#[cfg(not(any(test, feature = "compile")))]
#[path = "no_compiler.rs"]
mod compiler;
mod host;
mod image;
mod memories;
mod memory;
mod memory_limit;
mod report;
mod settings;
mod survey;
mod unpack;
mod wasi;

/// The host interface as declared in `wit/guest.wit`.
mod bindings {
    wasmtime::component::bindgen!({
        path: "src/engine/python/wit",
        world: "guest",
        imports: { "wait": async | trappable, default: trappable },
        exports: { default: async },
    });
}

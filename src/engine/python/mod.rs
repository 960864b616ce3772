//! Python: CPython, compiled to WebAssembly, under wasmtime.
//!
//! The only room that names wasmtime. An [`engine::PythonEngine`] lives as long as the process and holds the
//! compiled code; an [`interpreter::Interpreter`] is made of it ahead of time, serves one run and is dropped.

pub(crate) mod compiled;
pub(crate) mod engine;
pub(crate) mod interpreter;

mod host;
mod image;
mod memory;
mod report;
mod wasi;

/// The host interface as `python-wasm/wit` has it.
mod bindings {
    wasmtime::component::bindgen!({
        path: "python-wasm/wit",
        world: "guest",
        imports: { "wait": async | trappable, default: trappable },
        exports: { default: async },
    });
}

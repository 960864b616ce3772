//! The versions of cx and of the engines in this build.

use crate::engine::engines;

/// Versions of cx and of its engines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Versions {
    /// cx itself.
    pub cx: &'static str,
    /// V8, which runs TypeScript. `None` in a build without it.
    pub v8: Option<&'static str>,
    /// CPython. `None` in a build without it.
    pub python: Option<&'static str>,
    /// wasmtime, which runs CPython. `None` in a build without it.
    pub wasmtime: Option<&'static str>,
    /// The revisions of the Model Context Protocol, newest first. Empty in a build without the feature
    /// `mcp`.
    pub mcp: Vec<&'static str>,
}

impl Versions {
    /// The versions of this build. Starts nothing.
    pub fn of_this_build() -> Self {
        let (v8, python, wasmtime) =
            (engines::V8_VERSION, engines::PYTHON_VERSION, engines::WASMTIME_VERSION);
        #[cfg(feature = "mcp")]
        let mcp = crate::mcp::protocol_revisions();
        #[cfg(not(feature = "mcp"))]
        let mcp = Vec::new();
        Self { cx: env!("CARGO_PKG_VERSION"), v8, python, wasmtime, mcp }
    }
}

//! Root of the crate that the fuzz targets link: `fuzz/Cargo.toml` names it, nothing else does.
//!
//! It stands here so that `crate::tools` and all other paths are those of the product. It has the modules that read
//! untrusted text, and neither engine: without V8 and wasmtime it builds in minutes, and with coverage.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "the engines are what uses the rest")]

mod config;
mod conventions;
mod durations;
mod engine {
    mod fence;
    mod mend;
    pub(crate) mod python {
        pub(crate) mod image;
        pub(crate) mod memory;
    }
    mod survey;
    pub(crate) mod typescript {
        mod instead;
        pub(crate) mod transpile;
    }
}
mod error;
mod files;
#[path = "../fuzz/entries/mod.rs"]
mod fuzzing;
mod json;
mod lines;
mod llm {
    mod options;

    pub use self::options::{ApiKey, FilterMode, LlmAccess, LlmOptions, ModelProvider, ProviderKind};
}
mod machine;
mod mcp;
mod net;
mod pauses;
mod queue;
mod rate;
mod run {
    pub(crate) mod check {
        pub(crate) mod survey;
    }
    pub(crate) mod grants;
    pub(crate) mod isolation;
    pub(crate) mod limits;
    pub(crate) mod time_zone;
}
mod server {
    mod incoming;
    mod request_id;
    pub(crate) mod stdio;
    mod unserved;
}
mod steps;
mod storage {
    pub(crate) mod files;
    pub(crate) mod ownership;
    pub(crate) mod private;
    #[cfg(any(feature = "audit", feature = "oauth"))]
    pub(crate) mod regular;
    #[cfg(feature = "cli")]
    pub(crate) mod replace;
    pub(crate) mod scripts;
}
mod sync;
mod telemetry {
    pub(crate) mod options;
}
mod text;
mod tools;

pub use error::{Error, OptionName, RuleList};
pub use run::limits::Limits;
pub use tools::Schema;

/// The targets, by the names of their seeds.
pub mod targets {
    /// A target, whose argument is the input.
    pub type Target = fn(&[u8]);

    /// All targets.
    pub const ALL: &[(&str, Target)] = &[
        ("transpile", crate::engine::typescript::transpile::fuzzing::text),
        ("program", crate::engine::typescript::transpile::fuzzing::program),
        ("bounds", crate::engine::typescript::transpile::fuzzing::bounds),
        ("nestings", crate::engine::typescript::transpile::fuzzing::nestings),
        ("lines", crate::fuzzing::lines::lines),
        ("client_lines", crate::server::stdio::fuzzing::client_lines),
        ("server_lines", crate::mcp::fuzz_server_lines),
        ("events", crate::lines::events::fuzzing::events),
        ("challenges", crate::mcp::fuzz_challenges),
        ("config", crate::config::fuzzing::config),
        ("schema", crate::tools::fuzzing::schema),
        ("arguments", crate::tools::fuzzing::arguments),
        ("trace_context", crate::tools::fuzzing::trace_context),
        ("image", crate::engine::python::image::fuzzing::image),
        ("restore", crate::engine::python::memory::fuzzing::restore),
    ];

    /// Runs the target of that name. Panics if there is none, or if a promise is broken.
    pub fn run(name: &str, data: &[u8]) {
        let (_, target) = ALL.iter().find(|(known, _)| *known == name).expect("a target of that name");
        target(data);
    }
}

/// What the measurements and the differential test use.
pub mod programs {
    pub use crate::fuzzing::constructs;

    /// Makes a program of the grammar out of bytes.
    pub fn generate(data: &[u8]) -> Option<String> {
        crate::engine::typescript::transpile::fuzzing::generate(data).ok()
    }

    /// Transpiles, on a stack that is large enough.
    ///
    /// # Errors
    ///
    /// What the author is told.
    pub fn transpile(source: &str) -> Result<String, String> {
        crate::engine::typescript::transpile::fuzzing::compiled(source)
    }
}

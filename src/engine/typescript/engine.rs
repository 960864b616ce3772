//! The V8 engine: TypeScript is transpiled and then runs in an isolate.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::isolate::{self, Isolate, RawOutcome};
use super::loader::{FILE_EXPORTS, export_names, is_of_files};
use super::platform;
use super::report::{Evidence, set_location, transpile_failed};
use super::transpile::{Import, Positions, TranspileErrorKind, Transpiled, Untranspiled, transpile};
use crate::engine::failure;
use crate::engine::host::{HostCalls, RunHost};
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::stop::{Stop, StopReason};
use crate::run::check::survey::Survey;
use crate::run::result::{ErrorCode, Outcome, ScriptError};
use crate::tools::names::{SuggestionBudget, nearest};

/// Creates isolates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct V8Engine {
    /// Heap limit in bytes with which isolates are created. A run with a higher limit gets more.
    pub(crate) memory_bytes: usize,
}

impl Engine for V8Engine {
    const THREAD: &'static str = "cx-js";
    type Instance = Isolate;
    type Prepared = Transpiled;

    fn spawn(&self, name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        platform::spawn(name, task)
    }

    async fn make(&self) -> Result<Isolate, String> {
        Isolate::new(self.memory_bytes)
    }

    #[cfg(all(feature = "process", target_os = "linux"))]
    async fn renew(&self, isolate: &mut Isolate) -> Result<(), String> {
        isolate.reseed()?;
        isolate.warm_up()
    }

    fn release_kept_memory(&self) {
        if let Err(message) = isolate::release_pooled_pages(self.memory_bytes) {
            // V8's own timer releases them later.
            tracing::debug!(message, "V8 keeps the pages of a large run");
        }
    }

    fn prepare(&self, host: &dyn RunHost, source: &str) -> Result<Transpiled, Box<Unprepared>> {
        prepare(host, source)
    }
}

fn prepare(host: &dyn RunHost, source: &str) -> Result<Transpiled, Box<Unprepared>> {
    let stopped = || host.cancelled().is_cancelled() || Instant::now() >= host.deadline();
    transpile(source, host.limits().source_bytes, &stopped).map_err(|untranspiled| {
        let Untranspiled { error, survey } = *untranspiled;
        let error = match error.kind {
            TranspileErrorKind::Stopped => {
                let late = Instant::now() >= host.deadline();
                failure::stopped(late.then_some(StopReason::Timeout), host)
            }
            TranspileErrorKind::Syntax | TranspileErrorKind::Transpile => transpile_failed(error, source),
        };
        Box::new(Unprepared { error, survey })
    })
}

/// Finds what a script calls without V8, for a script that is executed elsewhere. Needs as much stack as the threads of
/// this engine have.
///
/// # Errors
///
/// The run's error, for a source that V8 could not run either.
pub(crate) fn survey(host: &dyn RunHost, source: &str) -> Result<Survey, Box<Unprepared>> {
    prepare(host, source).map(|transpiled| transpiled.survey)
}

impl Instance<V8Engine> for Isolate {
    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    fn set_memory_limit(&mut self, bytes: usize) {
        self.meter.set_limit(bytes);
    }

    async fn survey(
        &mut self,
        _host: &Arc<dyn RunHost>,
        _source: &str,
        prepared: &mut Transpiled,
    ) -> Result<Survey, Outcome> {
        Ok(std::mem::take(&mut prepared.survey))
    }

    async fn execute(&mut self, host: &Arc<dyn RunHost>, source: &str, transpiled: Transpiled) -> Outcome {
        if let Err(error) = check_imports(host, source, &transpiled).await {
            return Outcome::Failed(error);
        }
        let Transpiled { code, positions, .. } = transpiled;
        let positions = Rc::new(positions);
        let raw = self.run(host, code, Rc::clone(&positions)).await;
        self.outcome(raw, &**host, source, &positions)
    }

    async fn check(&mut self, host: &Arc<dyn RunHost>, source: &str, transpiled: Transpiled) -> Outcome {
        let Transpiled { code, positions, .. } = transpiled;
        let raw = self.compile(&**host, code);
        self.outcome(raw, &**host, source, &positions)
    }

    fn memory_bytes(&self) -> usize {
        self.meter.used()
    }
}

impl Isolate {
    fn outcome(&self, raw: RawOutcome, host: &dyn RunHost, source: &str, positions: &Positions) -> Outcome {
        let evidence = Evidence {
            host,
            source,
            positions,
            stopped: self.stop.reason(),
            buffer_refused: self.meter.has_refused(),
        };
        evidence.outcome(raw)
    }
}

/// Checks what is imported of the module of files.
fn check_file_imports(source: &str, import: &Import) -> Result<(), Box<ScriptError>> {
    let missing =
        import.names.iter().find(|name| name.name != "default" && !FILE_EXPORTS.contains(&&*name.name));
    let Some(name) = missing else { return Ok(()) };
    let message = format!("`{}` has no `{}`", import.specifier, name.name);
    let mut failed = ScriptError::new(ErrorCode::SyntaxError, message);
    failed.hint = Some(format!("it exports {}", FILE_EXPORTS.join(", ")));
    set_location(&mut failed, source, Some(name.location));
    Err(Box::new(failed))
}

/// Checks the static imports before anything runs, as linking a module would.
async fn check_imports(
    host: &Arc<dyn RunHost>,
    source: &str,
    transpiled: &Transpiled,
) -> Result<(), ScriptError> {
    // Each server's export names are computed once: a script may import from it in thousands of
    // lines.
    let mut exported: HashMap<&str, HashSet<String>> = HashMap::new();
    for import in &transpiled.imports {
        if is_of_files(&import.specifier) {
            check_file_imports(source, import).map_err(|error| *error)?;
            continue;
        }
        let server = import.specifier.strip_prefix("mcp:").unwrap_or_default();
        let exports = match exported.entry(server) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let calls = HostCalls::new(Arc::clone(host));
                let _blocking = calls.blocking();
                let listing = calls.tool_names(server);
                let tools = tokio::select! {
                    biased;
                    () = host.cancelled().cancelled() => return Err(failure::stopped(None, &**host)),
                    tools = listing => tools,
                };
                let tools = tools.map_err(|error| {
                    let mut failed = ScriptError::new(ErrorCode::SyntaxError, error.message);
                    failed.tool_code = Some(error.code);
                    set_location(&mut failed, source, Some(import.location));
                    failed
                })?;
                unknown.insert(tools.iter().flat_map(|tool| export_names(tool)).collect())
            }
        };
        for name in &import.names {
            if name.name == "default" || exports.contains(&name.name) {
                continue;
            }
            let exports = exports.iter().map(String::as_str);
            let near = nearest(&name.name, exports, &SuggestionBudget::of_message());
            let mut failed = ScriptError::new(
                ErrorCode::SyntaxError,
                format!("server `{server}` has no tool `{}`", name.name),
            );
            failed.hint = (!near.is_empty()).then(|| format!("did you mean `{}`?", near.join("`, `")));
            set_location(&mut failed, source, Some(name.location));
            return Err(failed);
        }
    }
    Ok(())
}

//! The V8 engine: TypeScript is transpiled and then runs in an isolate.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::isolate::{Isolate, RawOutcome};
use super::loader::export_names;
use super::platform;
use super::report::{Evidence, set_location, transpile_failed};
use super::transpile::{Positions, TranspileErrorKind, Transpiled, transpile};
use crate::engine::failure;
use crate::engine::pool::{Engine, Instance};
use crate::engine::stop::{Stop, StopReason};
use crate::run::context::ExecutionContext;
use crate::run::result::{ErrorCode, Outcome, ScriptError};
use crate::tools::names::nearest;

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

    fn prepare(&self, context: &ExecutionContext, source: &str) -> Result<Transpiled, Box<ScriptError>> {
        let stopped = || context.cancel.is_cancelled() || Instant::now() >= context.deadline();
        transpile(source, context.limits.source_bytes, &stopped).map_err(|error| {
            Box::new(match error.kind {
                TranspileErrorKind::Stopped => {
                    let late = Instant::now() >= context.deadline();
                    failure::stopped(late.then_some(StopReason::Timeout), context)
                }
                TranspileErrorKind::Syntax | TranspileErrorKind::Transpile => transpile_failed(error, source),
            })
        })
    }
}

impl Instance<V8Engine> for Isolate {
    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    fn set_memory_limit(&mut self, bytes: usize) {
        self.meter.set_limit(bytes);
    }

    async fn execute(
        &mut self,
        context: &Arc<ExecutionContext>,
        source: &str,
        transpiled: Transpiled,
    ) -> Outcome {
        if let Err(error) = check_imports(context, source, &transpiled).await {
            return Outcome::Failed(error);
        }
        let Transpiled { code, positions, .. } = transpiled;
        let positions = Rc::new(positions);
        let raw = self.run(context, code, Rc::clone(&positions)).await;
        self.outcome(raw, context, source, &positions)
    }

    async fn check(
        &mut self,
        context: &Arc<ExecutionContext>,
        source: &str,
        transpiled: Transpiled,
    ) -> Outcome {
        let Transpiled { code, positions, .. } = transpiled;
        let raw = self.compile(context, code);
        self.outcome(raw, context, source, &positions)
    }

    fn memory_bytes(&self) -> usize {
        self.meter.used()
    }
}

impl Isolate {
    fn outcome(
        &self,
        raw: RawOutcome,
        context: &ExecutionContext,
        source: &str,
        positions: &Positions,
    ) -> Outcome {
        let evidence = Evidence {
            context,
            source,
            positions,
            stopped: self.stop.reason(),
            buffer_refused: self.meter.has_refused(),
        };
        evidence.outcome(raw)
    }
}

/// Checks the static imports before anything runs, as linking a module would.
async fn check_imports(
    context: &Arc<ExecutionContext>,
    source: &str,
    transpiled: &Transpiled,
) -> Result<(), ScriptError> {
    // Each server's export names are computed once: a script may import from it in thousands of
    // lines.
    let mut exported: HashMap<&str, Vec<String>> = HashMap::new();
    for import in &transpiled.imports {
        let server = import.specifier.strip_prefix("mcp:").unwrap_or_default();
        let exports = match exported.entry(server) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let listing = Arc::clone(context).in_runtime(async { context.tools(server).await });
                let tools = tokio::select! {
                    biased;
                    () = context.cancel.cancelled() => return Err(failure::stopped(None, context)),
                    tools = listing => tools,
                };
                let tools = tools.map_err(|error| {
                    let mut failed = ScriptError::new(ErrorCode::SyntaxError, error.message);
                    failed.tool_code = Some(error.code);
                    set_location(&mut failed, source, Some(import.location));
                    failed
                })?;
                unknown.insert(tools.iter().flat_map(export_names).collect())
            }
        };
        for name in &import.names {
            if name.name == "default" || exports.contains(&name.name) {
                continue;
            }
            let near = nearest(&name.name, exports.iter().map(String::as_str));
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

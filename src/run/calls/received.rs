//! The value that a script receives of a call: what the hooks return. Its shape is recorded for later hints.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::hooks::{self, HookedCall};
use crate::run::ledger::{Call, CallFacts};
use crate::run::returned::ReturnedObject;
use crate::tools::ToolError;
use crate::tools::shape::Shape;

impl ExecutionContext {
    /// Calls the hooks before and after `send`, which gets the arguments as the hooks leave them.
    pub(in crate::run) async fn with_hooks(
        &self,
        call: Call<'_>,
        arguments: Map<String, Value>,
        send: impl AsyncFnOnce(Map<String, Value>) -> Result<Json, ToolError>,
    ) -> Result<Json, ToolError> {
        let hooks = &self.environment.hooks;
        if hooks.is_empty() {
            let value = send(arguments).await?;
            self.note_returned(call, &value, None);
            return Ok(value);
        }
        let mut hooked = HookedCall {
            server: call.server.to_owned(),
            tool: call.tool.to_owned(),
            arguments,
            script: self.script.name.clone(),
            client: self.script.client.clone(),
            is_dry_run: self.script.is_dry_run,
        };
        let (called, permitted) = hooks::before(hooks, &mut hooked).await;
        let mut result = match permitted {
            Ok(()) => send(hooked.arguments.clone()).await,
            Err(error) => Err(error),
        }
        .map_err(|error| error.for_tool(call.server, call.tool));
        hooks::after(hooks, called, &hooked, &mut result).await;
        let value = result.map_err(|error| error.for_tool(call.server, call.tool))?;
        self.check_result_bytes("the result", value.text().len())?;
        self.note_returned(call, &value, None);
        Ok(value)
    }

    /// Records the shape of a value that the script receives. `shape` is that shape, if it is known already.
    fn note_returned(&self, call: Call<'_>, value: &Json, shape: Option<Shape>) {
        let is_wanted = self.ledger.lock().wants_shape(call.server, call.tool);
        if is_wanted {
            let shape = shape.unwrap_or_else(|| Shape::from_text(value));
            self.ledger.lock().add_shape(call.server, call.tool, shape);
        }
    }

    /// As [`note_returned`](Self::note_returned), for the result of a tool. Does nothing if there are hooks: they may
    /// change the value, so its shape is recorded after them.
    pub(super) fn note_result(&self, call: Call<'_>, value: &Json, shape: Option<Shape>) {
        if self.environment.hooks.is_empty() {
            self.note_returned(call, value, shape);
        }
    }

    /// What is known of the calls so far.
    pub(crate) fn call_facts(&self) -> CallFacts {
        self.ledger.lock().facts()
    }

    /// Whether a value that the script received has a field of this name, at any level.
    pub(crate) fn has_returned_field(&self, name: &str) -> bool {
        self.ledger.lock().has_returned_field(name)
    }

    /// The name of the field that all values have which the script received, objects with nothing else.
    pub(crate) fn only_returned_field(&self) -> Option<String> {
        self.ledger.lock().only_returned_field().map(str::to_owned)
    }

    /// The only value that the script received, if it is an object, and small enough that all its fields are known.
    pub(crate) fn only_returned_object(&self) -> Option<ReturnedObject> {
        self.ledger.lock().only_returned_object()
    }

    /// The names of all fields of values that the script received, at any level. `None` if there are `max` or more, or
    /// if some are not known.
    pub(crate) fn returned_fields(&self, max: usize) -> Option<BTreeSet<String>> {
        self.ledger.lock().returned_fields(max)
    }
}

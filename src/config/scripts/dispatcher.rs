//! Saved scripts as tools of a server `scripts`: scripts call them like tools, and search, help, argument checks,
//! rules, hooks and records apply to them as to tools.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::library::{SaveRequest, ScriptLibrary, ScriptsError};
use crate::tools::{
    Language, SCRIPTS_SERVER, SavedScript, ServerDetails, StoredScript, ToolDefinition, ToolDispatcher,
    ToolError, ToolErrorCode, ToolKind, ToolList, ToolRequest, ToolResult, UnsavedScript,
};

/// The tool that saves a script.
const SAVE: &str = "save";

/// How old a listing of the folders may be when only a list is needed. A call always reads the folders again.
const MAX_AGE: Duration = Duration::from_millis(200);

/// The scripts as a list of tools.
pub(super) fn tools(scripts: &[Arc<SavedScript>], can_save: bool) -> ToolList {
    let mut tools: Vec<ToolDefinition> = scripts.iter().map(|script| definition(script)).collect();
    tools.extend(can_save.then(save_definition));
    ToolList::new(tools)
}

fn definition(script: &SavedScript) -> ToolDefinition {
    let mut definition = ToolDefinition::new(&script.name);
    definition.description.clone_from(&script.description);
    if let Some(input) = &script.input {
        definition.input_schema = input.clone();
    }
    definition
}

fn save_definition() -> ToolDefinition {
    let mut definition = ToolDefinition::new(SAVE);
    definition.description =
        Some("Saves a script for later runs; the user is shown the code and asked first".to_owned());
    definition.input_schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$" },
            "code": { "type": "string" },
            "description": { "type": "string" },
            "input": { "type": "object", "description": "JSON Schema of the input" },
            "language": { "enum": ["typescript", "python"], "description": "the calling script's by default" },
            "replace": { "type": "boolean" },
        },
        "required": ["name", "code"],
        "additionalProperties": false,
    })
    .into();
    definition.annotations =
        Some(json!({ "readOnlyHint": false, "destructiveHint": true, "openWorldHint": false }));
    definition
}

/// The arguments of the tool that saves a script, as they were approved.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaveArguments {
    name: String,
    code: String,
    description: Option<String>,
    input: Option<Value>,
    language: Option<SavedLanguage>,
    #[serde(default)]
    replace: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SavedLanguage {
    TypeScript,
    Python,
}

impl ToolDispatcher for ScriptLibrary {
    fn servers(&self) -> Vec<Arc<str>> {
        vec![SCRIPTS_SERVER.into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        ready(Ok(Arc::clone(&self.loaded(Duration::ZERO).tools))).boxed()
    }

    fn known(&self, _server: &str) -> Option<Arc<ToolList>> {
        Some(Arc::clone(&self.loaded(MAX_AGE).tools))
    }

    fn generation(&self, _server: &str) -> u64 {
        self.loaded(MAX_AGE).generation
    }

    fn details(&self, _server: &str) -> ServerDetails {
        ServerDetails {
            description: Some("Saved scripts of the user".to_owned()),
            ..ServerDetails::default()
        }
    }

    fn kind(&self, _server: &str, tool: &str) -> ToolKind {
        if tool == SAVE { ToolKind::ScriptChange } else { ToolKind::Script }
    }

    fn unsaved_script(
        &self,
        _server: &str,
        _tool: &str,
        arguments: &Map<String, Value>,
        language: Language,
    ) -> Result<Option<UnsavedScript>, ToolError> {
        let request = save_request(arguments.clone(), language)?;
        self.unsaved(request).map(Some).map_err(|error| save_refusal(&error))
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        async move {
            if &*request.tool == SAVE {
                return self.save_for(request);
            }
            let script = self.get(&request.tool).map_err(|error| refusal(&error))?;
            let Some(caller) = &request.caller else {
                let message = "a saved script can only be called by a script";
                return Err(ToolError::new(ToolErrorCode::ToolDenied, message));
            };
            // The caller has checked the arguments by the list that it knows. The script that is about to run has
            // precedence.
            let input = script.check_input(Some(request.arguments_json()))?;
            let SavedScript { name, language, source, .. } = &*script;
            let value = caller.run(StoredScript::new(name, *language, source, input)).await?;
            Ok(ToolResult::structured(value))
        }
        .boxed()
    }
}

impl ScriptLibrary {
    /// Saves a script for a script. The user has approved exactly these arguments.
    fn save_for(&self, request: ToolRequest) -> Result<ToolResult, ToolError> {
        let language = request.caller.as_ref().map_or(Language::TypeScript, |caller| caller.language());
        let saved = save_request(request.arguments, language)?;
        let path = self.save(saved).map_err(|error| save_refusal(&error))?;
        Ok(ToolResult::structured(json!({ "saved": path.display().to_string() })))
    }
}

/// What a call of the tool that saves a script asks for. Without a language it is that of the calling script.
fn save_request(arguments: Map<String, Value>, of_caller: Language) -> Result<SaveRequest, ToolError> {
    let arguments: SaveArguments =
        serde_json::from_value(Value::Object(arguments)).map_err(|error| ToolError::unreadable(&error))?;
    let SaveArguments { name, code, description, input, language, replace } = arguments;
    let language = language.map_or(of_caller, |language| match language {
        SavedLanguage::TypeScript => Language::TypeScript,
        SavedLanguage::Python => Language::Python,
    });
    Ok(SaveRequest { name, language, code, description, input, replace })
}

/// The error of a call that saves a script.
fn save_refusal(error: &ScriptsError) -> ToolError {
    match error {
        ScriptsError::Exists(_) => {
            let message = format!("{error}: `replace: true` replaces it");
            ToolError::new(ToolErrorCode::InvalidArguments, message)
        }
        other => refusal(other),
    }
}

fn refusal(error: &ScriptsError) -> ToolError {
    let code = match error {
        ScriptsError::NotFound { .. } => ToolErrorCode::ToolNotFound,
        ScriptsError::Unusable { .. } => ToolErrorCode::ToolDenied,
        ScriptsError::Invalid(_) | ScriptsError::Exists(_) => ToolErrorCode::InvalidArguments,
        ScriptsError::Files(_) => ToolErrorCode::UpstreamUnavailable,
    };
    ToolError::new(code, error.to_string())
}

//! The tools that a client sees. Their text is part of the context of every conversation, so it is kept short.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::arguments::parameters::RunParameter;
use super::output_schemas;
use crate::engine::engines;
use crate::run::limits::Limits;
use crate::run::script::Language;

/// Runs TypeScript.
pub(crate) const EXECUTE_TYPESCRIPT: &str = "executeTypescript";
/// Runs Python.
pub(crate) const EXECUTE_PYTHON: &str = "executePython";
/// Reports the state of the server.
pub(crate) const HEALTH: &str = "health";
/// Waits for a run that continues after its answer.
pub(crate) const WAIT: &str = "wait";

/// Maximum tokens of the server names in the list of tools, as estimated by [`max_tokens`].
const MAX_NAME_TOKENS: usize = 30;

const TYPESCRIPT: &str = "Runs TypeScript that calls MCP tools; return only what you need. \
Find tools: return await searchTools(\"words\") says how to call them. \
Call: await tools.<server>.<tool>({…}); failures throw. \
Also: input, console.log, emit(image or text), state.get/set (kept between runs), fs (in /tmp). \
No network, npm. More: help().";

const PYTHON: &str = "The same in Python 3.14: await search_tools(\"words\"), \
await tools.<server>.<tool>(a=1), inputs, print. Returns the last expression.";

/// In a build without TypeScript.
const PYTHON_ALONE: &str = "Runs Python 3.14 that calls MCP tools; return only what you need. \
Find tools: await search_tools(\"words\") says how to call them. \
Call: await tools.<server>.<tool>(a=1); failures raise. \
Also: inputs, print, emit(image or text), state.get/set (kept between runs), files in /tmp. Returns the last expression. \
No network, pip. More: help().";

/// The optional features of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offers {
    /// Runs can continue after their answer, and there is a tool that waits for them.
    pub(crate) yields: bool,
    /// Scripts may ask language models.
    pub(crate) has_models: bool,
    /// Directories or hosts are granted to scripts.
    pub(crate) has_grants: bool,
    /// There are saved scripts.
    pub(crate) has_scripts: bool,
}

/// Returns the list of tools. Its order and its bytes are the same for every client.
pub(crate) fn all(servers: &[String], max: &Limits, offers: Offers) -> Vec<Tool> {
    let yields = offers.yields;
    let run = |name, title: &str, description: String, input: &Value| {
        tool(name, title, description, input, &output_schemas::run(yields))
            // There is no `destructive` annotation: clients assume that a tool without one may be
            // destructive.
            .with_annotations(ToolAnnotations::new().open_world(true))
    };
    let health = tool(
        HEALTH,
        "Health",
        "State of servers and runs".to_owned(),
        // Some clients require `properties`, even if it is empty.
        &json!({ "type": "object", "properties": {} }),
        &output_schemas::health(),
    )
    .with_annotations(ToolAnnotations::new().read_only(true));
    let mut tools = Vec::new();
    for &language in engines::AVAILABLE {
        let is_first = tools.is_empty();
        let descriptions = if is_first { Descriptions::Included } else { Descriptions::Omitted };
        let schema = run_schema(descriptions, max, offers);
        tools.push(match language {
            Language::TypeScript => {
                let description = format!("{TYPESCRIPT}{}", servers_sentence(servers));
                run(EXECUTE_TYPESCRIPT, "Run TypeScript", description, &schema)
            }
            Language::Python if is_first => {
                let description = format!("{PYTHON_ALONE}{}", servers_sentence(servers));
                run(EXECUTE_PYTHON, "Run Python", description, &schema)
            }
            Language::Python => run(EXECUTE_PYTHON, "Run Python", PYTHON.to_owned(), &schema),
        });
    }
    tools.push(health);
    if yields {
        let input = json!({
            "type": "object",
            "properties": { "runId": { "type": "string" }, "timeoutMs": { "type": "integer" } },
            "required": ["runId"],
        });
        let description = "Waits for a run that goes on, and returns the rest".to_owned();
        let wait = tool(WAIT, "Wait", description, &input, &output_schemas::run(yields));
        tools.push(wait.with_annotations(ToolAnnotations::new().read_only(true)));
    }
    tools
}

fn tool(name: &'static str, title: &str, description: String, input: &Value, output: &Value) -> Tool {
    let object = |schema: &Value| Arc::new(schema.as_object().cloned().unwrap_or_else(JsonObject::new));
    let mut tool = Tool::new(name, description, object(input));
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(object(output));
    tool
}

/// Whether the parameters have descriptions and bounds. The second tool omits them, because its
/// parameters are those of the first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Descriptions {
    Included,
    Omitted,
}

/// The schema of the parameters of a run.
pub(super) fn run_schema(descriptions: Descriptions, max: &Limits, offers: Offers) -> Value {
    let Offers { yields, has_models, has_grants, has_scripts } = offers;
    let mut properties = JsonObject::new();
    let is_listed = |parameter: &RunParameter| match parameter {
        RunParameter::YieldAfterMs => yields,
        RunParameter::Script => has_scripts,
        RunParameter::Permissions => has_grants,
        parameter => has_models || !parameter.is_of_sampling(),
    };
    for parameter in RunParameter::ALL.into_iter().filter(is_listed) {
        let mut schema = match parameter {
            RunParameter::Code => json!({ "type": "string" }),
            RunParameter::Script => json!({ "type": "string", "description": "saved, instead of code" }),
            // Any JSON is accepted, but some clients cannot load a parameter without exactly one type, and some treat a
            // list of types as text. Models mostly send an object, and some clients would refuse its fields if the
            // schema did not allow them.
            RunParameter::Input => json!({ "type": "object", "additionalProperties": true }),
            RunParameter::AllowedTools => {
                json!({ "type": "array", "items": { "type": "string" }, "description": "e.g. server.*" })
            }
            RunParameter::TimeoutMs => {
                json!({ "type": "integer", "maximum": max.wall_time.as_millis() as u64 })
            }
            RunParameter::MaxToolCalls if max.tool_calls == 0 => json!({ "type": "integer" }),
            RunParameter::MaxToolCalls => json!({ "type": "integer", "maximum": max.tool_calls }),
            RunParameter::Session | RunParameter::TimeZone | RunParameter::SamplingSystemPrompt => {
                json!({ "type": "string" })
            }
            // Clients that validate against the schema would refuse other fields; the errors of cx are more helpful.
            RunParameter::Permissions => {
                json!({ "type": "object", "description": "less than granted (see health): read, write, net" })
            }
            RunParameter::DryRun => json!({ "type": "boolean" }),
            RunParameter::YieldAfterMs => {
                json!({ "type": "integer", "description": "then answer; `wait` has the rest" })
            }
            RunParameter::EnableSampling => {
                json!({ "type": "boolean", "description": "gives llm.ask(prompt)" })
            }
            RunParameter::MaxSamplingRounds | RunParameter::MaxSamplingTokens => json!({ "type": "integer" }),
            RunParameter::AllowedSamplingModels => {
                json!({ "type": "array", "items": { "type": "string" } })
            }
        };
        if let (Descriptions::Omitted, Value::Object(fields)) = (descriptions, &mut schema) {
            fields.shift_remove("description");
            fields.shift_remove("maximum");
        }
        properties.insert(parameter.name().to_owned(), schema);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !has_scripts {
        schema["required"] = json!(["code"]);
    }
    schema
}

/// A sentence with the names of the servers, as many as fit.
fn servers_sentence(servers: &[String]) -> String {
    let mut tokens = 0;
    let fitting = servers.iter().take_while(|server| {
        tokens += max_tokens(server);
        tokens <= MAX_NAME_TOKENS
    });
    let count = fitting.count();
    let named = servers[..count].join(", ");
    match (count, servers.len() - count) {
        (0, 0) => String::new(),
        (0, more) => format!(" {more} servers."),
        (_, 0) => format!(" Servers: {named}."),
        (_, more) => format!(" Servers: {named} and {more} more."),
    }
}

/// Estimates the maximum number of tokens of a name. Tokenizers have tokens for whole words, and
/// split other text into pieces of two or three letters; a new token begins where the kind of
/// character changes.
pub(super) fn max_tokens(name: &str) -> usize {
    let kinds = || name.chars().map(CharacterKind::from);
    let changes = kinds().zip(kinds().skip(1)).filter(|(one, next)| one != next).count();
    // The 1 is for the comma.
    1 + changes + name.len().div_ceil(4)
}

/// The kinds of characters that tokenizers distinguish.
#[derive(PartialEq, Eq)]
enum CharacterKind {
    Digit,
    Upper,
    Letter,
    Other,
}

impl From<char> for CharacterKind {
    fn from(character: char) -> Self {
        match character {
            '0'..='9' => Self::Digit,
            _ if character.is_uppercase() => Self::Upper,
            _ if character.is_alphabetic() => Self::Letter,
            _ => Self::Other,
        }
    }
}

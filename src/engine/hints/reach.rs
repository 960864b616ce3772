//! Hints that name the servers and the tools that a run reaches.

use super::source::MAX_NAME;
use crate::run::context::ExecutionContext;
use crate::run::script::Language;
use crate::text::visible_preview;
use crate::tools::SCRIPTS_SERVER;
use crate::tools::names::{is_identifier, python_name, typescript_name};

/// Maximum number of servers that a hint names.
const MAX_SERVERS: usize = 8;

/// Maximum number of tools of one name that a hint names.
const MAX_TOOLS: usize = 3;

/// Names that scripts give the clients of servers.
pub(super) const CLIENTS: &[&str] = &[
    "ClientSession",
    "MCPClient",
    "client",
    "default_api",
    "list_tools",
    "mcp_client",
    "session",
    "stdio_client",
];

/// How a script reaches the run's servers, whose names are those of its language.
pub(super) fn servers(context: &ExecutionContext, how: &str) -> String {
    // The server of saved scripts is built in.
    let mut names = context.server_names();
    names.retain(|name| **name != *SCRIPTS_SERVER);
    let is_python = context.script.language == Language::Python;
    let shown: Vec<String> = names
        .iter()
        .take(MAX_SERVERS)
        .map(|name| {
            let name = if is_python { python_name(name) } else { typescript_name(name) };
            format!("`tools.{}`", visible_preview(&name, MAX_NAME))
        })
        .collect();
    let more = if names.len() > MAX_SERVERS { ", …" } else { "" };
    let shown = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
    format!("servers are connected already: {how}; here there are {shown}{more}")
}

/// How a script calls the tools of this name, without whose server it has called them. `None` if the run may call none,
/// as far as its servers have listed their tools.
pub(super) fn tool(name: &str, context: &ExecutionContext) -> Option<String> {
    if name.len() > MAX_NAME || !is_identifier(name) {
        return None;
    }
    let is_python = context.script.language == Language::Python;
    let arguments = if is_python { "…" } else { "{…}" };
    if name.starts_with("mcp__") {
        return Some(format!("a tool of this full name is called with `await tools.{name}({arguments})`"));
    }
    let named = context.servers_with_tool(name, MAX_TOOLS + 1);
    let of_language = |server: &str| {
        let server = if is_python { python_name(server) } else { typescript_name(server) };
        visible_preview(&server, MAX_NAME)
    };
    let shown: Vec<String> = named
        .iter()
        // Saved scripts are no tools.
        .filter(|server| ***server != *SCRIPTS_SERVER)
        .take(MAX_TOOLS)
        // The tool as it is written: what has found it finds it again.
        .map(|server| format!("`await tools.{}.{name}({arguments})`", of_language(server)))
        .collect();
    let more = if named.len() > MAX_TOOLS { ", …" } else { "" };
    if shown.is_empty() {
        return full_name(name, context);
    }
    Some(format!("a tool is called with its server: {}{more}", shown.join(", ")))
}

/// What a script calls that is a server, as `fetch(…)` where a server has that name.
pub(super) fn called_server(message: &str, context: &ExecutionContext) -> Option<String> {
    let called = message.strip_suffix(" is not a function")?;
    let name = called.strip_prefix("tools.").unwrap_or(called);
    if name.len() > MAX_NAME || !is_identifier(name) {
        return None;
    }
    let is_server = context.server_names().iter().any(|server| typescript_name(server) == name);
    is_server.then(|| {
        format!(
            "`{called}` is a server here: call one of its tools, as in `await tools.{name}.<tool>({{…}})`; \
             `help(\"{name}\")` lists them"
        )
    })
}

/// How a script calls a tool whose server and name it has in one text, as in `tools["files.read"]`, or in one name, as
/// other programs have it: `tools.files_read(…)`.
fn full_name(name: &str, context: &ExecutionContext) -> Option<String> {
    if name.len() > MAX_NAME {
        return None;
    }
    let servers = context.server_names();
    let (server, tool) = servers.iter().find_map(|server| Some((server, tool_of(server, name, context)?)))?;
    Some(match context.script.language {
        Language::Python => {
            format!("a tool is called with its server: `await tools.{}.{tool}(…)`", python_name(server))
        }
        Language::TypeScript => {
            format!(
                "a tool is called with its server: `await tools.{}.{tool}({{…}})`",
                typescript_name(server)
            )
        }
    })
}

/// `read` of `files.read`, and of `files_read` and `files__read` if the server `files` has that tool.
fn tool_of<'a>(server: &str, name: &'a str, context: &ExecutionContext) -> Option<&'a str> {
    let python = python_name(server);
    let rest = name.strip_prefix(server).or_else(|| name.strip_prefix(&*python))?;
    if let Some(tool) = rest.strip_prefix(['.', '/']) {
        return is_identifier(tool).then_some(tool);
    }
    let tool =
        rest.strip_prefix("__").or_else(|| rest.strip_prefix('_')).filter(|tool| is_identifier(tool))?;
    context.servers_with_tool(tool, usize::MAX).iter().any(|known| **known == *server).then_some(tool)
}

/// What a script wants of `tools` that is no server: a tool, or what other programs have there.
pub(super) fn member(name: &str, context: &ExecutionContext) -> Option<String> {
    let of_tool = tool(name, context).or_else(|| full_name(name, context));
    if of_tool.is_some() {
        return of_tool;
    }
    let is_python = context.script.language == Language::Python;
    let function = match name {
        "call" | "callTool" | "call_tool" | "execute" | "invoke" if is_python => {
            "`await call_mcp_tool(\"server.tool\", {…})` calls a tool by its name"
        }
        "call" | "callTool" | "call_tool" | "execute" | "invoke" => {
            "`await callMCPTool(\"server.tool\", {…})` calls a tool by its name"
        }
        "find" | "list" | "listTools" | "list_tools" | "search" if is_python => {
            "`await search_tools(\"words\")` finds tools"
        }
        "find" | "list" | "listTools" | "list_tools" | "search" => {
            "`await searchTools(\"words\")` finds tools"
        }
        _ => return None,
    };
    Some(function.to_owned())
}

/// The name in the message about a server that does not exist.
pub(super) fn missing_server(message: &str) -> Option<&str> {
    message.strip_prefix("no server `")?.split('`').next()
}

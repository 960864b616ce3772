//! The list of tools that clients see: those of cx, and tools of servers that are shown directly.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{ClientCapabilities, Tool};
use serde_json::{Value, json};

use super::json_size::json_bytes;
use super::tools::Offers;
use super::{direct, tools};
use crate::executor::Executor;
use crate::text::{one_line, preview};
use crate::tools::catalog::ResolvedTool;
use crate::tools::{
    INTERFACE_SCHEME, INTERFACE_TYPE, INTERFACES, SCRIPTS_SERVER, ToolMode, interface_address,
};

/// `"mode": "auto"` shows all tools if their definitions have at most this many tokens. Above it, finding tools by
/// scripts costs less, even if an agent searches in every turn. It is 11.2 tools of 101 tokens, the break-even and the
/// average size that `make bench-agents` measures (docs/agents.md, `benches/agents/figures/base.json`: "typescript,
/// discovery search").
const AUTO_TOKENS: usize = 1_130;

/// A list that is shown stays shown up to this many tokens, so that it does not appear and disappear when one tool
/// comes and goes.
const AUTO_TOKENS_KEPT: usize = AUTO_TOKENS + AUTO_TOKENS / 4;

/// Bytes of a definition's JSON for each token.
const BYTES_PER_TOKEN: usize = 4;

/// Maximum number of tools that are shown directly, and bytes of their definitions. More than any client can use.
const MAX_TOOLS: usize = 500;
const MAX_BYTES: usize = 2 << 20;

/// Maximum bytes of schemas that are read to make the list. Each schema is compiled, which takes a second for some ten
/// megabytes, and requests of all clients wait for the list.
const MAX_READ_BYTES: usize = 4 << 20;

/// Maximum number of tools for which the report says why they are not shown, and characters of each reason.
const MAX_PROBLEMS: usize = 20;
const MAX_PROBLEM: usize = 300;

/// A tool of a server that is shown directly.
#[derive(Clone, PartialEq)]
pub(crate) struct DirectTool {
    pub(crate) server: Arc<str>,
    pub(crate) tool: Arc<str>,
    /// Its definition. The name in it is the one that clients use.
    shown: Tool,
    /// Whether it is shown only to clients that show user interfaces.
    only_interface: bool,
}

impl DirectTool {
    /// Its definition for clients.
    pub(crate) fn definition(&self) -> &Tool {
        &self.shown
    }
}

/// How many tools the list shows directly, for the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// No tool is shown directly, or only because of its interface.
    None,
    /// This many of the tools, which the configuration names.
    Some(usize),
    /// All known tools, of this number.
    All(usize),
}

/// The list of tools at one moment.
pub(crate) struct ShownTools {
    own: Vec<Tool>,
    direct: Vec<DirectTool>,
    by_name: HashMap<String, usize>,
    /// The addresses of user interfaces as clients see them, with the server of each and its own
    /// address.
    interfaces: HashMap<String, Interface>,
    pub(crate) shown: Shown,
    /// Why tools are not shown, for at most [`MAX_PROBLEMS`] of them.
    pub(crate) problems: Vec<String>,
}

/// A user interface of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Interface {
    pub(crate) server: Arc<str>,
    /// The address as the server knows it.
    pub(crate) address: String,
}

impl PartialEq for ShownTools {
    fn eq(&self, other: &Self) -> bool {
        self.own == other.own && self.direct == other.direct
    }
}

/// Whether a client shows user interfaces of tools.
pub(crate) fn shows_interfaces(capabilities: Option<&ClientCapabilities>) -> bool {
    let extension = capabilities.and_then(|client| client.extensions.as_ref()?.get(INTERFACES));
    extension.is_some_and(|settings| match settings.get("mimeTypes") {
        Some(Value::Array(types)) => types.iter().any(|kind| kind == INTERFACE_TYPE),
        _ => true,
    })
}

impl ShownTools {
    /// Makes the list of an executor's tools as far as they are known. `before` is the previous list. May read files.
    pub(crate) fn new(executor: &Executor, yields: bool, before: Option<&Self>) -> Self {
        // The server of saved scripts is not one that a user has configured.
        let mut servers = executor.server_names();
        servers.retain(|name| name != SCRIPTS_SERVER);
        let has_scripts = !executor.saved_scripts().is_empty();
        let has_grants = !executor.grants().is_empty();
        let offers = Offers { yields, has_models: executor.lists_models(), has_grants, has_scripts };
        let own = tools::all(&servers, &executor.max_limits(), offers);
        let rules = executor.direct_rules();
        let lists = executor.listed_tools();
        let known: Vec<&ResolvedTool> =
            lists.iter().filter_map(|(_, tools)| tools.as_ref()).flatten().collect();
        // Saved scripts are shown only if they are named: the parameter `script` runs them otherwise.
        let configured = known
            .iter()
            .filter(|tool| &*tool.server != SCRIPTS_SERVER || rules.names(&tool.server, &tool.tool))
            .map(|tool| (*tool, false));
        let (all, shows_all) = match rules.mode() {
            ToolMode::Script => (FittingTools::default(), false),
            ToolMode::Direct => (direct_tools(configured, MAX_BYTES, json_bytes), true),
            ToolMode::Auto => {
                let was_shown = before.is_some_and(|before| matches!(before.shown, Shown::All(_)));
                let max = if was_shown { AUTO_TOKENS_KEPT } else { AUTO_TOKENS };
                let all = direct_tools(configured, max * BYTES_PER_TOKEN, bytes_for_models);
                let bytes = all.tools.iter().map(|tool| json_bytes(&tool.shown)).sum::<usize>();
                let shows_all = all.left_out == 0 && all.tokens <= max && bytes <= MAX_BYTES;
                (all, shows_all)
            }
        };
        let FittingTools { tools: direct, problems, .. } = if shows_all {
            all
        } else {
            let chosen = known.iter().filter_map(|tool| {
                let is_named = rules.names(&tool.server, &tool.tool);
                (is_named || rules.shows_interface_of(tool.definition())).then_some((*tool, !is_named))
            });
            direct_tools(chosen, MAX_BYTES, json_bytes)
        };
        let named = direct.iter().filter(|tool| !tool.only_interface).count();
        let shown = match named {
            0 => Shown::None,
            count if shows_all => Shown::All(count),
            count => Shown::Some(count),
        };
        let mut list =
            Self { own, direct, by_name: HashMap::new(), interfaces: HashMap::new(), shown, problems };
        if rules.shows_interfaces() {
            list.name_interfaces(&known);
        }
        let names = list.direct.iter().enumerate();
        list.by_name = names.map(|(position, tool)| (tool.shown.name.to_string(), position)).collect();
        list
    }

    /// The list for a client. The tool `wait` is only for clients with a session.
    pub(crate) fn list(&self, has_interfaces: bool, has_session: bool) -> Vec<Tool> {
        let direct = self.direct.iter().filter(|tool| has_interfaces || !tool.only_interface);
        let own = self.own.iter().filter(|tool| has_session || tool.name != tools::WAIT);
        own.chain(direct.map(|tool| &tool.shown)).cloned().collect()
    }

    /// Whether the list contains anything but cx's own tools.
    pub(crate) fn has_direct(&self) -> bool {
        !self.direct.is_empty()
    }

    /// The tool with this name. A user interface calls the tools of its server by their original names, so such a name
    /// is accepted too if only one server with interfaces has a tool of that name.
    pub(crate) fn tool(&self, name: &str) -> Option<&DirectTool> {
        if let Some(&position) = self.by_name.get(name) {
            return self.direct.get(position);
        }
        let servers = || self.interfaces.values().map(|interface| &interface.server);
        let mut own = self
            .direct
            .iter()
            .filter(|tool| &*tool.tool == name && servers().any(|server| *server == tool.server));
        own.next().filter(|_| own.next().is_none())
    }

    /// The names that clients can call.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.own.iter().map(|tool| &*tool.name).chain(self.direct.iter().map(|tool| &*tool.shown.name))
    }

    /// The interface at an address as clients see it.
    pub(crate) fn interface(&self, address: &str) -> Option<&Interface> {
        self.interfaces.get(address)
    }

    /// All interfaces, by the addresses that clients see, in order.
    pub(crate) fn interfaces(&self) -> Vec<(&str, &Interface)> {
        let mut all: Vec<_> = self.interfaces.iter().map(|(address, at)| (&**address, at)).collect();
        all.sort_unstable_by_key(|(address, _)| *address);
        all
    }

    /// Determines which server each address belongs to. An address that the tools of several servers name is replaced,
    /// in the definitions of all of them, by one that contains the server's name. Tools that are not shown count too:
    /// otherwise an address could later become another server's.
    fn name_interfaces(&mut self, known: &[&ResolvedTool]) {
        let mut servers: HashMap<&str, Vec<&Arc<str>>> = HashMap::new();
        for tool in known {
            if let Some(address) = tool.definition().interface() {
                let of = servers.entry(address).or_default();
                if !of.contains(&&tool.server) {
                    of.push(&tool.server);
                }
            }
        }
        self.direct.retain_mut(|tool| {
            let Some(meta) = &mut tool.shown.meta else { return true };
            let Ok(mut fields) = serde_json::to_value(&*meta) else { return true };
            let Some(address) = interface_address(&fields).map(str::to_owned) else { return true };
            let is_shared = servers.get(&*address).is_some_and(|servers| servers.len() > 1);
            let shown = if is_shared { own_address(&tool.server, &address) } else { address.clone() };
            if is_shared && servers.contains_key(&*shown) {
                tracing::warn!(server = %tool.server, tool = %tool.tool, "a tool is not shown: its interface has another server's address");
                return false;
            }
            if is_shared {
                set_address(&mut fields, &shown);
                if let Ok(changed) = serde_json::from_value(fields) {
                    *meta = changed;
                }
            }
            let interface = Interface { server: Arc::clone(&tool.server), address };
            self.interfaces.insert(shown, interface);
            true
        });
    }
}

fn set_address(meta: &mut Value, address: &str) {
    if let Some(named) = meta.get_mut("ui").and_then(|ui| ui.get_mut("resourceUri")) {
        *named = address.into();
    }
    if let Some(named) = meta.get_mut("ui/resourceUri") {
        *named = address.into();
    }
}

/// An address that only an interface of this server has.
fn own_address(server: &str, address: &str) -> String {
    let rest = address.strip_prefix(INTERFACE_SCHEME).unwrap_or(address);
    format!("{INTERFACE_SCHEME}{}/{rest}", direct::name(server, "ui"))
}

/// Makes tools from definitions, as many as fit into `max_bytes`, of which each takes as many as `measure` says, and the
/// other bounds. Each comes with whether it is shown only because of its interface.
fn direct_tools<'a>(
    tools: impl Iterator<Item = (&'a ResolvedTool, bool)>,
    max_bytes: usize,
    measure: fn(&Tool) -> usize,
) -> FittingTools {
    let mut fitting = FittingTools::default();
    let mut names = std::collections::HashSet::new();
    let (mut bytes, mut read) = (0, 0);
    for (tool, only_interface) in tools {
        // Definitions that do not fit are not parsed.
        if fitting.tools.len() == MAX_TOOLS || bytes > max_bytes || read > MAX_READ_BYTES {
            fitting.left_out += 1;
            continue;
        }
        read += tool.definition().input_schema.text().len();
        read += tool.definition().output_schema.as_ref().map_or(0, |schema| schema.text().len());
        let name = direct::name(&tool.server, &tool.tool);
        let problem = match direct::definition(tool, name.clone()) {
            Ok(_) if !names.insert(name) => "there is another one of this name".to_owned(),
            Ok(shown) => {
                let size = measure(&shown);
                bytes += size;
                if bytes <= max_bytes {
                    fitting.tokens += size.div_ceil(BYTES_PER_TOKEN);
                    let (server, tool) = (Arc::clone(&tool.server), Arc::clone(&tool.tool));
                    fitting.tools.push(DirectTool { server, tool, shown, only_interface });
                } else {
                    fitting.left_out += 1;
                }
                continue;
            }
            Err(problem) => problem,
        };
        fitting.note(format!("{}.{}: {problem}", tool.server, tool.tool));
    }
    if fitting.left_out > 0 && max_bytes == MAX_BYTES {
        fitting.note(format!("{} tools: there are too many", fitting.left_out));
    }
    fitting
}

/// Definitions for clients, as many as fit.
#[derive(Default)]
struct FittingTools {
    tools: Vec<DirectTool>,
    /// The tokens that they take in the context of a model, estimated.
    tokens: usize,
    /// The number of tools that did not fit.
    left_out: usize,
    problems: Vec<String>,
}

impl FittingTools {
    fn note(&mut self, problem: String) {
        tracing::warn!(problem, "not shown directly");
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(preview(&one_line(&problem), MAX_PROBLEM));
        }
    }
}

/// Bytes of what clients show of a tool to models, which have no output schemas: so the break-even was measured
/// (`shown_definitions` in `benches/agents/bench.py`).
fn bytes_for_models(tool: &Tool) -> usize {
    let schema = &*tool.input_schema;
    json!({ "name": tool.name, "description": tool.description, "inputSchema": schema }).to_string().len()
}

#[cfg(test)]
mod tests;

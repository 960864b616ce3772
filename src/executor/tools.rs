//! What is known of the servers' tools: lists, searches, declarations, and how they differ from the pinned definitions.

use std::sync::Arc;

use tokio::task::JoinError;

use super::core::Executor;
use crate::error::Error;
use crate::run::calls::resolve::ToolName;
use crate::run::observer::DefinitionEvent;
use crate::tools::catalog::{Catalog, LookUp, ResolvedTool};
use crate::tools::caught::caught;
use crate::tools::direct::DirectRules;
use crate::tools::names::{SuggestionBudget, forms, is_python_identifier, python_name};
use crate::tools::usage::IndexedServer;
use crate::tools::{DamagedPins, KnownServer, SkillChange, Tool, ToolChange, ToolError, ToolErrorCode};

/// What has panicked, if nothing nearer knows it: cx itself, or a function of a dispatcher that must not.
const ASKING: &str = "the program that lists tools";

/// The names of servers, and the results of requests for their tools.
type Asked = Vec<(String, Result<(), ToolError>)>;

impl Executor {
    /// Requests the tool lists of all servers concurrently, even if they are cached. A server that
    /// fails or is slow does not delay the others. Returns each server's name and result, in order.
    ///
    /// A result is an error if the server cannot be reached, does not answer in time, or sends an invalid list; and all
    /// are if they could not be requested, because code of the embedder panics or the executor's runtime has ended.
    /// Dropping the future ends the wait only: the requests go on, within their own time limits.
    pub async fn refresh_tools(&self) -> Vec<(String, Result<(), ToolError>)> {
        let catalog = Arc::clone(&self.servers().tools.catalog);
        let asking = Arc::clone(&catalog);
        let asked = caught(ASKING, async move { Ok(asking.refresh().await) });
        asked_or_failed(&catalog, self.inner.runtime.spawn(asked).await)
    }

    /// Requests the tool lists of the servers of which none is known, or a [partial one](KnownServer::is_partial), as
    /// [`refresh_tools`](Self::refresh_tools) does.
    ///
    /// Returns the names and results of those that were asked, or an error for each server if none could be. Dropping
    /// the future ends the wait only.
    pub async fn fetch_missing_tools(&self) -> Vec<(String, Result<(), ToolError>)> {
        let catalog = Arc::clone(&self.servers().tools.catalog);
        let asking = Arc::clone(&catalog);
        let asked = caught(ASKING, async move { Ok(asking.fetch_missing().await) });
        asked_or_failed(&catalog, self.inner.runtime.spawn(asked).await)
    }

    /// The names of all servers that scripts may see, including native ones, in order.
    pub fn server_names(&self) -> Vec<String> {
        let servers = self.servers();
        let names = servers.tools.catalog.server_names();
        let permitted = names.filter(|name| servers.tools.policy.may_permit_server(name));
        permitted.map(|name| name.to_string()).collect()
    }

    /// The servers and their tools that are known without sending requests: from this process's
    /// runs, and from the [`cache_directory`](crate::ExecutorBuilder::cache_directory). Reads files.
    pub fn known_tools(&self) -> Vec<KnownServer> {
        let servers = self.servers();
        let permits = |tool: &&ResolvedTool| servers.tools.policy.permits(&tool.server, &tool.tool);
        let known = servers.tools.catalog.known().into_iter();
        known
            .map(|(name, tools)| KnownServer {
                problem: servers.tools.catalog.list_problem(&name),
                is_partial: servers.tools.catalog.is_partial(&name),
                name: name.to_string(),
                hidden: tools.iter().flatten().filter(|tool| !permits(tool)).count(),
                tools: tools.map(|tools| tools.iter().filter(permits).map(Tool::new).collect()),
            })
            .collect()
    }

    /// The tool of this name among the [`known_tools`](Self::known_tools), by `mcp__server__tool` or `server.tool`,
    /// each name exact or in the form of either language. `None` if it is not known, or scripts may not use it. Reads
    /// files.
    pub fn known_tool(&self, name: &str) -> Option<Tool> {
        let servers = self.servers();
        let (catalog, budget) = (&servers.tools.catalog, SuggestionBudget::of_message());
        let found = match ToolName::of_text(name) {
            ToolName::Pair { server, tool } => catalog.look_up(&server, &tool, &budget),
            ToolName::Full(name) => catalog.look_up_full_name(&name, &budget),
        };
        let LookUp::Found { tool, .. } = found else { return None };
        servers.tools.policy.permits(&tool.server, &tool.tool).then(|| Tool::new(&tool))
    }

    /// The names of the [`known_tools`](Self::known_tools) and of their parameters, as scripts of both
    /// languages can write them. A server has at most `max` here, and `known_names` is cheap where
    /// `known_tools` is not.
    pub(crate) fn known_names(&self, max: usize) -> Vec<IndexedServer> {
        let servers = self.servers();
        let permits = |tool: &&ResolvedTool| servers.tools.policy.permits(&tool.server, &tool.tool);
        let names = |tools: Vec<ResolvedTool>| {
            tools.iter().filter(permits).take(max).map(ResolvedTool::names).collect()
        };
        let known = servers.tools.catalog.known();
        let identifiers = forms(known.iter().map(|(name, _)| &**name), python_name);
        known
            .into_iter()
            .zip(identifiers)
            .map(|((name, tools), identifier)| IndexedServer {
                // Scripts of both languages can write it after `tools.`.
                name: identifier.filter(|_| !is_python_identifier(&name)).unwrap_or_else(|| name.to_string()),
                tools: tools.map(names),
            })
            .collect()
    }

    /// The [`known_tools`](Self::known_tools) that match `query`, best match first, at most
    /// `limit`. Reads files.
    pub fn search_known_tools(&self, query: &str, limit: usize) -> Vec<Tool> {
        let servers = self.servers();
        let permitted = |server: &str, tool: &str| servers.tools.policy.permits(server, tool);
        let found = servers.tools.catalog.search_known(query, limit, permitted);
        found.iter().map(Tool::new).collect()
    }

    /// TypeScript declarations of the [`known_tools`](Self::known_tools) that scripts may use. Reads files.
    pub fn declarations(&self) -> String {
        let servers = self.servers();
        servers.tools.catalog.declarations(|server, tool| servers.tools.policy.permits(server, tool))
    }

    /// The same as stubs for Python's type checkers: the names of files in one directory, and their
    /// texts. Reads files.
    pub fn python_stubs(&self) -> Vec<(&'static str, String)> {
        let servers = self.servers();
        servers.tools.catalog.python_stubs(|server, tool| servers.tools.policy.permits(server, tool))
    }

    /// Which tools a server exposes to its clients directly.
    pub(crate) fn direct_rules(&self) -> Arc<DirectRules> {
        Arc::clone(&self.inner.settings.read().direct)
    }

    /// The servers whose rules permit any tool, each with its permitted tools as last listed. Asks no
    /// server, but may read files.
    pub(crate) fn listed_tools(&self) -> Vec<(Arc<str>, Option<Vec<ResolvedTool>>)> {
        let servers = self.servers();
        let policy = &servers.tools.policy;
        let known = servers.tools.catalog.known().into_iter();
        let permitted = known.filter(|(server, _)| policy.may_permit_server(server));
        permitted
            .map(|(server, tools)| {
                let tools = tools.map(|mut tools| {
                    tools.retain(|tool| policy.permits(&tool.server, &tool.tool));
                    tools
                });
                (server, tools)
            })
            .collect()
    }

    /// Asks those servers for their tools whose lists are unknown or out of date, and whose tools
    /// may be exposed to clients directly. Waits for each as long as a search does; requests that take
    /// longer continue. With `with_interfaces`, servers that are running are asked too: only their
    /// tools say whether they have an interface.
    pub(crate) async fn list_direct_tools(&self, with_interfaces: bool) {
        let (servers, rules) = (self.servers(), self.direct_rules());
        let policy = &servers.tools.policy;
        let with_interfaces = with_interfaces && rules.shows_interfaces();
        let is_wanted = |name: &str, is_running: bool| {
            policy.may_permit_server(name) && (rules.may_show(name) || (with_interfaces && is_running))
        };
        servers.tools.catalog.discover(is_wanted).await;
    }

    /// Differs when the list of a server does, or has to be asked for again.
    pub(crate) fn lists_stamp(&self) -> u64 {
        self.servers().tools.catalog.lists_stamp()
    }

    /// What a list of tools was made for: the version of the servers and their rules, and
    /// [`lists_stamp`](Self::lists_stamp).
    pub(crate) fn lists_key(&self) -> (u64, u64) {
        let servers = self.servers();
        (servers.tools.version, servers.tools.catalog.lists_stamp())
    }

    /// The differences from the pinned tool definitions, by server and tool, as of the last tool
    /// list of each server. Reads files.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if they cannot be read.
    pub fn tool_changes(&self) -> Result<Vec<ToolChange>, Error> {
        let changes = self.servers().tools.catalog.changes();
        changes.map_err(|source| Error::Files { what: "pinned tool definitions", source })
    }

    /// The skills of servers that differ from the pinned ones, by server and address, as they were read last.
    /// Reads files.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if they cannot be read.
    pub fn skill_changes(&self) -> Result<Vec<SkillChange>, Error> {
        let changes = self.servers().tools.catalog.skill_changes();
        changes.map_err(|source| Error::Files { what: "pinned skills", source })
    }

    /// The pinned tool definitions that could not be read, of servers whose pins were needed since the
    /// executor was built, or since [`tool_changes`](Self::tool_changes), which needs all. They were set
    /// aside, and each tool of those servers is a change until it is [accepted](Self::accept_tools).
    pub fn damaged_pins(&self) -> Vec<DamagedPins> {
        self.servers().tools.catalog.damaged_pins()
    }

    /// Pins the current definition of a server's tool, or of all its tools and skills. Returns how
    /// many differed.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the pins cannot be written.
    pub fn accept_tools(&self, server: &str, tool: Option<&str>) -> Result<usize, Error> {
        let accepted = self.servers().tools.catalog.accept(server, tool);
        if let Ok(count) = accepted {
            self.inner.observers.definitions(&DefinitionEvent::Accepted { server, tool, count });
        }
        accepted.map_err(|source| Error::Files { what: "pinned tool definitions", source })
    }
}

/// The results of a task that asks servers. If it has none, each server has failed: an empty list would read as
/// success.
fn asked_or_failed(catalog: &Catalog, task: Result<Result<Asked, ToolError>, JoinError>) -> Asked {
    let ended = |_lost| {
        let message = "the servers were not asked for their tools, because the executor's runtime has ended";
        Err(ToolError::new(ToolErrorCode::Cancelled, message))
    };
    task.unwrap_or_else(ended).unwrap_or_else(|error| {
        catalog.server_names().map(|name| (name.to_string(), Err(error.clone()))).collect()
    })
}

#[cfg(test)]
mod tests;

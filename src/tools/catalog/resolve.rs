//! Resolution of the names that scripts write to tools.

use std::sync::Arc;
use std::time::Instant;

use super::Catalog;
use super::list::preview_name;
use super::resolved::ResolvedTool;
use crate::text::shell_word;
use crate::tools::error::{ToolError, ToolErrorCode};
use crate::tools::names::{SuggestionBudget, split_full_name};

/// What is known of a tool's name without a request to its server.
pub(crate) enum LookUp {
    /// There is no such server.
    NoServer(ToolError),
    /// The server's tools are unknown, or the name is ambiguous.
    Unlisted(Option<Arc<str>>),
    /// The list has no such tool.
    NoTool {
        server: Arc<str>,
        error: ToolError,
        /// Whether the server would give the same answer now.
        is_current: bool,
    },
    /// The list has it.
    Found {
        tool: ResolvedTool,
        /// Whether the server would give the same answer now.
        is_current: bool,
    },
}

impl Catalog {
    /// Looks up a server's and a tool's name as [`resolve`](Self::resolve) does, without a request to the server. May
    /// read a file.
    pub(crate) fn look_up(&self, server: &str, tool: &str, budget: &SuggestionBudget) -> LookUp {
        let Some(server) = self.server(server) else {
            return LookUp::NoServer(self.unknown_server(server, budget).for_tool(server, tool));
        };
        let name = || Arc::clone(&server.name);
        let Some((tools, is_current)) = server.at_hand() else { return LookUp::Unlisted(Some(name())) };
        match tools.position(tool) {
            Some(position) if server.is_usable(&tools, position) => {
                LookUp::Found { tool: ResolvedTool::new(server, &tools, position), is_current }
            }
            Some(_refused) => LookUp::Unlisted(None),
            None => {
                let error = tools.unknown_tool(&server.name, tool, budget);
                LookUp::NoTool { server: name(), error, is_current }
            }
        }
    }

    /// As [`look_up`](Self::look_up), for `mcp__server__tool`. A name that could belong to several servers is unlisted.
    pub(crate) fn look_up_full_name(&self, name: &str, budget: &SuggestionBudget) -> LookUp {
        let mut known = split_full_name(name).filter(|(server, _)| self.by_name.contains_key(*server));
        match (known.next(), known.next()) {
            (Some((server, tool)), None) => self.look_up(server, tool, budget),
            (None, _) => LookUp::NoServer(self.unknown_full_name(name, budget)),
            (Some(_), Some(_)) => LookUp::Unlisted(None),
        }
    }

    /// Whether calls may change the tools of a server while a script runs.
    pub(crate) fn may_change_tools(&self, server: &str) -> bool {
        self.server(server).is_none_or(|server| server.dispatcher.may_change_tools(&server.name))
    }

    /// Resolves a server's and a tool's name: as exact names, else as identifiers in either
    /// language. If the name is not in a cached list, the list is fetched again.
    ///
    /// # Errors
    ///
    /// `ToolNotFound` with the nearest valid names; the error that prevented the server from
    /// listing its tools; or, in strict mode, `ToolDenied` for a tool whose definition differs from
    /// the pinned one.
    pub(crate) async fn resolve(
        &self,
        server: &str,
        tool: &str,
        deadline: Instant,
        budget: &SuggestionBudget,
    ) -> Result<ResolvedTool, ToolError> {
        let server =
            self.server(server).ok_or_else(|| self.unknown_server(server, budget).for_tool(server, tool))?;
        let named = |error: ToolError| error.for_tool(&server.name, tool);
        let mut tools = server.tools(deadline).await.map_err(named)?;
        let listed = tools.position(tool);
        let is_usable = listed.is_some_and(|position| server.is_usable(&tools, position));
        if !is_usable {
            match server.verified() {
                // A refresh in the background has ended since the list was looked up.
                Some(verified) if !Arc::ptr_eq(&verified, &tools) => tools = verified,
                // This is the server's own list, and it does not have the tool.
                Some(_verified) if listed.is_none() => {}
                _ if server.may_refresh() => tools = server.refreshed(deadline).await.map_err(named)?,
                _ => {}
            }
        }
        let Some(position) = tools.position(tool) else {
            return Err(tools.unknown_tool(&server.name, tool, budget));
        };
        let resolved = ResolvedTool::new(server, &tools, position);
        if !server.is_usable(&tools, position) {
            let is_damaged = self.damaged_pins().iter().any(|pins| pins.server == *server.name);
            let problem = if is_damaged {
                "the pinned definitions of its server were damaged, so that none is known for"
            } else {
                "the definition differs from the pinned one of"
            };
            let name = format!("{}.{}", server.name, resolved.tool);
            let message = format!(
                "{problem} `{name}`; look at the difference with `cx tools changed` and accept it with \
                 `cx tools accept {}`",
                shell_word(&name)
            );
            return Err(named(ToolError::new(ToolErrorCode::ToolDenied, message)));
        }
        Ok(resolved)
    }

    /// Resolves the same tool again in a list that is fetched from its server, after a cached list has caused an error.
    /// `None` if the list already came from the server, or if the server may not be asked again yet.
    pub(crate) async fn resolve_again(
        &self,
        tool: &ResolvedTool,
        deadline: Instant,
        budget: &SuggestionBudget,
    ) -> Result<Option<ResolvedTool>, ToolError> {
        let server = self.server(&tool.server).ok_or_else(|| self.unknown_server(&tool.server, budget))?;
        match server.verified() {
            Some(verified) if tool.is_from(&verified) => return Ok(None),
            // A refresh in the background has ended since the tool was resolved.
            Some(_verified) => {}
            None if !server.may_refresh() => return Ok(None),
            None => drop(server.refreshed(deadline).await?),
        }
        self.resolve(&tool.server, &tool.tool, deadline, budget).await.map(Some)
    }

    /// Resolves `mcp__server__tool` among the tools for which `is_out_of_reach` is false.
    ///
    /// # Errors
    ///
    /// As [`Catalog::resolve`]; also `ToolNotFound` if the name can be read as two tools that both
    /// exist, because the intended one cannot be known.
    pub(crate) async fn resolve_full_name(
        &self,
        name: &str,
        is_out_of_reach: impl Fn(&str, &str) -> bool,
        deadline: Instant,
        budget: &SuggestionBudget,
    ) -> Result<ResolvedTool, ToolError> {
        let known = |server: &str| self.by_name.contains_key(server);
        let (denied, candidates): (Vec<_>, Vec<_>) = split_full_name(name)
            .filter(|(server, _)| known(server))
            .partition(|(server, tool)| is_out_of_reach(server, tool));
        let mut found: Vec<ResolvedTool> = Vec::new();
        let mut failure = None;
        for (server, tool) in &candidates {
            match self.resolve(server, tool, deadline, budget).await {
                Ok(resolved) => found.push(resolved),
                // It is unknown whether this server has the tool, so the name may be ambiguous.
                Err(error) if error.code != ToolErrorCode::ToolNotFound => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        match (found.pop(), failure) {
            (Some(resolved), _) if found.is_empty() => Ok(resolved),
            (Some(_), _) => {
                Err(no_tool(name, format!("`{name}` means more than one tool; use `tools[server][tool]`")))
            }
            (None, Some(error)) => Err(error),
            (None, None) => Err(match denied.first() {
                Some((server, tool)) => ToolError::new(
                    ToolErrorCode::ToolDenied,
                    format!("this run may not call `{server}.{tool}`"),
                )
                .for_tool(server, tool),
                None => self.unknown_full_name(name, budget),
            }),
        }
    }

    fn unknown_full_name(&self, name: &str, budget: &SuggestionBudget) -> ToolError {
        match split_full_name(name).next() {
            Some((server, tool)) => self.unknown_server(server, budget).for_tool(server, tool),
            None => no_tool(
                name,
                format!("expected a full name as `mcp__server__tool`: `{}`", preview_name(name)),
            ),
        }
    }
}

/// The error about a full name that names no single tool. Records of the call have the name as it is written.
fn no_tool(name: &str, message: String) -> ToolError {
    let tool = (!name.is_empty()).then(|| name.to_owned());
    ToolError { tool, ..ToolError::new(ToolErrorCode::ToolNotFound, message) }
}

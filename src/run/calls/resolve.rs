//! Resolution: finds the tool that a script means by a name, and checks that the run may call it.

use crate::run::context::ExecutionContext;
use crate::run::errors::denied;
use crate::tools::catalog::ResolvedTool;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum bytes of a server's name, of a tool's, and of a full name. Real ones are far below it.
pub(crate) const MAX_NAME: usize = 4 << 10;

/// A tool's name as a script writes it.
pub(crate) enum ToolName {
    /// `server` and `tool`, each exact or in camelCase.
    Pair {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// `mcp__server__tool`.
    Full(String),
}

impl ToolName {
    /// Reads a name that is one text: `mcp__server__tool`, or `server.tool`.
    pub(crate) fn of_text(name: &str) -> Self {
        match name.split_once('.') {
            Some((server, tool)) if !name.starts_with("mcp__") => {
                Self::Pair { server: server.to_owned(), tool: tool.to_owned() }
            }
            _ => Self::Full(name.to_owned()),
        }
    }

    /// Checks the length of the name. A waiting call, records and traces hold the name, and no other limit counts it.
    ///
    /// # Errors
    ///
    /// `ToolNotFound`; its message does not contain the name.
    pub(super) fn check_length(&self) -> Result<(), ToolError> {
        let longest = match self {
            Self::Pair { server, tool } => server.len().max(tool.len()),
            Self::Full(name) => name.len(),
        };
        if longest <= MAX_NAME {
            return Ok(());
        }
        let message = format!("no tool has a name of {longest} bytes; a name has at most {MAX_NAME}");
        Err(ToolError::new(ToolErrorCode::ToolNotFound, message))
    }
}

impl ExecutionContext {
    /// The permitted tool with this name.
    ///
    /// # Errors
    ///
    /// As [`Catalog::resolve`](crate::tools::catalog::Catalog::resolve); `ToolDenied` for a tool
    /// that the run may not call.
    pub(crate) async fn permitted_tool(&self, name: ToolName) -> Result<ResolvedTool, ToolError> {
        let tool = self.resolve(name).await?;
        if self.permits(&tool.server, &tool.tool) { Ok(tool) } else { Err(denied(&tool.server, &tool.tool)) }
    }

    /// The permitted tool with this name, or `None` if there is none.
    pub(crate) async fn tool(&self, name: ToolName) -> Result<Option<ResolvedTool>, ToolError> {
        match self.permitted_tool(name).await {
            Ok(tool) => Ok(Some(tool)),
            Err(error) if matches!(error.code, ToolErrorCode::ToolNotFound | ToolErrorCode::ToolDenied) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The tool with this name, whether or not the run may call it. A server that the run may not use is not asked.
    pub(crate) async fn resolve(&self, name: ToolName) -> Result<ResolvedTool, ToolError> {
        let (in_force, deadline) = (self.in_force(), self.latest_deadline());
        let catalog = &in_force.catalog;
        match name {
            ToolName::Pair { server, tool } => {
                // Checked first, so that a server that the policy denies is not started just to
                // find that out.
                if let Some(server) = catalog.server_name(&server)
                    && (!in_force.may_permit_server(server) || in_force.denies(server, &tool))
                {
                    return Err(denied(server, &tool));
                }
                catalog.resolve(&server, &tool, deadline, &self.suggestions).await
            }
            ToolName::Full(name) => {
                let is_out_of_reach = |server: &str, tool: &str| {
                    let server = catalog.server_name(server);
                    server.is_some_and(|server| {
                        !in_force.may_permit_server(server) || in_force.denies(server, tool)
                    })
                };
                catalog.resolve_full_name(&name, is_out_of_reach, deadline, &self.suggestions).await
            }
        }
    }

    /// Refuses a tool that the run may not call, with `ToolDenied`.
    pub(super) fn check_policy(&self, server: &str, tool: &str) -> Result<(), ToolError> {
        if self.permits(server, tool) { Ok(()) } else { Err(denied(server, tool)) }
    }
}

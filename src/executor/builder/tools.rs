//! The options about tools: which there are, which scripts may call, and what sees and approves the calls.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::Value;

use super::ExecutorBuilder;
#[cfg(feature = "mcp")]
use crate::config::ScriptLibrary;
use crate::run::hooks::CallHook;
use crate::tools::native;
use crate::tools::{
    Approval, ApprovalRequest, DirectTools, ElicitationAnswer, ElicitationRequest, ToolDefinition,
    ToolDispatcher, ToolRules,
};

impl ExecutorBuilder {
    /// Sets which tools a [`Server`](crate::server::Server) exposes to its clients directly, in addition
    /// to those of the [configuration](crate::Config::direct).
    #[must_use]
    pub fn direct(mut self, direct: DirectTools) -> Self {
        self.own.direct = direct;
        self
    }

    /// Restricts the tools that scripts may call, in addition to what is set already:
    /// [`ToolRules::and`].
    #[must_use]
    pub fn rules(mut self, rules: ToolRules) -> Self {
        self.own.rules = self.own.rules.and(rules);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::allow`]. Each call restricts the tools
    /// further.
    #[must_use]
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.own.rules = self.own.rules.allow(patterns);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::deny`].
    #[must_use]
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.own.rules = self.own.rules.deny(patterns);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::ask`]. The
    /// [`approver`](Self::approver) is asked.
    #[must_use]
    pub fn ask<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.own.rules = self.own.rules.ask(patterns);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::read_only`].
    #[must_use]
    pub fn read_only<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.own.rules = self.own.rules.read_only(patterns);
        self
    }

    /// Sets the function that asks the user for approval of a call. The answer applies to exactly
    /// the call that is shown.
    ///
    /// A run has at most one open approval prompt at a time,
    /// [`Limits::questions`](crate::Limits::questions) in total, each for at most
    /// [`Limits::answer_time`](crate::Limits::answer_time). Meanwhile the run's wall clock is paused, up to
    /// [`Limits::paused_time`](crate::Limits::paused_time) in total, and the run keeps its slot. CPU time
    /// that the script uses meanwhile counts.
    ///
    /// The future is polled on the executor's runtime, where it must not block, and not on the
    /// script's thread. It is dropped when the run ends or the answer times out: a prompt that is
    /// still shown must then be withdrawn. A panic counts as
    /// [`Approval::Unavailable`](crate::Approval::Unavailable).
    #[must_use]
    pub fn approver<Answer>(
        mut self,
        approver: impl Fn(ApprovalRequest) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = Approval> + Send + 'static,
    {
        self.approver = Some(Arc::new(move |request| approver(request).boxed()));
        self
    }

    /// Sets what shows the questions of servers (elicitation) to the user: [`ElicitationRequest`]. An
    /// MCP server asks only if [`McpServer::elicitation`](crate::McpServer::elicitation) is on.
    ///
    /// Questions and approval prompts share their bounds, and the future is polled in the same way:
    /// [`approver`](Self::approver). A panic counts as [`ElicitationAnswer::Unavailable`].
    #[must_use]
    pub fn elicitor<Answer>(
        mut self,
        elicitor: impl Fn(ElicitationRequest) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = ElicitationAnswer> + Send + 'static,
    {
        self.elicitor = Some(Arc::new(move |request| elicitor(request).boxed()));
        self
    }

    /// Adds a hook, which sees every call of every script before and after it: see [`CallHook`].
    #[must_use]
    pub fn hook(mut self, hook: impl CallHook) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Adds a tool written in Rust.
    ///
    /// `name` is `server.tool`; without a dot the server is `native`. `input_schema` is the JSON
    /// Schema of the arguments, whose `description` is also the tool's; `Value::Null` accepts any
    /// object. The function takes any type that deserializes from the arguments and returns any
    /// type that serializes; its error becomes the script's `McpToolError` with the code
    /// `TOOL_ERROR`.
    ///
    /// The function is polled on the script's thread, so it should not block; tokio's timers,
    /// sockets and `spawn` work in it. A panic fails the call with `TOOL_ERROR`; its message is logged, and the
    /// script does not see it.
    #[must_use]
    pub fn tool<Arguments, Output, Failure, Function, Returned>(
        self,
        name: &str,
        input_schema: Value,
        function: Function,
    ) -> Self
    where
        Arguments: serde::de::DeserializeOwned,
        Output: serde::Serialize,
        Failure: fmt::Display,
        Function: Fn(Arguments) -> Returned + Send + Sync + 'static,
        Returned: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let definition = native::definition(input_schema);
        self.tool_with_definition(ToolDefinition { name: name.to_owned(), ..definition }, function)
    }

    /// As [`ExecutorBuilder::tool`], with the complete definition, including output schema and
    /// annotations. `definition.name` is `server.tool`.
    #[must_use]
    pub fn tool_with_definition<Arguments, Output, Failure, Function, Returned>(
        mut self,
        definition: ToolDefinition,
        function: Function,
    ) -> Self
    where
        Arguments: serde::de::DeserializeOwned,
        Output: serde::Serialize,
        Failure: fmt::Display,
        Function: Fn(Arguments) -> Returned + Send + Sync + 'static,
        Returned: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let name = definition.name.clone();
        self.native.add(&name, definition, native::erase(function));
        self
    }

    /// Adds servers that are neither native nor MCP.
    #[must_use]
    pub fn dispatcher(mut self, dispatcher: impl ToolDispatcher) -> Self {
        self.dispatchers.push(Arc::new(dispatcher));
        self
    }

    /// Lets scripts call the saved scripts of a library, as tools of a server `scripts`, and clients of
    /// a [`Server`](crate::server::Server) run and read them.
    ///
    /// A saved script is a run of its own within what is left of its caller's limits, and by its
    /// caller's rules. Its tool calls count at the caller. An MCP server named `scripts` cannot be used
    /// then.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn scripts(mut self, library: ScriptLibrary) -> Self {
        self.scripts = Some(Arc::new(library));
        self
    }
}

//! Shared parts of the survey readers of both languages: their location in a script, their
//! findings, and their bounds. The rules for findings are in [`crate::run::check`].

use crate::run::check::survey::{Bytes, Literal, Survey, Target, ToolUse};

/// A server that a script names.
#[derive(Clone, Debug)]
pub(super) struct NamedServer {
    pub(super) name: String,
    /// Whether it is named by a global variable, which may be something else.
    pub(super) is_global: bool,
}

impl NamedServer {
    /// A server that is not named by a global variable.
    pub(super) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_global: false }
    }

    /// Whether it is no server but the full name of a tool, as in `tools.mcp__server__tool`.
    pub(super) fn is_full_name(&self) -> bool {
        let is_named = |name: &str| name.strip_prefix("mcp__").is_some_and(|rest| rest.contains("__"));
        !self.is_global && is_named(&self.name)
    }

    /// A use of one of its tools.
    pub(super) fn tool(self, tool: String) -> Target {
        let Self { name: server, is_global } = self;
        match is_global {
            true => Target::ToolOfGlobal { server, tool },
            false => Target::Tool { server, tool },
        }
    }
}

/// A reference, and where its parts are named, by the spans of a language's tree.
pub(super) struct Found<Reference, Span> {
    pub(super) reference: Reference,
    pub(super) server_at: Span,
    pub(super) tool_at: Span,
}

impl<Reference, Span: Copy> Found<Reference, Span> {
    /// One whose parts are named at the same offset.
    pub(super) fn at(reference: Reference, at: Span) -> Self {
        Self { reference, server_at: at, tool_at: at }
    }
}

/// What a reader knows about its position in a script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Whether what is read now is reached by every run that succeeds.
    pub(super) is_certain: bool,
    /// Whether the function that is read may have returned.
    pub(super) has_returned: bool,
    /// Whether the loop that is read may have been left, or its body.
    pub(super) has_jumped: bool,
    /// Whether the result of the function that is read is awaited.
    pub(super) awaits_returns: bool,
}

impl Flow {
    /// The beginning of a script.
    pub(super) fn of_script(is_certain: bool) -> Self {
        Self { is_certain, has_returned: false, has_jumped: false, awaits_returns: true }
    }

    /// Continues after a statement.
    pub(super) fn next(&mut self) {
        self.is_certain &= !self.has_returned && !self.has_jumped;
    }
}

/// A reader of scripts that keeps a [`Flow`].
pub(super) trait FlowReader: Sized {
    fn flow(&mut self) -> &mut Flow;

    /// Reads a part that a run may not reach.
    fn doubtful(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.flow().is_certain, false);
        read(self);
        self.flow().is_certain = outer;
    }

    /// Reads the body of a loop, which is entered for certain or may not be.
    fn looped(&mut self, is_entered: bool, read: impl FnOnce(&mut Self)) {
        let outer = *self.flow();
        self.flow().is_certain &= is_entered;
        self.flow().has_jumped = false;
        read(self);
        (self.flow().is_certain, self.flow().has_jumped) = (outer.is_certain, outer.has_jumped);
    }

    /// Reads a function that is not called here.
    fn function(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = *self.flow();
        *self.flow() = Flow::of_script(false);
        read(self);
        *self.flow() = outer;
    }

    /// Reads the body of a function where it is called.
    fn called(&mut self, is_async: bool, is_awaited: bool, read: impl FnOnce(&mut Self)) {
        let outer = *self.flow();
        let is_certain = outer.is_certain && (is_awaited || !is_async);
        *self.flow() = Flow { awaits_returns: is_awaited, ..Flow::of_script(is_certain) };
        read(self);
        *self.flow() = outer;
    }
}

/// A call of a tool, and where it is.
pub(super) fn call_of(
    target: Target,
    arguments: Literal,
    [at, server_at, tool_at]: [Bytes; 3],
    is_certain: bool,
) -> ToolUse {
    ToolUse { target, arguments: Some(arguments), at, server_at, tool_at, is_certain, is_forgotten: false }
}

/// Marks the call at `at` as not awaited, if it is among the uses that were read after the first `before`.
pub(super) fn forget(survey: &mut Survey, before: usize, at: &Bytes) {
    let read = survey.uses.get_mut(before..).unwrap_or_default();
    if let Some(call) = read.iter_mut().find(|one| one.at == *at && one.arguments.is_some()) {
        call.is_forgotten = true;
    }
}

//! Rules about tools, as people write them.

use super::private_addresses::PrivateAddresses;
use crate::error::Error;
use crate::tools::policy::RuleSet;

/// Rules about tools: which may be called, which calls need approval, and which tools only read.
///
/// Combining rules only ever restricts: with another [`allow`](Self::allow) list a tool must match
/// both, also if the first was set elsewhere. So a later call cannot widen what an administrator
/// has set.
///
/// A pattern is `server.tool` or `mcp__server__tool`, with `*` for any sequence of characters in
/// either part, or `*` or `mcp__*` for every tool. In the rules of an [`McpServer`](crate::McpServer) a pattern is the
/// name of one of its tools, with `*` likewise.
///
/// ```
/// use cx::{Executor, ToolRules};
///
/// let rules = ToolRules::new().allow(["github.*"]).ask(["destructive"]);
/// // Of GitHub's tools, only those that list something.
/// let executor = Executor::builder().rules(rules).allow(["*.list_*"]).build()?;
/// # Ok::<(), cx::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ToolRules {
    pub(crate) allow: Vec<Vec<String>>,
    pub(crate) deny: Vec<String>,
    pub(crate) ask: Vec<String>,
    pub(crate) read_only: Vec<Vec<String>>,
    pub(crate) private_addresses: PrivateAddresses,
}

impl ToolRules {
    /// Rules that allow every tool and require no approval.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows only the tools that match one of `patterns`; an empty list allows nothing. Of several
    /// lists a tool must match each.
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.allow.push(owned(patterns));
        self
    }

    /// Denies the tools that match one of `patterns`. Denial takes precedence over everything else.
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.deny.extend(owned(patterns));
        self
    }

    /// Requires approval for each call of the tools that match one of `patterns`. Without an
    /// approver such calls are refused.
    ///
    /// A pattern is one as in [`allow`](Self::allow), or one of three words that select tools by
    /// their own annotations: `destructive`, `write`, `open-world`
    /// ([`AskAnnotation`](crate::AskAnnotation)). None of these words is a valid `server.tool`
    /// pattern; in the rules of a server it also matches the tool of that name. An annotation can
    /// only add approval prompts. A malicious server can omit annotations, so tools that matter
    /// should be named. If a tool's definition differs from the pinned one, its annotations are
    /// ignored.
    pub fn ask<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.ask.extend(owned(patterns));
        self
    }

    /// Declares the tools that match one of `patterns` read-only, regardless of their annotations:
    /// `destructive` and `write` require no approval for them, and a
    /// [dry run](crate::Script::dry_run) calls them. Of several lists a tool must match each.
    ///
    /// In the rules of a server the annotations of its other tools are then ignored; an empty list
    /// ignores all of them. The rules of a script cannot declare this.
    pub fn read_only<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.read_only.push(owned(patterns));
        self
    }

    /// Sets the treatment of calls whose arguments contain a private address in any of their texts: a URL such as
    /// `http://10.0.0.1/`, also inside a longer text, or a host such as `localhost:8080`. Of several settings the
    /// strictest applies. Names are not resolved, and how a tool interprets its arguments is not known here.
    ///
    /// In the rules of a server it applies to calls of its tools, and to requests for its resources and prompts.
    #[cfg(any(feature = "mcp", feature = "fetch"))]
    pub fn private_addresses(mut self, treatment: PrivateAddresses) -> Self {
        self.private_addresses = self.private_addresses.max(treatment);
        self
    }

    /// Combines both rules. A tool is allowed if both allow it, denied if one denies it, needs approval if one requires
    /// it, and counts as read-only if it is in every list of both. For private addresses the stricter of the two
    /// applies.
    pub fn and(mut self, other: Self) -> Self {
        self.allow.extend(other.allow);
        self.deny.extend(other.deny);
        self.ask.extend(other.ask);
        self.read_only.extend(other.read_only);
        self.private_addresses = self.private_addresses.max(other.private_addresses);
        self
    }

    /// Checks the patterns, as [`ExecutorBuilder::build`](crate::ExecutorBuilder::build) does.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPattern`] with the first wrong pattern and the valid forms.
    pub fn validate(&self) -> Result<(), Error> {
        RuleSet::parse(self).map(drop)
    }
}

fn owned<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Vec<String> {
    patterns.into_iter().map(Into::into).collect()
}

//! Which tools a server shows to its clients directly, in addition to those that run scripts.

use super::dispatch::ToolDefinition;
use super::policy::Pattern;
use crate::error::{Error, RuleList};

/// Which tools a server shows to its clients in addition to those that run scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolMode {
    /// Those that the patterns of [`DirectTools::tools`] name.
    #[default]
    Script,
    /// All tools while they are so few that showing them costs fewer tokens than searching them, else those that
    /// [`DirectTools::tools`] names.
    Auto,
    /// All tools.
    Direct,
}

impl ToolMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Script, Self::Auto, Self::Direct];

    /// The mode as it is written in a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Auto => "auto",
            Self::Direct => "direct",
        }
    }

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// The tools that a server shows to its clients directly. Tools that the rules deny are never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectTools {
    /// Patterns of tools, as in an allow list. None by default.
    pub tools: Vec<String>,
    /// Whether more tools than those are shown.
    pub mode: ToolMode,
    /// Whether tools with a user interface (MCP Apps) are shown to clients that support such interfaces. True by
    /// default.
    pub interfaces: bool,
}

impl Default for DirectTools {
    fn default() -> Self {
        Self { tools: Vec::new(), mode: ToolMode::default(), interfaces: true }
    }
}

impl DirectTools {
    /// Combines both: shows what either shows. For settings with one value, `self` has precedence unless its value is
    /// the default.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            tools: self.tools.iter().chain(&other.tools).cloned().collect(),
            mode: if self.mode == ToolMode::default() { other.mode } else { self.mode },
            interfaces: self.interfaces && other.interfaces,
        }
    }
}

/// [`DirectTools`] with parsed patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectRules {
    patterns: Vec<Pattern>,
    options: DirectTools,
}

impl PartialEq for DirectRules {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
    }
}

impl DirectRules {
    /// Parses the patterns.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPattern`] with the first invalid pattern.
    pub(crate) fn new(options: DirectTools) -> Result<Self, Error> {
        let patterns = options.tools.iter().map(|pattern| Pattern::parse(RuleList::Direct, pattern));
        Ok(Self { patterns: patterns.collect::<Result<_, _>>()?, options })
    }

    pub(crate) fn mode(&self) -> ToolMode {
        self.options.mode
    }

    /// Whether the tool is named.
    pub(crate) fn names(&self, server: &str, tool: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(server, tool))
    }

    /// Whether a tool of this server may be shown because of a pattern or the mode.
    pub(crate) fn may_show(&self, server: &str) -> bool {
        self.options.mode != ToolMode::Script
            || self.patterns.iter().any(|pattern| pattern.matches_server(server))
    }

    /// Whether the tool is shown because it belongs to a user interface.
    pub(crate) fn shows_interface_of(&self, definition: &ToolDefinition) -> bool {
        self.options.interfaces && definition.is_of_interface()
    }

    pub(crate) fn shows_interfaces(&self) -> bool {
        self.options.interfaces
    }
}

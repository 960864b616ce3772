//! The stores and options that all servers of a catalog share.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::checks::ArgumentChecks;
use crate::tools::cache::ListCache;
use crate::tools::inferred::InferredSchemas;
use crate::tools::pins::Pins;
use crate::tools::skill_pins::SkillPins;
use crate::tools::tool_use::ToolUse;

/// The stores and options of a catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct CatalogOptions {
    /// The cache of tool lists on disk. Without it, each process has to ask every server.
    pub(crate) cache: Option<ListCache>,
    /// The pinned definitions. Without them, changed definitions are not detected.
    pub(crate) pins: Option<Pins>,
    /// The pinned skills of servers. Without them, changed skills are not detected.
    pub(crate) skills: Option<SkillPins>,
    /// The inferred output schemas.
    pub(crate) inferred: Arc<InferredSchemas>,
    /// Which tools runs called, for search to learn from.
    pub(crate) tool_use: Arc<ToolUse>,
    /// The compiled argument schemas.
    pub(crate) checks: Arc<ArgumentChecks>,
    /// Strict mode: tools whose definition differs from the pinned one are refused.
    pub(crate) strict: bool,
    /// A hint that is added to the error about a missing server.
    pub(crate) missing_server_hint: Option<Arc<str>>,
    /// The runtime for background refreshes. Without it, lists are refreshed only while a caller
    /// waits.
    pub(crate) runtime: Option<Handle>,
}

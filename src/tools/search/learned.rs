//! Ranking of an index's tools by their use in earlier runs.

use std::collections::HashMap;

/// Records of earlier runs about the tools of an index, by their positions. Empty if there are none.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The popularity of each tool that was used, from 0 to 1 for the most used tool.
    pub(crate) popularity: Vec<(u32, f32)>,
    /// For each tool: the tools that runs called together with it, each with its share of these runs.
    pub(crate) together: HashMap<usize, Vec<(u32, f32)>>,
}

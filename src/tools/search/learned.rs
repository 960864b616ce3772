//! Ranking of an index's tools by their use in earlier runs.

use std::collections::HashMap;

/// What earlier runs say about the tools of an index, by their positions. Empty if nothing is known.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// How much each tool that was used is used, from 0 to 1 for the most used one.
    pub(crate) popularity: Vec<(u32, f32)>,
    /// For each tool: those that runs called together with it, each with the share of its runs.
    pub(crate) together: HashMap<usize, Vec<(u32, f32)>>,
}

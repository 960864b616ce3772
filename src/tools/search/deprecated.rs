//! Tools that are deprecated by their descriptions, and the tools that these name in their place.

use std::collections::HashMap;

use super::document::Document;
use super::related::names_in;
use crate::tools::usage;

/// Maximum number of deprecated tools between one and the tool that replaces them all.
const MAX_BETWEEN: usize = 4;

/// A deprecated tool, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deprecated {
    pub(crate) document: u32,
    /// The tool of the same server that replaces it.
    pub(crate) replacement: Option<u32>,
}

/// The deprecated tools among these. `documents` is in the order of their positions.
pub(crate) fn deprecated(documents: &[Document<'_>]) -> Vec<Deprecated> {
    let note = |(position, document): (usize, &Document<'_>)| {
        usage::deprecation_note(document.description).map(|_note| position)
    };
    let positions: Vec<usize> = documents.iter().enumerate().filter_map(note).collect();
    if positions.is_empty() {
        return Vec::new();
    }
    let names: HashMap<(&str, &str), usize> = documents
        .iter()
        .enumerate()
        .map(|(position, document)| ((document.server, document.tool), position))
        .collect();
    let named = |position: usize| {
        let Document { server, tool, description, .. } = documents[position];
        let mut others = names_in(usage::deprecation_note(description)?).filter(|other| *other != tool);
        others.find_map(|other| names.get(&(server, other)).copied())
    };
    let replacement = |position: usize| {
        let mut replacement = named(position)?;
        for _ in 0..MAX_BETWEEN {
            match named(replacement) {
                // Two that name each other are replaced by each other.
                Some(next) if next != position => replacement = next,
                _ => break,
            }
        }
        Some(replacement as u32)
    };
    positions
        .into_iter()
        .map(|position| Deprecated { document: position as u32, replacement: replacement(position) })
        .collect()
}

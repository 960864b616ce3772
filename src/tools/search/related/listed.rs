//! Finds tools that list what other tools take: `list_files` is used before a tool with a parameter `file_id`.

use std::collections::HashMap;

use super::super::document::{Document, MAX_NAME_WORDS};
use super::super::words::{for_each_word, stem};

/// Weight of the relation to the only tool that lists something. It is divided if several tools do.
const LISTED: f32 = 0.7;

/// Something that more of a server's tools list is the server's subject, and does not relate to one of them.
const MAX_LISTING: usize = 4;

/// The verbs with which names of tools that list begin.
const LISTING_VERBS: [&str; 7] = ["browse", "enumerate", "find", "list", "lookup", "query", "search"];

/// Verbs with which such names begin if the tools list everything (`get_all_users`) or have no parameters
/// (`get_users`).
const READING_VERBS: [&str; 4] = ["fetch", "get", "read", "retrieve"];

/// Words after which a name says which items are listed, and not what kind.
const PREPOSITIONS: [&str; 8] = ["at", "by", "for", "from", "in", "of", "on", "with"];

/// Words of parameters that identify one item, after the item's kind.
const KEYS: [&str; 11] =
    ["id", "ids", "key", "keys", "name", "names", "number", "path", "slug", "title", "uuid"];

/// Adds the tools of one server that list what others take.
pub(super) fn add_listed(documents: &[Document<'_>], positions: &[u32], related: &mut [Vec<(u32, f32)>]) {
    let mut listing: HashMap<String, Vec<u32>> = HashMap::new();
    for &position in positions {
        if let Some(noun) = listed(&documents[position as usize]) {
            listing.entry(noun).or_default().push(position);
        }
    }
    listing.retain(|_, tools| tools.len() <= MAX_LISTING);
    if listing.is_empty() {
        return;
    }
    for &position in positions {
        for (name, _) in documents[position as usize].parameters {
            let Some(tools) = taken(name).and_then(|noun| listing.get(&noun)) else { continue };
            let weight = LISTED / (tools.len() as f32).sqrt();
            let others = tools.iter().filter(|other| **other != position);
            related[position as usize].extend(others.map(|&other| (other, weight)));
        }
    }
}

/// The stem of what a tool lists: `file` for `search_files_by_name`.
fn listed(document: &Document<'_>) -> Option<String> {
    let words = words(document.tool);
    let (verb, rest) = words.split_first()?;
    let (first, last) = (rest.first()?.as_str(), rest.last()?.as_str());
    let is_plural = last.len() > 3 && last.ends_with('s') && !last.ends_with("ss");
    let nouns = match verb.as_str() {
        verb if LISTING_VERBS.contains(&verb) => rest,
        verb if !READING_VERBS.contains(&verb) => return None,
        _ if first == "all" => &rest[1..],
        _ if document.parameters.is_empty() && is_plural => rest,
        _ => return None,
    };
    let end = nouns.iter().position(|word| PREPOSITIONS.contains(&word.as_str())).unwrap_or(nouns.len());
    nouns[..end].last().map(|noun| stem(noun))
}

/// The stem of what a parameter names: `file` for `file_id`, `sourceFile` and `files`.
fn taken(parameter: &str) -> Option<String> {
    let words = words(parameter);
    let (last, before) = words.split_last()?;
    let noun = if KEYS.contains(&last.as_str()) { before.last().unwrap_or(last) } else { last };
    Some(stem(noun))
}

fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(name, MAX_NAME_WORDS, |word| words.push(word.text.to_owned()));
    words
}

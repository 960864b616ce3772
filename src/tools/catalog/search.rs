//! Ranked search in the lists of several servers.

use std::sync::Arc;

use parking_lot::Mutex;

use super::list::IndexedList;
use super::resolved::ResolvedTool;
use super::server::CatalogServer;
use crate::tools::search::{self, IndexedTool, Learned, SearchIndex, nearest};
use crate::tools::tool_use::ToolUse;

/// Number of tools in the answer to a query that nothing matches.
const MAX_NEAREST: usize = 5;

/// Maximum number of indexes that are kept: scripts mostly search all servers, and one of them in turn.
const MAX_INDEXES: usize = 2;

/// Ranks tools, and keeps the indexes of the lists that were searched last.
#[derive(Default)]
pub(crate) struct RankedSearch {
    /// The latest first.
    last: Mutex<Vec<Indexed>>,
}

/// A search index and the lists that it was built from, in this order, with the names of their servers.
#[derive(Clone)]
struct Indexed {
    lists: Arc<[(Arc<str>, Arc<IndexedList>)]>,
    index: Arc<SearchIndex>,
    /// The records of earlier runs for these lists, and the number of changes of these records.
    learned: Arc<Learned>,
    changes: u64,
}

/// The tools that were found.
pub(crate) struct Found {
    pub(crate) tools: Vec<ResolvedTool>,
    /// Whether none matches the query and these are only the nearest.
    pub(crate) are_nearest: bool,
}

impl RankedSearch {
    /// Finds at most `limit` usable and permitted tools of `lists` that match `query`, best first. For a blank query
    /// all of them in order. If none matches, with `or_nearest`: those whose names resemble the query, else those that
    /// runs use most, else the first tool of each server.
    pub(crate) fn search(
        &self,
        lists: &[(&Arc<CatalogServer>, Arc<IndexedList>)],
        tool_use: &ToolUse,
        query: &str,
        limit: usize,
        or_nearest: bool,
        permitted: impl Fn(&str, &str) -> bool,
    ) -> Found {
        let lists = Lists::new(lists);
        let accept = |position: usize| {
            let (server, tools, position) = lists.locate(position);
            server.is_usable(tools, position) && permitted(&server.name, &tools.names[position])
        };
        let resolved = |positions: Vec<usize>, are_nearest: bool| {
            let resolve = |position: usize| {
                let (server, tools, position) = lists.locate(position);
                ResolvedTool::new(server, tools, position)
            };
            Found { tools: positions.into_iter().map(resolve).collect(), are_nearest }
        };
        if query.trim().is_empty() {
            let all = (0..lists.total).filter(|&position| accept(position)).take(limit).collect();
            return resolved(all, false);
        }
        let Indexed { index, learned, .. } = self.indexed(&lists, tool_use);
        let found = index.search(query, limit, &learned, accept);
        if !found.is_empty() || !or_nearest {
            return resolved(found, false);
        }
        let limit = limit.min(MAX_NEAREST);
        let mut found = nearest(lists.names(), query, limit, accept);
        if found.is_empty() {
            let used = learned.popularity.iter().map(|(document, _)| *document as usize);
            found = used.filter(|&position| accept(position)).take(limit).collect();
        }
        if found.is_empty() {
            let first =
                |start: usize, count: usize| (start..start + count).find(|&position| accept(position));
            let servers = lists.starts.iter().zip(lists.all);
            found = servers
                .filter_map(|(&start, (_, tools))| first(start, tools.names.len()))
                .take(limit)
                .collect();
        }
        resolved(found, true)
    }

    /// The index of these lists. One that was built from the same lists is reused.
    fn indexed(&self, lists: &Lists<'_>, tool_use: &ToolUse) -> Indexed {
        let changes = tool_use.changes();
        let known = self.last.lock().iter().find(|known| known.is_of(lists)).cloned();
        let indexed = match known {
            Some(indexed) if indexed.changes == changes => indexed,
            Some(indexed) => Indexed { learned: lists.learned(tool_use), changes, ..indexed },
            None => {
                let definitions = lists.all.iter().flat_map(|(server, tools)| {
                    tools.list.tools.iter().map(|definition| IndexedTool {
                        server: &server.name,
                        definition,
                        shared: tools.shared_part(definition.description.as_deref().unwrap_or_default()),
                    })
                });
                let named = |(server, tools): &(&Arc<CatalogServer>, Arc<IndexedList>)| {
                    (Arc::clone(&server.name), Arc::clone(tools))
                };
                Indexed {
                    index: Arc::new(search::build_index(definitions)),
                    lists: lists.all.iter().map(named).collect(),
                    learned: lists.learned(tool_use),
                    changes,
                }
            }
        };
        let mut last = self.last.lock();
        last.retain(|other| !other.is_of(lists) && !other.is_outdated(lists));
        last.insert(0, indexed.clone());
        last.truncate(MAX_INDEXES);
        indexed
    }
}

impl Indexed {
    /// Whether it was built from these lists.
    fn is_of(&self, lists: &Lists<'_>) -> bool {
        self.lists.len() == lists.all.len()
            && self.lists.iter().zip(lists.all).all(|((_, own), (_, tools))| Arc::ptr_eq(own, tools))
    }

    /// Whether one of the servers has another list now.
    fn is_outdated(&self, lists: &Lists<'_>) -> bool {
        self.lists.iter().any(|(name, own)| {
            lists.all.iter().any(|(server, tools)| server.name == *name && !Arc::ptr_eq(own, tools))
        })
    }
}

/// The concatenation of several servers' lists.
struct Lists<'a> {
    all: &'a [(&'a Arc<CatalogServer>, Arc<IndexedList>)],
    /// The position of each list's first tool.
    starts: Vec<usize>,
    total: usize,
}

impl<'a> Lists<'a> {
    fn new(all: &'a [(&'a Arc<CatalogServer>, Arc<IndexedList>)]) -> Self {
        let mut starts = Vec::with_capacity(all.len());
        let mut total = 0;
        for (_, tools) in all {
            starts.push(total);
            total += tools.names.len();
        }
        Self { all, starts, total }
    }

    /// The server, list and place there of the tool at a position.
    fn locate(&self, position: usize) -> (&'a Arc<CatalogServer>, &'a Arc<IndexedList>, usize) {
        let list = self.starts.partition_point(|start| *start <= position) - 1;
        let (server, tools) = &self.all[list];
        (*server, tools, position - self.starts[list])
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.all.iter().flat_map(|(_, tools)| tools.names.iter().map(AsRef::as_ref))
    }

    fn position(&self, server: &str, tool: &str) -> Option<usize> {
        let list = self.all.iter().position(|(known, _)| *known.name == *server)?;
        Some(self.starts[list] + self.all[list].1.exact_position(tool)?)
    }

    fn learned(&self, tool_use: &ToolUse) -> Arc<Learned> {
        Arc::new(tool_use.learned(|server, tool| self.position(server, tool)))
    }
}

#[cfg(test)]
mod tests;

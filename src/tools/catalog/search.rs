//! Ranked search in the lists of several servers.

use std::sync::Arc;

use parking_lot::Mutex;

use super::list::IndexedList;
use super::resolved::ResolvedTool;
use super::server::CatalogServer;
use crate::tools::search::{self, SearchIndex};

/// Ranks tools, and keeps the index of the lists that were searched last.
#[derive(Default)]
pub(crate) struct RankedSearch {
    last: Mutex<Option<Indexed>>,
}

/// A search index and the lists that it was built from, in this order.
#[derive(Clone)]
struct Indexed {
    lists: Vec<Arc<IndexedList>>,
    index: Arc<SearchIndex>,
}

impl RankedSearch {
    /// At most `limit` usable and permitted tools of `lists` that match `query`, best first. All
    /// of them in order if the query is blank.
    pub(crate) fn search(
        &self,
        lists: &[(&Arc<CatalogServer>, Arc<IndexedList>)],
        query: &str,
        limit: usize,
        permitted: impl Fn(&str, &str) -> bool,
    ) -> Vec<ResolvedTool> {
        // The start of each list in the concatenation of all tools.
        let mut starts = Vec::with_capacity(lists.len());
        let mut total = 0;
        for (_, tools) in lists {
            starts.push(total);
            total += tools.names.len();
        }
        let locate = |position: usize| {
            let list = starts.partition_point(|start| *start <= position) - 1;
            let (server, tools) = &lists[list];
            (*server, tools, position - starts[list])
        };
        let accept = |position: usize| {
            let (server, tools, position) = locate(position);
            server.is_usable(tools, position) && permitted(&server.name, &tools.names[position])
        };
        let resolve = |position: usize| {
            let (server, tools, position) = locate(position);
            ResolvedTool::new(server, tools, position)
        };
        if query.trim().is_empty() {
            return (0..total).filter(|&position| accept(position)).take(limit).map(resolve).collect();
        }
        self.index(lists).search(query, accept).into_iter().take(limit).map(resolve).collect()
    }

    /// The index of these lists. The previous index is reused if it was built from the same lists.
    fn index(&self, lists: &[(&Arc<CatalogServer>, Arc<IndexedList>)]) -> Arc<SearchIndex> {
        let is_same = |indexed: &&Indexed| {
            indexed.lists.len() == lists.len()
                && indexed.lists.iter().zip(lists).all(|(indexed, (_, tools))| Arc::ptr_eq(indexed, tools))
        };
        if let Some(indexed) = self.last.lock().as_ref().filter(is_same) {
            return Arc::clone(&indexed.index);
        }
        let definitions = lists.iter().flat_map(|(server, tools)| {
            tools.list.tools.iter().map(|definition| (&*server.name, definition))
        });
        let index = Arc::new(search::build_index(definitions));
        let lists = lists.iter().map(|(_, tools)| Arc::clone(tools)).collect();
        *self.last.lock() = Some(Indexed { lists, index: Arc::clone(&index) });
        index
    }
}

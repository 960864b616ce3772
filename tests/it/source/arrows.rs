//! The graph of modules.

use super::*;

/// For each module, the modules whose items it names.
pub(crate) fn graph(modules: &[Module]) -> Vec<BTreeSet<usize>> {
    let numbers: BTreeMap<&[String], usize> =
        modules.iter().enumerate().map(|(number, module)| (module.path.as_slice(), number)).collect();
    let owner = |path: &[String]| (0..=path.len()).rev().find_map(|length| numbers.get(&path[..length]));
    let edges = modules.iter().enumerate().map(|(number, module)| {
        let named = module.names.own.iter().filter_map(|path| owner(path)).copied();
        named.filter(|other| *other != number).collect()
    });
    edges.collect()
}

/// The strongly connected components with more than one node: Tarjan's algorithm.
pub(crate) fn cycles(graph: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    struct Search<'a> {
        graph: &'a [BTreeSet<usize>],
        /// The number of each node in the order of the visits, and the lowest number that it leads back to.
        visits: Vec<Option<(usize, usize)>>,
        open: Vec<usize>,
        found: Vec<Vec<usize>>,
    }
    impl Search<'_> {
        /// Returns the lowest number that `node` leads back to.
        fn visit(&mut self, node: usize) -> usize {
            let number = self.visits.iter().flatten().count();
            self.visits[node] = Some((number, number));
            self.open.push(node);
            let mut lowest = number;
            for &next in &self.graph[node] {
                let reached = match self.visits[next] {
                    None => self.visit(next),
                    Some((visited, _)) if self.open.contains(&next) => visited,
                    Some(_) => continue,
                };
                lowest = lowest.min(reached);
            }
            self.visits[node] = Some((number, lowest));
            if lowest == number {
                let start = self.open.iter().rposition(|open| *open == node).unwrap();
                let mut component = self.open.split_off(start);
                component.sort_unstable();
                if component.len() > 1 {
                    self.found.push(component);
                }
            }
            lowest
        }
    }
    let mut search = Search { graph, visits: vec![None; graph.len()], open: Vec::new(), found: Vec::new() };
    for node in 0..graph.len() {
        if search.visits[node].is_none() {
            search.visit(node);
        }
    }
    search.found
}

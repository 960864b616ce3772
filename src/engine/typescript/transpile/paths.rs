//! The paths of namespaces, as numbers: a name may have hundreds of kilobytes, and thousands of others stand in it.

use std::collections::HashMap;

use swc_common::SyntaxContext;
use swc_ecma_ast::{Id, Ident};

/// The path of what is in no namespace.
pub(super) const TOP_LEVEL: usize = 0;

/// The number of each path.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// By the path around it and the name, with the empty context.
    known: HashMap<(usize, Id), usize>,
}

impl Paths {
    /// The path of `name` in the namespace of the path `outer`, which is the same for each block of both.
    pub(super) fn inside(&mut self, outer: usize, name: &Ident) -> usize {
        let next = self.known.len() + 1;
        *self.known.entry((outer, (name.sym.clone(), SyntaxContext::empty()))).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use swc_common::DUMMY_SP;

    use super::*;

    #[test]
    fn a_path_has_one_number_whatever_its_names_resolve_to() {
        let mut paths = Paths::default();
        let name = |text: &str| Ident::new(text.into(), DUMMY_SP, SyntaxContext::from_u32(1));
        let a = paths.inside(TOP_LEVEL, &name("a"));
        let b = paths.inside(a, &name("b"));
        let other = [paths.inside(TOP_LEVEL, &name("b")), paths.inside(b, &name("b"))];
        assert!(![TOP_LEVEL, a, b].iter().any(|path| other.contains(path)) && other[0] != other[1]);
        let elsewhere = Ident::new("b".into(), DUMMY_SP, SyntaxContext::empty());
        assert_eq!(paths.inside(a, &elsewhere), b);
    }
}

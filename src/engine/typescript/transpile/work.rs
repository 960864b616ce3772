//! Counts on the tree what the passes would do, and refuses sources that would take too long.
//!
//! The passes cannot be interrupted. Decorators become several hundred bytes each, and the renaming
//! pass compares a name with all others of the same spelling. Each bound below allows about a
//! quarter of a second of its pass in an optimized build (`fuzz/examples/growth.rs` measures it).
//! Scripts written by people or models stay a hundred times below.

use std::collections::{HashMap, HashSet};

use swc_common::{Span, SyntaxContext};
use swc_ecma_ast::{AutoAccessor, Decorator, Id, Ident, Module, Program};
use swc_ecma_visit::{Visit, VisitWith};

use super::error::{TranspileError, TranspileErrorKind};
use super::refuse;
use crate::engine::fence::Part;

/// The error message, used here and where the parser's work is bounded.
pub(super) const MESSAGE: &str = "this source takes too much work to transpile";

/// Maximum number of decorators and `accessor` fields. In a class of its own each takes 30 µs;
/// 4,000 in one class take 0.3 s.
const MAX_DECORATORS: u64 = 4_000;

/// Maximum number of pairs of names that have one spelling and different declarations: about 14,000
/// parameters called `x`. A pair takes 2 ns.
const MAX_NAME_PAIRS: u64 = 100_000_000;

/// Returns an error if the decorators in `module` would take too long.
pub(super) fn check(part: Part<'_>, module: &Module) -> Result<(), TranspileError> {
    // These words cannot be written with escapes, so text without them needs no walk over the tree.
    if !["@", "accessor"].iter().any(|word| part.text.contains(word)) {
        return Ok(());
    }
    let mut counter = Counter::default();
    module.visit_with(&mut counter);
    match counter.exceeded {
        None => Ok(()),
        Some((span, hint)) => Err(refuse::error(part, TranspileErrorKind::Transpile, span, MESSAGE, hint)),
    }
}

#[derive(Default)]
struct Counter {
    decorators: u64,
    exceeded: Option<(Span, &'static str)>,
}

impl Counter {
    fn decorator(&mut self, span: Span) {
        self.decorators += 1;
        if self.decorators > MAX_DECORATORS {
            self.exceeded.get_or_insert((span, "it has more than 4,000 decorators and `accessor` fields"));
        }
    }
}

impl Visit for Counter {
    fn visit_decorator(&mut self, decorator: &Decorator) {
        self.decorator(decorator.span);
        decorator.visit_children_with(self);
    }

    fn visit_auto_accessor(&mut self, accessor: &AutoAccessor) {
        self.decorator(accessor.span);
        accessor.visit_children_with(self);
    }
}

/// Returns an error if renaming would take too long: it compares all declarations of one spelling
/// with each other.
pub(super) fn check_names(part: Part<'_>, program: &Program) -> Result<(), TranspileError> {
    let mut names = Names::default();
    program.visit_with(&mut names);
    if names.pairs <= MAX_NAME_PAIRS {
        return Ok(());
    }
    let hint = "too many declarations have the same name, in a script with an enum, namespace, decorator or `import(…)`";
    Err(refuse::error(part, TranspileErrorKind::Transpile, names.last, MESSAGE, hint))
}

#[derive(Default)]
struct Names {
    /// Names with their contexts, which distinguish declarations of one spelling.
    seen: HashSet<Id>,
    /// Number of declarations for each spelling. The key has the empty context.
    shared: HashMap<Id, u64>,
    pairs: u64,
    last: Span,
}

impl Visit for Names {
    fn visit_ident(&mut self, name: &Ident) {
        if !self.seen.insert(name.to_id()) {
            return;
        }
        let others = self.shared.entry((name.sym.clone(), SyntaxContext::empty())).or_default();
        self.pairs += *others;
        *others += 1;
        if self.pairs <= MAX_NAME_PAIRS {
            self.last = name.span;
        }
    }
}

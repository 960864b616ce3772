//! What a script does with names, which decides what they can mean.

use std::collections::HashSet;

use swc_common::SyntaxContext;
use swc_ecma_ast::{
    AssignExpr, AssignTarget, BindingIdent, Id, Ident, Import, ImportDecl, Module, Pat, SimpleAssignTarget,
    UpdateExpr,
};
use swc_ecma_visit::{Visit, VisitWith};

/// Names with which a script can change what others mean. With one of them nothing is certain.
const OPAQUE: [&str; 3] = ["globalThis", "eval", "Function"];

/// How the names of a script are used.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The variables that get another value than that of their declaration.
    pub(super) assigned: HashSet<Id>,
    /// The names that are used, of those that are imported.
    pub(super) used: HashSet<Id>,
    /// Whether the script can change what names mean in ways that the text does not show.
    pub(super) is_opaque: bool,
    /// Whether there is a name that is not declared, as all of ours are, or an import.
    pub(super) mentions_tools: bool,
}

impl Names {
    /// Reads all names of a module.
    pub(super) fn of(module: &Module, unresolved: SyntaxContext) -> Self {
        let mut reader = Reader { names: Self::default(), unresolved, is_target: false };
        module.visit_with(&mut reader);
        reader.names
    }
}

struct Reader {
    names: Names,
    unresolved: SyntaxContext,
    /// Whether names are assigned to.
    is_target: bool,
}

impl Visit for Reader {
    fn visit_ident(&mut self, name: &Ident) {
        if name.ctxt == self.unresolved {
            self.names.mentions_tools = true;
            self.names.is_opaque |= OPAQUE.iter().any(|opaque| name.sym == *opaque);
        } else {
            self.names.used.insert(name.to_id());
        }
    }

    fn visit_import(&mut self, _callee: &Import) {
        self.names.mentions_tools = true;
    }

    fn visit_import_decl(&mut self, _import: &ImportDecl) {
        // Its names are declared here, not used.
        self.names.mentions_tools = true;
    }

    fn visit_binding_ident(&mut self, name: &BindingIdent) {
        if self.is_target {
            self.names.assigned.insert(name.id.to_id());
        }
    }

    fn visit_assign_expr(&mut self, expression: &AssignExpr) {
        match &expression.left {
            AssignTarget::Simple(SimpleAssignTarget::Ident(name)) => {
                self.names.assigned.insert(name.id.to_id());
            }
            AssignTarget::Simple(target) => target.visit_with(self),
            AssignTarget::Pat(pattern) => {
                let outer = std::mem::replace(&mut self.is_target, true);
                pattern.visit_with(self);
                self.is_target = outer;
            }
        }
        expression.right.visit_with(self);
    }

    fn visit_update_expr(&mut self, expression: &UpdateExpr) {
        if let swc_ecma_ast::Expr::Ident(name) = &*expression.arg {
            self.names.assigned.insert(name.to_id());
        }
        expression.arg.visit_with(self);
    }

    fn visit_for_head(&mut self, head: &swc_ecma_ast::ForHead) {
        if let swc_ecma_ast::ForHead::Pat(pattern) = head
            && let Pat::Ident(name) = &**pattern
        {
            self.names.assigned.insert(name.id.to_id());
        }
        head.visit_children_with(self);
    }
}

//! What a script does with names, which decides what they can mean.

use std::collections::{HashMap, HashSet};

use swc_common::SyntaxContext;
use swc_ecma_ast::{
    AssignExpr, AssignTarget, BindingIdent, CallExpr, Callee, Decl, ExportDecl, Expr, ForOfStmt, Id, Ident,
    Import, ImportDecl, KeyValueProp, Lit, MemberExpr, MemberProp, Module, Pat, Prop, PropName, PropOrSpread,
    SimpleAssignTarget, UpdateExpr, VarDecl, VarDeclKind,
};
use swc_ecma_visit::{Visit, VisitWith};

use super::syntax::{plain, reads_value};

/// Names with which a script can change what others mean. With one of them nothing is certain.
const OPAQUE: [&str; 3] = ["globalThis", "eval", "Function"];

/// How the names of a script are used.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The variables that get another value than that of their declaration.
    pub(super) assigned: HashSet<Id>,
    /// The declared names that are used, and whether some use may change the array that a name is.
    used: HashMap<Id, bool>,
    /// Those of them that some use could await, if they are promises.
    held: HashSet<Id>,
    /// The variables that are declared as an array of at least one element.
    filled: HashSet<Id>,
    /// The variables that are, or are a part of, a list that `call_tools` gets.
    lists_of_calls: HashSet<Id>,
    /// Whether the script can change what names mean in ways that the text does not show.
    pub(super) is_opaque: bool,
    /// Whether the script has an import, or uses a name that it does not declare, as the names of
    /// tools are.
    pub(super) mentions_tools: bool,
    unresolved: SyntaxContext,
}

impl Names {
    /// Reads all names of a module.
    pub(super) fn read(module: &Module, unresolved: SyntaxContext) -> Self {
        let names = Self { unresolved, ..Self::default() };
        let mut reader = Reader { names, unresolved, is_target: false };
        module.visit_with(&mut reader);
        reader.names
    }

    /// Whether something reads the name, which is declared.
    pub(super) fn is_used(&self, id: &Id) -> bool {
        self.used.contains_key(id)
    }

    /// Whether the name is declared, and nothing reads it.
    pub(super) fn is_unused(&self, name: &Ident) -> bool {
        name.ctxt != self.unresolved && !self.is_used(&name.to_id())
    }

    /// Whether the name is, or is a part of, a list that `call_tools` gets.
    pub(super) fn is_list_of_calls(&self, name: &Ident) -> bool {
        self.lists_of_calls.contains(&name.to_id())
    }

    /// Whether the promise that a variable is declared as could be awaited. It cannot if all uses
    /// read what promises do not have.
    pub(super) fn may_be_awaited(&self, id: &Id) -> bool {
        self.held.contains(id) || self.assigned.contains(id)
    }

    /// Whether an expression is a list with at least one element, whatever the script computes: it is written out, made
    /// of such a list, or a variable that is declared as one and used in no way that could change it.
    pub(super) fn is_filled(&self, expression: &Expr) -> bool {
        is_filled(expression, self.unresolved, &|name| {
            let id = name.to_id();
            self.filled.contains(&id) && !self.assigned.contains(&id) && self.used.get(&id) == Some(&false)
        })
    }
}

/// Whether an expression is a list with at least one element, if `is_filled_name` knows the variables that are.
fn is_filled(expression: &Expr, unresolved: SyntaxContext, is_filled_name: &dyn Fn(&Ident) -> bool) -> bool {
    let is_filled = |expression: &Expr| is_filled(expression, unresolved, is_filled_name);
    match plain(expression) {
        // One of the elements is not spread.
        Expr::Array(array) => {
            array.elems.iter().any(|element| element.as_ref().is_none_or(|element| element.spread.is_none()))
        }
        Expr::Ident(name) => is_filled_name(name),
        Expr::Call(CallExpr { callee: Callee::Expr(callee), args, .. }) => {
            let Expr::Member(MemberExpr { obj, prop: MemberProp::Ident(method), .. }) = plain(callee) else {
                return false;
            };
            match (plain(obj), &*method.sym, args.as_slice()) {
                (Expr::Ident(array), "from", [from, ..])
                    if array.ctxt == unresolved && array.sym == "Array" =>
                {
                    is_filled(&from.expr) || has_length(&from.expr)
                }
                (list, "map" | "concat" | "toSorted" | "toReversed" | "entries" | "keys" | "values", _) => {
                    is_filled(list)
                }
                (Expr::Lit(Lit::Str(text)), "split", _) => !text.value.is_empty(),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The list of which a method call takes some items, as they are.
pub(super) fn part_of_list(call: &CallExpr) -> Option<&Expr> {
    let Callee::Expr(callee) = &call.callee else { return None };
    let Expr::Member(MemberExpr { obj, prop: MemberProp::Ident(method), .. }) = plain(callee) else {
        return None;
    };
    matches!(&*method.sym, "filter" | "slice" | "toReversed" | "toSorted").then_some(obj)
}

/// Whether it is `{ length: 3 }`.
fn has_length(expression: &Expr) -> bool {
    let Expr::Object(object) = plain(expression) else { return false };
    matches!(object.props.as_slice(), [PropOrSpread::Prop(only)]
        if matches!(&**only, Prop::KeyValue(KeyValueProp { key: PropName::Ident(name), value })
            if name.sym == "length"
                && matches!(plain(value), Expr::Lit(Lit::Num(length)) if length.value >= 1.0)))
}

struct Reader {
    names: Names,
    unresolved: SyntaxContext,
    /// Whether names are assigned to.
    is_target: bool,
}

impl Reader {
    /// Notes the variables of a list that `call_tools` gets.
    fn note_list_of_calls(&mut self, list: &Expr) {
        match plain(list) {
            Expr::Ident(name) => {
                self.names.lists_of_calls.insert(name.to_id());
            }
            Expr::Array(list) => {
                let spread = list.elems.iter().flatten().filter(|item| item.spread.is_some());
                spread.for_each(|item| self.note_list_of_calls(&item.expr));
            }
            Expr::Call(call) => part_of_list(call).into_iter().for_each(|list| self.note_list_of_calls(list)),
            _ => {}
        }
    }

    /// Notes a use that does not change the array that a name is.
    fn reads(&mut self, name: &Ident) {
        if name.ctxt == self.unresolved {
            return self.visit_ident(name);
        }
        self.names.used.entry(name.to_id()).or_insert(false);
    }
}

/// Whether a method call does not change its array. A callback gets the array as its third argument.
fn is_reader(method: &str, call: &CallExpr) -> bool {
    match method {
        "at" | "concat" | "entries" | "includes" | "indexOf" | "join" | "keys" | "slice" | "toReversed"
        | "values" => true,
        "every" | "filter" | "find" | "flatMap" | "forEach" | "map" | "some" => {
            matches!(call.args.as_slice(), [callback] if matches!(plain(&callback.expr), Expr::Arrow(arrow)
                if arrow.params.len() < 3 && !arrow.params.iter().any(Pat::is_rest)))
        }
        _ => false,
    }
}

impl Visit for Reader {
    fn visit_ident(&mut self, name: &Ident) {
        if name.ctxt == self.unresolved {
            self.names.mentions_tools = true;
            self.names.is_opaque |= OPAQUE.iter().any(|opaque| name.sym == *opaque);
        } else {
            self.names.used.insert(name.to_id(), true);
            self.names.held.insert(name.to_id());
        }
    }

    fn visit_var_decl(&mut self, variables: &VarDecl) {
        for variable in &variables.decls {
            // With `var` it may be declared again.
            if variables.kind != VarDeclKind::Var
                && let (Pat::Ident(name), Some(init)) = (&variable.name, &variable.init)
                && is_filled(init, self.unresolved, &|_name| false)
            {
                self.names.filled.insert(name.id.to_id());
            }
        }
        variables.visit_children_with(self);
    }

    fn visit_export_decl(&mut self, export: &ExportDecl) {
        if let Decl::Var(variables) = &export.decl {
            let names = variables.decls.iter().filter_map(|variable| variable.name.as_ident());
            for name in names {
                self.names.used.insert(name.id.to_id(), true);
                self.names.held.insert(name.id.to_id());
            }
        }
        export.visit_children_with(self);
    }

    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let (Callee::Expr(callee), Some(list)) = (&call.callee, call.args.first())
            && matches!(plain(callee), Expr::Ident(name) if name.ctxt == self.unresolved && name.sym == "call_tools")
        {
            self.note_list_of_calls(&list.expr);
        }
        if let Callee::Expr(callee) = &call.callee
            && let Expr::Member(member) = plain(callee)
            && let (Expr::Ident(list), MemberProp::Ident(method)) = (plain(&member.obj), &member.prop)
            && is_reader(&method.sym, call)
        {
            self.reads(list);
            return call.args.visit_with(self);
        }
        call.visit_children_with(self);
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        match plain(&member.obj) {
            Expr::Ident(object) if object.ctxt != self.unresolved && reads_value(member) => {
                self.names.used.insert(object.to_id(), true);
                member.prop.visit_with(self);
            }
            _ => member.visit_children_with(self),
        }
    }

    fn visit_for_of_stmt(&mut self, statement: &ForOfStmt) {
        statement.left.visit_with(self);
        match plain(&statement.right) {
            Expr::Ident(list) => self.reads(list),
            other => other.visit_with(self),
        }
        statement.body.visit_with(self);
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
        if let Expr::Ident(name) = &*expression.arg {
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

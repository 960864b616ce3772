//! Control flow of statements and operators: which parts of a script every run reaches.

use std::slice;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_interpolated_string_element, walk_stmt};
use ruff_python_ast::{
    Expr, ExprDictComp, ExprGenerator, ExprListComp, ExprSetComp, InterpolatedStringElement, Stmt, StmtFor,
    StmtReturn,
};
use ruff_text_size::Ranged as _;

use super::literal::bytes;
use super::names::{is_of_coroutine, is_type_checking};
use super::{Surveyor, is_main_guard};
use crate::engine::survey::{FlowReader as _, forget};

impl<'a> Surveyor<'a> {
    /// Reads a function or a class that is not called here.
    fn uncalled(&mut self, is_class: bool, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.is_in_class, is_class);
        self.function(read);
        self.is_in_class = outer;
    }

    /// Reads code that may catch the errors of its imports, or may not run. Such imports are not reported: their
    /// author knows that they can fail.
    fn guarded(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.is_guarded, true);
        self.doubtful(read);
        self.is_guarded = outer;
    }

    /// Marks an expression as not awaited, if it is a coroutine of calls of tools. `before` is the number of uses
    /// before it was read.
    pub(super) fn forgets(&mut self, expression: &Expr, before: usize) {
        let Expr::Call(call) = expression else { return };
        match &*call.func {
            // These calls have ended when they return.
            Expr::Name(name) if matches!(&*name.id, "call_tool" | "call_tools" | "call_mcp_tool_sync") => {}
            Expr::Attribute(function)
                if matches!(function.attr.as_str(), "gather" | "wait_for")
                    && self.is_asyncio(&function.value) =>
            {
                for given in &call.arguments.args {
                    match given {
                        Expr::Starred(list) => self.forgets_all(&list.value, before),
                        other => self.forgets_all(other, before),
                    }
                }
            }
            _ => forget(&mut self.survey, before, &bytes(call.range())),
        }
    }

    /// The same where the value of the expression is lost, and all coroutines that it holds.
    fn forgets_all(&mut self, expression: &Expr, before: usize) {
        match expression {
            Expr::List(list) => list.elts.iter().for_each(|item| self.forgets_all(item, before)),
            Expr::Tuple(list) => list.elts.iter().for_each(|item| self.forgets_all(item, before)),
            Expr::ListComp(ExprListComp { elt, .. })
            | Expr::SetComp(ExprSetComp { elt, .. })
            | Expr::Generator(ExprGenerator { elt, .. }) => self.forgets_all(elt, before),
            Expr::Dict(dict) => dict.items.iter().for_each(|item| self.forgets_all(&item.value, before)),
            Expr::If(choice) => {
                self.forgets_all(&choice.body, before);
                self.forgets_all(&choice.orelse, before);
            }
            Expr::BoolOp(operation) => {
                if let Some(last) = operation.values.last() {
                    self.forgets_all(last, before);
                }
            }
            other => self.forgets(other, before),
        }
    }

    /// Reads an expression whose value is compared, tested or made a text: for a coroutine that says nothing about its
    /// result.
    fn tested(&mut self, expression: &'a Expr) {
        let before = self.survey.uses.len();
        self.visit_expr(expression);
        self.forgets(expression, before);
    }

    fn returned(&mut self, returned: &'a StmtReturn) {
        match returned.value.as_deref() {
            Some(value) if self.flow.awaits_returns => self.awaited(value),
            Some(value) => self.visit_expr(value),
            None => {}
        }
        self.flow.has_returned = true;
    }

    /// Reads an assignment, with or without a type, of a value if there is one.
    fn assigned(&mut self, statement: &'a Stmt, targets: &'a [Expr], value: Option<&'a Expr>) {
        let before = self.survey.uses.len();
        walk_stmt(self, statement);
        if let Some(value) = value {
            self.kept(targets, value, before);
            self.set_list_of_calls(targets, value);
        }
    }

    fn for_loop(&mut self, each: &'a StmtFor) {
        let is_entered = !each.is_async && self.names.is_filled(&each.iter);
        let before = self.survey.uses.len();
        self.visit_expr(&each.iter);
        self.forgets(&each.iter, before);
        self.looped(is_entered, |own| {
            own.visit_expr(&each.target);
            own.visit_body(&each.body);
        });
        // The `else` belongs to the surrounding loop: `break` in it leaves that loop.
        self.doubtful(|own| own.visit_body(&each.orelse));
    }

    /// Marks the value of a variable as not awaited, if no use of the variable can await it.
    fn kept(&mut self, targets: &'a [Expr], value: &'a Expr, before: usize) {
        match targets {
            [Expr::Name(_)] if self.is_in_class || self.names.is_opaque => {}
            [Expr::Name(name)] if !self.names.is_used(&name.id) => self.forgets_all(value, before),
            [Expr::Name(name)] if !self.names.may_be_awaited(&name.id) => self.forgets(value, before),
            // A coroutine has no items.
            [Expr::Tuple(_) | Expr::List(_)] => self.forgets(value, before),
            _ => {}
        }
    }
}

impl<'a> Visitor<'a> for Surveyor<'a> {
    fn visit_body(&mut self, body: &'a [Stmt]) {
        let outer = self.flow.is_certain;
        for statement in body {
            self.visit_stmt(statement);
            self.flow.next();
        }
        self.flow.is_certain = outer;
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Return(returned) => self.returned(returned),
            Stmt::Expr(expression) if self.value_at == Some(expression.range) => {
                self.awaited(&expression.value);
            }
            Stmt::Expr(expression) => {
                let before = self.survey.uses.len();
                self.visit_expr(&expression.value);
                self.forgets_all(&expression.value, before);
            }
            Stmt::Break(_) | Stmt::Continue(_) => self.flow.has_jumped = true,
            Stmt::Assign(assigned) => {
                self.assigned(statement, &assigned.targets, Some(&assigned.value));
                if let [Expr::Name(name)] = assigned.targets.as_slice()
                    && let Some(found) = self.reference(&assigned.value)
                {
                    self.set_alias(&name.id, found.reference);
                }
            }
            Stmt::AnnAssign(assigned) => {
                self.assigned(statement, slice::from_ref(&*assigned.target), assigned.value.as_deref());
            }
            Stmt::AugAssign(assigned) => {
                walk_stmt(self, statement);
                self.set_list_of_calls(slice::from_ref(&*assigned.target), &assigned.value);
            }
            Stmt::Import(import) => {
                self.note_import(import);
                self.import(import);
            }
            Stmt::ImportFrom(import) => {
                self.note_import_from(import);
                self.import_from(import);
            }
            Stmt::If(test) if is_type_checking(test) => self.guarded(|own| walk_stmt(own, statement)),
            Stmt::If(test) if is_main_guard(test) && test.elif_else_clauses.is_empty() => {
                self.visit_body(&test.body);
            }
            Stmt::If(test) => {
                self.tested(&test.test);
                self.doubtful(|own| {
                    own.visit_body(&test.body);
                    for clause in &test.elif_else_clauses {
                        own.visit_elif_else_clause(clause);
                    }
                });
            }
            Stmt::For(each) => self.for_loop(each),
            Stmt::While(test) => {
                self.tested(&test.test);
                self.looped(false, |own| own.visit_body(&test.body));
                self.doubtful(|own| own.visit_body(&test.orelse));
            }
            Stmt::Try(_) | Stmt::With(_) => self.guarded(|own| walk_stmt(own, statement)),
            Stmt::Match(_) | Stmt::Assert(_) => self.doubtful(|own| walk_stmt(own, statement)),
            Stmt::FunctionDef(function) => {
                if !self.functions.contains_key(&*function.name) {
                    self.uncalled(false, |own| walk_stmt(own, statement));
                }
            }
            Stmt::ClassDef(_) => self.uncalled(true, |own| walk_stmt(own, statement)),
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Await(inner) => self.awaited(&inner.value),
            Expr::Call(call) => self.call(call, false),
            Expr::Attribute(member) => {
                let before = self.survey.uses.len();
                walk_expr(self, expression);
                if !is_of_coroutine(&member.attr) {
                    self.forgets(&member.value, before);
                }
            }
            Expr::Subscript(part) => {
                let before = self.survey.uses.len();
                walk_expr(self, expression);
                self.forgets(&part.value, before);
            }
            Expr::BoolOp(operation) => {
                let mut values = operation.values.iter();
                if let Some(first) = values.next() {
                    self.visit_expr(first);
                }
                self.doubtful(|own| values.for_each(|value| own.visit_expr(value)));
            }
            Expr::UnaryOp(operation) => self.tested(&operation.operand),
            Expr::BinOp(operation) => {
                self.tested(&operation.left);
                self.tested(&operation.right);
            }
            Expr::If(choice) => {
                self.tested(&choice.test);
                self.doubtful(|own| {
                    own.visit_expr(&choice.body);
                    own.visit_expr(&choice.orelse);
                });
            }
            Expr::Lambda(_) => self.uncalled(false, |own| walk_expr(own, expression)),
            Expr::ListComp(ExprListComp { elt, generators, .. })
            | Expr::SetComp(ExprSetComp { elt, generators, .. }) => {
                self.comprehension(generators, |own| own.visit_expr(elt));
            }
            Expr::DictComp(ExprDictComp { key, value, generators, .. }) => {
                self.comprehension(generators, |own| {
                    if let Some(key) = key {
                        own.visit_expr(key);
                    }
                    own.visit_expr(value);
                });
            }
            // It may be read in part, or not at all.
            Expr::Generator(_) => self.doubtful(|own| walk_expr(own, expression)),
            Expr::Compare(compared) => self.doubtful(|own| {
                own.tested(&compared.left);
                compared.comparators.iter().for_each(|other| own.tested(other));
            }),
            other => walk_expr(self, other),
        }
    }

    fn visit_interpolated_string_element(&mut self, element: &'a InterpolatedStringElement) {
        let before = self.survey.uses.len();
        walk_interpolated_string_element(self, element);
        if let InterpolatedStringElement::Interpolation(part) = element {
            self.forgets(&part.expression, before);
        }
    }

    // Types are not evaluated.
    fn visit_annotation(&mut self, _annotation: &'a Expr) {}
}

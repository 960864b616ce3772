//! Which parts of a script every run reaches: what the statements and operators make of their parts.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged as _;

use super::literal::bytes;
use super::{Surveyor, is_main_guard};
use crate::run::check::survey::ToolUse;

impl<'a> Visitor<'a> for Surveyor<'a> {
    fn visit_body(&mut self, body: &'a [Stmt]) {
        let outer = self.is_certain;
        for statement in body {
            self.visit_stmt(statement);
            self.is_certain &= !self.has_returned;
        }
        self.is_certain = outer;
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Return(returned) => {
                match returned.value.as_deref() {
                    Some(value) if self.awaits_returns => self.awaited(value),
                    Some(value) => self.visit_expr(value),
                    None => {}
                }
                self.has_returned = true;
            }
            Stmt::Expr(expression) if self.value_at == Some(expression.range) => {
                self.awaited(&expression.value);
            }
            Stmt::Expr(expression) => {
                let before = self.survey.uses.len();
                self.visit_expr(&expression.value);
                if let Expr::Call(call) = &*expression.value
                    && let Some(last) = self.survey.uses.get_mut(before..).and_then(<[ToolUse]>::last_mut)
                    && last.at == bytes(call.range())
                {
                    let waits = matches!(&*call.func, Expr::Name(name)
                        if matches!(&*name.id, "call_tool" | "call_tools" | "call_mcp_tool_sync"));
                    last.is_forgotten = !waits;
                }
            }
            Stmt::Assign(assigned) => {
                walk_stmt(self, statement);
                if let [Expr::Name(name)] = assigned.targets.as_slice()
                    && let Some(found) = self.reference(&assigned.value)
                {
                    self.set_alias(&name.id, found.reference);
                }
            }
            Stmt::Import(import) => self.import(import),
            Stmt::ImportFrom(import) => self.import_from(import),
            Stmt::If(test) if is_main_guard(test) && test.elif_else_clauses.is_empty() => {
                self.visit_body(&test.body);
            }
            Stmt::If(test) => {
                self.visit_expr(&test.test);
                self.doubtful(|own| {
                    own.visit_body(&test.body);
                    for clause in &test.elif_else_clauses {
                        own.visit_elif_else_clause(clause);
                    }
                });
            }
            Stmt::For(each) => {
                self.visit_expr(&each.iter);
                self.doubtful(|own| {
                    own.visit_expr(&each.target);
                    own.visit_body(&each.body);
                    own.visit_body(&each.orelse);
                });
            }
            Stmt::While(test) => {
                self.visit_expr(&test.test);
                self.doubtful(|own| {
                    own.visit_body(&test.body);
                    own.visit_body(&test.orelse);
                });
            }
            Stmt::Try(_) | Stmt::With(_) | Stmt::Match(_) | Stmt::Assert(_) => {
                self.doubtful(|own| walk_stmt(own, statement));
            }
            Stmt::FunctionDef(function) => {
                if !self.functions.contains_key(&*function.name) {
                    self.function(|own| walk_stmt(own, statement));
                }
            }
            Stmt::ClassDef(_) => self.function(|own| walk_stmt(own, statement)),
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Await(inner) => self.awaited(&inner.value),
            Expr::Call(call) => self.call(call, false),
            Expr::BoolOp(operation) => {
                let mut values = operation.values.iter();
                if let Some(first) = values.next() {
                    self.visit_expr(first);
                }
                self.doubtful(|own| values.for_each(|value| own.visit_expr(value)));
            }
            Expr::If(choice) => {
                self.visit_expr(&choice.test);
                self.doubtful(|own| {
                    own.visit_expr(&choice.body);
                    own.visit_expr(&choice.orelse);
                });
            }
            Expr::Lambda(_) => self.function(|own| walk_expr(own, expression)),
            Expr::ListComp(_)
            | Expr::SetComp(_)
            | Expr::DictComp(_)
            | Expr::Generator(_)
            | Expr::Compare(_) => {
                self.doubtful(|own| walk_expr(own, expression));
            }
            other => walk_expr(self, other),
        }
    }

    // Types are not evaluated.
    fn visit_annotation(&mut self, _annotation: &'a Expr) {}
}

//! Keeps the completion value of a statement: the value of the expression that it evaluates last.
//!
//! JavaScript gives every statement such a value, which only `eval` and interactive shells show. A
//! loop, an `if`, a `switch` or a `try` that evaluates nothing has the value `undefined`; a
//! declaration leaves the value of the statement before it.

use swc_common::DUMMY_SP;
use swc_ecma_ast::{BlockStmt, Expr, Ident, Stmt};

use super::make;

/// Returns whether `statement` can evaluate an expression whose value it would have.
pub(super) fn has_value(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(_) => true,
        Stmt::Block(block) => block.stmts.iter().any(has_value),
        Stmt::If(branches) => has_value(&branches.cons) || branches.alt.as_deref().is_some_and(has_value),
        Stmt::Try(tried) => {
            tried.block.stmts.iter().any(has_value)
                || tried.handler.iter().any(|handler| handler.body.stmts.iter().any(has_value))
        }
        Stmt::Switch(switch) => switch.cases.iter().any(|case| case.cons.iter().any(has_value)),
        Stmt::Labeled(labeled) => has_value(&labeled.body),
        Stmt::For(looped) => has_value(&looped.body),
        Stmt::ForIn(looped) => has_value(&looped.body),
        Stmt::ForOf(looped) => has_value(&looped.body),
        Stmt::While(looped) => has_value(&looped.body),
        Stmt::DoWhile(looped) => has_value(&looped.body),
        _ => false,
    }
}

/// Makes `statement` assign its completion value to `result`, which is `undefined` before it.
pub(super) fn keep(statement: &mut Stmt, result: &Ident) {
    match statement {
        Stmt::Expr(evaluated) => {
            let value = std::mem::replace(&mut evaluated.expr, Box::new(Expr::default()));
            evaluated.expr = make::set_name(result, value);
        }
        Stmt::Block(block) => keep_all(&mut block.stmts, result),
        Stmt::If(branches) => {
            keep_body(&mut branches.cons, result);
            if let Some(other) = &mut branches.alt {
                keep_body(other, result);
            }
        }
        // What `finally` evaluates is not the value.
        Stmt::Try(tried) => {
            keep_all(&mut tried.block.stmts, result);
            if let Some(handler) = &mut tried.handler {
                keep_all(&mut handler.body.stmts, result);
                // What the block evaluated before it failed is not the value.
                handler.body.stmts.insert(0, reset(result));
            }
        }
        Stmt::Switch(switch) => {
            switch.cases.iter_mut().for_each(|case| keep_all(&mut case.cons, result));
        }
        Stmt::Labeled(labeled) => keep(&mut labeled.body, result),
        Stmt::For(looped) => keep_body(&mut looped.body, result),
        Stmt::ForIn(looped) => keep_body(&mut looped.body, result),
        Stmt::ForOf(looped) => keep_body(&mut looped.body, result),
        Stmt::While(looped) => keep_body(&mut looped.body, result),
        Stmt::DoWhile(looped) => keep_body(&mut looped.body, result),
        _ => {}
    }
}

fn keep_all(statements: &mut Vec<Stmt>, result: &Ident) {
    let mut kept = Vec::with_capacity(statements.len());
    for mut statement in statements.drain(..) {
        if begins_without_value(&statement) {
            kept.push(reset(result));
        }
        keep(&mut statement, result);
        kept.push(statement);
    }
    *statements = kept;
}

/// Handles a statement in a position that takes exactly one.
fn keep_body(statement: &mut Stmt, result: &Ident) {
    if begins_without_value(statement) {
        let inner = std::mem::take(statement);
        *statement = Stmt::Block(BlockStmt { stmts: vec![inner], ..BlockStmt::default() });
    }
    keep(statement, result);
}

/// Returns whether the value of a statement is `undefined` if it evaluates nothing, rather than the
/// value of the statement before it.
fn begins_without_value(statement: &Stmt) -> bool {
    match statement {
        Stmt::Labeled(labeled) => begins_without_value(&labeled.body),
        Stmt::If(_)
        | Stmt::Try(_)
        | Stmt::Switch(_)
        | Stmt::For(_)
        | Stmt::ForIn(_)
        | Stmt::ForOf(_)
        | Stmt::While(_)
        | Stmt::DoWhile(_) => true,
        _ => false,
    }
}

/// `result = undefined`
fn reset(result: &Ident) -> Stmt {
    make::statement(make::set_name(result, Expr::undefined(DUMMY_SP)))
}

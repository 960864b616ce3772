//! What all parts of the survey need of syntax trees.

use std::ops::Range;

use swc_common::{BytePos, Span};
use swc_ecma_ast::{Expr, ExprOrSpread, Lit, MemberExpr, MemberProp};

use super::super::positions::FIRST_BYTE;

/// A call of a value, with or without `?.`.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) span: Span,
    pub(super) callee: &'a Expr,
    pub(super) args: &'a [ExprOrSpread],
}

/// The expression without parentheses and type syntax.
pub(super) fn plain(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => plain(&inner.expr),
        Expr::TsAs(inner) => plain(&inner.expr),
        Expr::TsSatisfies(inner) => plain(&inner.expr),
        Expr::TsConstAssertion(inner) => plain(&inner.expr),
        Expr::TsNonNull(inner) => plain(&inner.expr),
        Expr::TsTypeAssertion(inner) => plain(&inner.expr),
        other => other,
    }
}

/// Whether promises have a property of this name.
pub(super) fn is_of_promise(name: &str) -> bool {
    matches!(name, "then" | "catch" | "finally" | "constructor")
}

/// Whether an expression reads a property that promises do not have, so that its object is to be awaited first.
pub(super) fn reads_value(member: &MemberExpr) -> bool {
    match &member.prop {
        MemberProp::Ident(name) => !is_of_promise(&name.sym),
        MemberProp::Computed(index) => matches!(plain(&index.expr), Expr::Lit(Lit::Num(_))),
        MemberProp::PrivateName(_) => false,
    }
}

/// The byte offsets of a part of the text.
pub(in super::super) fn bytes(span: Span) -> Range<usize> {
    let offset = |byte: BytePos| byte.0.saturating_sub(FIRST_BYTE.0) as usize;
    offset(span.lo)..offset(span.hi)
}

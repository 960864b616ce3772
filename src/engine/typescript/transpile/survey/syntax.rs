//! What all parts of the survey need of syntax trees.

use std::ops::Range;

use swc_common::{BytePos, Span};
use swc_ecma_ast::Expr;

use super::super::positions::FIRST_BYTE;

/// The expression without what only types and readers see.
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

/// The byte offsets of a part of the text.
pub(in super::super) fn bytes(span: Span) -> Range<usize> {
    let offset = |byte: BytePos| byte.0.saturating_sub(FIRST_BYTE.0) as usize;
    offset(span.lo)..offset(span.hi)
}

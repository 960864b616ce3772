//! Hides constants from the TypeScript pass.
//!
//! The pass evaluates every `const`, because a `const enum` of its own could use it. It copies the
//! remaining expression once for each operator, so a sum of 4,000 numbers took twelve seconds; and
//! it builds every intermediate text, so `const b = a + a, c = b + b, …` took all memory. A
//! constant with a type annotation is not evaluated, and the pass removes the annotation.

use swc_common::DUMMY_SP;
use swc_ecma_ast::{
    Expr, Module, Pat, TsKeywordType, TsKeywordTypeKind, TsType, TsTypeAnn, VarDecl, VarDeclKind,
};
use swc_ecma_visit::{VisitMut, VisitMutWith};

use crate::engine::fence::Part;

/// Hides the constants of `module` that the pass would evaluate.
pub(super) fn hide(part: Part<'_>, module: &mut Module) {
    // The word cannot be written with escapes.
    if part.text.contains("const") {
        module.visit_mut_with(&mut Hider);
    }
}

struct Hider;

impl VisitMut for Hider {
    fn visit_mut_var_decl(&mut self, declaration: &mut VarDecl) {
        declaration.visit_mut_children_with(self);
        if declaration.kind != VarDeclKind::Const {
            return;
        }
        for variable in &mut declaration.decls {
            if let (Pat::Ident(name), Some(init)) = (&mut variable.name, &variable.init)
                && is_evaluated(init)
            {
                name.type_ann.get_or_insert_with(any);
            }
        }
    }
}

/// Returns whether the pass copies `expression` to evaluate it. Names and literals are not copied.
fn is_evaluated(expression: &Expr) -> bool {
    !matches!(
        expression,
        Expr::Lit(_)
            | Expr::Ident(_)
            | Expr::Arrow(_)
            | Expr::Fn(_)
            | Expr::Class(_)
            | Expr::Call(_)
            | Expr::New(_)
            | Expr::Await(_)
            | Expr::Object(_)
            | Expr::Array(_)
    )
}

fn any() -> Box<TsTypeAnn> {
    let kind = TsKeywordTypeKind::TsAnyKeyword;
    let any = TsType::TsKeywordType(TsKeywordType { span: DUMMY_SP, kind });
    Box::new(TsTypeAnn { span: DUMMY_SP, type_ann: Box::new(any) })
}

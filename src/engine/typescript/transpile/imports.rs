//! Bounds the specifiers of dynamic imports: `import(x)` becomes `import(__specifier(x))`.
//!
//! deno_core copies a specifier before the loader sees its length, and keeps it until the import ends; V8 makes one text
//! of its parts for that. The function's object becomes text when `import` reads it, as `x` would: what that throws is
//! what the import fails with. It uses nothing that a script can replace.

use swc_common::DUMMY_SP;
use swc_ecma_ast::{
    BinaryOp, BindingIdent, CallExpr, Callee, CondExpr, Expr, Lit, Null, Pat, Stmt, Tpl, TplElement,
};
use swc_ecma_visit::{VisitMut, VisitMutWith};

use super::make;

/// Maximum characters of a specifier: those of `mcp:` and of the longest name that the loader takes.
const MAX_SPECIFIER: u16 = 4_100;

/// What a longer one is replaced by. It names no module, so the error of the import has it.
const TOO_LONG: &str = "a specifier of more than 4,100 characters";

/// Bounds the specifiers in `body` that are computed or long. Returns whether there are any, and so a generated name.
pub(super) fn bound(body: &mut Vec<Stmt>) -> bool {
    let specifier = make::fresh("__specifier");
    let mut bounding = Bounding { call: make::name(&specifier), found: false };
    body.visit_mut_with(&mut bounding);
    if bounding.found {
        let name = Pat::Ident(BindingIdent::from(specifier));
        body.insert(0, make::constant(DUMMY_SP, name, specifier_function()));
    }
    bounding.found
}

struct Bounding {
    /// The function's name.
    call: Box<Expr>,
    found: bool,
}

impl VisitMut for Bounding {
    fn visit_mut_call_expr(&mut self, call: &mut CallExpr) {
        call.visit_mut_children_with(self);
        if matches!(call.callee, Callee::Import(_))
            && let Some(argument) = call.args.first_mut()
            && !is_short(&argument.expr)
        {
            let computed = std::mem::take(&mut argument.expr);
            argument.expr = make::call(self.call.clone(), [computed]);
            self.found = true;
        }
    }
}

/// Whether it is a literal within the bound.
fn is_short(specifier: &Expr) -> bool {
    matches!(specifier, Expr::Lit(Lit::Str(text)) if text.value.len() <= usize::from(MAX_SPECIFIER))
}

/// ``(value) => ({ __proto__: null, toString: () => (value = `${value}`).length > 4100 ? "…" : value })``
fn specifier_function() -> Box<Expr> {
    let value = make::fresh("value");
    let nothing = |tail| TplElement { span: DUMMY_SP, tail, cooked: None, raw: "".into() };
    let text = Expr::Tpl(Tpl {
        span: DUMMY_SP,
        exprs: vec![make::name(&value)],
        quasis: vec![nothing(false), nothing(true)],
    });
    let text = make::set_name(&value, Box::new(text));
    let length = Box::new(Expr::Member(make::member(text, "length")));
    let bounded = Expr::Cond(CondExpr {
        span: DUMMY_SP,
        test: make::binary(length, BinaryOp::Gt, make::number(MAX_SPECIFIER.into())),
        cons: make::text(TOO_LONG),
        alt: make::name(&value),
    });
    let null = Box::new(Expr::Lit(Lit::Null(Null { span: DUMMY_SP })));
    let object = make::object(vec![
        (make::property("__proto__"), null),
        (make::property("toString"), make::arrow(Vec::new(), Box::new(bounded))),
    ]);
    make::arrow(vec![&value], object)
}

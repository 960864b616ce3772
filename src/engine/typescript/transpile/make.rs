//! Short ways to make nodes of a syntax tree.

use swc_common::{DUMMY_SP, Mark, Span, SyntaxContext};
use swc_ecma_ast::{
    ArrayLit, ArrowExpr, ArrowFunctionBody, AssignExpr, AssignOp, AssignTarget, BinExpr, BinaryOp,
    BindingIdent, CallExpr, Callee, ComputedPropName, Expr, ExprOrSpread, ExprStmt, FunctionBody, Ident,
    IdentName, KeyValueProp, Lit, MemberExpr, MemberProp, ObjectLit, Pat, Prop, PropName, PropOrSpread,
    ReturnStmt, SimpleAssignTarget, Stmt, Str, ThisExpr, VarDecl, VarDeclKind, VarDeclarator,
};

/// Makes a name that swc's pass `hygiene` keeps apart from all others, also from those of the same
/// spelling.
pub(super) fn fresh(name: &str) -> Ident {
    Ident::new(name.into(), DUMMY_SP, SyntaxContext::empty().apply_mark(Mark::new()))
}

/// The name of a global. `unresolved` marks those.
pub(super) fn global(name: &str, unresolved: SyntaxContext) -> Ident {
    Ident::new(name.into(), DUMMY_SP, unresolved)
}

pub(super) fn name(ident: &Ident) -> Box<Expr> {
    Box::new(Expr::Ident(ident.clone()))
}

pub(super) fn this() -> Box<Expr> {
    Box::new(Expr::This(ThisExpr { span: DUMMY_SP }))
}

pub(super) fn text(value: &str) -> Box<Expr> {
    Box::new(Expr::Lit(Lit::Str(Str::from(value))))
}

pub(super) fn number(value: f64) -> Box<Expr> {
    Box::new(Expr::from(value))
}

/// `object.property`
pub(super) fn member(object: Box<Expr>, property: &str) -> MemberExpr {
    let prop = MemberProp::Ident(IdentName::new(property.into(), DUMMY_SP));
    MemberExpr { span: DUMMY_SP, obj: object, prop }
}

/// `object[key]`
pub(super) fn element(object: Box<Expr>, key: Box<Expr>) -> MemberExpr {
    let prop = MemberProp::Computed(ComputedPropName { span: DUMMY_SP, expr: key });
    MemberExpr { span: DUMMY_SP, obj: object, prop }
}

/// `member = value`
pub(super) fn set_member(member: MemberExpr, value: Box<Expr>) -> Box<Expr> {
    assign(AssignTarget::Simple(SimpleAssignTarget::Member(member)), value)
}

/// `name = value`
pub(super) fn set_name(ident: &Ident, value: Box<Expr>) -> Box<Expr> {
    assign(AssignTarget::Simple(SimpleAssignTarget::Ident(BindingIdent::from(ident.clone()))), value)
}

fn assign(left: AssignTarget, right: Box<Expr>) -> Box<Expr> {
    Box::new(Expr::Assign(AssignExpr { span: DUMMY_SP, op: AssignOp::Assign, left, right }))
}

pub(super) fn binary(left: Box<Expr>, op: BinaryOp, right: Box<Expr>) -> Box<Expr> {
    Box::new(Expr::Bin(BinExpr { span: DUMMY_SP, op, left, right }))
}

/// `function(…arguments)`
pub(super) fn call(function: Box<Expr>, arguments: impl IntoIterator<Item = Box<Expr>>) -> Box<Expr> {
    let args = arguments.into_iter().map(ExprOrSpread::from).collect();
    Box::new(Expr::Call(CallExpr { callee: Callee::Expr(function), args, ..CallExpr::default() }))
}

/// `object.method(…arguments)`
pub(super) fn call_method(
    object: &Ident,
    method: &str,
    arguments: impl IntoIterator<Item = Box<Expr>>,
) -> Box<Expr> {
    call(Box::new(Expr::Member(member(name(object), method))), arguments)
}

/// `[…elements]`
pub(super) fn array(elements: impl IntoIterator<Item = Box<Expr>>) -> Box<Expr> {
    let elems = elements.into_iter().map(|element| Some(ExprOrSpread::from(element))).collect();
    Box::new(Expr::Array(ArrayLit { span: DUMMY_SP, elems }))
}

/// `{ key: value, … }`
pub(super) fn object(properties: Vec<(PropName, Box<Expr>)>) -> Box<Expr> {
    let property = |(key, value)| PropOrSpread::Prop(Box::new(Prop::KeyValue(KeyValueProp { key, value })));
    Box::new(Expr::Object(ObjectLit {
        span: DUMMY_SP,
        props: properties.into_iter().map(property).collect(),
    }))
}

/// `[key]`, as the name of a property
pub(super) fn computed(key: Box<Expr>) -> PropName {
    PropName::Computed(ComputedPropName { span: DUMMY_SP, expr: key })
}

/// `key`, as the name of a property
pub(super) fn property(key: &str) -> PropName {
    PropName::Ident(IdentName::new(key.into(), DUMMY_SP))
}

/// `(…parameters) => value`
pub(super) fn arrow(parameters: Vec<&Ident>, value: Box<Expr>) -> Box<Expr> {
    Box::new(Expr::Arrow(ArrowExpr {
        params: parameters.into_iter().map(|ident| Pat::Ident(BindingIdent::from(ident.clone()))).collect(),
        body: Box::new(ArrowFunctionBody::Expr(value)),
        ..ArrowExpr::default()
    }))
}

/// `() => { statements }`
pub(super) fn arrow_body(statements: Vec<Stmt>, is_async: bool) -> Box<Expr> {
    let body = FunctionBody { span: DUMMY_SP, stmts: statements };
    let body = Box::new(ArrowFunctionBody::FunctionBody(body));
    Box::new(Expr::Arrow(ArrowExpr { body, is_async, ..ArrowExpr::default() }))
}

pub(super) fn statement(expression: Box<Expr>) -> Stmt {
    Stmt::Expr(ExprStmt { span: DUMMY_SP, expr: expression })
}

pub(super) fn returns(span: Span, value: Box<Expr>) -> Stmt {
    Stmt::Return(ReturnStmt { span, arg: Some(value) })
}

/// `const name = value`
pub(super) fn constant(span: Span, name: Pat, value: Box<Expr>) -> Stmt {
    variable(span, VarDeclKind::Const, name, Some(value))
}

/// `kind name = value`
pub(super) fn variable(span: Span, kind: VarDeclKind, name: Pat, value: Option<Box<Expr>>) -> Stmt {
    let declarator = VarDeclarator { span, name, init: value, definite: false };
    Stmt::from(VarDecl { span, kind, decls: vec![declarator], ..VarDecl::default() })
}

//! Short ways to make the nodes of a class.

use swc_common::{DUMMY_SP, Span};
use swc_ecma_ast::{
    BlockStmt, ClassMember, ClassMethod, Expr, Function, FunctionBody, Ident, Key, Lit, MemberExpr,
    MemberProp, MethodKind, Param, Pat, PrivateMethod, PrivateName, PrivateProp, PropName, StaticBlock, Stmt,
};

use super::super::make;

/// The two functions of an `accessor` field: they read and write `receiver.#storage`.
pub(super) fn storage_functions(receiver: Box<Expr>, storage: &PrivateName) -> (Function, Function) {
    let value = make::fresh("value");
    let read = Box::new(Expr::Member(private_member(receiver.clone(), storage)));
    let write = make::set_member(private_member(receiver, storage), make::name(&value));
    (
        function(Vec::new(), vec![make::returns(DUMMY_SP, read)]),
        function(vec![&value], vec![make::statement(write)]),
    )
}

/// Gives `value` the name `key` if it is a function or a class without a name:
/// `{ [key]: value }[key]`.
pub(super) fn named(value: Box<Expr>, key: Box<Expr>) -> Box<Expr> {
    let mut inner = &*value;
    while let Expr::Paren(paren) = inner {
        inner = &paren.expr;
    }
    let is_anonymous = match inner {
        Expr::Arrow(_) => true,
        Expr::Fn(function) => function.ident.is_none(),
        Expr::Class(class) => class.ident.is_none(),
        _ => false,
    };
    if !is_anonymous {
        return value;
    }
    let object = make::object(vec![(make::computed(key.clone()), value)]);
    Box::new(Expr::Member(make::element(object, key)))
}

/// The key of an `accessor` field that needs no runtime, as a value.
pub(super) fn key_text(key: &Key) -> Box<Expr> {
    match key {
        Key::Private(name) => make::text(&format!("#{}", name.name)),
        Key::Public(key) => key_expression(key.clone()),
    }
}

/// A key as an expression.
pub(super) fn key_expression(key: PropName) -> Box<Expr> {
    match key {
        PropName::Ident(name) => make::text(&name.sym),
        PropName::Str(text) => Box::new(Expr::Lit(Lit::Str(text))),
        PropName::Num(number) => Box::new(Expr::Lit(Lit::Num(number))),
        PropName::BigInt(number) => Box::new(Expr::Lit(Lit::BigInt(number))),
        PropName::Computed(computed) => computed.expr,
    }
}

/// As [`key_expression`], if it may be evaluated twice.
pub(super) fn fixed_key(key: &PropName) -> Option<Box<Expr>> {
    match key {
        PropName::Computed(_) => None,
        key => Some(key_expression(key.clone())),
    }
}

pub(super) fn kind_name(kind: MethodKind) -> &'static str {
    match kind {
        MethodKind::Method => "method",
        MethodKind::Getter => "getter",
        MethodKind::Setter => "setter",
    }
}

/// `object.#name`
pub(super) fn private_member(object: Box<Expr>, name: &PrivateName) -> MemberExpr {
    MemberExpr { span: DUMMY_SP, obj: object, prop: MemberProp::PrivateName(name.clone()) }
}

pub(super) fn private_field(
    span: Span,
    name: &PrivateName,
    value: Option<Box<Expr>>,
    is_static: bool,
) -> ClassMember {
    ClassMember::PrivateProp(PrivateProp {
        span,
        key: name.clone(),
        value,
        is_static,
        ..PrivateProp::default()
    })
}

pub(super) fn private_method(
    name: &PrivateName,
    kind: MethodKind,
    function: Function,
    is_static: bool,
) -> ClassMember {
    let function = Box::new(function);
    ClassMember::PrivateMethod(PrivateMethod {
        key: name.clone(),
        kind,
        function,
        is_static,
        ..PrivateMethod::default()
    })
}

pub(super) fn method(
    span: Span,
    key: PropName,
    kind: MethodKind,
    function: Function,
    is_static: bool,
) -> ClassMember {
    let function = Box::new(function);
    ClassMember::Method(ClassMethod { span, key, kind, function, is_static, ..ClassMethod::default() })
}

pub(super) fn function(parameters: Vec<&Ident>, statements: Vec<Stmt>) -> Function {
    Function {
        params: parameters.into_iter().map(|name| Param::from(Pat::from(name.clone()))).collect(),
        body: Some(FunctionBody { span: DUMMY_SP, stmts: statements }),
        ..Function::default()
    }
}

pub(super) fn static_block(statements: Vec<Stmt>) -> ClassMember {
    let body = BlockStmt { stmts: statements, ..BlockStmt::default() };
    ClassMember::StaticBlock(StaticBlock { span: DUMMY_SP, body })
}

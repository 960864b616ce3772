//! Lowers each enum to a namespace, which swc's TypeScript pass makes into a function that fills an
//! object.
//!
//! swc's own lowering of enums has three faults: a name that another part of the enum declares is
//! read from the scope around it, a computed text gets an entry that maps it to its name, and a
//! `const enum` is left out. It also evaluates every member, in time and memory that has to be
//! bounded. Here members are read when the script runs: nothing is evaluated.

use std::collections::{HashMap, HashSet};

use swc_common::{BytePos, SyntaxContext};
use swc_ecma_ast::{
    BinaryOp, Decl, Expr, ExprStmt, Id, Ident, Lit, Module, ModuleDecl, ModuleItem, Stmt, TsEnumDecl,
    TsEnumMember, TsEnumMemberId, TsModuleBlock, TsModuleDecl, TsModuleName, TsNamespaceBody, UnaryExpr,
    UnaryOp,
};
use swc_ecma_visit::{Visit, VisitMut, VisitMutWith, VisitWith};

use super::make;
use super::paths::{Paths, TOP_LEVEL};
use super::qualify::Qualifier;

/// Lowers all enums of a module whose names are resolved, and returns where they begin. `unresolved`
/// marks names without a visible declaration, among which swc's resolver counts an enum's own
/// members.
pub(super) fn lower(module: &mut Module, unresolved: SyntaxContext) -> HashSet<BytePos> {
    let mut names = Names::default();
    names.find_parts(&module.body, TOP_LEVEL, &mut KnownParts::default());
    module.visit_with(&mut names);
    let mut lowering = Lowering { names, unresolved, lowered: HashSet::new() };
    module.visit_mut_with(&mut lowering);
    lowering.lowered
}

/// The first part of each enum that a namespace exports.
#[derive(Default)]
struct KnownParts {
    paths: Paths,
    first: HashMap<usize, Id>,
}

/// The names of the members of each enum, of all its parts.
#[derive(Default)]
struct Names {
    members: HashMap<Id, HashSet<String>>,
    /// The first part of an enum whose parts are in several blocks of a namespace. In each block it
    /// is a name of its own.
    first: HashMap<Id, Id>,
}

impl Names {
    /// Finds the parts of the enums that the namespaces in `items` export. `path` is the namespace
    /// around them.
    fn find_parts(&mut self, items: &[ModuleItem], path: usize, known: &mut KnownParts) {
        for item in items {
            let (declaration, is_exported) = match item {
                ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => (&export.decl, true),
                ModuleItem::Stmt(Stmt::Decl(declaration)) => (declaration, false),
                _ => continue,
            };
            match declaration {
                Decl::TsEnum(declared) if is_exported && path != TOP_LEVEL => {
                    let id = declared.id.to_id();
                    let own = known.paths.inside(path, &declared.id);
                    let first = known.first.entry(own).or_insert_with(|| id.clone());
                    self.first.insert(id, first.clone());
                }
                Decl::TsModule(namespace) if is_exported || path == TOP_LEVEL => {
                    if let TsModuleName::Ident(name) = &namespace.id
                        && let Some(TsNamespaceBody::TsModuleBlock(block)) = &namespace.body
                    {
                        let inner = known.paths.inside(path, name);
                        self.find_parts(&block.body, inner, known);
                    }
                }
                _ => {}
            }
        }
    }

    fn key(&self, name: &Ident) -> Id {
        let id = name.to_id();
        self.first.get(&id).cloned().unwrap_or(id)
    }

    fn members(&self, name: &Ident) -> Option<&HashSet<String>> {
        self.members.get(&self.key(name))
    }
}

impl Visit for Names {
    fn visit_ts_enum_decl(&mut self, declared: &TsEnumDecl) {
        let names = declared.members.iter().map(|member| member_name(&member.id));
        let key = self.key(&declared.id);
        self.members.entry(key).or_default().extend(names);
        declared.visit_children_with(self);
    }
}

fn member_name(id: &TsEnumMemberId) -> String {
    match id {
        TsEnumMemberId::Ident(name) => name.sym.to_string(),
        TsEnumMemberId::Str(name) => name.value.to_string_lossy().into_owned(),
    }
}

struct Lowering {
    names: Names,
    unresolved: SyntaxContext,
    /// Where the enums begin that have been lowered.
    lowered: HashSet<BytePos>,
}

impl VisitMut for Lowering {
    fn visit_mut_module_items(&mut self, items: &mut Vec<ModuleItem>) {
        self.lower_all(items, |item| match item {
            ModuleItem::Stmt(Stmt::Decl(declaration)) => Some(declaration),
            ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => Some(&mut export.decl),
            _ => None,
        });
    }

    fn visit_mut_stmts(&mut self, statements: &mut Vec<Stmt>) {
        self.lower_all(statements, |statement| match statement {
            Stmt::Decl(declaration) => Some(declaration),
            _ => None,
        });
    }
}

impl Lowering {
    /// Lowers the enums in a list. A `const enum` whose members depend on nothing else goes to the
    /// front: TypeScript replaces its uses by the values, so it may be used above its declaration.
    fn lower_all<T>(&mut self, list: &mut Vec<T>, declaration: fn(&mut T) -> Option<&mut Decl>)
    where
        T: VisitMutWith<Self>,
    {
        let mut first = Vec::new();
        let mut rest = Vec::with_capacity(list.len());
        for mut item in list.drain(..) {
            item.visit_mut_with(self);
            let is_first = declaration(&mut item).is_some_and(|declaration| self.lower_one(declaration));
            if is_first { first.push(item) } else { rest.push(item) }
        }
        first.append(&mut rest);
        *list = first;
    }

    /// Lowers `declaration` if it is an enum. Returns whether it goes to the front of its list.
    fn lower_one(&mut self, declaration: &mut Decl) -> bool {
        let Decl::TsEnum(declared) = declaration else {
            return false;
        };
        // Unlike an ambient `const enum`, an ambient enum is an object of the surroundings.
        if declared.declare && !declared.is_const {
            return false;
        }
        self.lowered.insert(declared.span.lo);
        let names = self.names.members(&declared.id);
        for member in &mut declared.members {
            if let (Some(names), Some(value)) = (names, &mut member.init) {
                let mut qualifier = Qualifier::new(&*value, names, &declared.id, self.unresolved);
                value.visit_mut_with(&mut qualifier);
            }
        }
        let is_first = declared.is_const && {
            let mut others = Others { of: declared.id.to_id(), found: false };
            declared.members.visit_with(&mut others);
            !others.found
        };
        *declaration = Decl::TsModule(Box::new(namespace(declared)));
        is_first
    }
}

/// Searches for a name other than that of the enum.
struct Others {
    of: Id,
    found: bool,
}

impl Visit for Others {
    fn visit_expr(&mut self, expression: &Expr) {
        if let Expr::Ident(name) = expression {
            self.found |= name.to_id() != self.of;
        }
        expression.visit_children_with(self);
    }
}

/// `namespace E { E[E["A"] = 0] = "A"; … }`
fn namespace(declared: &mut TsEnumDecl) -> TsModuleDecl {
    let id = &declared.id;
    let mut previous = Previous::Nothing;
    let mut body: Vec<_> = declared
        .members
        .drain(..)
        .map(|member| {
            let span = member.span;
            let expr = assign(id, member, &mut previous);
            ModuleItem::Stmt(Stmt::Expr(ExprStmt { span, expr }))
        })
        .collect();
    // A namespace without statements would be left out.
    if body.is_empty() {
        body.push(ModuleItem::Stmt(make::statement(make::name(id))));
    }
    TsModuleDecl {
        span: declared.span,
        declare: false,
        global: false,
        namespace: true,
        id: TsModuleName::Ident(declared.id.clone()),
        body: Some(TsNamespaceBody::TsModuleBlock(TsModuleBlock { span: declared.span, body })),
    }
}

/// The member before, on which the value of a member without an initializer depends.
enum Previous {
    Nothing,
    Number(f64),
    Text,
    /// A value that is known when the script runs.
    Named(String),
}

/// Assigns the value of a member, and the name of a member that is a number.
fn assign(id: &Ident, member: TsEnumMember, previous: &mut Previous) -> Box<Expr> {
    let name = member_name(&member.id);
    let follows = member.init.is_none() && !matches!(previous, Previous::Text);
    let value = member.init.unwrap_or_else(|| match previous {
        Previous::Nothing => make::number(0.0),
        Previous::Number(value) => make::number(*value + 1.0),
        // TypeScript reports an error here, but still writes this value.
        Previous::Text => Expr::undefined(member.span),
        Previous::Named(name) => {
            let before = make::element(make::name(id), make::text(name));
            make::binary(Box::new(Expr::Member(before)), BinaryOp::Add, make::number(1.0))
        }
    });
    let class = match (follows, classify(&value)) {
        // What continues the member before it is a number.
        (true, Class::Open) => Class::Number,
        (_, class) => class,
    };
    *previous = match (class, literal(&value)) {
        (_, Some(value)) => Previous::Number(value),
        (Class::Text, None) => Previous::Text,
        (Class::Number | Class::Open, None) => Previous::Named(name.clone()),
    };
    let target = || make::element(make::name(id), make::text(&name));
    let assigned = make::set_member(target(), value);
    let named = |key| make::set_member(make::element(make::name(id), key), make::text(&name));
    match class {
        Class::Number => named(assigned),
        Class::Text => assigned,
        // `typeof (E["A"] = value) === "string" || (E[E["A"]] = "A")`
        Class::Open => {
            let kind =
                Box::new(Expr::Unary(UnaryExpr { span: member.span, op: UnaryOp::TypeOf, arg: assigned }));
            let is_text = make::binary(kind, BinaryOp::EqEqEq, make::text("string"));
            make::binary(is_text, BinaryOp::LogicalOr, named(Box::new(Expr::Member(target()))))
        }
    }
}

/// What the syntax of a value says about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Number,
    Text,
    /// Either: it shows only when the script runs.
    Open,
}

fn classify(value: &Expr) -> Class {
    match value {
        Expr::Lit(Lit::Num(_)) => Class::Number,
        Expr::Lit(Lit::Str(_)) | Expr::Tpl(_) => Class::Text,
        Expr::Paren(inner) => classify(&inner.expr),
        Expr::TsAs(inner) => classify(&inner.expr),
        Expr::TsConstAssertion(inner) => classify(&inner.expr),
        Expr::TsNonNull(inner) => classify(&inner.expr),
        Expr::TsSatisfies(inner) => classify(&inner.expr),
        Expr::TsTypeAssertion(inner) => classify(&inner.expr),
        Expr::Unary(unary) => match unary.op {
            UnaryOp::Plus | UnaryOp::Minus | UnaryOp::Tilde => Class::Number,
            UnaryOp::TypeOf => Class::Text,
            UnaryOp::Bang | UnaryOp::Void | UnaryOp::Delete => Class::Open,
        },
        Expr::Bin(binary) => match binary.op {
            BinaryOp::Add => match (classify(&binary.left), classify(&binary.right)) {
                (Class::Text, _) | (_, Class::Text) => Class::Text,
                (Class::Number, Class::Number) => Class::Number,
                _ => Class::Open,
            },
            BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Mod
            | BinaryOp::Exp
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::LShift
            | BinaryOp::RShift
            | BinaryOp::ZeroFillRShift => Class::Number,
            _ => Class::Open,
        },
        _ => Class::Open,
    }
}

/// Returns the value of a number, with or without a sign.
fn literal(value: &Expr) -> Option<f64> {
    match value {
        Expr::Lit(Lit::Num(number)) => Some(number.value),
        Expr::Unary(UnaryExpr { op: UnaryOp::Minus, arg, .. }) => match &**arg {
            Expr::Lit(Lit::Num(number)) => Some(-number.value),
            _ => None,
        },
        _ => None,
    }
}

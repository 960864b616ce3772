//! Reads from the tree which tools a script calls, and which of the calls every run has to make.
//!
//! A call is certain if it is reached whatever the script computes: it is awaited, in a statement of the top level or
//! of a function that such a statement calls; no condition, `try` or loop surrounds the statement, except a loop over a
//! list literal; and no `return` may come before it. An error before it may prevent it, but then the run fails too. A
//! name refers to a tool only if the script does not declare it itself; swc's resolver has marked the names that it
//! does not declare.

mod by_name;
mod flow;
mod literal;
mod names;
mod references;
mod syntax;

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use swc_common::{Span, Spanned as _, SyntaxContext};
use swc_ecma_ast::{
    ArrowExpr, ArrowFunctionBody, CallExpr, Callee, Decl, DefaultDecl, Expr, ExprOrSpread, Function, Id,
    ImportDecl, MemberExpr, MemberProp, Module, ModuleDecl, ModuleItem, Pat, Stmt,
};
use swc_ecma_visit::VisitWith;

use self::literal::UNKNOWN;
use self::names::Names;
use self::references::Reference;
pub(super) use self::syntax::bytes;
use self::syntax::{Call, plain};
use super::refuse;
use super::value::Value;
use crate::engine::fence::Part;
use crate::engine::survey::{Flow, FlowReader, Found, call_of};
use crate::run::check::survey::{Literal, Mistake, Survey, Target};

/// Maximum number of calls that are followed into the functions that they call.
const MAX_FOLLOWED: usize = 200;

/// Reads what `module` calls, whose names are resolved. Spans are byte offsets of the parsed text.
pub(super) fn survey(module: &Module, value: &Value, unresolved: SyntaxContext) -> Survey {
    let began = Instant::now();
    let names = Names::read(module, unresolved);
    if !names.mentions_tools {
        return Survey::default();
    }
    let mut surveyor = Surveyor {
        unresolved,
        survey: Survey::default(),
        aliases: HashMap::new(),
        functions: HashMap::new(),
        followed: HashSet::new(),
        flow: Flow::of_script(!names.is_opaque),
        is_value: false,
        is_in_switch: false,
        names,
    };
    for item in &module.body {
        surveyor.declare(item);
    }
    surveyor.module(module, value);
    surveyor.survey.took = began.elapsed();
    surveyor.survey
}

/// The imports of `module` that scripts cannot make. Imports that nothing uses are left out.
pub(super) fn refused_imports(part: Part<'_>, module: &Module, unresolved: SyntaxContext) -> Vec<Mistake> {
    let names = Names::read(module, unresolved);
    let imports = module.body.iter().filter_map(|item| match item {
        ModuleItem::ModuleDecl(ModuleDecl::Import(import)) if !import.type_only => Some(import),
        _ => None,
    });
    let is_used = |import: &ImportDecl| {
        let mut specifiers = import.specifiers.iter();
        import.specifiers.is_empty() || specifiers.any(|one| names.is_used(&one.local().to_id()))
    };
    let refused = imports.filter(|import| is_used(import)).filter_map(|import| {
        let error = refuse::check_specifier(part, &import.src).err()?;
        Some(Mistake { message: error.message, hint: error.hint, at: bytes(import.src.span) })
    });
    refused.collect()
}

/// A function that can be followed.
#[derive(Clone, Copy)]
enum Callable<'a> {
    Function(&'a Function),
    Arrow(&'a ArrowExpr),
}

struct Surveyor<'a> {
    unresolved: SyntaxContext,
    survey: Survey,
    names: Names,
    /// Constants that are servers and tools.
    aliases: HashMap<Id, Reference>,
    /// The functions of the top level.
    functions: HashMap<Id, Callable<'a>>,
    /// Those whose bodies were read where they are called.
    followed: HashSet<Id>,
    flow: Flow,
    /// Whether what is read gives the script's value, so that calls in it are awaited.
    is_value: bool,
    /// Whether `break` leaves a `switch`.
    is_in_switch: bool,
}

impl FlowReader for Surveyor<'_> {
    fn flow(&mut self) -> &mut Flow {
        &mut self.flow
    }
}

fn callable(expression: &Expr) -> Option<Callable<'_>> {
    match plain(expression) {
        Expr::Arrow(arrow) if !arrow.is_generator => Some(Callable::Arrow(arrow)),
        Expr::Fn(function) if !function.function.is_generator => Some(Callable::Function(&function.function)),
        _ => None,
    }
}

impl Callable<'_> {
    fn is_async(self) -> bool {
        match self {
            Self::Function(function) => function.is_async,
            Self::Arrow(arrow) => arrow.is_async,
        }
    }
}

impl<'a> Surveyor<'a> {
    /// Notes the functions of the top level.
    fn declare(&mut self, item: &'a ModuleItem) {
        let declaration = match item {
            ModuleItem::Stmt(Stmt::Decl(declaration)) => declaration,
            ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => &export.decl,
            _ => return,
        };
        match declaration {
            Decl::Fn(declared) if declared.function.body.is_some() && !declared.function.is_generator => {
                let id = declared.ident.to_id();
                if !self.names.assigned.contains(&id) {
                    self.functions.insert(id, Callable::Function(&declared.function));
                }
            }
            Decl::Var(variables) => {
                for variable in &variables.decls {
                    let (Pat::Ident(name), Some(init)) = (&variable.name, &variable.init) else { continue };
                    let id = name.id.to_id();
                    if let Some(function) = callable(init)
                        && !self.names.assigned.contains(&id)
                    {
                        self.functions.insert(id, function);
                    }
                }
            }
            _ => {}
        }
    }

    fn module(&mut self, module: &'a Module, value: &Value) {
        for item in &module.body {
            if let ModuleItem::ModuleDecl(ModuleDecl::Import(import)) = item {
                self.import(import);
            }
        }
        for item in &module.body {
            match item {
                ModuleItem::Stmt(Stmt::Expr(statement)) if is_value(value, statement.span) => {
                    self.is_value = true;
                    match callable(&statement.expr) {
                        Some(function) if matches!(value, Value::CallExpression(_)) => {
                            self.body(function, true);
                        }
                        _ => self.awaited(&statement.expr),
                    }
                    self.is_value = false;
                }
                ModuleItem::Stmt(statement) if is_value(value, statement.span()) => {
                    self.is_value = true;
                    statement.visit_with(self);
                    self.is_value = false;
                }
                ModuleItem::Stmt(statement) => statement.visit_with(self),
                ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultExpr(export)) => {
                    match callable(&export.expr) {
                        Some(function) => self.body(function, true),
                        None => self.awaited(&export.expr),
                    }
                }
                ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)) => match &export.decl {
                    DefaultDecl::Fn(function) if !function.function.is_generator => {
                        self.body(Callable::Function(&function.function), true);
                    }
                    other => other.visit_with(self),
                },
                ModuleItem::ModuleDecl(other) => other.visit_with(self),
            }
            self.flow.next();
        }
        if let Value::Call(name) = value {
            self.follow(&name.to_id(), true);
        }
        // Functions that nothing calls for certain, in the order of the text.
        self.flow.is_certain = false;
        let mut rest: Vec<(Id, Callable<'a>)> = self.functions.drain().collect();
        rest.sort_by_key(|(_, function)| match function {
            Callable::Function(function) => function.span.lo,
            Callable::Arrow(arrow) => arrow.span.lo,
        });
        for (id, function) in rest {
            if !self.followed.contains(&id) {
                self.body(function, true);
            }
        }
    }

    /// Reads the body of the function of this name, if it is known and was not read yet.
    fn follow(&mut self, id: &Id, is_awaited: bool) {
        let Some(&function) = self.functions.get(id) else { return };
        if self.followed.len() < MAX_FOLLOWED && self.followed.insert(id.clone()) {
            self.body(function, is_awaited);
        }
    }

    /// Reads the body of a function where it is called.
    fn body(&mut self, function: Callable<'_>, is_awaited: bool) {
        let outer = std::mem::replace(&mut self.is_in_switch, false);
        self.called(function.is_async(), is_awaited, |own| match function {
            Callable::Function(function) => {
                own.doubtful(|own| function.params.visit_with(own));
                if let Some(body) = &function.body {
                    body.stmts.visit_with(own);
                }
            }
            Callable::Arrow(arrow) => {
                own.doubtful(|own| arrow.params.visit_with(own));
                match &*arrow.body {
                    ArrowFunctionBody::FunctionBody(body) => body.stmts.visit_with(own),
                    ArrowFunctionBody::Expr(value) => own.returned(value),
                }
            }
        });
        self.is_in_switch = outer;
    }

    /// Reads a function that is not called here.
    fn uncalled(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = (self.is_value, self.is_in_switch);
        (self.is_value, self.is_in_switch) = (false, false);
        self.function(read);
        (self.is_value, self.is_in_switch) = outer;
    }

    /// Reads an expression that is awaited.
    fn awaited(&mut self, expression: &Expr) {
        match plain(expression) {
            Expr::Call(call) => self.call(call, true),
            Expr::Await(inner) => self.awaited(&inner.arg),
            other => other.visit_with(self),
        }
    }

    /// Reads what the function that is read returns.
    fn returned(&mut self, expression: &Expr) {
        if self.flow.awaits_returns { self.awaited(expression) } else { expression.visit_with(self) }
    }

    fn call(&mut self, call: &CallExpr, is_awaited: bool) {
        match &call.callee {
            Callee::Expr(callee) => {
                self.call_of_value(Call { span: call.span, callee, args: &call.args }, is_awaited);
            }
            Callee::Import(_) => {
                self.import_call(call, is_awaited);
                call.args.visit_with(self);
            }
            Callee::Super(_) => call.args.visit_with(self),
        }
    }

    fn call_of_value(&mut self, call: Call<'_>, is_awaited: bool) {
        let callee = plain(call.callee);
        if is_awaited && self.is_promise_all(callee) && self.all(call.args) {
            return;
        }
        call.args.visit_with(self);
        let is_certain = self.flow.is_certain && is_awaited;
        match self.reference(callee) {
            Some(Found { reference: Reference::Tool(server, tool), server_at, tool_at }) => {
                let arguments = literal::argument(call, 0);
                return self.add(call.span, server.tool(tool), arguments, server_at, tool_at, is_certain);
            }
            // `tools.mcp__server__tool(…)`
            Some(Found { reference: Reference::Server(server), server_at: at, .. })
                if server.is_full_name() =>
            {
                let arguments = literal::argument(call, 0);
                return self.add(call.span, Target::Full(server.name), arguments, at, at, is_certain);
            }
            _ => {}
        }
        match callee {
            Expr::Ident(name) if name.ctxt == self.unresolved => {
                self.global_call(&name.sym, call, is_awaited);
            }
            Expr::Ident(name) => {
                if self.flow.is_certain {
                    self.follow(&name.to_id(), is_awaited);
                }
            }
            Expr::Member(member) => {
                if !self.mcp_call(member, call, is_awaited) {
                    member.visit_with(self);
                    self.added_calls(member, call);
                    // `tools[name]()`.
                    if let Some(Found { reference: Reference::Tools | Reference::Server(_), .. }) =
                        self.reference(&member.obj)
                    {
                        self.add(call.span, Target::Unknown, UNKNOWN, call.span, call.span, false);
                    }
                }
            }
            other => match callable(other) {
                Some(function) => self.body(function, is_awaited),
                None => other.visit_with(self),
            },
        }
    }

    fn is_promise_all(&self, callee: &Expr) -> bool {
        let Expr::Member(member) = callee else { return false };
        matches!(&member.prop, MemberProp::Ident(name) if name.sym == "all") && self.is_promise(&member.obj)
    }

    /// Whether the expression is the global `Promise`.
    fn is_promise(&self, expression: &Expr) -> bool {
        matches!(plain(expression), Expr::Ident(name)
            if name.ctxt == self.unresolved
                && name.sym == "Promise"
                && !self.names.assigned.contains(&name.to_id()))
    }

    /// Reads the calls of an awaited `Promise.all([…])` with these arguments, or of one whose list a callback makes of
    /// another. Returns whether they are written out.
    fn all(&mut self, args: &[ExprOrSpread]) -> bool {
        let [list] = args else { return false };
        let list = match plain(&list.expr) {
            Expr::Array(list) => list,
            Expr::Call(made) => return self.mapped(made),
            _ => return false,
        };
        for item in list.elems.iter().flatten() {
            match item.spread {
                Some(_) => item.expr.visit_with(self),
                None => self.awaited(&item.expr),
            }
        }
        true
    }

    /// Reads `list.map(callback)` where the results of the callback are awaited. Returns whether
    /// the callback is called for certain: the list is a literal, and not empty.
    fn mapped(&mut self, call: &CallExpr) -> bool {
        let (Callee::Expr(callee), [callback]) = (&call.callee, call.args.as_slice()) else { return false };
        let Expr::Member(MemberExpr { obj: list, prop: MemberProp::Ident(method), .. }) = plain(callee)
        else {
            return false;
        };
        if method.sym != "map" || callback.spread.is_some() || !self.names.is_filled(list) {
            return false;
        }
        match (callable(&callback.expr), plain(&callback.expr)) {
            (Some(function), _) => {
                list.visit_with(self);
                self.body(function, true);
            }
            (None, Expr::Ident(name)) if self.functions.contains_key(&name.to_id()) => {
                list.visit_with(self);
                self.follow(&name.to_id(), true);
            }
            _ => return false,
        }
        true
    }

    fn add(
        &mut self,
        span: Span,
        target: Target,
        arguments: Literal,
        server_at: Span,
        tool_at: Span,
        is_certain: bool,
    ) {
        let spans = [bytes(span), bytes(server_at), bytes(tool_at)];
        self.survey.add(call_of(target, arguments, spans, is_certain));
    }
}

/// Whether the statement gives the script's value.
fn is_value(value: &Value, span: Span) -> bool {
    matches!(value, Value::Expression(at) | Value::Completion(at) | Value::CallExpression(at) if *at == span.lo)
}

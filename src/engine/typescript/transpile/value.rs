//! Decides from the syntax tree alone which expression gives the script's value.

use swc_common::{BytePos, Spanned};
use swc_ecma_ast::{
    Decl, DefaultDecl, ExportDecl, ExportSpecifier, Expr, Ident, Lit, Module, ModuleDecl, ModuleExportName,
    ModuleItem, NamedExport, Stmt, VarDecl,
};
use swc_ecma_visit::{Visit, VisitWith};

use super::completion;

/// The source of a script's value.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// Nothing: the value is `undefined`.
    Nothing,
    /// A `return` at the top level.
    Returned,
    /// `export default`, in one of its forms.
    Exported,
    /// The function of this name, called with the run's input.
    Call(Ident),
    /// The expression statement that starts at this position.
    Expression(BytePos),
    /// The completion value of the statement that starts at this position.
    Completion(BytePos),
    /// A function in the expression statement that starts at this position, called with the run's
    /// input.
    CallExpression(BytePos),
}

/// Decides the value of `module`, whose names are resolved and whose types are still present.
pub(super) fn decide(module: &Module, returns: bool) -> Value {
    if returns {
        return Value::Returned;
    }
    if module.body.iter().any(exports_default) {
        return Value::Exported;
    }
    if let Some(name) = entry_point(module) {
        return Value::Call(name.clone());
    }
    let mut running = module.body.iter().filter(|item| runs(item));
    if let (Some(only), None) = (running.next(), running.next()) {
        if let Some(name) = function_name(only) {
            return Value::Call(name.clone());
        }
        if let ModuleItem::Stmt(Stmt::Expr(statement)) = only
            && is_function(&statement.expr)
        {
            return Value::CallExpression(statement.span.lo);
        }
    }
    match module.body.iter().rev().find(|item| !is_declaration(item)) {
        Some(ModuleItem::Stmt(Stmt::Expr(statement))) => Value::Expression(statement.span.lo),
        Some(ModuleItem::Stmt(statement @ (Stmt::If(_) | Stmt::Try(_) | Stmt::Block(_))))
            if completion::has_value(statement) =>
        {
            Value::Completion(statement.span_lo())
        }
        _ => Value::Nothing,
    }
}

fn exports_default(item: &ModuleItem) -> bool {
    match item {
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultExpr(_)) => true,
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)) => {
            !matches!(&export.decl, DefaultDecl::TsInterfaceDecl(_))
                && !matches!(&export.decl, DefaultDecl::Fn(function) if function.function.body.is_none())
        }
        ModuleItem::ModuleDecl(ModuleDecl::ExportNamed(NamedExport {
            specifiers, type_only: false, ..
        })) => {
            specifiers.iter().any(|specifier| exported_name(specifier).is_some_and(|name| name == "default"))
        }
        _ => false,
    }
}

/// Returns the name under which `export { … }` exports.
fn exported_name(specifier: &ExportSpecifier) -> Option<&str> {
    match specifier {
        ExportSpecifier::Named(named) if !named.is_type_only => {
            match named.exported.as_ref().unwrap_or(&named.orig) {
                ModuleExportName::Ident(name) => Some(&name.sym),
                ModuleExportName::Str(name) => name.value.as_str(),
            }
        }
        _ => None,
    }
}

/// Returns the function `main`, or else `run`, unless other code refers to it.
fn entry_point(module: &Module) -> Option<&Ident> {
    ["main", "run"].into_iter().find_map(|wanted| {
        let named = |item: &&ModuleItem| function_name(item).is_some_and(|name| name.sym == wanted);
        let item = module.body.iter().find(named)?;
        let name = function_name(item)?;
        let mut uses = Uses { of: name, found: false };
        for other in module.body.iter().filter(|other| !std::ptr::eq(*other, item)) {
            // An export is not a use, and an overload belongs to the function itself.
            let exports = matches!(other, ModuleItem::ModuleDecl(ModuleDecl::ExportNamed(_)));
            let overloads =
                function_declaration(other).is_some_and(|(other, _)| other.to_id() == name.to_id());
            if !exports && !overloads {
                other.visit_with(&mut uses);
            }
        }
        (!uses.found).then_some(name)
    })
}

/// Searches for a use of a name.
struct Uses<'a> {
    of: &'a Ident,
    found: bool,
}

impl Visit for Uses<'_> {
    fn visit_ident(&mut self, name: &Ident) {
        self.found |= name.sym == self.of.sym && name.ctxt == self.of.ctxt;
    }
}

/// Returns the name of a function declaration, exported or not, and whether it has a body.
fn function_declaration(item: &ModuleItem) -> Option<(&Ident, bool)> {
    match declaration(item)? {
        Decl::Fn(function) => Some((&function.ident, function.function.body.is_some())),
        _ => None,
    }
}

/// Returns the name of a function that the item declares and that may be called for the script's
/// value.
///
/// Generators are excluded: calling one returns an iterator, which is never the intended value.
fn function_name(item: &ModuleItem) -> Option<&Ident> {
    match declaration(item)? {
        Decl::Fn(function) if function.function.body.is_some() && !function.function.is_generator => {
            Some(&function.ident)
        }
        Decl::Var(variables) => single_function(variables),
        _ => None,
    }
}

fn single_function(variables: &VarDecl) -> Option<&Ident> {
    let [variable] = variables.decls.as_slice() else {
        return None;
    };
    let name = variable.name.as_ident()?;
    variable.init.as_deref().filter(|init| is_function(init)).map(|_| &name.id)
}

fn declaration(item: &ModuleItem) -> Option<&Decl> {
    match item {
        ModuleItem::Stmt(Stmt::Decl(declaration))
        | ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(ExportDecl { decl: declaration, .. })) => {
            Some(declaration)
        }
        _ => None,
    }
}

/// Returns whether `expression` is a function expression that should be called.
pub(super) fn is_function(expression: &Expr) -> bool {
    match expression {
        Expr::Arrow(_) => true,
        Expr::Fn(function) => !function.function.is_generator,
        Expr::Paren(inner) => is_function(&inner.expr),
        Expr::TsAs(inner) => is_function(&inner.expr),
        Expr::TsSatisfies(inner) => is_function(&inner.expr),
        Expr::TsConstAssertion(inner) => is_function(&inner.expr),
        Expr::TsNonNull(inner) => is_function(&inner.expr),
        Expr::TsTypeAssertion(inner) => is_function(&inner.expr),
        _ => false,
    }
}

/// Returns whether any of the item exists at run time. Imports and directives do not count.
fn runs(item: &ModuleItem) -> bool {
    match item {
        ModuleItem::ModuleDecl(ModuleDecl::Import(_) | ModuleDecl::ExportNamed(_))
        | ModuleItem::Stmt(Stmt::Empty(_)) => false,
        ModuleItem::Stmt(Stmt::Expr(statement)) => !matches!(*statement.expr, Expr::Lit(Lit::Str(_))),
        _ => match declaration(item) {
            Some(Decl::TsInterface(_) | Decl::TsTypeAlias(_)) => false,
            Some(Decl::Fn(function)) => function.function.body.is_some(),
            Some(Decl::TsModule(module)) => !module.declare,
            Some(Decl::TsEnum(declared)) => !declared.declare,
            Some(Decl::Class(class)) => !class.declare,
            Some(Decl::Var(variables)) => !variables.declare,
            _ => true,
        },
    }
}

/// Returns whether the item is a declaration that may follow the last expression.
fn is_declaration(item: &ModuleItem) -> bool {
    match item {
        ModuleItem::Stmt(Stmt::Empty(_)) => true,
        ModuleItem::Stmt(Stmt::Decl(Decl::Var(variables))) => variables.declare,
        ModuleItem::Stmt(Stmt::Decl(Decl::Using(_))) => false,
        ModuleItem::Stmt(Stmt::Decl(_)) => true,
        ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => !export.decl.is_var(),
        ModuleItem::ModuleDecl(_) => true,
        ModuleItem::Stmt(_) => false,
    }
}

/// Returns whether `item` is the expression statement that starts at `at`.
pub(super) fn begins_at(item: &ModuleItem, at: BytePos) -> bool {
    matches!(item, ModuleItem::Stmt(Stmt::Expr(statement)) if statement.span_lo() == at)
}

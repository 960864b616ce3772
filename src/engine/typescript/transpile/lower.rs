//! Lowers the author's module to the statements of a function body.

use std::cell::OnceCell;

use swc_common::{DUMMY_SP, Span, Spanned, SyntaxContext};
use swc_ecma_ast::{
    AwaitExpr, BindingIdent, CallExpr, Callee, ClassDecl, Decl, DefaultDecl, EmptyStmt, ExportSpecifier,
    Expr, ExprOrSpread, ExprStmt, FnDecl, Ident, IdentName, Import as ImportCallee, ImportDecl, ImportPhase,
    ImportSpecifier, KeyValuePatProp, MemberExpr, MemberProp, Module, ModuleDecl, ModuleExportName,
    ModuleItem, ObjectPat, ObjectPatProp, Pat, PropName, Stmt, VarDeclKind,
};

use super::error::{TranspileError, TranspileErrorKind};
use super::output::{Import, ImportedName};
use super::positions::{Location, LocationIndex};
use super::value::{Value, begins_at, is_function};
use super::{completion, make, refuse};
use crate::engine::fence::Part;

/// The statements of the function body, and the properties that the wrapper depends on.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) body: Vec<Stmt>,
    pub(super) imports: Vec<Import>,
    /// Whether the wrapper must call the returned value if it is a function.
    pub(super) calls_value: bool,
    /// Whether a name was generated that the author may have used too.
    pub(super) made_up_name: bool,
}

/// Lowers `module`, whose types have been removed. `unresolved` marks the names of globals.
pub(super) fn lower(
    part: Part<'_>,
    module: Module,
    value: &Value,
    unresolved: SyntaxContext,
) -> Result<Lowered, TranspileError> {
    let mut lowering = Lowering {
        part,
        unresolved,
        locations: OnceCell::new(),
        imports: Vec::new(),
        hoisted: Vec::new(),
        end: None,
        made_up: None,
    };
    let mut body = Vec::with_capacity(module.body.len() + 1);
    let mut items = module.body.into_iter();
    while let Some(item) = items.next() {
        if let Value::Expression(at) | Value::CallExpression(at) = value
            && begins_at(&item, *at)
            && let ModuleItem::Stmt(Stmt::Expr(statement)) = item
        {
            match value {
                Value::CallExpression(_) => lowering.end = Some(FunctionResult::Call(statement.expr)),
                _ if items.as_slice().iter().all(does_nothing) => {
                    body.push(make::returns(statement.span, statement.expr));
                }
                // Declarations follow that run before the value is returned, so the value is stored
                // until then.
                _ => body.push(lowering.hold(statement.span, statement.expr)),
            }
            continue;
        }
        match item {
            ModuleItem::Stmt(mut statement) => {
                if matches!(value, Value::Completion(at) if statement.span_lo() == *at) {
                    body.push(lowering.keep(&mut statement));
                }
                body.push(statement);
            }
            ModuleItem::ModuleDecl(declaration) => body.extend(lowering.declaration(declaration)?),
        }
    }
    if let Value::Call(name) = value {
        lowering.end = Some(FunctionResult::Call(make::name(name)));
    }
    let calls_value = matches!(lowering.end, Some(FunctionResult::Exported(_)));
    match lowering.end.take() {
        Some(FunctionResult::Call(function)) => {
            let call = lowering.call(function);
            body.push(make::returns(DUMMY_SP, call));
        }
        Some(FunctionResult::Return(name) | FunctionResult::Exported(name)) => {
            body.push(make::returns(DUMMY_SP, make::name(&name)));
        }
        None => {}
    }
    let mut hoisted = lowering.hoisted;
    hoisted.append(&mut body);
    Ok(Lowered {
        body: hoisted,
        imports: lowering.imports,
        calls_value,
        made_up_name: lowering.made_up.is_some(),
    })
}

/// Returns whether the item has no effect when it is reached, so that the value may be returned
/// before it.
fn does_nothing(item: &ModuleItem) -> bool {
    match item {
        ModuleItem::Stmt(Stmt::Empty(_) | Stmt::Decl(Decl::Fn(_))) => true,
        ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => export.decl.is_fn_decl(),
        ModuleItem::Stmt(Stmt::Decl(Decl::Var(variables))) => {
            variables.decls.iter().all(|one| one.init.is_none())
        }
        ModuleItem::ModuleDecl(ModuleDecl::Import(_) | ModuleDecl::ExportNamed(_)) => true,
        _ => false,
    }
}

/// What the body returns at its end.
enum FunctionResult {
    /// The result of calling the function.
    Call(Box<Expr>),
    /// The value of the variable.
    Return(Ident),
    /// The value of the variable, which is called if it is a function.
    Exported(Ident),
}

struct Lowering<'a> {
    part: Part<'a>,
    unresolved: SyntaxContext,
    /// Built for the first import.
    locations: OnceCell<LocationIndex>,
    imports: Vec<Import>,
    hoisted: Vec<Stmt>,
    end: Option<FunctionResult>,
    made_up: Option<Ident>,
}

impl Lowering<'_> {
    fn declaration(&mut self, declaration: ModuleDecl) -> Result<Option<Stmt>, TranspileError> {
        Ok(match declaration {
            ModuleDecl::Import(import) => {
                self.import(&import)?;
                None
            }
            ModuleDecl::ExportDecl(export) => Some(Stmt::Decl(export.decl)),
            ModuleDecl::ExportNamed(export) => {
                for specifier in &export.specifiers {
                    self.export(specifier)?;
                }
                None
            }
            ModuleDecl::ExportDefaultExpr(export) if is_function(&export.expr) => {
                self.end = Some(FunctionResult::Call(export.expr));
                None
            }
            ModuleDecl::ExportDefaultExpr(export) => Some(self.export_value(export.span, export.expr)),
            ModuleDecl::ExportDefaultDecl(export) => match export.decl {
                DefaultDecl::Fn(function) => {
                    let generator = function.function.is_generator;
                    match function.ident {
                        Some(name) => {
                            self.end = Some(if generator {
                                FunctionResult::Return(name.clone())
                            } else {
                                FunctionResult::Call(Box::new(Expr::Ident(name.clone())))
                            });
                            let declared =
                                FnDecl { ident: name, declare: false, function: function.function };
                            Some(Stmt::Decl(Decl::Fn(declared)))
                        }
                        None if generator => {
                            Some(self.export_value(export.span, Box::new(Expr::Fn(function))))
                        }
                        None => {
                            self.end = Some(FunctionResult::Call(Box::new(Expr::Fn(function))));
                            None
                        }
                    }
                }
                DefaultDecl::Class(class) => match class.ident {
                    Some(name) => {
                        self.end = Some(FunctionResult::Return(name.clone()));
                        let declared = ClassDecl { ident: name, declare: false, class: class.class };
                        Some(Stmt::Decl(Decl::Class(declared)))
                    }
                    None => Some(self.export_value(export.span, Box::new(Expr::Class(class)))),
                },
                DefaultDecl::TsInterfaceDecl(_) => None,
            },
            // None of these gets here: the passes remove some, and `refuse` rejects the others.
            ModuleDecl::ExportAll(_)
            | ModuleDecl::TsImportEquals(_)
            | ModuleDecl::TsExportAssignment(_)
            | ModuleDecl::TsNamespaceExport(_) => Some(Stmt::Empty(EmptyStmt { span: DUMMY_SP })),
        })
    }

    /// Lowers `export { a, b as default }`: the names are declared elsewhere, so only the default
    /// matters.
    fn export(&mut self, specifier: &ExportSpecifier) -> Result<(), TranspileError> {
        let ExportSpecifier::Named(named) = specifier else {
            return Ok(());
        };
        let ModuleExportName::Ident(local) = &named.orig else {
            return Ok(());
        };
        if local.ctxt == self.unresolved {
            let message = format!("`{}` is exported and not declared", local.sym);
            return Err(refuse::error(
                self.part,
                TranspileErrorKind::Syntax,
                local.span,
                &message,
                "declare it, or leave the export out",
            ));
        }
        if matches!(&named.exported, Some(ModuleExportName::Ident(name)) if name.sym == "default") {
            self.end = Some(FunctionResult::Exported(local.clone()));
        }
        Ok(())
    }

    /// Stores the value of `expression` in a generated variable until the end of the body.
    fn hold(&mut self, span: Span, expression: Box<Expr>) -> Stmt {
        let name = self.made_up_name();
        self.end = Some(FunctionResult::Return(name.clone()));
        make::constant(span, Pat::Ident(BindingIdent::from(name)), expression)
    }

    /// Makes `statement` store its completion value in a generated variable until the end of the
    /// body. Returns the declaration of that variable.
    fn keep(&mut self, statement: &mut Stmt) -> Stmt {
        let name = self.made_up_name();
        completion::keep(statement, &name);
        self.end = Some(FunctionResult::Return(name.clone()));
        make::variable(DUMMY_SP, VarDeclKind::Let, Pat::Ident(BindingIdent::from(name)), None)
    }

    fn export_value(&mut self, span: Span, expression: Box<Expr>) -> Stmt {
        let name = self.made_up_name();
        self.end = Some(FunctionResult::Exported(name.clone()));
        make::constant(span, Pat::Ident(BindingIdent::from(name)), expression)
    }

    /// Generates a name that swc's pass `hygiene` keeps apart from all of the author's names.
    fn made_up_name(&mut self) -> Ident {
        let name = make::fresh("result");
        self.made_up = Some(name.clone());
        name
    }

    /// Calls `function` with the run's input, read as a property of the global object: the script
    /// may have declared a name `input`.
    fn call(&self, function: Box<Expr>) -> Box<Expr> {
        let globals = Ident::new("globalThis".into(), DUMMY_SP, self.unresolved);
        let input = MemberExpr {
            span: DUMMY_SP,
            obj: Box::new(Expr::Ident(globals)),
            prop: MemberProp::Ident(IdentName::new("input".into(), DUMMY_SP)),
        };
        Box::new(Expr::Call(CallExpr {
            span: DUMMY_SP,
            callee: Callee::Expr(function),
            args: vec![ExprOrSpread { spread: None, expr: Box::new(Expr::Member(input)) }],
            ..CallExpr::default()
        }))
    }

    fn location(&self, span: Span) -> Location {
        let Part { text, lines_before } = self.part;
        self.locations.get_or_init(|| LocationIndex::new(text, lines_before)).location(text, span.lo)
    }

    /// Lowers an import to `const { … } = await import("mcp:…")` at the top of the body.
    fn import(&mut self, import: &ImportDecl) -> Result<(), TranspileError> {
        let specifier = refuse::check_specifier(self.part, &import.src)?;
        let mut names = Vec::new();
        let mut properties = Vec::new();
        let mut namespaces = Vec::new();
        for imported in &import.specifiers {
            let (key, local) = match imported {
                ImportSpecifier::Namespace(namespace) => {
                    namespaces.push(namespace.local.clone());
                    continue;
                }
                ImportSpecifier::Default(default) => {
                    (PropName::Ident(IdentName::new("default".into(), default.span)), &default.local)
                }
                ImportSpecifier::Named(named) => {
                    let key = match &named.imported {
                        None => PropName::Ident(named.local.clone().into()),
                        Some(ModuleExportName::Ident(name)) => PropName::Ident(name.clone().into()),
                        Some(ModuleExportName::Str(name)) => PropName::Str(name.clone()),
                    };
                    (key, &named.local)
                }
            };
            names.push(ImportedName {
                name: match &key {
                    PropName::Ident(name) => name.sym.to_string(),
                    PropName::Str(name) => name.value.to_string_lossy().into_owned(),
                    _ => continue,
                },
                location: self.location(imported.span()),
            });
            properties.push(ObjectPatProp::KeyValue(KeyValuePatProp {
                key,
                value: Box::new(Pat::Ident(BindingIdent::from(local.clone()))),
            }));
        }
        let span = import.span;
        for namespace in namespaces {
            self.hoisted.push(make::constant(
                span,
                Pat::Ident(BindingIdent::from(namespace)),
                imported_value(import),
            ));
        }
        if !properties.is_empty() {
            let pattern = ObjectPat { span: DUMMY_SP, props: properties, optional: false, type_ann: None };
            self.hoisted.push(make::constant(span, Pat::Object(pattern), imported_value(import)));
        } else if import.specifiers.is_empty() {
            self.hoisted.push(Stmt::Expr(ExprStmt { span, expr: imported_value(import) }));
        }
        let location = self.location(import.src.span);
        self.imports.push(Import { specifier, names, location });
        Ok(())
    }
}

/// `await import("mcp:…")`.
fn imported_value(import: &ImportDecl) -> Box<Expr> {
    let source = ExprOrSpread { spread: None, expr: Box::new(Expr::from(*import.src.clone())) };
    let callee = Callee::Import(ImportCallee { span: import.span, phase: ImportPhase::Evaluation });
    let call = CallExpr { span: import.span, callee, args: vec![source], ..CallExpr::default() };
    Box::new(Expr::Await(AwaitExpr { span: import.span, arg: Box::new(Expr::Call(call)) }))
}

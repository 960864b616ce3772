//! Lowers classes with decorators, and `accessor` fields, which V8 does not have.
//!
//! swc's own lowering of decorators gives wrong values: for private accessors and their
//! `context.access`, for the names of anonymous classes, for inherited metadata, and in the order of
//! evaluation. Here the class stays a class: its decorators are evaluated where the language says,
//! inside computed keys, and a small runtime applies them.
//!
//! ```js
//! (() => {
//!     const state = __decorate([], "A");
//!     return class A {
//!         static { state.apply(this); }
//!         [state.add(0, "method", false, false, [[undefined, d]], "m")]() {}
//!     };
//! })()
//! ```
//!
//! The decorators of the class itself may replace it. Then its static fields and blocks belong to
//! the replacement, and its own name refers to the replacement, so they are initialized after the
//! class is evaluated; static private names are those of a class around it.

mod accessors;
mod class;
mod members;
mod names;
mod nodes;
mod scan;

use std::collections::{HashMap, HashSet};

use swc_common::{BytePos, Span, SyntaxContext};
use swc_ecma_ast::{
    AssignExpr, AssignOp, AssignPat, AssignPatProp, AssignTarget, AutoAccessor, Class, ClassDecl, ClassExpr,
    ClassMember, ClassProp, Decl, DefaultDecl, ExportDefaultExpr, ExportNamedSpecifier, ExportSpecifier,
    Expr, Id, Ident, Key, KeyValueProp, Lit, Module, ModuleDecl, ModuleExportName, ModuleItem, NamedExport,
    Pat, PrivateProp, PropName, SimpleAssignTarget, Stmt, TsModuleDecl, TsModuleName, VarDeclKind,
    VarDeclarator,
};
use swc_ecma_visit::{Visit, VisitMut, VisitMutWith, VisitWith};

use names::PrivateNames;

use super::make;
use crate::engine::fence::Part;

/// The name by which lowered code refers to [`RUNTIME`]. swc's pass `hygiene` keeps the author's names apart from it.
pub(super) const RUNTIME_NAME: &str = "__decorate";

/// An expression: the function that makes the state of a class.
pub(super) const RUNTIME: &str = include_str!("decorators/runtime.js");

/// Lowers the decorated classes of a module whose names are resolved. Returns whether lowered code
/// refers to the runtime. `unresolved` marks the names of globals.
pub(super) fn lower(part: Part<'_>, module: &mut Module, unresolved: SyntaxContext) -> bool {
    let mut namespaces = Namespaces::default();
    if ["namespace", "module"].iter().any(|word| part.text.contains(word)) {
        module.visit_with(&mut namespaces);
    }
    let mut lowering = Lowering {
        unresolved,
        namespaces: namespaces.0,
        private_names: PrivateNames::new(part.text),
        names: HashMap::new(),
        keyed_fields: HashSet::new(),
        needs_runtime: false,
    };
    module.visit_mut_with(&mut lowering);
    lowering.needs_runtime
}

/// The names of namespaces.
#[derive(Default)]
struct Namespaces(HashSet<Id>);

impl Visit for Namespaces {
    fn visit_ts_module_decl(&mut self, namespace: &TsModuleDecl) {
        if let TsModuleName::Ident(name) = &namespace.id {
            self.0.insert(name.to_id());
        }
        namespace.visit_children_with(self);
    }
}

/// What the lowering of a class refers to outside of it.
struct Surroundings<'a> {
    names: &'a mut PrivateNames,
    /// The runtime's name.
    runtime: &'a Ident,
    keyed_fields: &'a HashSet<BytePos>,
}

struct Lowering {
    unresolved: SyntaxContext,
    namespaces: HashSet<Id>,
    private_names: PrivateNames,
    /// Names that anonymous classes get from their context, by the position of the class.
    names: HashMap<BytePos, ClassName>,
    /// Fields with a key that is known only when the script runs, and that gives a class its name; by their
    /// positions.
    keyed_fields: HashSet<BytePos>,
    needs_runtime: bool,
}

/// The name that an anonymous class gets from its context.
#[derive(Clone, Debug)]
enum ClassName {
    Fixed(String),
    /// That of the key which the runtime has evaluated last. Nothing of the script runs in between.
    Key,
}

/// The lowering that a class needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// `accessor` fields become two methods and a private field.
    Accessors,
    Runtime,
}

fn needs(class: &Class) -> Needs {
    let mut needs = if class.decorators.is_empty() { Needs::Nothing } else { Needs::Runtime };
    for member in &class.body {
        let decorated = match member {
            ClassMember::Method(method) => !method.function.decorators.is_empty(),
            ClassMember::PrivateMethod(method) => !method.function.decorators.is_empty(),
            ClassMember::ClassProp(field) => {
                !field.decorators.is_empty() || names_by_key(&field.key, field.value.as_deref())
            }
            ClassMember::PrivateProp(field) => !field.decorators.is_empty(),
            ClassMember::AutoAccessor(accessor) => {
                if needs == Needs::Nothing {
                    needs = Needs::Accessors;
                }
                !accessors::is_simple(accessor)
            }
            _ => false,
        };
        if decorated {
            needs = Needs::Runtime;
        }
    }
    needs
}

/// Returns whether a key that is known only when the script runs names a class that needs the runtime.
fn names_by_key(key: &PropName, value: Option<&Expr>) -> bool {
    fixed_name(key).is_none() && value.and_then(anonymous).is_some_and(|class| needs(class) == Needs::Runtime)
}

/// The anonymous class that gets its name from its context.
fn anonymous(value: &Expr) -> Option<&Class> {
    match value {
        Expr::Paren(inner) => anonymous(&inner.expr),
        Expr::Class(ClassExpr { ident: None, class }) => Some(class),
        _ => None,
    }
}

impl Lowering {
    /// Lowers a class whose parts are lowered already. Returns the expression that makes it, or the
    /// class itself if it remains one.
    fn class(&mut self, ident: Option<Ident>, mut class: Box<Class>) -> Result<Box<Expr>, Box<Class>> {
        let is_keyed = |member: &ClassMember| matches!(member, ClassMember::ClassProp(field) if self.keyed_fields.contains(&field.span.lo));
        let needs = if class.body.iter().any(is_keyed) { Needs::Runtime } else { needs(&class) };
        match needs {
            Needs::Nothing => Err(class),
            Needs::Accessors => {
                accessors::lower_accessors(&mut self.private_names, &mut class);
                Err(class)
            }
            Needs::Runtime => {
                self.needs_runtime = true;
                let name = match &ident {
                    Some(ident) => Some(ClassName::Fixed(ident.sym.to_string())),
                    None => self.names.remove(&class.span.lo),
                };
                let surroundings = Surroundings {
                    names: &mut self.private_names,
                    runtime: &make::global(RUNTIME_NAME, self.unresolved),
                    keyed_fields: &self.keyed_fields,
                };
                Ok(class::lower(surroundings, self.unresolved, ident, name, class))
            }
        }
    }

    /// Notes that `value` gets `name` if it is an anonymous class.
    fn named(&mut self, value: &Expr, name: impl FnOnce() -> String) {
        if let Some(class) = anonymous(value).filter(|class| needs(class) == Needs::Runtime) {
            self.names.insert(class.span.lo, ClassName::Fixed(name()));
        }
    }

    /// Notes that `value` gets the name of `key` if it is an anonymous class. Returns whether the runtime has to
    /// evaluate the key right before the class.
    fn named_by(&mut self, value: &Expr, key: &PropName) -> bool {
        let Some(class) = anonymous(value).filter(|class| needs(class) == Needs::Runtime) else {
            return false;
        };
        let name = fixed_name(key).map_or(ClassName::Key, ClassName::Fixed);
        let is_keyed = matches!(name, ClassName::Key);
        self.names.insert(class.span.lo, name);
        is_keyed
    }

    /// `let ident = class`, or `var` for a class that a namespace adds to: its name is declared twice.
    fn variable(&self, span: Span, ident: Ident, class: Box<Expr>) -> Stmt {
        let merged = self.namespaces.contains(&ident.to_id());
        let kind = if merged { VarDeclKind::Var } else { VarDeclKind::Let };
        make::variable(span, kind, Pat::from(ident), Some(class))
    }

    fn export_default(&mut self, item: ModuleItem, items: &mut Vec<ModuleItem>) {
        let ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(mut export)) = item else {
            items.push(item);
            return;
        };
        let DefaultDecl::Class(exported) = export.decl else {
            items.push(ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)));
            return;
        };
        let ClassExpr { ident, class } = exported;
        if ident.is_none() {
            self.names.insert(class.span.lo, ClassName::Fixed("default".to_owned()));
        }
        let span = export.span;
        let expression = match self.class(ident.clone(), class) {
            Ok(expression) => expression,
            Err(class) => {
                export.decl = DefaultDecl::Class(ClassExpr { ident, class });
                items.push(ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)));
                return;
            }
        };
        let Some(ident) = ident else {
            let export = ExportDefaultExpr { span, expr: expression };
            items.push(ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultExpr(export)));
            return;
        };
        items.push(ModuleItem::Stmt(self.variable(span, ident.clone(), expression)));
        let specifier = ExportNamedSpecifier {
            span,
            orig: ModuleExportName::Ident(ident),
            exported: Some(ModuleExportName::Ident(Ident::new_no_ctxt("default".into(), span))),
            is_type_only: false,
        };
        items.push(ModuleItem::ModuleDecl(ModuleDecl::ExportNamed(NamedExport {
            span,
            specifiers: vec![ExportSpecifier::Named(specifier)],
            src: None,
            type_only: false,
            with: None,
        })));
    }
}

impl VisitMut for Lowering {
    fn visit_mut_module_items(&mut self, items: &mut Vec<ModuleItem>) {
        items.visit_mut_children_with(self);
        for item in std::mem::take(items) {
            self.export_default(item, items);
        }
    }

    fn visit_mut_export_default_expr(&mut self, export: &mut ExportDefaultExpr) {
        self.named(&export.expr, || "default".to_owned());
        export.visit_mut_children_with(self);
    }

    fn visit_mut_decl(&mut self, declaration: &mut Decl) {
        declaration.visit_mut_children_with(self);
        let Decl::Class(declared) = declaration else {
            return;
        };
        if declared.declare {
            return;
        }
        let ident = declared.ident.clone();
        let span = declared.class.span;
        let class = std::mem::take(&mut declared.class);
        match self.class(Some(ident.clone()), class) {
            Err(class) => *declaration = Decl::Class(ClassDecl { ident, declare: false, class }),
            Ok(expression) => {
                if let Stmt::Decl(variable) = self.variable(span, ident, expression) {
                    *declaration = variable;
                }
            }
        }
    }

    fn visit_mut_expr(&mut self, expression: &mut Expr) {
        expression.visit_mut_children_with(self);
        if let Expr::Class(ClassExpr { ident, class }) = expression {
            let (name, class) = (ident.clone(), std::mem::take(class));
            *expression = match self.class(name.clone(), class) {
                Ok(lowered) => *lowered,
                Err(class) => Expr::Class(ClassExpr { ident: name, class }),
            };
        }
    }

    fn visit_mut_var_declarator(&mut self, variable: &mut VarDeclarator) {
        if let (Pat::Ident(name), Some(value)) = (&variable.name, &variable.init) {
            self.named(value, || name.sym.to_string());
        }
        variable.visit_mut_children_with(self);
    }

    fn visit_mut_assign_expr(&mut self, assignment: &mut AssignExpr) {
        let names = matches!(
            assignment.op,
            AssignOp::Assign | AssignOp::AndAssign | AssignOp::OrAssign | AssignOp::NullishAssign
        );
        if let AssignTarget::Simple(SimpleAssignTarget::Ident(name)) = &assignment.left
            && names
        {
            self.named(&assignment.right, || name.sym.to_string());
        }
        assignment.visit_mut_children_with(self);
    }

    fn visit_mut_assign_pat(&mut self, pattern: &mut AssignPat) {
        if let Pat::Ident(name) = &*pattern.left {
            self.named(&pattern.right, || name.sym.to_string());
        }
        pattern.visit_mut_children_with(self);
    }

    fn visit_mut_assign_pat_prop(&mut self, property: &mut AssignPatProp) {
        if let Some(value) = &property.value {
            self.named(value, || property.key.sym.to_string());
        }
        property.visit_mut_children_with(self);
    }

    fn visit_mut_key_value_prop(&mut self, property: &mut KeyValueProp) {
        // `__proto__: value` is not a property, and gives no name.
        let is_keyed = !is_prototype(&property.key) && self.named_by(&property.value, &property.key);
        property.visit_mut_children_with(self);
        if is_keyed {
            let key = nodes::key_expression(property.key.clone());
            let runtime = make::global(RUNTIME_NAME, self.unresolved);
            property.key = make::computed(make::call_method(&runtime, "key", vec![key]));
        }
    }

    fn visit_mut_class_prop(&mut self, field: &mut ClassProp) {
        if let Some(value) = &field.value
            && self.named_by(value, &field.key)
        {
            self.keyed_fields.insert(field.span.lo);
        }
        field.visit_mut_children_with(self);
    }

    fn visit_mut_private_prop(&mut self, field: &mut PrivateProp) {
        if let Some(value) = &field.value {
            self.named(value, || format!("#{}", field.key.name));
        }
        field.visit_mut_children_with(self);
    }

    fn visit_mut_auto_accessor(&mut self, accessor: &mut AutoAccessor) {
        if let Some(value) = &accessor.value {
            let is_keyed = match &accessor.key {
                Key::Private(name) => {
                    self.named(value, || format!("#{}", name.name));
                    false
                }
                Key::Public(key) => self.named_by(value, key),
            };
            if is_keyed {
                self.keyed_fields.insert(accessor.span.lo);
            }
        }
        accessor.visit_mut_children_with(self);
    }
}

/// Returns the name that a key gives to an anonymous class, unless the key is known only when the
/// script runs.
fn fixed_name(key: &PropName) -> Option<String> {
    match key {
        PropName::Ident(name) => Some(name.sym.to_string()),
        PropName::Str(name) => name.value.as_str().map(str::to_owned),
        PropName::Num(number) => whole(number.value),
        PropName::BigInt(number) => Some(number.value.to_string()),
        PropName::Computed(computed) => match &*computed.expr {
            Expr::Lit(Lit::Str(name)) => name.value.as_str().map(str::to_owned),
            Expr::Lit(Lit::Num(number)) => whole(number.value),
            Expr::Lit(Lit::BigInt(number)) => Some(number.value.to_string()),
            _ => None,
        },
    }
}

/// The text of a number, if JavaScript writes it with digits only.
fn whole(number: f64) -> Option<String> {
    (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then(|| number.to_string())
}

fn is_prototype(key: &PropName) -> bool {
    match key {
        PropName::Ident(name) => &*name.sym == "__proto__",
        PropName::Str(name) => name.value.as_str() == Some("__proto__"),
        _ => false,
    }
}

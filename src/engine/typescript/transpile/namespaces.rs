//! Makes the exports of a merged namespace visible in all its blocks.
//!
//! In TypeScript a name that one block exports is in scope of the others. Each block becomes a
//! function of its own, so a bare name from another block is rewritten here as a member of the
//! namespace. swc's pass does not do this.

use std::collections::{HashMap, HashSet};

use swc_common::{BytePos, SyntaxContext};
use swc_ecma_ast::{
    BindingIdent, Decl, ExportDecl, Expr, Module, ModuleDecl, ModuleItem, Pat, Stmt, TsModuleDecl,
    TsModuleName, TsNamespaceBody,
};
use swc_ecma_visit::{Visit, VisitMutWith, VisitWith};

use super::paths::{Paths, TOP_LEVEL};
use super::qualify::Qualifier;

/// Qualifies the bare names of earlier blocks in a module whose names are resolved. `enums` are the
/// positions of namespaces that were enums: their members do not see what a namespace of the same
/// name exports. `unresolved` marks names that have no visible declaration.
pub(super) fn qualify(module: &mut Module, enums: &HashSet<BytePos>, unresolved: SyntaxContext) {
    qualify_items(&mut module.body, TOP_LEVEL, &mut Exports::default(), enums, unresolved);
}

/// The names that the blocks of each namespace have exported so far.
#[derive(Default)]
struct Exports {
    paths: Paths,
    by_path: HashMap<usize, HashSet<String>>,
}

/// `outer` is the path of the namespace that contains `items`.
fn qualify_items(
    items: &mut [ModuleItem],
    outer: usize,
    exports: &mut Exports,
    enums: &HashSet<BytePos>,
    unresolved: SyntaxContext,
) {
    for item in items {
        let Some(namespace) = namespace_of(item) else {
            continue;
        };
        if enums.contains(&namespace.span.lo) {
            continue;
        }
        let TsModuleName::Ident(id) = &namespace.id else {
            continue;
        };
        let id = id.clone();
        let Some(TsNamespaceBody::TsModuleBlock(block)) = &mut namespace.body else {
            continue;
        };
        let path = exports.paths.inside(outer, &id);
        let known = exports.by_path.entry(path).or_default();
        if !known.is_empty() {
            let mut qualifier = Qualifier::new(&block.body, known, &id, unresolved);
            block.body.visit_mut_with(&mut qualifier);
        }
        known.extend(exported_names(&block.body));
        qualify_items(&mut block.body, path, exports, enums, unresolved);
    }
}

fn namespace_of(item: &mut ModuleItem) -> Option<&mut TsModuleDecl> {
    match item {
        ModuleItem::Stmt(Stmt::Decl(Decl::TsModule(namespace)))
        | ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(ExportDecl {
            decl: Decl::TsModule(namespace),
            ..
        })) => Some(namespace),
        _ => None,
    }
}

/// The names of values that a block exports.
fn exported_names(items: &[ModuleItem]) -> Vec<String> {
    let mut names = Vec::new();
    for item in items {
        let ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(ExportDecl { decl, .. })) = item else {
            continue;
        };
        match decl {
            Decl::Class(class) => names.push(class.ident.sym.to_string()),
            Decl::Fn(function) => names.push(function.ident.sym.to_string()),
            Decl::TsEnum(members) => names.push(members.id.sym.to_string()),
            Decl::Var(variables) => {
                for variable in &variables.decls {
                    let mut bound = Bound::default();
                    variable.name.visit_with(&mut bound);
                    names.append(&mut bound.0);
                }
            }
            Decl::TsModule(namespace) => {
                if let TsModuleName::Ident(id) = &namespace.id {
                    names.push(id.sym.to_string());
                }
            }
            Decl::Using(_) | Decl::TsInterface(_) | Decl::TsTypeAlias(_) => {}
        }
    }
    names
}

/// Collects the names that a pattern binds.
#[derive(Default)]
struct Bound(Vec<String>);

impl Visit for Bound {
    fn visit_binding_ident(&mut self, ident: &BindingIdent) {
        self.0.push(ident.sym.to_string());
    }

    fn visit_pat(&mut self, pattern: &Pat) {
        pattern.visit_children_with(self);
    }

    // A default value binds nothing.
    fn visit_expr(&mut self, _expression: &Expr) {}
}

//! Rewrites bare names as members of the object that declares them.

use std::collections::HashSet;

use swc_common::SyntaxContext;
use swc_ecma_ast::{
    BindingIdent, ClassDecl, ClassExpr, Expr, FnDecl, FnExpr, Id, Ident, IdentName, KeyValueProp, MemberExpr,
    MemberProp, Prop, PropName, SimpleAssignTarget, TsEnumDecl, TsModuleDecl, TsModuleName,
};
use swc_ecma_visit::{Visit, VisitMut, VisitMutWith, VisitWith};

/// The names of an enum or a namespace that another part of it has declared.
///
/// It rewrites the tree that it visits: a name is a member unless the tree itself declares it.
#[derive(Debug)]
pub(super) struct Qualifier<'a> {
    names: &'a HashSet<String>,
    object: &'a Ident,
    unresolved: SyntaxContext,
    declared: HashSet<Id>,
}

impl<'a> Qualifier<'a> {
    /// Prepares to rewrite `tree`, in which `names` are members of `object`. `unresolved` marks the
    /// names that have no visible declaration.
    pub(super) fn new<T>(
        tree: &T,
        names: &'a HashSet<String>,
        object: &'a Ident,
        unresolved: SyntaxContext,
    ) -> Self
    where
        T: VisitWith<Declared>,
    {
        let mut declared = Declared::default();
        tree.visit_with(&mut declared);
        Self { names, object, unresolved, declared: declared.0 }
    }

    fn member(&self, name: &Ident) -> Option<MemberExpr> {
        let is_member = self.names.contains(name.sym.as_str())
            && (name.ctxt == self.unresolved || !self.declared.contains(&name.to_id()));
        is_member.then(|| MemberExpr {
            span: name.span,
            obj: Box::new(Expr::Ident(Ident { span: name.span, ..self.object.clone() })),
            prop: MemberProp::Ident(IdentName::new(name.sym.clone(), name.span)),
        })
    }
}

impl VisitMut for Qualifier<'_> {
    fn visit_mut_expr(&mut self, expression: &mut Expr) {
        expression.visit_mut_children_with(self);
        if let Expr::Ident(name) = expression
            && let Some(member) = self.member(name)
        {
            *expression = Expr::Member(member);
        }
    }

    fn visit_mut_prop(&mut self, property: &mut Prop) {
        property.visit_mut_children_with(self);
        if let Prop::Shorthand(name) = property
            && let Some(member) = self.member(name)
        {
            let key = PropName::Ident(IdentName::new(name.sym.clone(), name.span));
            *property = Prop::KeyValue(KeyValueProp { key, value: Box::new(Expr::Member(member)) });
        }
    }

    fn visit_mut_simple_assign_target(&mut self, target: &mut SimpleAssignTarget) {
        target.visit_mut_children_with(self);
        if let SimpleAssignTarget::Ident(name) = target
            && let Some(member) = self.member(&name.id)
        {
            *target = SimpleAssignTarget::Member(member);
        }
    }
}

/// Collects the names that a tree declares.
#[derive(Debug, Default)]
pub(super) struct Declared(HashSet<Id>);

impl Visit for Declared {
    fn visit_binding_ident(&mut self, name: &BindingIdent) {
        self.0.insert(name.to_id());
    }

    fn visit_fn_decl(&mut self, function: &FnDecl) {
        self.0.insert(function.ident.to_id());
        function.visit_children_with(self);
    }

    fn visit_class_decl(&mut self, class: &ClassDecl) {
        self.0.insert(class.ident.to_id());
        class.visit_children_with(self);
    }

    fn visit_fn_expr(&mut self, function: &FnExpr) {
        self.0.extend(function.ident.as_ref().map(Ident::to_id));
        function.visit_children_with(self);
    }

    fn visit_class_expr(&mut self, class: &ClassExpr) {
        self.0.extend(class.ident.as_ref().map(Ident::to_id));
        class.visit_children_with(self);
    }

    fn visit_ts_enum_decl(&mut self, declared: &TsEnumDecl) {
        self.0.insert(declared.id.to_id());
        declared.visit_children_with(self);
    }

    fn visit_ts_module_decl(&mut self, namespace: &TsModuleDecl) {
        if let TsModuleName::Ident(name) = &namespace.id {
            self.0.insert(name.to_id());
        }
        namespace.visit_children_with(self);
    }
}

//! What the code of a class refers to: `this`, its own name, and whether its definition can pause.

use swc_ecma_ast::{
    ArrowExpr, AwaitExpr, Class, ClassMember, Expr, Function, GetterProp, Id, Ident, Key, SetterProp,
    YieldExpr,
};
use swc_ecma_visit::{Visit, VisitMut, VisitMutWith, VisitWith};

use super::super::make;

/// Whether a class waits or yields while it is defined: in its heritage, in decorators or in keys.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Pauses {
    pub(super) awaits: bool,
    pub(super) yields: bool,
}

impl Pauses {
    pub(super) fn scan(class: &Class) -> Self {
        let mut pauses = Self::default();
        pauses.visit_class(class);
        pauses
    }

    /// As [`Pauses::scan`], for an expression of a class.
    pub(super) fn in_expression(expression: &Expr) -> bool {
        let mut pauses = Self::default();
        pauses.visit_expr(expression);
        pauses.awaits || pauses.yields
    }
}

impl Visit for Pauses {
    fn visit_await_expr(&mut self, expression: &AwaitExpr) {
        self.awaits = true;
        expression.visit_children_with(self);
    }

    fn visit_yield_expr(&mut self, expression: &YieldExpr) {
        self.yields = true;
        expression.visit_children_with(self);
    }

    // These pause on their own.
    fn visit_function(&mut self, _: &Function) {}
    fn visit_arrow_expr(&mut self, _: &ArrowExpr) {}
    fn visit_getter_prop(&mut self, getter: &GetterProp) {
        getter.key.visit_with(self);
    }
    fn visit_setter_prop(&mut self, setter: &SetterProp) {
        setter.key.visit_with(self);
    }

    // Fields and static blocks cannot pause.
    fn visit_class(&mut self, class: &Class) {
        class.decorators.visit_with(self);
        class.super_class.visit_with(self);
        for member in &class.body {
            match member {
                ClassMember::Method(method) => {
                    method.function.decorators.visit_with(self);
                    method.key.visit_with(self);
                }
                ClassMember::PrivateMethod(method) => method.function.decorators.visit_with(self),
                ClassMember::ClassProp(field) => {
                    field.decorators.visit_with(self);
                    field.key.visit_with(self);
                }
                ClassMember::PrivateProp(field) => field.decorators.visit_with(self),
                ClassMember::AutoAccessor(accessor) => {
                    accessor.decorators.visit_with(self);
                    accessor.key.visit_with(self);
                }
                _ => {}
            }
        }
    }
}

/// Gives a name another identity.
pub(super) struct Rename<'a> {
    pub(super) from: Id,
    pub(super) to: &'a Ident,
}

impl VisitMut for Rename<'_> {
    fn visit_mut_ident(&mut self, name: &mut Ident) {
        if name.to_id() == self.from {
            name.sym = self.to.sym.clone();
            name.ctxt = self.to.ctxt;
        }
    }
}

/// Replaces `this` by `state.target` in code that is moved out of a class.
pub(super) struct ReplaceThis<'a> {
    pub(super) state: &'a Ident,
}

impl VisitMut for ReplaceThis<'_> {
    fn visit_mut_expr(&mut self, expression: &mut Expr) {
        if expression.is_this() {
            *expression = Expr::Member(make::member(make::name(self.state), "target"));
        } else {
            expression.visit_mut_children_with(self);
        }
    }

    // These have a `this` of their own.
    fn visit_mut_function(&mut self, _: &mut Function) {}
    fn visit_mut_getter_prop(&mut self, getter: &mut GetterProp) {
        getter.key.visit_mut_with(self);
    }
    fn visit_mut_setter_prop(&mut self, setter: &mut SetterProp) {
        setter.key.visit_mut_with(self);
    }
    fn visit_mut_class(&mut self, class: &mut Class) {
        class.super_class.visit_mut_with(self);
        for member in &mut class.body {
            match member {
                ClassMember::Method(method) => method.key.visit_mut_with(self),
                ClassMember::ClassProp(field) => field.key.visit_mut_with(self),
                ClassMember::AutoAccessor(accessor) => {
                    if let Key::Public(key) = &mut accessor.key {
                        key.visit_mut_with(self);
                    }
                }
                _ => {}
            }
        }
    }
}

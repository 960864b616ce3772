//! Control flow of statements and operators: which parts of a script every run reaches.

use swc_ecma_ast::{
    ArrowExpr, ArrowFunctionBody, AssignExpr, AssignOp, AssignPat, AssignPatProp, AssignTarget, AwaitExpr,
    BinExpr, BinaryOp, BreakStmt, CallExpr, Callee, Class, CondExpr, ContinueStmt, DoWhileStmt, Expr,
    ExprStmt, FnDecl, ForInStmt, ForOfStmt, ForStmt, Function, IfStmt, LabeledStmt, MemberExpr, MemberProp,
    ObjectPatProp, OptChainBase, OptChainExpr, Pat, Prop, PropName, PropOrSpread, ReturnStmt,
    SimpleAssignTarget, Stmt, SwitchStmt, Tpl, TryStmt, UnaryExpr, UnaryOp, VarDecl, VarDeclKind,
    VarDeclarator, WhileStmt,
};
use swc_ecma_visit::{Visit, VisitWith};

use super::Surveyor;
use super::syntax::{Call, bytes, is_of_promise, plain, reads_value};
use crate::engine::survey::{FlowReader as _, forget};

impl Surveyor<'_> {
    /// Reads a loop's body.
    fn pass(&mut self, is_entered: bool, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.is_in_switch, false);
        self.looped(is_entered, read);
        self.is_in_switch = outer;
    }

    /// Marks an expression as not awaited, if it is a promise of calls of tools. `before` is the number of uses before
    /// it was read.
    fn forgets(&mut self, expression: &Expr, before: usize) {
        let Expr::Call(call) = plain(expression) else { return };
        let Callee::Expr(callee) = &call.callee else { return };
        match plain(callee) {
            // `call_tool` has ended when it returns.
            Expr::Ident(name) if name.sym == "call_tool" || name.sym == "call_tools" => {}
            Expr::Member(member) if self.is_promise_of_many(member) => {
                if let [list] = call.args.as_slice() {
                    self.forgets_all(&list.expr, before);
                }
            }
            _ => forget(&mut self.survey, before, &bytes(call.span)),
        }
    }

    /// As [`Self::forgets`], where the value of the expression is lost with all promises that it
    /// holds.
    fn forgets_all(&mut self, expression: &Expr, before: usize) {
        match plain(expression) {
            Expr::Array(list) => {
                let items = list.elems.iter().flatten().filter(|item| item.spread.is_none());
                items.for_each(|item| self.forgets_all(&item.expr, before));
            }
            Expr::Cond(choice) => {
                self.forgets_all(&choice.cons, before);
                self.forgets_all(&choice.alt, before);
            }
            Expr::Bin(operation) if is_conditional(operation.op) => {
                self.forgets_all(&operation.right, before);
            }
            Expr::Object(object) => {
                for property in &object.props {
                    if let PropOrSpread::Prop(property) = property
                        && let Prop::KeyValue(field) = &**property
                    {
                        self.forgets_all(&field.value, before);
                    }
                }
            }
            // A variable that nothing reads.
            Expr::Assign(AssignExpr {
                op: AssignOp::Assign,
                left: AssignTarget::Simple(SimpleAssignTarget::Ident(name)),
                right,
                ..
            }) if !self.names.is_opaque && self.names.is_unused(&name.id) => self.forgets_all(right, before),
            Expr::Call(call) => match made_of_list(call) {
                Some(value) => self.forgets_all(value, before),
                None => self.forgets(expression, before),
            },
            _ => {}
        }
    }

    /// Reads an expression whose value is compared, tested or made a text. If it is a promise, that says nothing about
    /// its result.
    fn tested(&mut self, expression: &Expr) {
        let before = self.survey.uses.len();
        expression.visit_with(self);
        self.forgets(expression, before);
    }

    /// Whether the member is one of the functions that make one promise of a list of promises.
    fn is_promise_of_many(&self, member: &MemberExpr) -> bool {
        matches!(&member.prop, MemberProp::Ident(name)
            if matches!(&*name.sym, "all" | "allSettled" | "any" | "race"))
            && self.is_promise(&member.obj)
    }

    /// Marks the value of a variable as not awaited, if no use of the variable can await it.
    fn kept(&mut self, variable: &VarDeclarator, before: usize) {
        let Some(value) = &variable.init else { return };
        match &variable.name {
            Pat::Ident(_) if self.names.is_opaque => {}
            Pat::Ident(name) => {
                let id = name.id.to_id();
                if !self.names.is_used(&id) {
                    self.forgets_all(value, before);
                } else if !self.names.may_be_awaited(&id) {
                    self.forgets(value, before);
                }
            }
            // A promise has no elements.
            Pat::Array(_) => self.forgets(value, before),
            Pat::Object(pattern) if pattern.props.iter().all(is_of_value) => self.forgets(value, before),
            _ => {}
        }
    }
}

/// What the callback of `list.map(…)` or `list.forEach(…)` returns, if it is one expression.
fn made_of_list(call: &CallExpr) -> Option<&Expr> {
    let (Callee::Expr(callee), [callback]) = (&call.callee, call.args.as_slice()) else { return None };
    let (Expr::Member(member), Expr::Arrow(arrow)) = (plain(callee), plain(&callback.expr)) else {
        return None;
    };
    let MemberProp::Ident(method) = &member.prop else { return None };
    match &*arrow.body {
        ArrowFunctionBody::Expr(value) if matches!(&*method.sym, "map" | "flatMap" | "forEach") => {
            Some(value)
        }
        _ => None,
    }
}

/// Whether a pattern takes a field that a promise does not have.
fn is_of_value(property: &ObjectPatProp) -> bool {
    match property {
        ObjectPatProp::Assign(field) => !is_of_promise(&field.key.id.sym),
        ObjectPatProp::KeyValue(field) => {
            matches!(&field.key, PropName::Ident(name) if !is_of_promise(&name.sym))
        }
        ObjectPatProp::Rest(_) => false,
    }
}

fn is_conditional(operator: BinaryOp) -> bool {
    matches!(operator, BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::NullishCoalescing)
}

impl Visit for Surveyor<'_> {
    fn visit_stmts(&mut self, statements: &[Stmt]) {
        let outer = self.flow.is_certain;
        for statement in statements {
            statement.visit_with(self);
            self.flow.next();
        }
        self.flow.is_certain = outer;
    }

    fn visit_expr_stmt(&mut self, statement: &ExprStmt) {
        if self.is_value {
            // The statement may be the script's value, which is awaited, or precede it.
            return statement.expr.visit_with(self);
        }
        let before = self.survey.uses.len();
        statement.expr.visit_with(self);
        self.forgets_all(&statement.expr, before);
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        let before = self.survey.uses.len();
        member.visit_children_with(self);
        if reads_value(member) {
            self.forgets(&member.obj, before);
        }
    }

    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        if let Some(value) = &statement.arg {
            self.returned(value);
        }
        self.flow.has_returned = true;
    }

    fn visit_break_stmt(&mut self, _statement: &BreakStmt) {
        self.flow.has_jumped |= !self.is_in_switch;
    }

    fn visit_continue_stmt(&mut self, _statement: &ContinueStmt) {
        self.flow.has_jumped = true;
    }

    fn visit_await_expr(&mut self, expression: &AwaitExpr) {
        self.awaited(&expression.arg);
    }

    fn visit_call_expr(&mut self, call: &CallExpr) {
        self.call(call, false);
    }

    fn visit_var_decl(&mut self, variables: &VarDecl) {
        for variable in &variables.decls {
            // Functions of the top level are read where they are called.
            if let Pat::Ident(name) = &variable.name
                && self.functions.contains_key(&name.id.to_id())
            {
                continue;
            }
            let before = self.survey.uses.len();
            variable.visit_with(self);
            self.kept(variable, before);
            if let (Pat::Ident(name), Some(list)) = (&variable.name, &variable.init)
                && self.names.is_list_of_calls(&name.id)
            {
                self.list_of_calls(list);
            }
            if matches!(variables.kind, VarDeclKind::Const | VarDeclKind::Let) {
                self.alias(variable);
            }
        }
    }

    fn visit_fn_decl(&mut self, declared: &FnDecl) {
        if !self.functions.contains_key(&declared.ident.to_id()) {
            declared.visit_children_with(self);
        }
    }

    fn visit_function(&mut self, function: &Function) {
        self.uncalled(|own| function.visit_children_with(own));
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.uncalled(|own| match &*arrow.body {
            ArrowFunctionBody::Expr(value) => {
                arrow.params.visit_with(own);
                own.returned(value);
            }
            ArrowFunctionBody::FunctionBody(_) => arrow.visit_children_with(own),
        });
    }

    fn visit_class(&mut self, class: &Class) {
        self.uncalled(|own| class.visit_children_with(own));
    }

    fn visit_if_stmt(&mut self, statement: &IfStmt) {
        self.tested(&statement.test);
        self.doubtful(|own| {
            statement.cons.visit_with(own);
            statement.alt.visit_with(own);
        });
    }

    fn visit_for_stmt(&mut self, statement: &ForStmt) {
        statement.init.visit_with(self);
        self.pass(false, |own| {
            statement.test.visit_with(own);
            statement.update.visit_with(own);
            statement.body.visit_with(own);
        });
    }

    fn visit_for_of_stmt(&mut self, statement: &ForOfStmt) {
        let is_entered = !statement.is_await && self.names.is_filled(&statement.right);
        let before = self.survey.uses.len();
        statement.right.visit_with(self);
        self.forgets(&statement.right, before);
        self.pass(is_entered, |own| {
            statement.left.visit_with(own);
            statement.body.visit_with(own);
        });
    }

    fn visit_for_in_stmt(&mut self, statement: &ForInStmt) {
        statement.right.visit_with(self);
        self.pass(false, |own| {
            statement.left.visit_with(own);
            statement.body.visit_with(own);
        });
    }

    fn visit_while_stmt(&mut self, statement: &WhileStmt) {
        self.tested(&statement.test);
        self.pass(false, |own| statement.body.visit_with(own));
    }

    fn visit_do_while_stmt(&mut self, statement: &DoWhileStmt) {
        self.pass(false, |own| statement.visit_children_with(own));
    }

    fn visit_switch_stmt(&mut self, statement: &SwitchStmt) {
        statement.discriminant.visit_with(self);
        let outer = std::mem::replace(&mut self.is_in_switch, true);
        self.doubtful(|own| statement.cases.visit_with(own));
        self.is_in_switch = outer;
    }

    fn visit_try_stmt(&mut self, statement: &TryStmt) {
        self.doubtful(|own| statement.visit_children_with(own));
    }

    fn visit_labeled_stmt(&mut self, statement: &LabeledStmt) {
        // A jump that leaves the statement may be inside of loops in it.
        self.looped(false, |own| statement.visit_children_with(own));
    }

    fn visit_unary_expr(&mut self, expression: &UnaryExpr) {
        match expression.op {
            // `void` says that the value is dropped on purpose.
            UnaryOp::Void => expression.arg.visit_with(self),
            _ => self.tested(&expression.arg),
        }
    }

    fn visit_tpl(&mut self, template: &Tpl) {
        template.exprs.iter().for_each(|part| self.tested(part));
    }

    fn visit_cond_expr(&mut self, expression: &CondExpr) {
        self.tested(&expression.test);
        self.doubtful(|own| {
            expression.cons.visit_with(own);
            expression.alt.visit_with(own);
        });
    }

    fn visit_bin_expr(&mut self, expression: &BinExpr) {
        if is_conditional(expression.op) {
            expression.left.visit_with(self);
            self.doubtful(|own| expression.right.visit_with(own));
        } else {
            self.tested(&expression.left);
            self.tested(&expression.right);
        }
    }

    fn visit_assign_expr(&mut self, expression: &AssignExpr) {
        expression.left.visit_with(self);
        let is_conditional =
            matches!(expression.op, AssignOp::AndAssign | AssignOp::OrAssign | AssignOp::NullishAssign);
        if is_conditional {
            self.doubtful(|own| expression.right.visit_with(own));
        } else {
            expression.right.visit_with(self);
        }
        if let AssignTarget::Simple(SimpleAssignTarget::Ident(name)) = &expression.left
            && self.names.is_list_of_calls(&name.id)
        {
            self.list_of_calls(&expression.right);
        }
    }

    fn visit_assign_pat(&mut self, pattern: &AssignPat) {
        pattern.left.visit_with(self);
        self.doubtful(|own| pattern.right.visit_with(own));
    }

    fn visit_assign_pat_prop(&mut self, pattern: &AssignPatProp) {
        self.doubtful(|own| pattern.value.visit_with(own));
    }

    fn visit_opt_chain_expr(&mut self, expression: &OptChainExpr) {
        self.doubtful(|own| match &*expression.base {
            OptChainBase::Member(member) => member.visit_with(own),
            OptChainBase::Call(call) => {
                own.call_of_value(Call { span: call.span, callee: &call.callee, args: &call.args }, false);
            }
        });
    }
}

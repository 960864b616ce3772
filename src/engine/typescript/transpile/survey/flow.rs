//! Which parts of a script every run reaches: what the statements and operators make of their parts.

use swc_ecma_ast::{
    ArrowExpr, ArrowFunctionBody, AssignExpr, AssignOp, AssignPat, AssignPatProp, AwaitExpr, BinExpr,
    BinaryOp, BreakStmt, CallExpr, Callee, Class, CondExpr, ContinueStmt, DoWhileStmt, Expr, ExprStmt,
    FnDecl, ForInStmt, ForOfStmt, ForStmt, Function, IfStmt, LabeledStmt, OptChainBase, OptChainExpr, Pat,
    ReturnStmt, Stmt, SwitchStmt, TryStmt, VarDecl, VarDeclKind, WhileStmt,
};
use swc_ecma_visit::{Visit, VisitWith};

use super::Surveyor;
use super::syntax::{bytes, plain};
use crate::engine::survey::{FlowReader as _, forget};

impl Surveyor<'_> {
    /// Reads a loop's body.
    fn pass(&mut self, is_entered: bool, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.is_in_switch, false);
        self.looped(is_entered, read);
        self.is_in_switch = outer;
    }

    /// Marks an expression as not awaited, if it is a call of a tool. `before` is the number of
    /// uses before it was read.
    fn forgets(&mut self, expression: &Expr, before: usize) {
        let Expr::Call(call) = plain(expression) else { return };
        // `call_tool` has ended when it returns.
        let has_ended = matches!(&call.callee, Callee::Expr(callee)
            if matches!(plain(callee), Expr::Ident(name) if name.sym == "call_tool" || name.sym == "call_tools"));
        if !has_ended {
            forget(&mut self.survey, before, &bytes(call.span));
        }
    }
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
            // It may be the value, which is awaited, or stand before it.
            return statement.expr.visit_with(self);
        }
        let before = self.survey.uses.len();
        statement.expr.visit_with(self);
        self.forgets(&statement.expr, before);
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
            // A variable that nothing reads.
            if let (Pat::Ident(name), Some(call)) = (&variable.name, &variable.init)
                && !self.names.is_opaque
                && !self.names.is_used(&name.id.to_id())
            {
                self.forgets(call, before);
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
        statement.test.visit_with(self);
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
        statement.right.visit_with(self);
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
        statement.test.visit_with(self);
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
        // What leaves it may be inside of loops in it.
        self.looped(false, |own| statement.visit_children_with(own));
    }

    fn visit_cond_expr(&mut self, expression: &CondExpr) {
        expression.test.visit_with(self);
        self.doubtful(|own| {
            expression.cons.visit_with(own);
            expression.alt.visit_with(own);
        });
    }

    fn visit_bin_expr(&mut self, expression: &BinExpr) {
        expression.left.visit_with(self);
        let is_conditional =
            matches!(expression.op, BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::NullishCoalescing);
        if is_conditional {
            self.doubtful(|own| expression.right.visit_with(own));
        } else {
            expression.right.visit_with(self);
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
                let plain_call = CallExpr {
                    span: call.span,
                    ctxt: call.ctxt,
                    callee: Callee::Expr(call.callee.clone()),
                    args: call.args.clone(),
                    type_args: None,
                };
                own.call(&plain_call, false);
            }
        });
    }
}

//! Which parts of a script every run reaches: what the statements and operators make of their parts.

use swc_ecma_ast::{
    ArrowExpr, ArrowFunctionBody, AssignExpr, AssignOp, AssignPat, AssignPatProp, AwaitExpr, BinExpr,
    BinaryOp, CallExpr, Callee, Class, CondExpr, DoWhileStmt, Expr, ExprStmt, FnDecl, ForInStmt, ForOfStmt,
    ForStmt, Function, IfStmt, LabeledStmt, OptChainBase, OptChainExpr, Pat, ReturnStmt, Stmt, SwitchStmt,
    TryStmt, VarDecl, VarDeclKind, WhileStmt,
};
use swc_ecma_visit::{Visit, VisitWith};

use super::Surveyor;
use super::syntax::{bytes, plain};
use crate::run::check::survey::ToolUse;

impl Visit for Surveyor<'_> {
    fn visit_stmts(&mut self, statements: &[Stmt]) {
        let outer = self.is_certain;
        for statement in statements {
            statement.visit_with(self);
            self.is_certain &= !self.has_returned;
        }
        self.is_certain = outer;
    }

    fn visit_expr_stmt(&mut self, statement: &ExprStmt) {
        if self.is_value {
            // It may be the value, which is awaited, or stand before it.
            return statement.expr.visit_with(self);
        }
        let before = self.survey.uses.len();
        statement.expr.visit_with(self);
        if let Expr::Call(call) = plain(&statement.expr)
            && let Some(last) = self.survey.uses.get_mut(before..).and_then(<[ToolUse]>::last_mut)
            && last.at == bytes(call.span)
            && last.arguments.is_some()
        {
            // `call_tool` has ended when it returns.
            let waits = matches!(&call.callee, Callee::Expr(callee)
                if matches!(plain(callee), Expr::Ident(name) if name.sym == "call_tool" || name.sym == "call_tools"));
            last.is_forgotten = !waits;
        }
    }

    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        if let Some(value) = &statement.arg {
            self.returned(value);
        }
        self.has_returned = true;
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
            variable.visit_with(self);
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
        self.function(|own| function.visit_children_with(own));
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.function(|own| match &*arrow.body {
            ArrowFunctionBody::Expr(value) => {
                arrow.params.visit_with(own);
                own.returned(value);
            }
            ArrowFunctionBody::FunctionBody(_) => arrow.visit_children_with(own),
        });
    }

    fn visit_class(&mut self, class: &Class) {
        self.function(|own| class.visit_children_with(own));
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
        self.doubtful(|own| {
            statement.test.visit_with(own);
            statement.update.visit_with(own);
            statement.body.visit_with(own);
        });
    }

    fn visit_for_of_stmt(&mut self, statement: &ForOfStmt) {
        statement.right.visit_with(self);
        self.doubtful(|own| {
            statement.left.visit_with(own);
            statement.body.visit_with(own);
        });
    }

    fn visit_for_in_stmt(&mut self, statement: &ForInStmt) {
        statement.right.visit_with(self);
        self.doubtful(|own| {
            statement.left.visit_with(own);
            statement.body.visit_with(own);
        });
    }

    fn visit_while_stmt(&mut self, statement: &WhileStmt) {
        statement.test.visit_with(self);
        self.doubtful(|own| statement.body.visit_with(own));
    }

    fn visit_do_while_stmt(&mut self, statement: &DoWhileStmt) {
        self.doubtful(|own| statement.visit_children_with(own));
    }

    fn visit_switch_stmt(&mut self, statement: &SwitchStmt) {
        statement.discriminant.visit_with(self);
        self.doubtful(|own| statement.cases.visit_with(own));
    }

    fn visit_try_stmt(&mut self, statement: &TryStmt) {
        self.doubtful(|own| statement.visit_children_with(own));
    }

    fn visit_labeled_stmt(&mut self, statement: &LabeledStmt) {
        self.doubtful(|own| statement.visit_children_with(own));
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

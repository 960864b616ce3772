//! Calls of the functions that call tools by name.

use swc_common::Spanned as _;
use swc_ecma_ast::{ArrowFunctionBody, CallExpr, Callee, Expr, MemberExpr, MemberProp, Stmt};

use super::literal::UNKNOWN;
use super::names::part_of_list;
use super::syntax::{Call, bytes, plain};
use super::{Surveyor, literal};
use crate::run::check::survey::{Literal, Target, ToolUse};

impl Surveyor<'_> {
    /// Reads a call of one of the functions that call tools by name.
    pub(super) fn global_call(&mut self, name: &str, call: Call<'_>, is_awaited: bool) {
        let at = |position: usize| call.args.get(position).map_or(call.span, |given| given.expr.span());
        let text = |position: usize| {
            let argument = call.args.get(position).filter(|given| given.spread.is_none())?;
            literal::string(&argument.expr)
        };
        match name {
            "callMCPTool" => {
                let target = text(0).map_or(Target::Unknown, Target::Full);
                let is_certain = self.flow.is_certain && is_awaited;
                self.add(call.span, target, literal::argument(call, 1), at(0), at(0), is_certain);
            }
            // It returns a failure as a value, so the run may succeed without the call.
            "call_tool" => {
                let target = match (text(0), text(1)) {
                    (Some(server), Some(tool)) => Target::Tool { server, tool },
                    _ => Target::Unknown,
                };
                self.add(call.span, target, literal::argument(call, 2), at(0), at(1), false);
            }
            "call_tools" => self.call_tools(call),
            _ => {}
        }
    }

    /// Reads `call_tools([{server, tool, args}])`.
    fn call_tools(&mut self, call: Call<'_>) {
        let is_read = call.args.first().is_some_and(|list| self.list_of_calls(&list.expr));
        if !is_read {
            self.add(call.span, Target::Unknown, UNKNOWN, call.span, call.span, false);
        }
    }

    /// Reads a list that `call_tools` gets. Returns whether all its entries were read: those of variables are read
    /// where the variables get their values.
    pub(super) fn list_of_calls(&mut self, list: &Expr) -> bool {
        match plain(list) {
            Expr::Array(list) => list.elems.iter().flatten().fold(true, |is_read, item| match item.spread {
                Some(_) => self.list_of_calls(&item.expr) && is_read,
                None => {
                    self.listed_call(&item.expr);
                    is_read
                }
            }),
            Expr::Cond(choice) => self.list_of_calls(&choice.cons) & self.list_of_calls(&choice.alt),
            Expr::Call(made) => match (made_by_callback(made), part_of_list(made)) {
                (Some(entry), _) => {
                    self.listed_call(entry);
                    true
                }
                (None, Some(list)) => self.list_of_calls(list),
                (None, None) => false,
            },
            _ => false,
        }
    }

    /// Reads `list.push({server, tool, args})`, if `call_tools` gets the list.
    pub(super) fn added_calls(&mut self, member: &MemberExpr, call: Call<'_>) {
        let (Expr::Ident(list), MemberProp::Ident(method)) = (plain(&member.obj), &member.prop) else {
            return;
        };
        if !matches!(&*method.sym, "push" | "unshift") || !self.names.is_list_of_calls(list) {
            return;
        }
        for given in call.args {
            match given.spread {
                Some(_) => {
                    self.list_of_calls(&given.expr);
                }
                None => self.listed_call(&given.expr),
            }
        }
    }

    /// Reads `{server, tool, args}`.
    fn listed_call(&mut self, entry: &Expr) {
        let at = entry.span();
        match literal::read(entry) {
            Literal::Object(written) => self.survey.add(ToolUse::listed(&written, &bytes(at), UNKNOWN)),
            _ => self.add(at, Target::Unknown, UNKNOWN, at, at, false),
        }
    }

    /// Reads a request for what servers have besides tools. Returns whether it is one.
    pub(super) fn mcp_call(&mut self, member: &MemberExpr, call: Call<'_>, is_awaited: bool) -> bool {
        let (Expr::Ident(object), MemberProp::Ident(method)) = (plain(&member.obj), &member.prop) else {
            return false;
        };
        let is_request =
            matches!(&*method.sym, "listResources" | "readResource" | "listPrompts" | "getPrompt");
        if object.ctxt != self.unresolved || object.sym != "mcp" || !is_request {
            return false;
        }
        if let Some(given) = call.args.first()
            && let Some(server) = literal::string(&given.expr)
        {
            let (at, is_certain) = (given.expr.span(), self.flow.is_certain && is_awaited);
            self.add(call.span, Target::Server(server), UNKNOWN, at, at, is_certain);
        }
        true
    }
}

/// What the callback of `list.map(…)` or `Array.from(list, …)` returns, if it is one expression.
fn made_by_callback(call: &CallExpr) -> Option<&Expr> {
    let Callee::Expr(callee) = &call.callee else { return None };
    let Expr::Member(MemberExpr { prop: MemberProp::Ident(method), .. }) = plain(callee) else { return None };
    let (("map", [callback]) | ("from", [_, callback])) = (&*method.sym, call.args.as_slice()) else {
        return None;
    };
    let Expr::Arrow(arrow) = plain(&callback.expr) else { return None };
    match &*arrow.body {
        ArrowFunctionBody::Expr(value) => Some(value),
        ArrowFunctionBody::FunctionBody(body) => match body.stmts.as_slice() {
            [Stmt::Return(returned)] => returned.arg.as_deref(),
            _ => None,
        },
    }
}

//! Calls of the functions that call tools by name.

use swc_common::Spanned as _;
use swc_ecma_ast::{CallExpr, Expr, MemberExpr, MemberProp};

use super::literal::UNKNOWN;
use super::syntax::{bytes, plain};
use super::{Surveyor, literal};
use crate::run::check::survey::{Literal, Target, ToolUse};

impl Surveyor<'_> {
    /// Reads a call of one of the functions that call tools by name.
    pub(super) fn global_call(&mut self, name: &str, call: &CallExpr, is_awaited: bool) {
        let at = |position: usize| call.args.get(position).map_or(call.span, |given| given.expr.span());
        let text = |position: usize| {
            let argument = call.args.get(position).filter(|given| given.spread.is_none())?;
            literal::text(&argument.expr)
        };
        match name {
            "callMCPTool" => {
                let target = text(0).map_or(Target::Unknown, Target::Full);
                let is_certain = self.flow.is_certain && is_awaited;
                self.add(call.span, target, literal::argument(call, 1), at(0), at(0), is_certain);
            }
            // Its failure is a value.
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
    pub(super) fn call_tools(&mut self, call: &CallExpr) {
        let listed = call.args.first().map(|given| plain(&given.expr));
        let Some(Expr::Array(list)) = listed else {
            return self.add(call.span, Target::Unknown, UNKNOWN, call.span, call.span, false);
        };
        for item in list.elems.iter().flatten() {
            let at = item.expr.span();
            let Literal::Object(written) = literal::of(&item.expr) else {
                self.add(at, Target::Unknown, UNKNOWN, at, at, false);
                continue;
            };
            self.survey.add(ToolUse::listed(&written, &bytes(at), UNKNOWN));
        }
    }

    /// Reads a request for what servers have besides tools. Returns whether it is one.
    pub(super) fn mcp_call(&mut self, member: &MemberExpr, call: &CallExpr, is_awaited: bool) -> bool {
        let (Expr::Ident(object), MemberProp::Ident(method)) = (plain(&member.obj), &member.prop) else {
            return false;
        };
        let is_request =
            matches!(&*method.sym, "listResources" | "readResource" | "listPrompts" | "getPrompt");
        if object.ctxt != self.unresolved || object.sym != "mcp" || !is_request {
            return false;
        }
        if let Some(given) = call.args.first()
            && let Some(server) = literal::text(&given.expr)
        {
            let (at, is_certain) = (given.expr.span(), self.flow.is_certain && is_awaited);
            self.add(call.span, Target::Server(server), UNKNOWN, at, at, is_certain);
        }
        true
    }
}

//! Calls of the functions that call tools by name.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::literal::{UNKNOWN, bytes};
use super::{Surveyor, literal};
use crate::run::check::survey::{Literal, Target, ToolUse};

impl<'a> Surveyor<'a> {
    /// Reads a call of one of the functions that call tools by name. Returns whether it is one.
    pub(super) fn global_call(&mut self, name: &str, call: &'a ExprCall, is_awaited: bool) -> bool {
        if self.names.is_bound(name) {
            return false;
        }
        let given = |position: usize, name: &str| call.arguments.find_argument_value(name, position);
        let text = |position: usize, name: &str| literal::text(given(position, name)?);
        let at = |position: usize, name: &str| given(position, name).map_or(call.range(), Ranged::range);
        match name {
            "call_mcp_tool" | "call_mcp_tool_sync" => {
                let target = text(0, "name").map_or(Target::Unknown, Target::Full);
                let is_done = is_awaited || name == "call_mcp_tool_sync";
                let is_certain = self.flow.is_certain && is_done;
                let arguments = literal::by_name(&call.arguments, 1, &["name", "params"]);
                self.add(call, target, arguments, at(0, "name"), at(0, "name"), is_certain);
            }
            // Its failure is a value.
            "call_tool" => {
                let target = match (text(0, "server"), text(1, "tool")) {
                    (Some(server), Some(tool)) => Target::Tool { server, tool },
                    _ => Target::Unknown,
                };
                let arguments = literal::by_name(&call.arguments, 2, &["server", "tool", "args"]);
                self.add(call, target, arguments, at(0, "server"), at(1, "tool"), false);
            }
            "call_tools" => self.call_tools(call),
            _ => return false,
        }
        true
    }

    /// Reads `call_tools([{"server": …, "tool": …, "args": …}])`.
    pub(super) fn call_tools(&mut self, call: &'a ExprCall) {
        let Some(Expr::List(list)) = call.arguments.find_argument_value("calls", 0) else {
            return self.add(call, Target::Unknown, UNKNOWN, call.range(), call.range(), false);
        };
        for item in &list.elts {
            let at = bytes(item.range());
            let Literal::Object(written) = literal::of(item) else {
                self.add(call, Target::Unknown, UNKNOWN, item.range(), item.range(), false);
                continue;
            };
            self.survey.add(ToolUse::listed(&written, &at, UNKNOWN));
        }
    }
}

//! Calls of the functions that call tools by name.

use std::slice;

use ruff_python_ast::{Expr, ExprBinOp, ExprCall, ExprGenerator, ExprListComp, Operator};
use ruff_text_size::Ranged;

use super::literal::{UNKNOWN, bytes};
use super::{Surveyor, literal};
use crate::engine::survey::call_of;
use crate::run::check::survey::{Literal, Target, ToolUse};

impl<'a> Surveyor<'a> {
    /// Reads a call of one of the functions that call tools by name. Returns whether it is one.
    pub(super) fn global_call(&mut self, name: &str, call: &'a ExprCall, is_awaited: bool) -> bool {
        if self.names.is_bound(name) {
            return false;
        }
        let given = |position: usize, name: &str| call.arguments.find_argument_value(name, position);
        let text = |position: usize, name: &str| literal::string(given(position, name)?).map(str::to_owned);
        let at = |position: usize, name: &str| given(position, name).map_or(call.range(), Ranged::range);
        match name {
            "call_mcp_tool" | "call_mcp_tool_sync" => {
                let target = text(0, "name").map_or(Target::Unknown, Target::Full);
                let is_done = is_awaited || name == "call_mcp_tool_sync";
                let is_certain = self.flow.is_certain && is_done;
                let arguments = literal::by_name(&call.arguments, 1, &["name", "params"]);
                self.add(call, target, arguments, at(0, "name"), at(0, "name"), is_certain);
            }
            // It returns a failure as a value.
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
    fn call_tools(&mut self, call: &'a ExprCall) {
        let list = call.arguments.find_argument_value("calls", 0);
        if !list.is_some_and(|list| self.list_of_calls(list)) {
            self.add(call, Target::Unknown, UNKNOWN, call.range(), call.range(), false);
        }
    }

    /// Reads a list that `call_tools` gets. Returns whether all its entries were read: those of variables are read
    /// where the variables get their values.
    fn list_of_calls(&mut self, list: &Expr) -> bool {
        match list {
            Expr::List(list) => list.elts.iter().fold(true, |is_read, item| match item {
                Expr::Starred(part) => self.list_of_calls(&part.value) && is_read,
                entry => {
                    self.listed_call(entry);
                    is_read
                }
            }),
            Expr::ListComp(ExprListComp { elt: entry, .. })
            | Expr::Generator(ExprGenerator { elt: entry, .. }) => {
                self.listed_call(entry);
                true
            }
            Expr::If(choice) => self.list_of_calls(&choice.body) & self.list_of_calls(&choice.orelse),
            Expr::BinOp(ExprBinOp { op: Operator::Add, left, right, .. }) => {
                self.list_of_calls(left) & self.list_of_calls(right)
            }
            _ => false,
        }
    }

    /// Reads what variables get, if one of them is a list that `call_tools` gets. Once for all of them: an assignment
    /// can have thousands.
    pub(super) fn set_list_of_calls(&mut self, targets: &[Expr], value: &Expr) {
        let is_list =
            |target: &Expr| matches!(target, Expr::Name(name) if self.names.is_list_of_calls(&name.id));
        if targets.iter().any(is_list) {
            self.list_of_calls(value);
        }
    }

    /// Reads `list.append({"server": …, "tool": …, "args": …})`, if `call_tools` gets the list.
    pub(super) fn added_calls(&mut self, call: &ExprCall) {
        let (Expr::Attribute(method), [given]) = (&*call.func, &*call.arguments.args) else { return };
        match (&*method.value, method.attr.as_str()) {
            (Expr::Name(list), "append") if self.names.is_list_of_calls(&list.id) => self.listed_call(given),
            (list, "extend") => self.set_list_of_calls(slice::from_ref(list), given),
            _ => {}
        }
    }

    /// Reads `{"server": …, "tool": …, "args": …}`.
    fn listed_call(&mut self, entry: &Expr) {
        let at = bytes(entry.range());
        self.survey.add(match literal::read(entry) {
            Literal::Object(written) => ToolUse::listed(&written, &at, UNKNOWN),
            _ => call_of(Target::Unknown, UNKNOWN, [at.clone(), at.clone(), at], false),
        });
    }
}

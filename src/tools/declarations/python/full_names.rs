//! Full names of tools in Python's stubs: `tools.mcp__server__tool`.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::Writer;
use super::literals::is_name;
use crate::tools::names::full_name;

/// The tools by their full names, as members of `tools`: each is the method of its server.
pub(super) struct FullNames {
    /// A variable for each server that a member refers to.
    pub(super) servers: String,
    pub(super) members: String,
    seen: HashSet<String>,
}

impl FullNames {
    /// None yet. The names of servers, which are members of `tools` too, are not used for tools.
    pub(super) fn beside<'a>(servers: impl Iterator<Item = &'a str>) -> Self {
        let seen = servers.map(str::to_owned).collect();
        Self { servers: String::new(), members: String::new(), seen }
    }

    /// Adds those methods of a server whose full names can be written. Two tools can have one full name, which then
    /// calls neither: the first stays, because a type checker can say nothing better.
    pub(super) fn add(&mut self, writer: &mut Writer, server: &str, class: &str, methods: &[String]) {
        let variable = writer.name(&format!("its{class}"));
        let before = self.members.len();
        for method in methods {
            let name = full_name(server, method);
            if is_name(&name) && self.seen.insert(name.clone()) {
                let _ = writeln!(self.members, "    {name} = {variable}.{method}");
            }
        }
        if self.members.len() > before {
            let _ = write!(self.servers, "\n{variable}: {class}\n");
        }
    }
}

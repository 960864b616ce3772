//! What names and expressions refer to: servers and tools, by global, import or variable.

use ruff_python_ast::{Alias, Expr, StmtImport, StmtImportFrom};
use ruff_text_size::{Ranged as _, TextRange};

use super::literal::bytes;
use super::{Surveyor, builtins, literal};
use crate::engine::survey::{self as shared, NamedServer};
use crate::run::check::survey::{Target, ToolUse};

/// Packages whose modules are the servers.
const PACKAGES: [&str; 2] = ["mcp_tools", "mcp.servers"];

/// The variable with all servers by name, and what begins the variables with one.
const SERVERS: &str = "mcp_servers";
const SERVER_PREFIX: &str = "mcp_";

/// What an expression refers to.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    /// All servers.
    Servers,
    /// A package whose modules are the servers, or a part of its name.
    Package(&'static str),
    Server(NamedServer),
    Tool(NamedServer, String),
}

/// A reference, and where its parts are named.
pub(super) type Found = shared::Found<Reference, TextRange>;

impl<'a> Surveyor<'a> {
    /// What an expression refers to, if it is a server or a tool.
    pub(super) fn reference(&self, expression: &Expr) -> Option<Found> {
        let (base, name, at) = match expression {
            Expr::Name(name) => {
                let found = |reference: Reference| Found::at(reference, name.range);
                if let Some(alias) = self.aliases.get(&*name.id) {
                    return Some(found(alias.clone()));
                }
                return self.global(&name.id).map(found);
            }
            Expr::Attribute(member) => (&member.value, member.attr.as_str(), member.attr.range),
            Expr::Subscript(member) => (&member.value, literal::string(&member.slice)?, member.slice.range()),
            _ => return None,
        };
        if name.starts_with("__") {
            return None;
        }
        let base = self.reference(base)?;
        let found = |reference: Reference| Found::at(reference, at);
        match base.reference {
            Reference::Package("mcp") if name == "servers" => Some(found(Reference::Package("mcp.servers"))),
            Reference::Package("mcp") => None,
            Reference::Package(_) | Reference::Servers => {
                Some(found(Reference::Server(NamedServer::named(name))))
            }
            Reference::Server(server) if server.is_full_name() => None,
            Reference::Server(server) => Some(Found {
                reference: Reference::Tool(server, name.to_owned()),
                server_at: base.server_at,
                tool_at: at,
            }),
            Reference::Tool(..) => None,
        }
    }

    /// What a variable refers to that the script does not bind.
    pub(super) fn global(&self, name: &str) -> Option<Reference> {
        if self.names.is_bound(name) || builtins::is_builtin(name) {
            return None;
        }
        let server = |name: &str| Reference::Server(NamedServer { name: name.to_owned(), is_global: true });
        Some(match name {
            "tools" | SERVERS => Reference::Servers,
            "mcp" => Reference::Package("mcp"),
            _ => server(name.strip_prefix(SERVER_PREFIX).unwrap_or(name)),
        })
    }

    pub(super) fn import(&mut self, import: &'a StmtImport) {
        for alias in &import.names {
            for package in PACKAGES {
                let rest = alias.name.strip_prefix(package);
                let Some(server) = rest.and_then(|rest| rest.strip_prefix('.')) else {
                    if rest == Some("") {
                        match &alias.asname {
                            Some(name) => self.set_alias(name, Reference::Package(package)),
                            None if package == "mcp_tools" => {
                                self.set_alias("mcp_tools", Reference::Package(package));
                            }
                            None => self.set_alias("mcp", Reference::Package("mcp")),
                        }
                    }
                    continue;
                };
                self.imported(alias, Target::Server(server.to_owned()));
                match &alias.asname {
                    Some(name) => {
                        self.set_alias(name, Reference::Server(NamedServer::named(server)));
                    }
                    None if package == "mcp_tools" => {
                        self.set_alias("mcp_tools", Reference::Package(package));
                    }
                    None => self.set_alias("mcp", Reference::Package("mcp")),
                }
            }
        }
    }

    pub(super) fn import_from(&mut self, import: &'a StmtImportFrom) {
        let Some(module) = import.module.as_ref().filter(|_| import.level == 0) else { return };
        for package in PACKAGES {
            let Some(rest) = module.strip_prefix(package) else { continue };
            for alias in &import.names {
                let local: &'a str = alias.asname.as_ref().unwrap_or(&alias.name);
                let reference = if rest.is_empty() {
                    if &*alias.name == "*" {
                        continue;
                    }
                    self.imported(alias, Target::Server(alias.name.to_string()));
                    Reference::Server(NamedServer::named(&*alias.name))
                } else if let Some(server) = rest.strip_prefix('.') {
                    self.imported(alias, Target::Server(server.to_owned()));
                    Reference::Tool(NamedServer::named(server), alias.name.to_string())
                } else {
                    continue;
                };
                self.set_alias(local, reference);
            }
        }
        if &**module == "mcp" {
            for alias in import.names.iter().filter(|alias| &*alias.name == "servers") {
                let local: &'a str = alias.asname.as_ref().unwrap_or(&alias.name);
                self.set_alias(local, Reference::Package("mcp.servers"));
            }
        }
    }

    pub(super) fn imported(&mut self, alias: &'a Alias, target: Target) {
        let at = bytes(alias.range);
        self.survey.add(ToolUse::import(target, at.clone(), at, self.flow.is_certain));
    }

    /// A variable is what it is made only if nothing else binds it.
    pub(super) fn set_alias(&mut self, name: &'a str, reference: Reference) {
        if self.names.is_bound_once(name) || matches!(reference, Reference::Package(_)) {
            self.aliases.insert(name, reference);
        }
    }
}

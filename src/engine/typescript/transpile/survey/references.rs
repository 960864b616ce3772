//! What names and expressions refer to: servers and tools, by global, import or constant.

use std::collections::HashSet;
use std::sync::LazyLock;

use swc_common::{Span, Spanned as _};
use swc_ecma_ast::{
    AssignPatProp, CallExpr, Callee, Expr, Id, ImportDecl, ImportSpecifier, MemberExpr, MemberProp,
    ModuleExportName, ObjectPatProp, OptChainBase, Pat, PropName, VarDeclarator,
};

use super::syntax::{bytes, plain};
use super::{Surveyor, literal};
use crate::engine::survey::{self as shared, NamedServer};
use crate::run::check::survey::{Target, ToolUse};

/// The scheme of the modules that scripts import.
const SCHEME: &str = "mcp:";

/// Properties of `tools` that are not servers, and of a server that are not tools.
const NOT_A_SERVER: [&str; 5] = ["then", "toJSON", "constructor", "toString", "valueOf"];
const NOT_A_TOOL: [&str; 2] = ["then", "toJSON"];

/// Globals that every script has, which are never servers.
static GLOBALS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("../../../../../js/globals.txt").lines().collect());

/// What an expression refers to.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    /// All servers.
    Tools,
    Server(NamedServer),
    Tool(NamedServer, String),
}

/// A reference, and where its parts are named.
pub(super) type Found = shared::Found<Reference, Span>;

impl Surveyor<'_> {
    /// Reads `import("mcp:server")`.
    pub(super) fn import_call(&mut self, call: &CallExpr, is_awaited: bool) {
        let Some(given) = call.args.first() else { return };
        let Some(server) = imported_server(&given.expr) else { return };
        let at = bytes(given.expr.span());
        let is_certain = self.flow.is_certain && is_awaited;
        self.survey.add(ToolUse::import(Target::Server(server), at.clone(), at, is_certain));
    }

    pub(super) fn import(&mut self, import: &ImportDecl) {
        let Some(server) = import.src.value.as_str().and_then(|from| from.strip_prefix(SCHEME)) else {
            return;
        };
        if import.type_only {
            return;
        }
        let named = |own: &mut Self, target: Target, span: Span, is_used: bool| {
            // An import that nothing uses is left out.
            let is_certain = is_used && !own.names.is_opaque;
            own.survey.add(ToolUse::import(target, bytes(span), bytes(import.src.span), is_certain));
        };
        let of = |name: &str| NamedServer::named(name);
        let is_used = import.specifiers.iter().any(|one| self.names.is_used(&one.local().to_id()))
            || import.specifiers.is_empty();
        named(self, Target::Server(server.to_owned()), import.src.span, is_used);
        for specifier in &import.specifiers {
            let id = specifier.local().to_id();
            match specifier {
                ImportSpecifier::Named(one) if !one.is_type_only => {
                    let name = match &one.imported {
                        Some(ModuleExportName::Ident(name)) => name.sym.to_string(),
                        Some(ModuleExportName::Str(name)) => match name.value.as_str() {
                            Some(name) => name.to_owned(),
                            None => continue,
                        },
                        None => one.local.sym.to_string(),
                    };
                    if name == "default" {
                        self.aliases.insert(id, Reference::Server(of(server)));
                        continue;
                    }
                    let is_used = self.names.is_used(&id);
                    let target = Target::Tool { server: server.to_owned(), tool: name.clone() };
                    named(self, target, one.span, is_used);
                    self.aliases.insert(id, Reference::Tool(of(server), name));
                }
                ImportSpecifier::Named(_) => {}
                ImportSpecifier::Default(_) | ImportSpecifier::Namespace(_) => {
                    self.aliases.insert(id, Reference::Server(of(server)));
                }
            }
        }
    }

    /// What an expression refers to, if it is a server or a tool.
    pub(super) fn reference(&self, expression: &Expr) -> Option<Found> {
        match plain(expression) {
            Expr::Ident(name) => {
                let found = |reference: Reference| Found::at(reference, name.span);
                if let Some(alias) = self.aliases.get(&name.to_id()) {
                    return Some(found(alias.clone()));
                }
                let is_free = name.ctxt == self.unresolved && !self.names.assigned.contains(&name.to_id());
                if !is_free {
                    return None;
                }
                if name.sym == "tools" {
                    return Some(found(Reference::Tools));
                }
                let server = || NamedServer { name: name.sym.to_string(), is_global: true };
                (!GLOBALS.contains(&*name.sym)).then(|| found(Reference::Server(server())))
            }
            Expr::Member(member) => self.member(member),
            Expr::OptChain(chain) => match &*chain.base {
                OptChainBase::Member(member) => self.member(member),
                OptChainBase::Call(_) => None,
            },
            Expr::Await(inner) => {
                let Expr::Call(CallExpr { callee: Callee::Import(_), args, .. }) = plain(&inner.arg) else {
                    return None;
                };
                let from = &args.first()?.expr;
                Some(Found::at(Reference::Server(NamedServer::named(imported_server(from)?)), from.span()))
            }
            _ => None,
        }
    }

    pub(super) fn member(&self, member: &MemberExpr) -> Option<Found> {
        let base = self.reference(&member.obj)?;
        let (name, at) = match &member.prop {
            MemberProp::Ident(name) => (name.sym.to_string(), name.span),
            MemberProp::Computed(index) => (literal::string(&index.expr)?, index.expr.span()),
            MemberProp::PrivateName(_) => return None,
        };
        match base.reference {
            Reference::Tools if NOT_A_SERVER.contains(&&*name) => None,
            Reference::Tools => Some(Found::at(Reference::Server(NamedServer::named(name)), at)),
            Reference::Server(_) if NOT_A_TOOL.contains(&&*name) => None,
            // A property of a tool.
            Reference::Server(server) if server.is_full_name() => None,
            Reference::Server(server) => Some(Found {
                reference: Reference::Tool(server, name),
                server_at: base.server_at,
                tool_at: at,
            }),
            Reference::Tool(..) => None,
        }
    }

    /// Notes the constants that a declaration makes of servers and tools.
    pub(super) fn alias(&mut self, variable: &VarDeclarator) {
        let Some(init) = &variable.init else { return };
        let Some(found) = self.reference(init) else { return };
        match &variable.name {
            Pat::Ident(name) => self.set_alias(name.id.to_id(), found.reference),
            Pat::Object(pattern) => {
                for property in &pattern.props {
                    let (key, id) = match property {
                        ObjectPatProp::Assign(AssignPatProp { key, value: None, .. }) => {
                            (key.id.sym.to_string(), key.id.to_id())
                        }
                        ObjectPatProp::KeyValue(pair) => {
                            let (PropName::Ident(key), Pat::Ident(name)) = (&pair.key, &*pair.value) else {
                                continue;
                            };
                            (key.sym.to_string(), name.id.to_id())
                        }
                        _ => continue,
                    };
                    let part = match &found.reference {
                        Reference::Tools => Reference::Server(NamedServer::named(key)),
                        // What a module exports by default is its server.
                        Reference::Server(server) if key == "default" => Reference::Server(server.clone()),
                        Reference::Server(server) => Reference::Tool(server.clone(), key),
                        Reference::Tool(..) => continue,
                    };
                    self.set_alias(id, part);
                }
            }
            _ => {}
        }
    }

    pub(super) fn set_alias(&mut self, id: Id, reference: Reference) {
        if !self.names.assigned.contains(&id) {
            self.aliases.insert(id, reference);
        }
    }
}

/// The server of the module that an expression names.
fn imported_server(expression: &Expr) -> Option<String> {
    literal::string(expression)?.strip_prefix(SCHEME).map(str::to_owned)
}

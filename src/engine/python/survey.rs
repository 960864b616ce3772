//! Reads from a Python script which tools it calls, and which of the calls every run has to make.
//!
//! Ruff's parser makes the tree, because CPython is not at hand here: it is the guest. What the parser does not
//! accept, and what only the guest makes Python of (an indented script), is not read; the guest compiles the
//! script and says what is wrong. The rules are those of TypeScript: a call is certain if it
//! is awaited where no condition, loop, `with` or `try` surrounds it and no `return` may precede it, at the top
//! level or in a function that is called there. A name that the script binds itself is not one of ours.

mod bounds;
mod by_name;
mod flow;
mod literal;
mod names;
mod references;

use std::collections::{HashMap, HashSet};
use std::panic::catch_unwind;
use std::time::Instant;

use ruff_python_ast::visitor::Visitor as _;
use ruff_python_ast::{
    CmpOp, Expr, ExprAttribute, ExprCall, ExprSubscript, ModModule, Stmt, StmtFunctionDef, StmtIf,
};
use ruff_text_size::{Ranged as _, TextRange};

use self::literal::{UNKNOWN, bytes};
use self::names::Names;
use self::references::{Found, Reference, Server};
use crate::engine::fence;
use crate::run::check::survey::{Literal, Survey, Target, ToolUse};
use crate::run::script::Language;

/// Maximum size of a script that is read, in bytes: the parser cannot be interrupted. Scripts that people and
/// models write are a tenth of it.
const MAX_BYTES: usize = 256 << 10;

/// Maximum number of Markdown fences whose content is tried, as for TypeScript.
const MAX_FENCES: usize = 100;

/// Maximum number of calls that are followed into the functions that they call.
const MAX_FOLLOWED: usize = 200;

/// Reads what `source` calls. Spans are its byte offsets.
pub(crate) fn survey(source: &str) -> Survey {
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    let began = Instant::now();
    if text.len() > MAX_BYTES {
        return Survey::default();
    }
    let mut survey = match fence::leading(text, Language::Python) {
        Some(part) => survey_of(part.text, source),
        None => match survey_of(text, source) {
            Err(Unread::NoPython) => {
                let parts = fence::fenced(text, Language::Python).into_iter().take(MAX_FENCES);
                let mut parts = parts.map(|part| survey_of(part.text, source));
                parts.find(|survey| !matches!(survey, Err(Unread::NoPython))).unwrap_or(Err(Unread::NoPython))
            }
            whole => whole,
        },
    }
    .unwrap_or_default();
    survey.took = began.elapsed();
    survey
}

/// Why a text is not read.
enum Unread {
    /// The parser does not accept it.
    NoPython,
    /// The parser cannot be trusted with it, or has panicked, which is a defect of it that some source triggers.
    /// The script runs nevertheless.
    BeyondTheParser,
}

/// Reads what a part of `source` calls.
fn survey_of(part: &str, source: &str) -> Result<Survey, Unread> {
    let read = catch_unwind(|| {
        if !bounds::allow(part) {
            return Err(Unread::BeyondTheParser);
        }
        let parsed = ruff_python_parser::parse_module(part).map_err(|_syntax| Unread::NoPython)?;
        Ok(read(parsed.syntax()))
    });
    let mut survey = read.unwrap_or(Err(Unread::BeyondTheParser))?;
    survey.place(part, source);
    Ok(survey)
}

fn read(module: &ModModule) -> Survey {
    let names = Names::of(module);
    let mut surveyor = Surveyor {
        survey: Survey::default(),
        aliases: HashMap::new(),
        functions: HashMap::new(),
        followed: HashSet::new(),
        is_certain: !names.is_opaque,
        has_returned: false,
        awaits_returns: true,
        value_at: None,
        names,
    };
    surveyor.module(module);
    surveyor.survey
}

struct Surveyor<'a> {
    survey: Survey,
    names: Names<'a>,
    /// Variables that are servers and tools.
    aliases: HashMap<&'a str, Reference>,
    /// The functions of the top level.
    functions: HashMap<&'a str, &'a StmtFunctionDef>,
    /// Those whose bodies were read where they are called.
    followed: HashSet<&'a str>,
    /// Whether what is read now is reached by every run that succeeds.
    is_certain: bool,
    /// Whether the function that is read may have returned.
    has_returned: bool,
    /// Whether somebody awaits what the function that is read returns.
    awaits_returns: bool,
    /// The expression statement that gives the script's value, which is awaited.
    value_at: Option<TextRange>,
}

impl<'a> Surveyor<'a> {
    fn module(&mut self, module: &'a ModModule) {
        for statement in &module.body {
            if let Stmt::FunctionDef(function) = statement
                && function.decorator_list.is_empty()
                && self.names.is_bound_once(&function.name)
                && !names::yields(function)
            {
                self.functions.insert(&function.name, function);
            }
        }
        let value = self.value(module);
        if let Some(Value::Expression(at)) = value {
            self.value_at = Some(at);
        }
        for statement in &module.body {
            self.visit_stmt(statement);
            self.is_certain &= !self.has_returned;
        }
        if let Some(Value::Call(name)) = value {
            self.follow(name, true);
        }
        // What nothing calls for certain, in the order of the text.
        self.is_certain = false;
        for statement in &module.body {
            if let Stmt::FunctionDef(function) = statement
                && self.functions.contains_key(&*function.name)
                && !self.followed.contains(&*function.name)
            {
                self.body(function, true);
            }
        }
    }

    /// What gives the script's value, as `cx_guest/source.py` decides it, if it matters here.
    fn value(&self, module: &'a ModModule) -> Option<Value<'a>> {
        if names::returns(&module.body) {
            return None;
        }
        for wanted in ["main", "run"] {
            if let Some((&name, _)) = self.functions.get_key_value(wanted)
                && !self.names.is_used(wanted)
            {
                return Some(Value::Call(name));
            }
        }
        let is_idle = |statement: &&Stmt| match statement {
            Stmt::Expr(expression) => !expression.value.is_string_literal_expr(),
            other => !matches!(other, Stmt::Import(_) | Stmt::ImportFrom(_) | Stmt::Pass(_)),
        };
        let mut running = module.body.iter().filter(is_idle);
        if let (Some(Stmt::FunctionDef(only)), None) = (running.next(), running.next()) {
            return self.functions.get_key_value(&*only.name).map(|(&name, _)| Value::Call(name));
        }
        let is_declaration = |statement: &&Stmt| {
            !matches!(
                statement,
                Stmt::FunctionDef(_)
                    | Stmt::ClassDef(_)
                    | Stmt::Import(_)
                    | Stmt::ImportFrom(_)
                    | Stmt::Pass(_)
                    | Stmt::TypeAlias(_)
            )
        };
        match module.body.iter().rev().find(is_declaration)? {
            Stmt::Expr(last) => Some(Value::Expression(last.range)),
            Stmt::If(last) if is_main_guard(last) => match last.body.last()? {
                Stmt::Expr(last) => Some(Value::Expression(last.range)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reads the body of the function of this name, if it is known and was not read yet.
    fn follow(&mut self, name: &str, is_awaited: bool) {
        let Some((&name, &function)) = self.functions.get_key_value(name) else { return };
        if self.followed.len() < MAX_FOLLOWED && self.followed.insert(name) {
            self.body(function, is_awaited);
        }
    }

    /// Reads the body of a function where it is called.
    fn body(&mut self, function: &'a StmtFunctionDef, is_awaited: bool) {
        let outer = (self.is_certain, self.has_returned, self.awaits_returns);
        self.is_certain &= is_awaited || !function.is_async;
        (self.has_returned, self.awaits_returns) = (false, is_awaited);
        self.visit_body(&function.body);
        (self.is_certain, self.has_returned, self.awaits_returns) = outer;
    }

    /// Reads what may not be reached.
    fn doubtful(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.is_certain, false);
        read(self);
        self.is_certain = outer;
    }

    /// Reads a function that is not called here.
    fn function(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = (self.has_returned, self.awaits_returns);
        self.awaits_returns = true;
        self.doubtful(read);
        (self.has_returned, self.awaits_returns) = outer;
    }

    /// Reads an expression that somebody waits for.
    fn awaited(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Call(call) => self.call(call, true),
            Expr::Await(inner) => self.awaited(&inner.value),
            other => self.visit_expr(other),
        }
    }

    fn call(&mut self, call: &'a ExprCall, is_awaited: bool) {
        if self.waiting_call(call, is_awaited) {
            return;
        }
        self.visit_arguments(&call.arguments);
        if let Some(Found { reference: Reference::Tool(server, tool), server_at, tool_at }) =
            self.reference(&call.func)
        {
            let Server { name: server, is_global } = server;
            let target = match is_global {
                true => Target::ToolOfGlobal { server, tool },
                false => Target::Tool { server, tool },
            };
            let is_certain = self.is_certain && is_awaited;
            let arguments = literal::arguments(&call.arguments);
            return self.add(call, target, arguments, server_at, tool_at, is_certain);
        }
        match &*call.func {
            Expr::Name(name) => {
                if !self.global_call(&name.id, call, is_awaited) && self.is_certain {
                    self.follow(&name.id, is_awaited);
                }
            }
            Expr::Subscript(ExprSubscript { value, .. }) if self.is_server(value) => {
                self.add(call, Target::Unknown, UNKNOWN, call.range(), call.range(), false);
            }
            other => self.visit_expr(other),
        }
    }

    fn is_server(&self, expression: &Expr) -> bool {
        let found = self.reference(expression);
        found.is_some_and(|found| matches!(found.reference, Reference::Servers | Reference::Server(_)))
    }

    /// Reads `asyncio.run(…)`, and an awaited `asyncio.gather(…)` or `wait_for(…)`, which wait for the calls that
    /// they are given. Returns whether it is one.
    fn waiting_call(&mut self, call: &'a ExprCall, is_awaited: bool) -> bool {
        let Expr::Attribute(ExprAttribute { value, attr, .. }) = &*call.func else { return false };
        let is_asyncio = matches!(&**value, Expr::Name(name) if name.id == "asyncio");
        let waits = match attr.as_str() {
            "run" => true,
            "gather" | "wait_for" => is_awaited,
            _ => false,
        };
        // `return_exceptions` makes values of errors.
        let catches = call.arguments.keywords.iter().any(|given| match &given.arg {
            Some(name) => name == "return_exceptions",
            None => true,
        });
        if !is_asyncio || !waits || catches || !self.names.is_module("asyncio") {
            return false;
        }
        for given in &call.arguments.args {
            self.awaited(given);
        }
        for given in &call.arguments.keywords {
            self.visit_expr(&given.value);
        }
        true
    }

    fn add(
        &mut self,
        call: &ExprCall,
        target: Target,
        arguments: Literal,
        server_at: TextRange,
        tool_at: TextRange,
        is_certain: bool,
    ) {
        self.survey.add(ToolUse {
            target,
            arguments: Some(arguments),
            at: bytes(call.range()),
            server_at: bytes(server_at),
            tool_at: bytes(tool_at),
            is_certain,
            is_forgotten: false,
        });
    }
}

/// What gives the script's value.
#[derive(Clone, Copy)]
enum Value<'a> {
    /// The function of this name, which is called.
    Call(&'a str),
    /// The expression statement here, which is awaited.
    Expression(TextRange),
}

/// Whether the test is `__name__ == "__main__"`, which holds.
fn is_main_guard(statement: &StmtIf) -> bool {
    let Expr::Compare(test) = &*statement.test else { return false };
    matches!(&*test.left, Expr::Name(name) if name.id == "__name__")
        && *test.ops == [CmpOp::Eq]
        && matches!(&*test.comparators, [Expr::StringLiteral(text)] if text.value.to_str() == "__main__")
}

#[cfg(test)]
mod tests;

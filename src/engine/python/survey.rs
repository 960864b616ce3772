//! Surveys a Python script: which tools it calls, and which of the calls every run has to make.
//!
//! Ruff's parser builds the tree, because CPython is only in the guest. The guest compiles the
//! script and decides whether it is valid, because it accepts more than the parser does (an
//! indented script). Errors of the parser are only additional findings, beside the script's calls.
//!
//! The rules are those of TypeScript. A call is certain if it is awaited at the top level, or in a
//! function that is called there, if no condition, `with` or `try` surrounds it, no loop except one
//! over a list literal, and no `return` can precede it. A name that the script binds itself refers
//! to no tool. An import of a module that is not there is certain where a call would be.

mod bounds;
mod builtins;
mod by_name;
mod flow;
mod imports;
mod literal;
mod modules;
mod names;
mod references;
mod unavailable;

use std::collections::{HashMap, HashSet};
use std::panic::catch_unwind;
use std::time::Instant;

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::Visitor as _;
use ruff_python_ast::{
    CmpOp, Comprehension, Expr, ExprAttribute, ExprCall, ExprGenerator, ExprListComp, ExprSetComp,
    ExprStarred, ExprSubscript, ModModule, Stmt, StmtFunctionDef, StmtIf,
};
use ruff_python_parser::{Mode, ParseError, ParseErrorType, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged as _, TextRange};

use self::bounds::Bound;
use self::literal::{UNKNOWN, bytes};
use self::names::Names;
use self::references::Reference;
use crate::engine::fence;
use crate::engine::mend::{Lexis, MAX_MENDS, take_out};
use crate::engine::survey::{Flow, FlowReader, Found, call_of};
use crate::run::check::survey::{Literal, Mistake, Survey, Target};
use crate::run::script::Language;
use crate::tools::names::SuggestionBudget;

/// Maximum size of a script that is read, in bytes: the parser cannot be interrupted. Scripts that people and
/// models write are a tenth of it.
const MAX_BYTES: usize = 256 << 10;

/// Maximum number of Markdown fences whose content is tried, as for TypeScript.
const MAX_FENCES: usize = 100;

/// Maximum number of calls that are followed into the functions that they call.
const MAX_FOLLOWED: usize = 200;

/// Reads what `source` calls, and its syntax errors. Spans are its byte offsets.
pub(crate) fn survey(source: &str) -> Survey {
    let began = Instant::now();
    let mut survey = survey_of(source).unwrap_or_default();
    survey.took = began.elapsed();
    survey
}

fn survey_of(source: &str) -> Option<Survey> {
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    if text.len() > MAX_BYTES {
        return None;
    }
    let part = match fence::leading(text, Language::Python) {
        Some(part) => part.text,
        None => text,
    };
    let whole = read_part(part);
    let (part, reading) = match &whole {
        &Reading::Refused { at, .. } if part.len() == text.len() => {
            let parts = fence::fenced(text, Language::Python).into_iter().take(MAX_FENCES);
            let mut parts = parts.map(|part| (part.text, read_part(part.text)));
            let first = parts.next();
            let offset = |part: &str| part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
            let is_refused = |(_, reading): &(&str, Reading)| matches!(reading, Reading::Refused { .. });
            match first {
                Some(first) if !is_refused(&first) => first,
                first => match parts.find(|reading| !is_refused(reading)) {
                    Some(found) => found,
                    // As for TypeScript: a mistake in the prose says less than one in the code.
                    None => first.filter(|(part, _)| at < offset(part)).unwrap_or((part, whole)),
                },
            }
        }
        _ => (part, whole),
    };
    let mut survey = match reading {
        Reading::Read(survey) => survey,
        Reading::Refused { survey: Some(survey), .. } => survey,
        Reading::Refused { survey: None, at } => mended(part, at),
        Reading::Unread => return None,
    };
    survey.relocate(part, source);
    Some(survey)
}

/// The result of reading a text.
enum Reading {
    Read(Survey),
    /// The parser does not accept it.
    Refused {
        /// What it has read nevertheless; nothing if brackets have no partners.
        survey: Option<Survey>,
        /// The first mistake.
        at: usize,
    },
    /// The parser cannot be trusted with it, or has panicked, which is a defect of it that some source triggers.
    /// The script runs nevertheless.
    Unread,
}

/// Reads what a part of a source calls.
fn read_part(part: &str) -> Reading {
    let reading = catch_unwind(|| {
        match bounds::check(part) {
            Ok(()) => {}
            Err(Bound::Unpaired { at }) => return Reading::Refused { survey: None, at },
            Err(Bound::TooDeep) => return Reading::Unread,
        }
        let parsed = parse_unchecked(part, ParseOptions::from(Mode::Module)).try_into_module();
        let Some(parsed) = parsed else { return Reading::Unread };
        let mut survey = read(parsed.syntax());
        let Some(at) = parsed.errors().iter().map(|error| bytes(error.location).start).min() else {
            return Reading::Read(survey);
        };
        let errors = parsed
            .errors()
            .iter()
            .filter(|error| bytes(error.location).start == at || !is_about_blocks(error));
        survey.add_mistakes(errors.map(mistake), part);
        survey.mark_partial();
        Reading::Refused { survey: Some(survey), at }
    });
    reading.unwrap_or(Reading::Unread)
}

/// Whether an error is about where a block begins or ends. After another error it says nothing new: the parser has not
/// seen the line that begins the block.
fn is_about_blocks(error: &ParseError) -> bool {
    match &error.error {
        ParseErrorType::UnexpectedIndentation => true,
        ParseErrorType::ExpectedToken { expected, .. } => {
            matches!(expected, TokenKind::Indent | TokenKind::Dedent)
        }
        _ => false,
    }
}

fn mistake(error: &ParseError) -> Mistake {
    let message = error.error.to_string();
    let mut letters = message.chars();
    let message = match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => message,
    };
    Mistake { message, hint: None, at: bytes(error.location) }
}

/// What can be read of a text in which the bracket at `at` has no partner.
fn mended(part: &str, mut at: usize) -> Survey {
    let mut text = part.to_owned();
    let mut mistakes = Vec::new();
    let mut survey = Survey::default();
    for _ in 0..MAX_MENDS {
        let bracket = part.get(at..=at).unwrap_or_default();
        let message = format!("`{bracket}` has no partner");
        mistakes.push(Mistake { message, hint: None, at: at..at + bracket.len() });
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if !take_out(&mut text, line, Lexis::Python) {
            break;
        }
        match read_part(&text) {
            Reading::Refused { survey: None, at: next } => at = next,
            Reading::Read(read) | Reading::Refused { survey: Some(read), .. } => {
                survey = read;
                break;
            }
            Reading::Unread => break,
        }
    }
    survey.add_mistakes(mistakes, part);
    survey.mark_partial();
    survey
}

fn read(module: &ModModule) -> Survey {
    let names = Names::read(module);
    let mut surveyor = Surveyor {
        survey: Survey::default(),
        aliases: HashMap::new(),
        functions: HashMap::new(),
        followed: HashSet::new(),
        flow: Flow::of_script(!names.is_opaque),
        value_at: None,
        is_in_class: false,
        is_in_head: true,
        is_guarded: false,
        has_named_packages: false,
        suggestions: SuggestionBudget::of_message(),
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
    flow: Flow,
    /// The expression statement that gives the script's value, which is awaited.
    value_at: Option<TextRange>,
    /// Whether the body of a class is read, whose variables are read as its attributes.
    is_in_class: bool,
    /// Whether only imports were read until now.
    is_in_head: bool,
    /// Whether the code that is read may catch the errors of its imports, or may not run.
    is_guarded: bool,
    /// Whether the message of an earlier import names the packages that exist.
    has_named_packages: bool,
    /// The work that is left for names of modules to suggest.
    suggestions: SuggestionBudget,
}

impl FlowReader for Surveyor<'_> {
    fn flow(&mut self) -> &mut Flow {
        &mut self.flow
    }
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
            self.is_in_head &= names::is_of_head(statement);
            self.visit_stmt(statement);
            self.flow.next();
        }
        self.is_in_head = false;
        if let Some(Value::Call(name)) = value {
            self.follow(name, true);
        }
        // Functions that nothing calls for certain, in the order of the text.
        self.flow.is_certain = false;
        for statement in &module.body {
            if let Stmt::FunctionDef(function) = statement
                && self.functions.contains_key(&*function.name)
                && !self.followed.contains(&*function.name)
            {
                self.body(function, true);
            }
        }
    }

    /// What gives the script's value, as `cx_guest/program.py` decides it, if it matters here.
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
        let outer = std::mem::replace(&mut self.is_in_class, false);
        self.called(function.is_async, is_awaited, |own| own.visit_body(&function.body));
        self.is_in_class = outer;
    }

    /// Reads an expression that is awaited.
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
        let is_certain = self.flow.is_certain && is_awaited;
        match self.reference(&call.func) {
            Some(Found { reference: Reference::Tool(server, tool), server_at, tool_at }) => {
                let arguments = literal::arguments(&call.arguments);
                return self.add(call, server.tool(tool), arguments, server_at, tool_at, is_certain);
            }
            // `tools.mcp__server__tool(…)`
            Some(Found { reference: Reference::Server(server), server_at, .. }) if server.is_full_name() => {
                let arguments = literal::arguments(&call.arguments);
                return self.add(
                    call,
                    Target::Full(server.name),
                    arguments,
                    server_at,
                    server_at,
                    is_certain,
                );
            }
            _ => {}
        }
        match &*call.func {
            Expr::Name(name) => {
                if !self.global_call(&name.id, call, is_awaited) && self.flow.is_certain {
                    self.follow(&name.id, is_awaited);
                }
            }
            Expr::Subscript(ExprSubscript { value, .. }) if self.is_server(value) => {
                self.add(call, Target::Unknown, UNKNOWN, call.range(), call.range(), false);
            }
            other => {
                self.visit_expr(other);
                self.added_calls(call);
            }
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
        if !waits || catches || !self.is_asyncio(value) {
            return false;
        }
        for given in &call.arguments.args {
            match given {
                Expr::Starred(ExprStarred { value, .. }) => self.all_awaited(value),
                other => self.awaited(other),
            }
        }
        for given in &call.arguments.keywords {
            self.visit_expr(&given.value);
        }
        true
    }

    /// Whether the expression is the module `asyncio`, imported or not.
    fn is_asyncio(&self, expression: &Expr) -> bool {
        matches!(expression, Expr::Name(name) if name.id == "asyncio" && self.names.is_module("asyncio"))
    }

    /// Reads the calls of a comprehension, which are awaited.
    fn all_awaited(&mut self, list: &'a Expr) {
        match list {
            Expr::ListComp(ExprListComp { elt, generators, .. })
            | Expr::SetComp(ExprSetComp { elt, generators, .. })
            | Expr::Generator(ExprGenerator { elt, generators, .. }) => {
                self.comprehension(generators, |own| own.awaited(elt));
            }
            other => self.visit_expr(other),
        }
    }

    /// Reads a comprehension, whose element is reached for certain if its lists are not empty.
    fn comprehension(&mut self, generators: &'a [Comprehension], read: impl FnOnce(&mut Self)) {
        let outer = self.flow.is_certain;
        for generator in generators {
            let before = self.survey.uses.len();
            self.visit_expr(&generator.iter);
            self.forgets(&generator.iter, before);
            self.flow.is_certain &= !generator.is_async && self.names.is_filled(&generator.iter);
            self.visit_expr(&generator.target);
            for test in &generator.ifs {
                self.visit_expr(test);
                self.flow.is_certain = false;
            }
        }
        read(self);
        self.flow.is_certain = outer;
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
        let spans = [bytes(call.range()), bytes(server_at), bytes(tool_at)];
        self.survey.add(call_of(target, arguments, spans, is_certain));
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

//! Parses the author's text as a module whose top level may also `return`.

use std::collections::HashSet;

use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::{
    ArrowExpr, Class, Decl, EsVersion, Expr, ExprStmt, Function, Invalid, Module, ModuleItem, ReturnStmt,
    Stmt, TaggedTpl,
};
use swc_ecma_parser::error::{Error, SyntaxError};
use swc_ecma_parser::{Lexer, Parser, StringInput, Syntax, TsSyntax};
use swc_ecma_visit::{Visit, VisitWith};

use super::cancellation::Cancellation;
use super::error::{TranspileError, TranspileErrorKind};
use super::positions::{FIRST_BYTE, location_of};
use super::{messages, misread, repair};
use crate::engine::fence::Part;

/// The author's module, and whether its top level returns.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) module: Module,
    pub(super) returns: bool,
}

/// Parses `part` on its own, before the wrapper is added: text that would close the wrapper does
/// not parse here.
pub(super) fn parse(part: Part<'_>, cancellation: Cancellation<'_>) -> Result<Parsed, TranspileError> {
    let error = match parse_module(part.text) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    let repaired =
        repair::repair(part.text, &error, cancellation, parse_module, |parsed| &mut parsed.module)?;
    match repaired.or_else(|| parse_function(part.text)) {
        Some(parsed) => Ok(parsed),
        None => Err(describe(part, &error)),
    }
}

/// The tree of `text`, including errors that the parser recovers from.
#[cfg(any(test, fuzzing))]
pub(super) fn tree(text: &str) -> Result<Module, Error> {
    parser(text).parse_module()
}

fn parser(text: &str) -> Parser<Lexer<'_>> {
    let syntax = Syntax::Typescript(TsSyntax { decorators: true, ..TsSyntax::default() });
    let end = BytePos(FIRST_BYTE.0 + u32::try_from(text.len()).expect("the size was checked"));
    Parser::new_from(Lexer::new(syntax, EsVersion::latest(), StringInput::new(text, FIRST_BYTE, end), None))
}

fn parse_module(text: &str) -> Result<Parsed, Error> {
    let ParseAttempt { result, recovered } = read(text);
    // The fatal error may be a consequence of an earlier one.
    let first = recovered.into_iter().min_by_key(|error| error.span().lo);
    match result {
        Ok(parsed) => match first.or_else(|| misread::find(text, &parsed.module)) {
            Some(error) => Err(error),
            None => Ok(parsed),
        },
        Err(fatal) => Err(match first {
            Some(error) if error.span().lo <= fatal.span().lo => error,
            _ => fatal,
        }),
    }
}

/// The result of parsing a text.
pub(super) struct ParseAttempt {
    /// The module, or the error that the parser could not recover from.
    pub(super) result: Result<Parsed, Error>,
    /// The errors that it has recovered from.
    pub(super) recovered: Vec<Error>,
}

/// Parses `text`, and keeps all errors.
pub(super) fn read(text: &str) -> ParseAttempt {
    let mut parser = parser(text);
    let result = parser.parse_module();
    let mut recovered = parser.take_errors();
    // These are about types, but for a pattern on the left of `for…in`, which is JavaScript.
    recovered.retain(|error| {
        !matches!(error.kind(), SyntaxError::TS4112 | SyntaxError::TS1029(..) | SyntaxError::TS2491)
    });
    let module = match result {
        Ok(module) => module,
        Err(error) => {
            // Which `return` is at the top level cannot be told without the tree, and most are.
            recovered.retain(|error| *error.kind() != SyntaxError::ReturnNotAllowed);
            return ParseAttempt { result: Err(error), recovered };
        }
    };
    // The parser reports what it could not read, except in an `export abstract class`, where it
    // only leaves a gap in the tree.
    let mut gaps = Gaps::default();
    module.visit_with(&mut gaps);
    recovered.extend(gaps.found.map(|span| Error::new(span, SyntaxError::TS1109)));
    if text.contains("```") {
        let mut finder = TaggedByTemplate::default();
        module.visit_with(&mut finder);
        recovered.extend(finder.found.map(|span| Error::new(span, SyntaxError::InvalidExpr)));
    }
    // The parser has no setting that allows `return` at the top level of TypeScript. It reports
    // each one and continues, so those at the top level are removed from the list. One in a static
    // block stays.
    let mut returns = HashSet::new();
    if recovered.iter().any(|error| *error.kind() == SyntaxError::ReturnNotAllowed) {
        let mut finder = TopLevelReturns::default();
        module.visit_with(&mut finder);
        returns = finder.found;
        recovered.retain(|error| {
            *error.kind() != SyntaxError::ReturnNotAllowed || !returns.contains(&error.span().lo)
        });
    }
    ParseAttempt { result: Ok(Parsed { module, returns: !returns.is_empty() }), recovered }
}

/// Parses a source that consists of a function without a name, which is not a statement.
fn parse_function(text: &str) -> Option<Parsed> {
    let mut parser = parser(text);
    parser.allow_module_syntax();
    let expression = parser.parse_expr().ok()?;
    let rest = (parser.input().cur_span().lo - FIRST_BYTE).0 as usize;
    if rest < text.len() || !matches!(*expression, Expr::Fn(_)) || !parser.take_errors().is_empty() {
        return None;
    }
    let span = expression.span();
    let statement = Stmt::Expr(ExprStmt { span, expr: expression });
    let module = Module { span, body: vec![ModuleItem::Stmt(statement)], shebang: None };
    Some(Parsed { module, returns: false })
}

/// Collects the positions of the `return` statements at the top level.
#[derive(Default)]
struct TopLevelReturns {
    found: HashSet<BytePos>,
}

impl Visit for TopLevelReturns {
    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        self.found.insert(statement.span.lo);
    }

    // These cannot contain a `return` of the top level.
    fn visit_expr(&mut self, _: &Expr) {}
    fn visit_decl(&mut self, _: &Decl) {}
    fn visit_function(&mut self, _: &Function) {}
    fn visit_arrow_expr(&mut self, _: &ArrowExpr) {}
    fn visit_class(&mut self, _: &Class) {}
}

/// Searches for an expression that the parser could not read.
#[derive(Default)]
struct Gaps {
    found: Option<Span>,
}

impl Visit for Gaps {
    fn visit_invalid(&mut self, gap: &Invalid) {
        self.found = self.found.or(Some(gap.span));
    }
}

/// Searches for a template whose tag is a template. It always fails at run time, so no author
/// writes it deliberately; Markdown parses as one if the text before a fence parses as a label or
/// an expression.
#[derive(Default)]
struct TaggedByTemplate {
    found: Option<Span>,
}

impl Visit for TaggedByTemplate {
    fn visit_tagged_tpl(&mut self, tagged: &TaggedTpl) {
        if matches!(*tagged.tag, Expr::Tpl(_)) {
            self.found = self.found.or(Some(tagged.span));
        }
        tagged.visit_children_with(self);
    }
}

fn describe(part: Part<'_>, error: &Error) -> TranspileError {
    let at = error.span().lo;
    TranspileError {
        kind: TranspileErrorKind::Syntax,
        message: messages::plain(error.kind()),
        location: Some(location_of(part.text, part.lines_before, at)),
        hint: messages::hint(messages::foreign(part.text), error.kind()),
    }
}

//! Reads what can be read of a source that cannot be transpiled: all of its syntax errors, and what it calls
//! elsewhere.

use std::panic::{AssertUnwindSafe, catch_unwind};

use swc_common::{GLOBALS, Globals, Mark, Spanned as _, SyntaxContext};
use swc_ecma_ast::Program;
use swc_ecma_parser::error::Error;
use swc_ecma_transforms_base::resolver;

use super::cancellation::Cancellation;
use super::error::TranspileError;
use super::parse::{self, Parsed};
use super::{bounds, messages, survey, value, work};
use crate::engine::fence::Part;
use crate::engine::mend::{Lexis, MAX_MENDS, mend};
use crate::run::check::survey::{Mistake, Survey};

/// Maximum size of a source that is read again, in bytes. Scripts that people and models write are a third of it.
const MAX_BYTES: usize = 64 << 10;

/// What can be read of `part`, whose transpilation has ended with `error`.
pub(super) fn survey(part: Part<'_>, error: &TranspileError, cancellation: Cancellation<'_>) -> Survey {
    // As in `transpile_part`, no broken state survives a panic.
    let read = catch_unwind(AssertUnwindSafe(|| read(part, cancellation)));
    let mut survey = read.unwrap_or_default();
    if survey.mistakes.is_empty() {
        let line = error.location.map_or(0, |location| location.line.saturating_sub(part.lines_before + 1));
        let lines = part.text.split_inclusive('\n').take(usize::try_from(line).unwrap_or(usize::MAX));
        let at = lines.map(str::len).sum();
        let mistake = Mistake { message: error.message.clone(), hint: error.hint.clone(), at: at..at };
        survey.add_mistakes([mistake], part.text);
    }
    survey.mark_partial();
    survey
}

fn read(part: Part<'_>, cancellation: Cancellation<'_>) -> Survey {
    let mut text = part.text.to_owned();
    let foreign = messages::foreign(part.text);
    let mistake = |error: &Error| mistake(part.text, foreign, error);
    let mut mistakes: Vec<Mistake> = Vec::new();
    // The number of mistakes in the text as it was written.
    let mut written = None;
    let mut survey = None;
    let attempts = if text.len() <= MAX_BYTES { MAX_MENDS } else { 0 };
    for _ in 0..attempts {
        if cancellation.check().is_err() || bounds::check(&text).is_err() {
            break;
        }
        let attempt = parse::read(&text);
        mistakes.extend(attempt.recovered.iter().map(mistake));
        let fatal = match attempt.result {
            Ok(parsed) => {
                survey = calls(part, parsed);
                break;
            }
            Err(fatal) => mistake(&fatal),
        };
        let at = fatal.at.start;
        // A bracket that closes a block which was taken out is not a mistake, and neither is the end of the text
        // without one.
        let rest = text[text.floor_char_boundary(at)..].trim_start();
        let is_closing = rest.is_empty() || rest.starts_with([')', ']', '}']);
        if written.is_none() || !is_closing {
            mistakes.push(fatal);
        }
        written = written.or(Some(mistakes.len()));
        if !mend(&mut text, at, Lexis::TypeScript) {
            break;
        }
    }
    if survey.is_none() {
        mistakes.truncate(written.unwrap_or(usize::MAX));
    }
    let mut survey = survey.unwrap_or_default();
    survey.add_mistakes(mistakes, part.text);
    survey
}

/// What a module calls, if the passes may read it, and its imports that are refused.
fn calls(part: Part<'_>, parsed: Parsed) -> Option<Survey> {
    work::check(part, &parsed.module).ok()?;
    GLOBALS.set(&Globals::new(), || {
        let (unresolved, top_level) = (Mark::new(), Mark::new());
        let mut program = Program::Module(parsed.module);
        program.mutate(resolver(unresolved, top_level, true));
        let Program::Module(module) = &program else { return None };
        let value = value::decide(module, parsed.returns);
        let unresolved = SyntaxContext::empty().apply_mark(unresolved);
        let mistakes = survey::refused_imports(part, module, unresolved);
        Some(Survey { mistakes, ..survey::survey(module, &value, unresolved) })
    })
}

fn mistake(text: &str, foreign: Option<&str>, error: &Error) -> Mistake {
    let at = survey::bytes(error.span());
    let [start, end] = [at.start, at.end].map(|at| text.floor_char_boundary(at));
    Mistake {
        message: messages::plain(error.kind()),
        hint: messages::hint(foreign, error.kind()),
        at: start..end.max(start),
    }
}

//! Transpiles the author's TypeScript to JavaScript for V8.
//!
//! This is the only module that uses swc. The output is one expression: an async function without
//! parameters. In it, top-level `await` and `return` behave as in any function, and a static import
//! becomes an `await import` at the top. The author's text is parsed on its own and printed from
//! the tree, so nothing in it can close the wrapper.
//!
//! No source is executed here, and nothing is read from elsewhere. swc cannot be interrupted, some
//! of its passes take quadratic time or more, and it overflows the stack on deep nesting. So
//! `bounds` limits nesting and parser work before there is a tree, `work` counts on the tree what
//! the passes would do, `print` limits the output, and between passes the caller is asked whether
//! the run has been stopped. Callers run [`transpile`] on a thread with a stack of [`STACK_BYTES`].

mod bounds;
mod cancellation;
mod completion;
mod constants;
mod decorators;
mod emit;
mod enums;
mod error;
mod imports;
mod lower;
mod make;
mod messages;
mod misread;
mod namespaces;
mod output;
mod parse;
mod paths;
mod patterns;
mod positions;
mod print;
mod qualify;
mod recover;
mod refuse;
mod repair;
mod survey;
mod value;
mod work;

#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/entries/transpile.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bounds::SourceRefusal;
use cancellation::Cancellation;
pub(crate) use error::{TranspileError, TranspileErrorKind};
pub(crate) use output::{Import, Transpiled};
use positions::{FIRST_BYTE, location_of};
pub(crate) use positions::{Location, Positions};
pub(crate) use refuse::FILE_MODULES;
use swc_common::BytePos;

use crate::engine::fence::{self, Part};
use crate::run::check::survey::Survey;
use crate::tools::Language;

/// Stack in bytes that [`transpile`] needs for the deepest source that `bounds` accepts, in an
/// unoptimized build. Only touched pages are ever committed.
pub(crate) const STACK_BYTES: usize = 256 << 20;

/// Maximum number of Markdown fences whose content is tried. Answers of models hold a few; each
/// attempt has a fixed cost.
const MAX_FENCES: usize = 100;

/// Transpiles `source` and wraps it in an async function.
///
/// Needs a stack of [`STACK_BYTES`]. The content of a Markdown fence is used instead of the whole
/// text if the text starts with the fence, or if the whole is not TypeScript. `stopped` is called
/// between passes; once it returns true, no further pass runs.
pub(crate) fn transpile(
    source: &str,
    max_bytes: usize,
    stopped: &dyn Fn() -> bool,
) -> Result<Transpiled, Box<Untranspiled>> {
    let cancellation = Cancellation::new(stopped);
    if source.len() > max_bytes {
        let error = TranspileError {
            kind: TranspileErrorKind::Syntax,
            message: format!("the source has {} bytes, more than the limit of {max_bytes}", source.len()),
            location: None,
            hint: Some("pass large data as `input`, not as source".to_owned()),
        };
        return Err(Box::new(Untranspiled { error, survey: Survey::default() }));
    }
    let (part, result) = transpile_text(source.strip_prefix('\u{feff}').unwrap_or(source), cancellation);
    let relocate = |survey: &mut Survey| survey.relocate(part.text, source);
    match result {
        Ok(mut transpiled) => {
            relocate(&mut transpiled.survey);
            Ok(transpiled)
        }
        Err(error) => {
            let mut survey = match error.kind {
                TranspileErrorKind::Stopped => Survey::default(),
                _ => recover::survey(part, &error, cancellation),
            };
            relocate(&mut survey);
            Err(Box::new(Untranspiled { error, survey }))
        }
    }
}

/// Why a source cannot be transpiled, and what could be read of it.
#[derive(Debug)]
pub(crate) struct Untranspiled {
    pub(crate) error: TranspileError,
    pub(crate) survey: Survey,
}

/// Transpiles `text`, or the content of a Markdown fence in it: the part that is returned.
fn transpile_text<'a>(text: &'a str, cancellation: Cancellation<'_>) -> Attempt<'a> {
    let transpile_part = |part: Part<'a>| (part, transpile_part(part, cancellation));
    if let Some(part) = fence::leading(text, Language::TypeScript) {
        return transpile_part(part);
    }
    let whole = transpile_part(Part { text, lines_before: 0 });
    let Err(error) = &whole.1 else {
        return whole;
    };
    if error.kind != TranspileErrorKind::Syntax {
        return whole;
    }
    let line = error.location.map_or(0, |location| location.line);
    let parts = fence::fenced(text, Language::TypeScript).into_iter().take(MAX_FENCES);
    let mut fenced = parts.map(transpile_part);
    let first = fenced.next();
    let ends = |(_, result): &Attempt<'_>| {
        result.as_ref().map_or_else(|error| error.kind == TranspileErrorKind::Stopped, |_| true)
    };
    // If the error is in the prose before the first fence, the error in the code is more useful.
    let reported = match first {
        Some(first) if ends(&first) => return first,
        Some(first) if line <= first.0.lines_before => first,
        _ => whole,
    };
    fenced.find(ends).unwrap_or(reported)
}

type Attempt<'a> = (Part<'a>, Result<Transpiled, TranspileError>);

fn transpile_part(part: Part<'_>, cancellation: Cancellation<'_>) -> Result<Transpiled, TranspileError> {
    cancellation.check()?;
    bounds::check(part.text).map_err(|refusal| refused(part, refusal))?;
    cancellation.check()?;
    // A panic in swc is a defect of swc that some source triggers. Unwinding past it is safe
    // because no broken state survives: the closure owns the tree, the marks live in `Globals` of
    // this call, and the thread-local slots that point to them are restored while unwinding.
    let result = catch_unwind(AssertUnwindSafe(|| {
        let parsed = parse::parse(part, cancellation)?;
        emit::emit(part, parsed, cancellation)
    }));
    result.unwrap_or_else(|_| {
        Err(TranspileError {
            kind: TranspileErrorKind::Transpile,
            message: "this source cannot be made into JavaScript".to_owned(),
            location: None,
            hint: Some("write the unusual part of it in a simpler way".to_owned()),
        })
    })
}

fn refused(part: Part<'_>, refusal: SourceRefusal) -> TranspileError {
    let (kind, at, message, hint) = match refusal {
        SourceRefusal::TooDeep { at } => {
            (TranspileErrorKind::Syntax, at, "nested too deeply", "split it into functions or statements")
        }
        SourceRefusal::TooMuchWork { at } => (
            TranspileErrorKind::Transpile,
            at,
            work::MESSAGE,
            "nest less deeply up to here, pass large data as `input`, or split the script",
        ),
        SourceRefusal::Unclear { at } => (
            TranspileErrorKind::Syntax,
            at,
            "too many `/` that may divide or begin a regular expression",
            "put regular expressions into constants",
        ),
    };
    let byte = FIRST_BYTE + BytePos(u32::try_from(at).unwrap_or(u32::MAX - FIRST_BYTE.0));
    TranspileError {
        kind,
        message: message.to_owned(),
        location: Some(location_of(part.text, part.lines_before, byte)),
        hint: Some(hint.to_owned()),
    }
}

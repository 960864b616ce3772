//! A survey as the JSON text that a worker sends. It is validated against the source, because the
//! executor slices the source by the spans of a survey.

use std::time::Duration;

use crate::json;
use crate::run::check::survey::{
    Bytes, ImportProblem, Literal, MAX_IMPORTS, MAX_MISTAKES, MAX_USES, Mistake, Survey, ToolUse, ValueCount,
};
use crate::text::preview;

/// Maximum bytes of a survey's text. A longer one is dropped: the check before a run is only a help
/// for the author.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// Maximum bytes of memory that the text would need as a tree of JSON values; the parts of a survey
/// need a quarter of that. 500 calls with three arguments each are about 8 MB. A survey of more is
/// dropped before it is parsed.
const MAX_TREE: usize = 32 << 20;

/// Maximum characters of what a survey says about a mistake or an import. The texts of the engines are shorter.
const MAX_SAID: usize = 1_000;

/// The survey as text; empty if that would be too long.
pub(crate) fn encode(survey: &Survey) -> String {
    // Strings and numbers can always be serialized.
    serde_json::to_string(survey).ok().filter(|text| text.len() <= MAX_BYTES).unwrap_or_default()
}

/// The survey of `source` that a worker has sent. Entries that do not fit the source are dropped,
/// so a worker can only make a survey incomplete.
pub(crate) fn decode(text: &str, took: Duration, source: &str) -> Survey {
    // serde_json refuses deep nesting.
    let survey: Survey = match text.len() {
        1..=MAX_BYTES if json::check(text, MAX_TREE).is_ok() => {
            serde_json::from_str(text).unwrap_or_default()
        }
        _ => Survey::default(),
    };
    let program = Some(survey.program).filter(|at| is_span(at, source)).unwrap_or_default();
    let uses = survey.uses.into_iter().take(MAX_USES).filter(|one| use_fits(one, source)).collect();
    let mistakes = survey.mistakes.into_iter().take(MAX_MISTAKES);
    let mistakes = mistakes.filter(|mistake| is_span(&mistake.at, source)).map(shortened).collect();
    let imports = survey.imports.into_iter().take(MAX_IMPORTS).filter(|import| is_span(&import.at, source));
    let imports =
        imports.map(|import| ImportProblem { message: preview(&import.message, MAX_SAID), ..import });
    Survey { uses, mistakes, imports: imports.collect(), program, took }
}

fn is_span(at: &Bytes, source: &str) -> bool {
    source.get(at.clone()).is_some()
}

fn shortened(mistake: Mistake) -> Mistake {
    Mistake {
        message: preview(&mistake.message, MAX_SAID),
        hint: mistake.hint.map(|hint| preview(&hint, MAX_SAID)),
        at: mistake.at,
    }
}

fn use_fits(one: &ToolUse, source: &str) -> bool {
    let mut values = ValueCount::default();
    [&one.at, &one.server_at, &one.tool_at].into_iter().all(|at| is_span(at, source))
        && one.arguments.as_ref().is_none_or(|arguments| literal_fits(arguments, source, 0, &mut values))
}

/// Whether all spans are in the source, and no reader would have read more values.
fn literal_fits(literal: &Literal, source: &str, depth: usize, values: &mut ValueCount) -> bool {
    let is_known = !matches!(literal, Literal::Unknown { .. });
    // What is too deep is unknown, and so is counted below the deepest level.
    let fits = values.count(depth) || (!is_known && !values.is_exceeded());
    fits && match literal {
        Literal::List(items) => items.iter().all(|item| literal_fits(item, source, depth + 1, values)),
        Literal::Object(object) => object.fields.iter().all(|field| {
            is_span(&field.at, source)
                && is_span(&field.value_at, source)
                && literal_fits(&field.value, source, depth + 1, values)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests;

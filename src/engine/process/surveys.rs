//! A survey as the JSON text that a worker sends. It is validated against the source, because the
//! executor slices the source by the spans of a survey.

use std::time::Duration;

use crate::run::check::survey::{Bytes, Literal, MAX_MISTAKES, MAX_USES, Survey, ToolUse};

/// Maximum bytes of a survey's text. A longer one is dropped: the check before a run is only a help
/// for the author.
pub(crate) const MAX_BYTES: usize = 4 << 20;

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
        1..=MAX_BYTES => serde_json::from_str(text).unwrap_or_default(),
        _ => Survey::default(),
    };
    let program = Some(survey.program).filter(|at| is_span(at, source)).unwrap_or_default();
    let uses = survey.uses.into_iter().take(MAX_USES).filter(|one| use_fits(one, source)).collect();
    let mistakes = survey.mistakes.into_iter().take(MAX_MISTAKES);
    let mistakes = mistakes.filter(|mistake| is_span(&mistake.at, source)).collect();
    Survey { uses, mistakes, program, took }
}

fn is_span(at: &Bytes, source: &str) -> bool {
    source.get(at.clone()).is_some()
}

fn use_fits(one: &ToolUse, source: &str) -> bool {
    [&one.at, &one.server_at, &one.tool_at].into_iter().all(|at| is_span(at, source))
        && one.arguments.as_ref().is_none_or(|arguments| literal_fits(arguments, source))
}

fn literal_fits(literal: &Literal, source: &str) -> bool {
    match literal {
        Literal::List(items) => items.iter().all(|item| literal_fits(item, source)),
        Literal::Object(object) => object.fields.iter().all(|field| {
            is_span(&field.at, source)
                && is_span(&field.value_at, source)
                && literal_fits(&field.value, source)
        }),
        _ => true,
    }
}

//! Where a replay differs from its recording first.

use std::fmt;

use crate::run::recording::{Request, is_same_text};
use crate::run::result::{Outcome, Output, ScriptError};
use crate::text::{start, visible, visible_preview};

/// Maximum characters of each side of a difference.
const MAX_SHOWN: usize = 2_000;

/// Characters of a long beginning that both sides have: those that are shown of its start, and of its end.
const MAX_SAME: usize = 200;

/// Where a replay differs from its recording first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The number of the call, from 1, as [`Recording::explain`](crate::Recording::explain) numbers calls; `None` if
    /// all calls were the same and the outcome differs.
    pub call: Option<u64>,
    /// The behavior of the recorded run, in at most 2,000 characters.
    pub expected: String,
    /// The behavior of the replay, in at most 2,000 characters.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, expected, found } = self;
        match call {
            Some(number) => write!(formatter, "call {number}: expected {expected}; got {found}"),
            None => write!(formatter, "the outcome: expected {expected}; got {found}"),
        }
    }
}

/// The first difference between the output of the replay and that of the recorded run.
pub(super) fn difference_of_output(replayed: &[Output], recorded: &[Output]) -> Option<Difference> {
    let pair = |position: usize| (recorded.get(position), replayed.get(position));
    let is_same = |position| match pair(position) {
        (
            Some(Output::Log { level, text }),
            Some(Output::Log { level: replayed_level, text: replayed_text }),
        ) => level == replayed_level && is_same_text(replayed_text, text),
        (Some(Output::Emit(block)), Some(Output::Emit(replayed))) => {
            is_same_text(replayed.text(), block.text())
        }
        _ => false,
    };
    let differing = (0..recorded.len().max(replayed.len())).find(|&position| !is_same(position))?;
    let (recorded, replayed) = pair(differing);
    let [expected, found] = both(text_of(recorded), text_of(replayed));
    // Two entries with the same text have another level.
    let has_level = expected == found;
    let shown = |entry: Option<&Output>, text: String| match entry {
        Some(Output::Log { level, .. }) if has_level => format!("`{text}` of the level {level}"),
        Some(Output::Log { .. }) => format!("`{text}`"),
        Some(Output::Emit(_)) => format!("the block {text}"),
        None => "nothing".to_owned(),
    };
    Some(Difference {
        call: None,
        expected: format!("entry {} of the output to be {}", differing + 1, shown(recorded, expected)),
        found: shown(replayed, found),
    })
}

fn text_of(entry: Option<&Output>) -> &str {
    match entry {
        Some(Output::Log { text, .. }) => text,
        Some(Output::Emit(block)) => block.text(),
        None => "",
    }
}

/// The difference between the value or the error of the replay and that of the recorded run.
pub(super) fn difference_of_outcome(replayed: &Outcome, recorded: &Outcome) -> Option<Difference> {
    let (is_same, [expected, found]) = match (replayed, recorded) {
        (Outcome::Returned(value), Outcome::Returned(recorded)) => {
            let (value, recorded) = (value.text(), recorded.text());
            let [expected, found] = both(recorded, value);
            let shown = [format!("the value {expected}"), format!("the value {found}")];
            (is_same_text(value, recorded), shown)
        }
        (Outcome::Failed(error), Outcome::Failed(recorded)) => {
            // The text of the line is that of an edited script.
            let details =
                |error: &ScriptError| format!("{:?}", ScriptError { source_line: None, ..error.clone() });
            // The first description in which they differ.
            let descriptions: [fn(&ScriptError) -> String; 3] =
                [ScriptError::to_string, |error| format!("{error}{}", place(error)), details];
            let differs = |describe: &&fn(&ScriptError) -> String| describe(error) != describe(recorded);
            let describe = descriptions.iter().find(differs).unwrap_or(&descriptions[0]);
            let [expected, found] = both(&describe(recorded), &describe(error));
            let shown = [format!("the error {expected}"), format!("the error {found}")];
            (is_same_text(&details(error), &details(recorded)), shown)
        }
        _ => (false, [outcome_text(recorded), outcome_text(replayed)]),
    };
    (!is_same).then_some(Difference { call: None, expected, found })
}

/// Where an error is in the source, as the end of its description.
fn place(error: &ScriptError) -> String {
    error
        .line
        .map_or_else(String::new, |line| format!(" at line {line}, column {}", error.column.unwrap_or(1)))
}

pub(super) fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Returned(value) => format!("the value {}", visible_preview(value.text(), MAX_SHOWN)),
        Outcome::Failed(error) => format!("the error {}", visible_preview(&error.to_string(), MAX_SHOWN)),
    }
}

pub(super) fn preview(request: &Request) -> String {
    visible_preview(&request.to_string(), MAX_SHOWN)
}

/// The recorded request and another one in its place.
pub(super) fn both_requests(recorded: &Request, found: &Request) -> [String; 2] {
    both(&recorded.to_string(), &found.to_string())
}

/// What is shown of two texts. Where they differ is always a part of it: the middle of a long beginning that both have
/// is left out.
fn both(expected: &str, found: &str) -> [String; 2] {
    let same = expected.chars().zip(found.chars()).take_while(|(one, other)| one == other).count();
    [expected, found].map(|text| {
        if same < MAX_SHOWN - MAX_SAME {
            return visible_preview(text, MAX_SHOWN);
        }
        let omitted = same - 2 * MAX_SAME;
        let rest = &text[start(text, same - MAX_SAME).len()..];
        format!(
            "{}[… {omitted} characters that are the same …]{}",
            visible(start(text, MAX_SAME)),
            visible_preview(rest, MAX_SHOWN - 2 * MAX_SAME)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::run::result::{ErrorCode, LogLevel};

    #[test]
    fn two_long_texts_are_shown_where_they_differ() {
        let long = "ü".repeat(5_000);
        let [expected, found] = both(&format!("{long}a{long}"), &format!("{long}b"));
        let (start, end) = ("ü".repeat(200), "ü".repeat(200));
        assert_eq!(found, format!("{start}[… 4600 characters that are the same …]{end}b"));
        let beginning = format!("{start}[… 4600 characters that are the same …]{end}aü");
        assert!(expected.starts_with(&beginning) && expected.ends_with("ü…"), "{expected}");
        assert!(expected.chars().count() <= MAX_SHOWN);
        // One of them is the beginning of the other.
        let [expected, found] = both(&long, &format!("{long}b"));
        assert!(expected.ends_with("ü") && found.ends_with("üb") && found.len() == expected.len() + 1);
        // Each as a whole, and with its hidden characters written out.
        assert_eq!(both("a\u{1b}b", "ac"), ["a\\u{1b}b", "ac"]);
        let [expected, found] = both(&"x".repeat(1_799), &long);
        assert!(expected.len() == 1_799 && found == format!("{}…", "ü".repeat(MAX_SHOWN)));
    }

    #[test]
    fn the_level_of_what_is_printed_is_shown_if_only_that_differs() {
        let log = |level: LogLevel, text: &str| Output::Log { level, text: text.to_owned() };
        let difference = |replayed: Output| {
            difference_of_output(&[replayed], &[log(LogLevel::Info, "x")]).map(|found| found.to_string())
        };
        let of = |rest: &str| Some(format!("the outcome: expected entry 1 of the output to be {rest}"));
        assert_eq!(difference(log(LogLevel::Info, "x")), None);
        assert_eq!(
            difference(log(LogLevel::Error, "x")),
            of("`x` of the level info; got `x` of the level error")
        );
        assert_eq!(difference(log(LogLevel::Error, "y")), of("`x`; got `y`"));
        assert_eq!(
            difference_of_output(&[], &[log(LogLevel::Info, "x")]).map(|found| found.to_string()),
            of("`x`; got nothing")
        );
    }

    #[test]
    fn two_errors_are_shown_with_what_differs() {
        let error = |message: &str, line: u32, name: &str| {
            Outcome::Failed(ScriptError {
                line: Some(line),
                name: Some(name.to_owned()),
                ..ScriptError::new(ErrorCode::RuntimeError, message)
            })
        };
        let recorded = error("no", 1, "Error");
        let difference = |replayed: &Outcome| {
            difference_of_outcome(replayed, &recorded).map(|found| (found.expected, found.found))
        };
        let of = |expected: &str, found: &str| Some((expected.to_owned(), found.to_owned()));
        assert_eq!(difference(&recorded), None);
        assert_eq!(
            difference(&error("yes", 2, "TypeError")),
            of("the error RUNTIME_ERROR: no", "the error RUNTIME_ERROR: yes")
        );
        assert_eq!(
            difference(&error("no", 2, "TypeError")),
            of(
                "the error RUNTIME_ERROR: no at line 1, column 1",
                "the error RUNTIME_ERROR: no at line 2, column 1"
            )
        );
        let (expected, found) = difference(&error("no", 1, "TypeError")).unwrap();
        assert!(expected.contains(r#"name: Some("Error")"#), "{expected}");
        assert!(found.contains(r#"name: Some("TypeError")"#), "{found}");
        let value = Outcome::Returned(Json::from(serde_json::json!(1)));
        assert_eq!(difference(&value), of("the error RUNTIME_ERROR: no", "the value 1"));
    }
}

//! Where a replay differs from its recording first.

use std::fmt;

use crate::run::recording::{Request, is_same_text};
use crate::run::result::{Outcome, Output, ScriptError};
use crate::text::visible_preview;

/// Maximum characters of each side of a difference.
const MAX_SHOWN: usize = 2_000;

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
    let shown = |entry: Option<&Output>| match entry {
        Some(Output::Log { text, .. }) => format!("`{}`", visible_preview(text, MAX_SHOWN)),
        Some(Output::Emit(block)) => format!("the block {}", visible_preview(block.text(), MAX_SHOWN)),
        None => "nothing".to_owned(),
    };
    let (recorded, replayed) = pair(differing);
    Some(Difference {
        call: None,
        expected: format!("entry {} of the output to be {}", differing + 1, shown(recorded)),
        found: shown(replayed),
    })
}

/// The difference between the value or the error of the replay and that of the recorded run.
pub(super) fn difference_of_outcome(replayed: &Outcome, recorded: &Outcome) -> Option<Difference> {
    let is_same = match (replayed, recorded) {
        (Outcome::Returned(value), Outcome::Returned(recorded)) => {
            is_same_text(value.text(), recorded.text())
        }
        (Outcome::Failed(error), Outcome::Failed(recorded)) => {
            let text =
                |error: &ScriptError| format!("{:?}", ScriptError { source_line: None, ..error.clone() });
            is_same_text(&text(error), &text(recorded))
        }
        _ => false,
    };
    (!is_same).then(|| Difference {
        call: None,
        expected: outcome_text(recorded),
        found: outcome_text(replayed),
    })
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

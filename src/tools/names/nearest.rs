//! The names nearest to a wrong one, within a budget of work.
//!
//! Both sides of a comparison can be hostile: a script chooses wrong names, and a server can have ten thousand names
//! that resemble them. So the work is counted, and nothing is suggested once the budget is spent.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of names in a "did you mean" suggestion.
const MAX_NEAREST: usize = 3;

/// Names longer than this, in bytes, are not compared: the distance takes quadratic time.
const MAX_COMPARED: usize = 128;

/// Minimum similarity of a suggested name, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.6;

/// Steps, each of some nanoseconds, for the suggestions of one run and of one message: about 100 ms and 10 ms. The
/// former is enough for ten wrong names on a server of ten thousand tools, and for hundreds on an ordinary server.
const STEPS_OF_RUN: usize = 16 << 20;
const STEPS_OF_MESSAGE: usize = 1 << 20;

/// Size of the letter counts. Letters are counted by their lowest seven bits, which distinguish all of ASCII.
const LETTERS: usize = 128;

/// The work that is left for suggestions.
#[derive(Debug)]
pub(crate) struct SuggestionBudget {
    steps: AtomicUsize,
}

impl SuggestionBudget {
    /// The budget for all wrong names of one run.
    pub(crate) fn of_run() -> Self {
        Self { steps: AtomicUsize::new(STEPS_OF_RUN) }
    }

    /// The budget for one message.
    pub(crate) fn of_message() -> Self {
        Self { steps: AtomicUsize::new(STEPS_OF_MESSAGE) }
    }

    /// Spends `steps` of the budget. Returns `false` and empties the budget if fewer were left.
    fn spend(&self, steps: usize) -> bool {
        let rest = |left: usize| Some(left.saturating_sub(steps));
        let before = self.steps.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        before.is_ok_and(|left| left >= steps)
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.steps.load(Ordering::Relaxed)
    }
}

/// The candidates nearest to `wrong`, best first: those that are equal except for case and separators, those where one
/// contains the other, and those a few edits away. Empty if the budget is too small for all candidates.
pub(crate) fn nearest<'a>(
    wrong: &str,
    candidates: impl Iterator<Item = &'a str>,
    budget: &SuggestionBudget,
) -> Vec<&'a str> {
    if wrong.len() > MAX_COMPARED {
        return Vec::new();
    }
    let wanted = Folded::new(wrong);
    let mut best: Vec<(f64, &str)> = Vec::new();
    for candidate in candidates.filter(|candidate| candidate.len() <= MAX_COMPARED) {
        if !budget.spend(candidate.len() + 1) {
            return Vec::new();
        }
        let folded = Folded::new(candidate);
        let similarity = match wanted.containment(&folded) {
            Some(similarity) => similarity,
            None if wanted.max_similarity(&folded) < MIN_SIMILARITY => continue,
            None if budget.spend(wanted.text.len() * folded.text.len()) => {
                strsim::normalized_damerau_levenshtein(&wanted.text, &folded.text)
            }
            None => return Vec::new(),
        };
        if similarity >= MIN_SIMILARITY {
            best.push((similarity, candidate));
            best.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
            best.truncate(MAX_NEAREST);
        }
    }
    best.into_iter().map(|(_, candidate)| candidate).collect()
}

/// What finds a tool or a server among many.
pub(crate) const SEARCH: &str = "`search_tools` finds the right one";

/// `; did you mean …?` or, if no name is near, a list of the existing names, or `finder` if there are too many for one.
pub(crate) fn suggestion<'a>(
    wrong: &str,
    (what, finder): (&str, &str),
    candidates: impl Iterator<Item = &'a str> + Clone,
    budget: &SuggestionBudget,
) -> String {
    let near = nearest(wrong, candidates.clone(), budget);
    if !near.is_empty() {
        return format!("; did you mean {}?", quoted(near.into_iter()));
    }
    let count = candidates.clone().count();
    match count {
        0 => format!("; there are no {what}"),
        1..=12 => format!("; the {what} are {}", quoted(candidates)),
        _ => format!("; there are {count} {what}, {finder}"),
    }
}

/// The names, each between backticks.
pub(crate) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A name in the form for comparison: in lower case without separators, so that `ReadFile` and `read_file` are equal.
struct Folded {
    text: String,
    characters: u16,
    /// How often it has each letter.
    letters: [u16; LETTERS],
}

impl Folded {
    fn new(name: &str) -> Self {
        let mut folded =
            Self { text: String::with_capacity(name.len()), characters: 0, letters: [0; LETTERS] };
        let letters = name.chars().filter(|character| character.is_alphanumeric());
        for letter in letters.flat_map(char::to_lowercase) {
            folded.text.push(letter);
            folded.characters += 1;
            folded.letters[letter as usize % LETTERS] += 1;
        }
        folded
    }

    /// How similar the names are if one contains the other.
    fn containment(&self, other: &Self) -> Option<f64> {
        let (own, other) = (&*self.text, &*other.text);
        if own.len() < 3 || other.len() < 3 {
            return None;
        }
        if own == other {
            return Some(1.0);
        }
        (other.contains(own) || own.contains(other)).then_some(0.9)
    }

    /// An upper bound of the similarity, in linear time: an edit adds at most one letter and removes at most one, so
    /// there are at least as many edits as letters that one name has in excess.
    fn max_similarity(&self, other: &Self) -> f64 {
        let (mut more, mut fewer) = (0_u16, 0_u16);
        for (own, other) in self.letters.iter().zip(&other.letters) {
            more += own.saturating_sub(*other);
            fewer += other.saturating_sub(*own);
        }
        match self.characters.max(other.characters) {
            0 => 1.0,
            longest => 1.0 - f64::from(more.max(fewer)) / f64::from(longest),
        }
    }
}

#[cfg(test)]
mod tests;

//! The names that resemble a query that no tool matches.

use std::collections::HashSet;

use super::words::{for_each_word, is_stop_word};

/// Maximum number of words of a query and of a name that are compared.
const MAX_WORDS: usize = 16;

/// A lower part of common pairs of letters is chance.
const MIN_RESEMBLANCE: f32 = 0.3;

/// The positions of at most `limit` of the accepted names that resemble a word of `query` most, by pairs
/// of letters, best first. Ties keep their order. Empty if none does.
pub(crate) fn nearest<'a>(
    names: impl Iterator<Item = &'a str>,
    query: &str,
    limit: usize,
    accept: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let wanted = words(query);
    let mut found: Vec<(f32, usize)> = names
        .enumerate()
        .filter(|(position, _)| accept(*position))
        .filter_map(|(position, name)| {
            let words = words(name);
            let resemblances =
                wanted.iter().flat_map(|wanted| words.iter().map(move |word| resemblance(wanted, word)));
            let most = resemblances.fold(0.0, f32::max);
            (most >= MIN_RESEMBLANCE).then_some((most, position))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().take(limit).map(|(_, position)| position).collect()
}

/// The pairs of adjacent letters of each word.
fn words(text: &str) -> Vec<HashSet<(char, char)>> {
    let mut words = Vec::new();
    for_each_word(text, MAX_WORDS, |word| {
        if !is_stop_word(word.text) {
            words.push(word.text.chars().zip(word.text.chars().skip(1)).collect());
        }
    });
    words
}

/// The part of their pairs that two words have in common, from 0 to 1 (Dice's coefficient).
fn resemblance(a: &HashSet<(char, char)>, b: &HashSet<(char, char)>) -> f32 {
    let all = a.len() + b.len();
    if all == 0 { 0.0 } else { 2.0 * a.intersection(b).count() as f32 / all as f32 }
}

#[cfg(test)]
mod tests;

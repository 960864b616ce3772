//! Finds names that resemble a query that no tool matches.

use std::collections::HashMap;

use super::words::{for_each_word, is_stop_word};

/// Maximum number of words of a query and of a name that are compared.
const MAX_WORDS: usize = 16;

/// Minimum resemblance of a name. Lower values occur by chance.
const MIN_RESEMBLANCE: f32 = 0.3;

/// The positions of at most `limit` accepted names that resemble a word of `query` most, by pairs of letters, best
/// first. Ties keep their order. Empty if none resembles it.
pub(crate) fn nearest<'a>(
    names: impl Iterator<Item = &'a str>,
    query: &str,
    limit: usize,
    accept: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let wanted = WantedWords::new(query);
    let mut found: Vec<(f32, usize)> = names
        .enumerate()
        .filter(|(position, _)| accept(*position))
        .filter_map(|(position, name)| {
            let most = words(name).iter().map(|word| wanted.resemblance(word)).fold(0.0, f32::max);
            (most >= MIN_RESEMBLANCE).then_some((most, position))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().take(limit).map(|(_, position)| position).collect()
}

/// Two adjacent letters.
type Pair = (char, char);

/// The words of a query by their pairs of letters. Each pair of a name is looked up once instead of being compared with
/// each word, because a query can have a thousand words and a server ten thousand names.
struct WantedWords {
    /// The number of pairs of each word.
    pairs: Vec<usize>,
    /// The words that have a pair.
    words: HashMap<Pair, Vec<usize>>,
}

impl WantedWords {
    fn new(query: &str) -> Self {
        let mut wanted = Self { pairs: Vec::new(), words: HashMap::new() };
        for (position, pairs) in words(query).into_iter().enumerate() {
            wanted.pairs.push(pairs.len());
            for pair in pairs {
                wanted.words.entry(pair).or_default().push(position);
            }
        }
        wanted
    }

    /// The similarity of a word and the wanted word that resembles it most, from 0 to 1 (Dice's coefficient of their
    /// pairs).
    fn resemblance(&self, word: &[Pair]) -> f32 {
        let mut common = [0_usize; MAX_WORDS];
        for position in word.iter().filter_map(|pair| self.words.get(pair)).flatten() {
            common[*position] += 1;
        }
        let part = |(pairs, common): (&usize, &usize)| match pairs + word.len() {
            0 => 0.0,
            all => 2.0 * *common as f32 / all as f32,
        };
        self.pairs.iter().zip(&common).map(part).fold(0.0, f32::max)
    }
}

/// The pairs of adjacent letters of each word, each once.
fn words(text: &str) -> Vec<Vec<Pair>> {
    let mut words = Vec::new();
    for_each_word(text, MAX_WORDS, |word| {
        if !is_stop_word(word.text) {
            let mut pairs: Vec<Pair> = word.text.chars().zip(word.text.chars().skip(1)).collect();
            pairs.sort_unstable();
            pairs.dedup();
            words.push(pairs);
        }
    });
    words
}

#[cfg(test)]
mod tests;

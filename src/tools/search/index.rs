//! An inverted index of tools' texts, built once and queried many times.
//!
//! The crate `bm25` ranks documents of one text. It has no weights for name, description and fields, and its scores
//! cannot be combined with those of servers, related tools and earlier runs before the best documents are chosen.
//! tantivy has fields, but also segments, threads and 15 MB for a writer; the index of 5,000 tools takes some 10 MB.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::deprecated::Deprecated;
use super::learned::Learned;
use super::query::{Meaning, wanted};
use super::related::Related;
use super::terms::Terms;

/// The saturation parameter of Okapi BM25: how soon repetition stops counting.
const SATURATION: f32 = 1.2;

/// Weight of the server's relevance for the score of its tools: with the most relevant server, a tool's score doubles.
const SERVER_VALUE: f32 = 1.0;

/// Number of a server's best tools that determine its relevance.
const JUDGED_TOOLS: usize = 3;

/// Number of best tools whose related tools are considered.
const LEADING_TOOLS: usize = 5;

/// Score of a related tool, as a fraction of the leading tool's score. It replaces a lower score of the related tool
/// itself, and is not added: a tool that the query names needs no relation.
const RELATED_VALUE: f32 = 0.6;

/// The same fraction for tools that earlier runs called together. It is added, because it describes use, not texts.
const TOGETHER_VALUE: f32 = 0.7;

/// Maximum number of postings that are read for a query. Five thousand real tools have some 300,000, of which a query
/// reads few. A hostile server can have a million postings for each of a hundred words.
const MAX_READ: usize = 4_000_000;

/// The largest increase of a score because of a tool's use.
const POPULARITY_VALUE: f32 = 0.3;

/// Score of a deprecated tool, as a fraction of what its texts are worth: one that matches as well, and differs by a
/// word such as `v2`, is before it.
const DEPRECATED_VALUE: f32 = 0.75;

/// The words of a list of documents and where they occur. Immutable.
///
/// Ranks by BM25F: the occurrences in all fields are weighted and summed before saturation, so that
/// a word in both name and description counts once, with a higher weight. For a query that describes
/// a task, see [`SearchIndex::consider_task`].
pub(crate) struct SearchIndex {
    words: Postings,
    /// The number of each document's server.
    servers: Box<[u32]>,
    server_count: usize,
    related: Related,
    deprecated: Box<[Deprecated]>,
}

/// Where each term occurs.
pub(crate) struct Postings {
    pub(crate) terms: Terms,
    /// The postings of all terms, sorted by term and then by document.
    pub(crate) postings: Box<[Posting]>,
    /// The start of each term's postings, and the end of the last one's.
    pub(crate) starts: Box<[u32]>,
}

/// An occurrence of a term.
#[derive(Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) document: u32,
    /// The term's weight in the document, before saturation.
    pub(crate) weight: f32,
}

/// A document with its score. Ordered by score; of equal scores the first document is the greatest.
#[derive(Clone, Copy, PartialEq)]
struct Scored {
    score: f32,
    document: usize,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.document.cmp(&self.document))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl SearchIndex {
    /// `servers` has the number of each document's server.
    pub(crate) fn new(words: Postings, servers: Vec<u32>, related: Related) -> Self {
        let server_count = servers.iter().max().map_or(0, |most| *most as usize + 1);
        Self { words, servers: servers.into(), server_count, related, deprecated: Box::default() }
    }

    /// The index, in which these tools rank behind what replaces them.
    pub(crate) fn with_deprecated(self, deprecated: Vec<Deprecated>) -> Self {
        Self { deprecated: deprecated.into(), ..self }
    }

    /// The positions of at most `limit` documents that match at least one word of `query` and for
    /// which `accept` returns true, best first. Ties keep their order. For a query without words: the
    /// accepted documents in order.
    pub(crate) fn search(
        &self,
        query: &str,
        limit: usize,
        learned: &Learned,
        accept: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let Some(wanted) = wanted(&self.words.terms, query) else {
            return (0..self.servers.len()).filter(|&position| accept(position)).take(limit).collect();
        };
        let mut scores = self.words.scores(&wanted.meanings, self.servers.len());
        if wanted.is_task {
            self.consider_task(&mut scores, learned, &accept);
        }
        for &(document, popularity) in &learned.popularity {
            scores[document as usize] *= 1.0 + POPULARITY_VALUE * popularity;
        }
        self.lower_deprecated(&mut scores);
        best(&scores, limit, accept)
    }

    /// Lowers the scores of deprecated tools. A tool that replaces one matches at least as well as that one did.
    fn lower_deprecated(&self, scores: &mut [f32]) {
        for &Deprecated { document, replacement } in &*self.deprecated {
            let score = scores[document as usize];
            scores[document as usize] = DEPRECATED_VALUE * score;
            if let Some(replacement) = replacement {
                let replacement = &mut scores[replacement as usize];
                *replacement = replacement.max(score);
            }
        }
    }

    /// Adds tools that a task needs although its words do not name them: a task mostly uses few servers, and some tools
    /// are used with others, as the catalog and earlier runs show.
    fn consider_task(&self, scores: &mut [f32], learned: &Learned, accept: impl Fn(usize) -> bool) {
        self.prefer_servers(scores);
        let leading = best(scores, LEADING_TOOLS, accept);
        let mut related = vec![0.0_f32; scores.len()];
        let mut together = vec![0.0_f32; scores.len()];
        for position in leading {
            for &(document, weight) in self.related.neighbors(position) {
                let value = &mut related[document as usize];
                *value = value.max(RELATED_VALUE * weight * scores[position]);
            }
            for &(document, share) in learned.together.get(&position).into_iter().flatten() {
                let value = &mut together[document as usize];
                *value = value.max(TOGETHER_VALUE * share * scores[position]);
            }
        }
        for ((score, related), together) in scores.iter_mut().zip(related).zip(together) {
            *score = score.max(related) + together;
        }
    }

    /// Raises the scores of servers whose best tools match well.
    fn prefer_servers(&self, scores: &mut [f32]) {
        let mut highest = vec![[0.0_f32; JUDGED_TOOLS]; self.server_count];
        for (&server, &score) in self.servers.iter().zip(&*scores) {
            let highest = &mut highest[server as usize];
            if score > highest[JUDGED_TOOLS - 1] {
                highest[JUDGED_TOOLS - 1] = score;
                highest.sort_unstable_by(|a, b| b.total_cmp(a));
            }
        }
        let parts: Vec<f32> = highest.iter().map(|scores| scores.iter().sum()).collect();
        let most = parts.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        for (&server, score) in self.servers.iter().zip(scores) {
            *score *= 1.0 + SERVER_VALUE * parts[server as usize] / most;
        }
    }

    /// Size of the index in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let words = &self.words;
        let postings = size_of_val(&*words.postings) + size_of_val(&*words.starts);
        let numbers = size_of_val(&*self.servers) + size_of_val(&*self.deprecated);
        words.terms.bytes() + postings + numbers + self.related.bytes()
    }
}

/// The positions of at most `limit` accepted documents with the highest scores above zero, best first.
fn best(scores: &[f32], limit: usize, accept: impl Fn(usize) -> bool) -> Vec<usize> {
    let scored = scores.iter().enumerate().filter(|(_, score)| **score > 0.0);
    // A heap instead of a sorted list: of thousands of documents that match a word only a few are wanted, and only
    // those are checked.
    let mut heap: BinaryHeap<Scored> = scored.map(|(document, &score)| Scored { score, document }).collect();
    let ordered = std::iter::from_fn(|| heap.pop());
    ordered.map(|scored| scored.document).filter(|&document| accept(document)).take(limit).collect()
}

impl Postings {
    /// The score of each document for words with these meanings.
    fn scores(&self, wanted: &[Vec<Meaning>], documents: usize) -> Vec<f32> {
        let mut scores = vec![0.0_f32; documents];
        let mut best = vec![0.0_f32; documents];
        let mut touched: Vec<u32> = Vec::new();
        let mut left = MAX_READ;
        for meanings in wanted {
            // The first meaning is the word itself, if it is known. A word that only resembles it
            // must not count as rarer.
            let most_rarity = meanings.first().filter(|meaning| meaning.value >= 1.0);
            let most_rarity = most_rarity.map_or(f32::MAX, |meaning| self.rarity(meaning.term, documents));
            for meaning in meanings {
                let factor = meaning.value * self.rarity(meaning.term, documents).min(most_rarity);
                let postings = self.postings(meaning.term);
                left = left.saturating_sub(postings.len());
                if left == 0 {
                    break;
                }
                for posting in postings {
                    let score = factor * posting.weight / (posting.weight + SATURATION);
                    let best = &mut best[posting.document as usize];
                    if *best == 0.0 {
                        touched.push(posting.document);
                    }
                    *best = best.max(score);
                }
            }
            for document in touched.drain(..) {
                scores[document as usize] += std::mem::take(&mut best[document as usize]);
            }
        }
        scores
    }

    fn postings(&self, term: usize) -> &[Posting] {
        &self.postings[self.starts[term] as usize..self.starts[term + 1] as usize]
    }

    /// The inverse document frequency: a word in few documents has a higher weight than a word in
    /// many.
    fn rarity(&self, term: usize, documents: usize) -> f32 {
        let matching = self.postings(term).len() as f32;
        ((documents as f32 - matching + 0.5) / (matching + 0.5)).ln_1p()
    }
}

#[cfg(test)]
mod tests;

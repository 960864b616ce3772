//! An inverted index of tools' texts, built once and queried many times.

use super::query::meanings;
use super::terms::Terms;

/// The saturation parameter of Okapi BM25: how soon repetition stops counting.
const SATURATION: f32 = 1.2;

/// The words of a list of documents and where they occur. Immutable.
///
/// Ranks by BM25F: the occurrences in all fields are weighted and summed before saturation, so that
/// a word in both name and description counts once, with a higher weight.
pub(crate) struct SearchIndex {
    terms: Terms,
    /// The postings of all terms, sorted by term and then by document.
    postings: Box<[Posting]>,
    /// The start of each term's postings, and the end of the last one's.
    posting_starts: Box<[u32]>,
    documents: usize,
}

/// An occurrence of a term.
#[derive(Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) document: u32,
    /// The term's weight in the document, before saturation.
    pub(crate) weight: f32,
}

impl SearchIndex {
    /// Of the postings of each term, in the order of the terms and then of the documents.
    /// `posting_starts` has the start of each term's postings, and the end of the last one's.
    pub(crate) fn new(
        terms: Terms,
        postings: Vec<Posting>,
        posting_starts: Vec<u32>,
        documents: usize,
    ) -> Self {
        Self { terms, postings: postings.into(), posting_starts: posting_starts.into(), documents }
    }

    /// The positions of the documents that match at least one word of `query` and for which
    /// `accept` returns true, best first. Ties keep their order. For a query without words: all
    /// accepted documents in order.
    pub(crate) fn search(&self, query: &str, accept: impl Fn(usize) -> bool) -> Vec<usize> {
        let Some(wanted) = meanings(&self.terms, query) else {
            return (0..self.documents).filter(|&position| accept(position)).collect();
        };
        let mut scores = vec![0.0_f32; self.documents];
        let mut best = vec![0.0_f32; self.documents];
        let mut touched: Vec<u32> = Vec::new();
        for meanings in wanted {
            // The first meaning is the word itself, if it is known. A word that only resembles it
            // must not count as rarer.
            let most_rarity = meanings.first().filter(|meaning| meaning.value >= 1.0);
            let most_rarity = most_rarity.map_or(f32::MAX, |meaning| self.rarity(meaning.term));
            for meaning in &meanings {
                let factor = meaning.value * self.rarity(meaning.term).min(most_rarity);
                for posting in self.postings(meaning.term) {
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
        let mut ranked: Vec<(f32, usize)> = scores
            .into_iter()
            .enumerate()
            .filter_map(|(position, score)| (score > 0.0 && accept(position)).then_some((score, position)))
            .collect();
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.into_iter().map(|(_, position)| position).collect()
    }

    fn postings(&self, term: usize) -> &[Posting] {
        &self.postings[self.posting_starts[term] as usize..self.posting_starts[term + 1] as usize]
    }

    /// The inverse document frequency: a word in few documents has a higher weight than a word in
    /// many.
    fn rarity(&self, term: usize) -> f32 {
        let matching = self.postings(term).len() as f32;
        ((self.documents as f32 - matching + 0.5) / (matching + 0.5)).ln_1p()
    }

    /// Size of the index in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.terms.bytes() + size_of_val(&*self.postings) + size_of_val(&*self.posting_starts)
    }
}

#[cfg(test)]
mod tests;

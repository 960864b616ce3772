//! An inverted index of tools' texts, built once and queried many times.

use std::collections::HashMap;

use super::words::{for_each_word, is_stop_word, one_edit_apart, stem};

/// Maximum number of words of a query. More words add no information; the bound limits the work for
/// hostile queries.
const MAX_QUERY_WORDS: usize = 32;

/// Maximum bytes of a query that are read: far more than that many words take, and quick to scan.
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// Maximum number of words of a name; enough for any real one.
const MAX_NAME_WORDS: usize = 32;

/// Maximum number of words of a description, and of the descriptions of a tool's parameters
/// together. Enough for any real one; it bounds the cost of a very long one.
const MAX_TEXT_WORDS: usize = 256;

/// Beyond this many postings (8 MB), which only hostile texts reach, only the names and a few words
/// of the remaining tools are indexed. Five thousand real tools have some 300,000 postings.
const MANY_POSTINGS: usize = 1_000_000;
const FEW_TEXT_WORDS: usize = 16;

/// Maximum number of unknown words of a query that are compared with all words of the index.
const MAX_GUESSED_WORDS: usize = 8;

/// Minimum length of a word that is treated as a misspelling. Shorter ones resemble too many words.
const MIN_MISSPELT: usize = 5;

/// Minimum length of a word that matches as a prefix. Hundreds of words begin with the same two
/// letters.
const MIN_PREFIX: usize = 3;

/// The saturation parameter of Okapi BM25: how soon repetition stops counting.
const SATURATION: f32 = 1.2;

/// Weights of a field: how much a word in it counts, how many words it usually has, and how much a
/// greater length reduces the weight of each word (0: not at all, 1: in proportion).
///
/// The usual lengths are constants (those of `tests/search/tools.json`) and not the index's own
/// average, so that a tool's score does not depend on which other servers are configured.
struct Field {
    weight: f32,
    usual_length: f32,
    discount: f32,
}

/// A name says what a tool is for; a description often mentions what it is not for.
const NAME: Field = Field { weight: 3.0, usual_length: 3.0, discount: 0.6 };
const SERVER: Field = Field { weight: 1.5, usual_length: 1.0, discount: 0.0 };
const DESCRIPTION: Field = Field { weight: 1.0, usual_length: 24.0, discount: 0.5 };
const PARAMETER: Field = Field { weight: 0.5, usual_length: 5.0, discount: 0.5 };
const PARAMETER_DESCRIPTION: Field = Field { weight: 0.25, usual_length: 40.0, discount: 0.5 };

/// Weight of a match between a word of the query and a similar word of the index.
const PREFIX_VALUE: f32 = 0.5;
const SHORTENED_VALUE: f32 = 0.4;
const MISSPELT_VALUE: f32 = 0.7;
const SYNONYM_VALUE: f32 = 0.6;

/// Additional weight if two adjacent words of the query are adjacent in a name (`pull request` in
/// `create_pull_request`).
const PHRASE_VALUE: f32 = 0.5;

/// Words that authors of tools use for the same thing. They are general on purpose: a list with
/// product names would help only for the servers that it was made with. Each word is a stem.
const SYNONYMS: &[&[&str]] = &[
    &["add", "creat", "insert", "make", "new"],
    &["delet", "drop", "remov"],
    &["fetch", "get", "read", "retriev", "show", "view"],
    &["find", "lookup", "queri", "search"],
    &["get", "list"],
    &["chang", "edit", "modifi", "set", "updat"],
    &["post", "send"],
    &["execut", "run", "start"],
    &["clos", "complet", "finish", "resolv"],
    &["attach", "upload"],
    &["move", "renam"],
    &["copi", "duplicat"],
    &["dir", "directori", "folder"],
    &["page", "site", "url", "web", "webpage", "websit"],
    &["imag", "photo", "pictur", "screenshot"],
    &["bug", "issu", "ticket"],
    &["task", "todo"],
    &["member", "peopl", "person", "user"],
    &["databas", "db"],
    &["mergerequest", "pr", "pullrequest"],
];

/// The texts of one tool.
pub(crate) struct Document<'a> {
    /// The server's name.
    pub(crate) server: &'a str,
    /// The tool's name.
    pub(crate) tool: &'a str,
    /// The server's description of the tool.
    pub(crate) description: &'a str,
    /// The names and descriptions of its parameters.
    pub(crate) parameters: &'a [(String, String)],
}

/// The words of a list of documents and where they occur. Immutable.
///
/// Ranks by BM25F: the occurrences in all fields are weighted and summed before saturation, so that
/// a word in both name and description counts once, with a higher weight.
pub(crate) struct SearchIndex {
    /// All terms, sorted and concatenated.
    terms: Box<str>,
    /// The start of each term, and the end of the last one.
    term_starts: Box<[u32]>,
    /// The postings of all terms, sorted by term and then by document.
    postings: Box<[Posting]>,
    /// The start of each term's postings, and the end of the last one's.
    posting_starts: Box<[u32]>,
    documents: usize,
}

#[derive(Clone, Copy)]
struct Posting {
    document: u32,
    /// The term's weight in the document, before saturation.
    weight: f32,
}

/// A term that a query word may mean, with the weight of the match.
#[derive(Clone, Copy)]
struct Meaning {
    term: usize,
    value: f32,
}

impl SearchIndex {
    /// The positions of the documents that match at least one word of `query` and for which
    /// `accept` returns true, best first. Ties keep their order. For a query without words: all
    /// accepted documents in order.
    ///
    /// A word matches all its inflected forms, the words that it is a prefix of, and synonyms. An
    /// unknown word matches the words that it may be a misspelling of. Stop words such as `the`
    /// count only if the query has no other words.
    pub(crate) fn search(&self, query: &str, accept: impl Fn(usize) -> bool) -> Vec<usize> {
        let Some(wanted) = self.wanted(query) else {
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

    /// The possible meanings of each word of the query; `None` for a query without words.
    fn wanted(&self, query: &str) -> Option<Vec<Vec<Meaning>>> {
        let query = &query[..query.floor_char_boundary(MAX_QUERY_BYTES)];
        let mut words: Vec<String> = Vec::new();
        // Twice as many, because stop words do not count as words.
        for_each_word(query, 2 * MAX_QUERY_WORDS, |word| words.push(word.text.to_owned()));
        if words.is_empty() {
            return None;
        }
        if !words.iter().all(|word| is_stop_word(word)) {
            words.retain(|word| !is_stop_word(word));
        }
        words.truncate(MAX_QUERY_WORDS);
        let mut wanted = Vec::new();
        for pair in words.windows(2) {
            let phrase = self.term(&stemmed(&format!("{}{}", pair[0], pair[1])));
            wanted.extend(phrase.map(|term| vec![Meaning { term, value: PHRASE_VALUE }]));
        }
        let mut stems: Vec<String> = words.iter().map(|word| stemmed(word)).collect();
        let mut seen = std::collections::HashSet::new();
        stems.retain(|stem| seen.insert(stem.clone()));
        let mut guesses = MAX_GUESSED_WORDS;
        for stem in &stems {
            let mut meanings = self.meanings(stem);
            if meanings.is_empty() && guesses > 0 && stem.len() >= MIN_MISSPELT {
                guesses -= 1;
                if let Some(parts) = self.parts(stem) {
                    wanted.extend(parts.map(|term| vec![Meaning { term, value: 1.0 }]));
                    continue;
                }
                meanings = self.misspelt(stem);
            }
            if !meanings.is_empty() {
                wanted.push(meanings);
            }
        }
        Some(wanted)
    }

    /// The terms that a known word or a prefix may mean.
    fn meanings(&self, stem: &str) -> Vec<Meaning> {
        let mut meanings: Vec<Meaning> =
            self.term(stem).into_iter().map(|term| Meaning { term, value: 1.0 }).collect();
        if stem.len() >= MIN_PREFIX {
            for term in self.lower_bound(stem)..self.count() {
                let text = self.term_text(term);
                if !text.starts_with(stem) {
                    break;
                }
                if text.len() > stem.len() {
                    meanings.push(Meaning { term, value: PREFIX_VALUE });
                }
            }
        }
        for synonyms in SYNONYMS.iter().filter(|synonyms| synonyms.contains(&stem)) {
            for term in synonyms.iter().filter(|&&other| other != stem).filter_map(|other| self.term(other)) {
                meanings.push(Meaning { term, value: SYNONYM_VALUE });
            }
        }
        if meanings.is_empty() {
            // For example, `repositories` finds `repo`.
            for end in (4..stem.len()).rev().filter(|&end| stem.is_char_boundary(end)) {
                if let Some(term) = self.term(&stem[..end]) {
                    meanings.push(Meaning { term, value: SHORTENED_VALUE });
                    break;
                }
            }
        }
        meanings
    }

    /// The two known words that an unknown word is composed of, as in `webpage`.
    fn parts(&self, stem: &str) -> Option<[usize; 2]> {
        (3..stem.len().saturating_sub(2)).filter(|&middle| stem.is_char_boundary(middle)).find_map(|middle| {
            let (first, second) = stem.split_at(middle);
            Some([self.term(&stemmed(first))?, self.term(second)?])
        })
    }

    /// The terms that an unknown word may be a misspelling of.
    fn misspelt(&self, stem: &str) -> Vec<Meaning> {
        (0..self.count())
            .filter(|&term| one_edit_apart(stem, self.term_text(term)))
            .map(|term| Meaning { term, value: MISSPELT_VALUE })
            .collect()
    }

    fn count(&self) -> usize {
        self.term_starts.len() - 1
    }

    fn term_text(&self, term: usize) -> &str {
        &self.terms[self.term_starts[term] as usize..self.term_starts[term + 1] as usize]
    }

    /// The first term that does not sort before `text`.
    fn lower_bound(&self, text: &str) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            if self.term_text(middle) < text {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn term(&self, text: &str) -> Option<usize> {
        let term = self.lower_bound(text);
        (term < self.count() && self.term_text(term) == text).then_some(term)
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
    #[cfg_attr(not(test), expect(dead_code, reason = "what the tests of the bound measure"))]
    pub(crate) fn bytes(&self) -> usize {
        self.terms.len()
            + size_of_val(&*self.term_starts)
            + size_of_val(&*self.postings)
            + size_of_val(&*self.posting_starts)
    }
}

fn stemmed(word: &str) -> String {
    let mut word = word.to_owned();
    stem(&mut word);
    word
}

/// Builds an index. A document's position is the order in which it was added.
#[derive(Default)]
pub(crate) struct Builder {
    /// The term of each word as written. Most words occur many times, so each is stemmed only once.
    forms: HashMap<String, u32>,
    terms: HashMap<String, u32>,
    /// Terms and their postings, by document.
    postings: Vec<(u32, Posting)>,
    documents: u32,
    /// The words of the current field.
    field: Vec<u32>,
}

impl Builder {
    /// Adds a document.
    pub(crate) fn add(&mut self, document: &Document<'_>) {
        let start = self.postings.len();
        let most_words = if start < MANY_POSTINGS { MAX_TEXT_WORDS } else { FEW_TEXT_WORDS };
        self.read(document.tool, MAX_NAME_WORDS, true);
        self.weigh(&NAME);
        self.read(document.server, MAX_NAME_WORDS, true);
        self.weigh(&SERVER);
        self.read(document.description, most_words, false);
        self.weigh(&DESCRIPTION);
        let mut left = most_words;
        for (name, _) in document.parameters.iter().take(most_words) {
            left = left.saturating_sub(self.read(name, left, false));
        }
        self.weigh(&PARAMETER);
        let mut left = most_words;
        for (_, description) in document.parameters.iter().take(most_words) {
            left = left.saturating_sub(self.read(description, left, false));
        }
        self.weigh(&PARAMETER_DESCRIPTION);
        // One posting for each term: the fields' weights are summed.
        self.postings[start..].sort_unstable_by_key(|(term, _)| *term);
        let mut end = start;
        for position in start..self.postings.len() {
            let (term, posting) = self.postings[position];
            if end > start && self.postings[end - 1].0 == term {
                self.postings[end - 1].1.weight += posting.weight;
            } else {
                self.postings[end] = (term, posting);
                end += 1;
            }
        }
        self.postings.truncate(end);
        self.documents += 1;
    }

    /// Adds a text to the current field and returns its number of words. With `pairs`, each two
    /// adjacent words are also indexed as one word.
    fn read(&mut self, text: &str, most_words: usize, pairs: bool) -> usize {
        let mut before = String::new();
        let mut count = 0;
        for_each_word(text, most_words, |word| {
            count += 1;
            let term = self.term(word.text);
            self.field.push(term);
            // `GitHub` is also indexed as `github`, in every field.
            if (pairs || word.joined) && !before.is_empty() {
                before.push_str(word.text);
                let term = self.term(&before);
                self.field.push(term);
            }
            before.clear();
            before.push_str(word.text);
        });
        count
    }

    /// Makes postings of the current field.
    fn weigh(&mut self, field: &Field) {
        let length = self.field.len() as f32 / field.usual_length;
        let weight = field.weight / (1.0 - field.discount + field.discount * length);
        let document = self.documents;
        self.postings.extend(self.field.drain(..).map(|term| (term, Posting { document, weight })));
    }

    fn term(&mut self, word: &str) -> u32 {
        if let Some(&term) = self.forms.get(word) {
            return term;
        }
        let count = self.terms.len() as u32;
        let term = *self.terms.entry(stemmed(word)).or_insert(count);
        self.forms.insert(word.to_owned(), term);
        term
    }

    /// Builds the index of the documents added so far.
    pub(crate) fn finish(self) -> SearchIndex {
        let mut sorted: Vec<(String, u32)> = self.terms.into_iter().collect();
        sorted.sort_unstable();
        let mut places = vec![0_usize; sorted.len()];
        let mut terms = String::with_capacity(sorted.iter().map(|(text, _)| text.len()).sum());
        let mut term_starts = vec![0];
        for (place, (text, term)) in sorted.iter().enumerate() {
            places[*term as usize] = place;
            terms.push_str(text);
            term_starts.push(terms.len() as u32);
        }
        // A counting sort by term: documents stay in order within each term.
        let mut posting_starts = vec![0_u32; sorted.len() + 1];
        for (term, _) in &self.postings {
            posting_starts[places[*term as usize] + 1] += 1;
        }
        for place in 1..posting_starts.len() {
            posting_starts[place] += posting_starts[place - 1];
        }
        let mut next = posting_starts.clone();
        let mut postings = vec![Posting { document: 0, weight: 0.0 }; self.postings.len()];
        for (term, posting) in self.postings {
            let next = &mut next[places[term as usize]];
            postings[*next as usize] = posting;
            *next += 1;
        }
        SearchIndex {
            terms: terms.into(),
            term_starts: term_starts.into(),
            postings: postings.into(),
            posting_starts: posting_starts.into(),
            documents: self.documents as usize,
        }
    }
}

#[cfg(test)]
mod tests;

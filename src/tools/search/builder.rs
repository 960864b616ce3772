//! Builds an index from the texts of tools.

use std::collections::HashMap;

use super::document::{Document, MAX_NAME_WORDS, MAX_TEXT_WORDS};
use super::index::{Posting, Postings, SearchIndex};
use super::related::Related;
use super::terms::Terms;
use super::words::{for_each_word, stem};

/// Beyond this many postings (8 MB), which only hostile texts reach, only the names and a few words
/// of the remaining tools are indexed. Five thousand real tools have some 300,000 postings.
const MANY_POSTINGS: usize = 1_000_000;
const FEW_TEXT_WORDS: usize = 16;

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

/// A name describes what a tool is for; a description often mentions what the tool is not for.
const NAME: Field = Field { weight: 3.0, usual_length: 3.0, discount: 0.6 };
const SERVER: Field = Field { weight: 1.5, usual_length: 1.0, discount: 0.0 };
const DESCRIPTION: Field = Field { weight: 1.0, usual_length: 24.0, discount: 0.5 };
const PARAMETER: Field = Field { weight: 0.5, usual_length: 5.0, discount: 0.5 };
const PARAMETER_DESCRIPTION: Field = Field { weight: 0.25, usual_length: 40.0, discount: 0.5 };
/// A query often asks for what a tool returns.
const RESULT: Field = PARAMETER;
const RESULT_DESCRIPTION: Field = PARAMETER_DESCRIPTION;
/// Text that a server repeats for all its tools does not characterize one of them.
const SHARED: Field = Field { weight: 0.3, usual_length: 24.0, discount: 0.5 };

/// Which adjacent words are also indexed as one word.
#[derive(Clone, Copy, PartialEq)]
enum Pairs {
    All,
    /// Those within camelCase.
    WithoutSeparator,
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
    /// The server of each document, as a number in the order of their first documents.
    servers: Vec<u32>,
    server_numbers: HashMap<String, u32>,
    /// The words of the current field.
    field: Vec<u32>,
}

impl Builder {
    /// Adds a document.
    pub(crate) fn add(&mut self, document: &Document<'_>) {
        let start = self.postings.len();
        let max_words = if start < MANY_POSTINGS { MAX_TEXT_WORDS } else { FEW_TEXT_WORDS };
        self.read(document.tool, MAX_NAME_WORDS, Pairs::All);
        self.weigh(&NAME);
        self.read(document.server, MAX_NAME_WORDS, Pairs::All);
        self.weigh(&SERVER);
        self.read(document.description, max_words, Pairs::WithoutSeparator);
        self.weigh(&DESCRIPTION);
        self.read_members(document.parameters, max_words, &PARAMETER, &PARAMETER_DESCRIPTION);
        self.read_members(document.results, max_words, &RESULT, &RESULT_DESCRIPTION);
        self.read(document.shared, max_words, Pairs::WithoutSeparator);
        self.weigh(&SHARED);
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
        let count = self.server_numbers.len() as u32;
        let server = match self.server_numbers.get(document.server) {
            Some(&server) => server,
            None => *self.server_numbers.entry(document.server.to_owned()).or_insert(count),
        };
        self.servers.push(server);
    }

    /// Adds the names and descriptions of an object's properties, each as a field of its own.
    fn read_members(
        &mut self,
        members: &[(String, String)],
        max_words: usize,
        names: &Field,
        descriptions: &Field,
    ) {
        let mut left = max_words;
        for (name, _) in members.iter().take(max_words) {
            left = left.saturating_sub(self.read(name, left, Pairs::WithoutSeparator));
        }
        self.weigh(names);
        let mut left = max_words;
        for (_, description) in members.iter().take(max_words) {
            left = left.saturating_sub(self.read(description, left, Pairs::WithoutSeparator));
        }
        self.weigh(descriptions);
    }

    /// Adds a text to the current field and returns its number of words.
    fn read(&mut self, text: &str, max_words: usize, pairs: Pairs) -> usize {
        let mut before = String::new();
        let mut count = 0;
        for_each_word(text, max_words, |word| {
            count += 1;
            let term = self.term(word.text);
            self.field.push(term);
            // `GitHub` is also indexed as `github`, in every field.
            if (pairs == Pairs::All || word.joined) && !before.is_empty() {
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
        let term = *self.terms.entry(stem(word)).or_insert(count);
        self.forms.insert(word.to_owned(), term);
        term
    }

    /// Builds the index of the documents added so far, with their relations.
    pub(crate) fn finish(self, related: Related) -> SearchIndex {
        let mut sorted: Vec<(String, u32)> = self.terms.into_iter().collect();
        sorted.sort_unstable();
        let mut positions = vec![0_usize; sorted.len()];
        for (position, (_, term)) in sorted.iter().enumerate() {
            positions[*term as usize] = position;
        }
        // A counting sort by term: documents stay in order within each term.
        let mut posting_starts = vec![0_u32; sorted.len() + 1];
        for (term, _) in &self.postings {
            posting_starts[positions[*term as usize] + 1] += 1;
        }
        for term in 1..posting_starts.len() {
            posting_starts[term] += posting_starts[term - 1];
        }
        let mut next = posting_starts.clone();
        let mut postings = vec![Posting { document: 0, weight: 0.0 }; self.postings.len()];
        for (term, posting) in self.postings {
            let next = &mut next[positions[term as usize]];
            postings[*next as usize] = posting;
            *next += 1;
        }
        let terms = Terms::new(sorted.iter().map(|(text, _)| text.as_str()));
        let postings = Postings { terms, postings: postings.into(), starts: posting_starts.into() };
        SearchIndex::new(postings, self.servers, related)
    }
}

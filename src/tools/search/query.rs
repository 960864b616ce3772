//! What the words of a query may mean among the terms of an index.

use std::collections::HashSet;

use super::terms::Terms;
use super::words::{for_each_word, is_stop_word, one_edit_apart, stem};

/// Maximum number of words of a query. More words add no information; the bound limits the work for
/// hostile queries.
const MAX_QUERY_WORDS: usize = 32;

/// Maximum bytes of a query that are read: far more than that many words take, and quick to scan.
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// Maximum number of unknown words of a query that are compared with all words of the index.
const MAX_GUESSED_WORDS: usize = 8;

/// Minimum length of a word that is treated as a misspelling. Shorter ones resemble too many words.
const MIN_MISSPELT: usize = 5;

/// Minimum length of a word that matches as a prefix. Hundreds of words begin with the same two
/// letters.
const MIN_PREFIX: usize = 3;

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
pub(crate) const SYNONYMS: &[&[&str]] = &[
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

/// A term that a query word may mean, with the weight of the match.
#[derive(Clone, Copy)]
pub(crate) struct Meaning {
    pub(crate) term: usize,
    pub(crate) value: f32,
}

/// The possible meanings of each word of the query; `None` for a query without words.
///
/// A word means all its inflected forms, the words that it is a prefix of, and synonyms. An unknown
/// word means the words that it is composed of, or that it may be a misspelling of. Stop words such
/// as `the` count only if the query has no other words.
pub(crate) fn meanings(terms: &Terms, query: &str) -> Option<Vec<Vec<Meaning>>> {
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
        let phrase = terms.find(&stem(&format!("{}{}", pair[0], pair[1])));
        wanted.extend(phrase.map(|term| vec![Meaning { term, value: PHRASE_VALUE }]));
    }
    let mut stems: Vec<String> = words.iter().map(|word| stem(word)).collect();
    let mut seen = HashSet::new();
    stems.retain(|stem| seen.insert(stem.clone()));
    let mut guesses = MAX_GUESSED_WORDS;
    for word in &stems {
        let mut meanings = meanings_of(terms, word);
        if meanings.is_empty() && guesses > 0 && word.len() >= MIN_MISSPELT {
            guesses -= 1;
            if let Some(parts) = parts(terms, word) {
                wanted.extend(parts.map(|term| vec![Meaning { term, value: 1.0 }]));
                continue;
            }
            meanings = misspelt(terms, word);
        }
        if !meanings.is_empty() {
            wanted.push(meanings);
        }
    }
    Some(wanted)
}

/// The terms that a known word or a prefix may mean. All words here are stems.
fn meanings_of(terms: &Terms, word: &str) -> Vec<Meaning> {
    let mut meanings: Vec<Meaning> =
        terms.find(word).into_iter().map(|term| Meaning { term, value: 1.0 }).collect();
    if word.len() >= MIN_PREFIX {
        let longer = terms.with_prefix(word).filter(|&term| terms.text(term).len() > word.len());
        meanings.extend(longer.map(|term| Meaning { term, value: PREFIX_VALUE }));
    }
    for synonyms in SYNONYMS.iter().filter(|synonyms| synonyms.contains(&word)) {
        for term in synonyms.iter().filter(|&&other| other != word).filter_map(|other| terms.find(other)) {
            meanings.push(Meaning { term, value: SYNONYM_VALUE });
        }
    }
    if meanings.is_empty() {
        // For example, `repositories` finds `repo`.
        for end in (4..word.len()).rev().filter(|&end| word.is_char_boundary(end)) {
            if let Some(term) = terms.find(&word[..end]) {
                meanings.push(Meaning { term, value: SHORTENED_VALUE });
                break;
            }
        }
    }
    meanings
}

/// The two known words that an unknown word is composed of, as in `webpage`.
fn parts(terms: &Terms, word: &str) -> Option<[usize; 2]> {
    (3..word.len().saturating_sub(2)).filter(|&middle| word.is_char_boundary(middle)).find_map(|middle| {
        let (first, second) = word.split_at(middle);
        Some([terms.find(&stem(first))?, terms.find(second)?])
    })
}

/// The terms that an unknown word may be a misspelling of.
fn misspelt(terms: &Terms, word: &str) -> Vec<Meaning> {
    (0..terms.count())
        .filter(|&term| one_edit_apart(word, terms.text(term)))
        .map(|term| Meaning { term, value: MISSPELT_VALUE })
        .collect()
}

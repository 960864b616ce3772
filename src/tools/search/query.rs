//! Maps the words of a query to terms of an index.

use std::borrow::Cow;
use std::collections::HashSet;

use super::terms::Terms;
use super::values::kinds;
use super::words::{for_each_word, is_filler_word, is_stop_word, one_edit_apart, stem};
use crate::text::start_bytes;

/// Maximum number of words of a query without stop words and filler words: more than five sentences
/// have. The bound limits the work for hostile queries.
const MAX_QUERY_WORDS: usize = 96;

/// Beyond this many words a query is a sentence, in which filler words are no search terms.
const MAX_KEYWORDS: usize = 8;

/// Beyond this many words that count, a query describes a task rather than a tool.
const MAX_TOOL_WORDS: usize = 3;

/// A query of fewer words than this outside quotation marks is read with those inside.
const MIN_UNQUOTED_WORDS: usize = 3;

/// Maximum bytes of a quotation. What looks like the beginning of a longer one is read as it is.
const MAX_QUOTED: usize = 500;

/// Maximum bytes of a query that are read: far more than that many words take, and quick to scan.
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// Maximum number of unknown words of a query that are compared with all words of the index.
const MAX_GUESSED_WORDS: usize = 8;

/// Maximum number of such comparisons. Five thousand real tools have some 20,000 words, so only hostile lists reach the
/// bound.
const MAX_COMPARISONS: usize = 1_500_000;

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
    &["add", "craft", "creat", "draft", "generat", "insert", "make", "new"],
    &["delet", "discard", "drop", "eras", "remov"],
    &[
        "check", "displai", "fetch", "get", "obtain", "output", "print", "read", "retriev", "see", "show",
        "view",
    ],
    &["discover", "find", "identifi", "locat", "lookup", "queri", "search"],
    &["get", "list"],
    &["adjust", "alter", "amend", "chang", "edit", "modifi", "revis", "set", "updat"],
    &["dispatch", "draft", "forward", "post", "publish", "send", "shar", "submit"],
    &["activat", "begin", "execut", "ignit", "initiat", "launch", "run", "start"],
    &["clos", "complet", "end", "finish", "resolv"],
    &["attach", "upload"],
    &["move", "relocat", "renam", "transfer"],
    &["backup", "clon", "copi", "duplicat", "replicat"],
    &["dir", "directori", "folder"],
    &["page", "site", "url", "web", "webpag", "websit"],
    &["imag", "photo", "pictur", "screenshot"],
    &["bug", "issu", "ticket"],
    &["task", "todo"],
    &["member", "peopl", "person", "user"],
    &["databas", "db"],
    &["mergerequest", "pr", "pullrequest"],
    &["automobil", "car", "vehicl"],
    &["acquir", "buy", "order", "procur", "purchas"],
    &["equiti", "invest", "shar", "stock"],
    &["abort", "annul", "cancel", "rescind", "revers", "revok", "terminat", "undo"],
    &["compar", "comparison", "diff", "differenc"],
    &["averag", "mean"],
    &["closest", "near", "nearbi", "nearest"],
    &["jot", "note", "populat", "record", "save", "stor", "writ"],
    &["dm", "inform", "messag", "note", "text"],
    &["doc", "document", "file"],
    &["convers", "convert", "exchang", "transform", "translat"],
    &["auth", "authenticat", "credential", "login", "signin"],
    &["count", "number", "talli", "total"],
    &["detail", "info", "informat", "overview", "summari"],
    &["balanc", "budget", "cash", "fund", "monei"],
    &["deposit", "fund"],
    &["histori", "log", "past", "previous"],
    &["journei", "rout", "travel", "trip"],
    &["airlin", "flight"],
    &["cost", "fare", "pric", "quot", "rate"],
    &["calculat", "comput", "determin", "estimat"],
    &["lock", "secur"],
    &["condit", "stat", "status"],
    &["check", "confirm", "validat", "verifi"],
    &["contact", "reach"],
    &["monitor", "track", "watch"],
    &["content", "insid", "text"],
    &["distanc", "far", "mile"],
    &["assistanc", "help", "support"],
    &["fuel", "ga", "gasolin", "petrol"],
    &["fill", "refill", "refuel", "replenish"],
    &["destinat", "direct", "navigat"],
    &["appoint", "event", "meet"],
    &["book", "reserv", "reservat"],
    &["email", "inbox", "mail"],
    &["bill", "invoic", "monei", "pay", "payment", "refund", "transact", "transfer"],
];

/// A term that a query word may mean, with the weight of the match.
#[derive(Clone, Copy)]
pub(crate) struct Meaning {
    pub(crate) term: usize,
    pub(crate) value: f32,
}

/// The interpretation of a query.
pub(crate) struct Wanted {
    /// The possible meanings of each word.
    pub(crate) meanings: Vec<Vec<Meaning>>,
    /// Whether the query describes a task, as a user's sentences do, rather than a tool.
    pub(crate) is_task: bool,
}

/// Interprets `query`; `None` for a query without words.
///
/// A word means all its inflected forms, the words that it is a prefix of, and synonyms. An unknown
/// word means the words that it is composed of, or that it may be a misspelling of. Stop words such
/// as `the` count only if the query has no other words. Of a sentence, neither filler words count nor
/// what stands in quotation marks, because that is a value: a name, a title, a text to send.
pub(crate) fn wanted(terms: &Terms, query: &str) -> Option<Wanted> {
    let words = words(query)?;
    Some(Wanted { is_task: words.len() > MAX_TOOL_WORDS, meanings: meanings(terms, &words) })
}

/// The words of a query that count; `None` for a query without words.
fn words(query: &str) -> Option<Vec<String>> {
    let query = start_bytes(query, MAX_QUERY_BYTES);
    let mut words: Vec<String> = kinds(query).into_iter().map(str::to_owned).collect();
    // Three times as many, because stop words and filler words do not count.
    for_each_word(&unquoted(query), 3 * MAX_QUERY_WORDS, |word| words.push(word.text.to_owned()));
    if words.is_empty() {
        return None;
    }
    let is_sentence = words.len() > MAX_KEYWORDS;
    let is_ignored = |word: &String| is_stop_word(word) || (is_sentence && is_filler_word(word));
    if !words.iter().all(is_ignored) {
        words.retain(|word| !is_ignored(word));
    }
    words.truncate(MAX_QUERY_WORDS);
    Some(words)
}

/// The query without its quotations, if enough words are left.
fn unquoted(query: &str) -> Cow<'_, str> {
    let mut outside = String::new();
    let mut rest = query;
    while let Some((start, end)) = quoted(rest) {
        outside.push_str(&rest[..start]);
        outside.push(' ');
        rest = &rest[end..];
    }
    if rest.len() == query.len() {
        return Cow::Borrowed(query);
    }
    outside.push_str(rest);
    let mut left = 0;
    for_each_word(&outside, MIN_UNQUOTED_WORDS, |_| left += 1);
    if left < MIN_UNQUOTED_WORDS { Cow::Borrowed(query) } else { Cow::Owned(outside) }
}

/// The start and end of the first quotation. An apostrophe within a word does not begin one.
fn quoted(text: &str) -> Option<(usize, usize)> {
    let mut before: Option<char> = None;
    for (start, mark) in text.char_indices() {
        let closing = match mark {
            '\'' | '"' | '`' => Some(mark),
            '“' => Some('”'),
            _ => None,
        };
        let begins = !before.is_some_and(char::is_alphanumeric);
        before = Some(mark);
        let Some(closing) = closing.filter(|_| begins) else { continue };
        let inside = start + mark.len_utf8();
        let ends = |&end: &usize| {
            !text[end + closing.len_utf8()..].chars().next().is_some_and(char::is_alphanumeric)
        };
        // Only the rest of the line, and at most the length of a sentence, is searched: an apostrophe has no closing
        // quote.
        let line = start_bytes(&text[inside..], MAX_QUOTED).lines().next().unwrap_or_default();
        if let Some(end) = line.match_indices(closing).map(|(at, _)| inside + at).find(ends) {
            return Some((start, end + closing.len_utf8()));
        }
    }
    None
}

fn meanings(terms: &Terms, words: &[String]) -> Vec<Vec<Meaning>> {
    let mut wanted = Vec::new();
    for pair in words.windows(2) {
        let phrase = terms.find(&stem(&format!("{}{}", pair[0], pair[1])));
        wanted.extend(phrase.map(|term| vec![Meaning { term, value: PHRASE_VALUE }]));
    }
    let mut stems: Vec<String> = words.iter().map(|word| stem(word)).collect();
    let mut seen = HashSet::new();
    stems.retain(|stem| seen.insert(stem.clone()));
    let mut guesses = MAX_GUESSED_WORDS.min(MAX_COMPARISONS / terms.count().max(1));
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
    wanted
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

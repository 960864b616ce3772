//! Splits text into words, and tells which words are forms or misspellings of one another.
//!
//! The stemmer is our own, because that of `rust-stemmers` (Porter 2) ranks the judged queries of `tests/search`
//! slightly lower; its README has the figures. So is the comparison of words, because `strsim` computes the whole
//! distance in quadratic time, which takes 300 times as long for a query in an index of long words that a hostile
//! server chose.

/// Maximum length of a word; the rest of a longer one is dropped. Real words are shorter. Bounds
/// the cost of every comparison.
const MAX_WORD: usize = 64;

/// Stop words: words that do not change the meaning of a query.
const STOP_WORDS: [&str; 64] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do", "does",
    "for", "from", "have", "how", "i", "if", "in", "into", "is", "it", "its", "let", "me", "my", "need",
    "of", "on", "one", "or", "our", "out", "please", "should", "some", "that", "the", "their", "them",
    "there", "these", "this", "those", "to", "tool", "tools", "up", "us", "use", "using", "want", "we",
    "what", "when", "which", "who", "will", "with", "you", "your",
];

/// Filler words: words of a conversation that are not about tools. In a short query they may be what is asked for
/// (`next page`), so they are ignored in longer queries only. Words that select one of several things (`the last
/// line`), or name a computation (`the mean`), are not fillers, because sentences ask for them too.
const FILLER_WORDS: [&str; 217] = [
    "able",
    "actually",
    "after",
    "afterward",
    "afterwards",
    "again",
    "ahead",
    "already",
    "alright",
    "also",
    "am",
    "another",
    "anything",
    "appreciate",
    "around",
    "aware",
    "away",
    "because",
    "been",
    "before",
    "being",
    "both",
    "but",
    "came",
    "certain",
    "couldn",
    "course",
    "curious",
    "d",
    "decided",
    "did",
    "didn",
    "doing",
    "don",
    "done",
    "down",
    "during",
    "each",
    "easy",
    "either",
    "else",
    "enough",
    "ensure",
    "ensuring",
    "even",
    "ever",
    "every",
    "everything",
    "exactly",
    "feel",
    "few",
    "finally",
    "further",
    "furthermore",
    "get",
    "getting",
    "give",
    "given",
    "go",
    "going",
    "good",
    "got",
    "great",
    "had",
    "handy",
    "happen",
    "has",
    "he",
    "hello",
    "help",
    "her",
    "here",
    "hey",
    "hi",
    "him",
    "his",
    "hope",
    "hoping",
    "however",
    "idea",
    "ideal",
    "indeed",
    "instead",
    "interested",
    "isn",
    "just",
    "keen",
    "kind",
    "kindly",
    "know",
    "lastly",
    "later",
    "least",
    "less",
    "lets",
    "like",
    "likely",
    "ll",
    "looking",
    "looks",
    "lot",
    "love",
    "make",
    "makes",
    "making",
    "maybe",
    "might",
    "mind",
    "moment",
    "more",
    "moreover",
    "most",
    "much",
    "must",
    "myself",
    "necessary",
    "needed",
    "needing",
    "needs",
    "next",
    "nice",
    "no",
    "not",
    "now",
    "off",
    "oh",
    "okay",
    "once",
    "only",
    "onto",
    "other",
    "otherwise",
    "over",
    "own",
    "particular",
    "perhaps",
    "possible",
    "probably",
    "proceed",
    "provide",
    "put",
    "quick",
    "quickly",
    "quite",
    "rather",
    "re",
    "ready",
    "really",
    "regarding",
    "right",
    "s",
    "said",
    "same",
    "say",
    "see",
    "seems",
    "shall",
    "she",
    "since",
    "so",
    "something",
    "soon",
    "specific",
    "specifically",
    "still",
    "such",
    "sure",
    "t",
    "take",
    "taking",
    "than",
    "thank",
    "thanks",
    "then",
    "therefore",
    "they",
    "thing",
    "things",
    "think",
    "thinking",
    "thought",
    "through",
    "thus",
    "today",
    "together",
    "too",
    "towards",
    "trying",
    "two",
    "under",
    "until",
    "upon",
    "ve",
    "very",
    "via",
    "wanted",
    "was",
    "way",
    "well",
    "were",
    "where",
    "whether",
    "while",
    "whole",
    "whom",
    "whose",
    "why",
    "within",
    "without",
    "won",
    "wonder",
    "wondering",
    "would",
    "wouldn",
    "yes",
    "yet",
    "yourself",
];

/// A word in lower case, not yet stemmed.
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// Whether no separator stands between this word and the one before, as within camelCase.
    pub(crate) joined: bool,
}

/// Calls `visit` with each word of `text`, at most `most` times.
///
/// Words end at any character that is neither letter nor digit, at the humps of camelCase
/// (`listPRs` is `list` and `prs`, `HTTPServer` is `http` and `server`, `getV2Users` is `get`, `v2`
/// and `users`), and between scripts with and without spaces. In a script without spaces, each
/// character and each pair of adjacent characters is a word.
pub(crate) fn for_each_word(text: &str, most: usize, mut visit: impl FnMut(Word<'_>)) {
    let mut left = most;
    let mut word = String::new();
    let mut joined = false;
    let mut characters = text.chars().peekable();
    let mut before: Option<char> = None;
    while left > 0 {
        let next = characters.next();
        let part_of_word = next.filter(|character| character.is_alphanumeric());
        let ends = match (before, part_of_word) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(before), Some(character)) => {
                is_unspaced(before)
                    || is_unspaced(character)
                    || starts_hump(before, character, characters.clone())
            }
        };
        if ends && !word.is_empty() {
            visit(Word { text: &word, joined });
            left -= 1;
            word.clear();
            // A change of script is not a camelCase hump.
            joined = part_of_word.is_some_and(char::is_uppercase);
        }
        if part_of_word.is_none() {
            joined = false;
        }
        if let Some(character) = part_of_word {
            if word.len() < MAX_WORD {
                word.extend(character.to_lowercase());
            }
            if let Some(before) = before.filter(|&before| is_unspaced(before) && is_unspaced(character))
                && left > 0
            {
                let pair: String = [before, character].iter().collect();
                visit(Word { text: &pair, joined: false });
                left -= 1;
            }
        }
        before = part_of_word;
        if next.is_none() {
            return;
        }
    }
}

/// Whether a camelCase word begins at `character`.
fn starts_hump(before: char, character: char, mut after: impl Iterator<Item = char>) -> bool {
    if !character.is_uppercase() {
        return false;
    }
    if before.is_lowercase() || before.is_numeric() {
        return true;
    }
    // The last capital of `HTTPServer` begins a word; that of `PRs` and `URLs` does not.
    let Some(first) = after.next().filter(|first| first.is_lowercase()) else { return false };
    let ends = after.next().is_none_or(|second| !second.is_lowercase());
    before.is_uppercase() && !(first == 's' && ends)
}

/// Whether the character belongs to a script that is written without spaces between words.
fn is_unspaced(character: char) -> bool {
    matches!(
        u32::from(character),
        // Thai and Lao, Myanmar, Khmer.
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF
        // Kana, Han and related blocks, and Hangul: Korean has spaces, but its endings are attached
        // to the words.
        | 0x3040..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF
        | 0xF900..=0xFAFF | 0x20000..=0x3FFFF
    )
}

/// Whether the word is a stop word.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Whether the word is a filler word.
pub(crate) fn is_filler_word(word: &str) -> bool {
    FILLER_WORDS.binary_search(&word).is_ok()
}

/// The stem of an English word: the word without the endings of number, tense and noun, so that
/// `query` and `queries`, or `create`, `created`, `creating` and `creation`, have the same stem. It
/// need not be a word. Most words of other languages are their own stem.
pub(crate) fn stem(word: &str) -> String {
    let mut stem = word.to_owned();
    reduce(&mut stem);
    stem
}

fn reduce(word: &mut String) {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        // `v2` and `k8s` have no inflected forms, and `prs2` is not a plural.
        return;
    }
    plural(word);
    tense(word);
    noun(word);
    if word.len() >= 5 && word.ends_with('e') {
        word.pop();
    } else if word.len() >= 4 && word.ends_with('y') {
        word.pop();
        word.push('i');
    }
}

fn plural(word: &mut String) {
    if word.len() < 3 || !word.ends_with('s') || ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        return;
    }
    word.pop();
    let hisses = ["se", "xe", "ze", "che", "she"].iter().any(|end| word.ends_with(end));
    if word.len() >= 5 && (hisses || word.ends_with("ie")) {
        word.pop();
    }
}

fn tense(word: &mut String) {
    let Some(rest) = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed")) else { return };
    if rest.len() < 3 || !rest.contains(['a', 'e', 'i', 'o', 'u']) {
        return;
    }
    word.truncate(rest.len());
    // `running` comes from `run`, `adding` from `add` and `calling` from `call`.
    let end = word.as_bytes();
    let doubled = end[end.len() - 1] == end[end.len() - 2];
    if doubled && word.len() >= 4 && !word.ends_with(['l', 's', 'z', 'e', 'o']) {
        word.pop();
    }
}

fn noun(word: &mut String) {
    if let Some(rest) = word.strip_suffix("ion").filter(|rest| rest.len() >= 4 && rest.ends_with(['s', 't']))
    {
        word.truncate(rest.len());
    } else if let Some(rest) = word.strip_suffix("ment").filter(|rest| rest.len() >= 5) {
        word.truncate(rest.len());
    }
}

/// Whether `a` becomes `b` by one edit: a letter inserted, deleted, replaced or swapped with its
/// neighbor.
pub(crate) fn one_edit_apart(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > 1 {
        return false;
    }
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&a[..a.len() - end], &b[..b.len() - end]) {
        ([] | [_], [] | [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

#[cfg(test)]
mod tests;

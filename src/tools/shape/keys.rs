//! Keys of objects that are data and not field names.

/// Maximum bytes of a field name. Longer keys are data.
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// Whether an object's key is likely to be data and not a field name: an id, a date, a path, an
/// address, a hash, a number, a sentence. One such key makes the object a map, so doubtful keys
/// count as data.
pub(crate) fn looks_like_data(key: &str) -> bool {
    let digits = key.chars().filter(char::is_ascii_digit).count();
    // Paths, addresses, host and file names, times, JSON, queries. A leading `@` or `$` is allowed,
    // because JSON-LD and others use it in field names.
    let has_syntax = key.char_indices().any(|(at, character)| {
        !(character.is_alphanumeric() || "_- ".contains(character) || at == 0 && "@$".contains(character))
    });
    let words = key.split([' ', '_', '-']).filter(|word| !word.is_empty());
    // `deadbeef`, but not `feedback` or `added`: words made of hexadecimal letters have few digits
    // and are short.
    let is_hash = |word: &str| {
        word.len() >= 8
            && word.chars().all(|character| character.is_ascii_hexdigit())
            && word.contains(|character: char| character.is_ascii_digit())
    };
    // `dQw4w9WgXcQ`: letters alternate between cases and digits more often than in any word.
    let is_token = |word: &str| {
        let classes: Vec<u8> = word
            .chars()
            .map(|character| u8::from(character.is_ascii_digit()) + 2 * u8::from(character.is_uppercase()))
            .collect();
        let changes = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        word.len() >= 8 && digits > 0 && changes * 2 >= word.len() - 1
    };
    key.is_empty()
        || key.len() > MAX_NAME_BYTES
        || has_syntax
        || digits >= 4
        || key
            .starts_with(|character: char| character.is_ascii_digit() || character == '-' || character == ' ')
        || words.clone().count() > 8
        || key.split(' ').count() > 4
        || words.clone().any(|word| is_hash(word) || is_token(word))
}

//! Names: their identifiers in both languages, full names, and the nearest valid names to a wrong
//! one ([`suggestion`]).
//!
//! The exact name of a server or tool always works; if it is not an identifier, by index. In
//! addition, each name is converted to an identifier by these rules:
//!
//! | | TypeScript ([`typescript_name`]) | Python ([`python_name`]) |
//! |---|---|---|
//! | case | camelCase | snake_case |
//! | any character except letters, digits, `_` and `$` (and also `_` in TypeScript, `$` in Python) | ends a word | ends a word |
//! | capitals | are kept; the first letter of a later word becomes one | begin a word: `HTTPServer` becomes `http_server` |
//! | letters of other scripts | are kept | are kept |
//! | a leading digit | gets `_` before it | gets `_` before it |
//! | nothing left | `_` | `_` |
//! | a reserved word | is valid as a property; `_` is appended for a variable ([`typescript_binding`]) | `_` is appended |
//!
//! An exact name has precedence over a converted one. If two names have the same identifier, it
//! refers to neither ([`forms`]).

mod nearest;
mod reserved;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use self::reserved::{PYTHON_KEYWORDS, TYPESCRIPT_RESERVED};

#[cfg(feature = "server")]
pub(crate) use self::nearest::quoted;
pub(crate) use self::nearest::{SEARCH, SuggestionBudget, nearest, suggestion};

/// The prefix and separator of full names: `mcp__server__tool`.
const FULL_NAME_PREFIX: &str = "mcp__";
const FULL_NAME_SEPARATOR: &str = "__";

/// The camelCase form of a tool's or server's name: `read_file`, `read-file` and `read.file` all
/// become `readFile`. Existing capitals are kept. A name without separators is its own form.
pub(crate) fn camel_case(name: &str) -> String {
    let mut form = String::with_capacity(name.len());
    let mut capitalise_next = false;
    for character in name.chars() {
        if !character.is_alphanumeric() && character != '$' {
            capitalise_next = !form.is_empty();
        } else if capitalise_next {
            form.extend(character.to_uppercase());
            capitalise_next = false;
        } else {
            form.push(character);
        }
    }
    form
}

/// The identifier of a tool or server as a property or an export: [`camel_case`], with characters
/// removed or added so that it is an identifier.
pub(crate) fn typescript_name(name: &str) -> String {
    let form = camel_case(name);
    let form: String = form.chars().filter(|&character| continues_identifier(character)).collect();
    begin_identifier(form)
}

/// The identifier of a server as a variable, a global or an import: [`typescript_name`], with `_`
/// appended to a reserved word.
pub(crate) fn typescript_binding(name: &str) -> String {
    let mut form = typescript_name(name);
    if is_reserved(&form) {
        form.push('_');
    }
    form
}

/// The identifier of a tool or server in Python: snake_case, and not a keyword. The soft keywords
/// `match`, `type` and `case` are valid names.
pub(crate) fn python_name(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut form = String::with_capacity(name.len() + 4);
    for (at, &character) in characters.iter().enumerate() {
        if character == '$' || !continues_identifier(character) || character == '_' {
            // Leading separators are dropped, consecutive ones merged.
            if !form.is_empty() && !form.ends_with('_') {
                form.push('_');
            }
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(at + 1);
        let begins_word = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if begins_word && !form.ends_with('_') && !form.is_empty() {
            form.push('_');
        }
        form.extend(character.to_lowercase());
    }
    let mut form = begin_identifier(form.trim_end_matches('_').to_owned());
    if PYTHON_KEYWORDS.contains(&form.as_str()) {
        form.push('_');
    }
    form
}

/// The usable identifier of each of `names`, in their order. `None` if the identifier is the name
/// itself, is another name's exact text, or is shared with another name.
pub(crate) fn forms<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    form_of: fn(&str) -> String,
) -> Vec<Option<String>> {
    let exact: HashSet<&str> = names.clone().collect();
    let mut owners: HashMap<String, &str> = HashMap::new();
    let mut shared: HashSet<String> = HashSet::new();
    for name in names.clone() {
        let form = form_of(name);
        if *owners.entry(form.clone()).or_insert(name) != name {
            shared.insert(form);
        }
    }
    names
        .map(|name| {
            Some(form_of(name)).filter(|form| !exact.contains(form.as_str()) && !shared.contains(form))
        })
        .collect()
}

/// Whether `name` is an identifier that cannot be the name of a variable in a TypeScript module.
pub(crate) fn is_reserved(name: &str) -> bool {
    TYPESCRIPT_RESERVED.contains(&name)
}

/// Whether `name` is an identifier in Python, and not a keyword.
pub(crate) fn is_python_identifier(name: &str) -> bool {
    is_identifier(name) && !name.contains('$') && !PYTHON_KEYWORDS.contains(&name)
}

/// Whether `name` can be written unquoted after a dot in TypeScript.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.chars().next().is_some_and(begins_identifier) && name.chars().all(continues_identifier)
}

fn begins_identifier(character: char) -> bool {
    character == '_' || character == '$' || character.is_alphabetic()
}

/// Stricter than the rule of either language: combining marks are excluded, because they allow two
/// names that look the same.
fn continues_identifier(character: char) -> bool {
    // Unicode's `Alphabetic` includes marks and circled letters, and `Numeric` includes fractions.
    // Neither language accepts them.
    begins_identifier(character) && !is_odd_letter(character) || character.is_ascii_digit()
}

/// Characters that are `Alphabetic` but not `ID_Continue` in Unicode: circled and squared Latin
/// letters.
fn is_odd_letter(character: char) -> bool {
    matches!(character, '\u{24B6}'..='\u{24E9}' | '\u{1F130}'..='\u{1F149}' | '\u{1F150}'..='\u{1F169}' | '\u{1F170}'..='\u{1F189}')
}

fn begin_identifier(mut form: String) -> String {
    if !form.chars().next().is_some_and(begins_identifier) {
        form.insert(0, '_');
    }
    form
}

/// `mcp__server__tool`.
pub(crate) fn full_name(server: &str, tool: &str) -> String {
    format!("{FULL_NAME_PREFIX}{server}{FULL_NAME_SEPARATOR}{tool}")
}

/// Maximum bytes of a full name. Each separator is a possible split, and looking up all splits of a longer name would
/// take quadratic time. Servers' names have at most 64 bytes, and tools' names 256.
const MAX_FULL_NAME: usize = 1 << 10;

/// Every split of a full name into a server and a tool. There are several if a part itself contains `__`; the catalog
/// decides which of them exist. There is none if the name is longer than [`MAX_FULL_NAME`].
pub(crate) fn split_full_name(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let rest = name.strip_prefix(FULL_NAME_PREFIX).filter(|_| name.len() <= MAX_FULL_NAME).unwrap_or("");
    rest.match_indices(FULL_NAME_SEPARATOR)
        .map(move |(at, separator)| (&rest[..at], &rest[at + separator.len()..]))
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

/// The JSON type of a value, for messages that should not show the value.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;

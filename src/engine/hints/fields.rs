//! Fields that a script reads by another form of their name than the one in which a tool has returned them.
//!
//! In TypeScript `r.nextCursor` of `{ next_cursor }` is no error, and neither is `r.get("nextCursor")` in Python: the
//! script succeeds with a wrong value.

use std::collections::{BTreeMap, BTreeSet};

use super::source::MAX_NAME;
use crate::run::context::ExecutionContext;
use crate::tools::names::is_identifier;

/// Maximum bytes of a source that is looked at.
const MAX_SOURCE: usize = 256 << 10;

/// Maximum number of names of returned fields that are compared, and of names for which the source is searched.
const MAX_FIELDS: usize = 1_000;
const MAX_CANDIDATES: usize = 20;

/// Maximum number of fields that a warning names.
const MAX_SHOWN: usize = 3;

/// Maximum bytes of a pattern that is looked at on each side of a name: `{ orders, nextCursor } = await`.
const MAX_PATTERN: usize = 200;

/// The hint that an answer is parsed already, with the field that has the content, if that is the only one: servers that
/// return text often have it in `content`.
pub(super) fn only_field(context: &ExecutionContext) -> Option<String> {
    // A server chooses the name.
    let field = context.only_returned_field().filter(|name| name.len() <= MAX_NAME && is_identifier(name))?;
    Some(format!(
        "a tool's answer is its content already, parsed: here an object whose only field is `{field}`"
    ))
}

/// The warning for such a script.
pub(super) fn warning(context: &ExecutionContext) -> Option<String> {
    misread(&context.script.source, &context.returned_fields(MAX_FIELDS))
}

/// The warning for a script that has got objects with these fields. There is none for a name that the script gives to
/// something of its own, nor if the script has the returned name too.
fn misread(source: &str, returned: &BTreeSet<String>) -> Option<String> {
    let several = returned.iter().filter(|name| name.len() <= MAX_NAME && has_several_words(name));
    let by_form: BTreeMap<String, &str> = several.map(|name| (form(name), name.as_str())).collect();
    if by_form.is_empty() || source.len() > MAX_SOURCE {
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for word in source.split(|letter: char| !is_part(letter)) {
        let is_candidate = word.len() <= MAX_NAME
            && has_several_words(word)
            && !returned.contains(word)
            && !seen.contains(word);
        let Some(&name) = is_candidate.then(|| by_form.get(&form(word))).flatten() else { continue };
        if seen.len() >= MAX_CANDIDATES || found.len() >= MAX_SHOWN {
            break;
        }
        seen.insert(word);
        if !source.contains(name) && is_read(source, word) {
            found.push(format!("no tool has returned `{word}`, there is `{name}`"));
        }
    }
    (!found.is_empty()).then(|| found.join("; "))
}

/// Whether a name has several words, which its forms write in different ways.
fn has_several_words(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.windows(2).any(|pair| {
        pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
            || pair[0] != b'_' && pair[0] != b'-' && matches!(pair[1], b'_' | b'-')
    })
}

/// What the forms of a name have in common.
fn form(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

fn is_part(letter: char) -> bool {
    letter == '_' || letter == '$' || letter.is_alphanumeric()
}

/// What a script does where it has a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Reads a field of something.
    Read,
    /// Takes the field out of what a call returns: `const { name } = await …`.
    Pattern,
    /// A variable of the script, or its declaration.
    Variable,
    /// Gives an object a field of this name.
    Definition,
    /// Something else, such as a text.
    Other,
}

/// Whether the script reads a field of this name, and gives the name to nothing of its own.
fn is_read(source: &str, name: &str) -> bool {
    let places: Vec<Place> = source
        .match_indices(name)
        .filter(|(start, _)| is_whole(source, *start, name))
        .map(|(start, _)| place(&source[..start], &source[start + name.len()..]))
        .collect();
    // A variable of a pattern is read later.
    let is_pattern = places.contains(&Place::Pattern);
    let is_own = places.contains(&Place::Definition) || !is_pattern && places.contains(&Place::Variable);
    !is_own && (is_pattern || places.contains(&Place::Read))
}

fn is_whole(source: &str, start: usize, name: &str) -> bool {
    !source[..start].ends_with(is_part) && !source[start + name.len()..].starts_with(is_part)
}

fn place(before: &str, after: &str) -> Place {
    let is_set = |rest: &str| {
        let rest = rest.trim_start();
        rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>")
    };
    if before.ends_with('.') {
        return match after.trim_start() {
            _ if is_set(after) => Place::Definition,
            // A method.
            rest if rest.starts_with('(') => Place::Other,
            _ => Place::Read,
        };
    }
    let Some(quote) = before.chars().next_back().filter(|last| matches!(*last, '"' | '\'')) else {
        return match is_taken_out(before, after) {
            true => Place::Pattern,
            // Of a type: `{ nextCursor?: string }`.
            false if after.starts_with("?:") => Place::Other,
            false if after.trim_start().starts_with(':') => Place::Definition,
            false => Place::Variable,
        };
    };
    let (outside, Some(rest)) = (&before[..before.len() - 1], after.strip_prefix(quote)) else {
        return Place::Other;
    };
    if rest.trim_start().starts_with(':') {
        return Place::Definition;
    }
    if outside.ends_with('[') {
        return match rest.strip_prefix(']') {
            Some(rest) if is_set(rest) => Place::Definition,
            Some(_) => Place::Read,
            // A list of texts.
            None => Place::Other,
        };
    }
    if outside.ends_with(".get(") { Place::Read } else { Place::Other }
}

/// Whether a name is in a pattern for what is awaited: `{ orders, name } = await`.
fn is_taken_out(before: &str, after: &str) -> bool {
    let opened = before.rfind(['{', '}']).filter(|&at| before.len() - at <= MAX_PATTERN);
    let is_inside = opened.is_some_and(|at| before[at..].starts_with('{'));
    let closed = after.find(['{', '}']).filter(|&at| at <= MAX_PATTERN);
    let rest = closed.and_then(|at| after[at..].strip_prefix('}'));
    let value = rest.and_then(|rest| rest.trim_start().strip_prefix('='));
    let is_name = matches!(after.trim_start().chars().next(), Some(',' | ':' | '=' | '}'));
    is_inside && is_name && value.is_some_and(|value| value.trim_start().starts_with("await "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str) -> Option<String> {
        let returned = ["next_cursor", "orders", "createdAt", "Length", "html-url", "id"];
        misread(source, &returned.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn a_field_that_is_read_in_another_form() {
        let warning = "no tool has returned `nextCursor`, there is `next_cursor`";
        for source in [
            "cursor = r.nextCursor;",
            "cursor = r?.nextCursor ?? null;",
            "if (r.nextCursor == null) break;",
            "cursor = r.get(\"nextCursor\")",
            "cursor = r['nextCursor']",
            "const { orders, nextCursor } = await tools.shop.orders({});\nif (nextCursor) again();",
            "const { nextCursor: cursor, orders } = await tools.shop.orders({});",
            "const r: { nextCursor?: string } = await tools.shop.orders({}); return r.nextCursor;",
        ] {
            assert_eq!(check(source).as_deref(), Some(warning), "{source}");
        }
        let both = "no tool has returned `created_at`, there is `createdAt`; no tool has returned `htmlUrl`, there is \
                    `html-url`";
        assert_eq!(check("return [r.created_at, r.htmlUrl]").as_deref(), Some(both));
    }

    #[test]
    fn names_of_the_script_are_its_own() {
        for source in [
            "return r.next_cursor",
            "cursor = r.nextCursor ?? r.next_cursor",
            "const page = { nextCursor: r.cursor }; return page.nextCursor;",
            "page = {\"nextCursor\": 1}\npage.get(\"nextCursor\")",
            "page[\"nextCursor\"] = 1; return page.nextCursor;",
            "page.nextCursor = 1; return page.nextCursor;",
            "const nextCursor = r.cursor; return x.nextCursor;",
            "const { nextCursor } = page; return nextCursor;",
            "return r.nextCursor()",
            "console.log('nextCursor')",
            "return r.nextCursors",
            // Names of one word are also those of the language.
            "return list.length",
            "return r.other_field",
        ] {
            assert_eq!(check(source), None, "{source}");
        }
    }

    /// The source is searched for a bounded number of names.
    #[test]
    fn v_677_a_script_of_thousands_of_forms_is_not_compared_with_itself() {
        let forms = |count: usize| -> String {
            (0..count).map(|at| format!("a.next{}cursor;", "_".repeat(at + 2))).collect()
        };
        assert_eq!(check(&forms(40)).unwrap().matches("no tool").count(), MAX_SHOWN);
        let own = |count: usize| -> String {
            let names = (0..count).map(|at| format!("next{}cursor", "_".repeat(at + 2)));
            names.map(|name| format!("a.{name} = 1;")).collect()
        };
        assert_eq!(
            check(&format!("{}r.nextCursor;", own(MAX_CANDIDATES - 1))).unwrap().matches("no tool").count(),
            1
        );
        assert_eq!(check(&format!("{}r.nextCursor;", own(MAX_CANDIDATES))), None);
        assert_eq!(check(&format!("{}r.nextCursor;", " ".repeat(MAX_SOURCE))), None);
    }
}

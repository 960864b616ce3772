//! Fields that a script reads by another form of their name than the one in which a tool has returned them.
//!
//! In TypeScript `r.nextCursor` of `{ next_cursor }` is no error, and neither is `r.get("nextCursor")` in Python: the
//! script succeeds with a wrong value. A warning that is wrong costs more than one that is missing, so there is none
//! wherever the script may read something else.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{MAX_NAME, is_part, takes_field};
use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::script::Language;
use crate::tools::names::is_identifier;

/// Maximum bytes of a source, and of an input, that are looked at.
pub(super) const MAX_SOURCE: usize = 256 << 10;
const MAX_INPUT: usize = 256 << 10;

/// Maximum number of names of returned fields that are compared, and of names for which the source is searched.
const MAX_FIELDS: usize = 1_000;
const MAX_CANDIDATES: usize = 20;

/// Maximum number of fields that a warning names.
const MAX_SHOWN: usize = 3;

/// Maximum bytes of a pattern that is looked at on each side of a name: `{ orders, nextCursor } = await`.
const MAX_PATTERN: usize = 200;

/// Functions that make objects whose fields no tool has returned as such.
const PARSERS: &[&str] = &["JSON.parse(", "json.loads(", "json.load(", "DictReader("];

/// Objects whose fields are not those of a result.
const OWN: &[&str] = &["env", "environ", "headers", "input", "inputs", "self", "state", "this"];

/// Properties of the languages' objects, and of found tools, whose names have several words.
const BUILT_IN: &[&str] = &[
    "byteLength",
    "byteOffset",
    "dayOfWeek",
    "dayOfYear",
    "daysInMonth",
    "hasIndices",
    "ignoreCase",
    "inputSchema",
    "lastIndex",
    "outputSchema",
    "searchParams",
    "timeZone",
    "timeZoneId",
    "weekOfYear",
];

/// Functions that store a value under a name.
const SETTERS: &[&str] = &[".put(", ".set(", ".setdefault("];

/// The hint that an answer is parsed already, with the field that has the content, if that is the only one: servers that
/// return text often have it in `content`.
pub(super) fn only_field(error: &str, context: &ExecutionContext) -> Option<String> {
    of_only_field(error, &context.script.source, &context.only_returned_field()?)
}

/// The hint for an error of this name. `None` if the script knows the field: what it has parsed in vain may be the text
/// in it.
fn of_only_field(error: &str, source: &str, field: &str) -> Option<String> {
    if matches!(error, "SyntaxError" | "JSONDecodeError") && takes_field(source, field) {
        return None;
    }
    // A server chooses the name.
    (field.len() <= MAX_NAME && is_identifier(field)).then(|| {
        format!(
            "a tool's answer is its content already, parsed: here an object whose only field is `{field}`"
        )
    })
}

/// The warning for such a script.
pub(super) fn warning(context: &ExecutionContext) -> Option<String> {
    let script = &context.script;
    let input = script.input.as_ref().map_or("", Json::text);
    let reading = Reading { source: &script.source, language: script.language, input };
    reading.misread(|| context.returned_fields(MAX_FIELDS))
}

/// A script, and what it reads.
#[derive(Clone, Copy)]
struct Reading<'a> {
    source: &'a str,
    language: Language,
    /// The JSON of its input.
    input: &'a str,
}

impl Reading<'_> {
    /// The warning for a script whose tools have returned objects with these fields. There is none for a name that the
    /// script gives to something of its own or that its input has, nor if the script has the returned name too.
    /// The fields are read only if there can be one.
    fn misread(self, returned: impl FnOnce() -> Option<BTreeSet<String>>) -> Option<String> {
        let is_long = self.source.len() > MAX_SOURCE || self.input.len() > MAX_INPUT;
        if is_long || PARSERS.iter().any(|parser| self.source.contains(parser)) {
            return None;
        }
        let returned = returned()?;
        let several = returned.iter().filter(|name| name.len() <= MAX_NAME && has_several_words(name));
        let by_form: BTreeMap<String, &str> = several.map(|name| (form(name), name.as_str())).collect();
        if by_form.is_empty() {
            return None;
        }
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for word in self.source.split(|letter: char| !is_part(letter)) {
            let is_candidate = word.len() <= MAX_NAME
                && has_several_words(word)
                && !BUILT_IN.contains(&word)
                && !returned.contains(word)
                && !seen.contains(word);
            let Some(&name) = is_candidate.then(|| by_form.get(&form(word))).flatten() else { continue };
            if seen.len() >= MAX_CANDIDATES || found.len() >= MAX_SHOWN {
                break;
            }
            seen.insert(word);
            if !self.source.contains(name) && !self.input.contains(word) && self.is_read(word) {
                found.push(format!("no tool has returned `{word}`, there is `{name}`"));
            }
        }
        (!found.is_empty()).then(|| found.join("; "))
    }

    /// Whether the script reads a field of this name, and gives the name to nothing of its own.
    fn is_read(self, name: &str) -> bool {
        let source = self.source;
        let places: Vec<NameUse> = source
            .match_indices(name)
            .filter(|(start, _)| is_whole(source, *start, name))
            .map(|(start, _)| self.place(&source[..start], &source[start + name.len()..]))
            .collect();
        // A variable of a pattern is read later.
        let is_pattern = places.contains(&NameUse::Pattern);
        let is_own =
            places.contains(&NameUse::Definition) || !is_pattern && places.contains(&NameUse::Variable);
        !is_own && (is_pattern || places.contains(&NameUse::Read))
    }

    fn place(self, before: &str, after: &str) -> NameUse {
        let is_typescript = self.language == Language::TypeScript;
        // In Python a field that is not there is an error, except for `get`.
        let read = |object: &str, is_silent: bool| {
            if is_silent && !OWN.contains(&last_name(object)) { NameUse::Read } else { NameUse::Other }
        };
        let is_set = |rest: &str| {
            let rest = rest.trim_start();
            rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>")
        };
        if let Some(object) = before.strip_suffix('.') {
            return match after.trim_start() {
                _ if is_set(after) => NameUse::Definition,
                // A method.
                rest if rest.starts_with('(') => NameUse::Other,
                _ => read(object, is_typescript),
            };
        }
        let Some(quote) = before.chars().next_back().filter(|last| matches!(*last, '"' | '\'')) else {
            return match is_taken_out(before, after) {
                true => NameUse::Pattern,
                // Of a type: `{ nextCursor?: string }`.
                false if after.starts_with("?:") => NameUse::Other,
                false if after.trim_start().starts_with(':') => NameUse::Definition,
                false => NameUse::Variable,
            };
        };
        let (outside, Some(rest)) = (&before[..before.len() - 1], after.strip_prefix(quote)) else {
            return NameUse::Other;
        };
        if rest.trim_start().starts_with(':') || SETTERS.iter().any(|setter| outside.ends_with(setter)) {
            return NameUse::Definition;
        }
        if let Some(object) = outside.strip_suffix('[')
            && let Some(rest) = rest.strip_prefix(']')
        {
            return if is_set(rest) { NameUse::Definition } else { read(object, is_typescript) };
        }
        // A list of names, by which the script may make objects.
        if outside.trim_end().ends_with(['[', ',']) {
            return NameUse::Definition;
        }
        outside.strip_suffix(".get(").map_or(NameUse::Other, |object| read(object, true))
    }
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
pub(super) fn form(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// What a script does where it has a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameUse {
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

fn is_whole(source: &str, start: usize, name: &str) -> bool {
    !source[..start].ends_with(is_part) && !source[start + name.len()..].starts_with(is_part)
}

/// The last name of an expression: `input` of `main.input?`.
fn last_name(expression: &str) -> &str {
    let expression = expression.trim_end_matches(['.', '?']);
    expression.rsplit(|letter: char| !is_part(letter)).next().unwrap_or_default()
}

/// Whether a name is in a pattern for what is awaited: `{ orders, name } = await`.
fn is_taken_out(before: &str, after: &str) -> bool {
    let is_inside = nearest_brace(before.bytes().rev()).is_some_and(|(_, brace)| brace == b'{');
    let closed = nearest_brace(after.bytes()).filter(|(_, brace)| *brace == b'}');
    let value = closed.and_then(|(at, _)| after[at + 1..].trim_start().strip_prefix('='));
    let is_name = matches!(after.trim_start().chars().next(), Some(',' | ':' | '=' | '}'));
    is_inside && is_name && value.is_some_and(|value| value.trim_start().starts_with("await "))
}

/// The first brace of a part of a source, and its position. A source can have any number of names without a brace, so
/// that only the beginning is searched for each of them.
fn nearest_brace(bytes: impl Iterator<Item = u8>) -> Option<(usize, u8)> {
    bytes.take(MAX_PATTERN).enumerate().find(|(_, byte)| matches!(byte, b'{' | b'}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_field_is_said_to_scripts_that_do_not_know_it() {
        let said = of_only_field("SyntaxError", "JSON.parse(await tools.files.read({}))", "content").unwrap();
        assert!(said.ends_with("whose only field is `content`"), "{said}");
        assert!(of_only_field("TypeError", "r.content[0].text", "content").is_some());
        // The text in the field is no JSON.
        assert_eq!(of_only_field("SyntaxError", "JSON.parse(r.content)", "content"), None);
        assert_eq!(of_only_field("JSONDecodeError", "json.loads(r[\"content\"])", "content"), None);
        assert_eq!(of_only_field("TypeError", "r.map(f)", "not a name`"), None);
    }

    fn check_in(language: Language, source: &str, input: &str) -> Option<String> {
        let returned = ["next_cursor", "orders", "createdAt", "Length", "html-url", "id", "search_params"];
        let reading = Reading { source, language, input };
        reading.misread(|| Some(returned.into_iter().map(str::to_owned).collect()))
    }

    fn check(source: &str) -> Option<String> {
        check_in(Language::TypeScript, source, "")
    }

    #[test]
    fn a_field_that_is_read_in_another_form() {
        let warning = "no tool has returned `nextCursor`, there is `next_cursor`";
        for source in [
            "cursor = r.nextCursor;",
            "cursor = r?.nextCursor ?? null;",
            "if (r.nextCursor == null) break;",
            "cursor = r['nextCursor'];",
            "console.log('nextCursor', r.nextCursor);",
            "const { orders, nextCursor } = await tools.shop.orders({});\nif (nextCursor) again();",
            "const { nextCursor: cursor, orders } = await tools.shop.orders({});",
            "const r: { nextCursor?: string } = await tools.shop.orders({}); return r.nextCursor;",
        ] {
            assert_eq!(check(source).as_deref(), Some(warning), "{source}");
        }
        let python = check_in(Language::Python, "cursor = r.get(\"nextCursor\")", "");
        assert_eq!(python.as_deref(), Some(warning));
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
            // What the script reads is its input, or what it has parsed or stored itself.
            "return await tools.shop.page({ at: input.nextCursor });",
            "return await tools.shop.page({ at: input?.nextCursor ?? input['nextCursor'] });",
            "const page = JSON.parse(r.text); return page.nextCursor;",
            "await state.set('nextCursor', 1); return (await state.get('nextCursor')) ?? r.nextCursor;",
            "const names = ['id', 'nextCursor']; return rows(names).map((row) => row.nextCursor);",
            "return new URL(r.url).searchParams;",
        ] {
            assert_eq!(check(source), None, "{source}");
        }
        for source in [
            "api = os.environ.get('nextCursor')",
            "cursor = inputs.get('nextCursor')",
            "cursor = await state.get('nextCursor')",
            // Otherwise it would have failed.
            "cursor = page['nextCursor']",
            "cursor = page.nextCursor",
        ] {
            assert_eq!(check_in(Language::Python, source, ""), None, "{source}");
        }
        let of_entry = "async function main(args) { return await tools.shop.page({ at: args.nextCursor }); }";
        assert!(check(of_entry).is_some());
        for input in [r#"{"nextCursor":1}"#, r#""{\"nextCursor\":1}""#] {
            assert_eq!(check_in(Language::TypeScript, of_entry, input), None);
        }
    }

    /// Threat 677. The source around a name is not searched for each of thousands of names.
    #[test]
    fn v_677_a_brace_is_searched_near_a_name_only() {
        let mut searched = 0;
        let source = std::iter::repeat_with(|| {
            searched += 1;
            b'a'
        });
        assert_eq!(nearest_brace(source), None);
        assert_eq!(searched, MAX_PATTERN);
        assert_eq!(nearest_brace("a, b } = c".bytes()), Some((5, b'}')));
    }

    /// The source is searched for a bounded number of names.
    #[test]
    fn v_677_a_script_of_thousands_of_forms_is_not_compared_with_itself() {
        let forms = |count: usize| -> String {
            (0..count).map(|at| format!("a.next{}cursor;", "_".repeat(at + 2))).collect()
        };
        assert_eq!(check(&forms(40)).unwrap().matches("no tool").count(), MAX_SHOWN);
        let own = |count: usize| -> String {
            // No name is too long to be compared.
            let names =
                (0..count).map(|at| format!("next{}cur{}sor", "_".repeat(at / 5 + 2), "_".repeat(at % 5)));
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

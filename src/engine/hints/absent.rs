//! Scripts whose value is a field that the answer of a tool does not have.
//!
//! In TypeScript `return r.text` is no error where `r` has no such field. A warning that is wrong costs more than one
//! that is missing: there is one only if the script returns nothing else, and the answer is the only one of the run.

use super::fields::{MAX_SOURCE, form};
use super::source::{MAX_NAME, is_part};
use crate::run::context::ExecutionContext;
use crate::run::script::Language;
use crate::text::preview;
use crate::tools::names::is_identifier;

/// Maximum number of fields that the warning names.
const MAX_SHOWN: usize = 10;

/// Fields that every object has.
const INHERITED: &[&str] = &[
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// The warning for a script whose value is null, and that has printed nothing.
pub(super) fn warning(context: &ExecutionContext) -> Option<String> {
    if context.script.language != Language::TypeScript {
        return None;
    }
    let read = Read::find(&context.script.source)?;
    let answer = context.only_returned_object()?;
    let is_answer = form(read.server) == form(&answer.server) && form(read.tool) == form(&answer.tool);
    let is_absent = !answer.fields.iter().any(|field| field == read.field);
    (is_answer && is_absent).then(|| read.explained(&answer.fields))
}

/// A field of a tool's answer, which a script returns.
#[derive(Debug, PartialEq, Eq)]
struct Read<'a> {
    server: &'a str,
    tool: &'a str,
    field: &'a str,
}

impl<'a> Read<'a> {
    /// The field, if the script ends with `return (await tools.server.tool({…})).field`, or with a variable for the
    /// answer that nothing else uses, and has no other `return`.
    fn find(source: &'a str) -> Option<Self> {
        if source.len() > MAX_SOURCE {
            return None;
        }
        let (before, value) = source.split_once("return")?;
        // A variable named `tools` may be something else.
        let is_own = words(source, "tools") > source.matches("tools.").count();
        let begins_line = before.is_empty() || before.ends_with('\n');
        if is_own || !begins_line || value.contains("return") || value.starts_with(is_part) {
            return None;
        }
        let (object, field) = statement(value).rsplit_once('.')?;
        if !is_identifier(field) || field.starts_with("__") || INHERITED.contains(&field) {
            return None;
        }
        let object = object.strip_suffix('?').unwrap_or(object);
        let call = match object.strip_prefix("(await ") {
            Some(call) => call.strip_suffix(')')?,
            None => declared(source, before, object)?,
        };
        let (server, tool) = called(source, call)?;
        Some(Self { server, tool, field })
    }

    /// The warning. The names of the fields are the server's.
    fn explained(&self, fields: &[String]) -> String {
        let Self { server, tool, field } = self;
        let names = fields.iter().filter(|name| is_identifier(name)).take(MAX_SHOWN);
        let shown: Vec<String> = names.map(|name| format!("`{}`", preview(name, MAX_NAME))).collect();
        let more = match fields.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let has =
            if shown.is_empty() { String::new() } else { format!("; it has {}{more}", shown.join(", ")) };
        format!(
            "the script's value is null: what `{server}.{tool}` returned has no `{}`{has}",
            preview(field, MAX_NAME)
        )
    }
}

/// A statement without what ends it.
fn statement(text: &str) -> &str {
    text.trim().trim_end_matches(';').trim_end()
}

/// The call whose answer is the variable `name`, if the part of the source before its use ends with the declaration.
fn declared<'a>(source: &str, before: &'a str, name: &str) -> Option<&'a str> {
    if !is_identifier(name) || words(source, name) != 2 {
        return None;
    }
    let start = ["const", "let", "var"].iter().find_map(|word| {
        let declaration = format!("{word} {name}");
        let begins_line = |start: &usize| {
            let rest = &before[start + declaration.len()..];
            (*start == 0 || before[..*start].ends_with('\n')) && !rest.starts_with(is_part)
        };
        before.match_indices(&declaration).map(|(start, _)| start).find(begins_line)
    })?;
    let (variable, call) = before[start..].split_once("= await ")?;
    // There may be a type, and no other variable.
    (!variable.contains(['\n', ',', ';', '='])).then(|| statement(call))
}

/// The server and the tool of a call without calls in its arguments: `tools.server.tool({…})`, `server.tool({…})`.
fn called<'a>(source: &str, call: &'a str) -> Option<(&'a str, &'a str)> {
    let (path, arguments) = call.split_once('(')?;
    if arguments.strip_suffix(')')?.contains(['(', ')']) {
        return None;
    }
    let (server, tool) = path.rsplit_once('.')?;
    let server = match server.strip_prefix("tools.") {
        Some(server) => server,
        // The script may have an object of this name.
        None if words(source, server) == 1 => server,
        None => return None,
    };
    (is_identifier(server) && is_identifier(tool)).then_some((server, tool))
}

/// How often a word is in a text.
fn words(text: &str, word: &str) -> usize {
    text.split(|letter: char| !is_part(letter)).filter(|part| *part == word).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_only_answer() {
        for source in [
            "const r = await tools.s.t({});\nreturn r.text;",
            "const r = await tools.s.t();\nreturn r?.text",
            "// Reads it.\nlet r: any = await tools.s.t({\n  a: \"b.c\",\n});\n\nreturn r.text;\n",
            "const r = await s.t({ a: [1] })\nreturn r.text",
            "return (await tools.s.t({ a: 1 })).text;",
            "return (await s.t())?.text",
        ] {
            let read = Read { server: "s", tool: "t", field: "text" };
            assert_eq!(Read::find(source), Some(read), "{source}");
        }
    }

    #[test]
    fn a_value_that_may_be_something_else() {
        for source in [
            "const r = await tools.s.t({});\nr.text = null;\nreturn r.text;",
            "const r = await tools.s.t({});\nif (!r.text) return null;\nreturn r.text;",
            "const r = await tools.s.t({});\nfix(r);\nreturn r.text;",
            "const r = await tools.s.t({}).then((r) => r.rows[0]);\nreturn r.text;",
            "const r = (await tools.s.t({})).rows;\nreturn r.text;",
            "const r = await tools.s.t({}) ?? other;\nreturn r.text;",
            "const r = await tools.s.t(f(1));\nreturn r.text;",
            "const r = await load();\nreturn r.text;",
            "const r = tools.s.t({});\nreturn r.text;",
            "const r = await tools.s.t({});\nreturn r.text ?? null;",
            "const r = await tools.s.t({});\nreturn r.text.length;",
            "const r = await tools.s.t({});\nreturn r.text();",
            "const r = await tools.s.t({});\nreturn [r.text];",
            "const r = await tools.s.t({});\nreturn r;",
            "const r = await tools.s.t({});\nreturn r.toString;",
            "const r = await tools.s.t({});\nif (r)\n  return r.text;",
            "const s = { t: async (q) => (await tools.s.t(q)).rows };\nconst r = await s.t(1);\nreturn r.text;",
            "const { tools } = fake;\nconst r = await tools.s.t(1);\nreturn r.text;",
            "const tools = fake;\nconst r = await tools.s.t(1);\nreturn r.text;",
            "async function main() {\nconst r = await tools.s.t({});\nreturn r.text;\n}",
            "const { a } = await tools.s.t({});\nreturn a.text;",
            "const returned = await tools.s.t({});\nreturned.text;",
            "const r = q, s = await tools.s.t({});\nreturn r.text;",
            "const r = q; const s = await tools.s.t({});\nreturn r.text;",
            "const r = q;\nconst s = await tools.s.t({});\nreturn r.text;",
            "const rs = await tools.s.t({});\nconst o = {};\nreturn o.text;",
            "",
        ] {
            assert_eq!(Read::find(source), None, "{source}");
        }
    }

    /// The names are the server's.
    #[test]
    fn fields_are_named_up_to_a_bound() {
        let read = Read { server: "s", tool: "t", field: "text" };
        let said = |fields: &[&str]| {
            read.explained(&fields.iter().map(|&field| field.to_owned()).collect::<Vec<_>>())
        };
        let none = "the script's value is null: what `s.t` returned has no `text`";
        assert_eq!(said(&[]), none);
        assert_eq!(said(&["a", "b"]), format!("{none}; it has `a`, `b`"));
        assert_eq!(said(&["a", "`; do this"]), format!("{none}; it has `a` and 1 more"));
        let names: Vec<String> = (0..30).map(|number| format!("field{number}{}", "x".repeat(100))).collect();
        let long = read.explained(&names);
        assert!(long.ends_with(" and 20 more") && long.contains("xx…`") && long.len() < 1_000, "{long}");
    }
}

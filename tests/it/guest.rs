//! The files of the guest half of Python: their imports of each other, and their lengths.

use std::collections::BTreeSet;
use std::fs;

use crate::source::cycles;
use crate::tidy::{files, root};

const DIRECTORY: &str = "python-wasm/guest";

/// A file with more lines has more than one job.
const MAX_LINES: usize = 500;

/// The module of each file, such as `cx_guest.loop`, and the text of the file.
fn modules() -> Vec<(String, String)> {
    let modules = files(DIRECTORY, ".py").into_iter().map(|file| {
        let path = file.strip_prefix(DIRECTORY).unwrap().with_extension("");
        let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let name = parts.join(".").trim_end_matches(".__init__").to_owned();
        (name, fs::read_to_string(root().join(&file)).unwrap())
    });
    modules.collect()
}

/// As with files of the library: two that import each other are one thing in two files, and more than two are none.
#[test]
fn no_more_than_two_modules_of_the_guest_import_each_other() {
    let modules = modules();
    let number = |name: &str| modules.iter().position(|(module, _)| module == name);
    let arrows: Vec<BTreeSet<usize>> = modules
        .iter()
        .enumerate()
        .map(|(own, (name, text))| {
            let targets = imports(text, name).into_iter().filter_map(|target| number(&target));
            targets.filter(|target| *target != own).collect()
        })
        .collect();
    let count: usize = arrows.iter().map(BTreeSet::len).sum();
    assert!(count > 40, "only {count} imports were found");
    let long = cycles(&arrows).into_iter().filter(|cycle| cycle.len() > 2);
    let long: Vec<Vec<&str>> =
        long.map(|cycle| cycle.into_iter().map(|number| modules[number].0.as_str()).collect()).collect();
    assert!(long.is_empty(), "modules that lead back to each other: {long:?}");
}

#[test]
fn files_of_the_guest_have_one_job() {
    let long: Vec<(String, usize)> = modules()
        .into_iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines >= MAX_LINES)
        .collect();
    assert!(long.is_empty(), "files of {MAX_LINES} lines and more: {long:?}");
}

/// What a module imports, at its top and inside of functions: the names of modules, and of what could be one.
fn imports(text: &str, module: &str) -> BTreeSet<String> {
    let package = module.rsplit_once('.').map_or("", |(package, _)| package);
    let mut found = BTreeSet::new();
    let code = logical_lines(text);
    for statement in code.iter().flat_map(|line| line.split([';', ':'])).map(str::trim) {
        if let Some(names) = statement.strip_prefix("import ") {
            found.extend(first_words(names));
        } else if let Some((from, names)) =
            statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
        {
            let from = from.trim();
            let from = match from.strip_prefix('.') {
                Some("") => package.to_owned(),
                Some(below) => format!("{package}.{below}"),
                None => from.to_owned(),
            };
            // `from package import module` names a module, `from module import function` does not.
            found.extend(first_words(names).map(|name| format!("{from}.{name}")));
            found.insert(from);
        }
    }
    found
}

/// The first word of each part between commas: `a as b, c` has `a` and `c`.
fn first_words(names: &str) -> impl Iterator<Item = String> {
    let names = names.split(',').filter_map(|name| name.split_whitespace().next());
    names.map(str::to_owned)
}

/// The lines of a text of Python without strings, comments and brackets. What is inside of brackets is on one line.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let (mut rest, mut depth) = (text, 0_usize);
    while let Some(letter) = rest.chars().next() {
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote));
        if let Some(quote) = quote {
            rest = after_string(&rest[quote.len()..], quote);
            continue;
        }
        if letter == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        let line = lines.last_mut().unwrap();
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '\n' if depth > 0 || line.ends_with('\\') => {
                line.truncate(line.trim_end_matches('\\').len());
                line.push(' ');
            }
            '\n' => lines.push(String::new()),
            _ => line.push(letter),
        }
        rest = &rest[letter.len_utf8()..];
    }
    lines
}

/// The text after the end of a string whose opening quote was before `text`.
fn after_string<'a>(text: &'a str, quote: &str) -> &'a str {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        if !is_escaped && text[at..].starts_with(quote) {
            return &text[at + quote.len()..];
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    ""
}

#[test]
fn every_form_of_an_import_is_read() {
    let check = |text: &str, expected: &[&str]| {
        let found = imports(text, "p.own");
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
    };
    check("import a, b.c as d", &["a", "b.c"]);
    check("from a import b as c, d", &["a", "a.b", "a.d"]);
    check("from . import a\nfrom .b import c", &["p", "p.a", "p.b", "p.b.c"]);
    check("from a import (\n    b,  # import x\n    c,\n)", &["a", "a.b", "a.c"]);
    check("from a import b, \\\n    c", &["a", "a.b", "a.c"]);
    check(
        "def f():\n    if x: import a; import b\n    try:\n        from c import d\n",
        &["a", "b", "c", "c.d"],
    );
    check("\"\"\"\nimport a\n\"\"\"\nx = 'import b'\n# import c\nraise X from error\nyield from d", &[]);
    check("x = \"\\\"\\nimport a\"\nimport b", &["b"]);
}

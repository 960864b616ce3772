//! The layers of the library, as folders and files of `src`, kept by reading it.

use std::path::Path;

use crate::tidy::{code, files};

/// From the top down. A module may name those that stand below it in this list, and itself; nothing else.
const LAYERS: &[&[&str]] = &[
    &["server"],
    &["executor"],
    &["engine"],
    &["config"],
    &["run"],
    &["mcp"],
    &["tools"],
    &["storage"],
    &["error", "json", "lines", "sync", "text"],
];

/// What names all layers: the roots of the library, and of the part of it that fuzz targets link.
const ROOTS: &[&str] = &["src/lib.rs", "src/fuzz_lib.rs"];

#[test]
fn modules_name_only_what_is_below_them() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for path in files("src", ".rs") {
        let is_root = ROOTS.iter().any(|root| path == Path::new(root));
        // The command is a crate of its own: what it can reach is public.
        if is_root || path.starts_with("src/bin") || is_test(&path) {
            continue;
        }
        let module = module(&path);
        let Some(layer) = layer(&module[0]) else {
            wrong.push(format!("{} is in no layer", path.display()));
            continue;
        };
        for name in names_of_the_crate(&code(&path), module.len()) {
            seen += 1;
            let is_allowed = name == module[0] || self::layer(&name).is_some_and(|below| below > layer);
            if !is_allowed {
                wrong.push(format!("{} names `{name}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "not below:\n{}", wrong.join("\n"));
    assert!(seen > 200, "only {seen} names were found");
}

#[test]
fn every_form_of_a_path_is_seen() {
    let code = "use crate::a::{x, y}; use crate::{b, c::{self, d}, e::f}; fn g() { crate::h::i(); super::super::j::k() }
        use crate :: l; pub(in crate::m) use super::n; my_crate::o();";
    let mut found = names_of_the_crate(code, 2);
    found.sort();
    assert_eq!(found, ["a", "b", "c", "e", "h", "j", "l", "m"]);
    assert_eq!(names_of_the_crate("use super::a;", 1), ["a"]);
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| ["tests", "tests.rs", "models.rs", "model.rs"].iter().any(|test| part == *test))
}

/// The path of a file's module: `engine`, `pool` for `src/engine/pool.rs`.
fn module(path: &Path) -> Vec<String> {
    let path = path.strip_prefix("src").unwrap().with_extension("");
    path.iter().map(|part| part.to_string_lossy().into_owned()).filter(|part| part != "mod").collect()
}

/// The modules at the root of the crate that `code` names, in a module that is so deep below it.
fn names_of_the_crate(code: &str, depth: usize) -> Vec<String> {
    let code: String =
        code.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ::", "::").replace(":: ", "::");
    let above = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", &above] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':') {
                continue;
            }
            let rest = &code[at + root.len()..];
            match rest.strip_prefix('{') {
                Some(list) => found.extend(items(list)),
                None => found.extend(first_name(rest)),
            }
        }
    }
    found
}

/// The first name of each item of a list in braces, whose end is in `list`.
fn items(list: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut depth, mut is_first) = (0, true);
    for (at, letter) in list.char_indices() {
        if depth == 0 && is_first && letter != ' ' {
            found.extend(first_name(&list[at..]));
            is_first = false;
        }
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            _ => {}
        }
    }
    found
}

fn first_name(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    (!name.is_empty() && name != "super" && name != "self").then_some(name)
}

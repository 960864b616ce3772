//! A list `ALL` of the variants of an enum has all of them. A variant that is missing there cannot be read by its name,
//! which the compiler does not notice.

use std::collections::BTreeSet;
use std::fs;

use crate::tidy::{files, root};

/// The word with which a text begins.
fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// The variants of an enum of a formatted file; `None` if there is no such enum.
fn variants(text: &str, name: &str) -> Option<BTreeSet<String>> {
    let head = format!("enum {name} {{");
    let mut lines = text.lines().skip_while(|line| !line.ends_with(&head));
    lines.next()?;
    let body = lines.take_while(|line| *line != "}").filter_map(|line| line.strip_prefix("    "));
    Some(body.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase())).map(word).collect())
}

/// The lists of a formatted file: the name of each type, and the variants that its list has.
fn lists(text: &str) -> Vec<(String, BTreeSet<String>)> {
    let (mut of, mut found) = (String::new(), Vec::new());
    for (at, line) in
        text.match_indices('\n').map(|(at, _)| (at, text[at + 1..].lines().next().unwrap_or("")))
    {
        if let Some(name) = line.strip_prefix("impl ").and_then(|rest| rest.strip_suffix(" {")) {
            name.clone_into(&mut of);
        }
        let is_list = line.contains("const ALL: [Self;")
            || line.contains("const ALL: &[Self]")
            || line.contains("const ALL: &'static [Self]");
        if is_list {
            let list = text[at..].split_once('=').unwrap().1.split("];").next().unwrap();
            found.push((of.clone(), list.split("Self::").skip(1).map(word).collect()));
        }
    }
    found
}

#[test]
fn a_list_of_all_variants_has_all_of_them() {
    let mut seen = 0;
    for path in files("src", ".rs") {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        for (name, listed) in lists(&text) {
            // Others are lists of values.
            if let Some(variants) = variants(&text, &name) {
                assert_eq!(listed, variants, "`{name}::ALL` in {}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 13, "only {seen} lists were found");
}

#[test]
fn lists_and_variants_are_found() {
    let text = "\npub enum A {\n    /// B.\n    B,\n    C(u8),\n    D {\n        e: u8,\n    },\n}\n\nimpl A {\n    \
                const ALL: [Self; 2] = [Self::B,\n        Self::D];\n}\n";
    let names = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&name| name.to_owned()).collect() };
    assert_eq!(variants(text, "A"), Some(names(&["B", "C", "D"])));
    assert_eq!(variants(text, "E"), None);
    assert_eq!(lists(text), [("A".to_owned(), names(&["B", "D"]))]);
}

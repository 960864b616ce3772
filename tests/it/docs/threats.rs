//! The list of threats: each row has a number of its own, and the tests that it names exist.

use std::collections::HashSet;
use std::path::Path;

use super::read;
use crate::tidy::files;

const THREATS: &str = "docs/threats.md";

/// The first and the last cell of each row, without those of headings.
fn rows(page: &str) -> Vec<(String, String)> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split(" |").map(|cell| cell.trim_matches([' ', '|']));
        let first = cells.next()?;
        (first.chars().any(|character| character.is_ascii_digit()))
            .then(|| (first.to_owned(), cells.next_back().unwrap_or_default().to_owned()))
    });
    cells.collect()
}

/// A number that stands for two threats says of neither that it is tested.
#[test]
fn each_threat_has_a_number_of_its_own() {
    let mut seen = HashSet::new();
    let rows = rows(&read(Path::new(THREATS)));
    assert!(rows.len() > 500, "only {} rows were read", rows.len());
    let twice: Vec<_> =
        rows.iter().map(|(number, _)| number).filter(|number| !seen.insert(*number)).collect();
    assert!(twice.is_empty(), "{THREATS}: more than one row has the number: {twice:?}");
}

#[test]
fn tests_of_threats_exist() {
    let mut names = HashSet::new();
    for path in [files("src", ".rs"), files("tests", ".rs"), files("fuzz/entries", ".rs")].concat() {
        // Some are made by macros, so that there is no `fn` before the name.
        let source = read(&path);
        let words = source.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        names.extend(words.filter(|word| word.starts_with("v_")).map(str::to_owned));
    }
    let mut missing = Vec::new();
    for (number, tests) in rows(&read(Path::new(THREATS))) {
        for test in tests.split('`').skip(1).step_by(2).filter(|test| test.starts_with("v_")) {
            let is_known = match test.strip_suffix('*') {
                Some(start) => names.iter().any(|name| name.starts_with(start)),
                None => names.contains(test),
            };
            if !is_known {
                missing.push(format!("{number}: {test}"));
            }
        }
    }
    assert!(missing.is_empty(), "{THREATS}: there is no such test:\n{}", missing.join("\n"));
}

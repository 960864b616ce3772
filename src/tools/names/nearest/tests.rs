use std::cell::Cell;

use super::*;

#[test]
fn nearest_names() {
    let names = ["read_file", "write_file", "list_directory", "search"];
    let check = |wrong: &str, expected: &[&str]| {
        let budget = SuggestionBudget::of_message();
        assert_eq!(nearest(wrong, names.iter().copied(), &budget), expected, "{wrong}");
    };
    check("readFile", &["read_file"]);
    check("reed_file", &["read_file"]);
    check("searchFiles", &["search"]);
    check("zzz", &[]);
    check(&"x".repeat(10_000_000), &[]);
}

#[test]
fn suggestions_say_what_there_is() {
    let check = |names: &[&str], expected: &str| {
        let budget = SuggestionBudget::of_message();
        let suggestion = suggestion("zzz", ("servers", SEARCH), names.iter().copied(), &budget);
        assert!(suggestion.contains(expected), "{suggestion}");
    };
    check(&[], "; there are no servers");
    check(&["fs", "git"], "; the servers are `fs`, `git`");
    check(&["tool"; 20], "; there are 20 servers, `search_tools` finds the right one");
}

/// What is skipped because of its letters would not have been suggested.
#[test]
fn letters_rule_out_only_what_is_not_similar() {
    let names = [
        "read_file",
        "readFiles",
        "raed_file",
        "file_read",
        "write_file",
        "list",
        "listen",
        "silent",
        "tinsel",
        "create_pull_request",
        "create_pull_requests",
        "pull_request_create",
        "größe_ändern",
        "grosse_aendern",
        "İ",
        "i",
        "搜索",
        "搜",
        "",
        "___",
        "a",
        "ab",
        "ba",
        "abc",
        "cab",
        "abcdefghijklmnop",
        "ponmlkjihgfedcba",
    ];
    for wrong in names {
        for candidate in names {
            let (own, other) = (Folded::new(wrong), Folded::new(candidate));
            let similarity = strsim::normalized_damerau_levenshtein(&own.text, &other.text);
            assert!(own.max_similarity(&other) >= similarity, "{wrong} {candidate}");
            let budget = SuggestionBudget::of_message();
            let expected = own.containment(&other).unwrap_or(similarity) >= MIN_SIMILARITY;
            let found = nearest(wrong, std::iter::once(candidate), &budget);
            assert_eq!(!found.is_empty(), expected, "{wrong} {candidate}");
        }
    }
}

/// Ten thousand names that consist of the same letters, so that nothing but the distance tells them apart.
fn hostile_names() -> Vec<String> {
    let letters: Vec<char> = ('a'..='z').chain('0'..='9').cycle().take(MAX_COMPARED).collect();
    let rotated = |by: usize| -> String {
        let mut letters = letters.clone();
        let length = letters.len();
        letters.rotate_left(by * 7 % length);
        letters.swap(by / length % length, by % length);
        letters.into_iter().collect()
    };
    (0..10_000).map(rotated).collect()
}

/// Threat 520.
#[test]
fn v_520_wrong_names_of_a_run_are_compared_within_a_budget() {
    let names = hostile_names();
    let budget = SuggestionBudget::of_run();
    let compared = Cell::new(0);
    for wrong in names.iter().take(500) {
        let names = names.iter().map(String::as_str).inspect(|_| compared.set(compared.get() + 1));
        nearest(&format!("{}x", &wrong[1..]), names, &budget);
    }
    assert_eq!(budget.left(), 0);
    // Each comparison takes more than 128² steps; later names look at one candidate each.
    assert!(compared.get() < STEPS_OF_RUN / (MAX_COMPARED * MAX_COMPARED) + 2 * 500, "{}", compared.get());
}

/// Threat 520.
#[test]
fn v_520_ordinary_wrong_names_have_suggestions_however_many_tools_there_are() {
    let subjects =
        ["issue", "comment", "branch", "release", "workflow", "discussion", "gist", "label", "team", "page"];
    let verbs =
        ["get", "list", "create", "update", "delete", "search", "close", "archive", "export", "import"];
    let names: Vec<String> = (0..10)
        .flat_map(|place| {
            verbs.iter().flat_map(move |verb| subjects.map(|subject| format!("{verb}_{subject}_{place}")))
        })
        .collect();
    let budget = SuggestionBudget::of_run();
    for wrong in names.iter().take(50) {
        let misspelt = format!("{}q", &wrong[..wrong.len() - 1]);
        let found = nearest(&misspelt, names.iter().map(String::as_str), &budget);
        assert!(!found.is_empty(), "{misspelt}, with {} steps left", budget.left());
    }
}

use super::*;

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, 100, |word| words.push(word.text.to_owned()));
    words
}

#[test]
fn words_end_where_a_reader_sees_their_end() {
    let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text}");
    check("", &[]);
    check(" -- _", &[]);
    check("read_file", &["read", "file"]);
    check("API-get.users/v1", &["api", "get", "users", "v1"]);
    check("listPRs", &["list", "prs"]);
    check("getURLsOfPage", &["get", "urls", "of", "page"]);
    check("HTTPServer", &["http", "server"]);
    check("getV2Users", &["get", "v2", "users"]);
    check("K8s", &["k8s"]);
    check("sha256sum", &["sha256sum"]);
    check("ÄrgerÜber", &["ärger", "über"]);
    check("file文件", &["file", "文", "文件", "件"]);
    check("文件 夹", &["文", "文件", "件", "夹"]);
}

#[test]
fn of_many_words_the_first_are_taken() {
    let mut count = 0;
    for_each_word(&"word ".repeat(1_000), 7, |_| count += 1);
    assert_eq!(count, 7);
    count = 0;
    for_each_word(&"文".repeat(1_000), 7, |_| count += 1);
    assert_eq!(count, 7);
    assert_eq!(words(&"x".repeat(1_000)), ["x".repeat(MAX_WORD)]);
    for word in words(&"İ".repeat(1_000)) {
        assert!(word.len() < MAX_WORD + 8, "{} bytes", word.len());
    }
}

#[test]
fn forms_of_a_word_have_one_stem() {
    let check = |forms: &[&str]| {
        let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
        assert!(stems.iter().all(|stem| *stem == stems[0]), "{forms:?}: {stems:?}");
    };
    check(&["create", "creates", "created", "creating", "creation"]);
    check(&["query", "queries", "queried"]);
    check(&["branch", "branches", "branching"]);
    check(&["run", "runs", "running"]);
    check(&["add", "adds", "added", "adding"]);
    check(&["call", "calls", "called", "calling"]);
    check(&["issue", "issues"]);
    check(&["database", "databases"]);
    check(&["deploy", "deploys", "deployment", "deployments"]);
    check(&["url", "urls"]);
    for same in ["string", "ping", "status", "analysis", "access", "is", "k8s", "für", "文件", "need", ""]
    {
        assert_eq!(stem(same), same);
    }
}

#[test]
fn one_edit_is_any_slip_of_one_key() {
    for (a, b, expected) in [
        ("issue", "issue", true),
        ("issue", "isue", true),
        ("issue", "issuee", true),
        ("issue", "izsue", true),
        ("issue", "isseu", true),
        ("issue", "sisue", true),
        ("issue", "izzue", false),
        ("issue", "is", false),
        ("issue", "eussi", false),
        ("", "a", true),
        ("文件", "文夹", false),
    ] {
        assert_eq!(one_edit_apart(a, b), expected, "{a} {b}");
        assert_eq!(one_edit_apart(b, a), expected, "{b} {a}");
    }
}

#[test]
fn stop_words_are_found() {
    assert!(STOP_WORDS.is_sorted());
    assert!(is_stop_word("the") && is_stop_word("tools") && !is_stop_word("file"));
}

#[test]
fn filler_words_are_found_and_no_search_terms() {
    assert!(FILLER_WORDS.is_sorted());
    assert!(is_filler_word("kindly") && !is_filler_word("file"));
    // What is computed, and which of several lines, pages or messages is meant.
    for word in ["mean", "first", "last", "latest"] {
        assert!(!is_filler_word(word), "{word}");
    }
    assert!(FILLER_WORDS.iter().all(|word| !is_stop_word(word)));
}

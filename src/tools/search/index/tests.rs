use std::time::{Duration, Instant};

use super::*;
use crate::tools::search::builder::{Builder, Document, MAX_NAME_WORDS, MAX_TEXT_WORDS};
use crate::tools::search::query::SYNONYMS;
use crate::tools::search::words::stem;

fn index(tools: &[(&str, &str, &str)]) -> SearchIndex {
    let mut builder = Builder::default();
    for (server, tool, description) in tools {
        let parameters = [("path".to_owned(), "Where it is".to_owned())];
        builder.add(&Document { server, tool, description, parameters: &parameters });
    }
    builder.finish()
}

fn files() -> SearchIndex {
    index(&[
        ("github", "list_issues", "List issues of a repository"),
        ("github", "createIssue", "Create a new issue in the GitHub repository"),
        ("fs", "read_file", "Read the complete contents of a file as text"),
        ("fs", "list_directory", "List files and directories"),
        ("weather", "forecast", "Weather for the next days. Does not read any file."),
        ("wiki", "搜索文件", "按名称搜索文件和文件夹"),
        ("browser", "take_screenshot", "Captures the page"),
    ])
}

#[test]
fn words_match_in_every_form_that_people_write() {
    let index = files();
    let check = |query: &str, expected: &[usize]| {
        let found = index.search(query, |_| true);
        assert!(found.starts_with(expected), "{query}: {found:?}");
    };
    check("read file", &[2]);
    check("LISTING ISSUES", &[0]);
    check("creating an issue", &[1, 0]);
    check("readFile", &[2]);
    check("readfile", &[2]);
    check("READ_FILE", &[2]);
    check("folder", &[3]);
    check("wether", &[4]);
    check("screen shot", &[6]);
    check("文件夹", &[5]);
    check("件", &[5]);
    for brand in ["github", "GitHub", "GITHUB"] {
        let mut found = index.search(brand, |_| true);
        found.sort_unstable();
        assert_eq!(found, [0, 1], "{brand}");
    }
}

#[test]
fn synonyms_are_stems_and_found() {
    for word in SYNONYMS.concat() {
        let is_stem = ["", "e"].iter().any(|ending| stem(&format!("{word}{ending}")) == word);
        assert!(is_stem, "{word}");
    }
    assert_eq!(files().search("ticket", |_| true).len(), 2);
}

/// PROMISES S0 14, 15.
#[test]
fn a_tool_that_matches_any_word_is_found_and_the_others_are_not() {
    let index = files();
    let mut found = index.search("weather screenshot", |_| true);
    found.sort_unstable();
    assert_eq!(found, [4, 6]);
    assert_eq!(index.search("weather qqqqqq", |_| true), [4]);
    assert!(index.search("qqqqqq", |_| true).is_empty());
    assert!(index.search("😀 qqqqqq", |_| true).is_empty());
}

#[test]
fn equal_matches_keep_their_order() {
    let tools: Vec<_> = (0..100).map(|_| ("s", "same", "Same text")).collect();
    assert_eq!(index(&tools).search("same text", |_| true), (0..100).collect::<Vec<_>>());
}

#[test]
fn stop_words_count_only_when_there_are_no_others() {
    let index = index(&[("s", "of_the_rings", ""), ("s", "weather", "")]);
    assert_eq!(index.search("the weather", |_| true), [1]);
    assert_eq!(index.search("of the", |_| true), [0]);
    assert!(index.search("please could you", |_| true).is_empty());
}

#[test]
fn what_is_not_accepted_is_not_found() {
    let index = files();
    assert_eq!(index.search("issues", |position| position != 0)[0], 1);
    assert_eq!(index.search("", |position| position % 2 == 0), [0, 2, 4, 6]);
}

/// THREATS 169.
#[test]
fn odd_queries_are_bounded() {
    let index = files();
    let all: Vec<usize> = (0..7).collect();
    for empty in ["", " ", "\n\t--", "\u{0}", "😀", "()*+?[]"] {
        assert_eq!(index.search(empty, |_| true), all, "{empty:?}");
    }
    // Wildcards and regular expressions have no special meaning.
    assert!(index.search("(qq*)*zz", |_| true).is_empty());
    let unknown: String = (0..1_000_000).map(|number| format!("zq{number}x ")).collect();
    let long = [
        "z".repeat(10_000_000),
        "é".repeat(5_000_000),
        "文".repeat(3_000_000),
        "İ".repeat(1_000_000),
        "a\u{301}".repeat(1_000_000),
        "read ".repeat(2_000_000),
        "aB".repeat(1_000_000),
        " ".repeat(10_000_000),
        unknown,
    ];
    for query in &long {
        let start = Instant::now();
        index.search(query, |_| true);
        assert!(
            start.elapsed() < Duration::from_millis(500),
            "{:?}…: {:?}",
            query.chars().next(),
            start.elapsed()
        );
    }
    // Words beyond the bound are ignored.
    let late = format!("weather {} screenshot", "x ".repeat(10_000));
    assert_eq!(index.search(&late, |_| true)[0], 4);
    let nothing = index_of_nothing();
    assert!(nothing.search("read", |_| true).is_empty());
    assert!(nothing.search("", |_| true).is_empty());
}

fn index_of_nothing() -> SearchIndex {
    index(&[])
}

#[test]
fn hostile_texts_are_bounded() {
    // All words are distinct, and there are far too many.
    let text = |seed: usize| -> String { (0..3_000).map(|number| format!("w{seed}x{number} ")).collect() };
    let mut builder = Builder::default();
    for document in 0..200 {
        let parameters: Vec<_> = (0..100).map(|number| (format!("p{number}"), text(document))).collect();
        let tool = format!("tool{document}");
        builder.add(&Document {
            server: "s",
            tool: &tool,
            description: &text(document),
            parameters: &parameters,
        });
    }
    let index = builder.finish();
    assert_eq!(index.search("tool199", |_| true)[0], 199);
    assert!(index.bytes() < 200 * 3 * MAX_TEXT_WORDS * 30, "{} bytes", index.bytes());
    assert!(index.postings.len() <= 200 * (3 * MAX_TEXT_WORDS + 2 * MAX_NAME_WORDS));
}

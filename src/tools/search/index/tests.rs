use super::*;
use crate::growth::assert_linear;
use crate::tools::search::builder::Builder;
use crate::tools::search::document::{Document, MAX_NAME_WORDS, MAX_TEXT_WORDS};
use crate::tools::search::query::SYNONYMS;
use crate::tools::search::words::stem;

fn index(tools: &[(&str, &str, &str)]) -> SearchIndex {
    let mut builder = Builder::default();
    for (server, tool, description) in tools {
        let parameters = [("path".to_owned(), "Where it is".to_owned())];
        let results = [("content".to_owned(), "What it says".to_owned())];
        let (parameters, results) = (&parameters, &results);
        builder.add(&Document { server, tool, shared: "", description, parameters, results });
    }
    builder.finish(Related::default())
}

fn search(index: &SearchIndex, query: &str, accept: impl Fn(usize) -> bool) -> Vec<usize> {
    index.search(query, usize::MAX, &Learned::default(), accept)
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
        let found = search(&index, query, |_| true);
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
        let mut found = search(&index, brand, |_| true);
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
    assert_eq!(search(&files(), "ticket", |_| true).len(), 2);
}

/// Promises 14 and 15 (docs/promises.md).
#[test]
fn a_tool_that_matches_any_word_is_found_and_the_others_are_not() {
    let index = files();
    let mut found = search(&index, "weather screenshot", |_| true);
    found.sort_unstable();
    assert_eq!(found, [4, 6]);
    assert_eq!(search(&index, "weather qqqqqq", |_| true), [4]);
    assert!(search(&index, "qqqqqq", |_| true).is_empty());
    assert!(search(&index, "😀 qqqqqq", |_| true).is_empty());
}

#[test]
fn equal_matches_keep_their_order() {
    let tools: Vec<_> = (0..100).map(|_| ("s", "same", "Same text")).collect();
    assert_eq!(search(&index(&tools), "same text", |_| true), (0..100).collect::<Vec<_>>());
}

#[test]
fn stop_words_count_only_when_there_are_no_others() {
    let index = index(&[("s", "of_the_rings", ""), ("s", "weather", "")]);
    assert_eq!(search(&index, "the weather", |_| true), [1]);
    assert_eq!(search(&index, "of the", |_| true), [0]);
    assert!(search(&index, "please could you", |_| true).is_empty());
}

#[test]
fn what_is_not_accepted_is_not_found() {
    let index = files();
    assert_eq!(search(&index, "issues", |position| position != 0)[0], 1);
    assert_eq!(search(&index, "", |position| position % 2 == 0), [0, 2, 4, 6]);
}

/// Threat 169.
#[test]
fn odd_queries_are_bounded() {
    let index = files();
    let all: Vec<usize> = (0..7).collect();
    for empty in ["", " ", "\n\t--", "\u{0}", "😀", "()*+?[]"] {
        assert_eq!(search(&index, empty, |_| true), all, "{empty:?}");
    }
    // Wildcards and regular expressions have no special meaning.
    assert!(search(&index, "(qq*)*zz", |_| true).is_empty());
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
        let first = |bytes: usize| &query[..query.floor_char_boundary(bytes)];
        let name: String = query.chars().take(5).collect();
        assert_linear(name, query.len() / 8, first, |query| search(&index, query, |_| true));
    }
    // Words beyond the bound are ignored.
    let late = format!("weather {} screenshot", "x ".repeat(10_000));
    assert_eq!(search(&index, &late, |_| true)[0], 4);
    let nothing = index_of_nothing();
    assert!(search(&nothing, "read", |_| true).is_empty());
    assert!(search(&nothing, "", |_| true).is_empty());
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
            shared: "",
            description: &text(document),
            parameters: &parameters,
            results: &[],
        });
    }
    let index = builder.finish(Related::default());
    assert_eq!(search(&index, "tool199", |_| true)[0], 199);
    assert!(index.bytes() < 200 * 3 * MAX_TEXT_WORDS * 30, "{} bytes", index.bytes());
    assert!(index.words.postings.len() <= 200 * (3 * MAX_TEXT_WORDS + 2 * MAX_NAME_WORDS));
}

#[test]
fn results_are_found_and_what_all_tools_share_counts_little() {
    let mut builder = Builder::default();
    let shared = "Part of the trading system for stocks. ";
    let results = [("volume".to_owned(), "Number of shares traded".to_owned())];
    for (tool, description, results) in
        [("trade", "Trade a share", &[][..]), ("quote", "A stock's price", &results[..]), ("logout", "", &[])]
    {
        builder.add(&Document { server: "s", tool, shared, description, parameters: &[], results });
    }
    let index = builder.finish(Related::default());
    assert_eq!(search(&index, "volume", |_| true), [1]);
    // What is the tool's own counts more.
    assert_eq!(search(&index, "stocks", |_| true)[0], 1);
    assert_eq!(search(&index, "trading stocks", |_| true).len(), 3);
}

#[test]
fn filler_words_and_quotations_count_in_short_queries_only() {
    let index = index(&[("s", "next_page", ""), ("s", "send_message", ""), ("s", "start_engine", "")]);
    assert_eq!(search(&index, "the next page", |_| true)[0], 0);
    assert_eq!(search(&index, "'start engine'", |_| true)[0], 2);
    let sentence = "As a next thing, could you kindly send John the message 'Start the engine!' for me?";
    assert_eq!(search(&index, sentence, |_| true), [1]);
    // An apostrophe begins no quotation, and one that does not end is none.
    let apostrophes =
        "I'd like John's car to be ready, don't you 'think so: send a message, it's about the car";
    assert_eq!(search(&index, apostrophes, |_| true), [1]);
}

/// A task: more than three words that count.
const TASK: &str = "Please book a flight to Paris, and then pay for the hotel there.";

fn travel(related: Related) -> SearchIndex {
    let mut builder = Builder::default();
    for (server, tool, description) in [
        ("shop", "pay", "Pay for what is in the basket"),
        ("travel", "login", "Begin a session"),
        ("travel", "book_flight", "Book a flight"),
        ("travel", "book_hotel", "Book a hotel"),
        ("travel", "pay", "Pay for what is in the basket"),
    ] {
        builder.add(&Document { server, tool, shared: "", description, parameters: &[], results: &[] });
    }
    builder.finish(related)
}

#[test]
fn a_task_prefers_the_servers_that_most_of_it_is_about() {
    let index = travel(Related::default());
    let found = search(&index, TASK, |_| true);
    let place = |position: usize| found.iter().position(|&found| found == position);
    assert!(place(4) < place(0), "{found:?}");
    // Not if it only names a tool.
    assert_eq!(search(&index, "pay", |_| true), [0, 4]);
}

#[test]
fn a_task_finds_the_tools_that_others_are_used_with() {
    assert!(!search(&travel(Related::default()), TASK, |_| true).contains(&1));
    let texts = [("travel", "login_first", ""), ("travel", "book_flight", "Needs login_first")];
    let documents = texts.map(|(server, tool, description)| Document {
        server,
        tool,
        shared: "",
        description,
        parameters: &[],
        results: &[],
    });
    // Of these, positions 1 and 2 of the index.
    let shop = Document { server: "shop", tool: "pay", ..documents[0] };
    let related = Related::new(&[shop, documents[0], documents[1]]);
    let index = travel(related);
    assert!(search(&index, TASK, |_| true).contains(&1));
    assert!(!search(&index, TASK, |position| position != 1).contains(&1));
    // A tool that may not be used leads to no other.
    assert!(!search(&index, TASK, |position| position != 2).contains(&1));
    assert!(!search(&index, "book flight", |_| true).contains(&1));
}

#[test]
fn a_task_finds_the_tools_that_earlier_runs_called_with_others() {
    let index = travel(Related::default());
    let mut learned = Learned::default();
    learned.together.insert(2, vec![(1, 0.9)]);
    let search = |query: &str| index.search(query, usize::MAX, &learned, |_| true);
    assert!(search(TASK).contains(&1));
    assert!(!search("book flight").contains(&1));
}

#[test]
fn a_tool_that_is_used_more_comes_first_among_equals() {
    let index = travel(Related::default());
    let learned = Learned { popularity: vec![(4, 1.0), (0, 0.2)], ..Learned::default() };
    assert_eq!(index.search("pay", 1, &learned, |_| true), [4]);
}

/// Words of a query times postings of their meanings.
#[test]
fn v_526_a_query_reads_so_many_postings() {
    let word = |length: usize| "a".repeat(length);
    let description: Vec<String> = (3..60).map(word).collect();
    let description = description.join(" ");
    let tools: Vec<(&str, &str, &str)> = vec![("s", "t", &*description); 5_000];
    let index = index(&tools);
    let wanted = wanted(&index.words.terms, &description).unwrap();
    let meant: usize =
        wanted.meanings.iter().flatten().map(|meaning| index.words.postings(meaning.term).len()).sum();
    assert!(meant > MAX_READ, "{meant}");
    // Words beyond the bound add nothing to a score.
    let scores = |meanings: &[Vec<Meaning>]| index.words.scores(meanings, tools.len());
    assert_eq!(scores(&[&*wanted.meanings, &*wanted.meanings].concat()), scores(&wanted.meanings));
    assert!(scores(&wanted.meanings)[0] > scores(&wanted.meanings[..1])[0]);
}

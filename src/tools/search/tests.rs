use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::tools::catalog::{Catalog, ResolvedTool};
use crate::tools::error::ToolError;
use crate::tools::native::{NativeTools, definition, erase};

/// The tools that match at least one word of `query`, best first. Ties keep their order. For a
/// query without words: all tools in order.
///
/// Builds an index for each call. Callers that search the same tools repeatedly keep a
/// [`SearchIndex`].
fn rank(tools: &[ResolvedTool], query: &str) -> Vec<ResolvedTool> {
    if query.trim_ascii().is_empty() {
        return tools.to_vec();
    }
    let index = build_index(tools.iter().map(|tool| IndexedTool {
        server: &tool.server,
        definition: tool.definition(),
        shared: 0,
    }));
    let found = index.search(query, usize::MAX, &Learned::default(), |_| true);
    found.into_iter().map(|position| tools[position].clone()).collect()
}

fn tools() -> Vec<ResolvedTool> {
    listed(&[
        ("github.list_issues", "List issues of a repository"),
        ("github.createIssue", "Create a new issue"),
        ("fs.read_file", "Read the complete contents of a file as text"),
        ("fs.list_directory", "List files and directories"),
        ("weather.forecast", "Weather for the next days. Does not read any file."),
    ])
}

fn listed(named: &[(&str, &str)]) -> Vec<ResolvedTool> {
    let mut tools = NativeTools::default();
    for (name, description) in named {
        let schema = json!({ "description": description, "properties": { "path": {} } });
        tools.add(name, definition(schema), erase(|value: Value| async move { Ok::<_, ToolError>(value) }));
    }
    let catalog = Catalog::new(&[Arc::new(tools)], &crate::tools::catalog::CatalogOptions::default());
    let deadline = Instant::now() + Duration::from_secs(60);
    futures::executor::block_on(catalog.search("", usize::MAX, false, |_| true, |_, _| true, deadline))
        .0
        .tools
}

#[test]
fn the_best_match_comes_first() {
    let tools = tools();
    let check = |query: &str, expected: &[&str]| {
        let names: Vec<String> = rank(&tools, query).iter().map(|tool| tool.tool.to_string()).collect();
        assert!(
            names.starts_with(&expected.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "{query}: {names:?}"
        );
    };
    check("read file", &["read_file"]);
    check("create issue", &["createIssue", "list_issues"]);
    check("LIST ISSUES", &["list_issues"]);
    check("weather", &["forecast"]);
    check("directories", &["list_directory"]);
    check("readFile", &["read_file"]);
}

/// Number 29 of docs/promises.md: 96 words and 16 KiB of a query are read.
#[test]
fn a_long_query_is_read_up_to_its_bounds() {
    let tools = tools();
    let finds_weather = |query: &str| rank(&tools, query).iter().any(|tool| &*tool.tool == "forecast");
    assert!(finds_weather(&format!("{}weather", "xqzzyx ".repeat(95))));
    assert!(!finds_weather(&format!("{}weather", "xqzzyx ".repeat(96))));
    assert!(finds_weather(&format!("{} weather", "x".repeat(16 * 1024 - " weather".len()))));
    assert!(!finds_weather(&format!("{} weather", "x".repeat(16 * 1024))));
}

#[test]
fn a_deprecated_tool_ranks_behind_what_replaces_it() {
    let text = "Reads the complete contents of a file as text";
    for (tools, query, expected) in [
        // The name of the deprecated one is what is asked for.
        (
            [
                ("fs.read_file", format!("{text}. DEPRECATED: Use read_text_file instead.")),
                ("fs.read_text_file", "Opens a path, and returns what is in it".to_owned()),
                ("fs.write_file", "Writes a file".to_owned()),
            ],
            "read file",
            ["read_text_file", "read_file"],
        ),
        // One between them is deprecated too.
        (
            [
                ("s.get_user", "Deprecated. Use get_user_v2.".to_owned()),
                ("s.get_user_v2", "Deprecated: use find_person".to_owned()),
                ("s.find_person", "Returns an account".to_owned()),
            ],
            "get user",
            ["find_person", "get_user"],
        ),
        // The description names none.
        (
            [
                ("fs.read_file", format!("[Deprecated] {text}")),
                ("fs.read_file_v2", text.to_owned()),
                ("fs.write_file", "Writes a file".to_owned()),
            ],
            "read file",
            ["read_file_v2", "read_file"],
        ),
    ] {
        let tools: Vec<(&str, &str)> = tools.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let found = rank(&listed(&tools), query);
        let names: Vec<&str> = found.iter().map(|tool| &*tool.tool).collect();
        assert_eq!(names[..2], expected, "{names:?}");
    }
}

#[test]
fn a_query_without_words_finds_all_and_an_unknown_word_nothing() {
    let tools = tools();
    assert_eq!(rank(&tools, "").len(), tools.len());
    assert_eq!(rank(&tools, " -- ").len(), tools.len());
    assert!(rank(&tools, "zzzzz").is_empty());
    assert!(rank(&[], "read").is_empty());
}

#[test]
fn properties_are_read_from_any_schema() {
    let check = |schema: Value, expected: &[(&str, &str)]| {
        let found = properties(&schema.to_string());
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(found, expected, "{schema}");
    };
    check(
        json!({ "type": "object", "properties": { "b": { "description": "B \"x\"" }, "a": {} } }),
        &[("a", ""), ("b", "B \"x\"")],
    );
    check(
        json!({ "properties": { "a": true, "b": { "description": 5 }, "c": [] } }),
        &[("a", ""), ("b", ""), ("c", "")],
    );
    for none in [json!({}), json!(true), json!([]), json!("x"), json!({ "properties": [] })] {
        check(none, &[]);
    }
    let many: serde_json::Map<_, _> = (0..1_000).map(|number| (format!("p{number}"), json!({}))).collect();
    assert_eq!(properties(&json!({ "properties": many }).to_string()).len(), MAX_PROPERTIES);
}

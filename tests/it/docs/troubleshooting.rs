//! Messages of `docs/troubleshooting.md`.

use std::fs;
use std::path::Path;

use super::{in_backticks, rows};
use crate::tidy::{files, root};

const PAGE: &str = "docs/troubleshooting.md";

/// A source as the text of its messages: inserted values are `…`, a string over several lines is one, and backticks are
/// removed, because the page cannot have them within its own.
fn messages(source: &str) -> String {
    let mut joined = String::with_capacity(source.len());
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        // Rust: `\` at the end continues the string without the blanks that follow.
        match line.strip_suffix('\\') {
            Some(start) if lines.peek().is_some() => {
                joined.push_str(start);
                let next = lines.next().unwrap_or_default();
                joined.push_str(next.trim_start().trim_end_matches('\\'));
            }
            _ => {
                joined.push_str(line);
                joined.push('\n');
            }
        }
    }
    let mut text = String::with_capacity(joined.len());
    let mut letters = joined.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '`' | '\\' => {}
            '$' if letters.peek() == Some(&'{') => {}
            // Rust: `{{` is a bracket.
            '{' if letters.next_if_eq(&'{').is_some() => text.push('{'),
            '{' => {
                let mut inside = String::new();
                while let Some(next) = letters.next_if(|next| !matches!(next, '}' | '{' | '\n' | '"')) {
                    inside.push(next);
                }
                if letters.next_if_eq(&'}').is_some() && inside.len() < 60 {
                    text.push('…');
                } else {
                    text.push_str(&inside);
                }
            }
            _ => text.push(letter),
        }
    }
    // `{server}.{tool}` is one name to a reader.
    text.replace("….…", "…")
}

/// The texts of everything that prints messages.
fn sources() -> Vec<String> {
    let mut paths = files("src", ".rs");
    paths.retain(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs"));
    paths.extend(files("js", ".js"));
    paths.extend(files("python-wasm/guest", ".py"));
    paths.iter().map(|path| messages(&fs::read_to_string(root().join(path)).unwrap())).collect()
}

/// A message of the page must be found as a whole, from its first word to its last, except for the parts that `…` at
/// its ends omits.
#[test]
fn every_message_is_one_that_the_code_prints() {
    let sources = sources();
    let mut checked = 0;
    for row in rows(Path::new(PAGE)) {
        for message in in_backticks(&row[0]) {
            let message = message.trim_matches(['…', ' ']);
            let found = sources.iter().any(|source| source.contains(message));
            assert!(found, "{PAGE}: no code prints `{message}`");
            assert!(message.len() > 8, "{PAGE}: `{message}` is in any text");
            checked += 1;
        }
    }
    assert!(checked >= 35, "{checked} messages");
}

#[test]
fn a_message_that_no_code_prints_is_noticed() {
    let source = "format!(\"server `{}` has \\\n            {count} calls: {{x}}\", name)";
    assert!(messages(source).contains("server … has … calls: {x}}"), "{}", messages(source));
    assert!(!sources().iter().any(|source| source.contains("no message of cx reads like this")));
}

//! The length of documents and of their lines.

use std::path::{Path, PathBuf};

use super::{pages, prose, read};

/// Maximum columns of a line.
const MAX_COLUMNS: usize = 120;

/// Generated from the schema: a paragraph is one line.
const GENERATED: &str = "docs/config-keys.md";

#[test]
fn the_front_pages_are_short() {
    for (page, max) in [("README.md", 130), ("ARCHITECTURE.md", 200)] {
        let lines = read(Path::new(page)).lines().count();
        assert!(lines <= max, "{page}: {lines} lines, at most {max} are agreed");
    }
}

/// The reason for a decision is read before it is questioned again, so it must not take longer than that.
#[test]
fn decisions_are_short() {
    let is_decision = |page: &PathBuf| page.starts_with("docs/decisions") && !page.ends_with("README.md");
    let decisions: Vec<PathBuf> = pages().into_iter().filter(is_decision).collect();
    assert!(decisions.len() > 20, "{decisions:?}");
    for page in decisions {
        let lines = read(&page).lines().count();
        assert!(lines <= 25, "{}: {lines} lines, at most 25 are agreed", page.display());
    }
}

/// Rows of tables and lines with addresses cannot be broken.
#[test]
fn lines_of_prose_are_not_too_wide() {
    let mut wide = Vec::new();
    for page in pages() {
        if page == Path::new(GENERATED) {
            continue;
        }
        for (number, line) in prose(&page) {
            let is_breakable = !line.trim_start().starts_with('|') && !line.contains("://");
            if is_breakable && line.chars().count() > MAX_COLUMNS {
                wide.push(format!("{}:{number}", page.display()));
            }
        }
    }
    assert!(wide.is_empty(), "more than {MAX_COLUMNS} columns:\n{}", wide.join("\n"));
    let diagram = read(Path::new("ARCHITECTURE.md"));
    let widest = diagram.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(MAX_COLUMNS), "ARCHITECTURE.md: {widest:?} columns");
}

//! The documents of the repository: their links, their tables, and the code in them.

/// Every code block runs, or is at least checked.
mod blocks;
/// Commands run as a user would type them.
mod commands;
/// The front pages are short, and lines are not too wide.
mod form;
/// Links lead to a file and a heading that exist.
mod links;
/// Promises that are figures: of times, memory and coverage.
mod promises;
/// `examples/recipes` runs against third-party servers.
mod recipes;
/// Names, keys, limits and codes in tables are those of the code.
mod reference;
/// Messages that a page quotes are messages that the code prints.
mod troubleshooting;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::tidy::{files, root};

/// The pages of the book and the documents at the root: what users read.
fn pages() -> Vec<PathBuf> {
    let mut pages = files("docs", ".md");
    let top = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];
    pages.extend(top.map(PathBuf::from));
    pages.push(PathBuf::from("examples/README.md"));
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A fenced code block.
pub(crate) struct Block {
    /// The page and the line of the fence, for messages.
    location: String,
    /// The line of the fence, from 1.
    line: usize,
    /// What the fence says: `ts,check`. Empty for plain text.
    info: String,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn language(&self) -> &str {
        self.info.split(',').next().unwrap_or_default()
    }

    fn has(&self, attribute: &str) -> bool {
        self.info.split(',').skip(1).any(|found| found == attribute)
    }
}

/// The code blocks of a page, in order, also those in lists.
pub(crate) fn blocks(path: &Path) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in read(path).lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(info)) => {
                let location = format!("{}:{}", path.display(), index + 1);
                open = Some(Block { location, line: index + 1, info: info.to_owned(), text: String::new() });
            }
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a code block has no end", path.display());
    blocks
}

/// Compares a page with the text that a test makes from the code. With `CX_WRITE_DOCS=1` the page is written instead.
#[track_caller]
fn check_page(page: &str, expected: &str, what: &str) {
    if env::var_os("CX_WRITE_DOCS").is_some() {
        fs::write(root().join(page), expected).unwrap();
    }
    let is_same = read(Path::new(page)) == expected;
    assert!(is_same, "{page}: not {what}; `CX_WRITE_DOCS=1 cargo test --test it docs::` writes it");
}

/// As [`check_page`], of the text of one code block.
#[track_caller]
fn check_block(page: &str, block: &Block, expected: &str, what: &str) {
    let old = read(Path::new(page));
    let mut new: Vec<&str> = old.lines().collect();
    let start = block.line;
    new.splice(start..start + block.text.lines().count(), expected.trim_end().lines());
    check_page(page, &format!("{}\n", new.join("\n")), &format!("{what}, in line {start}"));
}

/// The lines of a page outside of code blocks.
fn prose(path: &Path) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut is_code = false;
    for (index, line) in read(path).lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((index + 1, line.to_owned()));
        }
    }
    lines
}

/// The texts in backticks of a line.
fn in_backticks(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The rows of the tables of a page, as cells; without headings. A `\|` is part of its cell.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let lines = prose(path);
    let mut rows = Vec::new();
    for pair in lines.windows(2) {
        let (line, next) = (&pair[1].1, &pair[0].1);
        let is_rule = line.starts_with("|--") || line.starts_with("| --");
        if line.starts_with('|') && !is_rule && next.starts_with('|') {
            let hidden = line.trim().trim_matches('|').replace("\\|", "\0");
            rows.push(hidden.split('|').map(|cell| cell.trim().replace('\0', "|")).collect());
        }
    }
    rows
}

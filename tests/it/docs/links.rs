//! Links of documents, and the list of pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{pages, prose, read};
use crate::tidy::{files, root};

/// Every document that the book has, relative to the root.
fn in_the_book() -> BTreeSet<PathBuf> {
    let summary = Path::new("docs/SUMMARY.md");
    let links = prose(summary).into_iter().flat_map(|(_, line)| targets(&line));
    links.map(|link| resolve(summary, &link)).collect()
}

/// The addresses of the links and images of a line, without those in backticks.
fn targets(line: &str) -> Vec<String> {
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let mut found: Vec<String> =
        text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect();
    found.extend(text.split("src=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    found
}

/// A path that a page names, relative to the root.
fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap().to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{}: {link} leaves the repository", page.display()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// The ids that a page's headings get, by the rule that hosts of repositories and mdBook share: lower case, blanks to
/// `-`, no punctuation, and a number for those that come again.
fn headings(path: &Path) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for (_, line) in prose(path) {
        let text = line.trim_start_matches('#');
        if text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let kept = text.trim().chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ if letter.is_alphanumeric() => Some(letter),
            _ => None,
        });
        let id: String = kept.flat_map(char::to_lowercase).collect();
        let count = seen.entry(id.clone()).or_insert(0);
        ids.insert(if *count == 0 { id } else { format!("{id}-{count}") });
        *count += 1;
    }
    ids
}

/// mdBook checks nothing, and the book's own check runs where mdBook is.
#[test]
fn every_link_leads_somewhere() {
    let book = in_the_book();
    let mut checked = 0;
    let mut problems = Vec::new();
    for page in pages().into_iter().chain(book.clone()).collect::<BTreeSet<_>>() {
        for (line, text) in prose(&page) {
            for link in targets(&text) {
                if link.contains("://") || link.starts_with("mailto:") || link.starts_with("<") {
                    continue;
                }
                checked += 1;
                let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
                let target = if file.is_empty() { page.clone() } else { resolve(&page, file) };
                let at = format!("{}:{line}: {link}", page.display());
                if !root().join(&target).exists() {
                    problems.push(format!("{at}: there is no such file"));
                } else if target.extension().is_some_and(|ending| ending == "md") {
                    if !anchor.is_empty() && !headings(&target).contains(anchor) {
                        problems.push(format!("{at}: {} has no such heading", target.display()));
                    }
                    if book.contains(&page) && !book.contains(&target) {
                        problems.push(format!("{at}: docs/SUMMARY.md has no {}", target.display()));
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(checked > 300, "{checked} links");
}

#[test]
fn every_page_is_in_the_book() {
    let book = in_the_book();
    for page in files("docs", ".md") {
        let is_listed = book.contains(&page) || page.ends_with("SUMMARY.md");
        assert!(is_listed, "docs/SUMMARY.md does not list {}", page.display());
    }
    for page in book {
        assert!(fs::metadata(root().join(&page)).is_ok(), "docs/SUMMARY.md lists {}", page.display());
    }
}

/// A page loads nothing from elsewhere, so that it can be read without a network. Links may lead there.
#[test]
fn no_page_loads_an_external_image() {
    for page in in_the_book() {
        let text = read(&page);
        for sign in ["](http", "src=\"http"] {
            for part in text.split(sign).skip(1) {
                let before = &text[..part.as_ptr() as usize - text.as_ptr() as usize];
                let start = before.rfind('[').unwrap_or(0);
                let is_picture = sign.starts_with("src") || before[..start].ends_with('!');
                assert!(!is_picture, "{} shows http{}", page.display(), part.lines().next().unwrap_or(""));
            }
        }
    }
}

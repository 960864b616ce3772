//! Turns parser errors into messages for the script's author.

use swc_ecma_parser::error::SyntaxError;

/// Returns the message: a lowercase fragment without a full stop.
pub(super) fn plain(kind: &SyntaxError) -> String {
    match kind {
        SyntaxError::Eof => "unexpected end of the source".to_owned(),
        SyntaxError::ExpectedSemi | SyntaxError::ExpectedSemiForExprStmt { .. } => {
            "expected `;` or a line break".to_owned()
        }
        SyntaxError::ReturnNotAllowed => "`return` is not allowed here".to_owned(),
        SyntaxError::AwaitInFunction => "`await` is not allowed in a function that is not async".to_owned(),
        SyntaxError::Unexpected { got, expected } => {
            format!("unexpected {}, expected {}", token(got), lower(expected))
        }
        SyntaxError::Expected(wanted, got) => {
            format!("expected {}, found {}", token(&format!("{wanted:?}")), token(got))
        }
        SyntaxError::WithLabel { inner, .. } => plain(inner.kind()),
        other => lower(&other.msg()).replace("<eof>", "end of the source"),
    }
}

fn token(text: &str) -> String {
    match text.trim_matches(['\'', '`']) {
        "<eof>" | "eof" | "EOF" => "end of the source".to_owned(),
        name => format!("`{name}`"),
    }
}

/// Lowercases the first letter, and removes the full stop and all lines after the first.
fn lower(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim_end_matches('.');
    let mut letters = line.chars();
    let shouts = letters.clone().nth(1).is_some_and(char::is_uppercase);
    match letters.next() {
        Some(letter) if !shouts => letter.to_lowercase().chain(letters).collect(),
        _ => line.to_owned(),
    }
}

/// Returns what the author can do about the error, if that is known. `is_python` is what [`looks_like_python`] says
/// of the source, which can have thousands of errors.
pub(super) fn hint(is_python: bool, kind: &SyntaxError) -> Option<String> {
    if is_python {
        return Some("this looks like Python: run it as Python, or write TypeScript".to_owned());
    }
    match kind {
        SyntaxError::AwaitInFunction => Some("make the function `async`".to_owned()),
        SyntaxError::Eof => Some("close every bracket, string and template".to_owned()),
        SyntaxError::ReturnNotAllowed => {
            Some("`return` is for functions and for the top level of a script".to_owned())
        }
        SyntaxError::WithLabel { inner, .. } => hint(is_python, inner.kind()),
        _ => None,
    }
}

/// Returns whether some line can only be Python. Called only for text that is not TypeScript.
pub(super) fn looks_like_python(source: &str) -> bool {
    source.lines().any(|line| {
        let line = line.trim();
        let block = line.ends_with(':');
        block
            && ["def ", "async def ", "elif ", "class ", "for ", "with ", "while "]
                .iter()
                .any(|word| line.starts_with(word))
            || line.starts_with("from ") && line.contains(" import ")
            || line.strip_prefix("import ").is_some_and(is_python_import)
    })
}

/// Whether an `import` names modules as only Python does: `os`, `os.path as p, json`.
fn is_python_import(names: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | ',' | ' ');
    // The rest of `import React, { useState }` and `import a from` may be in the next line.
    !names.ends_with([',', '.']) && !names.ends_with(" from") && names.chars().all(is_of_name)
}

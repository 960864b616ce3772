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
            format!("unexpected {}, expected {}", token(got).trim_start_matches("a "), lower(expected))
        }
        SyntaxError::Expected(wanted, got) => {
            format!("expected {}, found {}", token(&format!("{wanted:?}")), token(got))
        }
        SyntaxError::WithLabel { inner, .. } => plain(inner.kind()),
        other => lower(&other.msg()).replace("<eof>", "end of the source"),
    }
}

fn token(text: &str) -> String {
    match text.trim_matches(['\'', '`', '"']) {
        "<eof>" | "eof" | "EOF" => "end of the source".to_owned(),
        "ident" | "identifier" => "a name".to_owned(),
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

/// Returns what the author can do about the error, if that is known. `foreign` is what [`foreign`] says of the source,
/// which can have thousands of errors.
pub(super) fn hint(foreign: Option<&str>, kind: &SyntaxError) -> Option<String> {
    // Text that looks like JSX may be in a template.
    if let Some(hint) = foreign
        && !(hint == JSX && knows_what_to_do(kind))
    {
        return Some(hint.to_owned());
    }
    match kind {
        SyntaxError::AwaitInFunction => Some("make the function `async`".to_owned()),
        SyntaxError::Eof => Some("close every bracket, string and template".to_owned()),
        SyntaxError::ReturnNotAllowed => {
            Some("`return` is for functions and for the top level of a script".to_owned())
        }
        SyntaxError::WithLabel { inner, .. } => hint(foreign, inner.kind()),
        _ => None,
    }
}

/// Whether the parser knows what is wrong, whatever the rest of the source looks like.
fn knows_what_to_do(kind: &SyntaxError) -> bool {
    match kind {
        SyntaxError::AwaitInFunction | SyntaxError::ReturnNotAllowed => true,
        SyntaxError::WithLabel { inner, .. } => knows_what_to_do(inner.kind()),
        _ => false,
    }
}

const JSX: &str =
    "JSX is not available: build the text with templates, as in `<b>${name}</b>` between backticks";

/// What to do about a source that is in another language. Called only for text that is not TypeScript.
pub(super) fn foreign(source: &str) -> Option<&'static str> {
    if looks_like_python(source) {
        Some("this looks like Python: run it as Python, or write TypeScript")
    } else if looks_like_jsx(source) {
        Some(JSX)
    } else {
        None
    }
}

/// Whether a tag of JSX begins outside of templates, where an expression begins, and some tag is closed.
fn looks_like_jsx(source: &str) -> bool {
    let is_closed = source.contains("</") || source.contains("/>");
    let mut is_template = false;
    is_closed
        && source.lines().any(|line| {
            line.char_indices().any(|(at, letter)| match letter {
                '`' => {
                    is_template ^= !line[..at].ends_with('\\');
                    false
                }
                '<' => !is_template && is_tag(&line[..at], &line[at + 1..]),
                _ => false,
            })
        })
}

/// Whether a tag of JSX begins between these parts of a line.
fn is_tag(before: &str, after: &str) -> bool {
    let before = before.trim_end();
    let is_expression = before.is_empty()
        || before.ends_with(['(', '=', '?', ':', '&', '|', ',', '['])
        || before.ends_with("=>")
        || before.ends_with("return");
    is_expression && after.starts_with(|next: char| next.is_ascii_alphabetic() || next == '>')
}

/// Whether some line can only be Python.
fn looks_like_python(source: &str) -> bool {
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

/// Whether an `import` names modules as only Python does: `os`, `os.path as p, json`. The rest of `import a from` may be
/// in the next line.
fn is_python_import(names: &str) -> bool {
    names.split(',').all(|part| match part.split_whitespace().collect::<Vec<_>>().as_slice() {
        [module] => is_module(module),
        [module, "as", name] => is_module(module) && is_module(name),
        _ => false,
    })
}

/// Whether a word is the name of a module, as in `os.path`.
fn is_module(word: &str) -> bool {
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|letter| letter == '_' || letter.is_alphanumeric());
    word.split('.').all(is_name)
}

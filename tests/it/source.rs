//! Reads the product's source: its files, and the paths that the code of each names.
//!
//! It reads tokens and builds no syntax tree. That is enough for paths, because a path looks the same everywhere, and
//! it needs no parser that has to know each new form of the language.

/// The graph of modules.
mod arrows;
/// Tests of the reader.
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

pub(crate) use self::arrows::{cycles, graph};
use crate::tidy::{files, root};

/// One file of a crate, as a module.
pub(crate) struct Module {
    /// The file, relative to the root of the repository.
    pub(crate) file: String,
    /// The path of the module below the root of its crate: `["mcp", "pool"]`.
    pub(crate) path: Vec<String>,
    pub(crate) names: Names,
}

/// What the code of a file names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Paths in the file's own crate, from its root.
    pub(crate) own: Vec<Vec<String>>,
    /// The first names of all other paths: crates, and types and modules of this file's imports from them.
    pub(crate) others: BTreeSet<String>,
    /// The targets of names that are imported from the file's own crate, as paths from its root.
    pub(crate) own_imports: BTreeMap<String, Vec<String>>,
    /// The crates that other imported names come from.
    pub(crate) other_imports: BTreeMap<String, String>,
}

/// The modules of the crate whose root is in `directory`, without its tests and without `roots`.
pub(crate) fn modules(directory: &str, roots: &[&str]) -> Vec<Module> {
    let mut found = Vec::new();
    for file in files(directory, ".rs") {
        let below = file.strip_prefix(directory).unwrap();
        // The command is a separate crate.
        let is_other_crate = below.starts_with("bin");
        if is_other_crate || is_test(directory, below) || roots.iter().any(|root| below == Path::new(root)) {
            continue;
        }
        let parts = below.with_extension("");
        let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
        let path: Vec<String> = parts.filter(|part| part != "mod" && part != "main").collect();
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let names = names(&text, &path);
        found.push(Module { file: file.to_string_lossy().into_owned(), path, names });
    }
    found
}

/// Whether a file is compiled for tests only: it, or a module around it, is declared under
/// `#[cfg(test)]`.
fn is_test(directory: &str, below: &Path) -> bool {
    let path = below.with_extension("");
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    (0..parts.len()).any(|last| {
        let around = parts[..last].join("/");
        let parents = match last {
            0 => ["lib.rs".to_owned(), "main.rs".to_owned()],
            _ => [format!("{around}.rs"), format!("{around}/mod.rs")],
        };
        let mut texts =
            parents.iter().filter_map(|parent| fs::read_to_string(root().join(directory).join(parent)).ok());
        texts.any(|text| declares_for_tests(&text, &parts[last]))
    })
}

/// Whether the module `name` is declared here, under `#[cfg(test)]`.
fn declares_for_tests(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declaration = format!("mod {name};");
    let is_declaration = |line: &str| line == declaration || line.ends_with(&format!(" {declaration}"));
    lines.iter().enumerate().filter(|(_, line)| is_declaration(line)).any(|(number, _)| {
        lines[..number]
            .iter()
            .rev()
            .take_while(|line| line.starts_with("#["))
            .any(|line| *line == "#[cfg(test)]")
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// The separator `::`.
    Separator,
    Sign(char),
}

impl Token {
    pub(crate) fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Separator | Self::Sign(_) => None,
        }
    }
}

/// What the code of the module at `path` names, without code that is compiled for tests only.
pub(crate) fn names(text: &str, path: &[String]) -> Names {
    let tokens = product_tokens(text);
    let mut reader = Reader {
        tokens: &tokens,
        children: BTreeSet::new(),
        aliases: BTreeMap::new(),
        names: Names::default(),
    };
    // An import may come after the use of its name.
    reader.walk(path, Pass::Declarations);
    reader.names = Names::default();
    reader.walk(path, Pass::Paths);
    Names { own_imports: reader.aliases, ..reader.names }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Declarations,
    Paths,
}

struct Reader<'a> {
    tokens: &'a [Token],
    /// The modules that are declared here, from the root of the crate.
    children: BTreeSet<Vec<String>>,
    /// The targets of imported names, from the root of the crate.
    aliases: BTreeMap<String, Vec<String>>,
    names: Names,
}

impl<'a> Reader<'a> {
    fn at(&self, index: usize) -> Option<&'a Token> {
        self.tokens.get(index)
    }

    fn word(&self, index: usize) -> Option<&'a str> {
        self.at(index)?.word()
    }

    fn is(&self, index: usize, sign: char) -> bool {
        self.at(index).is_some_and(|token| token.is(sign))
    }

    fn is_separator(&self, index: usize) -> bool {
        self.at(index) == Some(&Token::Separator)
    }

    fn walk(&mut self, path: &[String], pass: Pass) {
        let mut module = path.to_vec();
        // Where the modules in this file end: the number of brackets that were open when each began.
        let mut inline = Vec::new();
        let mut depth = 0_usize;
        let mut index = 0;
        while let Some(token) = self.at(index) {
            match token {
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => {
                    depth = depth.saturating_sub(1);
                    if inline.last() == Some(&depth) {
                        inline.pop();
                        module.pop();
                    }
                }
                Token::Word(word) if word == "pub" && self.is(index + 1, '(') => {
                    index = end_of_bracket(self.tokens, index + 1);
                    continue;
                }
                Token::Word(word) if word == "mod" && self.is(index + 2, ';') => {
                    self.children.extend(self.word(index + 1).map(|name| join(&module, &[name.to_owned()])));
                    index += 3;
                    continue;
                }
                Token::Word(word) if word == "mod" && self.is(index + 2, '{') => {
                    let name = self.word(index + 1).unwrap_or_default().to_owned();
                    module.push(name);
                    self.children.insert(module.clone());
                    inline.push(depth);
                    depth += 1;
                    index += 3;
                    continue;
                }
                Token::Word(word) if word == "use" && !self.is(index + 1, '<') => {
                    index = self.import(index + 1, &module, &[], pass);
                    continue;
                }
                Token::Word(_) => {
                    let is_start = self.is_start(index);
                    let (segments, end) = self.segments(index);
                    // One word alone is a name of this file, or a keyword.
                    if is_start && pass == Pass::Paths && segments.len() > 1 {
                        self.add(&segments, &module);
                    }
                    index = end;
                    continue;
                }
                Token::Separator | Token::Sign(_) => {}
            }
            index += 1;
        }
    }

    /// Whether a path begins at this word: not at a method or a field, and not at a continuation after `>::`.
    fn is_start(&self, index: usize) -> bool {
        let before = |count: usize| index.checked_sub(count).and_then(|index| self.at(index));
        match before(1) {
            Some(Token::Sign('.')) => before(2) == Some(&Token::Sign('.')),
            Some(Token::Separator) => !matches!(before(2), Some(Token::Word(_) | Token::Sign('>'))),
            _ => true,
        }
    }

    /// The words of a path from `index` on, and where it ends.
    fn segments(&self, mut index: usize) -> (Vec<String>, usize) {
        let mut segments = Vec::new();
        while let Some(word) = self.word(index) {
            segments.push(word.to_owned());
            index += 1;
            if !(self.is_separator(index) && self.word(index + 1).is_some()) {
                break;
            }
            index += 1;
        }
        (segments, index)
    }

    /// Reads one tree of a `use` after the segments `prefix`. Returns where it ends.
    fn import(&mut self, index: usize, module: &[String], prefix: &[String], pass: Pass) -> usize {
        let start = if self.is_separator(index) { index + 1 } else { index };
        let (segments, mut end) = self.segments(start);
        let path = join(prefix, &segments);
        if self.is_separator(end) {
            end += 1;
        }
        if self.is(end, '{') {
            let close = end_of_bracket(self.tokens, end);
            end += 1;
            while end + 1 < close {
                end = self.import(end, module, &path, pass);
                if self.is(end, ',') {
                    end += 1;
                }
            }
            return close;
        }
        let mut name = path.iter().rev().find(|word| *word != "self").cloned();
        if self.is(end, '*') {
            end += 1;
            name = None;
        } else if self.word(end) == Some("as") {
            name = self.word(end + 1).map(str::to_owned);
            end += 2;
        }
        let inside = self.resolve(&path, module);
        match pass {
            Pass::Declarations => {
                if let (Some(name), Some(inside)) = (name, inside) {
                    self.aliases.insert(name, inside);
                }
            }
            Pass::Paths => {
                if let (Some(name), None) = (name, inside) {
                    self.names.other_imports.extend(path.first().map(|origin| (name, origin.clone())));
                }
                self.add(&path, module);
            }
        }
        // Without this, a token that belongs to no tree would be read for ever.
        end.max(index + 1)
    }

    fn add(&mut self, segments: &[String], module: &[String]) {
        match self.resolve(segments, module) {
            Some(path) => self.names.own.push(path),
            None => self.names.others.extend(segments.first().cloned()),
        }
    }

    /// The path from the root of the crate, if it is one of this crate.
    fn resolve(&self, segments: &[String], module: &[String]) -> Option<Vec<String>> {
        let (first, rest) = segments.split_first()?;
        let mut path = match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => join(module, rest),
            "super" => {
                let above = segments.iter().take_while(|word| *word == "super").count();
                join(&module[..module.len().checked_sub(above)?], &segments[above..])
            }
            _ if self.children.contains(&join(module, &segments[..1])) => join(module, segments),
            name => join(self.aliases.get(name)?, rest),
        };
        path.retain(|word| word != "self");
        Some(path)
    }
}

fn join(one: &[String], other: &[String]) -> Vec<String> {
    [one, other].concat()
}

/// The index after the bracket that closes the one at `open`.
pub(crate) fn end_of_bracket(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The tokens of a file's code, without code that is compiled for tests only.
pub(crate) fn product_tokens(text: &str) -> Vec<Token> {
    without_tests(&tokens(text))
}

/// Removes the items that an attribute marks as compiled for tests only, and the `#` of other attributes.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let bracket = index + 1 + usize::from(tokens.get(index + 1).is_some_and(|next| next.is('!')));
        if !(token.is('#') && tokens.get(bracket).is_some_and(|next| next.is('['))) {
            kept.push(token.clone());
            index += 1;
            continue;
        }
        let end = end_of_bracket(tokens, bracket);
        let is_outer = bracket == index + 1;
        index = if is_outer && is_for_tests(&tokens[bracket..end]) {
            end_of_item(tokens, end)
        } else {
            // Attributes name libraries: `#[tokio::main]`. Conditions have no paths.
            kept.extend_from_slice(&tokens[bracket..end]);
            end
        };
    }
    kept
}

/// Whether an attribute is `cfg(test)`, `cfg(all(test, …))` or `cfg(any(test, fuzzing))`.
fn is_for_tests(attribute: &[Token]) -> bool {
    let words: Vec<&str> = attribute.iter().filter_map(Token::word).collect();
    match words.split_first() {
        Some((&"cfg", words)) => {
            let is_any = words.first() == Some(&"any");
            words.contains(&"test")
                && !words.contains(&"not")
                && (!is_any || words.iter().all(|word| ["any", "test", "fuzzing"].contains(word)))
        }
        _ => false,
    }
}

/// The index after the item at `start`, which may have more attributes.
fn end_of_item(tokens: &[Token], start: usize) -> usize {
    let mut index = start;
    while tokens.get(index).is_some_and(|token| token.is('#')) {
        index = end_of_bracket(tokens, index + 1);
    }
    if tokens.get(index).and_then(Token::word) == Some("pub") {
        index += 1;
        if tokens.get(index).is_some_and(|token| token.is('(')) {
            index = end_of_bracket(tokens, index);
        }
    }
    let first = tokens.get(index).and_then(Token::word);
    let is_statement = first.is_some_and(|word| ["use", "let", "const", "static", "type"].contains(&word));
    let items = ["fn", "async", "unsafe", "extern", "mod", "impl", "struct", "enum", "trait", "macro_rules"];
    // Otherwise it is a field, a variant or an arm.
    let is_item = is_statement || first.is_some_and(|word| items.contains(&word));
    while let Some(token) = tokens.get(index) {
        match token {
            Token::Sign(';') => return index + 1,
            Token::Sign(',') if !is_item => return index + 1,
            Token::Sign(')' | ']' | '}') => return index,
            Token::Sign('{') if !is_statement => return end_of_bracket(tokens, index),
            Token::Sign('(' | '[' | '{') => index = end_of_bracket(tokens, index),
            _ => index += 1,
        }
    }
    index
}

/// The tokens of a text, without comments, literals and lifetimes.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = after_literal(rest) {
            rest = after;
        } else if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = after_comment(rest);
        } else if let Some(after) = rest.strip_prefix("::") {
            tokens.push(Token::Separator);
            rest = after;
        } else if is_of_a_word(first) {
            let end = rest.find(|letter| !is_of_a_word(letter)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    tokens
}

fn is_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The text after a comment `/* … */`, which may have nested ones.
fn after_comment(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, _) in text.char_indices() {
        if text[at..].starts_with("/*") {
            depth += 1;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            if depth == 0 {
                return &text[at + 2..];
            }
        }
    }
    ""
}

/// The text after a string, a character or a lifetime at the beginning of `text`.
fn after_literal(text: &str) -> Option<&str> {
    if let Some(body) = text.strip_prefix('\'') {
        let second = body.chars().next()?;
        let is_character = second == '\\' || body[second.len_utf8()..].starts_with('\'');
        return Some(if is_character {
            after_quote(body, '\'')
        } else {
            body.trim_start_matches(is_of_a_word)
        });
    }
    let prefix =
        text.find(|letter: char| !matches!(letter, 'b' | 'c' | 'r')).filter(|length| *length <= 2)?;
    let body = &text[prefix..];
    if !text[..prefix].contains('r') {
        return body.strip_prefix('"').map(|body| after_quote(body, '"'));
    }
    let hashes = body.find(|letter| letter != '#')?;
    let body = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(body.find(&end).map_or("", |at| &body[at + end.len()..]))
}

/// The text after the quote that ends a literal whose opening quote was before `text`.
fn after_quote(text: &str, quote: char) -> &str {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        if !is_escaped && letter == quote {
            return &text[at + letter.len_utf8()..];
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    ""
}

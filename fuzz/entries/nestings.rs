//! Nestings of TypeScript: levels that are made of rules of the grammar, or of any text, to be repeated to any depth.

use arbitrary::{Error, Result, Unstructured};

use super::grammar::Kind::{
    self, Expression as E, Member as M, Pattern as P, Signature as G, Statement as S, Type as T,
};
use super::grammar::{RULES, Rule};

/// How the levels of a nesting end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Closed,
    /// The innermost level has a mistake.
    Mistaken,
    /// Nothing is closed.
    Open,
}

/// Levels that are the same.
#[derive(Debug)]
pub(crate) struct Nesting {
    before: &'static str,
    open: String,
    innermost: String,
    close: String,
    after: &'static str,
}

impl Nesting {
    /// Makes a level of these rules, each in the one before it.
    fn new(chain: &[&Rule], ending: Ending) -> Self {
        let kind = chain.first().map_or(S, |rule| rule.0);
        let (before, innermost, after) = around(kind);
        let mut nesting = Self {
            before,
            open: chain.iter().map(|rule| rule.1).collect(),
            innermost: innermost.to_owned(),
            close: chain.iter().rev().map(|rule| rule.3).collect(),
            after,
        };
        nesting.end(ending);
        nesting
    }

    fn end(&mut self, ending: Ending) {
        match ending {
            Ending::Closed => {}
            Ending::Mistaken => self.innermost.push_str(" 1 1"),
            Ending::Open => self.close.clear(),
        }
    }

    pub(crate) fn source(&self, levels: usize) -> String {
        let (open, close) = (self.open.repeat(levels), self.close.repeat(levels));
        format!("{}{open}{}{close}{}", self.before, self.innermost, self.after)
    }
}

/// The text before the levels, the innermost text, and the text after all, for levels of this kind.
fn around(kind: Kind) -> (&'static str, &'static str, &'static str) {
    match kind {
        S => ("", "a;", ""),
        E => ("x=", "1", ";"),
        T => ("type X=", "A", ";"),
        G => ("interface X{", "a;", "}"),
        M => ("class X{", "a;", "}"),
        P => ("function f(", "a", "){}"),
    }
}

/// Whether a level of these rules can stand in another one.
fn nests(chain: &[&Rule]) -> bool {
    let fits = chain.windows(2).all(|two| two[0].2 == two[1].0);
    fits && chain.first().zip(chain.last()).is_some_and(|(first, last)| first.0 == last.2)
}

/// Each two rules of which one can stand in the other, with the shortest rules that lead from the inner one back to the
/// outer one. The endings take turns, so that each rule is there with all of them.
#[cfg(test)]
pub(crate) fn pairs() -> Vec<Nesting> {
    const KINDS: &[Kind] = &[S, E, T, G, M, P];
    let ways: Vec<(Kind, Kind, Vec<&'static Rule>)> = KINDS
        .iter()
        .flat_map(|from| KINDS.iter().filter_map(move |to| Some((*from, *to, way(*from, *to)?))))
        .collect();
    let mut found = Vec::new();
    for (number, outer) in RULES.iter().enumerate() {
        for (other, inner) in RULES.iter().enumerate().filter(|(_, inner)| inner.0 == outer.2) {
            let back = ways.iter().find(|(from, to, _)| (*from, *to) == (inner.2, outer.0));
            let Some((_, _, back)) = back else { continue };
            let mut chain = vec![outer, inner];
            chain.extend(back);
            let ending = [Ending::Closed, Ending::Mistaken, Ending::Open][(number + other) % 3];
            found.push(Nesting::new(&chain, ending));
        }
    }
    found
}

/// The shortest rules with which a part of one kind has a part of another one: none, one, or two.
#[cfg(test)]
fn way(from: Kind, to: Kind) -> Option<Vec<&'static Rule>> {
    if from == to {
        return Some(Vec::new());
    }
    let length = |way: &Vec<&'static Rule>| way.iter().map(|rule| rule.1.len() + rule.3.len()).sum::<usize>();
    let of_one = rules(from, to).map(|rule| vec![rule]).min_by_key(length);
    of_one.or_else(|| {
        let firsts = RULES.iter().filter(|rule| rule.0 == from);
        let of_two = firsts.flat_map(|first| rules(first.2, to).map(move |second| vec![first, second]));
        of_two.min_by_key(length)
    })
}

#[cfg(test)]
fn rules(from: Kind, to: Kind) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(move |rule| (rule.0, rule.2) == (from, to))
}

/// Makes a nesting out of bytes: of rules that fit, or of any texts.
pub(crate) fn generate(input: &mut Unstructured<'_>) -> Result<Nesting> {
    let mut nesting = if input.ratio(3, 4)? { of_rules(input)? } else { of_texts(input)? };
    match input.int_in_range(0..=3)? {
        0 => nesting.end(Ending::Open),
        1 => nesting.end(Ending::Mistaken),
        2 => nesting.close = with_tails(&nesting.close, input)?,
        _ => {}
    }
    Ok(nesting)
}

/// Levels are made of about this many rules, and after four times as many there is none.
const MAX_RULES: usize = 5;

fn of_rules(input: &mut Unstructured<'_>) -> Result<Nesting> {
    let mut chain = vec![input.choose(RULES)?];
    while !nests(&chain) || (chain.len() < MAX_RULES && input.ratio(1, 2)?) {
        let inner = chain.last().map_or(S, |rule| rule.2);
        let fitting: Vec<&'static Rule> = RULES.iter().filter(|rule| rule.0 == inner).collect();
        chain.push(*input.choose(&fitting)?);
        if chain.len() > 4 * MAX_RULES {
            return Err(Error::IncorrectFormat);
        }
    }
    Ok(Nesting::new(&chain, Ending::Closed))
}

fn of_texts(input: &mut Unstructured<'_>) -> Result<Nesting> {
    let is_word = |character: char| character.is_ascii_alphanumeric();
    let mut open = String::new();
    for _ in 0..input.int_in_range(1..=6)? {
        let text = if input.ratio(1, 2)? { *input.choose(TOKENS)? } else { input.choose(RULES)?.1 };
        if open.ends_with(is_word) && text.starts_with(is_word) {
            open.push(' ');
        }
        open.push_str(text);
    }
    let (before, _, after) = around(*input.choose(&[S, E, T, G, M, P])?);
    let innermost = (*input.choose(&["1", "a", "", "a b", "(", "A", "{}"])?).to_owned();
    let close = closing(&open);
    Ok(Nesting { before, open, innermost, close, after })
}

/// The brackets that close those that `open` leaves open.
fn closing(open: &str) -> String {
    let mut brackets = Vec::new();
    for (at, character) in open.char_indices() {
        match character {
            '{' if open[..at].ends_with("`$") => brackets.push("}`"),
            '{' => brackets.push("}"),
            '[' => brackets.push("]"),
            '(' => brackets.push(")"),
            '}' | ']' | ')' if brackets.last().is_some_and(|last| last.starts_with(character)) => {
                brackets.pop();
            }
            _ => {}
        }
    }
    brackets.into_iter().rev().collect()
}

/// Text that may follow a bracket, and makes it something else than what it seemed to be.
#[rustfmt::skip]
const TAILS: &[&str] = &[
    "", "=>c", "=>{}", ":b", "=>", ";", "?", "{}", "=1", ",", " as c", "\n", ":c;", ":b)", ")=>d", "=b", ">(a)", ">",
    "()", " in b", " of b", "?a:b", " extends c?d:e", " is c", "!", "[]", ".a", "`a`", " b",
];

fn with_tails(close: &str, input: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::new();
    for character in close.chars() {
        text.push(character);
        if matches!(character, '}' | ']' | ')') {
            text.push_str(input.choose(TAILS)?);
        }
    }
    Ok(text)
}

/// The tokens of the language.
#[rustfmt::skip]
const TOKENS: &[&str] = &[
    "a", "T", "1", "'s'", "/a/", "`a`", "`${", "(", ")", "[", "]", "{", "}", "<", ">", "<<", ">>", "=", "=>", ":", "?",
    ",", ";", ".", "?.", "...", "!", "+", "-", "*", "**", "/", "&", "|", "&&", "||", "??", "++", "==", "+=", "<=", "~",
    "@", "#a", "\n", "<!--", "abstract", "accessor", "any", "as", "asserts", "async", "await", "break", "case", "catch",
    "class", "const", "constructor", "continue", "debugger", "declare", "default", "delete", "do", "else", "enum",
    "export", "extends", "false", "finally", "for", "from", "function", "get", "global", "if", "implements", "import",
    "in", "infer", "instanceof", "interface", "is", "keyof", "let", "module", "namespace", "never", "new", "null",
    "object", "of", "out", "override", "package", "private", "protected", "public", "readonly", "require", "return",
    "satisfies", "set", "static", "super", "switch", "symbol", "this", "throw", "true", "try", "type", "typeof",
    "unique", "unknown", "using", "var", "void", "while", "with", "yield",
];

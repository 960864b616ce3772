//! Finds words that the parser takes for modifiers or keywords although a line break ends their statement or field.
//!
//! `public`, a line break and `x` are two fields; `namespace`, a line break and a name are two expressions. The parser
//! regards the line break after some of these words, and not after others.

use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::{ClassMember, Module, TsModuleDecl};
use swc_ecma_parser::error::{Error, SyntaxError};
use swc_ecma_visit::{Visit, VisitWith};

use super::positions::FIRST_BYTE;

/// Modifiers after which the name of the member must follow on the same line.
const MODIFIERS: [&str; 8] =
    ["abstract", "accessor", "declare", "override", "private", "protected", "public", "readonly"];

/// Modifiers after which it may follow on another line.
const OTHER_MODIFIERS: [&str; 4] = ["async", "get", "set", "static"];

/// Keywords after which the name of the namespace must follow on the same line.
const KEYWORDS: [&str; 2] = ["module", "namespace"];

/// Returns an error at the first word in `module`, the tree of `text`, that a line break ends.
pub(super) fn find(text: &str, module: &Module) -> Option<Error> {
    // The words cannot be written with escapes, so most texts need no walk over the tree.
    let is_possible =
        words().any(|word| text.match_indices(word).any(|(at, _)| ends_line(text, at + word.len())));
    if !is_possible {
        return None;
    }
    let mut finder = Finder { text, found: None };
    module.visit_with(&mut finder);
    finder.found.map(|span| Error::new(span, SyntaxError::TS1109))
}

/// Returns the end of the first word that a line break ends, among the words that begin at `at`.
pub(super) fn end_of_word(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = &text[at..];
        let word = &rest[..rest.bytes().take_while(u8::is_ascii_alphabetic).count()];
        let end = at + word.len();
        let is_ended = words().any(|known| known == word);
        if is_ended && ends_line(text, end) {
            return Some(end);
        }
        if !is_ended && !OTHER_MODIFIERS.contains(&word) {
            return None;
        }
        at = text.len() - text[end..].trim_start().len();
    }
}

fn words() -> impl Iterator<Item = &'static str> {
    MODIFIERS.into_iter().chain(KEYWORDS)
}

/// Returns whether white space with a line break begins at `at`.
pub(super) fn ends_line(text: &str, at: usize) -> bool {
    let rest = &text[at..];
    let space = &rest[..rest.len() - rest.trim_start().len()];
    space.contains(['\n', '\r', '\u{2028}', '\u{2029}'])
}

struct Finder<'a> {
    text: &'a str,
    found: Option<Span>,
}

impl Finder<'_> {
    /// Searches the words before the name of a member, which are its modifiers.
    fn search(&mut self, member: Span, name: Span) {
        let (start, mut end) = (offset(member.lo), offset(name.lo));
        // A comment may end its line with such a word.
        if self.text.get(start..end).is_none_or(|before| before.contains('/')) {
            return;
        }
        loop {
            let before =
                self.text[start..end].trim_end_matches(|last: char| last.is_whitespace() || last == '*');
            let length = before.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
            let at = start + before.len() - length;
            let word = &self.text[at..at + length];
            let is_modifier = MODIFIERS.contains(&word);
            // A decorator is no modifier, and neither is the end of its name.
            let is_name = self.text[start..at].ends_with(|last: char| {
                last.is_alphanumeric() || matches!(last, '_' | '$' | '#' | '.' | '@')
            });
            if is_name || !(is_modifier || OTHER_MODIFIERS.contains(&word)) {
                return;
            }
            if is_modifier && ends_line(self.text, at + length) {
                self.report(at);
            }
            end = at;
        }
    }

    fn report(&mut self, at: usize) {
        let at = FIRST_BYTE + BytePos(u32::try_from(at).unwrap_or(u32::MAX >> 1));
        self.found.get_or_insert_with(|| Span::new(at, at));
    }
}

fn offset(at: BytePos) -> usize {
    at.0.saturating_sub(FIRST_BYTE.0) as usize
}

impl Visit for Finder<'_> {
    fn visit_class_member(&mut self, member: &ClassMember) {
        let name = match member {
            ClassMember::Constructor(constructor) => Some(constructor.key.span()),
            ClassMember::Method(method) => Some(method.key.span()),
            ClassMember::PrivateMethod(method) => Some(method.key.span),
            ClassMember::ClassProp(field) => Some(field.key.span()),
            ClassMember::PrivateProp(field) => Some(field.key.span),
            ClassMember::AutoAccessor(accessor) => Some(accessor.key.span()),
            ClassMember::TsIndexSignature(_) | ClassMember::Empty(_) | ClassMember::StaticBlock(_) => None,
        };
        if let Some(name) = name {
            self.search(member.span(), name);
        }
        member.visit_children_with(self);
    }

    fn visit_ts_module_decl(&mut self, namespace: &TsModuleDecl) {
        let at = offset(namespace.span.lo);
        let rest = self.text.get(at..).unwrap_or_default();
        if let Some(word) = KEYWORDS.into_iter().find(|word| rest.starts_with(*word))
            && ends_line(rest, word.len())
        {
            self.report(at);
        }
        namespace.visit_children_with(self);
    }
}

//! Rewrites valid source that swc's parser refuses into source of the same length that it accepts.
//!
//! Each repair begins at an error of the parser and changes the words before it, so positions remain
//! those of the author's text. What a changed word stood for is put back into the tree.

use std::collections::HashMap;

use swc_common::{BytePos, Spanned};
use swc_ecma_ast::{
    ArrowExpr, BlockStmt, Constructor, Decl, ForStmt, Function, GetterProp, Ident, IdentName, Module,
    SetterProp, StaticBlock, Stmt, UsingDecl, VarDeclOrExpr,
};
use swc_ecma_parser::error::{Error, SyntaxError};
use swc_ecma_visit::{VisitMut, VisitMutWith};

use super::cancellation::Cancellation;
use super::error::TranspileError;
use super::positions::FIRST_BYTE;
use super::{bounds, misread};

/// Maximum number of repairs of a source. Each is followed by parsing all of it again.
const MAX_REPAIRS: usize = 32;

/// The text of a source with its repairs.
#[derive(Debug)]
pub(super) struct Repair {
    text: String,
    /// Words that stand for others, with what they stand for.
    words: HashMap<String, &'static str>,
    /// Positions of `const` that stands for `using`, and whether `await` was before it.
    usings: HashMap<BytePos, bool>,
}

/// Repairs `text`, whose parsing ended with `error`, until `parse` succeeds. Returns `None` if the
/// source cannot be repaired.
pub(super) fn repair<T>(
    text: &str,
    error: &Error,
    cancellation: Cancellation<'_>,
    parse: impl Fn(&str) -> Result<T, Error>,
    module: impl Fn(&mut T) -> &mut Module,
) -> Result<Option<T>, TranspileError> {
    let is_valid = |text: &str| bounds::check(text).is_ok() && parse(text).is_ok();
    let mut repair = Repair { text: text.to_owned(), words: HashMap::new(), usings: HashMap::new() };
    if !repair.apply(error, &is_valid) {
        return Ok(None);
    }
    for _ in 0..MAX_REPAIRS {
        cancellation.check()?;
        if bounds::check(&repair.text).is_err() {
            return Ok(None);
        }
        match parse(&repair.text) {
            Ok(mut parsed) => {
                let mut back = PutBack { repair: &repair, reserved: true, misplaced: false };
                module(&mut parsed).visit_mut_with(&mut back);
                return Ok((!back.misplaced).then_some(parsed));
            }
            Err(error) if repair.apply(&error, &is_valid) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

impl Repair {
    /// Changes the words that `error` is about. Returns whether there was something to change. `is_valid` is whether a
    /// text can be parsed.
    fn apply(&mut self, error: &Error, is_valid: &dyn Fn(&str) -> bool) -> bool {
        let at = (error.span().lo.0.saturating_sub(FIRST_BYTE.0)) as usize;
        if !self.text.is_char_boundary(at) {
            return false;
        }
        match kind(error) {
            SyntaxError::InvalidIdentInAsync | SyntaxError::AwaitInFunction => {
                // A forgotten `async` is more common than `await` as a name.
                let is_name = *kind(error) == SyntaxError::InvalidIdentInAsync || !self.words.is_empty();
                is_name && self.stand_in(at, "await")
            }
            SyntaxError::TS1089(_)
            | SyntaxError::AsyncConstructor
            | SyntaxError::GeneratorConstructor
            | SyntaxError::ConstructorAccessor => self.static_constructor(at),
            _ => {
                self.static_declare(at)
                    || self.using(at)
                    || self.asserts(at)
                    || self.line_break(at)
                    || self.assertions(at)
                    || self.generic_arguments(at, is_valid)
            }
        }
    }

    /// Replaces the word at `at` by another one of the same length.
    fn stand_in(&mut self, at: usize, word: &'static str) -> bool {
        if !self.text[at..].starts_with(word) {
            return false;
        }
        let known = self.words.iter().find(|(_, original)| **original == word).map(|(new, _)| new.clone());
        let Some(new) = known.or_else(|| {
            let stem = &word[..word.len() - 1];
            let free = |last: &char| !self.text.contains(&format!("{stem}{last}"));
            ('0'..='9').chain('A'..='Z').find(free).map(|last| format!("{stem}{last}"))
        }) else {
            return false;
        };
        self.text.replace_range(at..at + word.len(), &new);
        self.words.insert(new, word);
        true
    }

    /// `static constructor() {}`, `static async constructor() {}`: a method like any other.
    fn static_constructor(&mut self, at: usize) -> bool {
        const WORD: &str = "constructor";
        let Some(found) = self.text[at..].find(WORD).map(|offset| at + offset) else {
            return false;
        };
        let mut before = self.text[..found].trim_end();
        while let Some(shorter) =
            ["*", "async", "get", "set"].iter().find_map(|word| before.strip_suffix(word))
        {
            before = shorter.trim_end();
        }
        ends_with_word(before, "static") && self.stand_in(found, WORD)
    }

    /// `static declare x`: the other order means the same.
    fn static_declare(&mut self, at: usize) -> bool {
        let Some(start) = self.words_before(at, &["static", "declare"]) else {
            return false;
        };
        let end = start + self.text[start..at].trim_end().len();
        let between = self.text[start + "static".len()..end - "declare".len()].to_owned();
        self.text.replace_range(start..end, &format!("declare{between}static"));
        true
    }

    /// `for (using x = …; …; …)`: as with `const`, and a block around the loop.
    fn using(&mut self, at: usize) -> bool {
        let Some(using) = self.words_before(at, &["using"]) else {
            return false;
        };
        let mut head = self.text[..using].trim_end();
        let awaits = ends_with_word(head, "await");
        if awaits {
            head = head[..head.len() - "await".len()].trim_end();
        }
        let Some(head) = head.strip_suffix('(') else {
            return false;
        };
        if !ends_with_word(head.trim_end(), "for") {
            return false;
        }
        if awaits {
            let start = self.text[..using].trim_end().len() - "await".len();
            self.text.replace_range(start..start + "await".len(), "     ");
        }
        self.text.replace_range(using..using + "using".len(), "const");
        self.usings.insert(FIRST_BYTE + BytePos(u32::try_from(using).unwrap_or(u32::MAX >> 1)), awaits);
        true
    }

    /// `(asserts: any): asserts is T`: the name of a parameter in a type, which goes away.
    fn asserts(&mut self, at: usize) -> bool {
        let Some(start) = self.words_before(at, &["asserts", "is"]) else {
            return false;
        };
        self.text.replace_range(start..start + "asserts".len(), "asserte");
        true
    }

    /// `readonly`, a line break and a method: a field of this name, and a method.
    fn line_break(&mut self, at: usize) -> bool {
        let Some(end) = misread::end_of_word(&self.text, at) else {
            return false;
        };
        if !self.text.as_bytes()[end].is_ascii_whitespace() {
            return false;
        }
        self.text.replace_range(end..=end, ";");
        true
    }

    /// `import("…", { assert: { … } })` in a type: an older word for `with`.
    fn assertions(&mut self, at: usize) -> bool {
        const WORD: &str = "assert";
        let is_key =
            self.text[at..].strip_prefix(WORD).is_some_and(|rest| rest.trim_start().starts_with(':'));
        let before = self.text[..at].trim_end().strip_suffix('{').map(str::trim_end);
        if !is_key || !before.is_some_and(|before| before.ends_with(',')) {
            return false;
        }
        self.text.replace_range(at..at + WORD.len(), "with  ");
        true
    }

    /// `f<<T>() => T>`: type arguments whose first is a type of functions. Nothing is left of them.
    ///
    /// They are parsed as types on their own first. Otherwise a shift, and a comparison below it, would make everything
    /// between them go away when there is a mistake in it.
    fn generic_arguments(&mut self, at: usize, is_valid: &dyn Fn(&str) -> bool) -> bool {
        let until = self.text.len().min(at + 2);
        let Some(start) = self.text.as_bytes()[..until].windows(2).rposition(|pair| pair == b"<<") else {
            return false;
        };
        let Some(length) = type_arguments(&self.text.as_bytes()[start..]) else {
            return false;
        };
        let arguments = start..start + length;
        let are_types = || is_valid(&format!("type _ = A< {}", &self.text[start + 1..start + length]));
        if !arguments.contains(&at) || !are_types() {
            return false;
        }
        let blank = |character: char| match character {
            '\n' | '\r' => character.to_string(),
            _ => " ".repeat(character.len_utf8()),
        };
        let blanks: String = self.text[arguments.clone()].chars().map(blank).collect();
        self.text.replace_range(arguments, &blanks);
        true
    }

    /// Returns where `words` begin that end at `at`, with white space between them.
    fn words_before(&self, at: usize, words: &[&str]) -> Option<usize> {
        let mut rest = self.text[..at].trim_end();
        for word in words.iter().rev() {
            if !ends_with_word(rest, word) {
                return None;
            }
            rest = &rest[..rest.len() - word.len()];
            let end = rest.len();
            rest = rest.trim_end();
            if word == &words[0] {
                return Some(end);
            }
        }
        None
    }
}

/// The length of what begins with `<<` and can be type arguments, as far as its brackets say. The first is a type of
/// functions, so there is an arrow inside. Text and comments inside are not read: nothing is repaired then.
fn type_arguments(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut arrows) = (0_usize, 0_usize);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if index > 0 && bytes[index - 1] == b'=' => arrows += 1,
            b'>' if depth > 1 => depth -= 1,
            b'>' => return (arrows > 0).then_some(index + 1),
            b'"' | b'\'' | b'`' | b'/' => return None,
            _ => {}
        }
    }
    None
}

fn kind(error: &Error) -> &SyntaxError {
    match error.kind() {
        SyntaxError::WithLabel { inner, .. } => kind(inner),
        other => other,
    }
}

/// Returns whether `text` ends with `word`, and not only as a part of a longer word.
fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word).is_some_and(|before| {
        !before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | '$' | '#' | '.'))
    })
}

/// Puts back what was changed.
struct PutBack<'a> {
    repair: &'a Repair,
    /// Whether `await` is reserved here, so that it is not a name.
    reserved: bool,
    /// Whether `await` was used as a name where it is reserved.
    misplaced: bool,
}

impl PutBack<'_> {
    fn word(&self, name: &str) -> Option<&'static str> {
        self.repair.words.get(name).copied()
    }

    fn inside<T>(&mut self, reserved: bool, tree: &mut T)
    where
        T: VisitMutWith<Self>,
    {
        let outside = std::mem::replace(&mut self.reserved, reserved);
        tree.visit_mut_children_with(self);
        self.reserved = outside;
    }
}

impl VisitMut for PutBack<'_> {
    fn visit_mut_ident(&mut self, name: &mut Ident) {
        if let Some(word) = self.word(&name.sym) {
            self.misplaced |= self.reserved && word == "await";
            name.sym = word.into();
        }
    }

    fn visit_mut_function(&mut self, function: &mut Function) {
        self.inside(function.is_async, function);
    }

    fn visit_mut_arrow_expr(&mut self, arrow: &mut ArrowExpr) {
        self.inside(self.reserved || arrow.is_async, arrow);
    }

    fn visit_mut_constructor(&mut self, constructor: &mut Constructor) {
        self.inside(false, constructor);
    }

    fn visit_mut_getter_prop(&mut self, getter: &mut GetterProp) {
        self.inside(false, getter);
    }

    fn visit_mut_setter_prop(&mut self, setter: &mut SetterProp) {
        self.inside(false, setter);
    }

    fn visit_mut_static_block(&mut self, block: &mut StaticBlock) {
        self.inside(true, block);
    }

    fn visit_mut_ident_name(&mut self, name: &mut IdentName) {
        if let Some(word) = self.word(&name.sym) {
            name.sym = word.into();
        }
    }

    fn visit_mut_stmt(&mut self, statement: &mut Stmt) {
        if let Some(using) = self.using(statement) {
            let looped = std::mem::take(statement);
            *statement = Stmt::Block(BlockStmt { stmts: vec![using, looped], ..BlockStmt::default() });
        }
        statement.visit_mut_children_with(self);
    }
}

impl PutBack<'_> {
    /// Takes the declaration that stands for `using` out of a loop, which may have labels.
    fn using(&self, statement: &mut Stmt) -> Option<Stmt> {
        match statement {
            Stmt::Labeled(labeled) => self.using(&mut labeled.body),
            Stmt::For(ForStmt { init, .. }) => {
                let Some(VarDeclOrExpr::VarDecl(declared)) = init else {
                    return None;
                };
                let is_await = *self.repair.usings.get(&declared.span.lo)?;
                let (span, decls) = (declared.span, std::mem::take(&mut declared.decls));
                *init = None;
                Some(Stmt::Decl(Decl::Using(Box::new(UsingDecl { span, is_await, decls }))))
            }
            _ => None,
        }
    }
}

//! Classifies words by what may follow them.

/// How a word can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// A name, a number or a value such as `this`: an operand ends here.
    Operand,
    /// An operand must follow, so `/` starts a regular expression.
    Prefix,
    /// A reserved or contextual word: the grammar decides.
    Either,
    /// `if`, `for`, `while` or `with`: the closing parenthesis of its head is followed by a
    /// statement.
    Head,
}

/// Classifies a word that does not follow a dot.
pub(super) fn classify(word: &[u8]) -> Word {
    if !matches!(word.len(), 2..=10) || !(word[0].is_ascii_lowercase() || word[0] == b'\\') {
        return if word.contains(&b'\\') { Word::Either } else { Word::Operand };
    }
    match word {
        b"if" | b"for" | b"while" | b"with" => Word::Head,
        b"return" | b"typeof" | b"void" | b"delete" | b"throw" | b"case" | b"do" | b"else" | b"new"
        | b"in" | b"instanceof" | b"extends" | b"default" => Word::Prefix,
        b"abstract" | b"accessor" | b"as" | b"asserts" | b"async" | b"await" | b"break" | b"class"
        | b"const" | b"continue" | b"debugger" | b"declare" | b"enum" | b"export" | b"finally"
        | b"function" | b"get" | b"implements" | b"import" | b"infer" | b"interface" | b"is" | b"keyof"
        | b"let" | b"module" | b"namespace" | b"of" | b"out" | b"override" | b"package" | b"private"
        | b"protected" | b"public" | b"readonly" | b"satisfies" | b"set" | b"static" | b"switch" | b"try"
        | b"catch" | b"type" | b"unique" | b"using" | b"var" | b"yield" => Word::Either,
        _ if word.contains(&b'\\') => Word::Either,
        _ => Word::Operand,
    }
}

/// Returns whether a word continues the expression or statement before it, so that no statement
/// starts with it.
pub(super) fn continues(word: &[u8]) -> bool {
    matches!(
        word,
        b"else" | b"as" | b"satisfies" | b"in" | b"instanceof" | b"of" | b"extends" | b"is" | b"implements"
    ) || word.contains(&b'\\')
}

/// Returns whether a word is the last part of a statement that began before it, as `continues` does not say: a label of
/// that statement holds in this part too.
pub(super) fn is_last_part(word: &[u8]) -> bool {
    matches!(word, b"catch" | b"finally" | b"while")
}

/// Returns whether `{` after this word, on the same line, begins an object or a pattern.
pub(super) fn precedes_object(word: &[u8]) -> bool {
    matches!(word, b"return" | b"throw" | b"let" | b"const" | b"var" | b"default")
}

/// Returns whether a word may be `name`, which can be written with escapes.
pub(super) fn may_be(word: &[u8], name: &[u8]) -> bool {
    word == name || word.contains(&b'\\')
}

//! The depth of a source by the tokens of Ruff's lexer.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

use super::levels::Levels;

/// The greatest depth of the tree of `source`; `None` if a bracket has no partner.
pub(super) fn depth(source: &str) -> Option<usize> {
    let mut lexer = lexer::lex(source, Mode::Module);
    let mut levels = Levels::new(TokenKind::EndOfFile);
    loop {
        let kind = lexer.next_token();
        match kind {
            TokenKind::EndOfFile => break,
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => levels.open(kind),
            TokenKind::Rpar
            | TokenKind::Rsqb
            | TokenKind::Rbrace
            | TokenKind::FStringEnd
            | TokenKind::TStringEnd => {
                if !levels.close(|opened| is_pair(opened, kind)) {
                    return None;
                }
                // A call or an index of what was before.
                levels.pass();
            }
            TokenKind::Comma | TokenKind::FStringMiddle | TokenKind::TStringMiddle => levels.comma(),
            TokenKind::Newline | TokenKind::Semi if !levels.is_in_bracket() => levels.end_statement(),
            TokenKind::Indent => {
                levels.blocks += 1;
                levels.measure();
            }
            TokenKind::Dedent => levels.blocks = levels.blocks.saturating_sub(1),
            TokenKind::Lambda | TokenKind::Yield => levels.keep(),
            TokenKind::String
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::Name
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline
            | TokenKind::Newline => {}
            _ => levels.pass(),
        }
    }
    (!levels.is_in_bracket()).then_some(levels.greatest)
}

fn is_pair(opened: TokenKind, closing: TokenKind) -> bool {
    matches!(
        (opened, closing),
        (TokenKind::Lpar, TokenKind::Rpar)
            | (TokenKind::Lsqb, TokenKind::Rsqb)
            | (TokenKind::Lbrace, TokenKind::Rbrace)
            | (TokenKind::FStringStart, TokenKind::FStringEnd)
            | (TokenKind::TStringStart, TokenKind::TStringEnd)
    )
}

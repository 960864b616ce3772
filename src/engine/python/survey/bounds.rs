//! Bounds on the nesting of a source, before there is a tree: the parser grows its stack, but what reads and
//! drops the tree recurses.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// Maximum depth of a tree. Scripts that people write stay below a third of it; the threads of interpreters have
/// 2 MB of stack, and a level of the tree takes up to 8 KB in an unoptimized build.
const MAX_DEPTH: usize = 100;

/// Whether the tree of `source` has at most [`MAX_DEPTH`] levels.
///
/// Every bracket and every block is a level. So is each operator, dot, keyword and name since the last comma of
/// its bracket: more than the tree has, so that no rule of the grammar can make it deeper.
pub(super) fn allow(source: &str) -> bool {
    let mut lexer = lexer::lex(source, Mode::Module);
    // For each open bracket what is since its last comma; the first is the statement.
    let mut levels = vec![0_usize];
    let mut depth = 0_usize;
    let mut blocks = 0_usize;
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return true,
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace | TokenKind::FStringStart => {
                levels.push(0);
                depth += 1;
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace | TokenKind::FStringEnd => {
                if levels.len() > 1 {
                    depth -= 1 + levels.pop().unwrap_or(0);
                }
                // A call or an index of what was before.
                if let Some(level) = levels.last_mut() {
                    *level += 1;
                    depth += 1;
                }
            }
            TokenKind::TStringStart => {
                levels.push(0);
                depth += 1;
            }
            TokenKind::TStringEnd => {
                if levels.len() > 1 {
                    depth -= 1 + levels.pop().unwrap_or(0);
                }
            }
            TokenKind::Comma | TokenKind::FStringMiddle | TokenKind::TStringMiddle => {
                if let Some(level) = levels.last_mut() {
                    depth -= std::mem::take(level);
                }
            }
            TokenKind::Newline | TokenKind::Semi if levels.len() == 1 => {
                levels[0] = 0;
                depth = 0;
            }
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            TokenKind::String
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::Name
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline
            | TokenKind::Newline => {}
            _ => {
                if let Some(level) = levels.last_mut() {
                    *level += 1;
                    depth += 1;
                }
            }
        }
        if depth + 2 * blocks > MAX_DEPTH {
            return false;
        }
    }
}

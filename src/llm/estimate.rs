//! How many tokens a text is at most, without a tokenizer.
//!
//! Providers count with vocabularies of their own, most of which are not public, so an estimate is
//! what there is before a call. This one is meant to be too high: a budget that is reserved by it is
//! not passed. A test compares it with a public tokenizer.

use super::model::ModelRequest;

/// Tokens that a message costs beside its text: its role and what separates it.
const MESSAGE_TOKENS: u64 = 8;

/// Bytes of one token within a word, at least on average: tokenizers have whole words, and cut what
/// is no word into pieces of two or three letters.
const WORD_BYTES: u64 = 3;

/// Estimates the tokens of a text, from above.
pub(crate) fn tokens(text: &str) -> u64 {
    let mut tokens: u64 = 0;
    let mut run: u64 = 0;
    let mut last = Kind::Space;
    for character in text.chars() {
        let kind = Kind::of(character);
        if kind != last || matches!(kind, Kind::Mark | Kind::Other) {
            tokens += last.tokens(run);
            run = 0;
            last = kind;
        }
        run += character.len_utf8() as u64;
    }
    tokens + last.tokens(run)
}

/// Estimates the tokens of a conversation, from above.
pub(crate) fn request_tokens(request: &ModelRequest) -> u64 {
    let texts = request.messages.iter().map(|message| message.text.as_str());
    let texts = texts.chain(request.system_prompt.as_deref());
    texts.map(|text| tokens(text) + MESSAGE_TOKENS).sum()
}

/// What tokenizers tell apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Space,
    Mark,
    Other,
}

impl Kind {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            _ if character.is_whitespace() => Self::Space,
            _ if character.is_ascii() => Self::Mark,
            _ => Self::Other,
        }
    }

    /// The tokens of a run of one kind, of `bytes` bytes.
    fn tokens(self, bytes: u64) -> u64 {
        match self {
            Self::Lower => bytes.div_ceil(WORD_BYTES + 1),
            // Capitals and digits are cut more often.
            Self::Upper => bytes.div_ceil(2),
            Self::Digit => bytes.div_ceil(2),
            // A space belongs to the word after it; longer runs are few tokens.
            Self::Space => bytes / 2,
            Self::Mark => bytes,
            // A character of three or four bytes can be as many tokens, and mostly is one.
            Self::Other => bytes.div_ceil(2),
        }
    }
}

#[cfg(test)]
mod tests;

//! Estimates the tokens of a text, from above, before a provider has counted them.
//!
//! Providers count with vocabularies of their own, most of which are not public. So a text is
//! counted with a public one of the usual size (o200k), and it is at least what an estimate by
//! kinds of characters says: a budget that is reserved by the larger of the two, and a fifth more,
//! is not exceeded. The tokenizer takes linear time, whatever the text is.

use super::model::ModelRequest;

/// Tokens that a message costs beside its text: its role and what separates it.
const MESSAGE_TOKENS: u64 = 8;

/// Bytes of one token within a word, at least on average: tokenizers have whole words, and cut what
/// is no word into pieces of two or three letters.
const WORD_BYTES: u64 = 3;

/// Texts of more bytes are not counted: each two bytes are taken for a token. Counting this many
/// takes some hundredths of a second.
const MAX_COUNTED: usize = 1 << 20;

/// Estimates the tokens of a text, from above.
pub(crate) fn tokens(text: &str) -> u64 {
    if text.len() > MAX_COUNTED {
        return text.len().div_ceil(2) as u64;
    }
    by_kinds(text).max(by_tokenizer(text))
}

#[cfg(feature = "llm")]
fn by_tokenizer(text: &str) -> u64 {
    bpe_openai::o200k_base().count(text) as u64
}

/// Without a tokenizer, all texts have the bound of long ones.
#[cfg(not(feature = "llm"))]
fn by_tokenizer(text: &str) -> u64 {
    text.len().div_ceil(2) as u64
}

/// Estimates the tokens of a conversation, from above. Of one that has more than `enough` it is
/// only known that it has.
pub(crate) fn request_tokens(request: &ModelRequest, enough: u64) -> u64 {
    let mut sum = 0;
    for text in texts(request) {
        sum += by_kinds(text) + MESSAGE_TOKENS;
        if sum > enough {
            return sum;
        }
    }
    texts(request).map(|text| tokens(text) + MESSAGE_TOKENS).sum()
}

fn texts(request: &ModelRequest) -> impl Iterator<Item = &str> {
    let messages = request.messages.iter().map(|message| message.text.as_str());
    messages.chain(request.system_prompt.as_deref())
}

/// Estimates the tokens of a text by the kinds of its characters.
fn by_kinds(text: &str) -> u64 {
    let mut tokens: u64 = 0;
    let mut run: u64 = 0;
    let mut last = CharacterClass::Space;
    for character in text.chars() {
        let kind = CharacterClass::from_character(character);
        if kind != last || matches!(kind, CharacterClass::Mark | CharacterClass::Other) {
            tokens += last.tokens(run);
            run = 0;
            last = kind;
        }
        run += character.len_utf8() as u64;
    }
    tokens + last.tokens(run)
}

/// The kinds of characters that tokenizers tell apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    Lower,
    Upper,
    Digit,
    Space,
    Mark,
    Other,
}

impl CharacterClass {
    fn from_character(character: char) -> Self {
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

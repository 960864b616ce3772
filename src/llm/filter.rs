//! The content filter: secrets and personal data in answers of models.
//!
//! It looks for what has a structure of its own, because everything else is guessing: keys with the
//! prefix and the length that their issuers give them, tokens of three parts, private keys in their
//! frame, addresses with a domain, numbers with a check digit. It does not find a password in a
//! sentence, nor a name. It takes linear time: one search for tokens of three parts, and one for all
//! other patterns at once.

use regex::{Captures, Regex};

use super::options::FilterMode;

/// The replacement for a secret.
pub(crate) const REDACTED_SECRET: &str = "[REDACTED_SECRET]";

/// The replacement for personal data.
const REDACTED_PII: &str = "[REDACTED_PII]";

/// Maximum bytes of the compiled patterns. They take a tenth of it.
const MAX_COMPILED_BYTES: usize = 8 << 20;

/// The first line of the frame of a private key. A macro, because `concat!` takes no constants.
macro_rules! frame_begin {
    () => {
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    };
}

/// The last line.
macro_rules! frame_end {
    () => {
        r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    };
}

/// Tokens of three parts: two objects in base64, and a signature that may be empty. They have a search of their own: it
/// can read far before it fails, past hits of other patterns. A search for all, which begins again after each of
/// those hits, would read the rest each time.
const JWT: (&str, &str) = ("jwt", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*");

/// The other secrets that are looked for: a name, and a pattern of ASCII. Where two match at one place, the earlier one
/// counts. No pattern may read far before it fails.
const SECRETS: &[(&str, &str)] = &[
    // Up to the end of its frame, or of the text.
    ("private_key", concat!(frame_begin!(), r"(?su:.)*?(?:", frame_end!(), r"|\z)")),
    ("anthropic_key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai_key", r"\bsk-(?:[A-Za-z0-9]{20,}|(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,})"),
    ("stripe_key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("github_token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})"),
    ("gitlab_token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("aws_key_id", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    // Keys, secrets of clients, and access tokens.
    ("google_key", r"\b(?:AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{28}|ya29\.[A-Za-z0-9_-]{40,})"),
    ("slack_token", r"\bxox[abeprs]-[A-Za-z0-9-]{10,}"),
    ("slack_webhook", r"\bhttps://hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,}"),
    ("npm_token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi_token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("huggingface_token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("sendgrid_key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("groq_key", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("xai_key", r"\bxai-[A-Za-z0-9]{60,}"),
    ("databricks_token", r"\bdapi[a-f0-9]{32}\b"),
    ("digitalocean_token", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    ("docker_token", r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{27,}"),
    ("shopify_token", r"\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}\b"),
    ("vault_token", r"\bhv[bs]\.[A-Za-z0-9_-]{24,}"),
    ("bearer_token", r"\b[Bb]earer [A-Za-z0-9_.~+/-]{24,}=*"),
];

/// The personal data that is looked for, in the same form. Secrets come before it.
const PERSONAL_DATA: &[(&str, &str)] = &[
    ("email", r"\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"),
    // Never 000, 666 or 9xx, 00, 0000.
    (
        "ssn",
        r"\b(?:00[1-9]|0[1-9][0-9]|[1-578][0-9]{2}|6[0-57-9][0-9]|66[0-57-9])-(?:0[1-9]|[1-9][0-9])-(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})\b",
    ),
    // 13 to 19 digits, at once or in the groups that cards have. Their check digit decides.
    (
        "card",
        r"\b(?:[2-6][0-9]{12,18}|[2-6][0-9]{3}(?:(?: [0-9]{4}){3}(?: [0-9]{1,3})?|(?:-[0-9]{4}){3}(?:-[0-9]{1,3})?)|3[0-9]{3}(?: [0-9]{6} [0-9]{4,5}|-[0-9]{6}-[0-9]{4,5}))\b",
    ),
];

/// Minimum digits of a card's number.
const MIN_CARD_DIGITS: usize = 13;

/// All that is looked for in the second search.
fn patterns() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    SECRETS.iter().chain(PERSONAL_DATA)
}

/// What was found in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Violations {
    /// How often each pattern was found, by its name, in the order of the first time.
    pub(crate) found: Vec<(&'static str, u32)>,
}

impl Violations {
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn add(&mut self, name: &'static str, count: u32) {
        match self.found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, before)) => *before += count,
            None => self.found.push((name, count)),
        }
    }

    /// Adds what was found in another part of the same answer.
    pub(crate) fn merge(&mut self, more: Self) {
        for (name, count) in more.found {
            self.add(name, count);
        }
    }
}

/// The beginning of a frame's first line, and the maximum bytes of that line.
const FRAME_MARK: &str = "-----BEGIN";
const MAX_FRAME_LINE: usize = 80;

/// The compiled patterns.
#[derive(Debug)]
pub(crate) struct ContentFilter {
    jwt: Regex,
    patterns: Regex,
    frame_begin: Regex,
    frame_end: Regex,
}

impl ContentFilter {
    /// Compiles the patterns, which takes a few milliseconds. `None` if the library refuses them.
    pub(crate) fn new() -> Option<Self> {
        let alternatives: Vec<String> =
            patterns().enumerate().map(|(index, (_, pattern))| format!("(?P<p{index}>{pattern})")).collect();
        let compile = |pattern: &str| {
            // The patterns are of ASCII: so `\b` is, and needs no tables.
            regex::RegexBuilder::new(pattern).unicode(false).size_limit(MAX_COMPILED_BYTES).build()
        };
        let compiled = || {
            Ok::<_, regex::Error>(Self {
                jwt: compile(JWT.1)?,
                patterns: compile(&alternatives.join("|"))?,
                frame_begin: compile(frame_begin!())?,
                frame_end: compile(frame_end!())?,
            })
        };
        match compiled() {
            Ok(filter) => Some(filter),
            Err(error) => {
                tracing::error!(%error, "the content filter cannot be made");
                None
            }
        }
    }

    /// Returns the text with its findings replaced, and the findings.
    pub(crate) fn redact(&self, text: &str) -> (String, Violations) {
        let mut violations = Violations::default();
        let text = self.jwt.replace_all(text, |_: &Captures<'_>| {
            violations.add(JWT.0, 1);
            REDACTED_SECRET
        });
        let redacted = self.patterns.replace_all(&text, |captures: &Captures<'_>| {
            let found = captures.get(0).map_or("", |whole| whole.as_str());
            let mut groups = patterns().enumerate();
            let Some((index, (name, _))) = groups.find(|(index, _)| captures.get(index + 1).is_some()) else {
                return found.to_owned();
            };
            let mut rest = "";
            if *name == "card" {
                // What follows a number in groups may look like one more group.
                let Some(end) = card_end(found) else { return found.to_owned() };
                rest = found.get(end..).unwrap_or_default();
            }
            violations.add(name, 1);
            let mark = if index < SECRETS.len() { REDACTED_SECRET } else { REDACTED_PII };
            format!("{mark}{rest}")
        });
        (redacted.into_owned(), violations)
    }

    /// Filters an answer as the mode says. `Err` has what was found in an answer that is refused.
    pub(crate) fn apply(&self, mode: FilterMode, text: String) -> Result<(String, Violations), Violations> {
        match mode {
            FilterMode::Off => Ok((text, Violations::default())),
            FilterMode::Redact => Ok(self.redact(&text)),
            FilterMode::Refuse => {
                let (_, violations) = self.redact(&text);
                if violations.is_empty() { Ok((text, violations)) } else { Err(violations) }
            }
        }
    }
}

/// Where the number of a card ends in groups of digits that begin with it; `None` if none does.
fn card_end(groups: &str) -> Option<usize> {
    let separators = groups.rmatch_indices([' ', '-']).map(|(position, _)| position);
    let is_card = |end: &usize| {
        groups.get(..*end).is_some_and(|number| {
            number.bytes().filter(u8::is_ascii_digit).count() >= MIN_CARD_DIGITS
                && has_valid_check_digit(number)
        })
    };
    std::iter::once(groups.len()).chain(separators).find(is_card)
}

/// Whether the digits of a card's number have the check digit that they must have (Luhn).
fn has_valid_check_digit(number: &str) -> bool {
    let mut sum = 0;
    for (position, digit) in number.bytes().rev().filter(u8::is_ascii_digit).enumerate() {
        let digit = u32::from(digit - b'0');
        sum += match position % 2 {
            0 => digit,
            _ if digit > 4 => digit * 2 - 9,
            _ => digit * 2,
        };
    }
    sum % 10 == 0
}

/// Filters an answer that comes in pieces: it holds back what could be the beginning of something
/// that is looked for. The pieces together are the filtered whole.
#[derive(Debug, Default)]
pub(crate) struct StreamFilter {
    held: String,
    /// Bytes of `held` below which nothing more could be passed on, so that pieces of one character
    /// are not looked at again and again.
    look_at: usize,
}

impl StreamFilter {
    /// Adds a piece. Returns what can be filtered and passed on now, which may be empty.
    pub(crate) fn push(&mut self, filter: &ContentFilter, piece: &str) -> String {
        self.held.push_str(piece);
        if self.held.len() < self.look_at {
            return String::new();
        }
        let end = filter.passable(&self.held);
        let rest = self.held.split_off(end);
        let passed = std::mem::replace(&mut self.held, rest);
        self.look_at = if passed.is_empty() { self.held.len() + self.held.len() / 8 } else { 0 };
        passed
    }

    /// What is held back at the end of the answer.
    pub(crate) fn finish(&mut self) -> String {
        self.look_at = 0;
        std::mem::take(&mut self.held)
    }
}

impl ContentFilter {
    /// How much of the text can be passed on, because nothing that begins in it can end later. Only a
    /// card's number, a bearer token and a private key have white space within.
    fn passable(&self, text: &str) -> usize {
        let is_space = |character: char| character.is_ascii_whitespace();
        let word_before = |text: &str| text.rfind(is_space).map_or(0, |space| space + 1);
        let mut end = word_before(text);
        // A word that can go on after white space is held with it.
        loop {
            let before = text[..end].trim_end_matches(is_space);
            let word = word_before(before);
            let goes_on = before.ends_with(|last: char| last.is_ascii_digit() || last == '-')
                || before.ends_with("Bearer")
                || before.ends_with("bearer");
            if before.is_empty() || !goes_on {
                break;
            }
            end = word;
        }
        let passed = &text[..end];
        // The first frame that does not end, also if what it holds looks like another one.
        let mut from = 0;
        while let Some(begin) = self.frame_begin.find_at(passed, from) {
            match self.frame_end.find_at(passed, begin.end()) {
                Some(last) => from = last.end(),
                None => return begin.start(),
            }
        }
        // A first line that is not complete yet.
        match passed.rfind(FRAME_MARK) {
            Some(begin) if begin >= from && passed.len() - begin < MAX_FRAME_LINE => begin,
            _ => end,
        }
    }
}

#[cfg(test)]
mod tests;

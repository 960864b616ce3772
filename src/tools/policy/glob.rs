//! One part of a pattern: text in which `*` stands for any characters and `?` for one.
//!
//! `wildmatch` needs time proportional to the product of both lengths if a pattern has text after a wildcard. It is
//! used only for patterns with `?`; all others are compared in linear time, with the methods of `str`.

use wildmatch::WildMatch;

/// The work of one character of a part with `?`.
const CHARACTER_WORK: usize = 8;

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Glob {
    /// No wildcards.
    Literal(String),
    /// The texts before, between and after its `*`.
    Stars(Vec<String>),
    /// A pattern with `?`.
    Wild(WildMatch),
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        if pattern.contains('?') {
            Self::Wild(WildMatch::new(pattern))
        } else if pattern.contains('*') {
            Self::Stars(pattern.split('*').map(str::to_owned).collect())
        } else {
            Self::Literal(pattern.to_owned())
        }
    }

    /// Whether it matches a name, byte for byte.
    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Self::Literal(text) => text == name,
            Self::Stars(parts) => match parts.as_slice() {
                [first, middle @ .., last] => is_between(name, first, middle, last),
                _ => false,
            },
            Self::Wild(pattern) => pattern.matches(name),
        }
    }

    /// The only name that it matches; `None` if it has wildcards.
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Stars(_) | Self::Wild(_) => None,
        }
    }

    /// The work of matching a name: 0 if only both ends are compared.
    pub(super) fn work(&self) -> usize {
        match self {
            Self::Literal(_) => 0,
            Self::Stars(parts) => parts.len().saturating_sub(2),
            Self::Wild(pattern) => pattern.pattern().len().saturating_mul(CHARACTER_WORK),
        }
    }
}

/// Whether a name begins with `first`, ends with `last`, and has all of `middle` in their order between them.
fn is_between(name: &str, first: &str, middle: &[String], last: &str) -> bool {
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in middle {
        // The leftmost match leaves most text for the following parts.
        let Some(at) = rest.find(part.as_str()) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;

//! The head of a response: its status and headers.

use http::StatusCode;
use http::header::{HeaderMap, HeaderValue, LOCATION};

/// The head of a response.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

impl Head {
    pub(crate) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The usual words for the status; empty if there are none.
    pub(crate) fn reason(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or_default()
    }

    /// Names and values. A value has bytes, and each of them is one character.
    pub(crate) fn pairs(&self) -> Vec<[String; 2]> {
        let latin1 = |value: &HeaderValue| value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
        self.headers.iter().map(|(name, value)| [name.to_string(), latin1(value)]).collect()
    }

    /// Whether it asks for another request.
    pub(crate) fn is_redirect(&self) -> bool {
        self.location().is_some()
    }

    /// The target of a redirect.
    pub(super) fn location(&self) -> Option<&HeaderValue> {
        let is_redirect = matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        self.headers.get(LOCATION).filter(|_| is_redirect)
    }
}

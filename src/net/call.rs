//! Calls of `fetch`, as guests send them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// A call of `fetch`. The guests make these objects; their fields come from the script.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum FetchCall {
    /// Sends a request and returns the head of the response, with as much of its body as is there already.
    Open(Box<FetchRequest>),
    /// Returns the next part of a body.
    Read(u64),
    /// Ends a request or a response that is not wanted any more.
    Close(u64),
}

/// A request as a script writes it. Only the size of it is checked.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FetchRequest {
    /// The guest's number for it, by which it reads the body and ends the request.
    pub(crate) id: u64,
    pub(crate) url: String,
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(crate) body: Option<GuestBytes>,
    #[serde(default)]
    pub(crate) redirect: RedirectMode,
    /// How long all of it may take. Shortens the host's own limit.
    #[serde(default)]
    pub(crate) timeout_ms: Option<f64>,
}

/// Bytes of a body, as guests write and read them. What is text stays text, so that recordings can mask what is secret
/// in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GuestBytes {
    Text(String),
    Base64(String),
}

impl GuestBytes {
    /// The number of bytes as they are written.
    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Base64(text) => text.len(),
        }
    }

    /// Decodes the bytes.
    ///
    /// # Errors
    ///
    /// If the text is not base64.
    pub(crate) fn into_bytes(self) -> Result<Vec<u8>, base64::DecodeError> {
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Base64(text) => STANDARD.decode(text),
        }
    }
}

impl From<&[u8]> for GuestBytes {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(STANDARD.encode(bytes)),
        }
    }
}

/// What a redirect leads to, in the words of the fetch standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RedirectMode {
    /// The request for its target.
    #[default]
    Follow,
    /// An error.
    Error,
    /// The redirect itself as the response.
    Manual,
}

impl FetchCall {
    /// Bytes of what the script wrote.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Open(request) => {
                let headers = request.headers.iter().map(|(name, value)| name.len() + value.len());
                let line = request.method.len() + request.url.len();
                line + headers.sum::<usize>() + request.body.as_ref().map_or(0, GuestBytes::len)
            }
            Self::Read(_) | Self::Close(_) => 0,
        }
    }
}

//! The answers to runs over REST.

use std::sync::Arc;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use crate::server::answer::Answer;
use crate::server::http::problem;
use crate::server::http::responses::JSON;

/// The field with the content that a script emitted. Answers to tool calls have this content beside the structured
/// content.
pub(in crate::server::http) const CONTENT: &str = "content";

/// The answer to a run. Cheap to clone, because kept answers are read several times.
#[derive(Clone)]
pub(in crate::server::http) enum RunAnswer {
    /// The run began and ended; its result as JSON text.
    Ended(Arc<str>),
    /// The run did not begin; the object of its error.
    Refused(Arc<Value>),
}

impl RunAnswer {
    pub(in crate::server::http) fn new(answer: Answer) -> Self {
        let mut structured = answer.structured;
        let code = structured["error"]["code"].as_str().unwrap_or_default();
        // Answers to calls that never became runs have no times.
        let has_run = structured.get("executionTimeMs").is_some() && !problem::is_for_now(code);
        if !has_run {
            return Self::Refused(Arc::new(structured["error"].take()));
        }
        // The first block repeats the structured content as text.
        let blocks = answer.content.iter().skip(1);
        let content: Vec<Value> = blocks.filter_map(|block| serde_json::to_value(block).ok()).collect();
        if !content.is_empty() {
            structured[CONTENT] = content.into();
        }
        Self::Ended(structured.to_string().into())
    }

    /// Whether the run did not begin.
    pub(in crate::server::http) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Approximate bytes of memory that it takes.
    pub(in crate::server::http) fn bytes(&self) -> usize {
        match self {
            Self::Ended(text) => text.len(),
            // Bounded: a code, a message and a hint of the server.
            Self::Refused(_) => 4096,
        }
    }

    pub(in crate::server::http) fn to_response(&self) -> Response {
        match self {
            Self::Ended(text) => json(StatusCode::OK, text.to_string()),
            Self::Refused(error) => problem::refused(error),
        }
    }
}

/// An answer of JSON. A proxy must not cache what scripts return.
pub(in crate::server::http) fn json(status: StatusCode, text: String) -> Response {
    let no_store = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (status, [no_store, (CONTENT_TYPE, JSON)], text).into_response()
}

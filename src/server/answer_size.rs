//! Tells the connection of a request over HTTP how large its answer is.
//!
//! Notifications come before the answer on the same stream. If the client does not read them, the answer waits behind
//! them, and the connection knows only what hyper has taken.

use std::sync::Arc;

use rmcp::model::Extensions;

/// Who is told the size of the answer to a request, in the request's extensions over HTTP.
#[derive(Clone)]
pub(crate) struct AnswerSize(Arc<dyn Fn(usize) + Send + Sync>);

impl AnswerSize {
    #[cfg(feature = "http")]
    pub(crate) fn new(note: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Self(Arc::new(note))
    }

    /// The value of a request; `None` if it did not come over HTTP.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<Self> {
        extensions.get::<http::request::Parts>()?.extensions.get().cloned()
    }

    /// Tells that the answer is made, and has about this many bytes.
    pub(crate) fn note(&self, bytes: usize) {
        (self.0)(bytes);
    }
}

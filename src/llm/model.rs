//! The interface of language models.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// A language model that scripts can ask: a provider, the client of a server, or the embedder's own.
///
/// Dropping a future or a stream cancels the call. cx bounds the time of both, and the tokens before
/// it calls; an implementation need not. A panic is a failure of the model: `MODEL_ERROR`.
pub trait LanguageModel: Send + Sync + 'static {
    /// Answers a conversation.
    ///
    /// # Errors
    ///
    /// Why there is no answer. The script gets it with the code of its [kind](ModelError::kind).
    fn complete(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>>;

    /// Answers a conversation piece by piece. The last piece is [`ModelPiece::End`]; a stream that
    /// ends without it was cut. The stream is dropped early if the script reads no further.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    fn stream(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>>;
}

impl<M: LanguageModel + ?Sized> LanguageModel for Arc<M> {
    fn complete(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        (**self).complete(request)
    }

    fn stream(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        (**self).stream(request)
    }
}

/// The pieces of an answer.
pub type ModelStream = BoxStream<'static, Result<ModelPiece, ModelError>>;

/// A conversation for a model to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The model; `None` for the default of the provider or of the client.
    pub model: Option<String>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The messages, the last one of which is the user's.
    pub messages: Vec<ModelMessage>,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelMessage {
    /// The role of its author.
    pub role: ModelRole,
    /// The text.
    pub text: String,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelRole {
    /// The script, for its user.
    User,
    /// The model, earlier.
    Assistant,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// The model that gave the answer, if that is known.
    pub model: Option<String>,
    /// Why it ends, in the provider's word, such as `end_turn` or `length`.
    pub stop_reason: Option<String>,
    /// The tokens that the answer took, if they are reported.
    pub usage: Option<ModelUsage>,
}

impl ModelAnswer {
    /// An answer that is only a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the tokens that it took.
    #[must_use]
    pub fn with_usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Some(ModelUsage { input_tokens, output_tokens });
        self
    }

    /// Sets the model that gave it.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets why it ends.
    #[must_use]
    pub fn with_stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }
}

/// The tokens that an answer took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelUsage {
    /// Tokens of the conversation.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelPiece {
    /// More of the text.
    Text(String),
    /// The end, with everything but the text.
    End(ModelAnswer),
}

/// A call of a model that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// The kind of failure, from which the script's error code follows.
    pub kind: ModelErrorKind,
    /// What went wrong, for the script's author. Without secrets.
    pub message: String,
    /// How long to wait before a retry can succeed.
    pub retry_after: Option<Duration>,
    /// Whether the provider has refused the request, which then has taken no tokens, whatever its kind.
    pub(crate) is_free: bool,
}

impl ModelError {
    /// An error with a kind and a message.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, is_free: false }
    }
}

/// Why a call of a model failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The model cannot be reached: nothing was sent.
    Unavailable,
    /// The call was not permitted.
    Refused,
    /// The provider's rate limit.
    RateLimited,
    /// The provider failed, or its answer cannot be used.
    Failed,
}

/// A model that can be asked, with its name in results.
#[derive(Clone)]
pub(crate) struct NamedModel {
    pub(crate) name: Arc<str>,
    /// The model of requests that name none, if it is known: not that of a client or of an embedder.
    pub(crate) default_model: Option<Arc<str>>,
    pub(crate) model: Arc<dyn LanguageModel>,
}

impl fmt::Debug for NamedModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("NamedModel").field(&self.name).finish()
    }
}

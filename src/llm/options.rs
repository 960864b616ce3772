//! The operator's options of language models.

use std::fmt;
use std::time::Duration;

use crate::error::{Error, OptionName};

/// Whether scripts may ask a language model, which one, and within what bounds.
///
/// This is plain data: set the fields that matter and take the rest from `..LlmOptions::default()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmOptions {
    /// Which scripts have a model.
    pub access: LlmAccess,
    /// The provider to ask. Without one, scripts can only ask through the client of a server.
    pub provider: Option<ModelProvider>,
    /// Whether a client that offers its model (sampling) comes before the provider.
    pub prefer_client: bool,
    /// Calls of a model that one run may make, and the most that a client may ask for.
    /// `None`: [`Self::DEFAULT_ROUNDS`], and at most [`Self::MAX_REQUESTED_ROUNDS`].
    pub rounds: Option<u32>,
    /// Tokens of all calls of one run together, prompts and answers, and the most that a client may
    /// ask for. `None`: [`Self::DEFAULT_TOKENS`], and at most [`Self::MAX_REQUESTED_TOKENS`].
    pub tokens: Option<u64>,
    /// Maximum time of one call to a provider. Default: 30 s; at most [`Self::MAX_CALL_TIME`], and not zero.
    pub call_time: Duration,
    /// The models that scripts may name, exactly as they name them. `None`: any. The provider's own
    /// default is always permitted.
    pub allowed_models: Option<Vec<String>>,
    /// The system prompts that may be sent, exactly. `None`: any.
    pub allowed_system_prompts: Option<Vec<String>>,
    /// What happens to secrets and personal data in answers.
    pub content_filter: FilterMode,
}

impl Default for LlmOptions {
    fn default() -> Self {
        Self {
            access: LlmAccess::OnRequest,
            provider: None,
            prefer_client: false,
            rounds: None,
            tokens: None,
            // Long for an answer of a thousand tokens, short enough to fit into a run.
            call_time: Duration::from_secs(30),
            allowed_models: None,
            allowed_system_prompts: None,
            content_filter: FilterMode::Redact,
        }
    }
}

impl LlmOptions {
    /// Default number of calls of a run.
    pub const DEFAULT_ROUNDS: u32 = 10;
    /// Default number of tokens of a run.
    pub const DEFAULT_TOKENS: u64 = 10_000;
    /// Calls that a client may ask for where the operator sets no number: ten times the default.
    pub const MAX_REQUESTED_ROUNDS: u32 = 100;
    /// Tokens that a client may ask for where the operator sets no number: ten times the default.
    pub const MAX_REQUESTED_TOKENS: u64 = 100_000;
    /// Maximum of `rounds`. Results list each call.
    pub const MAX_ROUNDS: u32 = 10_000;
    /// Maximum of `tokens`: what JSON represents exactly.
    pub const MAX_TOKENS: u64 = (1 << 53) - 1;
    /// Maximum of `call_time`.
    pub const MAX_CALL_TIME: Duration = Duration::from_secs(600);

    /// Checks the numbers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] with the first one that is out of bounds.
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |option: OptionName, problem: String| Err(Error::InvalidOptions { option, problem });
        if self.rounds.is_some_and(|rounds| rounds == 0 || rounds > Self::MAX_ROUNDS) {
            return wrong(OptionName::LlmRounds, format!("must be between 1 and {}", Self::MAX_ROUNDS));
        }
        if self.tokens.is_some_and(|tokens| tokens == 0 || tokens > Self::MAX_TOKENS) {
            return wrong(OptionName::LlmTokens, format!("must be between 1 and {}", Self::MAX_TOKENS));
        }
        if self.call_time.is_zero() || self.call_time > Self::MAX_CALL_TIME {
            return wrong(
                OptionName::LlmCallTime,
                format!("must be at most {:?}, and not zero", Self::MAX_CALL_TIME),
            );
        }
        Ok(())
    }

    /// The calls of a run that asks for `asked`.
    pub(crate) fn rounds_of_run(&self, asked: Option<u32>) -> u32 {
        let max = self.rounds.unwrap_or(Self::MAX_REQUESTED_ROUNDS);
        asked.unwrap_or(self.rounds.unwrap_or(Self::DEFAULT_ROUNDS)).min(max)
    }

    /// The tokens of a run that asks for `asked`.
    pub(crate) fn tokens_of_run(&self, asked: Option<u64>) -> u64 {
        let max = self.tokens.unwrap_or(Self::MAX_REQUESTED_TOKENS);
        asked.unwrap_or(self.tokens.unwrap_or(Self::DEFAULT_TOKENS)).min(max)
    }
}

/// Which scripts may ask a language model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LlmAccess {
    /// Scripts whose run asks for it ([`SamplingOptions::enabled`](crate::SamplingOptions::enabled)).
    #[default]
    OnRequest,
    /// All scripts whose run does not decline.
    Always,
    /// No script, whatever its run asks for.
    Never,
}

/// A provider of models, over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelProvider {
    /// The wire format.
    pub kind: ProviderKind,
    /// The model that is asked unless a script names another one.
    pub model: String,
    /// The base address, if it is not the provider's own. Of [`ProviderKind::OpenAi`], that of any
    /// service that is compatible with it, such as `http://localhost:8000/v1`.
    pub url: Option<String>,
    /// The key. It is sent to the provider and nowhere else.
    pub key: Option<ApiKey>,
}

/// The wire format of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderKind {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, and everything that is compatible with them.
    OpenAi,
    /// Google's Gemini.
    Gemini,
    /// Mistral.
    Mistral,
    /// Ollama, on this machine unless `url` says otherwise. Needs no key.
    Ollama,
}

impl ProviderKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Anthropic, Self::OpenAi, Self::Gemini, Self::Mistral, Self::Ollama];

    /// The name in files and in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Mistral => "mistral",
            Self::Ollama => "ollama",
        }
    }

    /// The provider of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The variable that has the key by convention. `None`: no key is needed.
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Mistral => Some("MISTRAL_API_KEY"),
            Self::Ollama => None,
        }
    }
}

/// A key of a provider. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(…)")
    }
}

/// What happens to an answer with secrets or personal data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterMode {
    /// The answer is passed on unchanged.
    Off,
    /// Secrets and personal data are replaced by `[REDACTED_SECRET]` and `[REDACTED_PII]`.
    #[default]
    Redact,
    /// The answer is refused.
    Refuse,
}

impl FilterMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Redact, Self::Refuse];

    /// The name in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Redact => "redact",
            Self::Refuse => "refuse",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

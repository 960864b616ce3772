//! Providers of models over HTTP. The only module that knows their wire formats, by `genai`.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, StopReason, Usage};
use genai::resolver::{AuthData, Endpoint, ProviderConfig};
use genai::webc;
use reqwest::redirect::Policy;

use super::filter::ContentFilter;
use super::model::{
    LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelPiece, ModelRequest, ModelRole, ModelStream,
    ModelUsage, NamedModel,
};
use super::options::{ModelProvider, ProviderKind};
use crate::error::{Error, OptionName, last_source};

/// Time to reach a provider.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Maximum characters of what a provider says about a failure. Some send pages.
const MAX_REASON: usize = 300;

/// A provider, with its connections.
struct Provider {
    client: genai::Client,
    options: ModelProvider,
    /// What a provider says about a failure can have the key in it.
    filter: Arc<ContentFilter>,
}

/// Makes a client of a provider. It connects when it is first asked.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the key is missing or the address is not one, or TLS cannot be set up.
pub(crate) fn connect(options: &ModelProvider) -> Result<NamedModel, Error> {
    let wrong = |option: OptionName, problem: String| Error::InvalidOptions { option, problem };
    let kind = match options.kind {
        ProviderKind::Anthropic => AdapterKind::Anthropic,
        // Mistral's interface is that of OpenAI, at another address.
        ProviderKind::OpenAi | ProviderKind::Mistral => AdapterKind::OpenAI,
        ProviderKind::Gemini => AdapterKind::Gemini,
        ProviderKind::Ollama => AdapterKind::Ollama,
    };
    let auth = match (&options.key, options.kind.key_variable()) {
        (Some(key), _) => AuthData::from_single(key.expose()),
        // A self-hosted service may need no key, but the header must have a value.
        (None, None) => AuthData::from_single("none"),
        (None, Some(_)) if options.kind == ProviderKind::OpenAi && options.url.is_some() => {
            AuthData::from_single("none")
        }
        (None, Some(variable)) => {
            let name = options.kind.as_str();
            return Err(wrong(
                OptionName::LlmProvider,
                format!("`{name}` needs a key: set the variable {variable}"),
            ));
        }
    };
    let mistral = (options.kind == ProviderKind::Mistral).then(|| "https://api.mistral.ai/v1/".to_owned());
    let url = options.url.clone().or(mistral);
    let endpoint = match url {
        None => None,
        Some(url) => {
            let parsed =
                reqwest::Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            if parsed.is_none() {
                return Err(wrong(
                    OptionName::LlmUrl,
                    "expected an address that begins with https:// or http://".to_owned(),
                ));
            }
            // Paths are added to it.
            Some(Endpoint::from_owned(if url.ends_with('/') { url } else { format!("{url}/") }))
        }
    };
    let filter = ContentFilter::new()
        .ok_or_else(|| wrong(OptionName::Llm, "the content filter cannot be made".to_owned()))?;
    let client = genai::Client::builder()
        .with_reqwest(http()?)
        .with_adapter_kind(kind)
        .append_provider_config(kind, ProviderConfig { endpoint, auth: Some(auth) })
        .build()
        .map_err(|error| wrong(OptionName::LlmProvider, error.to_string()))?;
    let provider = Arc::new(Provider { client, options: options.clone(), filter: Arc::new(filter) });
    Ok(NamedModel { name: options.kind.as_str().into(), model: Arc::new(Shared(provider)) })
}

/// Connections that follow no redirects, so that the key goes to the configured address only, and that take no
/// compressed bodies, because a megabyte of one can become gigabytes.
fn http() -> Result<reqwest::Client, Error> {
    // As the transports of MCP: ring, unless the process has a provider already.
    let _made_already = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIME)
        .no_gzip()
        .tcp_nodelay(true)
        .referer(false)
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| {
            let problem = format!("HTTP cannot be used: {}", cause(&error));
            Error::InvalidOptions { option: OptionName::LlmProvider, problem }
        })
}

/// A provider that futures can keep.
struct Shared(Arc<Provider>);

impl LanguageModel for Shared {
    fn complete(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let provider = Arc::clone(&self.0);
        async move {
            let (model, chat, options) = provider.translate(request);
            let asked = provider.client.exec_chat(&*model, chat, Some(&options)).await;
            let answer = asked.map_err(|error| provider.failure(&error))?;
            let text = answer.texts().concat();
            if text.is_empty() && answer.stop_reason.is_none() {
                return Err(ModelError::new(ModelErrorKind::Failed, "the provider's answer has no text"));
            }
            Ok(ModelAnswer {
                text,
                model: Some(answer.provider_model_iden.model_name.to_string()),
                stop_reason: answer.stop_reason.as_ref().map(|reason| reason.raw().to_owned()),
                usage: usage(&answer.usage),
            })
        }
        .boxed()
    }

    fn stream(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        let provider = Arc::clone(&self.0);
        async move {
            let (model, chat, options) = provider.translate(request);
            let options = options.with_capture_usage(true);
            let asked = provider.client.exec_chat_stream(&*model, chat, Some(&options)).await;
            let answer = asked.map_err(|error| provider.failure(&error))?;
            let pieces = answer.stream.filter_map(move |event| {
                let piece = match event {
                    Ok(ChatStreamEvent::Chunk(chunk)) => Some(Ok(ModelPiece::Text(chunk.content))),
                    Ok(ChatStreamEvent::End(end)) => {
                        Some(end_of_stream(end.captured_stop_reason, end.captured_usage.as_ref(), &model))
                    }
                    Ok(_) => None,
                    Err(error) => Some(Err(provider.failure(&error))),
                };
                std::future::ready(piece)
            });
            Ok(pieces.boxed())
        }
        .boxed()
    }
}

/// The end of a stream. Every provider says why an answer ends; the library also reports an end
/// when a connection was cut.
fn end_of_stream(
    reason: Option<StopReason>,
    used: Option<&Usage>,
    model: &str,
) -> Result<ModelPiece, ModelError> {
    let Some(reason) = reason else { return Err(cut()) };
    Ok(ModelPiece::End(ModelAnswer {
        text: String::new(),
        model: Some(model.to_owned()),
        stop_reason: Some(reason.raw().to_owned()),
        usage: used.and_then(usage),
    }))
}

/// The error of an answer whose connection ended before it did.
fn cut() -> ModelError {
    ModelError::new(ModelErrorKind::Failed, "the provider's answer was cut")
}

/// The tokens of a call, if the provider reports both numbers.
fn usage(usage: &Usage) -> Option<ModelUsage> {
    let count = |tokens: Option<i32>| u64::try_from(tokens?).ok();
    Some(ModelUsage {
        input_tokens: count(usage.prompt_tokens)?,
        output_tokens: count(usage.completion_tokens)?,
    })
}

impl Provider {
    /// The model, and the request in the library's types.
    fn translate(&self, request: ModelRequest) -> (String, ChatRequest, ChatOptions) {
        let model = request.model.unwrap_or_else(|| self.options.model.clone());
        let messages = request.messages.into_iter().map(|message| match message.role {
            ModelRole::User => ChatMessage::user(message.text),
            ModelRole::Assistant => ChatMessage::assistant(message.text),
        });
        let mut chat = ChatRequest::new(messages.collect());
        if let Some(prompt) = request.system_prompt {
            chat = chat.with_system(prompt);
        }
        (model, chat, ChatOptions::default().with_max_tokens(request.max_tokens))
    }

    /// What a script is told of a failure: a status and the provider's reason, without the key, the
    /// address and the request.
    fn failure(&self, error: &genai::Error) -> ModelError {
        let error = innermost(error);
        let name = self.options.kind.as_str();
        let status = error.status().map(|status| status.as_u16());
        let kind = match status {
            Some(429) => ModelErrorKind::RateLimited,
            None if is_unreached(error) => ModelErrorKind::Unavailable,
            _ => ModelErrorKind::Failed,
        };
        let message = match (status, kind) {
            (Some(401 | 403), _) => format!("{name} refuses the key"),
            (Some(status), _) => {
                let reason = self.reason(error).map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("{name} answers with status {status}{reason}")
            }
            (None, ModelErrorKind::Unavailable) => format!("{name} cannot be reached: {}", unreached(error)),
            (None, _) => match error {
                genai::Error::WebStream { .. } => cut().message,
                genai::Error::ChatResponse { body, .. } => {
                    format!("{name} ends its answer with an error: {}", self.clean(&body.to_string()))
                }
                _ => format!("{name} does not answer as expected"),
            },
        };
        let mut failure = ModelError::new(kind, message);
        if kind == ModelErrorKind::RateLimited {
            let header = error.headers().and_then(|headers| headers.get("retry-after"));
            let seconds = header.and_then(|value| value.to_str().ok()?.trim().parse::<u32>().ok());
            failure.retry_after = seconds.map(|seconds| Duration::from_secs(seconds.into()));
        }
        failure
    }

    /// The message in the body of a failed request, if it is in one of the places that are common.
    fn reason(&self, error: &genai::Error) -> Option<String> {
        let body = match error {
            genai::Error::WebModelCall { webc_error, .. }
            | genai::Error::WebAdapterCall { webc_error, .. } => match webc_error {
                webc::Error::ResponseFailedStatus { body, .. } => body,
                _ => return None,
            },
            genai::Error::HttpError { body, .. } => body,
            _ => return None,
        };
        let body: serde_json::Value = crate::json::tree(body, crate::json::budget(body.len())).ok()?;
        let places = ["/error/message", "/0/error/message", "/message", "/error", "/detail"];
        let message = places.iter().find_map(|place| body.pointer(place)?.as_str())?;
        Some(self.clean(message))
    }

    /// A text of the provider, without keys, on one line.
    fn clean(&self, text: &str) -> String {
        let mut text = crate::text::start(text, MAX_REASON * 4).to_owned();
        if let Some(key) = &self.options.key {
            text = text.replace(key.expose(), "[REDACTED_SECRET]");
        }
        let (text, _) = self.filter.redact(&text);
        crate::text::preview(&text, MAX_REASON)
    }
}

/// The error of a request within that of a stream.
fn innermost(error: &genai::Error) -> &genai::Error {
    match error {
        genai::Error::WebStream { error: inner, .. } => inner.downcast_ref().unwrap_or(error),
        _ => error,
    }
}

/// Whether the provider was not reached, so that it has seen nothing.
fn is_unreached(error: &genai::Error) -> bool {
    reqwest_error(error).is_some_and(reqwest::Error::is_connect)
}

fn unreached(error: &genai::Error) -> String {
    reqwest_error(error).map(cause).unwrap_or_default()
}

fn reqwest_error(error: &genai::Error) -> Option<&reqwest::Error> {
    match error {
        genai::Error::WebModelCall { webc_error, .. } | genai::Error::WebAdapterCall { webc_error, .. } => {
            match webc_error {
                webc::Error::Reqwest(error) => Some(error),
                _ => None,
            }
        }
        genai::Error::WebStream { error, .. } => error.downcast_ref(),
        _ => None,
    }
}

/// The cause of an error, without the address, which may contain a secret.
fn cause(error: &reqwest::Error) -> String {
    last_source(error).unwrap_or_else(|| "failed".to_owned())
}

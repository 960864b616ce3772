//! Providers of models over HTTP: sends questions, and reads what comes back within bounds.
//!
//! The libraries for this read a whole response, or a line of any length, before their caller sees its size, so that a
//! provider could take all memory of the process. A question and its answer are a few fields in each wire format, which
//! is less code than a library's types need to be translated.

mod anthropic;
mod conversation;
mod failure;
mod gemini;
mod incoming;
mod ollama;
mod openai;
mod part;
mod pieces;
mod wire;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde_json::Value;

use self::failure::{FailedResponse, Failures};
use self::incoming::{Incoming, ReadFailure, max_whole};
use self::part::AnswerPart;
use self::pieces::StreamedAnswer;
use super::filter::ContentFilter;
use super::model::{
    LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, ModelStream, NamedModel,
};
use super::options::{ApiKey, ModelProvider, ProviderKind};
use crate::error::{Error, OptionName};
use crate::net::media_type::{JSON, media_type};
use crate::net::response::{cause, read_up_to};
use crate::net::tls::{check_clock, install_provider};

/// Time to reach a provider.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// A provider, with its connections.
struct Provider {
    kind: ProviderKind,
    /// The model of requests that name none.
    model: String,
    client: Client,
    /// The address to which paths are added.
    base: Url,
    /// The headers with the key.
    headers: HeaderMap,
    failures: Arc<Failures>,
    /// The last model for which the provider wanted the newer name of the maximum of tokens, and answered then. One is
    /// enough: most programs ask one model.
    newer_name: Mutex<Option<String>>,
}

/// Makes a client of a provider. It connects when it is first asked.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the key is missing or cannot be sent, or the address is not one, or TLS cannot be set
/// up.
pub(crate) fn connect(options: &ModelProvider) -> Result<NamedModel, Error> {
    let wrong = |option: OptionName, problem: String| Error::InvalidOptions { option, problem };
    let kind = options.kind;
    let name = kind.as_str();
    let key = options.key.as_ref().map(ApiKey::expose).filter(|key| !key.is_empty());
    // A self-hosted service may need none.
    let is_self_hosted = kind == ProviderKind::OpenAi && options.url.is_some();
    if let Some(variable) = kind.key_variable().filter(|_| key.is_none() && !is_self_hosted) {
        return Err(wrong(
            OptionName::LlmProvider,
            format!("`{name}` needs a key: set the variable {variable}"),
        ));
    }
    let headers = wire::headers(kind, key).ok_or_else(|| {
        let problem = format!("the key of `{name}` has a character that cannot be sent in a header");
        wrong(OptionName::LlmProvider, problem)
    })?;
    let base = Url::parse(options.url.as_deref().unwrap_or_else(|| wire::default_address(kind)));
    let base = base.ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(|| {
        let problem = "expected an address that begins with https:// or http://";
        wrong(OptionName::LlmUrl, problem.to_owned())
    })?;
    let filter = ContentFilter::new()
        .ok_or_else(|| wrong(OptionName::Llm, "the content filter cannot be made".to_owned()))?;
    let provider = Provider {
        kind,
        model: options.model.clone(),
        client: http()?,
        base,
        headers,
        failures: Arc::new(Failures::new(options, filter)),
        newer_name: Mutex::default(),
    };
    let default_model = Some(options.model.as_str().into());
    Ok(NamedModel { name: name.into(), default_model, model: Arc::new(Shared(Arc::new(provider))) })
}

/// Connections that follow no redirects, so that the key goes to the configured address only, and that take no
/// compressed bodies, because a megabyte of one can become gigabytes. hyper bounds the head of a response: 100 headers.
fn http() -> Result<Client, Error> {
    install_provider();
    Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIME)
        // Another library of the crate switches reqwest's decoding on.
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
            let model = provider.model_of(&request);
            let response = provider.send(&model, &request, false).await?;
            let part = provider.read(response, request.max_tokens).await?;
            if part.text.is_empty() && part.stop_reason.is_none() {
                return Err(ModelError::new(ModelErrorKind::Failed, "the provider's answer has no text"));
            }
            let usage = part.usage();
            let AnswerPart { text, model: answered_by, stop_reason, .. } = part;
            Ok(ModelAnswer { text, model: Some(answered_by.unwrap_or(model)), stop_reason, usage })
        }
        .boxed()
    }

    fn stream(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        let provider = Arc::clone(&self.0);
        async move {
            let model = provider.model_of(&request);
            let response = provider.send(&model, &request, true).await?;
            let incoming = Incoming::new(response, wire::framing(provider.kind), request.max_tokens);
            let failures = Arc::clone(&provider.failures);
            Ok(StreamedAnswer::new(provider.kind, failures, model, incoming).into_stream())
        }
        .boxed()
    }
}

impl Provider {
    fn model_of(&self, request: &ModelRequest) -> String {
        request.model.as_ref().unwrap_or(&self.model).clone()
    }

    /// Sends a question. Returns the head of the response, whose body the caller reads. A service with OpenAI's format
    /// that refuses the older name of the maximum of tokens is asked once more, with the newer one.
    async fn send(
        &self,
        model: &str,
        request: &ModelRequest,
        is_streamed: bool,
    ) -> Result<Response, ModelError> {
        let mut body = wire::body(self.kind, &self.base, model, request, is_streamed);
        if self.newer_name.lock().as_deref() == Some(model) {
            openai::use_newer_name(&mut body);
        }
        let response = self.post(model, &body, is_streamed).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let refused = FailedResponse::read(response).await;
        let is_about_name = self.kind == ProviderKind::OpenAi && refused.names(openai::NEWER_NAME);
        if !is_about_name || !openai::use_newer_name(&mut body) {
            if is_about_name {
                // Another service may answer at this address by now, which knows the older name only.
                self.newer_name.lock().take_if(|known| known == model);
            }
            return Err(self.failures.unsuccessful(&refused));
        }
        let response = self.post(model, &body, is_streamed).await?;
        if !response.status().is_success() {
            return Err(self.failures.unsuccessful(&FailedResponse::read(response).await));
        }
        *self.newer_name.lock() = Some(model.to_owned());
        Ok(response)
    }

    async fn post(&self, model: &str, body: &Value, is_streamed: bool) -> Result<Response, ModelError> {
        let address = wire::address(self.kind, &self.base, model, is_streamed);
        check_clock(&address, SystemTime::now()).map_err(|problem| self.failures.unreached(problem))?;
        let sending = self
            .client
            .post(address)
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, JSON)
            .body(body.to_string())
            .send();
        sending.await.map_err(|error| self.failures.unanswered(&error))
    }

    /// Reads a whole answer for which `max_tokens` were asked for.
    async fn read(&self, mut response: Response, max_tokens: u32) -> Result<AnswerPart, ModelError> {
        if !is_json(&response) {
            return Err(self.failures.unexpected());
        }
        let max = max_whole(max_tokens);
        let reading = read_up_to(&mut response, max).await.map_err(|_error| ReadFailure::Broken);
        let body = reading.and_then(|body| body.ok_or(ReadFailure::TooLarge(max)));
        let body = body.map_err(|failure| self.failures.unread(&failure))?;
        let text = std::str::from_utf8(&body).ok();
        let part = text.and_then(|text| wire::whole(self.kind, text));
        let part = part.ok_or_else(|| self.failures.unexpected())?;
        match &part.error {
            Some(error) => Err(self.failures.reported(error)),
            None => Ok(part),
        }
    }
}

/// Whether a response says that it is JSON. Nothing is expected of streams, for which services have several types.
fn is_json(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| media_type(kind.as_bytes()) == JSON)
}

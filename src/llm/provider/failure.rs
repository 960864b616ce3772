//! What a script is told when a provider does not answer: a status and the provider's reason, without the key, the
//! address and the request.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::RETRY_AFTER;
use tokio::time::timeout;

use super::incoming::{ReadFailure, read_up_to};
use crate::error::last_source;
use crate::json;
use crate::llm::filter::ContentFilter;
use crate::llm::model::{ModelError, ModelErrorKind};
use crate::llm::options::{ApiKey, ModelProvider};
use crate::text;

/// Maximum bytes and time for the body of a failed request. It is read for one sentence.
const MAX_REASON_BODY: usize = 64 << 10;
const REASON_TIME: Duration = Duration::from_secs(2);

/// Maximum characters of what a provider says about a failure. Some send pages.
const MAX_REASON: usize = 300;

/// Where the sentence is, in the bodies of services that are common.
const REASONS: &[&str] = &["/error/message", "/0/error/message", "/message", "/error", "/detail"];

/// Makes the errors of one provider.
pub(crate) struct Failures {
    name: &'static str,
    key: Option<ApiKey>,
    /// What a provider says about a failure can have the key in it.
    filter: ContentFilter,
}

impl Failures {
    pub(crate) fn new(options: &ModelProvider, filter: ContentFilter) -> Self {
        Self { name: options.kind.as_str(), key: options.key.clone(), filter }
    }

    /// The request has no response.
    pub(crate) fn unanswered(&self, error: &reqwest::Error) -> ModelError {
        if !error.is_connect() {
            return self.unexpected();
        }
        let message = format!("{} cannot be reached: {}", self.name, cause(error));
        ModelError::new(ModelErrorKind::Unavailable, message)
    }

    /// The response has a status other than success.
    pub(crate) async fn unsuccessful(&self, response: Response) -> ModelError {
        let name = self.name;
        match response.status().as_u16() {
            401 | 403 => failed(format!("{name} refuses the key")),
            status => {
                let is_limited = status == 429;
                let retry_after = retry_after(&response).filter(|_| is_limited);
                let kind = if is_limited { ModelErrorKind::RateLimited } else { ModelErrorKind::Failed };
                let reason = self.reason(response).await;
                let message = format!("{name} answers with status {status}{reason}");
                ModelError { retry_after, ..ModelError::new(kind, message) }
            }
        }
    }

    /// The answer cannot be read to its end.
    pub(crate) fn unread(&self, failure: &ReadFailure) -> ModelError {
        match failure {
            ReadFailure::Broken => cut(),
            ReadFailure::TooLarge(max) => {
                failed(format!("{}'s answer is larger than {} MB", self.name, max / (1024 * 1024)))
            }
        }
    }

    /// The answer is an error, or ends with one.
    pub(crate) fn reported(&self, message: &str) -> ModelError {
        failed(format!("{} ends its answer with an error: {}", self.name, self.clean(message)))
    }

    /// The response is not what the wire format says.
    pub(crate) fn unexpected(&self) -> ModelError {
        failed(format!("{} does not answer as expected", self.name))
    }

    /// The message in the body of a failed request, after a colon; empty if it is in none of the common places.
    async fn reason(&self, mut response: Response) -> String {
        let reading = timeout(REASON_TIME, read_up_to(&mut response, MAX_REASON_BODY));
        let Ok(Ok(body)) = reading.await else { return String::new() };
        let message = std::str::from_utf8(&body).ok().and_then(reason_in);
        message.map(|message| format!(": {}", self.clean(&message))).unwrap_or_default()
    }

    /// A text of the provider, without keys, on one line.
    fn clean(&self, message: &str) -> String {
        let mut message = text::start(message, MAX_REASON * 4).to_owned();
        if let Some(key) = &self.key {
            message = message.replace(key.expose(), "[REDACTED_SECRET]");
        }
        let (message, _) = self.filter.redact(&message);
        text::preview(&message, MAX_REASON)
    }
}

fn failed(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Failed, message)
}

/// The error of an answer whose connection ended before it did.
pub(crate) fn cut() -> ModelError {
    failed("the provider's answer was cut".to_owned())
}

fn reason_in(body: &str) -> Option<String> {
    let body = json::tree(body, json::budget(body.len())).ok()?;
    REASONS.iter().find_map(|pointer| body.pointer(pointer)?.as_str()).map(str::to_owned)
}

/// The seconds of `Retry-After`.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds: u32 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.into()))
}

/// The cause of an error, without the address, which may contain a secret.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    last_source(error).unwrap_or_else(|| "failed".to_owned())
}

//! What a script is told when a provider does not answer: a status and the provider's reason, without the key, the
//! address and the request.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;
use tokio::time::timeout;

use super::incoming::ReadFailure;
use crate::durations;
use crate::json;
use crate::llm::filter::{ContentFilter, REDACTED_SECRET};
use crate::llm::model::{ModelError, ModelErrorKind};
use crate::llm::options::{ApiKey, ModelProvider};
use crate::net::response::{cause, read_up_to};
use crate::text;

/// Maximum bytes and time for the body of a failed request. It is read for one sentence.
const MAX_REASON_BODY: usize = 64 << 10;
const REASON_TIME: Duration = Duration::from_secs(2);

/// Maximum characters of what a provider says about a failure. Some send pages.
const MAX_REASON: usize = 300;

/// Minimum bytes of a part of the key that is not shown. The last four, by which services name a key, are shown.
const MIN_KEY_PART: usize = 8;

/// Maximum pause that a script is told of. Quotas of a day exist.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the sentence is, in the bodies of services that are common.
const REASONS: &[&str] = &[
    "/error/message",
    "/0/error/message",
    "/message",
    "/error",
    "/detail",
    "/detail/0/msg",
    "/message/detail/0/msg",
];

/// A response with a status other than success.
pub(crate) struct FailedResponse {
    status: u16,
    /// The pause that it asks for.
    retry_after: Option<Duration>,
    /// The body, if it is JSON and was read.
    body: Value,
}

impl FailedResponse {
    /// Reads what a response says. The reason for 401 is left out: it can have a part of the key.
    pub(crate) async fn read(response: Response) -> Self {
        let status = response.status().as_u16();
        let pause = retry_after(response.headers());
        let body = if status == 401 { Value::Null } else { body_of(response).await.unwrap_or_default() };
        // A service that is overloaded says too when to come back, with another status.
        Self { status, retry_after: pause.or_else(|| retry_delay(&body)), body }
    }

    /// Whether the provider refuses what it was sent, and names this field in the reason.
    pub(crate) fn names(&self, field: &str) -> bool {
        self.status == 400 && reason_in(&self.body).is_some_and(|reason| reason.contains(field))
    }
}

/// Makes the errors of one provider.
pub(crate) struct Failures {
    name: &'static str,
    key: Option<ApiKey>,
    /// What a provider says about a failure can have the key in it.
    filter: ContentFilter,
}

impl Failures {
    pub(crate) fn new(options: &ModelProvider, filter: ContentFilter) -> Self {
        let key = options.key.clone().filter(|key| !key.expose().is_empty());
        Self { name: options.kind.as_str(), key, filter }
    }

    /// The request has no response.
    pub(crate) fn unanswered(&self, error: &reqwest::Error) -> ModelError {
        if !error.is_connect() {
            return self.unexpected();
        }
        self.unreached(&cause(error))
    }

    /// The request was not sent.
    pub(crate) fn unreached(&self, problem: &str) -> ModelError {
        let message = format!("{} cannot be reached: {problem}", self.name);
        ModelError::new(ModelErrorKind::Unavailable, message)
    }

    /// The response has a status other than success.
    pub(crate) fn unsuccessful(&self, response: &FailedResponse) -> ModelError {
        let name = self.name;
        let status = response.status;
        // What is wrong with a request is found before a model gets it. These say that something has ended it since:
        // the time (408), a failure of the model (424), the client (499).
        let is_free = matches!(status, 400..500) && !matches!(status, 408 | 424 | 499);
        if status == 401 {
            return ModelError { is_free, ..failed(format!("{name} refuses the key")) };
        }
        let kind = if status == 429 { ModelErrorKind::RateLimited } else { ModelErrorKind::Failed };
        let reason = reason_in(&response.body).map(|reason| format!(": {}", self.clean(reason)));
        let message = format!("{name} answers with status {status}{}", reason.unwrap_or_default());
        ModelError { retry_after: response.retry_after, is_free, ..ModelError::new(kind, message) }
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

    /// A text of the provider, without keys, parts of the own one, and hidden characters.
    fn clean(&self, message: &str) -> String {
        let key = self.key.as_ref().map(ApiKey::expose).unwrap_or_default();
        // Before the text is cut: the rest of a key that is cut can be shorter than a part.
        let whole = if key.is_empty() { None } else { Some(message.replace(key, REDACTED_SECRET)) };
        let message = without_parts_of(key, text::start(whole.as_deref().unwrap_or(message), MAX_REASON * 4));
        let (message, _) = self.filter.redact(&message);
        text::visible_preview(&message, MAX_REASON)
    }
}

fn failed(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Failed, message)
}

/// The error of an answer whose connection ended before it did.
pub(crate) fn cut() -> ModelError {
    failed("the provider's answer was cut".to_owned())
}

/// Replaces all parts of the key. They are compared as bytes: a key may have other characters than ASCII, and a part of
/// it can end within one.
fn without_parts_of(key: &str, text: &str) -> String {
    let text = text.as_bytes();
    let parts: HashSet<&[u8]> = key.as_bytes().windows(MIN_KEY_PART).collect();
    let is_part = |end: usize| {
        let begins = end.checked_sub(MIN_KEY_PART);
        begins.and_then(|begin| text.get(begin..end)).is_some_and(|part| parts.contains(part))
    };
    let mut shown = Vec::with_capacity(text.len());
    let (mut copied, mut end) = (0, MIN_KEY_PART);
    while end <= text.len() {
        if is_part(end) {
            shown.extend_from_slice(&text[copied..end - MIN_KEY_PART]);
            shown.extend_from_slice(REDACTED_SECRET.as_bytes());
            while is_part(end + 1) {
                end += 1;
            }
            copied = end;
            end += MIN_KEY_PART;
        } else {
            end += 1;
        }
    }
    shown.extend_from_slice(&text[copied..]);
    String::from_utf8_lossy(&shown).into_owned()
}

/// The body of a failed request, if it is JSON.
async fn body_of(mut response: Response) -> Option<Value> {
    let reading = timeout(REASON_TIME, read_up_to(&mut response, MAX_REASON_BODY));
    let body = reading.await.ok()?.ok()??;
    let body = std::str::from_utf8(&body).ok()?;
    json::tree(body, json::budget(body.len())).ok()
}

fn reason_in(body: &Value) -> Option<&str> {
    REASONS.iter().find_map(|pointer| body.pointer(pointer)?.as_str())
}

/// The pause of `Retry-After`.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    durations::retry_after(value, SystemTime::now(), MAX_RETRY_AFTER)
}

/// The pause that Gemini asks for, which sends no such header: seconds, as in `8.5s`.
fn retry_delay(body: &Value) -> Option<Duration> {
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    durations::retry_after(delay.strip_suffix('s')?, SystemTime::now(), MAX_RETRY_AFTER)
}

#[cfg(test)]
mod tests;

//! Parses a server's messages, independently of the transport.

use std::borrow::Cow;

use rmcp::model::{ErrorCode, ErrorData, ProgressNotificationParam};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::errors::{MESSAGE_BYTES, is_own_code, shortened};
use crate::json::numbers;

/// The top level of an incoming message. Its parts are parsed when their type is known.
#[derive(Deserialize)]
pub(crate) struct IncomingMessage<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
    /// Whether it had numbers that JSON does not allow; they were replaced by null.
    #[serde(skip)]
    pub(crate) is_mended: bool,
}

/// Maximum bytes of a notification. Longer ones are ignored, except announcements that a list has
/// changed: a parsed notification can take 90 times its bytes.
pub(crate) const MAX_NOTIFICATION_BYTES: usize = 64 * 1024;

/// The progress of a call.
#[derive(Deserialize)]
pub(crate) struct ProgressNotification {
    pub(crate) params: ProgressNotificationParam,
}

impl<'a> IncomingMessage<'a> {
    /// Parses a message. `mended` receives its corrected text if it has numbers that JSON does not allow.
    ///
    /// # Errors
    ///
    /// If it is not JSON, or not a message.
    pub(crate) fn parse(text: &'a [u8], mended: &'a mut Option<Vec<u8>>) -> Result<Self, serde_json::Error> {
        let parsed = serde_json::from_slice(text);
        if parsed.is_err() {
            *mended = numbers::nulled(text);
            if let Some(text) = mended {
                let message = serde_json::from_slice(text)?;
                return Ok(Self { is_mended: true, ..message });
            }
        }
        parsed
    }

    /// The result with marks in place of the numbers that JSON does not allow, for Python scripts, which can receive
    /// them. `text` is the message as it was received. `None` if it had no such numbers.
    pub(crate) fn marked_result(&self, text: &[u8]) -> Option<Box<RawValue>> {
        if !self.is_mended || self.error.is_some() {
            return None;
        }
        let marked = numbers::marked(text)?;
        let message: IncomingMessage<'_> = serde_json::from_slice(&marked).ok()?;
        message.result.map(ToOwned::to_owned)
    }
}

/// Answers a request of the server that no other code answers: `ping` with a result, everything else with an error,
/// because this client offers no capability for it. `None` if the request's id cannot be echoed.
pub(crate) fn answer_to(method: &str, id: &RawValue) -> Option<Value> {
    // The id is echoed unchanged, so it must be a valid id. A number may have a form of one and be none: `1e999`.
    let is_id =
        id.get().len() <= 256 && matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    let id: Value = is_id.then(|| serde_json::from_str(id.get()).ok()).flatten()?;
    Some(if method == "ping" {
        json!({ "jsonrpc": "2.0", "id": id, "result": {} })
    } else {
        let message = "this client does not support it";
        let error = json!({ "code": ErrorCode::METHOD_NOT_FOUND.0, "message": message });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    })
}

/// Parses a server's error. The codes that the transports use for their own errors are not
/// available to the server.
pub(crate) fn read_error(error: &RawValue) -> Result<ErrorData, serde_json::Error> {
    #[derive(Deserialize)]
    struct Written<'a> {
        code: ErrorCode,
        #[serde(borrow)]
        message: Cow<'a, str>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let written: Written<'_> = serde_json::from_str(error.get())?;
    // Longer data is never shown, and its tree could be large.
    let data = written.data.filter(|data| data.get().len() <= MESSAGE_BYTES);
    let data = data.map(|data| serde_json::from_str(data.get())).transpose()?;
    let message = shortened(&written.message, MESSAGE_BYTES);
    let code = if is_own_code(written.code) { ErrorCode::INTERNAL_ERROR } else { written.code };
    Ok(ErrorData::new(code, message, data))
}

#[cfg(test)]
mod tests;

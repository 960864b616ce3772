//! What a server's message is, on whatever transport it came.

use std::borrow::Cow;

use rmcp::model::{ErrorCode, ErrorData, ProgressNotificationParam};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::convert::{MESSAGE_BYTES, shortened};
use super::http::is_own_code;

/// The top level of an incoming message; what is inside is read when it is known what it must be.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// Longer notifications are ignored, except that a list has changed: parsed, one could take 90 times its bytes.
pub(super) const MAX_NOTIFICATION_BYTES: usize = 64 * 1024;

/// How far a call has come.
#[derive(Deserialize)]
pub(super) struct ProgressNotification {
    pub(super) params: ProgressNotificationParam,
}

/// What a request of the server is answered: `ping`, and that nothing else is offered. `None` if its
/// id is not one that can be echoed.
pub(super) fn answer_to(method: &str, id: &RawValue) -> Option<Value> {
    // Echoed as it came, so it has to be what an id may be.
    let is_id =
        id.get().len() <= 256 && matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    is_id.then(|| {
        if method == "ping" {
            json!({ "jsonrpc": "2.0", "id": id, "result": {} })
        } else {
            let message = "this client does not support it";
            let error = json!({ "code": ErrorCode::METHOD_NOT_FOUND.0, "message": message });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    })
}

/// A server's error. The codes under which the transports report their own findings are not its to
/// use.
pub(super) fn read_error(error: &RawValue) -> Result<ErrorData, serde_json::Error> {
    #[derive(Deserialize)]
    struct Written<'a> {
        code: ErrorCode,
        #[serde(borrow)]
        message: Cow<'a, str>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let written: Written<'_> = serde_json::from_str(error.get())?;
    // Nobody is shown more than that, and a tree of more could be large.
    let data = written.data.filter(|data| data.get().len() <= MESSAGE_BYTES);
    let data = data.map(|data| serde_json::from_str(data.get())).transpose()?;
    let message = shortened(&written.message, MESSAGE_BYTES);
    let code = if is_own_code(written.code) { ErrorCode::INTERNAL_ERROR } else { written.code };
    Ok(ErrorData::new(code, message, data))
}

#[cfg(test)]
mod tests;

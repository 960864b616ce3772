//! Bounds what is parsed of a client's message. A script's `input` is kept as text.
//!
//! rmcp parses a message into a tree several times, and a tree takes up to 90 times the bytes of
//! its text. The script receives its input as text anyway, so the input is detached from the
//! message before rmcp parses it.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, Extensions};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;

use crate::conventions::TOOLS_CALL;
use crate::json::{self, Json, TreeError};

/// Maximum bytes of a message without its `input`. By default a source may have 1 MB, which escapes
/// can double.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Maximum bytes that such a message may take as a tree, in addition to its strings. This allows
/// about 13,000 numbers or 2,000 small objects, far more than any request has. rmcp makes up to
/// four trees of one message.
const MAX_TREE_BYTES: usize = 3 << 19;

/// Maximum bytes of JSON of a request's id, which its answer repeats, and of its progress token, which its
/// notifications repeat: hundreds of them can wait for a client.
pub(crate) const MAX_ID_BYTES: usize = 256;

/// Maximum bytes of the `_meta` of a request. It is kept as long as the request is handled.
const MAX_META_BYTES: usize = 64 << 10;

/// Maximum bytes of the parameters of `initialize`, and maximum bytes that they may take as a tree, in addition to
/// their strings. They are kept as long as the session, and a server over HTTP has hundreds of sessions. Real clients
/// send about one kilobyte, or some more with an icon.
const MAX_HANDSHAKE_BYTES: usize = 64 << 10;
const MAX_HANDSHAKE_TREE_BYTES: usize = 256 << 10;

/// Maximum bytes of a method that is compared: `"tools/call"` and `"initialize"` fit even if all their letters are
/// escaped.
const MAX_METHOD_BYTES: usize = 64;

/// Maximum number of duplicates of the key `input`. More cannot be a mistake; they stay in the
/// message.
const MAX_INPUTS: usize = 16;

/// The parameter whose value is detached.
const INPUT: &str = "input";

/// The top level of an incoming message. Its parts are parsed when their type is known.
#[derive(Deserialize)]
pub(crate) struct MessageEnvelope<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
    /// An answer's result, which may be `null`.
    #[serde(borrow, default, deserialize_with = "json::present")]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "json::present")]
    pub(crate) error: Option<&'a RawValue>,
}

impl MessageEnvelope<'_> {
    /// Whether the message is an answer to a request, valid or not.
    pub(crate) fn is_answer(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }
}

/// An answer to a request of this server. `None` if it cannot be read.
pub(crate) fn answer(message: &[u8]) -> Option<ClientJsonRpcMessage> {
    serde_json::from_slice(message).ok()
}

/// A replacement for an answer that cannot be read: an error for the task that waits for the answer and would otherwise
/// wait until its timeout. `None` for all other messages.
pub(crate) fn in_place_of_answer(message: &[u8]) -> Option<Vec<u8>> {
    let envelope =
        serde_json::from_slice::<MessageEnvelope<'_>>(message).ok().filter(MessageEnvelope::is_answer)?;
    if answer(message).is_some() {
        return None;
    }
    let id = serde_json::from_str(envelope.id?.get()).ok();
    let error = ErrorData::new(ErrorCode::INVALID_REQUEST, "the answer cannot be read", None);
    serde_json::to_vec(&ClientJsonRpcMessage::error(error, id)).ok()
}

/// A script's input that was detached from its request.
#[derive(Clone, Debug)]
pub(crate) struct DetachedInput(Json);

impl From<DetachedInput> for Json {
    fn from(DetachedInput(input): DetachedInput) -> Self {
        input
    }
}

/// The permits that count the bytes of a request's body, in the request's extensions over HTTP. They are dropped with
/// the request, unless a run takes them, which may outlive the request and has what was in the body.
#[derive(Clone, Debug)]
pub(crate) struct CountedBody(Arc<Mutex<Vec<OwnedSemaphorePermit>>>);

impl CountedBody {
    #[cfg(feature = "http")]
    pub(crate) fn new(permits: Vec<OwnedSemaphorePermit>) -> Self {
        Self(Arc::new(Mutex::new(permits)))
    }

    /// Takes the permits out of the extensions of a request, if they are there.
    pub(crate) fn take(extensions: &Extensions) -> Option<Vec<OwnedSemaphorePermit>> {
        let Self(permits) = extensions.get::<http::request::Parts>()?.extensions.get()?;
        Some(std::mem::take(&mut *permits.lock())).filter(|permits| !permits.is_empty())
    }
}

/// A message that is small enough to be parsed.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    /// The message, with `null` in place of its input.
    pub(crate) message: Cow<'a, [u8]>,
    pub(crate) input: Option<DetachedInput>,
}

/// Why a message is not parsed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TooLarge {
    #[error(
        "the message is {bytes} bytes beside a script's `input`, at most {MAX_MESSAGE_BYTES} are read; pass data as `input`"
    )]
    Bytes { bytes: usize },
    #[error("the message has {0} beside a script's `input`; pass data as `input`")]
    Values(TreeError),
    #[error("the `params` of `initialize` have {0}")]
    HandshakeValues(TreeError),
    #[error("the message's `{part}` has {bytes} bytes; the maximum is {max}")]
    Part { part: &'static str, bytes: usize, max: usize },
}

impl DetachedInput {
    /// Returns the input that was detached from a request over stdio or HTTP.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<Json> {
        let over_http = || extensions.get::<http::request::Parts>()?.extensions.get::<Self>();
        extensions.get::<Self>().or_else(over_http).map(|Self(input)| input.clone())
    }
}

/// Detaches the input of a tool call, and checks the size of the rest.
///
/// A message that is not JSON is returned unchanged if it is short enough; the parser then reports
/// the error.
///
/// # Errors
///
/// If the rest is too large to be parsed.
pub(crate) fn detach(message: &[u8]) -> Result<Incoming<'_>, TooLarge> {
    let incoming = detach_from(message, arguments_of_call)?;
    match std::str::from_utf8(&incoming.message) {
        Ok(text) if text.len() > MAX_ID_BYTES => check_kept(text)?,
        // The parser refuses a message that is not UTF-8.
        Ok(_) | Err(_) => {}
    }
    Ok(incoming)
}

/// Checks the parts of a message that are kept as long as it is handled, or as long as the session that it begins.
fn check_kept(message: &str) -> Result<(), TooLarge> {
    let mut checked = Ok(());
    let (mut is_handshake, mut parameters) = (false, Vec::new());
    let mut check = |part: &'static str, value: &RawValue, max: usize| {
        let bytes = value.get().len();
        if bytes > max {
            checked = Err(TooLarge::Part { part, bytes, max });
        }
    };
    // The parser refuses a message that is not an object.
    let _no_object = json::each_field(message, |name, value| match name {
        "id" => check("id", value, MAX_ID_BYTES),
        "method" => is_handshake |= is_method(value, "initialize"),
        "params" => {
            parameters.push(value);
            let _no_object = json::each_field(value.get(), |name, value| {
                if name == "_meta" {
                    check("_meta", value, MAX_META_BYTES);
                    let _no_object = json::each_field(value.get(), |name, value| {
                        if name == "progressToken" {
                            check("progressToken", value, MAX_ID_BYTES);
                        }
                    });
                }
            });
        }
        _ => {}
    });
    checked?;
    // All of them, if there are several: which one counts is the parser's decision.
    if is_handshake { parameters.into_iter().try_for_each(check_handshake) } else { Ok(()) }
}

/// Checks the parameters of `initialize`.
fn check_handshake(parameters: &RawValue) -> Result<(), TooLarge> {
    let (bytes, max) = (parameters.get().len(), MAX_HANDSHAKE_BYTES);
    if bytes > max {
        return Err(TooLarge::Part { part: "params", bytes, max });
    }
    match json::check(parameters.get(), MAX_HANDSHAKE_TREE_BYTES + bytes) {
        Err(error @ TreeError::TooMany { .. }) => Err(TooLarge::HandshakeValues(error)),
        // The parser refuses what is not valid.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether a value is this name of a method.
fn is_method(value: &RawValue, name: &str) -> bool {
    let text = value.get();
    text.len() <= MAX_METHOD_BYTES
        && serde_json::from_str::<Cow<'_, str>>(text).is_ok_and(|method| method == name)
}

/// As [`detach`], for a message that consists of the arguments of a run, as over REST.
///
/// # Errors
///
/// If the rest is too large to be parsed.
#[cfg(feature = "http")]
pub(crate) fn detach_from_arguments(message: &[u8]) -> Result<Incoming<'_>, TooLarge> {
    detach_from(message, |text| Some(text))
}

fn detach_from(message: &[u8], arguments: fn(&str) -> Option<&str>) -> Result<Incoming<'_>, TooLarge> {
    let mut incoming = Incoming { message: Cow::Borrowed(message), input: None };
    let text = std::str::from_utf8(message).ok();
    if let Some(text) = text
        && let Some(inputs) = arguments(text).and_then(inputs_in)
        // If a key is there twice, the last one counts, as in every object that is parsed into a tree. An input that
        // cannot be parsed stays in the message, and the message is refused.
        && let Some(input) = inputs.last().and_then(|input| Json::parse(input.get()).ok())
    {
        let mut kept = String::with_capacity(text.len().min(MAX_MESSAGE_BYTES));
        let mut end = 0;
        for input in inputs {
            let range = json::range_in(text, input);
            kept.push_str(&text[end..range.start]);
            kept.push_str("null");
            end = range.end;
        }
        kept.push_str(&text[end..]);
        incoming = Incoming { message: Cow::Owned(kept.into_bytes()), input: Some(DetachedInput(input)) };
    }
    let bytes = incoming.message.len();
    if bytes > MAX_MESSAGE_BYTES {
        return Err(TooLarge::Bytes { bytes });
    }
    if let Ok(left) = std::str::from_utf8(&incoming.message)
        && let Err(error @ TreeError::TooMany { .. }) = json::check(left, MAX_TREE_BYTES + bytes)
    {
        return Err(TooLarge::Values(error));
    }
    Ok(incoming)
}

/// Returns `params.arguments` of a tool call, as a slice of its text. `None` if there is none.
fn arguments_of_call(text: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Option<&'a RawValue>,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Parameters<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    if !message.method.is_some_and(|method| is_method(method, TOOLS_CALL)) {
        return None;
    }
    let parameters: Parameters<'_> = serde_json::from_str(message.params?.get()).ok()?;
    parameters.arguments.map(RawValue::get)
}

/// Returns the values of `input` in the arguments of a run, as slices of their text. `None` if there is none.
fn inputs_in(arguments: &str) -> Option<Vec<&RawValue>> {
    let mut inputs = Vec::new();
    let mut count = 0;
    json::each_field(arguments, |name, value| {
        if name == INPUT {
            count += 1;
            if count <= MAX_INPUTS {
                inputs.push(value);
            }
        }
    })
    .ok()?;
    (1..=MAX_INPUTS).contains(&count).then_some(inputs)
}

#[cfg(test)]
mod tests;

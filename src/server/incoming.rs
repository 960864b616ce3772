//! What of a client's message is parsed: a bounded part, and a script's `input` only as text.
//!
//! rmcp reads a message into a tree, several times over, and a tree takes up to 90 times the bytes of its text. A
//! script's input goes to the script as text anyway, so it is taken out of the message before rmcp sees that.

use std::borrow::Cow;

use rmcp::model::Extensions;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{self, Json, TreeError};

/// The most bytes of a message beside its `input`. The largest source there may be by default is 1 MB, which escapes
/// can double.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// What such a message may take as a tree, beside its strings: some 13,000 numbers or 2,000 small objects, far above
/// what any request has. rmcp makes up to four trees of one message.
const MAX_TREE_BYTES: usize = 3 << 19;

/// The parameter of the tools that run scripts whose value is taken out.
const INPUT: &str = "input";

/// A script's input that was taken out of its request.
#[derive(Clone, Debug)]
pub(super) struct DetachedInput(Json);

/// A message that can be parsed.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    /// The message, with `null` where its input was.
    pub(super) message: Cow<'a, [u8]>,
    pub(super) input: Option<DetachedInput>,
}

/// Why a message is not parsed.
#[derive(Debug, thiserror::Error)]
pub(super) enum TooLarge {
    #[error(
        "the message is {bytes} bytes beside a script's `input`, at most {MAX_MESSAGE_BYTES} are read; pass data as `input`"
    )]
    Bytes { bytes: usize },
    #[error("the message has {0} beside a script's `input`; pass data as `input`")]
    Values(TreeError),
}

impl DetachedInput {
    /// The input that was taken out of a request, over pipes or HTTP.
    pub(super) fn of(extensions: &Extensions) -> Option<Json> {
        let over_http = || extensions.get::<http::request::Parts>()?.extensions.get::<Self>();
        extensions.get::<Self>().or_else(over_http).map(|Self(input)| input.clone())
    }
}

/// Takes the input out of the call of a tool, and checks the size of what is left.
///
/// A message that is not JSON is returned unchanged if it is short enough; the parser reports what is wrong with it.
///
/// # Errors
///
/// When what is left must not be parsed.
pub(super) fn detach(message: &[u8]) -> Result<Incoming<'_>, TooLarge> {
    let mut incoming = Incoming { message: Cow::Borrowed(message), input: None };
    let text = std::str::from_utf8(message).ok();
    if let Some(text) = text
        && let Some(inputs) = inputs_of(text)
        // Of duplicate keys the last one counts, as in every object that is read into a tree. An input that cannot be
        // read stays in the message, and the message is refused.
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

/// The values of `params.arguments.input` in the call of a tool, as they stand in its text. `None` if there is none.
fn inputs_of(text: &str) -> Option<Vec<&RawValue>> {
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
    let method = message.method.filter(|method| method.get().len() <= MAX_METHOD_BYTES)?;
    if serde_json::from_str::<Cow<'_, str>>(method.get()).ok()? != "tools/call" {
        return None;
    }
    let parameters: Parameters<'_> = serde_json::from_str(message.params?.get()).ok()?;
    let mut inputs = Vec::new();
    let mut count = 0;
    json::each_field(parameters.arguments?.get(), |name, value| {
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

/// `"tools/call"` with all its letters escaped.
const MAX_METHOD_BYTES: usize = 64;

/// How often a name may be repeated. More is no mistake, and stays in the message.
const MAX_INPUTS: usize = 16;

#[cfg(test)]
mod tests;

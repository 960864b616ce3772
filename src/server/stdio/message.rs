//! The form of JSON-RPC messages: the fields that are read before rmcp parses a line, and the answers that cx writes
//! itself.

use rmcp::model::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::server::incoming::{MAX_ID_BYTES, MessageEnvelope};

/// A request or notification in the form that rmcp's types parse.
#[derive(Serialize)]
struct Call<'a> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// The parameters of `notifications/cancelled`.
#[derive(Deserialize)]
pub(crate) struct Cancelled<'a> {
    #[serde(borrow, rename = "requestId")]
    pub(crate) request_id: &'a RawValue,
    pub(crate) reason: Option<String>,
}

/// An answer, with the client's id as it was written.
#[derive(Serialize)]
pub(crate) struct Answer<'a, T> {
    pub(crate) jsonrpc: &'static str,
    pub(crate) id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<&'a T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'a ErrorData>,
}

/// Whether a line may overtake parked lines.
pub(crate) enum Order {
    /// The line needs no answer, and requests in flight may wait for it.
    AtOnce,
    /// The line is a request, with its id if the id is valid, or has to be refused.
    InTurn { id: Option<Box<str>> },
}

/// Determines whether a line may overtake others. Parses only as much of it as that needs.
pub(crate) fn order(line: &[u8]) -> Order {
    let Ok(envelope) = serde_json::from_slice::<MessageEnvelope<'_>>(line) else {
        // An empty line needs no answer.
        return if line.is_empty() { Order::AtOnce } else { Order::InTurn { id: None } };
    };
    match (&envelope.method, envelope.id) {
        (Some(_), None) => Order::AtOnce,
        _ if envelope.is_answer() => Order::AtOnce,
        (_, id) => Order::InTurn { id: id.filter(|id| is_id(id)).map(|id| id.get().into()) },
    }
}

/// Whether an id is valid, and short enough to be echoed as it was written.
pub(crate) fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let is_whole = || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    text.len() <= MAX_ID_BYTES && (text.starts_with('"') || is_whole())
}

/// Parses a request or notification into rmcp's type.
pub(crate) fn read_call<T: serde::de::DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> serde_json::Result<T> {
    let call = serde_json::to_string(&Call { method, params })?;
    serde_json::from_str(&call)
}

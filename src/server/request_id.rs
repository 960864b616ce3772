//! The ids of requests, as their clients wrote them.

use rmcp::model::RequestId;
use serde_json::Value;
use serde_json::value::RawValue;

/// The id of a request as its client wrote it. rmcp gets a different id.
#[derive(Clone)]
pub(crate) struct ClientRequestId(pub(super) String);

impl ClientRequestId {
    /// The id without the quotes of JSON.
    pub(crate) fn from_json(id: &RawValue) -> Self {
        Self(match serde_json::from_str(id.get()) {
            Ok(Value::String(text)) => text,
            _ => id.get().to_owned(),
        })
    }
}

impl From<&RequestId> for ClientRequestId {
    fn from(id: &RequestId) -> Self {
        Self(id.to_string())
    }
}

//! Recognizes a repeated call.

use rmcp::model::JsonObject;
use sha2::{Digest as _, Sha256};

use crate::json::Json;

/// Hash of a call: of its tool and the exact bytes of its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// `input` is the input that was detached from the arguments.
    pub(crate) fn new(tool: &str, arguments: &JsonObject, input: Option<&Json>) -> Self {
        let arguments = serde_json::to_vec(arguments).unwrap_or_default();
        let input = input.map_or("", Json::text);
        // JSON text contains no zero bytes, so a zero byte separates the parts.
        let parts = [tool.as_bytes(), &arguments, input.as_bytes()].into_iter();
        let hash = parts.fold(Sha256::new(), |hash, part| hash.chain_update(part).chain_update([0]));
        Self(hash.finalize().into())
    }
}

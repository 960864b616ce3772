//! The formats of an answer's text.

use serde_json::Value;

/// Format of an answer's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// For models: the value, then the printed output, then the calls.
    #[default]
    Text,
    /// The structured content as compact JSON.
    Json,
    /// The structured content as TOON (Token-Oriented Object Notation).
    Toon,
}

impl Format {
    /// Renders structured content. `text` renders it for [`Format::Text`].
    pub(crate) fn render(self, structured: &Value, text: impl FnOnce() -> String) -> String {
        match self {
            Self::Text => text(),
            Self::Json => structured.to_string(),
            // Encoding fails if the nesting is deeper than values of scripts may have.
            Self::Toon => toon_format::encode_default(structured).unwrap_or_else(|_| structured.to_string()),
        }
    }
}

//! Parameters of other script executors. cx has none of them, but models that have seen those executors, or whose
//! strict mode fills in every parameter, send them with neutral values. A call must not fail because of such a value.

use serde_json::Value;

/// A parameter of another script executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignParameter {
    SkipDangerousPatternCheck,
}

impl ForeignParameter {
    const ALL: [Self; 1] = [Self::SkipDangerousPatternCheck];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SkipDangerousPatternCheck => "skipDangerousPatternCheck",
        }
    }

    /// The parameter of this name, or `None`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parameter| parameter.name() == name)
    }

    /// Whether the value has no effect, so that cx may ignore it.
    pub(super) fn asks_for_nothing(self, value: &Value) -> bool {
        match (self, value) {
            // cx has no such check to skip.
            (Self::SkipDangerousPatternCheck, Value::Bool(true)) => true,
            (_, value) => is_neutral(value),
        }
    }

    /// Why other values are refused.
    pub(super) const fn refusal(self) -> &'static str {
        match self {
            Self::SkipDangerousPatternCheck => "there is no such check; leave it out",
        }
    }
}

/// Whether a value is the empty value of its type. Strict modes fill in such values for parameters that the model does
/// not use.
pub(super) fn is_neutral(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

//! Trace context: the span of a trace that a request belongs to, in the form of W3C Trace Context and Baggage.
//!
//! Incoming fields were written by a client. A field that is malformed, or longer than its specification allows, is
//! dropped, and never fails a request.
//!
//! The propagators of `opentelemetry_sdk` are only available with the feature `otel`, and contexts are also passed on
//! without it. They also parse `tracestate` and `baggage` and write them again with different bytes, while this module
//! passes them on unchanged.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// Maximum bytes of `tracestate`: the length that the specification asks every participant to
/// propagate.
const MAX_STATE: usize = 512;

/// Maximum members of `tracestate`.
const MAX_STATE_MEMBERS: usize = 32;

/// Maximum bytes of `baggage`, of the specification.
const MAX_BAGGAGE: usize = 8_192;

/// Maximum bytes of `traceparent` of a later version, which may have more fields.
const MAX_PARENT: usize = 256;

/// Bytes of `traceparent` in version 00.
const PARENT: usize = 55;

/// The position of a request in a trace.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// 16 bytes, not all zero.
    pub(crate) trace_id: u128,
    /// 8 bytes, not all zero.
    pub(crate) span_id: u64,
    /// Bit 0: the trace is sampled.
    pub(crate) flags: u8,
    /// `tracestate`: data of tracing systems, passed on unchanged.
    pub(crate) state: Option<Arc<str>>,
    /// `baggage`: data of the application, passed on unchanged.
    pub(crate) baggage: Option<Arc<str>>,
}

impl TraceContext {
    /// Reads the fields as W3C Trace Context and W3C Baggage write them. `None` if `traceparent` is
    /// not valid. An invalid or too long `tracestate` (512 bytes, 32 members) or `baggage` (8,192
    /// bytes) is dropped.
    pub fn parse(traceparent: &str, tracestate: Option<&str>, baggage: Option<&str>) -> Option<Self> {
        let (trace_id, span_id, flags) = parse_parent(traceparent)?;
        let state = tracestate.filter(|state| is_state(state)).map(Arc::from);
        let baggage = baggage.filter(|baggage| is_baggage(baggage)).map(Arc::from);
        Some(Self { trace_id, span_id, flags, state, baggage })
    }

    /// Reads the fields of a request's `_meta`, which have no prefix. Anything but strings is dropped.
    pub fn from_meta(meta: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| meta.get(name).and_then(Value::as_str);
        Self::parse(text("traceparent")?, text("tracestate"), text("baggage"))
    }

    /// The fields for a request's `_meta`.
    pub fn to_meta(&self) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("traceparent".to_owned(), self.traceparent().into());
        let others = [("tracestate", &self.state), ("baggage", &self.baggage)];
        for (name, value) in others {
            if let Some(value) = value {
                meta.insert(name.to_owned(), (&**value).into());
            }
        }
        meta
    }

    /// The fields of [`to_meta`](Self::to_meta) as the text of JSON, without braces.
    pub(crate) fn to_meta_fields(&self) -> String {
        let mut fields = format!("\"traceparent\":\"{}\"", self.traceparent());
        let others = [("tracestate", &self.state), ("baggage", &self.baggage)];
        for (name, value) in others {
            if let Some(value) = value {
                fields.push_str(&format!(",\"{name}\":{}", Value::from(&**value)));
            }
        }
        fields
    }

    /// The field `traceparent`, in version 00.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

impl fmt::Debug for TraceContext {
    /// Hides the baggage, because it may contain secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.traceparent())
    }
}

fn parse_parent(text: &str) -> Option<(u128, u64, u8)> {
    if text.len() > MAX_PARENT || !text.is_ascii() {
        return None;
    }
    let (parent, rest) = text.split_at_checked(PARENT)?;
    let mut fields = parent.split('-');
    let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let lengths = [version.len(), trace.len(), span.len(), flags.len()];
    let digits = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if fields.next().is_some()
        || lengths != [2, 32, 16, 2]
        || ![version, trace, span, flags].map(digits).iter().all(|is| *is)
    {
        return None;
    }
    // Version 00 has no further fields; of later versions only the fields known here are used.
    let is_whole = match version {
        "00" => rest.is_empty(),
        "ff" => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let trace_id = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
    let span_id = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
    let flags = u8::from_str_radix(flags, 16).ok()?;
    // Only the flags of version 00 are passed on.
    is_whole.then_some((trace_id, span_id, flags & 0b11))
}

/// Whether the text is a list of `key=value`, within the bounds of the specification.
fn is_state(text: &str) -> bool {
    let members = || text.split(',').map(|member| member.trim_matches([' ', '\t']));
    !text.is_empty()
        && text.len() <= MAX_STATE
        && members().count() <= MAX_STATE_MEMBERS
        && members().all(|member| member.is_empty() || member.split_once('=').is_some_and(is_state_member))
}

fn is_state_member((key, value): (&str, &str)) -> bool {
    let is_key = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let is_value = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    (1..=256).contains(&key.len())
        && key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && key.bytes().all(is_key)
        && (1..=256).contains(&value.len())
        && value.bytes().all(is_value)
}

/// Whether the text can be a list of `key=value;property`, of visible ASCII characters.
fn is_baggage(text: &str) -> bool {
    text.len() <= MAX_BAGGAGE
        && text.contains('=')
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
}

#[cfg(test)]
mod tests;

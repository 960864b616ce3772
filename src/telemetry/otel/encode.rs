//! Spans in the form of OTLP (protobuf), written straight from those of the SDK into one buffer. The SDK's own exporter
//! first makes messages of them, with some 40 allocations for each span.
//!
//! The numbers of fields are those of `trace.proto`, `resource.proto` and `common.proto` of OTLP 1. Spans of cx have no
//! events, so none are written.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{Link, SpanId, SpanKind, Status};
use opentelemetry::{Array, InstrumentationScope, Key, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;

/// Bytes of a span that is encoded, about.
const SPAN_BYTES: usize = 512;

/// Flags of a span or a link: it is known whether the context is of another process, and it is.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// How the value of a field is written.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Length = 2,
    Fixed32 = 5,
}

/// The message `Resource`.
pub(super) fn encode_resource(resource: &Resource) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in resource {
        attribute(&mut out, 1, name, value);
    }
    out
}

/// The message `ExportTraceServiceRequest` with spans of one scope. `resource` is the message of their resource.
pub(super) fn encode_request(resource: &[u8], spans: &[SpanData]) -> Vec<u8> {
    let mut out = Vec::with_capacity(resource.len() + spans.len() * SPAN_BYTES);
    let Some(first) = spans.first() else { return out };
    message(&mut out, 1, |out| {
        bytes(out, 1, resource);
        message(out, 2, |out| {
            message(out, 1, |out| scope(out, &first.instrumentation_scope));
            for data in spans {
                message(out, 2, |out| span(out, data));
            }
        });
    });
    out
}

fn scope(out: &mut Vec<u8>, scope: &InstrumentationScope) {
    bytes(out, 1, scope.name().as_bytes());
    bytes(out, 2, scope.version().unwrap_or_default().as_bytes());
}

fn span(out: &mut Vec<u8>, data: &SpanData) {
    let context = &data.span_context;
    bytes(out, 1, &context.trace_id().to_bytes());
    bytes(out, 2, &context.span_id().to_bytes());
    bytes(out, 3, context.trace_state().header().as_bytes());
    if data.parent_span_id != SpanId::INVALID {
        bytes(out, 4, &data.parent_span_id.to_bytes());
    }
    bytes(out, 5, data.name.as_bytes());
    let kind = match data.span_kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    };
    number(out, 6, kind);
    fixed64(out, 7, nanoseconds(data.start_time));
    fixed64(out, 8, nanoseconds(data.end_time));
    for KeyValue { key, value, .. } in &data.attributes {
        attribute(out, 9, key, value);
    }
    number(out, 10, data.dropped_attributes_count.into());
    for entry in data.links.iter() {
        message(out, 13, |out| link(out, entry));
    }
    number(out, 14, data.links.dropped_count.into());
    match &data.status {
        Status::Unset => {}
        Status::Ok => message(out, 15, |out| number(out, 3, 1)),
        Status::Error { description } => message(out, 15, |out| {
            bytes(out, 2, description.as_bytes());
            number(out, 3, 2);
        }),
    }
    flags(out, 16, context.trace_flags().to_u8(), data.parent_span_is_remote);
}

fn link(out: &mut Vec<u8>, link: &Link) {
    let context = &link.span_context;
    bytes(out, 1, &context.trace_id().to_bytes());
    bytes(out, 2, &context.span_id().to_bytes());
    bytes(out, 3, context.trace_state().header().as_bytes());
    for KeyValue { key, value, .. } in &link.attributes {
        attribute(out, 4, key, value);
    }
    number(out, 5, link.dropped_attributes_count.into());
    flags(out, 6, context.trace_flags().to_u8(), context.is_remote());
}

fn flags(out: &mut Vec<u8>, field: u8, of_trace: u8, is_remote: bool) {
    let remote = if is_remote { IS_REMOTE } else { 0 };
    field_key(out, field, Wire::Fixed32);
    out.extend((u32::from(of_trace) | HAS_IS_REMOTE | remote).to_le_bytes());
}

/// A field of the message `KeyValue`.
fn attribute(out: &mut Vec<u8>, field: u8, name: &Key, value: &Value) {
    message(out, field, |out| {
        bytes(out, 1, name.as_str().as_bytes());
        message(out, 2, |out| any_value(out, value));
    });
}

/// The message `AnyValue`. Its field is written also if it is empty: it says of which type it is.
fn any_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(value) => present_bytes(out, 1, value.as_str().as_bytes()),
        Value::Bool(value) => present_number(out, 2, u64::from(*value)),
        // Negative numbers have the bits of their two's complement.
        Value::I64(value) => present_number(out, 3, value.cast_unsigned()),
        Value::F64(value) => fixed64(out, 4, value.to_bits()),
        Value::Array(array) => message(out, 5, |out| {
            let mut item = |value: Value| message(out, 1, |out| any_value(out, &value));
            match array {
                Array::String(values) => values.iter().cloned().for_each(|value| item(Value::String(value))),
                Array::Bool(values) => values.iter().for_each(|value| item(Value::Bool(*value))),
                Array::I64(values) => values.iter().for_each(|value| item(Value::I64(*value))),
                Array::F64(values) => values.iter().for_each(|value| item(Value::F64(*value))),
                _ => {}
            }
        }),
        _ => {}
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A message within another one. Its length is written before it once it is known.
fn message(out: &mut Vec<u8>, field: u8, write: impl FnOnce(&mut Vec<u8>)) {
    field_key(out, field, Wire::Length);
    let start = out.len();
    write(out);
    let end = out.len();
    varint(out, (end - start) as u64);
    let length_bytes = out.len() - end;
    if let Some(written) = out.get_mut(start..) {
        written.rotate_right(length_bytes);
    }
}

/// Bytes or a text, unless it is empty, which is the default.
fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    if !value.is_empty() {
        present_bytes(out, field, value);
    }
}

fn present_bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    field_key(out, field, Wire::Length);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// A number, unless it is 0, which is the default.
fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    if value != 0 {
        present_number(out, field, value);
    }
}

fn present_number(out: &mut Vec<u8>, field: u8, value: u64) {
    field_key(out, field, Wire::Varint);
    varint(out, value);
}

fn fixed64(out: &mut Vec<u8>, field: u8, value: u64) {
    field_key(out, field, Wire::Fixed64);
    out.extend(value.to_le_bytes());
}

fn field_key(out: &mut Vec<u8>, field: u8, wire: Wire) {
    varint(out, u64::from(field) << 3 | wire as u64);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests;

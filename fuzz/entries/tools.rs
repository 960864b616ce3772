//! Targets of schemas, which are untrusted text: declarations, inference, samples, and checks of arguments against
//! `jsonschema` by itself.

use serde_json::Value;

use super::arguments::ArgumentCheck;
use super::declarations::{ServerTools, ToolTypes, signature, typescript};
use super::sample::from_schema;
use super::shape::Shape;
use super::trace_context::TraceContext;
use super::usage::Notation;
use super::{Schema, ToolDefinition, ToolErrorCode};

/// Declarations of a schema have balanced brackets, and contain nothing of it that could be code; a sample of it is
/// bounded; the schema that is inferred from any value describes that value.
pub(crate) fn schema(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let shape = Shape::from_value(&value);
    let mut merged = shape.clone();
    merged.merge(Shape::from_value(&value));
    assert!(merged.is_same_as(&shape), "what was seen twice is known once");
    let inferred = Schema::from(shape.to_schema());
    if let (Ok(check), Value::Object(object)) = (ArgumentCheck::compile(&inferred), &value)
        && is_looked_at_whole(&value)
    {
        let checked = check.check(object.clone());
        assert!(checked.is_ok(), "{value} is not what it was seen to be: {checked:?}, {}", inferred.text());
    }
    let sample = from_schema(Some(&value)).to_string();
    assert!(sample.len() <= MAX_SAMPLE_BYTES, "a sample of {} bytes", sample.len());

    let definition = ToolDefinition {
        name: "fuzzed".to_owned(),
        description: Some(String::from_utf8_lossy(data).into_owned()),
        input_schema: Schema::from(value.clone()),
        output_schema: Some(Schema::from(value)),
        annotations: None,
        meta: None,
    };
    let tool = ToolTypes { definition: &definition, inferred: Some(&shape) };
    let line = signature(tool);
    assert!(!line.contains('\n'), "{line:?} is one line");
    for notation in [Notation::TypeScript, Notation::Python] {
        let line =
            super::usage::fitting_line(tool, notation, usize::MAX, |signature, _| signature.to_owned());
        assert!(!line.contains('\n') && line.chars().count() < 400, "{line}");
    }
    let module = typescript(std::iter::once(ServerTools { name: "server", tools: Some(vec![tool]) }));
    assert!(module.ends_with(">;\ndeclare const server: McpServer1;\n"), "{module}");
    assert!(
        !module.contains('\u{2028}') && !module.contains('\u{202e}'),
        "hidden characters are written out"
    );
}

/// Whether inference looks at all elements of every array and object of `value`. For larger ones the inferred schema
/// describes the elements that were looked at.
fn is_looked_at_whole(value: &Value) -> bool {
    const ELEMENTS: usize = 6;
    match value {
        Value::Array(items) => items.len() <= ELEMENTS && items.iter().all(is_looked_at_whole),
        Value::Object(fields) => fields.len() <= ELEMENTS && fields.values().all(is_looked_at_whole),
        _ => true,
    }
}

/// 1,000 values of 4,000 bytes, each with escapes.
const MAX_SAMPLE_BYTES: usize = 32 << 20;

/// `{"schema": …, "arguments": {…}}`: a check never refuses what `jsonschema` allows, and says why it refuses. It leaves
/// out nulls that the schema does not allow, and changes nothing else.
pub(crate) fn arguments(data: &[u8]) {
    let Ok(Value::Object(mut input)) = serde_json::from_slice::<Value>(data) else { return };
    let (Some(schema), Some(Value::Object(arguments))) = (input.remove("schema"), input.remove("arguments"))
    else {
        return;
    };
    let Ok(check) = ArgumentCheck::compile(&Schema::from(schema.clone())) else { return };
    let result = check.check(arguments.clone());
    let Ok(validator) = jsonschema::options().should_validate_formats(false).build(&schema) else { return };
    match result {
        Ok(checked) => {
            let mut kept = arguments.clone();
            kept.retain(|name, value| !value.is_null() || checked.contains_key(name));
            assert_eq!(checked, kept, "nothing is coerced");
            let allowed = kept.len() < arguments.len() && validator.is_valid(&Value::Object(arguments));
            assert!(!allowed, "{schema} allows the nulls that were left out of {kept:?}");
        }
        Err(error) => {
            assert_eq!(error.code, ToolErrorCode::InvalidArguments);
            assert!(!error.message.is_empty(), "a refusal says why");
            let allowed = validator.is_valid(&Value::Object(arguments.clone()));
            assert!(!allowed, "{schema} allows {arguments:?}, the check says: {}", error.message);
        }
    }
}

/// Three lines: `traceparent`, `tracestate`, `baggage`. What is read is within bounds, and is read again as it is
/// written.
pub(crate) fn trace_context(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let (parent, state, baggage) = (lines.next().unwrap_or_default(), lines.next(), lines.next());
    let Some(context) = TraceContext::parse(parent, state, baggage) else { return };
    let meta = context.to_meta();
    assert_eq!(TraceContext::from_meta(&meta).as_ref(), Some(&context), "it is written as it was read");
    let bytes = |name: &str| meta.get(name).and_then(Value::as_str).map_or(0, str::len);
    assert!(bytes("traceparent") == 55 && bytes("tracestate") <= 512 && bytes("baggage") <= 8_192);
}

#[cfg(test)]
#[test]
fn v_304_trace_context() {
    crate::fuzzing::smoke("trace_context", 3_000, trace_context);
}

#[cfg(test)]
#[test]
fn v_304_schemas() {
    crate::fuzzing::smoke("schema", 3_000, schema);
}

#[cfg(test)]
#[test]
fn v_304_arguments() {
    crate::fuzzing::smoke("arguments", 3_000, arguments);
}

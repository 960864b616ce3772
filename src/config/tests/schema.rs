//! The JSON Schema and the parser have the same keys and bounds.

use serde_json::Value;

use crate::config::clients::Client;
use crate::config::{CONFIG_SCHEMA, audit, formats, limits, llm_settings, oauth_entry, own};
use crate::tools::AskAnnotation;

fn keys(schema: &Value, pointer: &str) -> Vec<String> {
    let object = schema.pointer(pointer).and_then(Value::as_object);
    let mut keys: Vec<String> = object.unwrap_or_else(|| panic!("{pointer}")).keys().cloned().collect();
    keys.sort();
    keys
}

#[test]
fn every_key_of_the_reader_is_in_the_schema_and_the_other_way_round() {
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).unwrap();
    let limits: Vec<&str> = limits::LIMIT_KEYS.iter().map(|limit| limit.name).collect();
    for (pointer, known) in [
        ("/properties", own::FILE_KEYS),
        ("/properties/limits/properties", &limits),
        ("/properties/cache/properties", own::CACHE_KEYS),
        ("/properties/openTelemetry/properties", own::OPEN_TELEMETRY_KEYS),
        ("/properties/audit/properties", audit::AUDIT_KEYS),
        ("/properties/llm/properties", llm_settings::LLM_KEYS),
        ("/properties/clientRate/properties", formats::RATE_LIMIT_KEYS),
        ("/$defs/server/properties", formats::SERVER_KEYS),
        ("/$defs/server/properties/oauth/properties", oauth_entry::OAUTH_KEYS),
        ("/$defs/server/properties/rateLimit/properties", formats::RATE_LIMIT_KEYS),
    ] {
        let mut known = known.to_vec();
        known.sort_unstable();
        assert_eq!(keys(&schema, pointer), known, "{pointer}");
    }
    let clients: Vec<&str> = Client::ALL.iter().map(|client| client.name).collect();
    assert_eq!(schema.pointer("/properties/import/items/enum").unwrap(), &Value::from(clients));
}

#[test]
fn limits_have_the_bounds_and_defaults_of_the_code() {
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).unwrap();
    let default = crate::run::limits::Limits::default();
    for limit in limits::LIMIT_KEYS {
        let written = &schema["properties"]["limits"]["properties"][limit.name];
        assert_eq!(written["minimum"], limit.min, "{}", limit.name);
        assert_eq!(written["maximum"], limit.max, "{}", limit.name);
        assert_eq!(written["default"], (limit.get)(&default), "{}", limit.name);
    }
}

#[test]
fn the_words_of_ask_are_those_of_the_code() {
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).unwrap();
    let words = AskAnnotation::ALL.map(|word| Value::from(word.as_str()));
    assert_eq!(schema.pointer("/$defs/annotation/enum").unwrap(), &Value::from(words.to_vec()));
}

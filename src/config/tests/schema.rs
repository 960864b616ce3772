//! The JSON Schema and the parser have the same keys and bounds.

use serde_json::{Value, json};

use super::precedence::Place;
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
        ("/properties/isolation/properties", own::ISOLATION_KEYS),
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
fn a_client_proves_who_it_is_in_one_way_and_with_all_of_it() {
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let common = json!({ "clientId": "x", "issuer": "https://login.example.com", "clientCredentials": true });
    let entry = |keys: &[(&str, &str)], without: &str| {
        let mut oauth = common.clone();
        for (key, value) in keys {
            oauth[*key] = json!(value);
        }
        oauth.as_object_mut().unwrap().shift_remove(without);
        json!({ "url": "https://example.com/", "oauth": oauth })
    };
    let [secret, key, file] = [("clientSecret", "y"), ("privateKey", "y"), ("assertionFile", "/run/token")];
    let is_valid = |entry: &Value| validator.is_valid(&json!({ "mcpServers": { "fs": entry } }));
    for (keys, without) in [(secret, ""), (key, ""), (file, ""), (file, "clientId")] {
        let entry = entry(&[keys], without);
        super::parse(&json!({ "mcpServers": { "fs": entry } }).to_string()).unwrap();
        assert!(is_valid(&entry), "{entry}");
    }
    for keys in [[secret, key], [secret, file], [key, file]] {
        let entry = entry(&keys, "");
        assert!(!is_valid(&entry), "{entry}");
        assert_eq!(
            super::entry_error(&entry.to_string()),
            "`.oauth`: expected one of `clientSecret`, `privateKey` and `assertionFile`, found more than one"
        );
    }
    let of_user = [("idTokenFile", "/run/token"), ("identityProvider", "https://idp.example.com")];
    for key in [secret, key] {
        let entry = entry(&[of_user[0], of_user[1], key], "");
        super::parse(&json!({ "mcpServers": { "fs": entry } }).to_string()).unwrap();
        assert!(is_valid(&entry), "{entry}");
    }
    for without in ["idTokenFile", "identityProvider", "clientId", "issuer", "clientCredentials"] {
        let entry = entry(&of_user, without);
        assert!(!is_valid(&entry), "{entry}");
        super::entry_error(&entry.to_string());
    }
    let without_client = entry(&[key], "clientId");
    assert!(!is_valid(&without_client));
    assert_eq!(
        super::entry_error(&without_client.to_string()),
        "`.oauth`: expected the key `clientId` beside `privateKey`, found it without that"
    );
}

#[test]
fn the_words_of_ask_are_those_of_the_code() {
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).unwrap();
    let words = AskAnnotation::ALL.map(|word| Value::from(word.as_str()));
    assert_eq!(schema.pointer("/$defs/annotation/enum").unwrap(), &Value::from(words.to_vec()));
}

/// A setting that has no effect could be one that its author relies on.
#[test]
fn v_686_keys_of_isolation_belong_to_its_mode() {
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let [url, key] = [("url", json!("https://example.com")), ("keyFile", json!("/key"))];
    let [tenant, tenant_key] = [("tenant", json!("a")), ("tenantKeyFile", json!("/tenant"))];
    let [require, runs] = [("require", json!(true)), ("runsPerWorker", json!(3))];
    let others = [("tokenFile", json!("/t")), ("credentialsFile", json!("/c")), ("caFile", json!("/a"))];
    let [token, credentials, authorities] = others;
    let alone = "expected this key only together with";
    for (mode, keys, mistake) in [
        (None, vec![], ""),
        (None, vec![&require], "`isolation.require`: expected this key only together with `mode`"),
        (None, vec![&url], "`isolation.url`: expected this key only together with `mode`"),
        (Some("in-process"), vec![], ""),
        (Some("in-process"), vec![&require], "`isolation.require`: expected a key of the mode `in-process`"),
        (Some("process"), vec![&require, &runs], ""),
        (Some("process"), vec![&url], "`isolation.url`: expected a key of the mode `process`"),
        (Some("remote"), vec![&url, &token], ""),
        (Some("remote"), vec![], "`isolation`: expected the key `url` beside the mode `remote`"),
        (Some("remote"), vec![&url, &require], "`isolation.require`: expected a key of the mode `remote`"),
        (Some("nats"), vec![&url, &key, &credentials, &authorities, &tenant, &tenant_key], ""),
        (Some("nats"), vec![&key], "`isolation`: expected the key `url` beside the mode `nats`"),
        (Some("nats"), vec![&url], "`isolation`: expected the key `keyFile` beside the mode `nats`"),
        (Some("nats"), vec![&url, &key, &token], "`isolation.tokenFile`: expected a key of the mode `nats`"),
        (Some("nats"), vec![&url, &key, &tenant], "`isolation.tenant`: expected this key only together with"),
        (Some("nats"), vec![&url, &key, &tenant_key], alone),
    ] {
        let mut isolation = json!({});
        for (name, value) in keys {
            isolation[*name] = value.clone();
        }
        if let Some(mode) = mode {
            isolation["mode"] = json!(mode);
        }
        let config = json!({ "isolation": isolation });
        assert_eq!(validator.is_valid(&config), mistake.is_empty(), "{config}");
        let place = Place::new().file("home/.config/cx/config.json", &config.to_string());
        match place.load_with(&[]) {
            Ok(_) => assert_eq!(mistake, "", "{config}"),
            Err(error) => {
                let said = error.to_string();
                assert!(!mistake.is_empty() && said.contains(mistake), "{config}: {said}");
            }
        }
    }
}

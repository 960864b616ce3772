use std::collections::BTreeSet;

use super::*;
use crate::server::answer::tests::full_answers;
use crate::server::http::rest_runs::answers::RunAnswer;

/// Checks a value against a schema, and collects the paths of its fields.
#[track_caller]
fn check(schema: &Value, value: &Value, path: &str, sent: &mut BTreeSet<String>) {
    let fits = match schema["type"].as_str() {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64(),
        Some("number") => value.is_number(),
        Some(other) => panic!("a type that is not known here: {other}"),
    };
    assert!(fits, "{path}: {value} is not of {schema}");
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{path}: {value} has no {name}");
    }
    for item in value.as_array().into_iter().flatten() {
        check(&schema["items"], item, path, sent);
    }
    let Some(described) = schema.get("properties") else { return };
    for (name, field) in value.as_object().unwrap() {
        let path = format!("{path}/{name}");
        check(described.get(name).unwrap_or_else(|| panic!("{path} is not described")), field, &path, sent);
        sent.insert(path);
    }
}

/// The paths of all fields that a schema describes.
fn described(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    if let Some(items) = schema.get("items") {
        described(items, path, found);
    }
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}/{name}");
        described(field, &path, found);
        found.insert(path);
    }
}

/// No field of a result is sent that the document does not describe, and it describes none that is never sent.
#[test]
fn every_field_of_a_result_is_described() {
    let schema = result();
    let (mut sent, mut expected) = (BTreeSet::new(), BTreeSet::new());
    for answer in full_answers() {
        let RunAnswer::Ended(text) = RunAnswer::new(answer) else { panic!("the script has run") };
        check(&schema, &serde_json::from_str(&text).unwrap(), "", &mut sent);
    }
    described(&schema, "", &mut expected);
    assert_eq!(sent, expected);
}

/// A body without a script is refused, whether there are saved ones or not.
#[test]
fn a_request_names_its_script() {
    let required = |has_scripts| {
        let offers = Offers { has_scripts, ..Offers::default() };
        let schema = request(run_schema(Descriptions::Included, &crate::Limits::default(), offers));
        (schema["required"].clone(), schema["anyOf"].clone())
    };
    assert_eq!(required(false), (json!(["code", "language"]), Value::Null));
    let alternatives = json!([{ "required": ["code", "language"] }, { "required": ["script"] }]);
    assert_eq!(required(true), (Value::Null, alternatives));
}

/// What the schemas of the tools leave out, to cost a model fewer tokens, is here.
#[test]
fn a_request_describes_its_numbers_and_permissions() {
    let offers = Offers { has_grants: true, has_models: true, ..Offers::default() };
    let caps =
        crate::Limits { wall_time: std::time::Duration::from_secs(1), tool_calls: 2, ..Default::default() };
    let schema = request(run_schema(Descriptions::Included, &caps, offers));
    let properties = &schema["properties"];
    let (timeout, calls) = (&properties["timeoutMs"], &properties["maxToolCalls"]);
    assert_eq!((&timeout["maximum"], &calls["maximum"]), (&json!(600_000), &json!(u32::MAX)));
    assert_eq!(timeout["description"], "more than 1000 counts as 1000");
    assert_eq!(calls["description"], "more than 2 counts as 2");
    for number in ["timeoutMs", "maxToolCalls", "maxSamplingRounds", "maxSamplingTokens"] {
        assert_eq!(properties[number]["minimum"], 0, "{number}");
    }
    for kind in ["read", "write", "net"] {
        assert_eq!(properties["permissions"]["properties"][kind]["items"]["type"], "string", "{kind}");
    }
}

/// Each path has the statuses that any request can have, and its own.
#[test]
fn the_statuses_of_each_path_are_listed() {
    let statuses = |has_token: bool, path: &str, method: &str| -> Vec<String> {
        let responses = paths(has_token)[path][method]["responses"].clone();
        responses.as_object().unwrap().keys().cloned().collect()
    };
    let run = "/v1/runs/{id}";
    assert_eq!(statuses(false, run, "delete"), ["204", "400", "403", "404", "431", "500", "503"]);
    assert_eq!(statuses(true, run, "get"), ["200", "400", "401", "403", "404", "431", "500", "503"]);
    let own = ["408", "413", "415", "422", "429"];
    assert!(own.iter().all(|own| statuses(true, "/v1/runs", "post").iter().any(|status| status == own)));
}

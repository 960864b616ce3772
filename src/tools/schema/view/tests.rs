use serde_json::json;

use super::*;

#[test]
fn references_lead_into_the_document_and_nowhere_else() {
    let document = json!({
        "$defs": {"a": {"const": 1}, "List<a b>": {"const": 2}},
        "definitions": {"c": {"const": 3}},
    });
    let target = |reference: Value| {
        let schema = json!({ "$ref": reference });
        match (SchemaView { document: &document, schema: &schema }).reference() {
            Ok(target) => target.unwrap().get("const").unwrap().to_string(),
            Err(ReferenceError::Missing(reference)) => format!("missing {reference}"),
            Err(ReferenceError::Outside(reference)) => format!("outside {reference}"),
            Err(ReferenceError::Invalid) => "invalid".to_owned(),
        }
    };
    for (reference, expected) in [
        (json!("#/$defs/a"), "1"),
        (json!("#/%24defs/a"), "1"),
        (json!("#/$defs/List%3Ca%20b%3E"), "2"),
        (json!("#/definitions/c"), "3"),
        (json!("#/$defs/none"), "missing #/$defs/none"),
        (json!("#anchor"), "missing #anchor"),
        (json!("#/%ff%"), "missing #/%ff%"),
        (json!("other.json#/a"), "outside other.json#/a"),
        (json!(5), "invalid"),
    ] {
        assert_eq!(target(reference), expected);
    }
    assert!(SchemaView::root(&document).reference().unwrap().is_none());
}

#[test]
fn anchors_lead_to_the_one_schema_that_has_them() {
    let document = json!({
        "$dynamicAnchor": "root",
        "const": 0,
        "$defs": {
            "a": {"$anchor": "a", "const": 1},
            "b": {"items": [{"$dynamicAnchor": "b", "const": 2}]},
            "twice": {"$anchor": "twice"},
            "again": {"$dynamicAnchor": "twice"},
            "number": {"$anchor": 5},
        },
    });
    let target = |keyword: &str, reference: &str| {
        let schema = json!({ keyword: reference });
        let found = SchemaView { document: &document, schema: &schema }.reference();
        found.map(|found| found.unwrap().get("const").cloned()).map_err(|error| error.to_string())
    };
    for keyword in ["$ref", "$dynamicRef"] {
        assert_eq!(target(keyword, "#root"), Ok(Some(json!(0))));
        assert_eq!(target(keyword, "#a"), Ok(Some(json!(1))));
        assert_eq!(target(keyword, "#b"), Ok(Some(json!(2))));
        assert_eq!(target(keyword, "#"), Ok(Some(json!(0))));
        for missing in ["#twice", "#5", "#number", "#c"] {
            assert!(target(keyword, missing).unwrap_err().contains("does not contain"), "{missing}");
        }
        assert!(target(keyword, "other#a").unwrap_err().contains("outside"));
    }
    // The search ends.
    let many: Vec<Value> = (0..10_000).map(|_| json!({})).collect();
    let document = json!({"$ref": "#a", "allOf": many, "not": {"$anchor": "a"}});
    assert!(SchemaView::root(&document).reference().is_err());
}

#[test]
fn tuples_are_the_same_in_every_draft() {
    let check = |schema: Value, tuple: Option<usize>, rest: Option<Value>| {
        let elements = SchemaView::root(&schema).elements();
        assert_eq!(elements.tuple.map(<[Value]>::len), tuple, "{schema}");
        assert_eq!(elements.rest.map(|rest| rest.schema.clone()), rest, "{schema}");
    };
    check(json!({"prefixItems": [{}, {}], "items": false}), Some(2), Some(json!(false)));
    check(
        json!({"items": [{}, {}], "additionalItems": {"type": "null"}}),
        Some(2),
        Some(json!({"type": "null"})),
    );
    check(json!({"items": [{}]}), Some(1), None);
    check(json!({"items": {"type": "null"}}), None, Some(json!({"type": "null"})));
    check(json!(true), None, None);
}

#[test]
fn limits_are_the_same_in_every_draft() {
    let check = |schema: Value, expected: Option<(f64, bool)>| {
        let limit = SchemaView::root(&schema).minimum();
        assert_eq!(limit.map(|limit| (limit.value, limit.is_exclusive)), expected, "{schema}");
    };
    check(json!({"minimum": 1}), Some((1.0, false)));
    check(json!({"exclusiveMinimum": 1}), Some((1.0, true)));
    check(json!({"minimum": 1, "exclusiveMinimum": true}), Some((1.0, true)));
    check(json!({"minimum": 1, "exclusiveMinimum": false}), Some((1.0, false)));
    check(json!({"minimum": 1, "exclusiveMinimum": 1}), Some((1.0, true)));
    check(json!({"minimum": 2, "exclusiveMinimum": 1}), Some((2.0, false)));
    check(json!({"exclusiveMinimum": true}), None);
    let both = json!({"maximum": 2, "exclusiveMaximum": 1});
    let maximum = SchemaView::root(&both).maximum().unwrap();
    assert_eq!((maximum.value, maximum.is_exclusive), (1.0, true));
}

#[test]
fn every_schema_of_a_schema_is_visited() {
    let schema = json!({
        "not": {"const": 1}, "allOf": [{"const": 2}], "dependentSchemas": {"x": {"const": 3}},
        "dependencies": {"x": ["y"], "z": {"const": 4}},
        "items": [{"const": 5}], "additionalItems": {"const": 6}, "properties": {"x": {"const": 7}},
        "$defs": {"unused": {"const": 8}}, "enum": [{"const": 9}],
    });
    let view = SchemaView::root(&schema);
    let constants = |schemas: &mut dyn Iterator<Item = SchemaView<'_>>| -> Vec<u64> {
        schemas.filter_map(|schema| schema.get("const")?.as_u64()).collect()
    };
    assert_eq!(constants(&mut view.in_place()), [1, 2, 3, 4]);
    assert_eq!(constants(&mut view.parts()), [6, 5, 7]);
    assert_eq!(view.longest_keyword(), 2);
}

/// A schema can be visited thousands of times.
#[test]
fn v_619_long_references_and_lists_of_types_are_not_read() {
    let name = "a".repeat(5_000);
    let document = json!({ "$defs": { "short": {}, name.clone(): {} } });
    let target = |reference: String| {
        let schema = json!({ "$ref": reference });
        let found = SchemaView { document: &document, schema: &schema }.reference();
        found.is_ok()
    };
    assert!(target("#/$defs/short".to_owned()));
    assert!(!target(format!("#/$defs/{name}")));
    let types =
        |count: usize| SchemaView::root(&json!({ "type": vec!["string"; count] })).declared_types().len();
    assert_eq!((types(16), types(17)), (16, 0));
}

//! Tools whose arguments have alternatives.

use serde_json::json;

use super::super::signature;
use super::{tool, types};

#[test]
fn arguments_are_optional_if_some_alternative_needs_none() {
    let alternative = |field: &str| json!({"properties": {field: {"type": "null"}}, "required": [field]});
    let none = json!({"properties": {"c": {"type": "null"}}});
    for (alternatives, expected) in [
        (json!([alternative("a"), alternative("b")]), "t(args: { a: null } | { b: null }): Promise<any>"),
        (json!([alternative("a"), none]), "t(args?: { a: null } | { c?: null }): Promise<any>"),
    ] {
        let definition = tool("t", json!({"type": "object", "oneOf": alternatives}));
        assert_eq!(signature(types(&definition)), expected);
    }
}

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::growth::assert_linear;

mod threats;

/// What fails a test that would hang.
const WATCHDOG: Duration = Duration::from_secs(120);

fn compile(schema: Value) -> Result<ArgumentCheck, String> {
    ArgumentCheck::compile(&Schema::from(schema))
}

fn message(check: &ArgumentCheck, arguments: Value) -> String {
    let Value::Object(map) = arguments else { panic!("arguments are an object") };
    match check.check(map.clone()) {
        Ok(same) => {
            assert_eq!(same, map);
            String::new()
        }
        Err(error) => {
            assert_eq!(error.code, ToolErrorCode::InvalidArguments);
            error.message
        }
    }
}

#[track_caller]
fn check(schema: Value, arguments: Value, expected: &str) {
    assert_eq!(message(&compile(schema).unwrap(), arguments), expected);
}

/// Arguments of 100 levels, the input that a hostile schema needs.
fn nested(key: &str, levels: usize, leaf: Value) -> Value {
    (0..levels).fold(leaf, |inner, _| json!({ key: inner }))
}

#[test]
fn says_what_is_wrong_where_and_what_to_write() {
    let issue = json!({
        "type": "object",
        "properties": {
            "owner": {"type": "string"},
            "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "page": {"type": "integer", "minimum": 1},
            "state": {"enum": ["open", "closed"]}
        },
        "required": ["owner"],
        "additionalProperties": false
    });
    let check = |arguments, expected| check(issue.clone(), arguments, expected);
    check(json!({"owner": "me", "page": 1, "labels": ["a"], "state": "open"}), "");
    check(json!({}), "missing `owner` (a string)");
    check(json!({"onwer": "me"}), "unknown field `onwer`; did you mean `owner`?");
    check(
        json!({"owner": "me", "zzzz": 1}),
        "unknown field `zzzz`; the fields are `owner`, `labels`, `page`, `state`",
    );
    check(json!({"owner": 5}), "`owner`: expected a string, found 5");
    check(json!({"owner": "me", "page": "5"}), "`page`: expected an integer, found \"5\"");
    check(json!({"owner": "me", "page": 0}), "`page`: expected a number of at least 1, found 0");
    check(
        json!({"owner": "me", "state": "opne"}),
        "`state`: expected \"open\" or \"closed\", found \"opne\"",
    );
    check(
        json!({"owner": "me", "labels": ["a", {"b": 1}]}),
        "`labels[1]`: expected a string, found an object",
    );
    check(json!({"owner": "me", "labels": ["a", "b", "c"]}), "`labels`: expected at most 2 items, found 3");
    check(
        json!({"owner": 1, "page": "x", "state": 2, "labels": 3, "zzz": 4}),
        "unknown field `zzz`; the fields are `owner`, `labels`, `page`, `state`; \
         `labels`: expected an array, found 3; `owner`: expected a string, found 1; and 2 more",
    );
}

#[test]
fn paths_are_written_as_a_script_would() {
    let schema = json!({"properties": {"paths": {"items": {"properties": {
        "encoding": {"enum": ["utf8", "base64"]}, "a b": {"type": "null"}}}}}});
    check(
        schema.clone(),
        json!({"paths": [{}, {}, {"encoding": "latin1"}]}),
        "`paths[2].encoding`: expected \"utf8\" or \"base64\", found \"latin1\"",
    );
    check(schema, json!({"paths": [{"a b": 1}]}), "`paths[0][\"a b\"]`: expected null, found 1");
}

#[test]
fn a_near_name_is_offered_where_other_fields_are_allowed() {
    let schema =
        json!({"type": "object", "properties": {"owner": {"type": "string"}}, "required": ["owner"]});
    let check = |arguments, expected| check(schema.clone(), arguments, expected);
    check(
        json!({"onwer": "x"}),
        "missing `owner` (a string); there is an unknown field `onwer`, is it meant?",
    );
    // Also one that is not near, if it is the only one.
    check(json!({"by": "x"}), "missing `owner` (a string); there is an unknown field `by`, is it meant?");
    check(json!({"by": "x", "on": "y"}), "missing `owner` (a string)");
}

#[test]
fn alternatives_are_explained_by_the_one_that_was_meant() {
    let id =
        json!({"properties": {"id": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}}});
    check(id, json!({"id": true}), "`id`: expected a string, an integer or null, found true");

    let shape = json!({"properties": {"shape": {"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
        {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}
    ]}}});
    check(shape.clone(), json!({"shape": {"kind": "circle"}}), "missing `shape.radius` (a number)");
    check(
        shape.clone(),
        json!({"shape": {"kind": "oval", "side": 1}}),
        "`shape.kind`: expected \"circle\" or \"square\", found \"oval\"",
    );
    check(shape, json!({"shape": 5}), "`shape`: expected an object, found 5");

    let list = json!({"properties": {"x": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}});
    check(list, json!({"x": ["a", 1]}), "`x[1]`: expected a string, found 1");
}

#[test]
fn references_inside_the_schema_are_followed() {
    let tree = json!({
        "$defs": {"Node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Node"}, "name": {"type": "string"}}, "required": ["name"]}},
        "properties": {"root": {"$ref": "#/$defs/Node"}}
    });
    check(tree.clone(), json!({"root": {"name": "a", "left": {"name": "b"}}}), "");
    check(tree, json!({"root": {"name": "a", "left": {}}}), "missing `root.left.name` (a string)");
    let escaped = json!({"definitions": {"List<a b>": {"type": "string"}}, "properties": {"x": {"$ref": "#/definitions/List%3Ca%20b%3E"}}});
    check(escaped, json!({"x": 1}), "`x`: expected a string, found 1");
}

#[test]
fn anchors_of_the_schema_are_followed() {
    for keyword in ["$ref", "$dynamicRef"] {
        let tree = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"Node": {"$dynamicAnchor": "node", "type": "object", "properties": {"left": {keyword: "#node"}, "name": {"$ref": "#name"}}, "required": ["name"]},
                "Name": {"$anchor": "name", "type": "string"}},
            "properties": {"root": {keyword: "#node"}}
        });
        check(tree.clone(), json!({"root": {"name": "a", "left": {"name": "b"}}}), "");
        check(
            tree.clone(),
            json!({"root": {"name": "a", "left": {}}}),
            "missing `root.left.name` (a string)",
        );
        check(tree, json!({"root": {"name": 1}}), "`root.name`: expected a string, found 1");
    }
    let refused = |schema: Value, reason: &str| {
        let error = compile(schema).unwrap_err();
        assert!(error.contains(reason), "{error}");
    };
    refused(json!({"$dynamicAnchor": "a", "$dynamicRef": "#a"}), "itself");
    refused(json!({"$dynamicRef": "#a"}), "does not contain");
    refused(json!({"$dynamicAnchor": "a", "not": {"$ref": "#", "$dynamicRef": "#a"}}), "`$dynamicRef`");
    // What a name stands for more than once is not known.
    let twice = json!({"$defs": {"x": {"$anchor": "a"}, "y": {"$anchor": "a", "type": "null"}}, "properties": {"x": {"$ref": "#a"}}});
    refused(twice, "does not contain");
}

#[test]
fn sloppy_schemas_do_what_was_meant() {
    check(json!({"type": "object"}), json!({"anything": [1]}), "");
    check(json!({}), json!({"anything": [1]}), "");
    check(json!({"type": "object", "required": ["x"]}), json!({}), "missing `x`");
    check(
        json!({"properties": {"d": {"type": "string", "format": "date-time"}}}),
        json!({"d": "tomorrow"}),
        "",
    );
    check(json!({"properties": {"u": {"type": "string", "format": "made-up"}}}), json!({"u": "x"}), "");
    check(json!({"$schema": "https://example.com/own", "type": "object"}), json!({}), "");
    let look_around = json!({"properties": {"p": {"type": "string", "pattern": "^(?!\\.)\\w+$"}}});
    check(look_around.clone(), json!({"p": ".x"}), "");
    check(look_around, json!({"p": 1}), "`p`: expected a string, found 1");
}

#[test]
fn the_draft_is_the_one_that_the_schema_names() {
    let exclusive = |draft: &str| {
        compile(
            json!({"$schema": draft, "properties": {"n": {"type": "number", "minimum": 1, "exclusiveMinimum": true}}}),
        )
    };
    let draft4 = exclusive("http://json-schema.org/draft-04/schema#").unwrap();
    assert_eq!(message(&draft4, json!({"n": 1})), "`n`: expected a number greater than 1, found 1");
    assert!(exclusive("https://json-schema.org/draft/2020-12/schema").is_err());
    let tuple = json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"t": {"items": [{"type": "string"}, {"type": "number"}]}}});
    check(tuple, json!({"t": ["a", "b"]}), "`t[1]`: expected a number, found \"b\"");
    let prefix = json!({"properties": {"t": {"prefixItems": [{"type": "string"}, {"type": "number"}]}}});
    check(prefix, json!({"t": ["a", "b"]}), "`t[1]`: expected a number, found \"b\"");
}

#[test]
fn values_are_shown_short_and_visible() {
    let schema = json!({"properties": {"n": {"type": "number"}}});
    let long = message(&compile(schema.clone()).unwrap(), json!({"n": "x".repeat(1_000_000)}));
    assert!(long.chars().count() < 120, "{long}");
    check(
        schema,
        json!({"n": "a\u{202e}\u{1b}[0m"}),
        "`n`: expected a number, found \"a\\u{202e}\\u001b[0m\"",
    );
    let name =
        message(&compile(json!({"additionalProperties": false})).unwrap(), json!({"k".repeat(100_000): 1}));
    assert!(name.chars().count() < 150, "{name}");
}

#[test]
fn schemas_that_cannot_be_checked_with_are_refused_with_a_reason() {
    let check = |schema: Value, reason: &str| {
        let error = compile(schema.clone()).unwrap_err();
        assert!(error.contains(reason), "{error}");
    };
    check(json!({"type": "objekt"}), "at `/type`");
    check(json!({"properties": {"x": {"type": 5}}}), "/properties/x/type");
    check(json!([]), "neither an object");
    check(json!({"properties": {"x": {"$ref": "#/$defs/None"}}}), "does not contain");
    check(json!({"$ref": "#"}), "itself");
    check(
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
        "itself",
    );
    check(json!({"enum": vec!["x"; 1_000_000]}), "bytes");
    check(json!({"properties": {"x": {"type": "string", "pattern": "(a{1000}){1000}"}}}), "not a \"regex\"");
    check(json!({"properties": {"x": {"type": "string", "pattern": "("}}}), "not a \"regex\"");
    check(json!({"not": "finished"}), "at `/not`");
}

#[test]
fn nothing_outside_of_the_schema_is_read() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let http = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("schema.json");
    std::fs::write(&path, "{}").unwrap();
    for reference in [
        http.clone(),
        format!("file://{}", path.display()),
        path.display().to_string(),
        "other.json".to_owned(),
    ] {
        for schema in [
            json!({"$ref": reference}),
            json!({"properties": {"x": {"$ref": reference}}}),
            json!({"properties": {"x": {"$dynamicRef": reference}}}),
            json!({"$id": http, "properties": {"x": {"items": {"$ref": reference}}}}),
        ] {
            let error = compile(schema.clone()).unwrap_err();
            assert!(error.ends_with("which is outside of it and is not read"), "{error}");
        }
    }
    // Second layer: the validator itself has no retriever that fetches.
    let error =
        jsonschema::options().with_retriever(NothingFetched).build(&json!({"$ref": http})).unwrap_err();
    assert!(error.to_string().contains(&http), "{error}");
    // A custom `$schema` is not fetched either.
    assert!(compile(json!({"$schema": http, "type": "object"})).is_ok());
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

/// On a thread with the stack size of tokio's workers. Without their bounds most of these would
/// never end.
fn soon<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let send = move || drop(sender.send(work()));
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(send).unwrap();
    let result = receiver.recv_timeout(WATCHDOG);
    assert_ne!(result.as_ref().err(), Some(&RecvTimeoutError::Timeout), "{what} does not end");
    thread.join().unwrap();
    result.unwrap()
}

#[test]
fn hostile_schemas_compile_or_are_refused_soon() {
    let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(10_000), "}".repeat(10_000));
    let deep: Schema = serde_json::from_str(&deep).unwrap_or_else(|_| Schema::any_object());
    soon("10,000 levels", move || drop(ArgumentCheck::compile(&deep)));

    let members: Vec<usize> = (0..35_000).collect();
    assert!(soon("a large enum", move || compile(json!({"properties": {"x": {"enum": members}}})).is_ok()));

    let chain: Map<String, Value> = (0..3_000)
        .map(|at| (format!("d{at}"), json!({"properties": {"x": {"$ref": format!("#/$defs/d{}", at + 1)}}})))
        .chain([("d3000".to_owned(), json!({}))])
        .collect();
    for first in ["d0", "d2990"] {
        let schema = json!({"$defs": chain, "properties": {"x": {"$ref": format!("#/$defs/{first}")}}});
        assert_eq!(soon("a chain of references", move || compile(schema).is_err()), first == "d0");
    }

    // The maximum depth that is allowed.
    let schema = json!({"$defs": chain, "properties": {"x": {"$ref": "#/$defs/d2952"}}});
    soon("97 levels", move || {
        let check = compile(schema).unwrap();
        assert_eq!(message(&check, nested("x", 100, json!(1))), "");
    });

    let doubled: Map<String, Value> = (0..40)
        .map(|at| {
            let next = format!("#/$defs/d{}", at + 1);
            (format!("d{at}"), json!({"properties": {"x": {"$ref": next}, "y": {"$ref": next}}}))
        })
        .chain([("d40".to_owned(), json!({"type": "string"}))])
        .collect();
    let schema = json!({"$defs": doubled, "$ref": "#/$defs/d0"});
    soon("2 to the 40 paths", move || {
        let check = compile(schema).unwrap();
        let Value::Object(arguments) = nested("x", 40, json!(1)) else { panic!("an object") };
        let error = check.check(arguments).unwrap_err();
        assert!(error.message.contains("expected a string"), "{error}");
    });

    let alternatives: Map<String, Value> = (0..30)
        .map(|at| {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            (format!("d{at}"), json!({"anyOf": [next, next]}))
        })
        .chain([("d30".to_owned(), json!({"type": "string"}))])
        .collect();
    let schema = json!({"$defs": alternatives, "$ref": "#/$defs/d0"});
    assert!(soon("2 to the 30 alternatives", move || compile(schema).is_err()));

    let patterns: Map<String, Value> = (0..200)
        .map(|at| {
            (format!("p{at}"), json!({"type": "string", "pattern": format!("^(\\w{{1,20}}\\d){{{at},}}$")}))
        })
        .collect();
    soon("200 large patterns", move || drop(compile(json!({"properties": patterns}))));
}

#[test]
fn hostile_arguments_are_checked_or_passed_soon() {
    // Each level is tried twice, so 100 levels would take 2 to the power of 100 steps.
    let both = json!({"$ref": "#/$defs/n"});
    let schema = json!({"$defs": {"n": {"anyOf": [
        {"type": "object", "properties": {"x": both, "kind": {"const": "a"}}},
        {"type": "object", "properties": {"x": both, "kind": {"const": "b"}}},
        {"type": "string"}
    ]}}, "properties": {"x": {"$ref": "#/$defs/n"}}});
    let check = compile(schema).unwrap();
    assert_eq!(message(&check, json!({"x": {"x": 5}})), "`x.x`: expected an object or a string, found 5");
    soon("2 to the 100 branches", move || {
        let Value::Object(arguments) = nested("x", 100, json!(5)) else { panic!("an object") };
        assert!(check.check(arguments).is_ok(), "left to the server");
    });

    let recursive = compile(json!({"type": "object", "additionalProperties": {"$ref": "#"}})).unwrap();
    soon("120 levels", move || assert!(message(&recursive, nested("x", 120, json!(5))).contains("found 5")));

    // A dozen references for every level of the arguments, and more than are followed.
    for (references, checked) in [(11, true), (25, false)] {
        let defs: Map<String, Value> = (0..references)
            .map(|at| (format!("d{at}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", at + 1)}]})))
            .chain([(
                format!("d{references}"),
                json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}}),
            )])
            .collect();
        let check = compile(json!({"$defs": defs, "properties": {"x": {"$ref": "#/$defs/d0"}}}));
        soon("references at every level", move || {
            // More references than the maximum are refused when the schema is compiled.
            let refused = check.is_ok_and(|check| !message(&check, nested("x", 55, json!(5))).is_empty());
            assert_eq!(refused, checked, "{references}");
        });
    }

    let pattern = compile(json!({"properties": {"x": {"pattern": "^(a+)+$"}}})).unwrap();
    soon("a pattern that backtracks", move || {
        let text = format!("{}!", "a".repeat(1_000_000));
        assert!(message(&pattern, json!({ "x": text })).contains("matches `^(a+)+$`"));
    });

    let numbers = compile(json!({"properties": {"x": {"items": {"type": "string"}}}})).unwrap();
    soon("a million errors", move || {
        // All of them compared with each other would take hours.
        let items = json!({ "x": (0..1_000_000).collect::<Vec<_>>() });
        assert_eq!(message(&numbers, items), "`x[0]`: expected a string, found 0");
    });

    let members: Vec<usize> = (1_000_000..1_030_000).collect();
    let large = compile(json!({"properties": {"x": {"items": {"enum": members}}}})).unwrap();
    soon("a million values for 30,000 constants", move || {
        assert!(message(&large, json!({"x": [1]})).contains("or 29990 more"));
        let items = vec![1_029_999; 1_000_000];
        assert_eq!(message(&large, json!({ "x": items })), "");
        // Too many values to compare: left to the server.
        let items = vec![1; 1_000_000];
        assert_eq!(message(&large, json!({ "x": items })), "");
    });

    let unique = compile(json!({"properties": {"x": {"uniqueItems": true}}})).unwrap();
    soon("unique items", move || {
        let items =
            |count: usize| json!({ "x": (0..count).map(|at| json!({ "a": at })).collect::<Vec<_>>() });
        assert_linear("unique items", 2_500, items, |items| assert_eq!(message(&unique, items.clone()), ""));
    });
}

#[test]
fn the_same_arguments_give_the_same_message() {
    let properties: Map<String, Value> =
        (0..50).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
    let arguments: Map<String, Value> = (0..50).rev().map(|at| (format!("f{at}"), json!(at))).collect();
    let first = message(&compile(json!({"properties": properties})).unwrap(), arguments.clone().into());
    for _ in 0..20 {
        assert_eq!(
            message(&compile(json!({"properties": properties})).unwrap(), arguments.clone().into()),
            first
        );
    }
}

/// Scripts pass `None` for what they do not give.
#[test]
fn an_optional_null_that_is_not_allowed_is_left_out() {
    let check = compile(json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "size": { "type": "integer" },
            "a/b": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "clear": { "type": ["string", "null"] },
        },
        "required": ["name"],
    }))
    .unwrap();
    let checked = |arguments: Value| {
        let is_accepted = check.accepts(&arguments);
        let Value::Object(map) = arguments else { panic!("arguments are an object") };
        let checked = check.check(map).map(Value::Object).map_err(|error| error.message);
        assert_eq!(checked.is_ok(), is_accepted);
        checked
    };
    let given = json!({ "name": "x", "size": null, "a/b": null, "clear": null, "other": null });
    assert_eq!(checked(given), Ok(json!({ "name": "x", "clear": null, "other": null })));
    assert!(checked(json!({ "name": null, "size": null })).unwrap_err().contains("`name`"));
    let wrong = checked(json!({ "name": 1, "size": null })).unwrap_err();
    assert!(wrong.contains("`name`") && wrong.contains("`size`"), "all that is wrong is said: {wrong}");
}

/// Arguments with unknown parts or nulls need the tree, also where nothing is wrong with them.
#[test]
fn the_tree_of_a_small_schema_is_made_once_and_that_of_a_large_one_is_not_kept() {
    for (bytes, is_kept) in [(10, true), (MAX_KEPT_TREE_BYTES, false)] {
        let description = "x".repeat(bytes);
        let check = compile(json!({ "type": "object", "description": description })).unwrap();
        assert!(check.small_tree.get().is_none(), "it is not made before it is needed");
        assert_eq!(*check.tree(), check.schema.to_value());
        assert_eq!(check.small_tree.get().is_some(), is_kept, "{bytes} bytes");
    }
}

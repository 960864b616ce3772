use serde_json::Map;

use super::node::MAX_NODES;
use super::sampling::MAX_DEPTH;
use super::*;

fn shape(results: &[Value]) -> Shape {
    let mut shape = Shape::default();
    for result in results {
        shape.merge(Shape::from_value(result));
    }
    shape
}

#[track_caller]
fn check(results: &[Value], mut expected: Value) {
    expected["x-inferred"] = json!({"calls": results.len()});
    assert_eq!(shape(results).to_schema(), expected);
}

#[test]
fn fields_types_and_what_can_be_missing() {
    check(
        &[
            json!({"id": 1, "name": "a", "tags": []}),
            json!({"id": 2, "name": null, "tags": ["x"], "score": 0.5}),
        ],
        json!({"type": "object", "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["string", "null"]},
            "score": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
        }, "required": ["id", "name", "tags"]}),
    );
    check(&[json!([])], json!({"type": "array"}));
    check(&[json!("secret")], json!({"type": "string"}));
    check(&[json!(1), json!(1.5)], json!({"type": "number"}));
    check(
        &[json!([{"a": 1, "b": 2}, {"a": 1}, null])],
        json!({"type": "array", "items": {"anyOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]},
            {"type": "null"}
        ]}}),
    );
    check(
        &[json!({}), json!({"a": true})],
        json!({"type": "object", "properties": {"a": {"type": "boolean"}}}),
    );
}

#[test]
fn the_last_elements_of_a_long_array_are_seen() {
    let mut items = vec![json!({"a": 1}); 10_000];
    items.push(json!({"a": 1, "next": "x"}));
    let schema = shape(&[json!(items)]).to_schema();
    assert_eq!(schema["items"]["required"], json!(["a"]));
    assert_eq!(schema["items"]["properties"]["next"], json!({"type": "string"}));
}

#[test]
fn keys_that_are_data_are_not_kept() {
    for key in [
        "ada@example.com",
        "2024-01-31",
        "2024",
        "12",
        "/home/ada/taxes",
        "taxes.pdf",
        "C:\\x",
        "deadbeef01",
        "550e8400-e29b-41d4-a716-446655440000",
        "user_48151",
        "https://example.com",
        "dQw4w9WgXcQ",
        "",
        "my secret is that I am fine",
        "a\nb",
        "{\"x\":1}",
        "+49 151",
        "d41d8cd98f00b204e9800998ecf8427e",
        "AKIAIOSFODNN7EXAMPLE1234",
        "k=v",
        "zero\u{200b}width",
    ] {
        let schema = shape(&[json!({ key: 1, "plain": 2 })]).to_schema();
        assert_eq!(schema["additionalProperties"], json!({"type": "integer"}), "{key:?}");
        assert!(schema.get("properties").is_none(), "{key:?}");
    }
    for key in [
        "id",
        "fullName",
        "full_name",
        "Full Name",
        "content-type",
        "@type",
        "$ref",
        "sha256",
        "utf8",
        "address1",
        "OAuth2Token",
        "größe",
        "feedback",
        "accessibility",
        "x",
        "_links",
        "MAX_SIZE",
        "html5",
        "defaultBranchRef",
        "allow_merge_commit",
        "IPv4Addresses",
        "base64EncodedData",
    ] {
        let schema = shape(&[json!({ key: 1 })]).to_schema();
        assert_eq!(schema["properties"], json!({ key: {"type": "integer"} }), "{key:?}");
    }
}

/// A record keeps its fields beside keys that are data, and a map of records stays a map.
#[test]
fn a_record_with_odd_keys_keeps_its_fields() {
    let record = json!({"id": 1, "name": "a", "ok": true, "weight (kg)": 3.5});
    let expected = json!({"type": "object", "properties": {
        "id": {"type": "integer"}, "name": {"type": "string"}, "ok": {"type": "boolean"},
    }, "required": ["id", "name", "ok"], "additionalProperties": {"type": "number"}});
    check(std::slice::from_ref(&record), expected.clone());
    assert_eq!(
        shape(std::slice::from_ref(&record)).render(200),
        "{id: number, name: string, ok: boolean, [key]: number}"
    );
    // In every order of merging, and in one array.
    let plain = json!({"id": 1, "name": "a", "ok": true});
    check(&[record.clone(), plain.clone()], expected.clone());
    check(&[plain.clone(), record.clone()], expected.clone());
    let mut expected = expected;
    expected["additionalProperties"] = json!({"type": "number"});
    let both = shape(&[json!([plain, record])]).to_schema();
    assert_eq!(both["items"], expected);
    // Once a map, always a map.
    let map = json!({"2024-01-01": {"v": 1}, "2024-01-02": {"v": 2}});
    check(
        std::slice::from_ref(&map),
        json!({"type": "object", "additionalProperties":
            {"type": "object", "properties": {"v": {"type": "integer"}}, "required": ["v"]}}),
    );
    let one = shape(&[map.clone(), record.clone()]);
    assert!(one.is_same_as(&shape(&[record, map])));
    assert!(one.to_schema().get("properties").is_none());
    // Half of the keys are data, or all values are alike: a map.
    for map in [json!({"a": 1, "b@c": "x"}), json!({"total": 1, "sum": 2, "rest": 3, "2024-01-01": 4})] {
        assert!(shape(&[map]).to_schema().get("properties").is_none());
    }
}

#[test]
fn an_object_that_is_a_map_once_is_a_map_for_ever() {
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    check(&[json!({"plain": 1}), json!({"2024-01-01": 1}), json!({"other": 1})], map.clone());
    let many: Map<String, Value> =
        (0..26 * 3).map(|at| (format!("{}{}", char::from(b'a' + at % 26), at / 26), json!(at))).collect();
    check(&[Value::Object(many.clone())], map.clone());
    // One key per call: users, repositories.
    let results: Vec<Value> = many.iter().map(|(key, value)| json!({ key: value })).collect();
    check(&results, map);
}

#[test]
fn no_value_is_kept() {
    let secret = "hunter2hunter2";
    let results = [
        json!({"password": secret, "nested": [{"pin": 987_654_321, "note": secret, "when": 0.123_456_789}], secret.repeat(5): 1, "k": {format!("{secret}@x"): secret}}),
    ];
    let shape = shape(&results);
    for text in [
        serde_json::to_string(&shape).unwrap(),
        shape.to_schema().to_string(),
        format!("{shape:?}"),
        shape.render(1_000),
    ] {
        for value in [secret, "987654321", "0.123456789", "987_654"] {
            assert!(!text.contains(value), "{text}");
        }
    }
}

#[test]
fn a_shape_is_a_short_text() {
    for (results, expected) in [
        (vec![json!({"content": "text"})], "{content: string}"),
        (vec![json!("text"), json!(null)], "string | null"),
        (vec![json!([])], "[]"),
        (vec![json!({})], "{}"),
        (vec![json!([1, 2.5, "x"])], "(number | string)[]"),
        (vec![json!([{"id": 1, "tags": ["x"]}, {"id": 2}])], "{id: number, tags?: string[]}[]"),
        (vec![json!([{"a": null}, {"a": 1}])], "{a: number | null}[]"),
        (vec![json!([[1], null])], "(number[] | null)[]"),
        (vec![json!({"2024-01-01": {"a": true}})], "{[key]: {a: boolean}}"),
        (vec![json!({"full name": 1}), json!("text")], "{\"full name\": number} | string"),
    ] {
        assert_eq!(shape(&results).render(300), expected);
    }
}

/// Inner levels are left out first, so that all outer fields can be read.
#[test]
fn the_text_of_a_shape_is_bounded() {
    let deep = json!({"alpha": {"inner": {"leaf": 1}}, "beta": [{"inner": {"leaf": 1}}], "gamma": {}});
    let deep = shape(&[deep]);
    assert_eq!(
        deep.render(300),
        "{alpha: {inner: {leaf: number}}, beta: {inner: {leaf: number}}[], gamma: {}}"
    );
    assert_eq!(deep.render(60), "{alpha: {inner: {…}}, beta: {inner: {…}}[], gamma: {}}");
    assert_eq!(deep.render(40), "{alpha: {…}, beta: {…}[], gamma: {}}");
    assert_eq!(deep.render(20), "{alpha: {…}, beta: …");
    let mut nested = json!(1);
    for _ in 0..200 {
        nested = json!({"array": [nested], "ünder": "x"});
    }
    let fields: Map<String, Value> =
        (b'a'..=b'z').map(|letter| (char::from(letter).into(), json!(1))).collect();
    for value in [nested, Value::Object(fields)] {
        for max in [0, 1, 5, 50, 100] {
            let text = shape(std::slice::from_ref(&value)).render(max);
            assert!(text.chars().count() <= max.max(1), "{max}: {text}");
        }
    }
}

#[test]
fn says_whether_anything_new_was_learned() {
    let mut shape = shape(&[json!({"a": 1})]);
    assert!(!shape.merge(Shape::from_value(&json!({"a": 2}))));
    assert_eq!(shape.calls(), 2);
    assert!(shape.merge(Shape::from_value(&json!({"a": null}))));
    assert!(!shape.merge(Shape::from_value(&json!({"a": 3}))));
    assert!(shape.merge(Shape::from_value(&json!({}))));
    assert!(!shape.merge(Shape::from_value(&json!({}))));
    assert_eq!(shape.calls(), 6);
}

#[test]
fn is_read_back_from_disk_as_it_was_and_is_small() {
    let shape = shape(&[json!({"a": [{"b": null}, {"c": 1.5}], "m": {"1": "x"}}), json!([1])]);
    let text = serde_json::to_string(&shape).unwrap();
    assert_eq!(serde_json::from_str::<Shape>(&text).unwrap(), shape);
    assert!(text.len() < 150, "{text}");
}

/// A small xorshift generator: the same values in every run.
struct Generator(u64);

impl Generator {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn value(&mut self, depth: u64) -> Value {
        let kinds = if depth == 0 { 5 } else { 8 };
        match self.below(kinds) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(100)),
            3 => json!(0.5),
            4 => json!("text"),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let keys = ["a", "b", "c", "d", "e", "2024-01-01"];
                // Mostly field names, because one data key turns an object into a map.
                let count = self.below(5);
                let keys: Vec<&str> = (0..count)
                    .map(|_| {
                        keys[usize::try_from(if self.below(20) == 0 { 5 } else { self.below(5) }).unwrap()]
                    })
                    .collect();
                Value::Object(keys.into_iter().map(|key| (key.to_owned(), self.value(depth - 1))).collect())
            }
        }
    }
}

fn merged(one: &Shape, other: &Shape) -> Shape {
    let mut shape = one.clone();
    shape.merge(other.clone());
    shape
}

#[test]
fn merging_is_commutative_associative_and_idempotent() {
    let mut generator = Generator(0x9E37_79B9_7F4A_7C15);
    for _ in 0..2_000 {
        let [a, b, c] = [(); 3].map(|()| Shape::from_value(&generator.value(4)));
        assert_eq!(merged(&a, &b), merged(&b, &a));
        assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        assert!(merged(&a, &a).is_same_as(&a));
        let mut again = merged(&a, &b);
        assert!(!again.merge(b.clone()), "what is known is not new");
        assert!(!again.merge(a.clone()));
    }
}

#[test]
fn the_elements_of_an_array_are_as_results_one_by_one() {
    let mut generator = Generator(42);
    for _ in 0..500 {
        let items: Vec<Value> = (0..generator.below(6) + 1).map(|_| generator.value(3)).collect();
        let array = Shape::from_value(&json!(items));
        assert_eq!(*array.root.elements.unwrap(), shape(&items).root);
    }
}

#[test]
fn every_result_satisfies_the_schema_of_its_shape() {
    let mut generator = Generator(7);
    for _ in 0..500 {
        let results: Vec<Value> = (0..4).map(|_| generator.value(4)).collect();
        let schema = shape(&results).to_schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for result in &results {
            assert!(validator.is_valid(result), "{result} {schema}");
        }
    }
}

#[test]
fn a_shape_is_bounded_whatever_it_is_made_of() {
    let deep = (0..120).fold(json!(1), |inner, _| json!({ "a": inner }));
    let text = Shape::from_value(&deep).to_schema().to_string();
    assert!(text.matches("properties").count() <= MAX_DEPTH, "{text}");

    let name = |at: usize| {
        format!(
            "{}{}",
            char::from(b'a' + u8::try_from(at % 26).unwrap()),
            char::from(b'a' + u8::try_from(at / 26).unwrap())
        )
    };
    let wide =
        |inner: Value| -> Value { (0..60).map(|at| (name(at), inner.clone())).collect::<Map<_, _>>().into() };
    let mut shape = Shape::from_value(&wide(wide(wide(json!(1)))));
    assert!(shape.root.count() <= MAX_NODES);
    shape.merge(Shape::from_value(&wide(wide(json!(2)))));
    assert!(shape.root.count() <= MAX_NODES);
    assert!(serde_json::to_string(&shape).unwrap().len() < 64 << 10);
}

/// So a large result costs no more than a small one: rows between the ends are not looked at.
#[test]
fn only_the_ends_of_a_large_result_are_visited() {
    let rows = |field: &str, count: usize| vec![json!({ "id": 1, field: "n" }); count];
    let small = Shape::from_value(&rows("name", 400).into());
    let large = [rows("name", 200), rows("late", 20_000), rows("name", 200)].concat();
    let large = Shape::from_value(&large.into());
    assert_eq!(serde_json::to_string(&large).unwrap(), serde_json::to_string(&small).unwrap());
}

/// The values read from text are those visited in a tree.
#[test]
fn v_291_a_shape_of_text_is_that_of_its_tree() {
    let mut generator = Generator(11);
    let wide = |count: usize, value: Value| -> Value {
        (0..count).map(|number| (format!("f{number}"), value.clone())).collect::<Map<_, _>>().into()
    };
    let long = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|number| if number % 50 == 49 { json!(null) } else { json!({ "n": number }) })
            .collect()
    };
    let mut values: Vec<Value> = (0..500).map(|_| generator.value(4)).collect();
    values.extend([
        wide(64, json!(1)),
        wide(65, json!([1])),
        wide(300, wide(30, json!("x"))),
        json!([wide(300, json!(1)), 1]),
        json!(long(1_000)),
        json!({ "a": [long(200), long(30)], "b": [[long(50)]] }),
        json!([[[[[[[[[[[1]]]]]]]]]]]),
        json!({ "x".repeat(100): 1 }),
        json!({ format!("a{}", "é".repeat(100)): 1 }),
    ]);
    for value in values {
        let text = Json::from(value.clone());
        assert_eq!(
            Shape::from_text(&text),
            Shape::from_value(&value),
            "{}",
            text.text().get(..200).unwrap_or(text.text())
        );
    }
    // The size of the surrounding text does not matter.
    let many = Json::parse(&format!("[{}]", vec![r#"{"":0}"#; 500_000].join(","))).unwrap();
    assert_eq!(Shape::from_text(&many).to_schema()["items"]["additionalProperties"]["type"], "integer");
}

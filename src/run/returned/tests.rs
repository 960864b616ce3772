use serde_json::json;

use super::*;

#[test]
fn the_shapes_of_a_run_are_bounded() {
    let mut returned = Returned::default();
    assert!(returned.is_empty() && returned.shapes().is_empty());
    let wide: serde_json::Map<_, _> =
        (b'a'..=b'z').map(|letter| (char::from(letter).into(), json!("x"))).collect();
    for number in 0..1_000 {
        let tool = format!("tool{number}");
        if returned.wants("server", &tool) {
            returned.add("server", &tool, Shape::from_value(&json!(wide)));
        }
    }
    assert_eq!(returned.tools, MAX_TOOLS);
    let shapes = returned.shapes();
    assert!(!shapes.is_empty() && shapes.len() < MAX_TOOLS, "the rest does not fit");
    assert!(shapes.iter().all(|shape| shape.shape.chars().count() <= MAX_SHAPE_CHARACTERS));
    assert!(shapes.iter().map(|shape| shape.shape.chars().count()).sum::<usize>() <= MAX_CHARACTERS);
}

#[test]
fn the_first_results_of_a_tool_make_one_shape() {
    let mut returned = Returned::default();
    let mut looked_at = 0;
    for number in 0..100 {
        let result = if number == 0 { json!({ "items": [{ "id": 1 }] }) } else { json!("no items") };
        if returned.wants("server", "find") {
            returned.add("server", "find", Shape::from_value(&result));
            looked_at += 1;
        }
    }
    assert_eq!(looked_at, MAX_RESULTS);
    assert!(returned.has_field("items") && returned.has_field("id") && !returned.has_field("name"));
    let shapes = returned.shapes();
    assert_eq!(shapes.len(), 1);
    assert_eq!((&*shapes[0].server, &*shapes[0].tool), ("server", "find"));
    assert_eq!(shapes[0].shape, "{items: {id: number}[]} | string");
}

/// A warning that no tool has returned a field needs the names of all of them.
#[test]
fn names_of_fields_are_known_or_there_are_none() {
    let known = |results: &[serde_json::Value], max: usize| {
        let mut returned = Returned::default();
        for (number, result) in results.iter().enumerate() {
            returned.add("server", &format!("tool{number}"), Shape::from_value(result));
        }
        returned.fields(max).map(|names| names.into_iter().collect::<Vec<_>>())
    };
    let result = json!({ "items": [{ "id": 1, "next_page": null }] });
    let names = ["id", "items", "next_page"].map(str::to_owned).to_vec();
    assert_eq!(known(std::slice::from_ref(&result), 4), Some(names));
    assert_eq!(known(std::slice::from_ref(&result), 3), None);
    // The keys of a map are data, of which nothing is kept.
    let map = json!({ "by_mail": { "ada@example.com": 1, "bob@example.com": 2 } });
    assert_eq!(known(&[result.clone(), map], 100), None);
    let wide: serde_json::Map<_, _> = (0..100).map(|number| (format!("field{number}"), json!(1))).collect();
    assert_eq!(known(&[result, json!(wide)], 1_000), None);
}

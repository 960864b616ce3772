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

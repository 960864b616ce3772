use serde_json::json;

use super::*;

fn inferred(directory: &tempfile::TempDir) -> InferredSchemas {
    InferredSchemas::new(Some(Store::new(directory.path())))
}

#[test]
fn shapes_are_remembered_by_later_processes_without_a_value() {
    let directory = tempfile::tempdir().unwrap();
    let server: Arc<str> = "s".into();
    let first = inferred(&directory);
    assert_eq!(first.shape(&server, Some("id"), "find"), None);
    assert!(first.record(
        &server,
        Some("id"),
        "find",
        Shape::from_value(&json!({ "name": "sesame-hunter2", "age": 48_151_623 }))
    ));
    assert!(!first.record(&server, Some("id"), "find", Shape::from_value(&json!({ "name": "x", "age": 2 }))));
    assert!(first.record(&server, Some("id"), "find", Shape::from_value(&json!({ "name": null }))));
    first.save();
    let second = inferred(&directory);
    let shape = second.shape(&server, Some("id"), "find").unwrap();
    assert_eq!(shape.calls(), 3);
    assert!(shape.is_same_as(&first.shape(&server, Some("id"), "find").unwrap()));
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("48151623"), "{text}");
    }
    assert_eq!(second.clear().unwrap(), 1);
    assert_eq!(inferred(&directory).shape(&server, Some("id"), "find"), None);
}

#[test]
fn processes_add_to_what_others_have_seen() {
    let directory = tempfile::tempdir().unwrap();
    let server: Arc<str> = "s".into();
    let processes = [inferred(&directory), inferred(&directory)];
    for (position, process) in processes.iter().enumerate() {
        assert_eq!(process.shape(&server, Some("id"), "t"), None);
        process.record(
            &server,
            Some("id"),
            "t",
            Shape::from_value(&json!({ (format!("field{position}")): 1 })),
        );
    }
    processes.iter().for_each(InferredSchemas::save);
    // A second save counts nothing twice.
    processes.iter().for_each(InferredSchemas::save);
    let shape = inferred(&directory).shape(&server, Some("id"), "t").unwrap();
    assert_eq!(shape.calls(), 2);
    let schema = shape.to_schema();
    let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["field0", "field1"]);
}

/// A server whose lists have other tools each time.
#[test]
fn the_tools_of_a_server_with_a_shape_have_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let server: Arc<str> = "s".into();
    let shapes = inferred(&directory);
    let record = |tool: &str| shapes.record(&server, Some("id"), tool, Shape::from_value(&json!(1)));
    for number in 0..MAX_TOOLS {
        assert!(record(&format!("tool{number}")));
    }
    assert!(shapes.wants(&server, Some("id"), "tool0") && !shapes.wants(&server, Some("id"), "more"));
    assert!(!record("more") && shapes.shape(&server, Some("id"), "more").is_none());
    // Another process has seen another one.
    let other = inferred(&directory);
    other.record(&server, Some("id"), "other", Shape::from_value(&json!(1)));
    shapes.save();
    other.save();
    let known = inferred(&directory);
    assert!(known.shape(&server, Some("id"), "tool0").is_some());
    assert!(known.shape(&server, Some("id"), "other").is_none());
}

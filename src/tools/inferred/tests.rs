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

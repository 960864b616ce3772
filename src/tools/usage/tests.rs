use serde_json::json;

use super::*;

fn definition(input: Value, output: Option<Value>) -> ToolDefinition {
    ToolDefinition {
        input_schema: input.into(),
        output_schema: output.map(Into::into),
        ..ToolDefinition::new("tool")
    }
}

fn both(input: Value, output: Option<Value>) -> [String; 2] {
    let definition = definition(input, output);
    let tool = ToolTypes { definition: &definition, inferred: None };
    let input = parsed(&definition.input_schema);
    let output = tool.output_schema();
    [Notation::TypeScript, Notation::Python]
        .map(|notation| signature(&input, output.as_ref(), notation, DETAILS[0]))
}

#[test]
fn parameters_and_results_in_both_languages() {
    let input = json!({
        "type": "object",
        "properties": {
            "head": { "type": "integer" },
            "path": { "type": "string" },
            "tags": { "type": "array", "items": { "type": ["string", "null"] } },
            "mode": { "enum": ["r", "w", true, null] },
            "ratio": { "anyOf": [{ "type": "number" }, { "type": "boolean" }] },
            "odd name": {},
        },
        "required": ["path"],
    });
    let output = json!({ "type": "object", "properties": { "content": { "type": "string" } }, "required": ["content"] });
    let [typescript, python] = both(input, Some(output));
    assert_eq!(
        typescript,
        "({path: string, head?: number, tags?: (string|null)[], mode?: \"r\"|\"w\"|true|null, \
         ratio?: number|boolean, \"odd name\"?: any}): {content: string}"
    );
    assert_eq!(
        python,
        "(path: str, head?: int, tags?: list[str|None], mode?: \"r\"|\"w\"|True|None, \
         ratio?: float|bool, \"odd name\"?: Any) -> {content: str}"
    );
    assert_eq!(both(json!({ "type": "object" }), None), ["({…})", "(…)"], "nothing is known");
    assert_eq!(both(json!({ "type": "object", "properties": {} }), None), ["()", "()"]);
    assert_eq!(both(json!({ "type": "object", "additionalProperties": false }), None), ["()", "()"]);
}

#[test]
fn a_wrapper_is_what_scripts_receive() {
    let list = json!({ "type": "array", "items": { "$ref": "#/$defs/Row" } });
    let row = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
    let wrapper = |more: Value| {
        let mut schema =
            json!({ "type": "object", "properties": { "result": list }, "$defs": { "Row": row } });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        both(json!({ "properties": {} }), Some(schema))[0].clone()
    };
    assert_eq!(wrapper(json!({ "required": ["result"] })), "(): {id?: number}[]");
    assert_eq!(wrapper(json!({ "x-fastmcp-wrap-result": true })), "(): {id?: number}[]");
    assert_eq!(wrapper(json!({})), "(): {result?: {id?: number}[]}", "no SDK has made this one");
}

/// Types that are too long lose their inner fields first, and are then cut.
#[test]
fn long_types_are_shortened() {
    let deep = |fields: usize| {
        let inner: serde_json::Map<String, Value> =
            (0..fields).map(|number| (format!("field_{number}"), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": { "a": { "type": "object", "properties": inner } } })
    };
    assert_eq!(
        both(json!({ "properties": {} }), Some(deep(2)))[0],
        "(): {a?: {field_0?: string, field_1?: string}}"
    );
    assert_eq!(both(json!({ "properties": {} }), Some(deep(9)))[0], "(): {a?: {…}}");
    let wide: serde_json::Map<String, Value> =
        (0..100).map(|number| (format!("field_{number}"), json!({ "type": "string" }))).collect();
    let text = &both(json!({ "properties": wide }), None)[0];
    assert!(text.ends_with(", …})"), "{text}");
    assert!(text.chars().count() < DETAILS[0].parameters + 8, "{text}");
}

/// What a server writes can neither take long nor end the line.
#[test]
fn hostile_schemas() {
    let cycle =
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "properties": { "a": { "$ref": "#/$defs/a" } } } } });
    assert_eq!(both(json!({ "properties": {} }), Some(cycle))[0], "(): {a?: any}");
    let mut doubling = json!({ "type": "string" });
    for _ in 0..60 {
        doubling = json!({ "anyOf": [doubling.clone(), { "type": "array", "items": { "type": "null" } }] });
    }
    assert!(both(json!({ "properties": { "x": doubling } }), None)[0].len() < 400);
    let name = "a\n*/\u{202e}\"";
    let text = both(json!({ "properties": { name: { "const": "\n" } } }), None)[0].clone();
    assert_eq!(text, "({\"a\\n*/\\u{202e}\\\"\"?: \"\\n\"})");
}

#[test]
fn the_first_sentence_without_what_all_tools_say() {
    let shared = "This tool belongs to the files. Tool description: ";
    let descriptions =
        ["Reads a file. Slowly.", "Writes.", "Lists names"].map(|own| format!("{shared}{own}"));
    let all = descriptions.iter().map(String::as_str);
    assert_eq!(shared_beginning(all.clone().chain(["Another"])), shared);
    assert_eq!(shared_beginning(all.clone().take(2)), "", "two are not enough");
    assert_eq!(shared_beginning(all.chain(["B", "C", "D", "E"])), "", "less than half");
    assert_eq!(summary(&descriptions[0], shared.len(), 80), "Reads a file");
    assert_eq!(
        summary(" Reads\n  a file, or\u{200b} more of it.\n\nAnd more", 0, 80),
        "Reads a file, or\\u{200b} more of it"
    );
    assert_eq!(summary("Reads one file, and then another one", 0, 22), "Reads one file, and…");
    assert_eq!(summary(&"x".repeat(1 << 20), 0, 10), "xxxxxxxxx…");
}

#[test]
fn a_deprecated_tool_says_so() {
    for (description, expected) in [
        (
            "Reads a file. DEPRECATED: Use read_text_file instead.",
            Some("DEPRECATED: Use read_text_file instead"),
        ),
        ("\nDeprecated compatibility entry point. Use b.", Some("Deprecated compatibility entry point")),
        ("[DEPRECATED] Use b", Some("[DEPRECATED] Use b")),
        ("**Deprecated**: use b", Some("Deprecated**: use b")),
        ("Lists deprecated packages", None),
        ("Depr\u{e9}cated", None),
        ("", None),
    ] {
        assert_eq!(deprecation(description, 48).as_deref(), expected, "{description}");
    }
    let far = format!("{}. Deprecated", "x".repeat(2_000));
    assert_eq!(deprecation(&far, 48), None);
}

#[test]
fn names_that_are_no_identifiers_are_in_brackets() {
    let names = ["read_file", "class", "read-file", "a$b", "1"];
    let access = |notation| names.map(|name| access(name, notation)).join(" ");
    assert_eq!(access(Notation::TypeScript), ".read_file .class [\"read-file\"] .a$b [\"1\"]");
    assert_eq!(access(Notation::Python), ".read_file [\"class\"] [\"read-file\"] [\"a$b\"] [\"1\"]");
}

#[test]
fn a_line_says_as_much_as_fits() {
    let fields: serde_json::Map<String, Value> = ["path", "encoding", "first_line", "last_line"]
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
        .collect();
    let output = json!({ "properties": { "content": { "type": "string" } }, "required": ["content"] });
    let input = json!({ "properties": fields, "required": ["path"] });
    let definition = definition(input, Some(output));
    let tool = ToolTypes { definition: &definition, inferred: None };
    let check = |max: usize, expected: &str| {
        let line = fitting_line(tool, Notation::TypeScript, max, |signature, detail| {
            let summary = "Reads a text file from disk, or some of its lines, in any encoding that is known";
            format!("read{signature}{}", self::summary(summary, 0, detail.summary.max(1)))
        });
        assert_eq!(line, expected);
        assert!(max < 8 || estimate(&line) <= max, "{} tokens: {line}", estimate(&line));
    };
    let full =
        "({path: string, encoding?: string, first_line?: string, last_line?: string}): {content: string}";
    check(
        100,
        &format!(
            "read{full}Reads a text file from disk, or some of its lines, in any encoding that is known"
        ),
    );
    check(8, "read({…})…");
    check(0, "read({…})…");
}

#[test]
fn parameters_are_left_out_whole_and_names_stay() {
    let tool = |name: &str, parameters: &[&str]| ToolNames {
        name: name.to_owned(),
        parameters: parameters.iter().map(|&name| name.to_owned()).collect(),
    };
    let shown = |max: usize| name_and_parameters(&tool("read", &["path", "head?", "tail?"]), max);
    assert_eq!(shown(24), "read(path, head?, tail?)");
    assert_eq!(shown(23), "read(path, head?, …)");
    assert_eq!(shown(19), "read(path, …)");
    assert_eq!(shown(12), "read(…)");
    assert_eq!(shown(3), "read(…)");
    assert_eq!(name_and_parameters(&tool("list", &[]), 3), "list()");
    let long = name_and_parameters(&tool(&"x".repeat(100), &["path"]), 20);
    assert_eq!(long, format!("{}…(…)", "x".repeat(64)));
}

/// References to one list of names: each would be read again, for each line that is tried.
#[test]
fn v_619_lists_of_names_count_as_often_as_they_are_looked_at() {
    let line = |names: usize| {
        let fields = json!({ "a": { "type": "string" } });
        let one = json!({ "type": "object", "properties": fields, "required": vec!["a"; names] });
        let fields: serde_json::Map<String, Value> =
            (0..3).map(|at| (format!("f{at}"), json!({ "$ref": "#/$defs/one" }))).collect();
        let [typescript, _] =
            both(json!({ "$defs": { "one": one }, "type": "object", "properties": fields }), None);
        typescript
    };
    assert_eq!(line(100), "({f0?: {a: string}, f1?: {a: string}, f2?: {a: string}})");
    assert_eq!(line(20_000), "({f0?: {a: any}, f1?: any, f2?: any})");
}

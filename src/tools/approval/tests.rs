use serde_json::json;

use super::*;

/// The defaults of the MCP specification, and the worse case if annotations contradict each other
/// or are not booleans.
#[test]
fn what_annotations_say() {
    for (annotations, writes, destroys, reaches_out) in [
        (json!(null), true, true, true),
        (json!({}), true, true, true),
        (json!({ "readOnlyHint": true }), false, false, true),
        (json!({ "readOnlyHint": false }), true, true, true),
        (json!({ "destructiveHint": false }), true, false, true),
        (
            json!({ "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false }),
            false,
            false,
            false,
        ),
        (json!({ "readOnlyHint": true, "destructiveHint": true }), true, true, true),
        (json!({ "readOnlyHint": "true", "destructiveHint": 0, "openWorldHint": null }), true, true, true),
        (json!("readOnlyHint"), true, true, true),
    ] {
        let effects = Effects::from_annotations(Some(&annotations));
        assert_eq!(effects, Effects { writes, destroys, reaches_out }, "{annotations}");
        let words = AskAnnotation::ALL.map(|annotation| annotation.holds(effects));
        assert_eq!(words, [destroys, writes, reaches_out], "{annotations}");
    }
    assert_eq!(Effects::from_annotations(None), Effects::UNKNOWN);
    let reads = Effects::from_annotations(Some(&json!({ "readOnlyHint": true })));
    assert_eq!(reads.not_read_only(), Effects::UNKNOWN);
    assert_eq!(Effects::UNKNOWN.read_only(), reads);
    // A tool that declares that it destroys nothing has declared so as a writing tool.
    let writes = Effects::from_annotations(Some(&json!({ "destructiveHint": false })));
    assert_eq!(writes.not_read_only(), writes);
}

/// Otherwise code seems to be a part of the comment before it.
#[test]
fn v_772_code_is_shown_on_the_line_on_which_it_begins() {
    let code = "// a\u{2028}b()\n\n// c\rd()\r\n// e\u{2029}f()";
    let request = ApprovalRequest {
        server: "scripts".to_owned(),
        tool: "save".to_owned(),
        description: None,
        annotations: None,
        arguments: json!({ "code": code }).as_object().unwrap().clone(),
        exact_numbers: Vec::new(),
        reason: AskReason::ScriptChange,
        script: "script.ts".to_owned(),
        tenant: None,
        time: Duration::ZERO,
    };
    let lines = request.code_lines().unwrap();
    assert_eq!(lines, [r"// a\u{2028}", "b()", "", r"// c\u{d}", "d()", r"// e\u{2029}", "f()"]);
}

#[test]
fn what_is_shown_hides_nothing_and_is_the_same_json() {
    let arguments = json!({
        "path": "a\u{1b}[2K\u{7f}\u{9b}b",
        "\u{202e}key": ["\u{200b}\u{feff}", "tag \u{e0041}", "line\n\ttab\r", "\u{2028}"],
        "plain": "ünïcödé 日本 🙂",
        "number": 1.0e2,
    });
    let request = ApprovalRequest {
        server: "s".to_owned(),
        tool: "t".to_owned(),
        description: None,
        annotations: None,
        arguments: arguments.as_object().unwrap().clone(),
        exact_numbers: Vec::new(),
        reason: AskReason::Pattern("s.*".to_owned()),
        script: "script.ts".to_owned(),
        tenant: None,
        time: Duration::ZERO,
    };
    let text = request.arguments_text();
    let seen = |character: char| character == '\n' || !is_hidden(character);
    assert!(text.chars().all(seen) && !text.contains(['\t', '\r']), "{text}");
    assert!(text.contains("ünïcödé 日本 🙂") && text.contains(r"\u001b[2K\u007f\u009b"), "{text}");
    assert!(text.contains(r"tag \udb40\udc41"), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), arguments);
    let odd = ApprovalRequest { tool: "a\n\u{202e}b\u{1b}".to_owned(), ..request.clone() };
    assert_eq!(odd.call_text(), r"s.a\u{a}\u{202e}b\u{1b}");
    // Secrets in arguments do not get into logs.
    assert!(!format!("{request:?}").contains("plain"));
}

#[test]
fn words_are_found_by_their_text_only() {
    for annotation in AskAnnotation::ALL {
        assert_eq!(AskAnnotation::from_word(annotation.as_str()), Some(annotation));
    }
    for word in ["", "Destructive", "destructive ", "read-only", "open_world", "*"] {
        assert_eq!(AskAnnotation::from_word(word), None, "{word}");
    }
}

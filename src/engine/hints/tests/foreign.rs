//! Scripts that were written for other engines, inputs as other programs pass them, and values that are lost.

use serde_json::json;

use super::*;

#[test]
fn an_input_that_is_a_text_is_read() {
    let typescript = "the run's input is a text, and not what is in it: pass that as `input`, or read it with \
                      `JSON.parse(input)`";
    for (name, message, line, expected) in [
        (
            "TypeError",
            "Cannot read properties of undefined (reading 'b')",
            "return input.a.b",
            Some(typescript),
        ),
        ("TypeError", "input.map is not a function", "input.map((x) => x)", Some(typescript)),
        ("TypeError", "input.list is not iterable", "for (const x of input.list) {}", Some(typescript)),
        ("TypeError", "Cannot read properties of undefined (reading 'b')", "return other.a.b", None),
        // It reads the text, and something else is wrong.
        (
            "TypeError",
            "Cannot read properties of undefined (reading 'b')",
            "return JSON.parse(input).a.b",
            None,
        ),
        ("ReferenceError", "other is not defined", "return input + other", None),
    ] {
        let text = Failure { has_text: true, facts: CallFacts::default(), ..failure(name, message, line) };
        assert_eq!(text.typescript().as_deref(), expected, "{line}");
        let object = Failure { has_text: false, ..text };
        assert_eq!(object.typescript(), None, "{line}");
    }
    for (name, message, line) in [
        ("TypeError", "string indices must be integers, not 'str'", "inputs['a']"),
        ("AttributeError", "'str' object has no attribute 'get'", "inputs.get('a')"),
    ] {
        let text = Failure { has_text: true, facts: CallFacts::default(), ..failure(name, message, line) };
        assert!(text.python(&|_| false).unwrap().ends_with("`json.loads(inputs)`"), "{line}");
    }
    for (input, is_text) in [
        (json!("{\"a\":1}"), true),
        (json!("[1]"), true),
        (json!("{"), false),
        (json!("text"), false),
        (json!({ "a": 1 }), false),
        (json!(null), false),
    ] {
        assert_eq!(input::is_text_of_json(&input.clone().into()), is_text, "{input}");
    }
}

#[test]
fn variables_that_only_sloppy_code_has_are_declared() {
    for line in [
        "result = 5; result + 1",
        "for (result = 0; result < 3; result++) {}",
        "for (result of list) {}",
        "for ( result in object) {}",
        "result += 1",
        "result++;",
        "if (ok) result=await tools.a.b({})",
        "while ((result = next()) !== null) {}",
    ] {
        let expected = "scripts are strict code, where each variable is declared: `let result = …`";
        assert_eq!(
            typescript("ReferenceError", "result is not defined", line).as_deref(),
            Some(expected),
            "{line}"
        );
    }
    for line in [
        "return result;",
        "const other = result",
        "if (result == 1) {}",
        "if (result in object) {}",
        "list.map(result => 1)",
        "object.result = 1; f(result)",
        "results = result",
        "f(result)",
        // As Python writes arguments.
        "await tools.a.b(result=1)",
        "f(1, result = 2)",
        "",
    ] {
        assert_eq!(typescript("ReferenceError", "result is not defined", line), None, "{line}");
    }
    // A script chooses the text of an error.
    assert_eq!(typescript("ReferenceError", "a`b is not defined", "a`b = 1"), None);
    let callee = "'caller', 'callee', and 'arguments' properties may not be accessed on strict mode functions or the \
                  arguments objects for calls to them";
    let hint = typescript("TypeError", callee, "return arguments.callee(n - 1)").unwrap();
    assert!(hint.contains("give the function a name"), "{hint}");
}

#[test]
fn a_last_expression_beside_a_return_is_lost() {
    for source in [
        "if (!input) return 1;\nconst a = { b: 2 };\na.b",
        "if (!input) {\n  return [];\n}\n({ count: 2 });",
        "const rows = [];\nif (rows.length) return rows\n({\n  count: 0,\n})",
        "if not inputs:\n    return 1\n\n{'a': 1}",
        "if not inputs: return 1\nresult",
        "return rows\n// the rest\n[1, 2]",
    ] {
        assert!(ending::is_lost(source), "{source}");
    }
    for source in [
        "if (!input) return 1;\nawait tools.a.b({})",
        "if (!input) return 1;\nfor (const x of list) {\n  f(x);\n}",
        "function f() {\n  return 1;\n}\nf",
        "const f = (x) => {\n  if (x) return 1;\n};\nresult",
        "a.b",
        "if (!input) return 1;\nreturn a.b",
        "if x:\n    return 1\nelse:\n    pass",
        "if (input) {\n  f(() => { return 1; });\n}\nresult",
        "",
    ] {
        assert!(!ending::is_lost(source), "{source}");
    }
}

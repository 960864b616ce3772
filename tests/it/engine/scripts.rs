//! Every file of `tests/scripts` is run unchanged, with the mock server, `{"n": 7, "list": [1, 2]}` as input and its
//! own state, and its whole outcome is compared with the snapshot beside it.

use std::fs;

use cx::{Executor, Language, Output, Script, StateStore};
use serde_json::json;

use crate::support::mock::Mock;
use crate::support::python;
use crate::support::script_suite::without_times;

#[test]
fn snapshots() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store = StateStore::new(directory.path().join("state.sqlite3"));
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_input_file("");
    settings.set_snapshot_path("../../scripts");
    settings.bind(|| {
        insta::glob!("../../scripts", "*.{ts,py}", |path| {
            let source = fs::read_to_string(path).unwrap();
            let is_python = path.extension().is_some_and(|extension| extension == "py");
            let result = runtime.block_on(async {
                let (language, script) = if is_python {
                    // Compiled once for all tests.
                    python().await;
                    (Language::Python, Script::python(source).named("script.py"))
                } else {
                    (Language::TypeScript, Script::typescript(source).named("script.ts"))
                };
                let executor = Executor::builder()
                    .dispatcher(Mock::default())
                    .languages([language])
                    .state(store.clone(), directory.path())
                    .build()
                    .unwrap();
                let script = script.session(path.file_name().unwrap().to_string_lossy());
                executor.run(script.input(json!({ "n": 7, "list": [1, 2] }))).await.unwrap()
            });
            insta::assert_json_snapshot!(without_times(&result));
        });
    });
}

/// `input.tz` of a text is no error.
#[tokio::test]
async fn an_input_that_is_a_text_with_json_is_no_object() {
    let (executor, _) = python().await;
    for (source, is_said) in [
        ("return input.tz", true),
        ("return [input?.list?.[0] ?? null]", true),
        ("return input[\"tz\"]", true),
        ("const { tz } = input; return tz;", true),
        ("return JSON.parse(input).tz", false),
        ("return JSON.parse(input as string).tz", false),
        // What a script that passes the text on does with it.
        ("const path = \"/tmp/input.json\"; return path === input ? path : null;", false),
        ("const saved = new Map([[\"a\", input]]); return saved.get(\"b\") ?? null;", false),
        ("const text = input.trim(); if (text.length > 1e6) throw new Error(\"long\");", false),
        ("return input.length", false),
        ("return null", false),
    ] {
        let script = Script::typescript(source).input(json!("{\"list\":[]}"));
        let result = executor.run(script).await.unwrap();
        let warning = "the run's input is a text, and not what is in it";
        let says = |entry: &Output| matches!(entry, Output::Log { text, .. } if text.starts_with(warning));
        assert_eq!(result.logs.iter().any(says), is_said, "{source}: {result:?}");
    }
}

/// The scripts of the folder have an input.
#[tokio::test]
async fn a_run_without_an_input_says_so() {
    let (executor, _) = python().await;
    for (script, name) in [
        (Script::typescript("return input.tz"), "input"),
        (Script::typescript("const { tz } = input; return tz"), "input"),
        (Script::python("inputs['tz']"), "inputs"),
        (Script::python("inputs.get('tz')"), "inputs"),
    ] {
        let result = executor.run(script).await.unwrap();
        let hint = result.error().and_then(|error| error.hint.as_deref()).unwrap_or_default();
        let expected = format!("the run was given no input, so `{name}` is null: ");
        assert!(hint.starts_with(&expected), "{}", result.to_json());
    }
}

/// V8 gives the evaluation of a declared class no location: it would be that of the statement before.
#[tokio::test]
async fn a_class_that_cannot_be_made_is_where_it_stands() {
    let (executor, _) = python().await;
    for (source, line, column) in [
        ("let x = 1;\nclass C extends (() => {}) {}", 2, 1),
        ("class C extends 3 {}", 1, 1),
        ("let x = 1;\nabstract class C extends 3 {}", 2, 1),
        ("let x = 1;\n  export class C extends 3 {}", 2, 10),
        ("let x = 1;\nexport default class C extends 3 {}", 2, 16),
        ("let x = 1;\nexport default class extends 3 {}", 2, 16),
        ("let x = 1;\nif (x) {\n  class C extends 3 {}\n}", 3, 3),
        ("let x = 1;\nconst C = class extends 3 {}", 2, 11),
        ("let x = 1;\nreturn class extends 3 {}", 2, 1),
        ("const d = () => {};\n\n@d class C extends 3 {}", 3, 1),
        ("const d = () => {};\n\nclass C extends 3 { @d m() {} }", 3, 21),
        ("let x = 1;\ninterface I { a: 1 }\nclass C extends 3 {}", 3, 1),
    ] {
        let result = executor.run(Script::typescript(source)).await.unwrap();
        let error = result.error().unwrap();
        assert_eq!(error.name.as_deref(), Some("TypeError"), "{source}: {error:?}");
        assert_eq!((error.line, error.column), (Some(line), Some(column)), "{source}: {error:?}");
    }
    let source = "function g() { throw new Error('x') }\nlet z = 1;\n\nclass D { static { g() } }";
    let result = executor.run(Script::typescript(source).named("script.ts")).await.unwrap();
    let stack = result.error().unwrap().stack.as_deref().unwrap_or_default();
    let frames: Vec<&str> = stack.lines().skip(1).map(str::trim).collect();
    let expected =
        ["at g (script.ts:1:22)", "at D.<static_initializer> (script.ts:4:20)", "at script.ts:4:1"];
    assert_eq!(frames, expected);
}

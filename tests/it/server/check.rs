//! Scripts that cannot succeed, as models send them.

use serde_json::{Value, json};

use crate::support::serve::{Client, Start};

#[test]
fn all_mistakes_of_a_script_come_back_in_one_answer() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    for (tool, code) in [
        (
            "executeTypescript",
            "await tools.well.echo({});\nawait tools.nowhere.x({});\nif (input) await tools.absent.y();\nawait tools.nowhere.z()",
        ),
        (
            "executePython",
            "await tools.well.echo()\nawait tools.nowhere.x()\nif inputs:\n    await tools.absent.y()\nawait tools.nowhere.z()",
        ),
    ] {
        let result = client.call(tool, json!({ "code": code }));
        let answer = &result["structuredContent"];
        assert_eq!(answer["error"]["code"], "CHECK_FAILED", "{answer}");
        assert_eq!(answer["error"]["line"], 2);
        assert!(
            answer["error"].get("problems").is_none() && answer.get("toolCallsMade").is_none(),
            "{answer}"
        );
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("CHECK_FAILED: calls or imports of the script cannot succeed\nerror at line 2, column 13: TOOL_NOT_FOUND: no server `nowhere`"), "{text}");
        assert_eq!(text.matches("\nerror at line ").count(), 2, "{text}");
        assert_eq!(text.matches("\nwarning at line ").count(), 1, "{text}");
        assert!(
            text.contains("\nhint: nothing of the script was run; correct it and run it again"),
            "{text}"
        );
    }
    // A single mistake reads like the failure of its call.
    let result = client.call("executeTypescript", json!({ "code": "return await tools.nowhere.x({})" }));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("TOOL_NOT_FOUND: no server `nowhere`"), "{text}");
    assert!(text.contains("\nat line 1, column 20: return await tools.nowhere.x({})\n"), "{text}");
}

#[test]
fn an_answer_has_all_syntax_errors_and_what_is_doubtful() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    for (tool, code) in [
        ("executeTypescript", "const a = ;\nawait tools.nowhere.x({});\nconst b = ;"),
        ("executePython", "a = = 1\nawait tools.nowhere.x()\nb = = 1"),
    ] {
        let result = client.call(tool, json!({ "code": code }));
        let error = &result["structuredContent"]["error"];
        assert_eq!((&error["code"], &error["line"]), (&json!("SYNTAX_ERROR"), &json!(1)), "{error}");
        assert_eq!(error["problems"].as_str().map(|text| text.lines().count()), Some(3), "{error}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("SYNTAX_ERROR: the script cannot be compiled\nerror at line 1, column "),
            "{text}"
        );
        assert_eq!(text.matches("\nerror at line ").count(), 3, "{text}");
        assert!(text.contains("\nerror at line 2, column 13: TOOL_NOT_FOUND: no server `nowhere`"), "{text}");
    }
    for (tool, code) in [
        ("executeTypescript", "if (input === 1) await tools.nowhere.x({});\nthrow new Error('that')"),
        ("executePython", "if inputs == 1:\n    await tools.nowhere.x()\nraise ValueError('that')"),
    ] {
        let result = client.call(tool, json!({ "code": code }));
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["code"], "RUNTIME_ERROR", "{error}");
        let found = error["problems"].as_str().unwrap();
        assert!(
            found.starts_with("warning at line ") && found.contains("TOOL_NOT_FOUND: no server `nowhere`"),
            "{found}"
        );
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("\nthe check of the script has found besides:\n{found}")), "{text}");
    }
}

/// The answer to a script that the check refuses, and of which nothing is run.
#[track_caller]
fn refused(client: &mut Client, tool: &str, code: &str) -> Value {
    let result = client.call(tool, json!({ "code": code }));
    let answer = &result["structuredContent"];
    assert_eq!((&answer["error"]["code"], answer.get("output")), (&json!("CHECK_FAILED"), None), "{answer}");
    result
}

/// A server whose tools are unknown is asked before the run, so that nothing happens even the first time.
#[test]
fn a_mistake_far_down_in_the_first_script_of_a_server_does_nothing() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    for (tool, code) in [
        ("executeTypescript", "console.log('started');\nreturn await tools.well.ecco({})"),
        ("executePython", "print('started')\nawait tools.well.ecco()"),
    ] {
        refused(&mut client, tool, code);
    }
}

/// The server declares that it announces changes, as most do. Arguments can only be written for the known schema.
#[test]
fn arguments_are_checked_although_an_earlier_call_might_change_the_tools() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    for (tool, code) in [
        (
            "executeTypescript",
            "console.log('started');\nawait tools.well.add_tool({});\nreturn await tools.well.slow({ ms: 'long' })",
        ),
        ("executePython", "print('started')\nawait tools.well.add_tool()\nawait tools.well.slow(ms='long')"),
    ] {
        let result = refused(&mut client, tool, code);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("`ms`: expected an integer"), "{text}");
    }
}

/// A tool that is not listed may exist after an earlier call: the run decides.
#[test]
fn a_tool_that_an_earlier_call_might_add_is_left_to_the_run() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    for (tool, code) in [
        (
            "executeTypescript",
            "console.log('started');\nawait tools.well.add_tool({});\nreturn await tools.well.no_such_tool({})",
        ),
        ("executePython", "print('started')\nawait tools.well.add_tool()\nawait tools.well.no_such_tool()"),
    ] {
        let answer = client.call(tool, json!({ "code": code }))["structuredContent"].clone();
        assert_eq!(answer["output"], "started", "{answer}");
    }
}

/// All refused imports are in one answer, and nothing before them was run.
#[test]
fn imports_of_servers_that_do_not_exist_are_refused_before_the_run() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    for (tool, code) in [
        (
            "executeTypescript",
            "import { a } from 'mcp:nowhere';\nimport { b } from 'mcp:absent';\nconsole.log('started');\nawait a();\nawait b();",
        ),
        ("executePython", "print('started')\nfrom mcp_tools import nowhere\nfrom mcp_tools import absent\n"),
    ] {
        let result = refused(&mut client, tool, code);
        let text = result["content"][0]["text"].as_str().unwrap();
        for server in ["nowhere", "absent"] {
            assert!(text.contains(&format!("TOOL_NOT_FOUND: no server `{server}`")), "{text}");
        }
    }
}

/// The same for modules of Python.
#[test]
fn imports_of_modules_that_are_not_there_are_refused_before_the_run() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let result = refused(&mut client, "executePython", "print('started')\nimport requests\nimport numpy\n");
    let text = result["content"][0]["text"].as_str().unwrap();
    let begins = "CHECK_FAILED: calls or imports of the script cannot succeed\n\
                  error at line 2, column 8: MODULE_UNAVAILABLE: No module named 'requests': ";
    assert!(text.starts_with(begins), "{text}");
    let second = "\nerror at line 3, column 8: MODULE_UNAVAILABLE: No module named 'numpy': use math, ";
    assert!(text.contains(second), "{text}");
}

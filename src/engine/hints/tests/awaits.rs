//! Calls that are not awaited, which are told apart from answers.

use crate::engine::hints::awaits::is_forgotten;
use crate::run::check::survey::{Survey, Target, ToolUse};

/// A survey that has found the calls of the source, none of which is awaited. Some are of a variable.
fn survey(source: &str) -> Survey {
    let mut survey = Survey::default();
    for (call, server) in
        [("tools.files.list()", None), ("files.list()", Some("files")), ("JSON.parse()", Some("JSON"))]
    {
        let tool = "list".to_owned();
        let target = match server {
            Some(server) => Target::ToolOfGlobal { server: server.to_owned(), tool },
            None => Target::Tool { server: "files".to_owned(), tool },
        };
        for (start, _) in source.match_indices(call) {
            let at = start..start + call.len();
            let one = ToolUse::import(target.clone(), at.clone(), at, true);
            survey.uses.push(ToolUse { is_forgotten: true, ..one });
        }
    }
    survey
}

#[test]
fn a_call_that_is_not_awaited_is_no_answer() {
    let found = |message, line, source| {
        is_forgotten(message, Some(line), source, &survey(source), &|name| name == "files")
    };
    // V8 names the call.
    for message in [
        "tools.files.list(...).map is not a function",
        "tools.files.list is not a function or its return value is not iterable",
        "searchTools(...).filter is not a function",
    ] {
        assert!(found(message, 1, ""), "{message}");
    }
    for message in ["(intermediate value).map is not a function", "list(...).map is not a function", "tools"]
    {
        assert!(!found(message, 1, ""), "{message}");
    }
    // The call is in the line that failed, or is the value of the variable that V8 names.
    let undefined = "Cannot read properties of undefined (reading 'name')";
    let kept = "const r = tools.files.list();\nreturn r;";
    for (message, line, source, expected) in [
        (undefined, 2, "const a = 1;\nreturn tools.files.list()[0].name;", true),
        (undefined, 1, "const a = 1;\nreturn tools.files.list()[0].name;", false),
        (undefined, 3, "return tools.files.list()[0].name;", false),
        ("r.map is not a function", 2, kept, true),
        ("r is not iterable", 2, kept, true),
        ("r.map is not a function", 2, "const r = files.list();\nr.map(1)", true),
        // A variable may be no server.
        ("r.map is not a function", 2, "const r = JSON.parse();\nr.map(1)", false),
        (undefined, 1, "JSON.parse().rows.map(1)", false),
        ("row.map is not a function", 2, kept, false),
        ("r.rows.map is not a function", 2, kept, false),
        ("r is not a function", 2, kept, false),
        ("r.map is not a function", 2, "send(tools.files.list());\nr.map(1)", false),
    ] {
        assert_eq!(found(message, line, source), expected, "{message}: {source}");
    }
}

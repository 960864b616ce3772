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

/// The source without its first `^`, and the line and the column of that.
fn failed(marked: &str) -> (String, Option<(u32, u32)>) {
    let at = marked.split_once('^').map(|(before, _)| {
        let (lines, last) = (before.split('\n').count(), before.rsplit('\n').next().unwrap());
        (u32::try_from(lines).unwrap(), u32::try_from(last.encode_utf16().count() + 1).unwrap())
    });
    (marked.replacen('^', "", 1), at)
}

#[test]
fn a_call_that_is_not_awaited_is_no_answer() {
    let found = |message, marked| {
        let (source, at) = failed(marked);
        is_forgotten(message, at, &source, &survey(&source), &|name| name == "files")
    };
    // V8 names the call.
    for message in [
        "tools.files.list(...).map is not a function",
        "tools.files.list is not a function or its return value is not iterable",
        "searchTools(...).filter is not a function",
        "fs.readFile(...).split is not a function",
        "fetch(...).json is not a function",
    ] {
        assert!(found(message, ""), "{message}");
    }
    for message in ["(intermediate value).map is not a function", "list(...).map is not a function", "tools"]
    {
        assert!(!found(message, ""), "{message}");
    }
    // V8 names the call of a variable, the error is where something of the call is read, or the call is the value of
    // the variable that V8 names.
    let undefined = "Cannot read properties of undefined (reading 'name')";
    let kept = "const r = tools.files.list();\nreturn r.^map;";
    for (message, marked, expected) in [
        ("files.list(...).map is not a function", "files.list().^map(f)", true),
        ("files.list is not a function or its return value is not iterable", "[...^files.list()]", true),
        ("files.li is not a function or its return value is not iterable", "[...^files.list()]", false),
        (undefined, "const a = 'ä𝄞'; return tools.files.list()[0]^.name;", true),
        (undefined, "return (tools.files.list()!)\n  .rows\n  ^.name;", true),
        (undefined, "const a = 1;\nconst { rows: { ^name } } = tools.files.list();", true),
        ("r.map is not a function", kept, true),
        ("r is not iterable", kept, true),
        ("r.map is not a function", "const r = files.list();\nr.^map(1)", true),
        (undefined, "const r = files.list();\nreturn r.content^[0].name;", true),
        (undefined, "const r = files.list();\nreturn r?.['rows']^.name;", true),
        (undefined, "const r = files.list();\nreturn r[0]^.name;", true),
        (undefined, "send(); const r: Row[] = files.list();\nreturn r[0]^.name;", true),
        // Something else is undefined, in the same line too.
        (undefined, "tools.files.list(); const r = await get(); return r.rows^.name;", false),
        (undefined, "tools.files.list()\nr^.name", false),
        (undefined, "send(tools.files.list().rows, r.row^.name)", false),
        (undefined, "const { rows: { ^name } } = r; const list = tools.files.list();", false),
        (undefined, "const { rows: { ^name } } = r, list = tools.files.list();", false),
        (undefined, "return r^.name + tools.files.list().length;", false),
        (undefined, "const list = tools.files.list();\nreturn rows[0]^.name;", false),
        // A variable may be no server.
        ("r.map is not a function", "const r = JSON.parse();\nr.^map(1)", false),
        (undefined, "JSON.parse().rows^.map(1)", false),
        (undefined, "const r = JSON.parse();\nreturn r.content^[0].name;", false),
        (undefined, "const r = files.list();\nreturn all.r.rows^[0].name;", false),
        (undefined, "const r = files.list();\nreturn r.rows.all^[0].name;", false),
        (undefined, "const r = files.list();\nreturn row.rows^[0].name;", false),
        (undefined, "const r: Row = files.list();\nreturn Row.rows^[0].name;", false),
        ("row.map is not a function", "const r = tools.files.list();\nreturn row.^map;", false),
        ("r.rows.map is not a function", "const r = tools.files.list();\nreturn r.rows.^map;", false),
        ("r is not a function", "const r = tools.files.list();\nreturn ^r();", false),
        ("r.map is not a function", "send(tools.files.list());\nr.^map(1)", false),
    ] {
        assert_eq!(found(message, marked), expected, "{message}: {marked}");
    }
}

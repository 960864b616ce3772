//! What the check finds in scripts without running them, and which scripts it refuses.

/// What the check knows of loops, of variables, and of scripts that failed or succeeded.
mod flow;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cx::{BoxFuture, CallHook, ErrorCode, Executor, Finding, HookedCall, Script, Severity, ToolError};
use serde_json::{Value, json};

use crate::support::mock::Mock;
use crate::support::{python, python_cache};

/// Two servers of native tools, and a counter of their calls.
fn executor() -> (Executor, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let answer = move |arguments: Value| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(arguments) }
    };
    let issues = json!({
        "type": "object",
        "properties": {
            "owner": { "type": "string" },
            "repo": { "type": "string" },
            "state": { "enum": ["open", "closed"] },
            "limit": { "type": "integer", "minimum": 1 },
            "labels": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["owner", "repo"],
        "additionalProperties": false,
    });
    let builder = Executor::builder()
        .cache_directory(python_cache())
        .tool("github.list_issues", issues, answer.clone())
        .tool("github.get_me", json!({ "type": "object" }), answer.clone())
        .tool(
            "files.read_file",
            json!({ "properties": { "path": { "type": "string" } }, "required": ["path"] }),
            answer,
        );
    (builder.build().unwrap(), calls)
}

fn script(source: &str, is_python: bool) -> Script {
    if is_python { Script::python(source) } else { Script::typescript(source) }
}

/// The findings as `severity line:column-column code message`.
fn shown(findings: &[Finding]) -> Vec<String> {
    let one = |finding: &Finding| {
        let end = finding.end_column.map_or_else(String::new, |end| format!("-{end}"));
        let (line, column) = (finding.line.unwrap_or(0), finding.column.unwrap_or(0));
        format!("{} {line}:{column}{end} {} {}", finding.severity, finding.code, finding.message)
    };
    findings.iter().map(one).collect()
}

async fn check(executor: &Executor, cases: &[(bool, &str, &[&str])]) {
    python().await;
    let mut wrong = Vec::new();
    for (is_python, source, expected) in cases {
        let found = shown(&executor.check(script(source, *is_python)).await.unwrap().findings);
        if found != *expected {
            wrong.push(format!("{source}\n  found {found:#?}\n  expected {expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const TS: bool = false;
const PY: bool = true;

#[tokio::test]
async fn mistakes_are_found_at_once_with_their_locations() {
    let (executor, calls) = executor();
    let no_tool = "no tool `lst_issues` on server `github`; did you mean `list_issues`?";
    check(
        &executor,
        &[
            // Names.
            (TS, "return await tools.github.lst_issues({})", &[&format!("error 1:27-37 TOOL_NOT_FOUND {no_tool}")]),
            (PY, "return await tools.github.lst_issues()", &[&format!("error 1:27-37 TOOL_NOT_FOUND {no_tool}")]),
            (TS, "return await github.lstIssues({})", &["error 1:21-30 TOOL_NOT_FOUND no tool `lstIssues` on server `github`; did you mean `list_issues`?"]),
            (TS, "return await tools.gihub.get_me()", &["error 1:20-25 TOOL_NOT_FOUND no server `gihub`; did you mean `github`?"]),
            (PY, "await tools['gihub'].get_me()", &["error 1:13-20 TOOL_NOT_FOUND no server `gihub`; did you mean `github`?"]),
            (TS, "return await callMCPTool('mcp__github__lst_issues', {})", &[&format!("error 1:26-51 TOOL_NOT_FOUND {no_tool}")]),
            (PY, "call_mcp_tool_sync('mcp__github__lst_issues')\nx = 1", &[&format!("error 1:20-45 TOOL_NOT_FOUND {no_tool}")]),
            (TS, "import { getMy } from 'mcp:github';\nreturn await getMy()", &[
                "error 1:10-15 TOOL_NOT_FOUND no tool `getMy` on server `github`; did you mean `get_me`?",
                "error 2:14-19 TOOL_NOT_FOUND no tool `getMy` on server `github`; did you mean `get_me`?",
            ]),
            (PY, "import mcp.servers.gihub as g\nawait g.get_me()", &[
                "error 1:8-30 TOOL_NOT_FOUND no server `gihub`; did you mean `github`? (in Python `from mcp_tools import github`)",
            ]),
            // Arguments.
            (TS, "return await tools.github.list_issues({ owner: 'a' })", &["error 1:27-38 INVALID_ARGUMENTS missing `repo` (a string)"]),
            (PY, "await tools.github.list_issues(owner='a', repo='b', limit='3')", &["error 1:59-62 INVALID_ARGUMENTS `limit`: expected an integer, found \"3\""]),
            (TS, "return await tools.github.list_issues({ owner: 'a', repo: x, state: 'all' })", &["error 1:69-74 INVALID_ARGUMENTS `state`: expected \"open\" or \"closed\", found \"all\""]),
            (PY, "await tools.github.list_issues(owner=a, repo=b, lables=c)", &["error 1:49-55 INVALID_ARGUMENTS unknown field `lables`; did you mean `labels`?"]),
            // In TypeScript the value could be `undefined`, and then the field is not sent.
            (TS, "return await tools.github.list_issues({ owner: a, repo: b, lables: c })", &["warning 1:60-66 INVALID_ARGUMENTS unknown field `lables`; did you mean `labels`?"]),
            (TS, "return await tools.github.list_issues({ owner: a, repo: b, labels: ['x', 1] })", &["error 1:68-76 INVALID_ARGUMENTS `labels[1]`: expected a string, found 1"]),
            (TS, "return await tools.files.read_file('a.txt')", &["error 1:14-44 INVALID_ARGUMENTS expected the arguments as one object, as in `{\"path\": \"a.txt\"}`: a string"]),
            // The call is not awaited.
            (TS, "tools.github.get_me();\nreturn 1", &["warning 1:1-22 NOT_AWAITED this call is not awaited: its result and its error are lost"]),
            (PY, "tools.github.get_me()\nx = 1", &["warning 1:1-22 NOT_AWAITED this call is not awaited: its result and its error are lost"]),
            // Code inside Markdown.
            (TS, "Here:\n```ts\nawait tools.github.get_mee();\n```\n", &["error 3:20-27 TOOL_NOT_FOUND no tool `get_mee` on server `github`; did you mean `get_me`?"]),
            (PY, "Here:\n```python\nawait tools.github.get_mee()\n```\n", &["error 3:20-27 TOOL_NOT_FOUND no tool `get_mee` on server `github`; did you mean `get_me`?"]),
            (PY, "~~~\nawait tools.github.get_mee()\n~~~\n", &["error 2:20-27 TOOL_NOT_FOUND no tool `get_mee` on server `github`; did you mean `get_me`?"]),
            (PY, "```ts\nawait tools.github.get_mee()\n```\n```py\nx = 1\n```\n", &[]),
            // A finding that is not certain is a warning.
            (TS, "if (input) await tools.github.nothing_like_it();\nreturn 1", &["warning 1:31-46 TOOL_NOT_FOUND no tool `nothing_like_it` on server `github`; the tools are `list_issues`, `get_me`"]),
            (TS, "call_tool('github', 'nothing_like_it'); return 1", &["warning 1:21-38 TOOL_NOT_FOUND no tool `nothing_like_it` on server `github`; the tools are `list_issues`, `get_me`"]),
        ],
    )
    .await;
    // Syntax, and all findings of a script in one answer.
    let found = executor.check(Script::python("x = (1\nawait tools.github.x()")).await.unwrap().findings;
    assert_eq!(found[0].code.as_str(), "SYNTAX_ERROR", "{found:?}");
    let many = "const a = await tools.github.get_yu();\nconst b = await tools.github.list_issues({ owner: 1 });\n\
                const c = await tools.fils.read_file({ path: 'x' });\nreturn [a, b, c]";
    let found = executor.check(Script::typescript(many)).await.unwrap().findings;
    let lines: Vec<_> = found.iter().map(|finding| (finding.line, finding.severity)).collect();
    let error = |line| (Some(line), Severity::Error);
    assert_eq!(lines, [error(1), error(2), error(2), error(3)], "{found:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// Each of these would run, or its failure is not certain.
#[tokio::test]
async fn nothing_is_found_where_nothing_is_wrong() {
    let (executor, _) = executor();
    check(
        &executor,
        &[
            (TS, "return await tools.github.list_issues({ owner: 'a', repo: 'b', limit: 3, labels: ['x'] })", &[]),
            (TS, "return await tools.github.listIssues({ ...input })", &[]),
            (TS, "return await tools.github.list_issues({ owner: 'a', ...input })", &[]),
            (TS, "const wanted = {}; return await tools.github.list_issues(wanted)", &[]),
            (TS, "return await tools.github.list_issues({ owner: 'a', repo: 'b', limit: null })", &[]),
            (TS, "return await tools.github[input.name]({})", &[]),
            (TS, "return await callMCPTool('github.get_me')", &[]),
            (TS, "return await callMCPTool('mcp__github__getMe', {})", &[]),
            (PY, "await call_mcp_tool('github.get_me')", &[]),
            (PY, "mcp_servers.keys()\n[name for name in mcp_servers.items()]\ntools.github\nx = 1", &[]),
            (TS, "const tools = { github: { x() {} } }; return tools.github.x()", &[]),
            (TS, "const github = { x() {} }; return github.x()", &[]),
            (TS, "if (tools.github?.nothing) return 1; return typeof tools.github.nothing", &[]),
            (TS, "return 'nothing' in tools.github", &[]),
            (TS, "console.log(JSON.parse('1')); return [1].map((x) => x.toFixed(2))", &[]),
            (TS, "return await Promise.all([1, 2].map((page) => tools.github.list_issues({ owner: 'a', repo: 'b', limit: page })))", &[]),
            (TS, "tools.github.get_me().then((me) => me)", &[]),
            (PY, "await tools.github.list_issues(owner='a', repo='b', limit=3, labels=['x'])", &[]),
            (PY, "await tools.github.list_issues(**inputs)", &[]),
            (PY, "await tools.github.list_issues({'owner': 'a', 'repo': 'b'})", &[]),
            (PY, "await tools.github.list_issues({'owner': 'a'}, repo='b')", &[]),
            (PY, "await tools.github.list_issues(owner='a', repo='b', limit=None)", &[]),
            (PY, "import json\nfrom mcp_tools import github as x\njson.loads('1')", &[]),
            (PY, "def github():\n    pass\ngithub.x()", &[]),
            (PY, "text = 'a b'\ntext.split()\n'-'.join([text])", &[]),
            (PY, "for files in [1]:\n    files.bit_length()", &[]),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_script_that_cannot_succeed_does_nothing() {
    let (executor, calls) = executor();
    python().await;
    for (is_python, source) in [
        (
            TS,
            "await tools.github.get_me();\nfor (const x of input ?? []) await tools.github.get_yu();\nawait tools.github.get_yu();\nawait tools.files.read_file({ pth: 'x' });",
        ),
        (
            PY,
            "await tools.github.get_me()\nfor x in inputs or []:\n    await tools.github.get_yu()\nawait tools.github.get_yu()\nawait tools.files.read_file(pth='x')",
        ),
    ] {
        let result = executor.run(script(source, is_python)).await.unwrap();
        let error = result.error().unwrap();
        assert_eq!(error.code, ErrorCode::CheckFailed, "{error}");
        assert_eq!(error.tool_code.map(|code| code.as_str()), Some("TOOL_NOT_FOUND"));
        // The uncertain location is reported too.
        let found: Vec<_> = error.problems.iter().map(|problem| problem.severity).collect();
        assert_eq!(found, [Severity::Warning, Severity::Error, Severity::Error], "{:?}", error.problems);
        assert!(error.message.starts_with("2 calls or imports cannot succeed: line "), "{error}");
        assert_eq!(result.to_json()["error"]["problems"].as_array().unwrap().len(), 3);
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_might_succeed_is_run() {
    let (executor, _) = executor();
    python().await;
    for (is_python, source) in [
        (TS, "try { await tools.github.get_yu() } catch (error) { return error.code }"),
        (TS, "return await tools.github.get_yu().catch((error) => error.code)"),
        (TS, "return call_tool('github', 'get_yu').error.code"),
        (TS, "const [r] = await Promise.allSettled([tools.github.get_yu()]); return r.reason.code"),
        (TS, "if (input === null) return 'TOOL_NOT_FOUND';\nreturn await tools.github.get_yu()"),
        (
            TS,
            "const tools = { github: { async get_yu() { return 'TOOL_NOT_FOUND' } } };\nreturn await tools.github.get_yu()",
        ),
        (
            TS,
            "async function f() { await tools.github.get_yu() }\ntry { await f() } catch (error) { return error.code }",
        ),
        (TS, "const p = tools.github.get_yu();\nreturn await p.catch((error) => error.code)"),
        (TS, "for (const x of []) await tools.github.get_yu();\nreturn 'TOOL_NOT_FOUND'"),
        (PY, "try:\n    await tools.github.get_yu()\nexcept McpToolError as error:\n    return error.code"),
        (PY, "return call_tool('github', 'get_yu')['error']['code']"),
        (
            PY,
            "import contextlib\nwith contextlib.suppress(McpToolError):\n    await tools.github.get_yu()\nreturn 'TOOL_NOT_FOUND'",
        ),
        (
            PY,
            "(error,) = await asyncio.gather(tools.github.get_yu(), return_exceptions=True)\nreturn error.code",
        ),
        (
            PY,
            "task = asyncio.create_task(tools.github.get_yu())\nawait asyncio.wait([task])\nreturn task.exception().code",
        ),
        (PY, "import sys\nif True:\n    sys.exit()\nawait tools.github.get_yu()"),
        (PY, "tools = None\nreturn 'TOOL_NOT_FOUND'\nawait tools.github.get_yu()"),
    ] {
        let result = executor.run(script(source, is_python).input(Value::Null)).await.unwrap();
        let value = result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
        let expected = if source.contains("sys.exit()") { Value::Null } else { json!("TOOL_NOT_FOUND") };
        assert_eq!(value, expected, "{source}");
    }
}

#[tokio::test]
async fn rules_are_obeyed() {
    let (executor, _) = executor();
    let denied = |source: &str| Script::typescript(source).deny(["github.get_me"]);
    let found = executor.check(denied("return await tools.github.get_me()")).await.unwrap().findings;
    assert_eq!(found[0].code.as_str(), "TOOL_DENIED", "{found:?}");
    // A run with a denied call is not refused: the observers of calls see the attempt.
    let result = executor.run(denied("return await tools.github.get_me()")).await.unwrap();
    assert_eq!(result.error().unwrap().code, ErrorCode::RuntimeError);
    assert_eq!(result.usage.tool_calls_refused, 1);
}

/// A hook may correct arguments before they are checked.
#[tokio::test]
async fn hooks_make_arguments_doubtful() {
    struct Mend;
    impl CallHook for Mend {
        fn before<'a>(&'a self, call: &'a mut HookedCall) -> BoxFuture<'a, Result<(), ToolError>> {
            call.arguments.insert("x".to_owned(), json!(1));
            Box::pin(async { Ok(()) })
        }
    }
    let executor = Executor::builder()
        .tool("a.b", json!({ "required": ["x"] }), |arguments: Value| async { Ok::<_, String>(arguments) })
        .hook(Mend)
        .build()
        .unwrap();
    let result = executor.run_ts("return await tools.a.b({})").await.unwrap();
    assert_eq!(result.value(), Some(&json!({ "x": 1 })));
}

/// All syntax errors, and wrong calls in the parts that could be parsed.
#[tokio::test]
async fn a_syntax_error_hides_nothing() {
    let (executor, calls) = executor();
    python().await;
    let mut wrong = Vec::new();
    for (is_python, source, expected) in [
        // The parser recovers from these.
        (
            TS,
            "function f() { await g(); }\nfunction h() { await g(); }\nawait tools.github.get_mee();",
            "1S 2S 3T",
        ),
        // It does not recover from these: their lines are removed.
        (
            TS,
            "const x = ;\nif (x {\n  console.log(x);\n}\nawait tools.github.get_mee();\nconst y = = 2;\nreturn y",
            "1S 2S 5T 6S",
        ),
        (
            TS,
            "const r = await tools.github.get_me({\n  a: 1,\n  b: ,\n});\nawait tools.github.get_mee();\nreturn r",
            "3S 5T",
        ),
        (TS, "await tools.github.get_mee();\nf(1, 2));\nawait tools.github.get_me();", "1T 2S"),
        // It is TypeScript, but not a kind that runs here.
        (TS, "import _ from 'lodash';\nawait tools.github.get_mee();\nreturn _.chunk([1], 1)", "1S 2T"),
        // All imports of packages, however many.
        (
            TS,
            "import _ from 'lodash';\nimport path from 'node:path';\nimport { x } from 'y';\nawait tools.github.get_mee();\nreturn [_, path]",
            "1S 2S 4T",
        ),
        (PY, "x = 1 +\ndef f(:\n    pass\nawait tools.github.get_mee()\ny = = 2\n", "1S 2S 4T 5S"),
        (PY, "x = f(1\nawait tools.github.get_mee()\n", "1S 2T"),
        (PY, "if input\n    x = 1\nawait tools.github.get_mee()\n", "1S 3T"),
        // Nothing else is wrong, so nothing else is reported.
        (TS, "await tools.github.get_me();\nconst x = ;", "2S"),
        (PY, "await tools.github.get_me()\nprint('a'\n", "2S"),
    ] {
        let found = executor.check(script(source, is_python)).await.unwrap().findings;
        let one = |finding: &Finding| {
            assert_eq!(finding.severity, Severity::Error, "{source}: {finding}");
            format!("{}{}", finding.line.unwrap(), &finding.code.as_str()[..1])
        };
        let shown = found.iter().map(one).collect::<Vec<_>>().join(" ");
        if shown != expected {
            wrong.push(format!("{source}\n  expected {expected}, found {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (is_python, source) in [
        (TS, "const a = ;\nawait tools.github.get_mee();\nconst b = ;"),
        (PY, "a = = 1\nawait tools.github.get_mee()\nb = = 1\n"),
    ] {
        let result = executor.run(script(source, is_python)).await.unwrap();
        let error = result.error().unwrap();
        assert_eq!((error.code, error.line), (ErrorCode::SyntaxError, Some(1)), "{error}");
        let locations: Vec<_> =
            error.problems.iter().map(|problem| (problem.line.unwrap(), problem.code.as_str())).collect();
        assert_eq!(
            locations,
            [(1, "SYNTAX_ERROR"), (2, "TOOL_NOT_FOUND"), (3, "SYNTAX_ERROR")],
            "{:?}",
            error.problems
        );
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// A megabyte of wrong calls with half a million mistakes: once the maximum of findings is reached, the other calls are
/// not judged. The first call has a hundred, of which 49 are shown.
#[tokio::test]
async fn v_483_a_megabyte_of_mistakes_is_not_judged_to_its_end() {
    let (executor, calls) = executor();
    let labels = "1,".repeat(4_900);
    let call = format!("await tools.github.list_issues({{ owner: 'a', repo: 'b', labels: [{labels}] }});");
    for (before, after, severity) in [("", "", Severity::Error), ("if (input) {", "}", Severity::Warning)] {
        let source = format!("{before}{}{after} await tools.github.get_me()", call.repeat(100));
        let found = executor.check(script(&source, TS)).await.unwrap().findings;
        assert_eq!(found.len(), 50);
        let hint = found[49].hint.as_deref();
        assert_eq!(hint, Some("51 findings are not shown; correct these first"), "{severity}");
        assert!(found.iter().all(|finding| finding.severity == severity), "{:?}", found[0]);
        assert!(found[0].message.contains("expected a string, found 1"), "{:?}", found[0]);
    }
    let result = executor.run(script(&call.repeat(100), TS)).await.unwrap();
    assert_eq!(result.error().unwrap().code, ErrorCode::CheckFailed);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

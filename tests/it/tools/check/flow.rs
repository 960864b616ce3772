//! What the check knows of loops, of variables, and of scripts that failed or succeeded.

use super::*;

#[tokio::test]
async fn calls_in_loops_over_lists_that_are_written_out_are_certain() {
    let (executor, calls) = executor();
    python().await;
    for (is_python, source) in [
        (TS, "return await Promise.all([1, 2].map((x) => tools.github.get_mee({ x })))"),
        (
            TS,
            "const ids = [1];\nreturn await Promise.all(ids.map(async (id) => { await tools.github.get_mee({ id }) }))",
        ),
        (TS, "for (const x of ['a']) { console.log(x); await tools.github.get_mee(); }\nreturn 1"),
        (PY, "await asyncio.gather(*[tools.github.get_mee(x=x) for x in [1, 2]])"),
        (PY, "ids = [1]\nawait asyncio.gather(*(tools.github.get_mee(x=x) for x in ids))"),
        (PY, "for x in ('a',):\n    await tools.github.get_mee()\nx = 1"),
        (PY, "x = [await tools.github.get_mee() for i in range(3)]"),
    ] {
        let error = executor.run(script(source, is_python)).await.unwrap().error().cloned().unwrap();
        assert_eq!(error.code, ErrorCode::CheckFailed, "{source}: {error}");
    }
    // Each may make no call.
    for (is_python, source) in [
        (TS, "const ids = [1];\nids.pop();\nfor (const id of ids) await tools.github.get_mee();\nreturn 1"),
        (
            TS,
            "const ids = [1];\n[0].map((x) => ids)[0].length = 0;\nawait Promise.all(ids.map((id) => tools.github.get_mee()));\nreturn 1",
        ),
        (TS, "for (const x of [1]) { if (x) continue; await tools.github.get_mee(); }\nreturn 1"),
        (TS, "for (const x of [1]) { if (x) break; await tools.github.get_mee(); }\nreturn 1"),
        (TS, "for (const x of [...[]]) await tools.github.get_mee();\nreturn 1"),
        (PY, "ids = [1]\nids.clear()\nfor x in ids:\n    await tools.github.get_mee()\nx = 1"),
        (PY, "ids = [1]\ndel ids[0]\nfor x in ids:\n    await tools.github.get_mee()\nx = 1"),
        (PY, "for x in [1]:\n    if x:\n        continue\n    await tools.github.get_mee()\nx = 1"),
        (PY, "for x in [*[]]:\n    await tools.github.get_mee()\nx = 1"),
        (PY, "x = [await tools.github.get_mee() for x in [1] if x > 1]\nx = 1"),
        (PY, "for i in range(0):\n    await tools.github.get_mee()\nx = 1"),
    ] {
        let result = executor.run(script(source, is_python)).await.unwrap();
        assert!(result.error().is_none(), "{source}: {}", result.to_json());
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// A run that fails for another reason reports uncertain findings elsewhere.
#[tokio::test]
async fn a_failed_run_repeats_warnings() {
    let (executor, _) = executor();
    python().await;
    let warned = "no tool `get_mee` on server `github`; did you mean `get_me`?";
    for (is_python, source) in [
        (
            TS,
            "await tools.github.get_me();\nif (input === 1) await tools.github.get_mee();\nthrow new Error('x')",
        ),
        (
            PY,
            "await tools.github.get_me()\nif inputs == 1:\n    await tools.github.get_mee()\nraise ValueError('x')",
        ),
    ] {
        let result = executor.run(script(source, is_python).input(Value::Null)).await.unwrap();
        let error = result.error().unwrap();
        assert_eq!(error.code, ErrorCode::RuntimeError, "{error}");
        let found: Vec<_> =
            error.problems.iter().map(|problem| (problem.severity, problem.message.as_str())).collect();
        assert_eq!(found, [(Severity::Warning, warned)], "{source}");
    }
    // The failure itself is reported once.
    for (is_python, source) in [
        (TS, "for (const x of input) await tools.github.get_mee();"),
        (PY, "for x in inputs:\n    await tools.github.get_mee()"),
    ] {
        let result = executor.run(script(source, is_python).input(json!([1]))).await.unwrap();
        let error = result.error().unwrap();
        assert_eq!(error.tool_code.map(|code| code.as_str()), Some("TOOL_NOT_FOUND"), "{error}");
        assert!(error.problems.is_empty(), "{source}: {:?}", error.problems);
    }
}

#[tokio::test]
async fn calls_in_variables_that_nothing_reads_are_not_awaited() {
    let (executor, _) = executor();
    let lost = |at: &str| {
        format!("warning {at} NOT_AWAITED this call is not awaited: its result and its error are lost")
    };
    check(
        &executor,
        &[
            (TS, "const p = tools.github.get_me();\nreturn 1", &[&lost("1:11-32")]),
            (
                TS,
                "async function f() { let p = callMCPTool('mcp__github__get_me'); }\nawait f();",
                &[&lost("1:30-64")],
            ),
            (PY, "x = tools.github.get_me()\ny = 1", &[&lost("1:5-26")]),
            (PY, "async def f():\n    x: dict = tools.github.get_me()\nawait f()", &[&lost("2:15-36")]),
            (TS, "const p = tools.github.get_me();\nreturn p", &[]),
            (TS, "const p = tools.github.get_me();\nreturn { p }", &[]),
            (TS, "export const p = tools.github.get_me();\nexport default 1", &[]),
            (TS, "const p = call_tool('github', 'get_me');\nreturn 1", &[]),
            (TS, "const p = await tools.github.get_me();\nreturn 1", &[]),
            (PY, "x = tools.github.get_me()\nawait x", &[]),
            (PY, "class A:\n    x = tools.github.get_me()\nawait A.x", &[]),
            (PY, "x = call_tool('github', 'get_me')\ny = 1", &[]),
            (PY, "x = await tools.github.get_me()\ny = 1", &[]),
        ],
    )
    .await;
}

/// Every script of `tests/scripts` that succeeds has no error.
#[tokio::test]
async fn scripts_that_succeed_have_no_errors() {
    let executor =
        Executor::builder().cache_directory(python_cache()).dispatcher(Mock::default()).build().unwrap();
    python().await;
    executor.refresh_tools().await;
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_python = match path.extension().and_then(|extension| extension.to_str()) {
            Some("py") => PY,
            Some("ts") => TS,
            _ => continue,
        };
        let snapshot = fs::read_to_string(format!("{root}/snapshots@{name}.snap")).unwrap();
        if !snapshot.contains("\"success\": true") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let found = executor.check(script(&source, is_python)).await.unwrap().findings;
        let errors: Vec<_> = found.iter().filter(|finding| finding.severity == Severity::Error).collect();
        if !errors.is_empty() {
            wrong.push(format!("{name}: {errors:?}"));
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 300, "only {checked} scripts");
}

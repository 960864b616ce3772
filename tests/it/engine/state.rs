//! What scripts keep between runs, as an embedder sees it.

use std::time::Duration;

use cx::{
    CancellationToken, Error, ErrorCode, Executor, HistoryLimits, Limits, OptionName, Script, StateScope,
    StateStore, ToolErrorCode,
};
use serde_json::json;

use crate::support::mock::Mock;
use crate::support::wait_until;

fn store() -> (tempfile::TempDir, StateStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = StateStore::new(directory.path().join("a/state.sqlite3"));
    (directory, store)
}

fn executor(directory: &tempfile::TempDir, store: &StateStore) -> Executor {
    Executor::builder().dispatcher(Mock::default()).state(store.clone(), directory.path()).build().unwrap()
}

#[tokio::test]
async fn without_a_store_scripts_are_told_what_is_missing() {
    let executor = Executor::builder().build().unwrap();
    let result = executor.run(Script::typescript("await state.get('k')").session("a")).await.unwrap();
    let error = result.error().unwrap();
    assert_eq!(error.tool_code, Some(ToolErrorCode::StateUnavailable));
    assert!(error.message.contains("`ExecutorBuilder::state`"), "{error}");
}

#[tokio::test]
async fn a_session_needs_a_handle() {
    let (directory, store) = store();
    let executor = executor(&directory, &store);
    for handle in ["", "a\nb", &"x".repeat(129)] {
        let refused = executor.run(Script::typescript("1").session(handle)).await;
        assert!(
            matches!(refused, Err(Error::InvalidOptions { option: OptionName::Session, .. })),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn workspaces_are_apart_and_links_to_one_are_not() {
    let (directory, store) = store();
    let root = directory.path();
    for name in ["one", "two"] {
        std::fs::create_dir(root.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(root.join("one"), root.join("link")).unwrap();
    let run = async |workspace: &str, source: &str| {
        let executor = Executor::builder().state(store.clone(), root.join(workspace)).build().unwrap();
        let result = executor.run_ts(source).await.unwrap();
        result.value().cloned().unwrap_or_else(|| panic!("{:#}", result.to_json()))
    };
    run("one", "await state.set('k', 1)").await;
    assert_eq!(run("two", "return await state.keys()").await, json!([]));
    assert_eq!(run("link/../one", "return await state.keys()").await, json!(["k"]));
    assert_eq!(run("link", "return await state.keys()").await, json!(["k"]));
    let usage = store.usage().unwrap();
    assert_eq!(usage.len(), 1);
    assert_eq!(usage[0].scope, StateScope::workspace(&root.join("one")));
    assert_eq!(store.clear(&usage[0].scope).unwrap(), 1);
}

/// A flood of state calls is queued among the calls in flight like any other, and other runs go on.
#[tokio::test]
async fn a_flood_holds_up_no_other_run() {
    let (directory, store) = store();
    let executor = executor(&directory, &store);
    let flood = "for (;;) await Promise.all(Array.from({ length: 1000 }, (_, i) => state.set('k', i)))";
    let long = Duration::from_secs(300);
    let limits = Limits { wall_time: long, cpu_time: long, ..Limits::default() };
    let stop = CancellationToken::new();
    let floods = futures::future::join_all((0..4).map(|session| {
        let script = Script::typescript(flood).session(format!("flood {session}")).limits(limits);
        executor.run(script.cancel_with(stop.clone()))
    }));
    let others = async {
        wait_until(|| store.usage().is_ok_and(|usage| usage.len() == 4)).await;
        for number in 0..20 {
            let source = format!("await state.set('k', {number}); return await state.get('k')");
            let result = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
            assert_eq!(result.value(), Some(&json!(number)), "{:#}", result.to_json());
        }
        stop.cancel();
    };
    let (results, ()) = futures::join!(floods, others);
    for result in results {
        assert_eq!(result.unwrap().error().unwrap().code, ErrorCode::Cancelled);
    }
}

#[tokio::test]
async fn what_cannot_wait_is_refused() {
    let (directory, store) = store();
    let executor = executor(&directory, &store);
    // 10,000 calls may wait, and as many may be in flight as the limit says.
    let source = "
        const calls = Array.from({ length: 10_100 }, (_, i) => state.get('k'));
        const results = await Promise.allSettled(calls);
        return results.filter((result) => result.reason?.code === 'QUEUE_FULL').length";
    let long = Duration::from_secs(300);
    let limits = Limits { calls_in_flight: 1, wall_time: long, cpu_time: long, ..Limits::default() };
    let result = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
    let refused = result.value().unwrap().as_u64().unwrap();
    assert!((1..=99).contains(&refused), "{refused}");
    // Nor more bytes in flight than arguments of tools may have.
    let source = "
        const text = 'x'.repeat(1_000_000);
        const calls = Array.from({ length: 40 }, () => state.set('k', text));
        const results = await Promise.allSettled(calls);
        return results.filter((result) => result.reason?.code === 'QUEUE_FULL').length";
    let result = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
    let refused = result.value().unwrap().as_u64().unwrap();
    assert!((1..=8).contains(&refused), "{refused}");
    // The run's own result has its limit too.
    let limits = Limits { result_bytes: 5_000, ..Limits::default() };
    let result = executor.run(Script::typescript("await state.get('k')").limits(limits)).await.unwrap();
    assert_eq!(result.error().unwrap().tool_code, Some(ToolErrorCode::ResultTooLarge));
}

/// Two runs in each language, at the same time.
#[tokio::test]
async fn runs_of_both_languages_share_one_counter() {
    let (directory, store) = store();
    crate::support::python().await;
    let executor = executor(&directory, &store);
    let typescript = "for (let i = 0; i < 50; i++) await state.update('n', (n) => n + 1, 0)";
    let python = "for i in range(50):\n    await state.update('n', lambda n: n + 1, 0)";
    let results = futures::future::join_all([
        executor.run(Script::typescript(typescript)),
        executor.run(Script::python(python)),
        executor.run(Script::typescript(typescript)),
        executor.run(Script::python(python)),
    ])
    .await;
    for result in results {
        let result = result.unwrap();
        assert!(result.error().is_none(), "{:#}", result.to_json());
    }
    let result = executor.run_ts("return await state.get('n')").await.unwrap();
    assert_eq!(result.value(), Some(&json!(200)));
}

/// Dry runs in both languages see their own writes, and no other run sees them.
#[tokio::test]
async fn a_dry_run_keeps_nothing() {
    let (directory, store) = store();
    crate::support::python().await;
    let executor = executor(&directory, &store);
    executor.run_ts("await state.set('k', [1])").await.unwrap();
    let typescript = "
        await state.update('k', (k) => [...k, 2]);
        await state.set('l', 1);
        return [await state.get('k'), await state.keys()]";
    let python = "
await state.update('k', lambda k: [*k, 2])
await state.set('l', 1)
[await state.get('k'), await state.keys()]";
    for script in [Script::typescript(typescript), Script::python(python)] {
        let result = executor.run(script.dry_run()).await.unwrap();
        assert_eq!(result.value(), Some(&json!([[1, 2], ["k", "l"]])), "{:#}", result.to_json());
        let result = executor.run_ts("return [await state.get('k'), await state.keys()]").await.unwrap();
        assert_eq!(result.value(), Some(&json!([[1], ["k"]])));
    }
}

#[tokio::test]
async fn an_earlier_run_is_its_owners_only() {
    let executor = Executor::builder().keep_runs(HistoryLimits::default()).build().unwrap();
    let result = executor.run_ts("console.log('shown'); return { a: 1 }").await.unwrap();
    let large = executor.run_ts("console.log('x'.repeat(6000))").await.unwrap();
    let large = executor.history().unwrap().keep("anna", &large).unwrap();
    let id = executor.history().unwrap().keep("anna", &result).unwrap();
    let read = |client: Option<&str>| {
        let script = Script::typescript("return await mcp.run(input)").input(json!(id));
        executor.run(if let Some(client) = client { script.client(client) } else { script })
    };
    let found = read(Some("anna")).await.unwrap();
    assert_eq!(
        found.value(),
        Some(&json!({ "id": id, "output": "shown", "value": { "a": 1 }, "calls": [] }))
    );
    for client in [Some("bert"), None] {
        let refused = read(client).await.unwrap();
        assert_eq!(refused.error().unwrap().tool_code, Some(ToolErrorCode::RunNotFound));
    }
    let limits = Limits { result_bytes: 5_000, ..Limits::default() };
    let script = Script::typescript("await mcp.run(input)").input(json!(large)).client("anna").limits(limits);
    let refused = executor.run(script).await.unwrap();
    assert_eq!(refused.error().unwrap().tool_code, Some(ToolErrorCode::ResultTooLarge));
}

#[tokio::test]
async fn an_id_that_names_no_run_is_shown_in_part_with_its_hidden_characters_written_out() {
    let executor = Executor::builder().keep_runs(HistoryLimits::default()).build().unwrap();
    let id = format!("\u{202e}{}", "a".repeat(50));
    let script = Script::typescript("await mcp.run(input)").input(json!(id)).client("anna");
    let refused = executor.run(script).await.unwrap();
    let message = &refused.error().unwrap().message;
    let shown = format!("no run `\\u{{202e}}{}…` is kept", "a".repeat(39));
    assert!(message.starts_with(&shown), "{message}");
}

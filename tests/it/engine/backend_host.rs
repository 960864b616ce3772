//! The requests that a back end of an embedder can make to its host: those of the built-in engines, with the same
//! answers and bounds.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cx::{
    Backend, BackendRequest, BackendRun, BoxFuture, CancellationToken, ErrorCode, ExecuteResult, Executor,
    ExecutorBuilder, Grants, Json, Limits, LogLevel, Outcome, Output, Progress, ProviderKind, Script,
    StateStore, ToolErrorCode,
};
use serde_json::{Value, json};

use crate::support::http_host::{HttpHost, Reply};
use crate::support::mock::Mock;
use crate::support::provider::{self, FakeProvider};

/// A back end whose scripts are one function.
struct Native<F>(F);

impl<F, R> Backend for Native<F>
where
    F: Fn(BackendRun) -> R + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
        Box::pin((self.0)(run))
    }
}

fn with_mock() -> ExecutorBuilder {
    Executor::builder().dispatcher(Mock::default())
}

/// Runs a function as a script.
async fn run<R>(
    builder: ExecutorBuilder,
    script: Script,
    execute: impl Fn(BackendRun) -> R + Send + Sync + 'static,
) -> ExecuteResult
where
    R: Future<Output = Outcome> + Send + 'static,
{
    let executor = builder.backend(Native(execute)).build().unwrap();
    executor.run(script).await.unwrap()
}

fn script() -> Script {
    Script::typescript("a script")
}

fn returned(value: Value) -> Outcome {
    Outcome::Returned(value.into())
}

#[track_caller]
fn value(result: &ExecuteResult) -> Value {
    result.value().cloned().unwrap_or_else(|| panic!("{:#}", result.to_json()))
}

fn code(result: &ExecuteResult) -> Option<ErrorCode> {
    result.error().map(|error| error.code)
}

#[tokio::test]
async fn a_back_end_shares_state_with_other_engines() {
    let directory = tempfile::tempdir().unwrap();
    let store = StateStore::new(directory.path().join("state.sqlite3"));
    let executor = || with_mock().state(store.clone(), directory.path());
    let in_v8 = executor().build().unwrap();
    in_v8.run_ts("await state.set('seen', [1])").await.unwrap();
    let result = run(executor(), script(), |run| async move {
        let seen = run.state_get("seen").await.unwrap();
        let missing = run.state_get("missing").await.unwrap();
        run.state_set("also", &json!({ "deep": [true] }).into()).await.unwrap();
        run.state_set("gone", &json!(null).into()).await.unwrap();
        let removed = [run.state_delete("gone").await.unwrap(), run.state_delete("gone").await.unwrap()];
        let keys = run.state_keys("").await.unwrap();
        let some = run.state_keys("a").await.unwrap();
        // The tag belongs to another value.
        let expected = r#"{"kind":"state","call":{"set":{"key":"seen","value":"2","expected":""}}}"#;
        let refused = run.query(expected).await.unwrap();
        let refused = refused.value().unwrap()[0].clone();
        let too_long = run.state_get(&"k".repeat(257)).await.unwrap_err();
        assert_eq!(too_long.code, ToolErrorCode::InvalidArguments);
        returned(json!([seen, missing, removed, keys, some, refused]))
    })
    .await;
    let expected = json!([[1], null, [true, false], ["also", "seen"], ["also"], [1]]);
    assert_eq!(value(&result), expected);
    let read = in_v8.run_ts("return await state.get('also')").await.unwrap();
    assert_eq!(value(&read), json!({ "deep": [true] }));
}

#[tokio::test]
async fn a_back_end_finds_tools() {
    let result = run(with_mock().deny(["mock.hang"]), script(), |run| async move {
        let found = run.search_tools("count calls", 1).await.unwrap();
        let tools = run.tool_names("mock").await.unwrap();
        let known = run.tool_schema("mock.echo").await.unwrap().unwrap();
        assert_eq!(run.tool_schema("mock.nothing_like_it").await.unwrap(), None);
        assert!(run.help(Some("mock")).await.unwrap().starts_with("mock: "));
        assert!(run.help(None).await.unwrap().len() > 1_000);
        let none = run.tool_names("nowhere").await.unwrap_err();
        assert_eq!(none.code, ToolErrorCode::ToolNotFound);
        let [echo, hang] = ["echo", "hang"].map(|name| tools.iter().any(|tool| tool == name));
        returned(json!([run.servers(), found[0]["name"], known["name"], echo, hang]))
    })
    .await;
    let expected = json!([["mock", "other-server"], "mcp__mock__count", "mcp__mock__echo", true, false]);
    assert_eq!(value(&result), expected);
}

#[tokio::test]
async fn a_back_end_has_files() {
    let directory = tempfile::tempdir().unwrap();
    let granted = directory.path().canonicalize().unwrap();
    std::fs::write(granted.join("a.txt"), "granted").unwrap();
    let grants = Grants { read: vec![granted.clone()], ..Grants::default() };
    let result = run(with_mock().grants(grants), script(), move |run| {
        let granted = granted.to_str().unwrap().to_owned();
        async move {
            assert_eq!(run.read_file(&format!("{granted}/a.txt")).await.unwrap(), b"granted");
            // Bytes that are not text are unchanged.
            run.write_file("/tmp/b.bin", &[0, 255, 7]).await.unwrap();
            run.append_to_file("b.bin", b"!").await.unwrap();
            assert_eq!(run.read_file("/tmp/b.bin").await.unwrap(), [0, 255, 7, b'!']);
            let made = r#"{"kind":"file","call":{"op":"makeDirectory","path":"/tmp/d","recursive":false}}"#;
            run.query(made).await.unwrap();
            let entries = run.list_directory("/tmp").await.unwrap();
            let entries: Vec<_> = entries.into_iter().map(|entry| [entry.name, entry.kind]).collect();
            let mut codes = Vec::new();
            codes.push(run.read_file("/etc/hostname").await.unwrap_err().code);
            codes.push(run.read_file("/tmp/../etc/hostname").await.unwrap_err().code);
            codes.push(run.write_file(&format!("{granted}/a.txt"), b"x").await.unwrap_err().code);
            codes.push(run.list_directory("/tmp/b.bin").await.unwrap_err().code);
            run.emit_file(&format!("{granted}/a.txt"), None).await.unwrap();
            returned(json!([entries, codes]))
        }
    })
    .await;
    let entries = json!([["b.bin", "file"], ["d", "directory"]]);
    assert_eq!(value(&result), json!([entries, ["ENOENT", "ENOENT", "EACCES", "ENOTDIR"]]));
    let [Output::Emit(block)] = &*result.logs else { panic!("{:?}", result.logs) };
    assert_eq!(block["resource"]["text"], "granted");
}

#[tokio::test]
async fn a_back_end_sends_requests() {
    let long: Vec<u8> = (0..=250_u8).cycle().take(1_000_000).collect();
    let sent = long.clone();
    let host = HttpHost::start(move |asked| match &*asked.path {
        "/long" => Reply::Whole(200, vec![("x-own", "1".to_owned())], sent.clone()),
        "/from" => Reply::redirect(302, "/long"),
        _ => Reply::text(format!("{} {:?}", asked.method, asked.header("x-sent"))),
    });
    let net = vec![format!("127.0.0.1:{}", host.port).parse().unwrap()];
    let builder = with_mock().grants(Grants { net, ..Grants::default() });
    let urls = ["/from", "/echo"].map(|path| host.url(path));
    let result = run(builder, script(), move |run| {
        let (long, [from, echo]) = (long.clone(), urls.clone());
        async move {
            assert!(run.has_network());
            // The body is longer than one part.
            let followed = run.fetch(BackendRequest::new("GET", from)).await.unwrap();
            assert_eq!((followed.status, followed.is_redirected), (200, true));
            assert!(followed.url.ends_with("/long"), "{}", followed.url);
            assert!(followed.headers.contains(&("x-own".to_owned(), "1".to_owned())));
            assert!(followed.body == long, "{} bytes", followed.body.len());
            let request = BackendRequest::new("POST", echo).header("x-sent", "2").body("b");
            let answer = run.fetch(request.timeout(Duration::from_secs(60))).await.unwrap();
            let denied = run.fetch(BackendRequest::new("GET", "http://127.0.0.2:9/")).await.unwrap_err();
            assert_eq!(denied.code, ToolErrorCode::NetDenied);
            returned(json!(String::from_utf8(answer.body).unwrap()))
        }
    })
    .await;
    assert_eq!(value(&result), json!(r#"POST Some("2")"#));
    assert_eq!(host.asked().last().unwrap().body, b"b");
    // The redirect is a call of its own.
    assert_eq!(result.usage.tool_calls, 3);
}

#[tokio::test]
async fn the_body_of_a_response_is_bounded_and_ends_with_its_future() {
    let host = HttpHost::start(|asked| match &*asked.path {
        "/long" => Reply::Whole(200, Vec::new(), vec![b'x'; 300_000]),
        "/endless" => Reply::Endless(b"x".to_vec(), Duration::from_millis(10)),
        _ => Reply::text("short"),
    });
    let net = vec![format!("127.0.0.1:{}", host.port).parse().unwrap()];
    // One response at a time may be open.
    let limits = Limits { result_bytes: 200_000, calls_in_flight: 1, ..Limits::default() };
    let builder = with_mock().grants(Grants { net, ..Grants::default() }).limits(limits);
    let urls = ["/long", "/endless", "/short"].map(|path| host.url(path));
    let result = run(builder, script(), move |run| {
        let [long, endless, short] = urls.clone();
        async move {
            let refused = run.fetch(BackendRequest::new("GET", long)).await.unwrap_err();
            assert_eq!(refused.code, ToolErrorCode::ResultTooLarge);
            let dropped = run.fetch(BackendRequest::new("GET", endless));
            assert!(tokio::time::timeout(Duration::from_millis(300), dropped).await.is_err());
            let answer = run.fetch(BackendRequest::new("GET", short)).await.unwrap();
            returned(json!(String::from_utf8(answer.body).unwrap()))
        }
    })
    .await;
    assert_eq!(value(&result), json!("short"));
}

#[tokio::test]
async fn a_back_end_reports_progress_and_asks_a_model() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&reports);
    let script = script().on_report(move |progress: &Progress| heard.lock().unwrap().push(progress.clone()));
    let provider =
        FakeProvider::start(ProviderKind::OpenAi, |_| provider::Reply::Text("an answer".to_owned()));
    let result = run(with_mock().llm(provider.options()), script, |run| async move {
        let mut progress = Progress::new(1.0);
        (progress.total, progress.message) = (Some(2.0), Some("half".to_owned()));
        run.report_progress(progress).await.unwrap();
        let wrong = run.report_progress(Progress::new(f64::NAN)).await.unwrap_err();
        assert_eq!(wrong.code, ToolErrorCode::InvalidArguments);
        let answer = run.ask_model(&json!({ "prompt": "a question" }).into()).await.unwrap();
        returned(answer.value().unwrap().clone())
    })
    .await;
    assert_eq!(value(&result), json!("an answer"));
    let reports = reports.lock().unwrap();
    let [report] = &**reports else { panic!("{reports:?}") };
    assert_eq!((report.progress, report.total, report.message.as_deref()), (1.0, Some(2.0), Some("half")));
}

#[tokio::test]
async fn a_back_end_knows_its_run() {
    let builder = with_mock().time_zone("Europe/Berlin").clock_resolution(Duration::from_millis(5));
    let result = run(builder, script().client("alice").input(json!([1])), |run| async move {
        assert!(run.deadline() > Instant::now());
        assert!(!run.has_network() && !run.is_check());
        let resolution = run.clock_resolution().unwrap().as_millis();
        let input = run.input().unwrap().value().unwrap().clone();
        returned(json!([
            run.tenant(),
            run.time_zone(),
            u64::try_from(resolution).unwrap(),
            input,
            run.name()
        ]))
    })
    .await;
    let seen = value(&result);
    assert_eq!(
        seen.as_array().unwrap()[..4],
        json!(["alice", "Europe/Berlin", 5, [1]]).as_array().unwrap()[..]
    );
    let result = run(with_mock().clock_resolution(Duration::ZERO), script(), |run| async move {
        returned(json!([run.tenant(), run.clock_resolution().is_none()]))
    })
    .await;
    assert_eq!(value(&result), json!([null, true]));
}

#[tokio::test]
async fn the_token_of_a_run_is_cancelled_with_it_and_does_not_cancel_it() {
    let kept = Arc::new(Mutex::new(None::<CancellationToken>));
    let keep = Arc::clone(&kept);
    let result = run(with_mock(), script(), move |run| {
        let keep = Arc::clone(&keep);
        async move {
            let token = run.cancelled();
            assert!(!token.is_cancelled());
            *keep.lock().unwrap() = Some(token);
            run.cancelled().cancel();
            let answer = run.call("mock.echo", r#"{"a":1}"#).await.unwrap();
            returned(answer.value().unwrap().clone())
        }
    })
    .await;
    assert_eq!(value(&result), json!({ "a": 1 }));
    let token = kept.lock().unwrap().take().unwrap();
    token.cancelled().await;
}

#[tokio::test]
async fn an_error_that_is_not_caught_has_the_code_of_the_call() {
    let limits = Limits { tool_calls: 1, ..Limits::default() };
    let result = run(with_mock().deny(["mock.fail"]), script(), |run| async move {
        run.failed_by(&run.call("mock.fail", "{}").await.unwrap_err())
    })
    .await;
    let error = result.error().unwrap();
    assert_eq!((error.code, error.tool_code), (ErrorCode::RuntimeError, Some(ToolErrorCode::ToolDenied)));
    let result = run(with_mock().limits(limits), script(), |run| async move {
        run.call("mock.echo", "{}").await.unwrap();
        run.failed_by(&run.call("mock.echo", "{}").await.unwrap_err())
    })
    .await;
    assert_eq!(code(&result), Some(ErrorCode::MaxToolCallsExceeded));
}

#[tokio::test]
async fn v_568_a_run_that_reports_more_memory_than_its_limit_ends() {
    let limit = Limits::default().memory_bytes;
    let result = run(with_mock(), script(), move |run| async move {
        run.report_memory(limit);
        run.report_memory(10);
        returned(json!(1))
    })
    .await;
    assert_eq!(value(&result), json!(1));
    assert_eq!(result.usage.memory_bytes, limit);
    // The run has ended, even if the back end has a value.
    let result = run(with_mock(), script(), move |run| async move {
        run.report_memory(limit + 1);
        returned(json!(1))
    })
    .await;
    assert_eq!(code(&result), Some(ErrorCode::MemoryLimit), "{result:?}");
    // And if the back end waits.
    let result = run(with_mock(), script(), move |run| async move {
        run.report_memory(limit + 1);
        std::future::pending().await
    })
    .await;
    assert_eq!(code(&result), Some(ErrorCode::MemoryLimit), "{result:?}");
    // The scratch directory gets the rest of the memory.
    let result = run(with_mock(), script(), move |run| async move {
        run.report_memory(limit - (1 << 20));
        returned(json!(run.write_file("/tmp/a", &[0; 2 << 20]).await.unwrap_err().code))
    })
    .await;
    assert_eq!(value(&result), json!("ENOSPC"));
}

#[tokio::test]
async fn v_568_a_run_that_reports_more_cpu_time_than_its_limit_ends() {
    let result = run(with_mock(), script(), |run| async move {
        run.report_cpu_time(Duration::from_secs(1));
        returned(json!(1))
    })
    .await;
    assert_eq!(value(&result), json!(1));
    assert!(result.usage.cpu_time >= Duration::from_secs(1), "{:?}", result.usage);
    let result = run(with_mock(), script(), |run| async move {
        run.report_cpu_time(run.limits().cpu_time + Duration::from_secs(1));
        std::future::pending().await
    })
    .await;
    assert_eq!(code(&result), Some(ErrorCode::CpuLimit), "{result:?}");
}

/// The back end does not check what its sandbox sends.
#[tokio::test]
async fn v_569_a_sandbox_that_was_taken_over_gets_what_its_script_may_have() {
    let result = run(with_mock().deny(["mock.fail"]), script(), |run| async move {
        let mut wrong: Vec<String> = [
            "",
            "{}",
            "no JSON",
            r#"{"kind":"everything"}"#,
            r#"{"kind":"names","server":"mock","and":"more"}"#,
            r#"{"kind":"state","call":{"drop":{}}}"#,
            r#"{"kind":"timer","delay":1}"#,
            r#"{"kind":"search","query":"","detail":"secrets"}"#,
        ]
        .map(str::to_owned)
        .into();
        wrong.push("[".repeat(10_000));
        wrong.push(" ".repeat((32 << 20) + 1));
        for query in wrong {
            let error = run.query(&query).await.unwrap_err();
            assert_eq!(error.code, ToolErrorCode::InvalidArguments, "{}", &query[..query.len().min(50)]);
        }
        let error = run.query(r#"{"kind":"everything"}"#).await.unwrap_err();
        assert!(error.message.contains("`state`") && error.message.contains("`fetch`"), "{error}");
        let refused = [
            (r#"{"kind":"run","id":"of another client"}"#, ToolErrorCode::RunNotFound),
            (
                r#"{"kind":"fetch","call":{"open":{"id":1,"url":"http://127.0.0.1:9/","method":"GET"}}}"#,
                ToolErrorCode::NetDenied,
            ),
            (r#"{"kind":"state","call":{"keys":{"prefix":""}}}"#, ToolErrorCode::StateUnavailable),
            (r#"{"kind":"readResource","server":"nowhere","uri":"a:b"}"#, ToolErrorCode::ToolNotFound),
        ];
        for (query, expected) in refused {
            assert_eq!(run.query(query).await.unwrap_err().code, expected, "{query}");
        }
        assert_eq!(run.call("mock.fail", "{}").await.unwrap_err().code, ToolErrorCode::ToolDenied);
        assert_eq!(run.call("mock.echo", "[").await.unwrap_err().code, ToolErrorCode::InvalidArguments);
        returned(json!(null))
    })
    .await;
    assert_eq!(value(&result), json!(null));
}

/// A script whose answers do not come at once.
async fn recorded(run: BackendRun) -> Outcome {
    let slept = run.call("mock.sleep", r#"{"ms":20}"#).await;
    let tools = run.tool_names("mock").await;
    let written = run.write_file("/tmp/a", b"kept").await;
    let read = run.read_file("/tmp/a").await;
    run.print(LogLevel::Info, "printed");
    match (slept, tools, written, read) {
        (Ok(slept), Ok(tools), Ok(()), Ok(read)) => {
            returned(json!([slept.value(), tools.len(), String::from_utf8_lossy(&read)]))
        }
        failed => run.failed(format!("{failed:?}")),
    }
}

#[tokio::test]
async fn runs_of_back_ends_are_recorded_and_replayed() {
    let executor = with_mock().backend(Native(recorded)).build().unwrap();
    let (result, recording) = executor.record(script()).await.unwrap();
    let seen = value(&result);
    assert_eq!((&seen[0], &seen[2]), (&json!({ "ms": 20 }), &json!("kept")));
    // Without any tool.
    let alone = Executor::builder().backend(Native(recorded)).build().unwrap();
    let replay = alone.replay(&recording.unwrap()).await.unwrap();
    assert_eq!(replay.difference, None);
    assert_eq!(value(&replay.result), seen);
    assert_eq!(replay.result.printed(), "printed");
    // A replay that differs says where.
    let other = |run: BackendRun| async move {
        match run.call("mock.echo", "{}").await {
            Ok(answer) => Outcome::Returned(answer),
            Err(error) => run.failed_by(&error),
        }
    };
    let (_, recording) = executor.record(script()).await.unwrap();
    let alone = Executor::builder().backend(Native(other)).build().unwrap();
    let replay = alone.replay(&recording.unwrap()).await.unwrap();
    assert_eq!(replay.difference.unwrap().call, Some(1));
}

/// A request without a method of its own is a query, with the answers that scripts get.
#[tokio::test]
async fn queries_have_the_answers_of_scripts() {
    let same = |query: &'static str, source: &'static str| async move {
        let result = run(with_mock(), script(), move |run| async move {
            match run.query(query).await {
                Ok(answer) => Outcome::Returned(answer),
                Err(error) => run.failed_by(&error),
            }
        })
        .await;
        let in_v8 = with_mock().build().unwrap().run_ts(source).await.unwrap();
        assert_eq!(value(&result), value(&in_v8), "{query}");
    };
    same(r#"{"kind":"servers"}"#, "return mcp.servers()").await;
    same(
        r#"{"kind":"search","query":"count calls","limit":4294967296,"detail":"names"}"#,
        "return search_tools('count calls', 'names')",
    )
    .await;
    same(r#"{"kind":"help","topic":"mock"}"#, "return help('mock')").await;
}

#[test]
fn a_run_of_a_back_end_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync + std::fmt::Debug>() {}
    is_shared::<BackendRun>();
    is_shared::<BackendRequest>();
    is_shared::<Json>();
}

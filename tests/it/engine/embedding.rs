//! The examples for embedders (`examples/embedding`), and promises that they do not show.

#[path = "../../../examples/embedding/approver.rs"]
mod approver;
#[path = "../../../examples/embedding/backend.rs"]
mod backend;
#[path = "../../../examples/embedding/blocking.rs"]
mod blocking;
#[path = "../../../examples/embedding/check.rs"]
mod check;
#[path = "../../../examples/embedding/follow.rs"]
mod follow;
#[path = "../../../examples/embedding/hooks.rs"]
mod hooks;
#[path = "../../../examples/embedding/servers.rs"]
mod servers;
#[path = "../../../examples/embedding/tools.rs"]
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{
    Backend, BackendRun, BoxFuture, CallHook, Error, ErrorCode, Executor, FindingCode, HookedCall, Json,
    Language, LanguageModel, Limits, LlmAccess, LlmOptions, McpServer, ModelAnswer, ModelError,
    ModelErrorKind, ModelRequest, ModelStream, OptionName, Outcome, RuleList, RunEvent, Script, ToolError,
    ToolErrorCode, ToolRules,
};
use serde_json::{Value, json};

use crate::support::{executor, mock::Mock, wait_until};

#[tokio::test]
async fn example_follow() {
    let heard = follow::example().await.unwrap();
    assert_eq!(heard, ["pages.read ok", "page 1", "pages.read ok", "page 2"]);
}

#[tokio::test]
async fn example_check() {
    let found = check::example().await.unwrap();
    assert_eq!(found, [None, Some((2, "SYNTAX_ERROR")), Some((1, "SYNTAX_ERROR"))]);
}

#[tokio::test]
async fn example_tools() {
    let seen = tools::example().await.unwrap();
    let expected: [&[&str]; 4] = [&[], &["clock"], &["clock", "order", "12 Main Street"], &[]];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn example_servers() {
    let test_binary = std::env::current_exe().unwrap();
    let library = test_binary.parent().unwrap().parent().unwrap().join("examples/library-server");
    let seen = servers::example(McpServer::stdio("library", library.to_str().unwrap())).await.unwrap();
    let reserved = "reserved \"The Harbour of Uppsala\" at Central Library";
    let expected: [&[&str]; 5] = [
        &["notes", "library"],
        &["The Harbour of Uppsala", "due on Friday", "TOOL_DENIED"],
        &["notes"],
        &[reserved, "notes", "library"],
        &["notes"],
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn example_hooks() {
    let (value, trail) = hooks::example().await.unwrap();
    assert_eq!(
        value,
        json!({ "paid": { "paid": 10, "in": "EUR" }, "refused": "more than 1,000 needs a person" })
    );
    assert_eq!(
        trail,
        [r#"bank.pay {"amount":10,"currency":"EUR"}: ok"#, r#"bank.pay {"amount":5000}: TOOL_DENIED"#]
    );
}

#[tokio::test]
async fn example_approver() {
    let (seen, planned) = approver::example().await.unwrap();
    let refused =
        "a person was asked and refused the call of `files.delete`: files.delete is for temporary files";
    assert_eq!((seen, planned), (json!(["/srv/tmp/a", refused]), 2));
}

#[tokio::test]
async fn example_backend() {
    let (sum, calls, refused, all) = backend::example().await.unwrap();
    assert_eq!((sum, calls), (json!(6), 2));
    assert!(refused.contains("`disk.erase`"), "{refused}");
    assert_eq!(all, json!(["mcp__math__double", 6, "2.5", "ENOENT"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn example_blocking() {
    let runtime = tokio::runtime::Handle::current();
    let sum = tokio::task::spawn_blocking(move || blocking::example(&runtime).unwrap()).await.unwrap();
    assert_eq!(sum, 6);
}

#[tokio::test]
async fn a_dropped_run_stops_and_its_events_end() {
    let (executor, mock) = executor();
    let mut run = executor.start("await tools.mock.hang({})");
    let mut events = run.events().unwrap();
    assert!(run.events().is_none(), "there is one reader");
    wait_until(|| mock.running.load(Ordering::SeqCst) == 1).await;
    drop(run);
    wait_until(|| mock.cancelled.load(Ordering::SeqCst) == 1).await;
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_run_whose_events_are_not_read_ends() {
    let (executor, _) = executor();
    let mut run = executor.start("for (let i = 0; i < 5000; i++) console.log(i); return 1");
    assert_eq!((&mut run).await.unwrap().value_as::<u32>().ok(), Some(1));
    assert!(matches!(run.await, Err(Error::Closed)), "a result is given once");
}

/// The listeners of a script get the same as its events.
#[tokio::test]
async fn listeners_and_events_hear_the_same() {
    let (executor, _) = executor();
    let heard = Arc::new(AtomicUsize::new(0));
    let script = Script::typescript("console.log(1); await tools.mock.count(); emit('x')");
    let mut run = executor.start(
        script
            .on_output({
                let heard = Arc::clone(&heard);
                move |_| {
                    heard.fetch_add(1, Ordering::SeqCst);
                }
            })
            .on_call({
                let heard = Arc::clone(&heard);
                move |_| {
                    heard.fetch_add(1, Ordering::SeqCst);
                }
            }),
    );
    let mut events = run.events().unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = events.next().await {
        kinds.push(match event {
            RunEvent::Output(_) => "output",
            RunEvent::Call(_) => "call",
            _ => "other",
        });
    }
    assert_eq!(kinds, ["output", "call", "output"]);
    assert_eq!(heard.load(Ordering::SeqCst), 3);
    run.await.unwrap();
}

#[tokio::test]
async fn a_check_runs_nothing_and_has_limits() {
    let (executor, mock) = executor();
    let fine = Script::typescript("await tools.mock.count(); throw new Error('not run')");
    assert_eq!(executor.check(fine).await.unwrap().findings, []);
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
    let wrong = Script::typescript("x").limits(Limits { wall_time: Duration::ZERO, ..Limits::default() });
    assert!(matches!(executor.check(wrong).await, Err(Error::InvalidOptions { .. })));
    let long = Script::typescript(format!("enum E {{ {} }}", "a = 1 +\n".repeat(100_000)));
    let found = executor.check(long).await.unwrap().findings;
    assert_eq!(found[0].code, FindingCode::Script(ErrorCode::TranspileError), "{found:?}");
}

#[tokio::test]
async fn python_is_checked_too() {
    let (executor, mock) = crate::support::python().await;
    let check = async |source: &str| executor.check(Script::python(source)).await.unwrap().findings;
    assert_eq!(check("await tools.mock.count()\nraise ValueError('not run')").await, []);
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
    let found = check("x = 1\nif x\n    pass").await;
    assert_eq!((found[0].code, found[0].line), (FindingCode::Script(ErrorCode::SyntaxError), Some(2)));
}

#[tokio::test]
async fn a_removed_server_takes_its_rules_along() {
    let executor = Executor::builder().deny(["x.secret"]).build().unwrap();
    let mut server = McpServer::stdio("x", "/no/such/program");
    server.rules = ToolRules::new().deny(["count"]);
    executor.add_server(server).unwrap();
    let code = async |tool: &str| {
        let source = format!("const r = call_tool('x', '{tool}', {{}}); return r.error?.code ?? r.result");
        executor.run(Script::typescript(source)).await.unwrap().value().cloned().unwrap()
    };
    assert_eq!(code("count").await, json!("TOOL_DENIED"));
    assert!(executor.remove_server("x").await);
    for name in ["x.count", "x.secret"] {
        executor.add_tool(name, Value::Null, |_: Value| async { Ok::<_, String>(1) }).unwrap();
    }
    assert_eq!(code("count").await, json!(1));
    // The executor's own rules still hold.
    assert_eq!(code("secret").await, json!("TOOL_DENIED"));
}

#[tokio::test]
async fn a_name_is_given_to_one_server() {
    let executor = Executor::builder().dispatcher(Mock::default()).build().unwrap();
    let server = |name: &str| McpServer::stdio(name, "/no/such/program");
    assert!(matches!(
        executor.add_server(server("mock")),
        Err(Error::InvalidOptions { option: OptionName::Server, .. })
    ));
    let tool = executor.add_tool("mock.new", Value::Null, |_: Value| async { Ok::<_, String>(1) });
    assert!(matches!(tool, Err(Error::InvalidOptions { option: OptionName::Tool, .. })));
    executor.add_server(server("new")).unwrap();
    assert!(matches!(executor.add_server(server("new")), Err(Error::InvalidOptions { .. })));
    let own = Script::typescript("1").server(server("new"));
    assert!(matches!(executor.run(own).await, Err(Error::InvalidOptions { option: OptionName::Server, .. })));
    assert_eq!(executor.server_names(), ["mock", "other-server", "new"]);
    assert!(executor.remove_server("new").await && !executor.remove_server("new").await);
    assert!(!executor.remove_server("mock").await, "a dispatcher of the embedder stays");
    assert!(!executor.remove_tool("new.tool"));
    executor.close().await;
    assert!(matches!(executor.add_server(server("late")), Err(Error::Closed)));
}

/// A server that is added or removed does not make cx ask the others for their tools again.
#[tokio::test]
async fn other_servers_keep_their_lists() {
    let executor = Executor::builder().dispatcher(Mock::default()).build().unwrap();
    executor.run_ts("return (await searchTools('echo')).length").await.unwrap();
    let listed: Vec<bool> = executor.known_tools().iter().map(|server| server.tools.is_some()).collect();
    assert_eq!(listed, [true, true]);
    executor.add_tool("clock.now", Value::Null, |_: Value| async { Ok::<_, String>(1) }).unwrap();
    let known = executor.known_tools();
    let listed = |name: &str| known.iter().find(|server| server.name == name).unwrap().tools.is_some();
    assert!(listed("mock") && listed("other-server"));
    assert!(executor.remove_tool("clock.now"));
    assert!(executor.known_tools().iter().all(|server| server.name != "clock"));
}

/// A running script keeps the tools that it started with.
#[tokio::test]
async fn a_removed_tool_stays_for_runs_in_progress() {
    let executor = Executor::builder()
        .dispatcher(Mock::default())
        .tool("clock.now", Value::Null, |_: Value| async { Ok::<_, String>("noon") })
        .build()
        .unwrap();
    let run = executor.start("await tools.mock.sleep({ ms: 2_000 }); return await tools.clock.now()");
    wait_until(|| executor.run_stats().running == 1).await;
    assert!(executor.remove_tool("clock.now"));
    assert_eq!(run.await.unwrap().value_as::<String>().ok().as_deref(), Some("noon"));
    let later = executor.run_ts("return await tools.clock.now()").await.unwrap();
    assert_eq!(later.error().unwrap().tool_code, Some(ToolErrorCode::ToolNotFound));
}

#[tokio::test]
async fn the_executors_rules_apply_to_a_runs_own_tools() {
    let executor = Executor::builder().deny(["order.*"]).build().unwrap();
    let script = Script::typescript("return call_tool('order', 'address', {}).error.code");
    let script = script.tool("order.address", Value::Null, |_: Value| async { Ok::<_, String>(1) });
    let result = executor.run(script).await.unwrap();
    assert_eq!(result.value_as::<String>().ok().as_deref(), Some("TOOL_DENIED"));
}

#[tokio::test]
async fn combined_rules_never_widen() {
    let executor = Executor::builder()
        .dispatcher(Mock::default())
        .rules(ToolRules::new().allow(["mock.echo", "mock.text"]))
        .allow(["mock.*"])
        .allow(["*.echo", "*.count"])
        .build()
        .unwrap();
    let source = "return ['echo', 'text', 'count'].map((tool) => call_tool('mock', tool, { text: '' }).ok)";
    let allowed = async |script: Script| executor.run(script).await.unwrap().value().cloned().unwrap();
    assert_eq!(allowed(Script::typescript(source)).await, json!([true, false, false]));
    let wider = Script::typescript(source).allow(["*"]).allow(["mock.text", "mock.echo"]);
    assert_eq!(allowed(wider).await, json!([true, false, false]));
    assert_eq!(executor.server_names(), ["mock"]);
    let refused = Executor::builder().allow(["no pattern"]).build();
    assert!(matches!(refused, Err(Error::InvalidPattern { list: RuleList::Allow, .. })));
    let declared = Script::typescript("1").rules(ToolRules::new().read_only(["mock.*"]));
    assert!(matches!(
        executor.run(declared).await,
        Err(Error::InvalidOptions { option: OptionName::ReadOnly, .. })
    ));
}

/// A hook that counts, and does what the arguments ask for.
#[derive(Clone, Default)]
struct Unruly {
    before: Arc<AtomicUsize>,
    after: Arc<AtomicUsize>,
}

impl CallHook for Unruly {
    fn before<'a>(&'a self, call: &'a mut HookedCall) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.before.fetch_add(1, Ordering::SeqCst);
            match call.arguments.get("hook").and_then(Value::as_str) {
                Some("panic") => panic!("a hook of a test"),
                Some("empty") => call.arguments.clear(),
                Some("wait") => std::future::pending().await,
                _ => {}
            }
            Ok(())
        })
    }

    fn after<'a>(
        &'a self,
        call: &'a HookedCall,
        result: &'a mut Result<Json, ToolError>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.after.fetch_add(1, Ordering::SeqCst);
            match call.arguments.get("hook").and_then(Value::as_str) {
                Some("large") => *result = Ok(Json::from(json!("x".repeat(2 << 20)))),
                Some("panic after") => panic!("a hook of a test"),
                _ => {}
            }
        })
    }
}

#[tokio::test]
async fn hooks_cannot_do_more_than_refuse() {
    let hook = Unruly::default();
    let mock = Mock::default();
    let executor = Executor::builder()
        .dispatcher(mock.clone())
        .hook(hook.clone())
        .deny(["mock.text"])
        .limits(Limits { result_bytes: 1 << 20, ..Limits::default() })
        .build()
        .unwrap();
    let call = async |tool: &str, hook: &str| {
        let source = format!(
            "const r = call_tool('mock', '{tool}', {{ hook: '{hook}' }}); return r.ok || r.error.code"
        );
        executor.run_ts(&source).await.unwrap().value().cloned().unwrap()
    };
    assert_eq!(call("echo", "").await, json!(true));
    assert_eq!(call("echo", "empty").await, json!(true));
    assert_eq!(call("echo", "panic").await, json!("TOOL_DENIED"));
    assert_eq!(call("echo", "panic after").await, json!("TOOL_DENIED"));
    assert_eq!(call("echo", "large").await, json!("RESULT_TOO_LARGE"));
    let seen = (hook.before.load(Ordering::SeqCst), hook.after.load(Ordering::SeqCst));
    assert_eq!(seen, (5, 5), "each call was seen twice, whatever became of it");
    // A hook does not see calls that the policy denies.
    assert_eq!(call("text", "").await, json!("TOOL_DENIED"));
    assert_eq!(hook.before.load(Ordering::SeqCst), 5);
    // The run's limits hold for hooks.
    let limits = Limits { wall_time: Duration::from_millis(300), ..Limits::default() };
    let script = Script::typescript("await tools.mock.echo({ hook: 'wait' })").limits(limits);
    let result = executor.run(script).await.unwrap();
    assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::Timeout));
    assert_eq!(mock.calls.load(Ordering::SeqCst), 4);
}

/// Counts what it is asked for, as a hook, a back end and a model.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Counting {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl CallHook for Counting {
    fn before<'a>(&'a self, _call: &'a mut HookedCall) -> BoxFuture<'a, Result<(), ToolError>> {
        self.count();
        Box::pin(async { Ok(()) })
    }

    fn after<'a>(
        &'a self,
        _call: &'a HookedCall,
        _result: &'a mut Result<Json, ToolError>,
    ) -> BoxFuture<'a, ()> {
        self.count();
        Box::pin(async {})
    }
}

impl Backend for Counting {
    fn execute(&self, _run: BackendRun) -> BoxFuture<'static, Outcome> {
        self.count();
        Box::pin(async { Outcome::Returned(json!("executed").into()) })
    }

    fn is_checked(&self, _language: Language) -> bool {
        true
    }
}

impl LanguageModel for Counting {
    fn complete(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        self.count();
        Box::pin(async { Ok(ModelAnswer::text("an answer")) })
    }

    fn stream(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        self.count();
        Box::pin(async { Err(ModelError::new(ModelErrorKind::Failed, "no streams")) })
    }
}

/// A program can keep what it gives to an executor, and look into it.
#[tokio::test]
async fn hooks_back_ends_and_models_can_be_shared_with_the_program() {
    let counted = |counting: &Counting| counting.0.load(Ordering::SeqCst);
    let hook = Arc::new(Counting::default());
    let executor = Executor::builder().dispatcher(Mock::default()).hook(Arc::clone(&hook)).build().unwrap();
    executor.run_ts("await tools.mock.count()").await.unwrap();
    assert_eq!(counted(&hook), 2, "before the call and after it");

    let backend = Arc::new(Counting::default());
    let executor = Executor::builder().backend(Arc::clone(&backend)).build().unwrap();
    let result = executor.run_ts("return 1").await.unwrap();
    assert_eq!(result.value(), Some(&json!("executed")));
    let wrong = executor.run_ts("const = 1").await.unwrap();
    assert_eq!(wrong.error().map(|error| error.code), Some(ErrorCode::SyntaxError), "it is checked");
    assert_eq!(counted(&backend), 1);

    let model = Arc::new(Counting::default());
    let executor = Executor::builder()
        .llm(LlmOptions { access: LlmAccess::Always, ..LlmOptions::default() })
        .language_model("counting", Arc::clone(&model))
        .build()
        .unwrap();
    let source = "
        const read = async () => { for await (const _ of llm.ask('b', { stream: true, maxTokens: 9 })); };
        return [await llm.ask('a', { maxTokens: 9 }), await read().catch((error) => error.message)]";
    let result = executor.run_ts(source).await.unwrap();
    assert_eq!(result.value(), Some(&json!(["an answer", "no streams"])), "{}", result.to_json());
    assert_eq!(counted(&model), 2);
}

/// What a hook changes is checked like what a script writes, and is what a person is shown.
#[tokio::test]
async fn changed_arguments_are_checked_and_shown() {
    struct Change;
    impl CallHook for Change {
        fn before<'a>(&'a self, call: &'a mut HookedCall) -> BoxFuture<'a, Result<(), ToolError>> {
            Box::pin(async move {
                let value = call.arguments.remove("to").unwrap_or_default();
                call.arguments.insert("a".to_owned(), value);
                Ok(())
            })
        }
    }
    let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } }, "required": ["a"] });
    let shown = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let executor = Executor::builder()
        .tool("math.double", schema, |arguments: Value| async move {
            arguments["a"].as_f64().map(|number| number * 2.0).ok_or("no number")
        })
        .hook(Change)
        .ask(["math.double"])
        .approver({
            let shown = Arc::clone(&shown);
            move |request| {
                shown.lock().push(Value::Object(request.arguments));
                async { cx::Approval::Approve }
            }
        })
        .build()
        .unwrap();
    let result = executor.run_ts("return await tools.math.double({ to: 4 })").await.unwrap();
    assert_eq!(result.value_as::<f64>().ok(), Some(8.0), "{}", result.to_json());
    let result = executor.run_ts("return await tools.math.double({ to: 'four' })").await.unwrap();
    assert_eq!(result.error().and_then(|error| error.tool_code), Some(ToolErrorCode::InvalidArguments));
    assert_eq!(*shown.lock(), [json!({ "a": 4 })]);
}

/// A server whose name has capitals can be written in the forms of both languages in TypeScript. Another form is an
/// error with the right name, and not a missing property.
#[tokio::test]
async fn a_server_with_capitals_is_found_or_named() {
    let executor = Executor::builder()
        .tool("MyServer.read_file", Value::Null, |arguments: Value| async move { Ok::<_, String>(arguments) })
        .build()
        .unwrap();
    let source = "
        const found = [await tools.MyServer.read_file({ a: 1 }), await tools.my_server.readFile({ a: 2 })];
        try { await tools.myserver.read_file({}) } catch (error) { found.push(error.code, error.message) }
        return found";
    let result = executor.run_ts(source).await.unwrap();
    let found = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
    let wrong = "no server `myserver`; did you mean `MyServer`?";
    assert_eq!(*found, json!([{ "a": 1 }, { "a": 2 }, "TOOL_NOT_FOUND", wrong]));
}

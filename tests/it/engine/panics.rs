//! Functions of the embedder that panic: what they were called for fails, by number. The process, the executor and
//! other runs go on. V8 calls ops as C functions, through which a panic ends the process, so each test has a process of
//! its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cx::{
    Approval, Backend, BackendRun, BoxFuture, Error, ErrorCode, Executor, ExecutorBuilder, Json,
    LanguageModel, LlmAccess, LlmOptions, ModelAnswer, ModelError, ModelErrorKind, ModelPiece, ModelRequest,
    ModelStream, Outcome, Progress, RequestContext, Script, ServerRequest, ToolCall, ToolCallStatus,
    ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList, ToolRequest, ToolResult,
};
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{in_its_own_process, python_cache, wait_until};

/// What a panic says is for the log, and not for a script.
fn panics() -> Result<Value, String> {
    panic!("a secret of the program")
}

/// Native tools that panic when they are called, when they are first polled, and later.
fn bad_tools(builder: ExecutorBuilder) -> ExecutorBuilder {
    builder
        .tool("bad.at_once", Value::Null, |_: Value| {
            let answer = panics();
            async { answer }
        })
        .tool("bad.first", Value::Null, |_: Value| async { panics() })
        .tool("bad.later", Value::Null, |_: Value| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            panics()
        })
}

async fn value(executor: &Executor, script: impl Into<Script>) -> Value {
    let result = executor.run(script).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{}", result.to_json()))
}

#[test]
fn v_635_a_tool_that_panics_is_a_failed_call() {
    let test = "v_635_a_tool_that_panics_is_a_failed_call";
    in_its_own_process(module_path!(), test, async {
        let executor = bad_tools(Executor::builder()).cache_directory(python_cache()).build().unwrap();
        let source = "
            const seen = [];
            for (const tool of ['at_once', 'first', 'later']) {
                try { await tools.bad[tool]({}) } catch (error) { seen.push([error.code, error.message, error.tool]) }
                const { error } = call_tool('bad', tool, {});
                seen.push([error.code, error.message, error.tool]);
            }
            return seen";
        let failed = |tool: &str| json!(["TOOL_ERROR", "the tool has panicked", tool]);
        let expected: Value =
            ["at_once", "first", "later"].iter().flat_map(|tool| vec![failed(tool); 2]).collect();
        let result = executor.run_ts(source).await.unwrap();
        assert_eq!(result.value(), Some(&expected), "{}", result.to_json());
        let statuses: Vec<_> = result.tool_calls.iter().map(|call| call.status).collect();
        assert_eq!(statuses, [ToolCallStatus::Failed(ToolErrorCode::ToolError); 6]);
        let source = "
seen = []
for tool in ['at_once', 'first', 'later']:
    try:
        await getattr(tools.bad, tool)()
    except McpToolError as error:
        seen.append([error.code, error.message])
seen";
        let seen = value(&executor, Script::python(source)).await;
        assert_eq!(seen, json!(vec![["TOOL_ERROR", "the tool has panicked"]; 3]));
        // A call without a script, and the next run.
        let failed = executor.call(ToolCall::new("bad", "first")).await.unwrap().result.unwrap_err();
        assert_eq!((failed.code, &*failed.message), (ToolErrorCode::ToolError, "the tool has panicked"));
        assert_eq!(value(&executor, "return 1 + 1").await, json!(2));
    });
}

/// Panics wherever it is called: `unlisted` when it lists its tools, `listed` in a call and in a request.
struct BadServers;

impl ToolDispatcher for BadServers {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["unlisted".into(), "listed".into()]
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        assert_eq!(server, "listed", "a secret of the program");
        let tool = ToolDefinition::new("x");
        futures::future::ready(Ok(Arc::new(ToolList::new(vec![tool])))).boxed()
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        panic!("a secret of the program")
    }

    fn request(
        &self,
        _server: Arc<str>,
        _request: ServerRequest,
        _context: RequestContext,
    ) -> BoxFuture<'_, Result<Json, ToolError>> {
        panic!("a secret of the program")
    }
}

/// Panics in its functions, and in the stream of an answer after the first piece.
struct BadModel;

impl LanguageModel for BadModel {
    fn complete(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        panic!("a secret of the program")
    }

    fn stream(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        futures::future::ready(Ok(pieces())).boxed()
    }
}

/// The pieces of an answer, of which the second panics.
fn pieces() -> ModelStream {
    use futures::StreamExt as _;
    let piece = |is_bad: bool| {
        assert!(!is_bad, "a secret of the program");
        Ok(ModelPiece::Text("a piece".to_owned()))
    };
    futures::stream::iter([false, true]).map(piece).boxed()
}

#[test]
fn v_635_a_server_or_a_model_that_panics_is_a_failed_call() {
    let test = "v_635_a_server_or_a_model_that_panics_is_a_failed_call";
    in_its_own_process(module_path!(), test, async {
        let executor = Executor::builder()
            .dispatcher(BadServers)
            .llm(LlmOptions { access: LlmAccess::Always, ..LlmOptions::default() })
            .language_model("bad", BadModel)
            .build()
            .unwrap();
        let source = "
            const read = async () => {
                for await (const _piece of llm.ask('x', { stream: true, maxTokens: 10 }));
            };
            const failure = (promise) => promise.then(() => 'none', (error) => `${error.code}: ${error.message}`);
            return [
                await failure(tools['unlisted'].x({})),
                await failure(tools.listed.x({})),
                await failure(mcp.listResources('listed')),
                await failure(llm.ask('x', { maxTokens: 10 })),
                await failure(read()),
            ]";
        let expected = json!([
            "TOOL_ERROR: the server has panicked",
            "TOOL_ERROR: the tool has panicked",
            "TOOL_ERROR: the server has panicked",
            "MODEL_ERROR: the model has panicked",
            "MODEL_ERROR: the model has panicked",
        ]);
        // Again: a list that was not made can be asked for again.
        for _ in 0..2 {
            assert_eq!(value(&executor, source).await, expected);
        }
    });
}

/// Counts that it is dropped, and panics.
struct BadDrop(Arc<AtomicUsize>);

impl Drop for BadDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a secret of the program")
    }
}

/// An isolate whose drop such a panic ends half-way is not freed, nor are the other calls of its run.
#[test]
fn v_638_calls_that_panic_when_they_are_dropped_are_all_dropped() {
    let test = "v_638_calls_that_panic_when_they_are_dropped_are_all_dropped";
    in_its_own_process(module_path!(), test, async {
        let (begun, gone) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let (begins, held, waits) = (Arc::clone(&begun), Arc::clone(&gone), begun);
        let executor = Executor::builder()
            .tool("bad.held", Value::Null, move |_: Value| {
                let (begins, held) = (Arc::clone(&begins), BadDrop(Arc::clone(&held)));
                async move {
                    begins.add_permits(1);
                    let _held = held;
                    std::future::pending::<Result<Value, String>>().await
                }
            })
            .tool("bad.begun", Value::Null, move |_: Value| {
                let waits = Arc::clone(&waits);
                async move {
                    waits.acquire_many(2).await.unwrap().forget();
                    Ok::<_, String>(true)
                }
            })
            .build()
            .unwrap();
        let source = "
            tools.bad.held({}).catch(() => {});
            tools.bad.held({}).catch(() => {});
            await tools.bad.begun({});
            return 1";
        for run in 1..=3 {
            assert_eq!(value(&executor, source).await, json!(1));
            wait_until(|| gone.load(Ordering::SeqCst) == 2 * run).await;
        }
    });
}

/// Its stream has a piece and no end.
struct EndlessModel(Arc<AtomicUsize>);

impl LanguageModel for EndlessModel {
    fn complete(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        futures::future::ready(Err(ModelError::new(ModelErrorKind::Failed, "in a test"))).boxed()
    }

    fn stream(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        use futures::StreamExt as _;
        let held = BadDrop(Arc::clone(&self.0));
        let piece = Ok(ModelPiece::Text("one two three four ".to_owned()));
        let pieces = futures::stream::iter([piece]).chain(futures::stream::pending()).map(move |piece| {
            let _held = &held;
            piece
        });
        futures::future::ready(Ok(pieces.boxed())).boxed()
    }
}

/// A worker drops them after the run, where nothing stops a panic.
#[test]
fn v_638_answers_that_panic_when_they_are_dropped_cost_nothing() {
    let test = "v_638_answers_that_panic_when_they_are_dropped_cost_nothing";
    in_its_own_process(module_path!(), test, async {
        let gone = Arc::new(AtomicUsize::new(0));
        let executor = Executor::builder()
            .llm(LlmOptions { access: LlmAccess::Always, ..LlmOptions::default() })
            .language_model("endless", EndlessModel(Arc::clone(&gone)))
            .build()
            .unwrap();
        let source = "
            const open = () => llm.ask('x', { stream: true, maxTokens: 10 }).next();
            return [(await open()).done, (await open()).done]";
        for run in 1..=3 {
            assert_eq!(value(&executor, source).await, json!([false, false]));
            wait_until(|| gone.load(Ordering::SeqCst) == 2 * run).await;
        }
    });
}

/// The mock tool of a run that reports progress.
struct Reporting;

impl ToolDispatcher for Reporting {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["reporting".into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        let tool = ToolDefinition::new("x");
        futures::future::ready(Ok(Arc::new(ToolList::new(vec![tool])))).boxed()
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        async move {
            if let Some(listener) = &request.on_progress {
                listener(Progress::new(1.0));
            }
            Ok(ToolResult::structured(json!({})))
        }
        .boxed()
    }
}

/// Counts and panics.
fn listener(heard: &Arc<AtomicUsize>) -> impl Fn() + Send + Sync + use<> {
    let heard = Arc::clone(heard);
    move || {
        heard.fetch_add(1, Ordering::SeqCst);
        panic!("in a test")
    }
}

#[test]
fn v_636_a_listener_that_panics_loses_its_run() {
    let test = "v_636_a_listener_that_panics_loses_its_run";
    in_its_own_process(module_path!(), test, async {
        let executor = Executor::builder().dispatcher(Reporting).build().unwrap();
        let lost = |result: Result<_, Error>| match result {
            Err(Error::WorkerLost { message }) => message,
            other => panic!("{:?}", other.map(|_| ())),
        };
        let heard = Arc::new(AtomicUsize::new(0));
        let hear = || listener(&heard);
        // Without its listener none of these would end.
        let script = |act: &str| Script::typescript(format!("{act}; for (;;) console.log('again')"));
        let (printed, emitted, reported, called, progressed) = (hear(), hear(), hear(), hear(), hear());
        let scripts = [
            script("console.log('x')").on_output(move |_| printed()),
            script("emit('x')").on_output(move |_| emitted()),
            script("progress(1)").on_report(move |_| reported()),
            script("await tools.reporting.x({})").on_call(move |_| called()),
            script("await tools.reporting.x({})").on_progress(move |_| progressed()),
        ];
        for script in scripts {
            let before = heard.load(Ordering::SeqCst);
            assert_eq!(lost(executor.run(script.clone()).await), "a listener has panicked: in a test");
            assert_eq!(heard.load(Ordering::SeqCst), before + 1, "it is not called again");
            assert_eq!(lost(executor.start(script).await), "a listener has panicked: in a test");
            assert_eq!(value(&executor, "return 1 + 1").await, json!(2));
        }
        let called = hear();
        let call = ToolCall::new("reporting", "x").options(|run| run.on_call(move |_| called()));
        let error = executor.call(call).await.map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "this run was lost: a listener has panicked: in a test");
    });
}

/// The run has its result by then, or its caller has gone.
#[test]
fn v_637_a_listener_of_traces_that_panics_changes_nothing() {
    let test = "v_637_a_listener_of_traces_that_panics_changes_nothing";
    in_its_own_process(module_path!(), test, async {
        let executor = Executor::builder().on_trace(|_trace| panic!("in a test")).build().unwrap();
        assert_eq!(value(&executor, "return 1 + 1").await, json!(2));
        let dropped =
            executor.run_ts("await new Promise((resolve) => setTimeout(resolve, 20_000))").now_or_never();
        assert!(dropped.is_none(), "it has only begun");
        assert_eq!(value(&executor, "return 1 + 1").await, json!(2));
    });
}

/// Its source says where it panics: `at once`, `polled`, or not at all.
struct BadBackend;

impl Backend for BadBackend {
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
        let source = run.source().to_owned();
        assert_ne!(source, "at once", "in a test");
        async move {
            assert_ne!(source, "polled", "in a test");
            Outcome::Returned(json!(1).into())
        }
        .boxed()
    }
}

#[test]
fn v_637_a_back_end_that_panics_costs_its_run() {
    in_its_own_process(module_path!(), "v_637_a_back_end_that_panics_costs_its_run", async {
        let executor = Executor::builder().backend(BadBackend).build().unwrap();
        for source in ["at once", "polled"] {
            let result = executor.run_ts(source).await;
            assert!(matches!(&result, Err(Error::WorkerLost { message }) if message.contains("in a test")));
            assert_eq!(value(&executor, "1").await, json!(1));
        }
    });
}

#[test]
fn v_637_an_approver_that_panics_approves_nothing() {
    in_its_own_process(module_path!(), "v_637_an_approver_that_panics_approves_nothing", async {
        let called = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&called);
        let executor = Executor::builder()
            .tool("disk.erase", Value::Null, move |_: Value| {
                counted.fetch_add(1, Ordering::SeqCst);
                async { Ok::<_, String>(1) }
            })
            .ask(["disk.*"])
            .build()
            .unwrap();
        let script = || Script::typescript("await tools.disk.erase({})");
        let scripts = [
            script().approver(|_| -> std::future::Ready<Approval> { panic!("in a test") }),
            script().approver(|_| async { panic!("in a test") }),
        ];
        for script in scripts {
            let result = executor.run(script).await.unwrap();
            let error = result.error().unwrap();
            assert_eq!(
                (error.code, error.tool_code),
                (ErrorCode::RuntimeError, Some(ToolErrorCode::ToolDenied))
            );
        }
        assert_eq!(called.load(Ordering::SeqCst), 0);
    });
}

//! Runs in worker processes (`Isolation::Process`): their outcomes are those in this process, the end of a worker
//! affects its own run only, and no process or file remains.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cx::{
    Approval, ErrorCode, ExecuteResult, Executor, ExecutorBuilder, Grants, Isolation, Language, Limits,
    Outcome, Output, ProviderKind, SaveRequest, Script, ScriptLibrary, StateStore, ToolCallStatus,
    WorkerProcesses,
};
use serde_json::{Value, json};

use crate::support::http_host::{HttpHost, Reply};
use crate::support::mock::Mock;
use crate::support::provider::{self, FakeProvider, KEY};
use crate::support::python_executor::cache;
use crate::support::script_suite::{language_of, scripts, snapshot, without_times};
use crate::support::{WEDGE, wait_until};

/// The short form runs every nth script of the suite. n is prime, so that it meets all kinds.
const SAMPLE: usize = 17;

/// Set by `make isolation`: all scripts.
const ALL: &str = "CX_ALL_IN_PROCESSES";

fn workers(runs_per_worker: u32) -> Isolation {
    Isolation::Process(WorkerProcesses {
        program: Some(env!("CARGO_BIN_EXE_cx").into()),
        runs_per_worker,
        require: true,
    })
}

fn builder() -> (ExecutorBuilder, Mock) {
    let mock = Mock::default();
    let builder = Executor::builder()
        .dispatcher(mock.clone())
        .cache_directory(cache())
        .warm_instances(1)
        .isolation(workers(1));
    (builder, mock)
}

fn executor() -> (Executor, Mock) {
    let (builder, mock) = builder();
    (builder.build().unwrap(), mock)
}

fn code(result: &ExecuteResult) -> Option<ErrorCode> {
    match &result.outcome {
        Outcome::Failed(error) => Some(error.code),
        _ => None,
    }
}

#[track_caller]
fn value(result: &ExecuteResult) -> Value {
    match &result.outcome {
        Outcome::Returned(value) => value.value().unwrap().clone(),
        other => panic!("{other:?}"),
    }
}

/// The behavior of scripts is that of `tests/scripts`, where each has a snapshot of its outcome in this process.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_come_to_the_same_in_worker_processes() {
    let directory = tempfile::tempdir().unwrap();
    let store = StateStore::new(directory.path().join("state.sqlite3"));
    let step = if std::env::var_os(ALL).is_some() { 1 } else { SAMPLE };
    // Starting a worker counts as time of the run, and takes seconds on a busy machine. No script of the suite reaches
    // a time limit.
    let long = Duration::from_secs(600);
    let limits = Limits { wall_time: long, cpu_time: long, ..Limits::default() };
    let (mut seen, mut differing) = (0, Vec::new());
    for path in scripts().iter().step_by(step) {
        let source = fs::read_to_string(path).unwrap();
        // An executor learns from the calls of its runs, so each script has one of its own.
        let (builder, _mock) = builder();
        let builder = builder.languages([]).limits(limits).state(store.clone(), directory.path());
        let executor = builder.build().unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let script = match language_of(path) {
            Language::Python => Script::python(source).named("script.py"),
            _ => Script::typescript(source).named("script.ts"),
        };
        let script = script.session(name.as_str()).input(json!({ "n": 7, "list": [1, 2] }));
        let found = without_times(&executor.run(script).await.unwrap());
        let expected = snapshot(path);
        if found != expected {
            differing.push(format!("{name}\n  expected {expected}\n  found    {found}"));
        }
        seen += 1;
    }
    assert!(differing.is_empty(), "{} of {seen} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(seen >= 30, "only {seen}");
}

/// Threats 9 and 10: V8 cannot interrupt these. In this process their thread would hang; here the worker is killed.
#[tokio::test(flavor = "multi_thread")]
async fn built_in_functions_that_cannot_be_interrupted_end_at_the_deadline() {
    let (executor, _mock) = executor();
    for (source, expected) in [
        ("Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", ErrorCode::RuntimeError),
        ("Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)", ErrorCode::RuntimeError),
        ("Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)", ErrorCode::RuntimeError),
        ("Array.prototype.reverse.call({ length: 2 ** 53 - 1 })", ErrorCode::RuntimeError),
        ("new Array(2 ** 32 - 1).indexOf(1)", ErrorCode::RuntimeError),
        // This one has no guard.
        (WEDGE, ErrorCode::Timeout),
    ] {
        // The guards of the bootstrap are defense in depth; the sandbox holds without them.
        let wall_time = Duration::from_millis(if expected == ErrorCode::Timeout { 3_000 } else { 60_000 });
        let limits = Limits { wall_time, ..Limits::default() };
        let result = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
        assert_eq!(code(&result), Some(expected), "{source}: {result:?}");
        // On a busy machine the end of the worker may take longer than its run may be late, but not for ever.
        wait_until(|| executor.pool_stats(Language::TypeScript).hung == 0).await;
    }
    // More of them than an engine in this process could take.
    assert_eq!(value(&executor.run_ts("return 1 + 1").await.unwrap()), 2);
}

/// A function that computes in a loop of one statement. In a function of more than 60 KB of bytecode V8 looks for a
/// termination only after a gigabyte of it, for which such a loop needs hours. A branch that is never taken makes it that
/// long.
fn uninterrupted(statement: &str) -> String {
    let never = "x++;".repeat(12_000);
    format!(
        "const compute = (a, x, s, t) => {{
           s[0] + t[0];
           for (let i = 0; i < 3e4; i++) a['k' + i] = i;
           if (x) {{ {never} }}
           console.log('begun');
           for (;;) {{ {statement} }}
         }};
         compute({{}}, 0, 'x'.repeat(1e6) + 'a', 'x'.repeat(1e6) + 'b')"
    )
}

/// In this process each of these would leave a hung worker, and with the third one no script would be run any more.
#[tokio::test(flavor = "multi_thread")]
async fn v_648_syntax_that_v8_does_not_interrupt_ends_with_its_worker() {
    let (executor, _mock) = executor();
    let hung = || executor.pool_stats(Language::TypeScript).hung;
    for statement in ["const { k1, ...rest } = a", "({ ...a })", "s < t", "a[s + x]"] {
        // Its time is that of the statement, and not of the worker's start, and the script has time to get there.
        let limits = Limits { wall_time: Duration::from_secs(6), ..Limits::default() };
        let script = Script::typescript(uninterrupted(statement)).limits(limits);
        executor.warm(Language::TypeScript).await.unwrap();
        let result = executor.run(script).await.unwrap();
        assert_eq!((code(&result), &*result.printed()), (Some(ErrorCode::Timeout), "begun"), "{statement}");
        wait_until(|| hung() == 0).await;
    }
    assert_eq!(value(&executor.run_ts("return 1 + 1").await.unwrap()), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_in_worker_processes() {
    let (executor, _mock) = executor();
    // Threads that compute have a low priority: a busy machine takes long to give them this much CPU time.
    let long = Duration::from_secs(120);
    let small = Limits {
        wall_time: long,
        cpu_time: Duration::from_millis(300),
        memory_bytes: 64 << 20,
        ..Limits::default()
    };
    let waits = Limits { wall_time: Duration::from_millis(300), ..small };
    for (script, limits, expected) in [
        (Script::typescript("for (;;) {}"), small, ErrorCode::CpuLimit),
        (Script::python("while True: pass"), small, ErrorCode::CpuLimit),
        (Script::typescript("await new Promise((r) => setTimeout(r, 60000))"), waits, ErrorCode::Timeout),
        (Script::python("import asyncio\nawait asyncio.sleep(60)"), waits, ErrorCode::Timeout),
        (
            Script::typescript("const a = []; for (;;) a.push(new Array(1e5).fill(1.5))"),
            Limits { cpu_time: long, ..small },
            ErrorCode::MemoryLimit,
        ),
        (
            Script::python("a = []\nwhile True: a.append(bytearray(1 << 20))"),
            Limits { cpu_time: long, ..small },
            ErrorCode::MemoryLimit,
        ),
        (
            Script::typescript("return 'x'.repeat(5000)"),
            Limits { result_bytes: 1000, ..small },
            ErrorCode::ResultTooLarge,
        ),
    ] {
        let shown = format!("{script:?}");
        let result = executor.run(script.limits(limits)).await.unwrap();
        assert_eq!(code(&result), Some(expected), "{shown}: {result:?}");
    }
    let few = Limits { tool_calls: 3, ..small };
    let script = "for (let i = 0; i < 9; i++) await tools.mock.echo({ i })";
    let result = executor.run(Script::typescript(script).limits(few)).await.unwrap();
    assert_eq!(code(&result), Some(ErrorCode::MaxToolCallsExceeded), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cancelled_ends_with_its_worker() {
    let (executor, _mock) = executor();
    for script in [
        Script::typescript("console.log('begun'); await new Promise((r) => setTimeout(r, 60000))"),
        Script::python("print('begun')\nwhile True: pass"),
    ] {
        let token = cx::CancellationToken::new();
        let cancel = token.clone();
        let script = script.cancel_with(token).on_output(move |_| cancel.cancel());
        let result = executor.run(script).await.unwrap();
        assert_eq!(code(&result), Some(ErrorCode::Cancelled), "{result:?}");
        assert_eq!(result.printed(), "begun");
    }
}

/// The executor ends the call that the script gives up, while its run goes on.
#[tokio::test(flavor = "multi_thread")]
async fn v_600_a_call_of_a_worker_process_ends_at_its_server() {
    let typescript = "const controller = new AbortController();
        const first = tools.mock.hang({}, { signal: controller.signal });
        const second = tools.mock.hang({});
        await tools.mock.sleep({ ms: 1, beside: 2 });
        controller.abort();
        await first.catch(() => {});
        await second";
    let python = "import asyncio
await mock.echo()
second = asyncio.create_task(mock.hang())
try:
    await asyncio.wait_for(mock.hang(), timeout=2)
except TimeoutError:
    pass
await second";
    for script in [Script::typescript(typescript), Script::python(python)] {
        let (executor, mock) = executor();
        let run = executor.start(script);
        // The first run of an executor waits for a worker, which starts slowly on a busy machine.
        let ended = || mock.cancelled.load(Ordering::SeqCst) == 1 && mock.running.load(Ordering::SeqCst) == 1;
        for _ in 0..6_000 {
            if ended() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(
            ended(),
            "{} of {} calls",
            mock.cancelled.load(Ordering::SeqCst),
            mock.calls.load(Ordering::SeqCst)
        );
        drop(run);
    }
}

/// Uses of the host through frames: output while the script runs, approval, state, emitted blocks, blocking calls.
#[tokio::test(flavor = "multi_thread")]
async fn the_host_interface_works_through_frames() {
    let directory = tempfile::tempdir().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let (builder, _mock) = builder();
    let executor = builder
        .state(StateStore::new(directory.path().join("state.sqlite3")), directory.path())
        .ask(["mock.echo"])
        .approver(move |_request| {
            let counted = Arc::clone(&counted);
            async move {
                counted.fetch_add(1, Ordering::Relaxed);
                Approval::Approve
            }
        })
        .build()
        .unwrap();
    for (script, expected) in [
        (
            Script::typescript(
                "console.log('one'); await new Promise((r) => setTimeout(r, 1500)); console.log('two');
                 await state.set('k', [1]); emit({ type: 'text', text: 'block' });
                 const answer = await tools.mock.echo({ a: 1 });
                 return [answer, await state.get('k'), (await searchTools('echo')).length > 0, crypto.randomUUID().length]",
            ),
            json!([{ "a": 1 }, [1], true, 36]),
        ),
        (
            Script::python(
                "import asyncio, random\nprint('one')\nawait asyncio.sleep(1.5)\nprint('two')\n\
                 await state.set('k', [1])\nemit({'type': 'text', 'text': 'block'})\n\
                 answer = await tools.mock.echo({'a': 1})\n\
                 return [answer, await state.get('k'), len(await search_tools('echo')) > 0, 36]",
            ),
            json!([{ "a": 1 }, [1], true, 36]),
        ),
    ] {
        let times = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let heard = Arc::clone(&times);
        let script = script.on_output(move |output| {
            if let Output::Log { text, .. } = output {
                heard.lock().push((text.clone(), Instant::now()));
            }
        });
        let result = executor.run(script).await.unwrap();
        assert_eq!(value(&result), expected, "{result:?}");
        let times = times.lock();
        assert_eq!(times.len(), 2);
        // The first line is sent before the second is printed.
        assert!(times[1].1 - times[0].1 > Duration::from_millis(100), "{times:?}");
        assert!(result.logs.iter().any(|entry| matches!(entry, Output::Emit(_))));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

/// The first worker puts Python's code into the cache of its executor; every later one maps it from there.
#[tokio::test(flavor = "multi_thread")]
async fn workers_use_the_cache_of_their_executor() {
    let cache = tempfile::tempdir().unwrap();
    let run = async || {
        let executor = Executor::builder()
            .cache_directory(cache.path())
            .warm_instances(1)
            .languages([])
            .isolation(workers(1))
            .build()
            .unwrap();
        assert_eq!(value(&executor.run(Script::python("1 + 1")).await.unwrap()), 2);
    };
    let code = || {
        let files = fs::read_dir(cache.path().join("python")).unwrap().map(|entry| entry.unwrap().path());
        let mut code: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|name| name == "cwasm")).collect();
        assert_eq!(code.len(), 1, "{code:?}");
        code.remove(0)
    };
    run().await;
    let file = code();
    // A process that loads the file updates this time.
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(86_400);
    fs::File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
    let before = fs::metadata(&file).unwrap();
    run().await;
    let after = fs::metadata(code()).unwrap();
    assert_eq!(after.ino(), before.ino(), "it was made again");
    assert!(after.modified().unwrap() > long_ago + Duration::from_secs(3_600), "no worker has loaded it");
}

/// A worker has no network: the executor makes the requests of its script, to granted hosts only.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_in_worker_processes_fetch_what_is_granted() {
    let host = HttpHost::start(|asked| {
        Reply::text(format!("{} {} {}", asked.method, asked.path, String::from_utf8_lossy(&asked.body)))
    });
    let (granted, denied) = (host.url("/a?b"), host.url("/a").replace("127.0.0.1", "127.0.0.2"));
    let (builder, _mock) = builder();
    let net = vec![format!("127.0.0.1:{}", host.port).parse().unwrap()];
    let executor = builder.grants(Grants { net, ..Grants::default() }).build().unwrap();
    for script in [
        Script::typescript(
            "const answer = await fetch(input[0], { method: 'POST', body: 'c' });
             let size = 0; for await (const piece of answer.clone().body) size += piece.length;
             let code; try { await fetch(input[1]) } catch (error) { code = error.cause.code }
             return [answer.status, await answer.text(), size, code]",
        ),
        Script::python(
            "answer = await fetch(inputs[0], method='POST', body='c')\ntext = await answer.text()\n\
             try: await fetch(inputs[1])\nexcept McpToolError as error: code = error.code\n\
             return [answer.status, text, len(text), code]",
        ),
    ] {
        let result = executor.run(script.input(json!([granted, denied]))).await.unwrap();
        assert_eq!(value(&result), json!([200, "POST /a?b c", 11, "NET_DENIED"]), "{result:?}");
    }
    assert_eq!(host.asked().len(), 2, "one request of each");
}

/// The executor asks the model, with its key and within its budget.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_in_worker_processes_ask_a_model() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| {
        provider::Reply::Text(format!("you said: {}", asked.prompt))
    });
    let (builder, _mock) = builder();
    let mut options = provider.options();
    options.rounds = Some(2);
    let executor = builder.llm(options).build().unwrap();
    for script in [
        Script::typescript(
            "const text = await llm.ask('one'); const pieces = [];
             for await (const piece of llm.ask('two three', { stream: true })) pieces.push(piece);
             let code; try { await llm.ask('four') } catch (error) { code = error.code }
             return [text, pieces.join(''), pieces.length > 1, code]",
        ),
        Script::python(
            "text = await llm.ask('one')\npieces = []\n\
             async for piece in llm.ask('two three', stream=True): pieces.append(piece)\n\
             try: await llm.ask('four')\nexcept McpToolError as error: code = error.code\n\
             return [text, ''.join(pieces), len(pieces) > 1, code]",
        ),
    ] {
        let result = executor.run(script).await.unwrap();
        let expected = json!(["you said: one", "you said: two three", true, "MODEL_BUDGET_EXCEEDED"]);
        assert_eq!(value(&result), expected, "{result:?}");
        assert_eq!(result.sampling.as_ref().unwrap().metrics.total_rounds, 2);
        assert!(!format!("{result:?}").contains(KEY));
    }
    assert_eq!(provider.asked().len(), 4);
}

/// Each saved script that is called has its own worker, and all of them share the budget of their caller.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_in_worker_processes_call_saved_scripts() {
    let directory = tempfile::tempdir().unwrap();
    let library = || ScriptLibrary::of_folder(directory.path().join("scripts"));
    for (name, language, source) in [
        (
            "in-typescript",
            Language::TypeScript,
            "// Says who it is.\nexport default async (given) => [given.n, (await tools.mock.echo({ a: given.n })).a]",
        ),
        (
            "in-python",
            Language::Python,
            "\"\"\"Says who it is.\"\"\"\n[inputs['n'], (await scripts.in_typescript(n=inputs['n'] + 1))]",
        ),
    ] {
        library().save(SaveRequest::new(name, language, source)).unwrap();
    }
    let (builder, mock) = builder();
    let executor = builder.scripts(library()).build().unwrap();
    let scripts = || {
        [
            Script::typescript(
                "return await Promise.all([scripts.inTypescript({ n: 1 }), scripts.inPython({ n: 2 })])",
            ),
            Script::python("[await scripts.in_typescript(n=1), await scripts.in_python(n=2)]"),
        ]
    };
    for script in scripts() {
        let result = executor.run(script).await.unwrap();
        assert_eq!(value(&result), json!([[1, 1], [2, [3, 3]]]), "{result:?}");
        let named = |server: &str| result.tool_calls.iter().filter(|call| call.server == server).count();
        assert_eq!((named("scripts"), named("mock")), (3, 2), "{result:?}");
        assert!(result.tool_calls.iter().all(|call| call.status == ToolCallStatus::Ok));
    }
    let calls = mock.calls.load(Ordering::SeqCst);
    for script in scripts() {
        // The two scripts that it calls, and one call more.
        let limits = Limits { tool_calls: 3, ..Limits::default() };
        let result = executor.run(script.limits(limits)).await.unwrap();
        assert!(code(&result).is_some(), "{result:?}");
        assert!(result.to_json().to_string().contains("MAX_TOOL_CALLS_EXCEEDED"), "{result:?}");
    }
    assert!(
        mock.calls.load(Ordering::SeqCst) <= calls + 2,
        "{} calls beyond the budget",
        mock.calls.load(Ordering::SeqCst) - calls - 2
    );
}

/// The names are asked for while the module is imported, and come from the executor.
#[tokio::test(flavor = "multi_thread")]
async fn a_star_import_has_the_tools_of_a_server() {
    let (executor, _mock) = executor();
    let script = Script::python("from mcp.servers.mock import *\n(await echo(a=5))['a']");
    let result = executor.run(script).await.unwrap();
    assert_eq!(value(&result), json!(5), "{result:?}");
}

#[tokio::test]
async fn a_program_that_is_no_worker_is_an_error() {
    let missing = Executor::builder().isolation(Isolation::process()).build().unwrap_err();
    assert!(missing.to_string().contains("worker_process"), "{missing}");
    for program in ["/bin/true", "/bin/no-such-program"] {
        let isolation = WorkerProcesses { program: Some(program.into()), runs_per_worker: 1, require: false };
        let executor = Executor::builder().isolation(Isolation::Process(isolation)).build().unwrap();
        let result = executor.run_ts("return 1").await.unwrap();
        assert_eq!(code(&result), Some(ErrorCode::EngineUnavailable), "{program}: {result:?}");
    }
}

//! Attacks that may take a process down (`CP` in THREATS), in worker processes: each has the same outcome as in
//! `escape.rs` and `python_limits.rs`, no thread hangs, and runs beside it are right. Also what remains when the
//! executor is killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use cx::{ErrorCode, Executor, Isolation, Language, Limits, Script, WorkerProcesses};
use serde_json::{Value, json};

use crate::support::mock::Mock;
use crate::support::python_executor::cache;
use crate::support::serve_http::wait_within;
use crate::support::{WEDGE, descendants_of, in_its_own_process, python_cache, wait_until};

/// Longer than anything here needs, however busy the machine is.
const LONG: Duration = Duration::from_secs(300);

/// An attack and its outcome.
struct Attack {
    source: String,
    limits: Limits,
    expected: Result<Value, ErrorCode>,
}

impl Attack {
    fn new(source: impl Into<String>, expected: Result<Value, ErrorCode>) -> Self {
        // Starting its worker counts as time of the run.
        let wall_time = if expected == Err(ErrorCode::Timeout) { Duration::from_secs(3) } else { LONG };
        let limits = Limits { wall_time, cpu_time: LONG, memory_bytes: 64 << 20, ..Limits::default() };
        Self { source: source.into(), limits, expected }
    }

    fn with_megabytes(mut self, megabytes: usize) -> Self {
        self.limits.memory_bytes = megabytes << 20;
        self
    }
}

fn ends(code: ErrorCode, source: impl Into<String>) -> Attack {
    Attack::new(source, Err(code))
}

fn gives(value: Value, source: impl Into<String>) -> Attack {
    Attack::new(source, Ok(value))
}

fn executor() -> Executor {
    let workers =
        WorkerProcesses { program: Some(env!("CARGO_BIN_EXE_cx").into()), runs_per_worker: 1, require: true };
    Executor::builder()
        .dispatcher(Mock::default())
        .cache_directory(cache())
        .warm_instances(1)
        .isolation(Isolation::Process(workers))
        .build()
        .unwrap()
}

fn script(language: Language, source: &str) -> Script {
    match language {
        Language::Python => Script::python(source),
        _ => Script::typescript(source),
    }
}

/// Executes the attacks one after the other, each with an honest run beside it.
async fn survives(language: Language, attacks: Vec<Attack>) {
    let executor = executor();
    let honest = match language {
        Language::Python => "return [1, (await mock.echo(n=2))['n']]",
        _ => "return [1, (await mock.echo({ n: 2 })).n]",
    };
    let patient = Limits { wall_time: LONG, cpu_time: LONG, ..Limits::default() };
    let mut wrong = Vec::new();
    for attack in attacks {
        let attacking = executor.run(script(language, &attack.source).limits(attack.limits));
        let beside = executor.run(script(language, honest).limits(patient));
        let (result, beside) = futures::future::join(attacking, beside).await;
        let (result, beside) = (result.unwrap(), beside.unwrap());
        let found = match result.error() {
            Some(error) => Err(error.code),
            None => Ok(result.value().cloned().unwrap_or_default()),
        };
        let source: String = attack.source.chars().take(100).collect();
        if found != attack.expected {
            wrong.push(format!("{source}\n  expected {:?}\n  found {result:?}", attack.expected));
        }
        if beside.value() != Some(&json!([1, 2])) {
            wrong.push(format!("{source}\n  beside it {beside:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    wait_until(|| executor.pool_stats(language).hung == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v_551_attacks_that_compute_or_overflow_end_in_worker_processes() {
    let names = "['indexOf', 'includes', 'lastIndexOf', 'join', 'reverse', 'some', 'flat', 'splice', 'copyWithin', 'unshift', 'fill']";
    let mut attacks = vec![
        gives(
            json!(11),
            format!(
                "const names = [];
                 for (const name of {names}) {{
                     try {{ Array.prototype[name].call({{ length: 2 ** 53 - 1 }}, 1) }} catch (error) {{ names.push(error.name) }}
                 }}
                 return names.length"
            ),
        ),
        // Past the guards.
        ends(ErrorCode::Timeout, WEDGE),
        gives(
            Value::from(vec!["RangeError"; 7]),
            "const attempts = [
                 () => new Array(2 ** 32 - 1).indexOf(1),
                 () => new Array(2 ** 32 - 1).some((x) => 0),
                 () => new Array(2 ** 32 - 1).fill(0),
                 () => Array.from({ length: 2 ** 32 - 1 }),
                 () => Uint8Array.from({ length: 2 ** 31 }),
                 () => String.raw({ raw: { length: 2 ** 53 - 1 } }),
                 () => 'a'.repeat(2 ** 28).replace(/a/g, 'bb'),
             ];
             return attempts.map((attempt) => { try { attempt(); return 'done' } catch (error) { return error.name } })",
        ),
        ends(
            ErrorCode::RuntimeError,
            "throw { get message() { for (;;) {} }, get stack() { for (;;) {} }, toString() { for (;;) {} } }",
        ),
        ends(
            ErrorCode::Timeout,
            "throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;) {} } })",
        ),
        ends(ErrorCode::Timeout, "Error.prepareStackTrace = () => { for (;;) {} }; null.x"),
        // Nesting with type arguments exceeds the bound on work before the bound on depth.
        ends(ErrorCode::TranspileError, format!("type T={}", "A<".repeat(100_000))),
        gives(
            json!(1),
            "Promise.reject(new Error('x')); Promise.reject(null); new Promise(() => { throw Symbol() });
             await null; await mock.echo(); return 1",
        ),
        ends(ErrorCode::MemoryLimit, "let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return a"),
        gives(
            json!(["TypeError", "McpToolError", "TypeError", "McpToolError"]),
            "const names = [];
             for (const attempt of [
                 () => callMCPTool(Symbol('x'), {}), () => callMCPTool('mcp__mock__echo', Symbol()),
                 () => mock[Symbol.iterator](), () => mock.echo({ a: Symbol() }),
             ]) try { names.push(await attempt()) } catch (error) { names.push(error.name) }
             return names",
        ),
        ends(ErrorCode::RuntimeError, "const a: any[] = []; a.length = 2 ** 32 - 1; return a"),
        ends(
            ErrorCode::RuntimeError,
            "const a: any[] = []; a.length = 2 ** 32 - 1; await mock.echo({ a })",
        ),
    ];
    let recursive = [
        "const f = () => f() + 1; f()",
        "const a = { toJSON() { return JSON.stringify(this) } }; JSON.stringify(a)",
        "const a = { get b() { return this.b } }; a.b",
        "const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x",
        "const r = (k, v) => JSON.parse('[1]', r); JSON.parse('[1]', r)",
    ];
    attacks.extend(recursive.map(|source| ends(ErrorCode::RuntimeError, source)));
    let nested = [
        "(".repeat(200_000),
        "[".repeat(200_000),
        format!("1{}", "+1".repeat(400_000)),
        "a?".repeat(100_000),
        "`${".repeat(100_000),
        "!".repeat(500_000),
        "a=>".repeat(200_000),
        "if(a){}else ".repeat(50_000),
        "{".repeat(500_000),
    ];
    attacks.extend(nested.map(|source| ends(ErrorCode::SyntaxError, source)));
    survives(Language::TypeScript, attacks).await;
}

/// The memory of other tests would count, so that a call of a hundred megabytes is too much.
#[test]
fn v_551_attacks_on_memory_end_in_worker_processes() {
    let test = "v_551_attacks_on_memory_end_in_worker_processes";
    in_its_own_process(module_path!(), test, attacks_on_memory());
}

async fn attacks_on_memory() {
    let mut attacks = vec![
        ends(ErrorCode::RuntimeError, "let s = 'x'; for (;;) s += s"),
        ends(ErrorCode::RuntimeError, r#"eval("[" + "1,".repeat(2 ** 25) + "1]")"#),
        ends(ErrorCode::RuntimeError, "new ArrayBuffer(0, { maxByteLength: 2 ** 32 })"),
        ends(ErrorCode::RuntimeError, "new WebAssembly.Memory({ initial: 16384 })"),
        gives(
            json!([0, "RangeError"]),
            "const k = []; try { for (;;) k.push(new ArrayBuffer(2 ** 30)) } catch (e) { return [k.length, e.name] }",
        ),
        gives(
            json!([1 << 20, "RangeError"]),
            "const keep = []; let buffer = new ArrayBuffer(2 ** 20);
             for (let i = 0; i < 200; i++) {
                 buffer = structuredClone(buffer, { transfer: [buffer] }).transfer(2 ** 20);
                 structuredClone({ buffer });
             }
             try { for (;;) keep.push(structuredClone(buffer)) } catch (error) { return [buffer.byteLength, error.name] }",
        ),
        ends(ErrorCode::Timeout, "for (;;) console.log('x'.repeat(1e6))"),
        ends(ErrorCode::Timeout, "for (let i = 0; ; i++) new RegExp('a' + i).test('a')").with_megabytes(256),
        gives(
            json!("RESULT_TOO_LARGE"),
            "try { await mock.big({ bytes: 100e6 }) } catch (e) { return e.code }",
        )
        .with_megabytes(256),
        gives(
            json!("INVALID_ARGUMENTS"),
            "try { await mock.echo({ s: 'x'.repeat(2 ** 24) }) } catch (e) { return e.code }",
        )
        .with_megabytes(128),
        ends(ErrorCode::ResultTooLarge, "return 'x'.repeat(2 ** 25)").with_megabytes(256),
        gives(
            json!([[1, 2, 3], 36]),
            "const keep = []; try { for (;;) keep.push(new ArrayBuffer(2 ** 20)) } catch {}
             return [(await mock.echo({ a: [1, 2, 3] })).a, crypto.randomUUID().length]",
        ),
    ];
    let grows = [
        "const a = []; for (;;) a.push({})",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
        "const s = new Set(); for (let i = 0; ; i++) s.add({})",
        "const a = []; for (let i = 0; ; i++) a.push(() => i)",
        "const a = []; for (;;) a.push(new Promise(() => {}))",
        "const a = []; for (;;) a.push(new Error('x'))",
        "const a = []; for (;;) try { for (;;) a.push(new Array(1e5).fill(1)) } catch {}",
        "new Array(32 * 2 ** 20).fill(0)",
        r#"/x$/.test("x".repeat(2 ** 29 - 24))"#,
        r#"/x$/.test("\u0100".repeat(2 ** 29 - 24))"#,
        r#""a".repeat(2 ** 25).split("")"#,
        r#"JSON.parse("[" + "1,".repeat(2 ** 24) + "1]")"#,
        "let a = [1]; for (;;) a = a.concat(a)",
        "const o = {}; for (let i = 0; ; i++) o['k' + i] = i",
        "Array.prototype.fill.call({ length: 2 ** 24 }, 0)",
        "[...Array(2 ** 32 - 1)]",
        "[...new Intl.Segmenter().segment('a'.repeat(2 ** 22))]",
        "const k = []; for (;;) k.push(new ArrayBuffer(2 ** 24).slice(0))",
        "const k = []; for (;;) k.push(new Uint8Array(8))",
        "for (let i = 0; ; i++) Symbol.for('k' + i)",
        "return (await Promise.allSettled(Array.from({ length: 200 }, () => mock.big({ bytes: 7e6 })))).length",
    ];
    attacks.extend(grows.map(|source| ends(ErrorCode::MemoryLimit, source)));
    survives(Language::TypeScript, attacks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v_551_attacks_of_python_end_in_worker_processes() {
    let unlimited = "import sys\nsys.setrecursionlimit(10 ** 9)\n";
    let fails = [
        "def f(): return f()\nf()".to_owned(),
        format!("{unlimited}def f(): return f()\nf()"),
        format!(
            "{unlimited}class C:\n    def __getattr__(self, name): return getattr(self, name + 'x')\nC().a"
        ),
        "import json; json.loads('[' * 10 ** 5)".to_owned(),
        "eval('(' * 10 ** 5)".to_owned(),
        "a = []\nfor _ in range(10 ** 5): a = [a]\nrepr(a)".to_owned(),
        "import ast; ast.parse('-' * 10 ** 5 + '1')".to_owned(),
        "import re; re.compile('(' * 5000)".to_owned(),
        "compile('a' + '.b' * 10 ** 5, '', 'eval')".to_owned(),
        format!("{unlimited}class A:\n    def __eq__(self, o): return [self] == [o]\nA() == A()"),
        "a = None\nfor _ in range(10 ** 6): a = (a,)\ndel a\nreturn 1".to_owned(),
    ];
    let grows = [
        format!("{unlimited}import re; re.compile('(' * 50_000 + ')' * 50_000)"),
        "compile('+'.join(['a'] * 10 ** 5), '', 'eval')".to_owned(),
        format!("{unlimited}import copy\na = []\nfor _ in range(10 ** 5): a = [a]\ncopy.deepcopy(a)"),
        "bytearray(1 << 30)".to_owned(),
        "import os; os.urandom(2 ** 30)".to_owned(),
    ];
    let mut attacks: Vec<Attack> = fails.map(|source| ends(ErrorCode::RuntimeError, source)).into();
    attacks.extend(grows.map(|source| ends(ErrorCode::MemoryLimit, source)));
    attacks.push(ends(ErrorCode::Timeout, "import time; time.sleep(3600)"));
    survives(Language::Python, attacks).await;
}

/// More of them at the same time than the engine of one process could take (THREATS 11).
#[tokio::test(flavor = "multi_thread")]
async fn v_551_several_scripts_that_hang_cost_no_engine() {
    let executor = executor();
    let attack = ends(ErrorCode::Timeout, WEDGE);
    let runs = (0..4).map(|_| executor.run(Script::typescript(&*attack.source).limits(attack.limits)));
    for result in futures::future::join_all(runs).await {
        let result = result.unwrap();
        assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::Timeout), "{result:?}");
    }
    wait_until(|| executor.pool_stats(Language::TypeScript).hung == 0).await;
    assert_eq!(executor.run_ts("return 1 + 1").await.unwrap().value(), Some(&json!(2)));
}

/// Whether a process still executes: a zombie, which has ended and was not reaped, does not.
fn is_alive(process: &Path) -> bool {
    std::fs::read(process.join("cmdline")).is_ok_and(|line| !line.is_empty())
}

/// A script that computes does not look at its connection. The kernel ends it.
#[test]
fn v_554_workers_end_with_an_executor_that_is_killed() {
    for (language, source) in
        [("ts", "console.log('begun'); for (;;);"), ("py", "print('begun')\nwhile True: pass")]
    {
        let home = tempfile::tempdir().unwrap();
        let mut executor = Command::new(env!("CARGO_BIN_EXE_cx"))
            .args(["run", "--isolation", "process", "--timeout", "60s", "--cpu-time", "60s"])
            .args(["--lang", language, "-e", source])
            .current_dir(home.path())
            .env("HOME", home.path())
            .env("XDG_STATE_HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path())
            .env("XDG_CACHE_HOME", python_cache())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(executor.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n", "{language}");
        let workers = descendants_of(executor.id());
        // A fork server, and the worker that it has made.
        assert!(workers.iter().filter(|worker| is_alive(worker)).count() > 1, "{language}: {workers:?}");
        executor.kill().unwrap();
        executor.wait().unwrap();
        let are_gone = || workers.iter().all(|worker| !is_alive(worker));
        wait_within(Duration::from_secs(30), || are_gone().then_some(()));
    }
}

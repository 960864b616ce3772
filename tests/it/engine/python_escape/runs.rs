//! What a run leaves to the next one, and what an interpreter has for a script.

use super::*;

#[tokio::test]
async fn px_129_state_between_runs() {
    let (builder, _) = builder();
    // There is one instance, so that anything that could be reused would be.
    let executor = builder.warm_instances(1).build().unwrap();
    for round in 0..20 {
        let source = format!(
            "
import builtins, json, os, sys, random
found = [hasattr(os, 'x'), 'y' in globals(), hasattr(builtins, 'z'), 'planted' in sys.modules, hasattr(json, 'w'),
         'a' in os.environ, bool(McpToolError.__dict__.get('v')), hasattr(type(tools), 'u'), len(sys.argv)]
os.x = 1; y = {round}; builtins.z = 3; sys.modules['planted'] = os; json.w = 4; os.environ['a'] = 'b'
McpToolError.v = 1; type(tools).u = 2; sys.argv.append('x'); random.seed(1)
found.append(os.path.exists('/tmp/a'))
open('/tmp/a', 'w').write('x')
return found"
        );
        let result = executor.run_py(&source).await.unwrap();
        let expected = json!([false, false, false, false, false, false, false, false, 1, false]);
        assert_eq!(result.value(), Some(&expected), "{}", result.to_json());
    }
}

/// One run fills its memory with a marker; the next searches its memory for it.
#[tokio::test]
async fn px_130_memory_remnants() {
    let (builder, _) = builder();
    let executor = builder.warm_instances(1).build().unwrap();
    for _ in 0..4 {
        let plant = "
half = b'remnant-of'
marker = half + b'-another-run'
keep = [marker * 4096 for _ in range(200)]
return sum(map(len, keep)) > 10 ** 7";
        let planted = executor.run(Script::python(plant).limits(small())).await.unwrap();
        assert_eq!(planted.value(), Some(&json!(true)), "{}", planted.to_json());
        // A new `bytearray` would be cleared; one that grew by `realloc` shows the earlier content.
        let look = "
import gc
half = b'remnant-of'
needle = half + b'-another' + b'-run'
found = [type(one).__name__ for one in gc.get_objects() if isinstance(one, (bytes, str)) and one == needle]
import array
for size in (10 ** 4, 10 ** 6, 10 ** 7):
    block = array.array('B')
    block.frombytes(bytes(16))
    raw = memoryview(bytearray(size))
    found += ['bytes'] * (needle in bytes(raw))
    view = bytearray()
    view.extend(bytes(size // 2)); del view[16:]; view.extend(bytes(16))
    found += ['bytearray'] * (needle in bytes(view))
wide = sum(1 for one in gc.get_objects() if isinstance(one, list) and needle in [x for x in one if isinstance(x, bytes)])
return [len(found), wide]";
        let result = executor.run_py(look).await.unwrap();
        assert_eq!(result.value(), Some(&json!([0, 0])), "{}", result.to_json());
    }
}

#[tokio::test]
async fn px_131_random_numbers_differ() {
    let source = "
import os, random, secrets, tempfile, uuid
return [random.random(), secrets.token_hex(8), str(uuid.uuid4()), str(uuid.uuid1())[-12:], os.urandom(8).hex(),
        random.SystemRandom().random(), next(tempfile._get_candidate_names())]";
    let (executor, _) = executor().await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        let result = executor.run_py(source).await.unwrap();
        runs.push(
            result.value().unwrap_or_else(|| panic!("{}", result.to_json())).as_array().unwrap().clone(),
        );
    }
    for index in 0..runs[0].len() {
        assert!(runs[0][index] != runs[1][index] && runs[1][index] != runs[2][index], "{index}: {runs:?}");
    }
}

/// Ways to end the interpreter: each ends only its run.
#[test]
fn px_132_exits() {
    let (error, value) = ("RUNTIME_ERROR", "none");
    let attacks = [
        ("import sys; sys.exit(0)", value),
        ("raise SystemExit", value),
        ("import sys; sys.exit('x')", error),
        ("import sys; sys.exit(3)", error),
        ("quit()", value),
        ("raise KeyboardInterrupt", error),
        ("raise GeneratorExit", error),
        ("import os; os._exit(0)", error),
        ("import os; os._exit(3)", error),
        ("import os; os.abort()", error),
        ("import faulthandler; faulthandler._sigsegv()", error),
        ("import sys; sys.setrecursionlimit(10 ** 9); exec('def f(): f()\\nf()')", error),
        ("import gc\nfor one in gc.get_objects():\n    if type(one) is dict: one.clear()", value),
        ("f = lambda: 0\nf.__code__ = f.__code__.replace(co_code=bytes(range(1, 255)) * 20)\nf()", error),
        (
            "f = lambda: 0\nf.__code__ = f.__code__.replace(co_stacksize=0, co_nlocals=0, co_consts=(), co_code=bytes([83, 255, 82, 200]) * 50)\nf()",
            error,
        ),
    ];
    survives_all(&attacks, 20_000, BESIDE);
}

/// All output goes to the run's log, and none to the process's stdout. The child's whole stdout is one JSON document
/// here, or `canary` fails.
#[test]
fn px_133_descriptors() {
    let source = r#"
import os, sys
os.write(1, b'{"jsonrpc": "2.0"}\n')
os.write(2, b'to two\n')
sys.__stdout__.write('dunder\n')
found = []
for attempt in [lambda: open(1, 'wb', buffering=0).write(b'reopened\n'), lambda: os.read(0, 10), lambda: input(),
                lambda: sys.stdin.read(), lambda: open(0).read(), lambda: os.fdopen(2, 'w')]:
    try: found.append(repr(attempt()))
    except Exception as error: found.append(type(error).__name__)
return found"#;
    let report = survives(source, 20_000, "none", BESIDE);
    let output = report["output"].as_str().unwrap();
    for line in ["{\"jsonrpc\": \"2.0\"}", "to two", "dunder"] {
        assert!(output.contains(line), "{line}: {report:#}");
    }
    let found = report["value"].as_array().unwrap();
    assert_eq!(found[2], "EOFError", "{report:#}");
    assert_eq!(found[3], "EOFError", "{report:#}");
    assert_eq!(found[1], "b''", "{report:#}");
    assert_eq!(found[4], "EOFError", "{report:#}");
}

#[test]
fn px_134_exception_tricks() {
    let attacks = [
        ("class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E", "TIMEOUT"),
        ("class E(Exception):\n    def __str__(self): raise self\nraise E", "RUNTIME_ERROR"),
        ("class E(Exception):\n    def __str__(self): return 'x' * 10 ** 9\nraise E", "RUNTIME_ERROR"),
        ("class E(Exception):\n    def __str__(self): return 1\nraise E", "RUNTIME_ERROR"),
        (
            "class E(Exception):\n    @property\n    def __class__(self):\n        while True: pass\nraise E",
            "TIMEOUT",
        ),
        (
            "class M(type):\n    @property\n    def __name__(cls):\n        while True: pass\nclass E(Exception, metaclass=M): pass\nraise E",
            "TIMEOUT",
        ),
        ("class E(Exception):\n    def __hash__(self):\n        while True: pass\nraise E", "TIMEOUT"),
        (
            "class E(Exception):\n    @property\n    def __notes__(self):\n        while True: yield 'x'\nraise E",
            "RUNTIME_ERROR",
        ),
        (
            "import sys\nsys.excepthook = lambda *a: [0 for _ in iter(int, 1)]\nraise ValueError('seen')",
            "RUNTIME_ERROR",
        ),
        (
            "def f(n):\n    try: raise ValueError(n)\n    except ValueError:\n        if n: f(n - 1)\n        raise\nf(300)",
            "RUNTIME_ERROR",
        ),
        (
            "e = ValueError('x' * 10 ** 6)\ne.__cause__ = e\nfor _ in range(1000): e.add_note('n' * 10 ** 4)\nraise e",
            "RUNTIME_ERROR",
        ),
        (
            "g = ValueError('e')\nfor _ in range(500): g = ExceptionGroup('g', [g, ValueError('v')])\nraise g",
            "RUNTIME_ERROR",
        ),
        ("raise ExceptionGroup('many', [ValueError(i) for i in range(10 ** 5)])", "RUNTIME_ERROR"),
    ];
    // Only those that do not end by themselves have little time.
    let (endless, others): (Vec<_>, Vec<_>) = attacks.into_iter().partition(|(_, code)| *code == "TIMEOUT");
    for attacks in [endless, others] {
        for ((source, _), outcome) in attacks.iter().zip(survives_all(&attacks, 1_000, BESIDE)) {
            let error = outcome["error"].to_string();
            assert!(error.len() < 100 << 10, "{source}: {}", error.len());
        }
    }
}

/// No object of the host can be reached: all reachable objects are this interpreter's.
#[tokio::test]
async fn px_134_no_object_of_the_host() {
    let source = r#"
import sys
frame = sys._getframe()
names = []
while frame: names.append(frame.f_code.co_filename); frame = frame.f_back
try: raise ValueError
except ValueError as error:
    walk = error.__traceback__
    while walk: names.append(walk.tb_frame.f_globals.get("__file__") or ""); walk = walk.tb_next
text = "{0.__class__.__mro__}".format(1) + repr(object.__subclasses__())
return ["/root" in repr(names) + text, "/home" in repr(names) + text]"#;
    assert_eq!(value(source).await, json!([false, false]));
}

/// Code that is compiled at run time can do what the script can do, and no more.
#[tokio::test]
async fn px_136_code_at_run_time() {
    let source = "
import base64, importlib.util, marshal, pickle, types
class Attack:
    def __reduce__(self): return (eval, ('open(\"/etc/passwd\")',))
found = []
for attempt in [
    lambda: eval('open(\"/etc/passwd\")'),
    lambda: exec(compile('import os; os.listdir(\"/etc\")', 'x', 'exec')),
    lambda: pickle.loads(pickle.dumps(Attack())),
    lambda: types.FunctionType(marshal.loads(marshal.dumps(compile('open(\"/etc/passwd\")', 'x', 'eval'))), {})(),
]:
    try: found.append(repr(attempt()))
    except OSError: found.append('refused')
return [eval('1 + 1'), pickle.loads(pickle.dumps([1])), found]";
    assert_eq!(value(source).await, json!([2, [1], ["refused", "refused", "refused", "refused"]]));
}

#[tokio::test]
async fn px_137_modules_of_other_hosts() {
    refused(
        "",
        &[
            ("__import__('js')", "ModuleNotFoundError"),
            ("__import__('pyodide_js')", "ModuleNotFoundError"),
            ("__import__('_pyodide')", "ModuleNotFoundError"),
        ],
    )
    .await;
}

/// The clocks are real, and no script changes the wall clock.
#[tokio::test]
async fn px_139_clocks() {
    let found = value(
        "import time\na = time.monotonic(); time.sleep(0.05)\nreturn [time.time(), time.monotonic() - a]",
    )
    .await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((now - found[0].as_f64().unwrap()).abs() < 30.0, "{found}");
    let slept = found[1].as_f64().unwrap();
    assert!((0.05..20.0).contains(&slept), "{slept}");
    let (code, _) = failure("import time; time.clock_settime(time.CLOCK_REALTIME, 0)").await;
    assert_eq!(code, ErrorCode::RuntimeError);
}

/// It calls a function of the interpreter by its number, with a number. Whatever that does, it does to its own memory
/// and handles: the next script has another interpreter.
#[tokio::test]
async fn v_796_a_function_called_by_its_number_breaks_no_other_interpreter() {
    let (builder, _) = builder();
    let executor = builder.warm_instances(1).build().unwrap();
    for (function, argument) in [(1_u64 << 31, 0), (u64::from(u32::MAX), 1), (u64::from(u32::MAX), u32::MAX)]
    {
        let source = format!(
            "import componentize_py_runtime\ncomponentize_py_runtime.drop_resource({function}, {argument})"
        );
        let result = executor.run_py(&source).await.unwrap();
        let error = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
        assert_eq!(error.code, ErrorCode::RuntimeError, "{source}");
        assert!(error.message.starts_with("the script broke its interpreter: "), "{}", error.message);
        untouched(&executor, &source).await;
    }
}

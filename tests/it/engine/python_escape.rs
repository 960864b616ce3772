//! Attacks of docs/threats.md, group PX on Python, by number: out of the interpreter, and through the host functions.
//! Everything in the guest is the script's to overwrite, so no test here relies on the guest half.

/// Listeners of a run.
mod listeners;
/// What a run leaves to the next one, and what an interpreter has for a script.
mod runs;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use cx::{ErrorCode, Limits, Script, ToolErrorCode};
use serde_json::{Value, json};

use crate::support::python_executor::{
    BESIDE, builder, ends, executor, failure, small, survives, survives_all, untouched, value, within,
};
use crate::support::stopwatch::{LATE, Stopwatch};

/// Calls each function and returns its outcome: `!` and the exception's class, or its value as text.
const ATTEMPT: &str = "
def attempt(*functions):
    found = []
    for function in functions:
        try: found.append(repr(function())[:200])
        except BaseException as error: found.append('!' + type(error).__name__)
    return found
";

/// Each expression fails with this exception, and not because of a mistake in it.
async fn refused(before: &str, attempts: &[(&str, &str)]) {
    let functions: Vec<String> =
        attempts.iter().map(|(expression, _)| format!("lambda: {expression}")).collect();
    let source = format!("{ATTEMPT}{before}\nreturn attempt({})", functions.join(", "));
    let found: Vec<String> = serde_json::from_value(value(&source).await).unwrap();
    let found: Vec<(&str, &str)> = attempts
        .iter()
        .zip(&found)
        .map(|((expression, _), one)| (*expression, one.strip_prefix('!').unwrap_or("it does not fail")))
        .collect();
    assert_eq!(found, attempts);
}

// --- files, environment, network, processes -------------------------------------------------------------------------

#[tokio::test]
async fn px_122_files_of_the_host() {
    refused(
        "import os, pathlib, glob, shutil",
        &[
            ("open('/etc/passwd').read()", "FileNotFoundError"),
            ("open('/proc/self/environ').read()", "FileNotFoundError"),
            ("open('/dev/fd/3').read()", "FileNotFoundError"),
            ("open('/dev/stdin').read()", "FileNotFoundError"),
            ("os.open('/etc', os.O_RDONLY)", "FileNotFoundError"),
            ("os.stat('/etc/passwd')", "FileNotFoundError"),
            ("os.readlink('/proc/self/exe')", "FileNotFoundError"),
            ("pathlib.Path('/etc/passwd').read_bytes()", "FileNotFoundError"),
            ("shutil.copy('/etc/passwd', '/tmp/copy')", "FileNotFoundError"),
            ("os.listdir('/proc')", "FileNotFoundError"),
            ("os.scandir('/etc')", "FileNotFoundError"),
        ],
    )
    .await;
    // Descriptors that were not opened.
    let source = "
import os
found = []
for descriptor in range(3, 1_000):
    try: found.append(len(os.read(descriptor, 10)))
    except OSError: pass
return found";
    assert_eq!(value(source).await, json!([]));
}

#[tokio::test]
async fn px_123_traversal() {
    refused(
        "import os",
        &[
            ("open('../../etc/passwd').read()", "FileNotFoundError"),
            ("open('/python/../etc/passwd').read()", "FileNotFoundError"),
            ("os.symlink('/etc', 'x')", "PermissionError"),
            ("os.link('/etc/passwd', 'x')", "PermissionError"),
            ("os.rename('/etc/passwd', '/tmp/x')", "PermissionError"),
            ("os.truncate('/etc/passwd', 0)", "PermissionError"),
            ("open('x/')", "FileNotFoundError"),
            ("os.mkdir('/x')", "PermissionError"),
            ("os.remove('/etc/passwd')", "PermissionError"),
            ("os.chdir('/etc')", "FileNotFoundError"),
        ],
    )
    .await;
    refused("", &[("open('/etc/passwd\\0.txt')", "ValueError"), ("open('\\ud800')", "UnicodeEncodeError")])
        .await;
}

#[tokio::test]
async fn px_124_environment() {
    let source = "
import os, sys, platform, getpass
return {
    'environ': dict(os.environ), 'native': [os.getenv('PATH'), os.getenv('HOME'), os.getenv('CARGO_MANIFEST_DIR')],
    'argv': sys.argv, 'node': platform.node(), 'all': ' '.join(map(str, [
        os.environ, sys.argv, sys.path, sys.prefix, sys.executable, platform.uname(), sys.flags, os.uname(), sys.orig_argv,
        sys._git, sys.version, getattr(sys, '_base_executable', ''),
    ])),
}";
    let found = value(source).await;
    assert_eq!(found["environ"], json!({}));
    assert_eq!(found["native"], json!([null, null, null]));
    assert_eq!(found["argv"].as_array().map(Vec::len), Some(1), "{found:#}");
    let all = found["all"].as_str().unwrap();
    let home = std::env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
    for secret in [home.as_str(), "/home/", env!("CARGO_MANIFEST_DIR"), "Linux"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
    assert_eq!(found["node"], "(none)");
}

/// A listener that no script can reach.
#[tokio::test]
async fn px_125_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let before = format!(
        "import asyncio, socket, urllib.request, http.client\nport = {port}\nurl = 'http://127.0.0.1:{port}/'"
    );
    refused(
        &before,
        &[
            ("socket.create_connection(('127.0.0.1', port))", "OSError"),
            ("socket.getaddrinfo('localhost', port)", "OSError"),
            ("socket.gethostbyname('localhost')", "OSError"),
            ("socket.socket().connect(('127.0.0.1', port))", "OSError"),
            ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))", "OSError"),
            ("socket.socket(socket.AF_UNIX)", "AttributeError"),
            ("urllib.request.urlopen(url)", "OSError"),
            ("http.client.HTTPConnection('127.0.0.1', port).request('GET', '/')", "OSError"),
            ("asyncio.run(asyncio.open_connection('127.0.0.1', port))", "OSError"),
            ("socket.create_server(('127.0.0.1', 0))", "OSError"),
            ("__import__('_socket').socket(2, 1).connect(('127.0.0.1', port))", "OSError"),
        ],
    )
    .await;
    let accepted = listener.accept().map(|(_, address)| address);
    assert_eq!(accepted.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn px_126_processes_and_native_code() {
    refused(
        "import os\nfrom importlib import machinery",
        &[
            ("__import__('subprocess').run(['id'])", "OSError"),
            ("os.system('id')", "AttributeError"),
            ("os.execv('/bin/sh', ['sh'])", "AttributeError"),
            ("os.posix_spawn('/bin/sh', ['sh'], {})", "AttributeError"),
            ("os.popen('id').read()", "OSError"),
            ("os.kill(1, 9)", "AttributeError"),
            ("os.setuid(0)", "AttributeError"),
            ("__import__('ctypes').CDLL(None)", "ModuleNotFoundError"),
            ("__import__('mmap').mmap(-1, 4096)", "ModuleNotFoundError"),
            ("__import__('_posixsubprocess').fork_exec()", "ModuleNotFoundError"),
            ("__import__('_ctypes').dlopen('/lib/libc.so', 0)", "ModuleNotFoundError"),
            (
                "machinery.ExtensionFileLoader('x', '/x.so').create_module(machinery.ModuleSpec('x', None, origin='/x.so'))",
                "ImportError",
            ),
        ],
    )
    .await;
}

// --- the host functions ------------------------------------------------------------------------------------

/// The guest's wrapper is no control: a denied tool is denied at the import itself, by every name and operation.
#[tokio::test]
async fn px_127_bindings_called_directly() {
    let (builder, mock) = builder();
    let executor = builder.deny(["mock.count"]).build().unwrap();
    let source = r#"
import json, wit_world
from wit_world import Operation
def call(*arguments):
    number, answer = wit_world.start_call(*arguments)
    if answer is None:
        done = []
        while not done: done = wit_world.wait(None)
        assert done[0].call == number
        answer = done[0].answer
    return json.loads(answer[1:])["code"] if answer.startswith("!") else json.loads(answer)
query = lambda **question: call(Operation.QUERY, "", "", json.dumps(question))
return {
    "denied": [
        call(Operation.TOOL, "mock", "count", "{}"),
        call(Operation.TOOL, "mock", "count", '{"allow": ["*"]}'),
        call(Operation.FULL_NAME, "", "mcp__mock__count", ""),
        call(Operation.FULL_NAME, "mock", "mock.count", ""),
    ],
    "missing": [
        call(Operation.TOOL, "mock", "COUNT", ""), call(Operation.TOOL, "mock", " count", ""),
        call(Operation.TOOL, "mock", "count\0", ""), call(Operation.TOOL, "absent", "count", ""),
    ],
    "seen": [tool for tool in query(kind="names", server="mock") if tool == "count"],
    "schema": query(kind="schema", name="mcp__mock__count"),
    "wrong": [
        call(Operation.QUERY, "", "", "{"), query(kind="nothing"), query(kind="names"),
        call(Operation.EMIT, "", "", "{"), call(Operation.TOOL, "mock", "echo", "[1]"),
        call(Operation.TOOL, "mock", "echo", "{"), call(Operation.TOOL, "mock", "echo", '{"a":' * 200 + "1" + "}" * 200),
        call(Operation.TOOL, "m" * 5000, "echo", ""),
    ],
    "permitted": call(Operation.TOOL, "mock", "echo", '{"a":1}'),
}"#;
    let result = executor.run_py(source).await.unwrap();
    let found = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
    assert_eq!(found["denied"], json!(vec!["TOOL_DENIED"; 4]));
    assert_eq!(found["missing"], json!(vec!["TOOL_NOT_FOUND"; 4]));
    assert_eq!(found["seen"], json!([]));
    assert_eq!(found["schema"], Value::Null);
    assert_eq!(found["wrong"], json!(vec!["INVALID_ARGUMENTS"; 8]));
    assert_eq!(found["permitted"], json!({ "a": 1 }));
    assert_eq!(mock.calls.load(Ordering::SeqCst), 1);
    untouched(&executor, source).await;
}

/// Timeouts of every size: none harms the host, and none waits longer than the run may.
#[tokio::test]
async fn px_127_waits_of_any_length() {
    let source = "
import time, wit_world
started = time.monotonic()
for timeout in [float('nan'), -1.0, float('-inf'), -0.0, 0.0, 5e-324, 0.5, None]:
    assert wit_world.wait(timeout) == [], timeout
quick = time.monotonic() - started < 10
wit_world.start_call(wit_world.Operation.TOOL, 'mock', 'sleep', '{\"ms\": 30}')
for timeout in [float('inf'), 1e308, None]:
    if done := wit_world.wait(timeout): break
return [quick, len(done)]";
    assert_eq!(value(source).await, json!([true, 1]));
    for timeout in ["float('inf')", "1e308", "2.0 ** 63", "1e15"] {
        ends(&format!("import wit_world\nwit_world.wait({timeout})"), within(200), ErrorCode::Timeout).await;
    }
    // A wrong type never reaches the host.
    for wrong in ["wit_world.wait('1')", "wit_world.start_call(99, '', '', '')", "wit_world.log(0, 1)"] {
        let (code, _) = failure(&format!("import wit_world\n{wrong}")).await;
        assert_eq!(code, ErrorCode::RuntimeError, "{wrong}");
    }
}

#[tokio::test]
async fn px_128_overwritten_guest_half() {
    let (executor, _) = executor().await;
    let null = Value::Null;
    for (source, value, failure) in [
        (
            "import builtins, json, sys\njson.dumps = lambda *a, **k: '{}'\nbuiltins.print = None\nsys.modules['code_mode'] = None",
            Some(&null),
            None,
        ),
        ("import sys\nfor name in list(sys.modules): sys.modules[name] = None", Some(&null), None),
        ("import sys\nsys.modules.clear()", Some(&null), None),
        // The interpreter's own half needs these, and dies.
        (
            "import builtins\nfor name in dir(builtins):\n    if name[0] != '_': delattr(builtins, name)",
            None,
            Some(ErrorCode::RuntimeError),
        ),
        (
            "import sys\nfor name, module in list(sys.modules.items()):\n    if name.startswith('cx_guest'): vars(module).clear()",
            None,
            Some(ErrorCode::RuntimeError),
        ),
        (
            "import cx_guest.run as r\nr.values = r.report = r.output = None",
            None,
            Some(ErrorCode::RuntimeError),
        ),
        ("import wit_world\nvars(wit_world).clear()", Some(&null), None),
        (
            "import os, gc, sys\nos.leaked = 1\nimport builtins\nbuiltins.leaked = 1\ngc.disable()\nsys.setrecursionlimit(50)",
            Some(&null),
            None,
        ),
        (
            "class T(type): pass\nimport cx_guest.calls as t\nt.from_json = t.to_json = None\nt._start_call = None",
            Some(&null),
            None,
        ),
        ("import sys\nsys.stdout = sys.stderr = sys.__stdout__ = None\nraise SystemExit", Some(&null), None),
    ] {
        let result = executor.run(Script::python(source).limits(within(20_000))).await.unwrap();
        let found = (result.value(), result.error().map(|error| error.code));
        assert_eq!(found, (value, failure), "{source}: {}", result.to_json());
        untouched(&executor, source).await;
    }
}

/// A script that answers in place of the guest half can return any text, but no error code that the host did not give.
#[tokio::test]
async fn px_128_codes_are_the_hosts() {
    let codes = [
        "SYNTAX_ERROR",
        "TIMEOUT",
        "CPU_LIMIT",
        "MEMORY_LIMIT",
        "CANCELLED",
        "RESULT_TOO_LARGE",
        "ENGINE_UNAVAILABLE",
        "MAX_TOOL_CALLS_EXCEEDED",
        "QUEUE_FULL",
        "TOOL_DENIED",
        "TOOL_ERROR",
        "TOOL_NOT_FOUND",
        "RATE_LIMITED",
        "UPSTREAM_UNAVAILABLE",
        "INVALID_ARGUMENTS",
        "NOTHING_LIKE_THIS",
    ];
    let (executor, _) = executor().await;
    for code in codes {
        for source in [
            // In the report, and as an exception of the guest's own class.
            format!(
                "import json, cx_guest.report as e\nreport = json.dumps({{'name': 'McpToolError', 'message': 'm', 'code': '{code}', 'toolCode': '{code}', 'line': 1}})\ne.describe = lambda *a: report\nraise ValueError"
            ),
            format!("raise McpToolError('m', code='{code}')"),
            format!(
                "import cx_guest.errors as e\nerror = McpToolError('m', code='{code}')\ne._host_codes[error] = '{code}'\nraise error"
            ),
        ] {
            let result = executor.run(Script::python(&*source).limits(small())).await.unwrap();
            let error = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
            assert_eq!(error.code, ErrorCode::RuntimeError, "{source}: {}", result.to_json());
            assert_eq!(error.tool_code, None, "{source}: {}", result.to_json());
        }
    }
    // A code that the host has given may be reported for another call.
    let source = "
try: await mock.limited()
except McpToolError as error: raise";
    let result = executor.run_py(source).await.unwrap();
    assert_eq!(result.error().unwrap().tool_code, Some(ToolErrorCode::RateLimited), "{}", result.to_json());
    // An exit, a `MemoryError` and a `SyntaxError` of the script's own.
    for source in [
        "raise MemoryError",
        "eval('1 +')",
        "raise SyntaxError('x')",
        "raise TimeoutError",
        "import asyncio\nraise asyncio.CancelledError",
        "import asyncio\nasync with asyncio.timeout(0.01): await asyncio.sleep(5)",
        "import os; os.abort()",
    ] {
        let result = executor.run(Script::python(source).limits(small())).await.unwrap();
        let code = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json())).code;
        assert_eq!(code, ErrorCode::RuntimeError, "{source}: {}", result.to_json());
    }
}

/// Invalid answers to the host: not JSON, of no known form, far too long, too deep.
#[tokio::test]
async fn px_135_bad_values_to_the_host() {
    let (executor, _) = executor().await;
    let ample = Limits { memory_bytes: 256 << 20, ..small() };
    let answer = |value: &str| format!("import cx_guest.values as v\nv.cut = lambda *a: {value}\nreturn 1");
    let report = |report: &str| {
        format!("import cx_guest.report as e\ne.describe = lambda *a: {report}\nraise ValueError")
    };
    for (source, code) in [
        (answer("''"), ErrorCode::RuntimeError),
        (answer("'{'"), ErrorCode::RuntimeError),
        (answer("'NaN'"), ErrorCode::RuntimeError),
        (answer("'1 2'"), ErrorCode::RuntimeError),
        (answer("'\\ud800'"), ErrorCode::RuntimeError),
        (answer("None"), ErrorCode::RuntimeError),
        (answer("'[' * 100_000"), ErrorCode::RuntimeError),
        (answer("'\"' + 'x' * (20 << 20) + '\"'"), ErrorCode::ResultTooLarge),
        (report("''"), ErrorCode::RuntimeError),
        (report("'null'"), ErrorCode::RuntimeError),
        (report("'[1]'"), ErrorCode::RuntimeError),
        (report("'{\"message\": 1}'"), ErrorCode::RuntimeError),
        (report("'{\"line\": -1, \"column\": 1e99}'"), ErrorCode::RuntimeError),
        (report("'{\"line\": 4294967295, \"column\": 0}'"), ErrorCode::RuntimeError),
        (report("'[' * 100_000"), ErrorCode::RuntimeError),
        (report("'{\"message\": \"' + '€' * (5 << 20) + '\"}'"), ErrorCode::RuntimeError),
        (
            "import cx_guest.run as r\nr.values.cut = r.report.describe = lambda *a: 1\nreturn 1".to_owned(),
            ErrorCode::RuntimeError,
        ),
    ] {
        let result = executor.run(Script::python(&*source).limits(ample)).await.unwrap();
        let error = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
        assert_eq!(error.code, code, "{source}: {}", result.to_json());
        assert!(error.message.len() < 40 << 10, "{source}: {}", error.message.len());
        untouched(&executor, &source).await;
    }
}

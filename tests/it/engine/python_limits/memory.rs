//! Attacks on memory.

use super::*;

#[test]
fn pm_112_one_large_block() {
    survives("bytearray(1 << 30)", 5_000, "MEMORY_LIMIT", BESIDE);
    let source = "
try: bytearray(1 << 30)
except MemoryError: return len(bytes(1 << 20))";
    let report = survives(source, 5_000, "none", BESIDE);
    assert_eq!(report["value"], 1 << 20, "{report:#}");
}

#[test]
fn pm_113_growth_of_every_kind() {
    let sources = [
        "a = []\nwhile True: a.append(bytearray(2 ** 20))",
        "a = []\nwhile True: a.append(object())",
        "a = {}\nwhile True: a[len(a)] = str(len(a))",
        "a = 'x'\nwhile True: a += a",
        "a = []\nwhile True: a.append(lambda: a)",
        "import asyncio\na = []\nwhile True: a.append(asyncio.ensure_future(asyncio.sleep(1e6)))",
    ];
    survive(&sources, 10_000, "MEMORY_LIMIT", BESIDE);
}

#[test]
fn pm_114_memory_errors_for_ever() {
    let source = "
a = []
while True:
    try:
        while True: a.append(bytearray(2 ** 16))
    except MemoryError: pass";
    survives(source, 1_000, "TIMEOUT", BESIDE);
}

#[test]
fn pm_115_bombs() {
    let attacks = [
        (
            "import zlib\nbomb = zlib.compress(bytes(30 << 20))\nbomb = zlib.compress(bomb * 8)\nzlib.decompress(zlib.decompress(bomb))",
            "MEMORY_LIMIT",
        ),
        ("'x' * 2 ** 31", "RUNTIME_ERROR"),
        ("'{:>2000000000}'.format(1)", "MEMORY_LIMIT"),
        ("import itertools; list(itertools.product(range(1000), repeat=3))", "MEMORY_LIMIT"),
    ];
    survives_all(&attacks, 20_000, BESIDE);
    // CPython's own guard against numbers as text.
    let report = survives("int('9' * 10 ** 7)", 5_000, "RUNTIME_ERROR", BESIDE);
    assert_eq!(report["error"]["name"], "ValueError", "{report:#}");
}

/// Pages that an idle interpreter only reads are taken out of memory, and come back when they are needed.
#[test]
fn idle_interpreters_give_memory_back() {
    let report = idle_trim();
    let megabytes = |name: &str| report[name].as_u64().unwrap();
    assert!(megabytes("idleMegabytes") + 20 <= megabytes("busyMegabytes"), "{report}");
    assert_eq!(report["values"], json!([2, 2, 2]));
}

/// For every output stream: none is blocked like a full pipe, and none costs the host more than the kept output.
#[test]
fn pm_116_print_flood() {
    let sources = [
        "while True: print('x' * 10 ** 6)",
        "import os\nwhile True: os.write(1, b'x' * 10 ** 6)",
        "import os\nwhile True: os.write(2, b'\\xff' * 10_000)",
        "import wit_world\nwhile True: wit_world.log(wit_world.OutputStream.STDOUT, 'x' * 10 ** 6)",
        "import sys\nwhile True: sys.stderr.write('x')",
    ];
    for (source, outcome) in sources.iter().zip(survive(&sources, 3_000, "TIMEOUT", BESIDE)) {
        // Each writes far more than is kept, except the one that writes letter by letter.
        let dropped = outcome["outputBytesDropped"].as_u64().unwrap_or(0);
        assert!(dropped > 1 << 20 || source.ends_with("write('x')"), "{source}: {dropped}");
        // A wrong byte becomes the three bytes of U+FFFD: output is counted in the form in which it is kept.
        let kept = outcome["output"].as_str().unwrap_or_default().len();
        assert!(kept <= 1 << 20, "{source}: {kept}");
    }
    // Many lines without a text.
    let source = "import wit_world\nwhile True: wit_world.log(wit_world.OutputStream.STDERR, '')";
    survives(source, 800, "TIMEOUT", 128);
}

/// What one call passes to the host, and what many calls without `await` pass together.
#[test]
fn pm_117_payloads() {
    let source = "
while True: call_tool('mock', 'echo', {'s': 'x' * (16 << 20)})";
    survives(source, 20_000, "MEMORY_LIMIT", BESIDE);
    let direct = "
from wit_world import Operation, start_call, wait
text = 'x' * (9 << 20)
for operation in Operation:
    for names in [(text, 'a', ''), ('mock', text, ''), ('mock', 'echo', text)]:
        for _ in range(20):
            start_call(operation, *names)
            wait(None)
return 'done'";
    let report = survives(direct, 10_000, "none", BESIDE);
    assert_eq!(report["value"], "done", "{report:#}");
    // Calls without `await`: names, questions and answers are bounded together.
    for (calls, call) in [
        (900, "start_call(Operation.TOOL, 'mock', 'hang', '{\"s\":\"' + 'x' * (2 << 20) + '\"}')"),
        (900, "start_call(Operation.TOOL, 'x' * (10 << 20), 'a', '')"),
        (
            900,
            "start_call(Operation.QUERY, '', '', '{\"kind\":\"server\",\"server\":\"' + 'x' * (2 << 20) + '\"}')",
        ),
        // An answer may be as long as a result, 16 MB, and so may all answers together that wait for the guest.
        (40, "start_call(Operation.TOOL, 'mock', 'big', '{\"bytes\": 8000000}')"),
    ] {
        let source = format!(
            "from wit_world import Operation, start_call\nfor _ in range({calls}): {call}\nreturn 'done'"
        );
        survives(&source, 20_000, "none", BESIDE);
    }
}

/// A flood of calls without `await`: each is answered, at once or later.
#[test]
fn pm_117_calls_that_are_not_awaited() {
    let source = "
from wit_world import Operation, start_call, wait
start_call(Operation.TOOL, 'mock', 'echo', '')
wait(None)
answered = {}
for turn in range(100_000):
    call, answer = start_call(Operation.TOOL, 'mock', 'sleep' if turn < 100 else 'echo', '{\"ms\": 10}')
    if answer is not None: answered[call] = answer
at_once = len(answered)
while some := wait(None):
    for completion in some:
        assert completion.call not in answered
        answered[completion.call] = completion.answer
return [at_once >= 99_000, len(answered)]";
    let report = survives(source, 15_000, "none", BESIDE);
    assert_eq!(report["value"], json!([true, 100_000]), "{report:#}");
    // As many as a run may make are made, and each of the others is refused.
    assert_eq!(report["toolCallsMade"], 1_000, "{report:#}");
    assert_eq!(report["toolCallsRefused"], 99_001, "{report:#}");
    let made =
        report["toolCallSummary"].as_array().unwrap().iter().map(|tool| tool["calls"].as_u64().unwrap());
    assert_eq!(made.sum::<u64>(), 1_000, "{report:#}");
    let source = "
from wit_world import Operation, start_call
while True: start_call(Operation.TOOL, 'mock', 'echo', '')";
    survives(source, 800, "TIMEOUT", BESIDE);
}

/// Host resources that a script can hold, through each way in which CPython asks for them.
#[test]
fn pm_118_handles() {
    let source = "
import select, os, time
open_ones = []
for _ in range(100_000):
    try: open_ones.append(select.poll())
    except Exception: break
for _ in range(300): time.sleep(0.000001)
for number in range(100_000):
    try: open_ones.append(os.dup(1))
    except OSError: break
return 'done'";
    survives(source, 20_000, "none", BESIDE);
}

#[test]
fn pm_119_random_bytes() {
    survives("import os; os.urandom(2 ** 30)", 5_000, "MEMORY_LIMIT", BESIDE);
    survives("import os\nwhile True: os.urandom(4 << 20)", 600, "TIMEOUT", BESIDE);
    let report = survives("import os; return len(os.urandom(1 << 20))", 5_000, "none", BESIDE);
    assert_eq!(report["value"], 1 << 20, "{report:#}");
}

/// The guest reports what its compiler has no memory for as a syntax error without a location.
#[tokio::test]
async fn v_759_a_source_that_no_memory_is_left_to_compile() {
    let script = |items: usize| format!("a = 1\nx = {}\nreturn len(x)", "a, ".repeat(items));
    obeyed(&script(8_000), small(), json!(8_000)).await;
    violated(&script(60_000), small(), ErrorCode::MemoryLimit).await;
    let result = violated("a = 1\nx = = 1", small(), ErrorCode::SyntaxError).await;
    assert_eq!(result.error().unwrap().line, Some(2), "{}", result.to_json());
}

/// The script has memory for its own buffer, and its C library has none for another one.
#[test]
fn v_816_a_read_when_the_memory_is_nearly_full_returns_less() {
    let source = "
import os
size = 1 << 20
with open('/tmp/x', 'wb') as file: file.write(b'x' * size)
file = os.open('/tmp/x', os.O_RDONLY)
held = []
for step in (size, 1 << 16, 1 << 12, 512):
    try:
        while True: held.append(bytearray(step))
    except MemoryError: pass
# Two pieces: the second is smaller than what is read.
for _ in range(2): held.pop(0)
hole = bytearray(size // 2)
read = os.pread(file, size, 0)
held.clear()
with open('/tmp/x', 'rb') as file: return [len(read), len(file.read())]";
    let report = survives(source, 20_000, "none", BESIDE);
    assert_eq!(report["value"], json!([4_096, 1 << 20]), "{report:#}");
}

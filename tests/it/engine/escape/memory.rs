//! Attacks on memory.

use super::*;
use crate::support::in_its_own_process;

#[test]
fn jm_027_string_doubling() {
    survives("let s = 'x'; for (;;) s += s", "RUNTIME_ERROR", 800);
}

#[test]
fn jm_028_growth_of_every_kind() {
    for source in [
        "const a = []; for (;;) a.push({})",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
        "const s = new Set(); for (let i = 0; ; i++) s.add({})",
        "const a = []; for (let i = 0; ; i++) a.push(() => i)",
        "const a = []; for (;;) a.push(new Promise(() => {}))",
        "const a = []; for (;;) a.push(new Error('x'))",
    ] {
        let report = canary(source, ENOUGH, 64);
        assert_eq!(report["hostile"]["error"]["code"], "MEMORY_LIMIT", "{source}: {report:#}");
        assert!(report["peakMegabytes"].as_u64().unwrap() < 500, "{source}: {report:#}");
    }
}

#[test]
fn jm_029_survive_by_catching() {
    let source = "const a = []; for (;;) try { for (;;) a.push(new Array(1e5).fill(1)) } catch {}";
    let report = canary(source, ENOUGH, 64);
    assert_eq!(report["hostile"]["error"]["code"], "MEMORY_LIMIT", "{report:#}");
}

/// Single allocations far beyond the limit, each of which aborts a process that is not prepared.
#[test]
fn jm_030_to_036_large_single_allocations() {
    for source in [
        "new Array(32 * 2 ** 20).fill(0)",
        r#"/x$/.test("x".repeat(2 ** 29 - 24))"#,
        r#"/x$/.test("\u0100".repeat(2 ** 29 - 24))"#,
        r#""a".repeat(2 ** 25).split("")"#,
        r#"JSON.parse("[" + "1,".repeat(2 ** 24) + "1]")"#,
        "let a = [1]; for (;;) a = a.concat(a)",
        "const o = {}; for (let i = 0; ; i++) o['k' + i] = i",
    ] {
        survives(source, "MEMORY_LIMIT", 1_500);
    }
    survives(r#"eval("[" + "1,".repeat(2 ** 25) + "1]")"#, "RUNTIME_ERROR", 1_500);
}

#[test]
fn jm_037_fill_on_an_array_like() {
    let source = "Array.prototype.fill.call({length: 2 ** 24}, 0)";
    survives(source, "MEMORY_LIMIT", 2_600);
}

#[test]
fn jm_038_spread_of_something_huge() {
    for source in ["[...Array(2 ** 32 - 1)]", "[...new Intl.Segmenter().segment('a'.repeat(2 ** 22))]"] {
        survives(source, "MEMORY_LIMIT", 1_500);
    }
}

#[test]
fn jm_039_array_buffers() {
    survives("const k = []; for (;;) k.push(new ArrayBuffer(2 ** 24).slice(0))", "MEMORY_LIMIT", 320);
    let report = canary("const k = []; for (;;) k.push(new Uint8Array(8))", ENOUGH, 64);
    assert_eq!(report["hostile"]["error"]["code"], "MEMORY_LIMIT", "{report:#}");
    assert!(report["peakMegabytes"].as_u64().unwrap() < 500, "{report:#}");
}

#[tokio::test]
async fn jm_040_resizable_buffers() {
    for source in [
        "new ArrayBuffer(0, { maxByteLength: 2 ** 32 })",
        "new (new Uint8Array(1).buffer.constructor)(0, { maxByteLength: 2 ** 32 })",
        "class B extends ArrayBuffer {} new B(0, { maxByteLength: 2 ** 32 })",
        "let n = 0; new ArrayBuffer(0, { get maxByteLength() { return n++ ? 2 ** 32 : 1 } })",
        "Reflect.construct(ArrayBuffer, [0, { maxByteLength: 8 }], Object)",
    ] {
        let (code, message) = failure(source).await;
        assert_eq!(code, ErrorCode::RuntimeError);
        assert!(message.contains("resizable"), "{source}: {message}");
    }
    let source = "const b = new ArrayBuffer(8); return [b instanceof ArrayBuffer, b.constructor === ArrayBuffer, ArrayBuffer.name, b.resize === undefined, ArrayBuffer.isView(new DataView(b)), new (class extends ArrayBuffer {})(4).byteLength]";
    assert_eq!(value(source).await, json!([true, true, "ArrayBuffer", true, true, 4]));
}

#[tokio::test]
async fn jm_041_webassembly_memory() {
    assert_eq!(failure("new WebAssembly.Memory({ initial: 16384 })").await.1, "WebAssembly is not defined");
}

#[tokio::test]
async fn jm_042_untouched_buffers() {
    let source = "const k = []; try { for (;;) k.push(new ArrayBuffer(2 ** 30)) } catch (e) { return [k.length, e.name] }";
    assert_eq!(value(source).await, json!([0, "RangeError"]));
}

#[test]
fn jm_043_clone_and_transfer() {
    let source = "
        const keep = [];
        let buffer = new ArrayBuffer(2 ** 20);
        for (let i = 0; i < 200; i++) {
            buffer = structuredClone(buffer, { transfer: [buffer] }).transfer(2 ** 20);
            structuredClone({ buffer });
        }
        try { for (;;) keep.push(structuredClone(buffer)) } catch (error) { return [buffer.byteLength, error.name] }
    ";
    let report = canary(source, ENOUGH, 64);
    assert_eq!(report["hostile"]["value"], json!([1 << 20, "RangeError"]), "{report:#}");
}

#[test]
fn jm_044_console_flood() {
    let report = canary("for (;;) console.log('x'.repeat(1e6))", 1_000, 64);
    assert_eq!(report["hostile"]["error"]["code"], "TIMEOUT", "{report:#}");
    assert!(report["hostile"]["outputBytesDropped"].as_u64().unwrap() > 1_000_000, "{report:#}");
    assert!(report["hostile"]["output"].as_str().unwrap().len() <= 1 << 20);
    assert!(report["peakMegabytes"].as_u64().unwrap() < 400, "{report:#}");
}

#[test]
fn jm_045_intern_tables() {
    survives("for (let i = 0; ; i++) Symbol.for('k' + i)", "MEMORY_LIMIT", 500);
    // Expressions that nothing refers to are collected.
    survives("for (let i = 0; ; i++) new RegExp('a' + i).test('a')", "TIMEOUT", 500);
}

#[tokio::test]
async fn jm_046_huge_tool_result() {
    // The tool itself holds three copies of it.
    let source = "try { await mock.big({ bytes: 40e6 }) } catch (e) { return e.code }";
    assert_eq!(value(source).await, json!("RESULT_TOO_LARGE"));
}

#[test]
fn jm_047_many_medium_results() {
    let source = "const all = await Promise.allSettled(Array.from({length: 200}, () => mock.big({ bytes: 7e6 }))); return all.length";
    let report = canary(source, ENOUGH, 64);
    assert_eq!(report["hostile"]["error"]["code"], "MEMORY_LIMIT", "{report:#}");
    assert!(report["peakMegabytes"].as_u64().unwrap() < 2_000, "{report:#}");
}

#[test]
fn jm_048_huge_argument() {
    let source = "try { await mock.echo({ s: 'x'.repeat(2 ** 24) }) } catch (e) { return e.code }";
    let report = canary(source, ENOUGH, 128);
    assert_eq!(report["hostile"]["value"], "INVALID_ARGUMENTS", "{report:#}");
}

#[test]
fn jm_049_huge_return() {
    let report = canary("return 'x'.repeat(2 ** 25)", ENOUGH, 256);
    assert_eq!(report["hostile"]["error"]["code"], "RESULT_TOO_LARGE", "{report:#}");
    assert!(report["peakMegabytes"].as_u64().unwrap() < 500, "{report:#}");
    let report = canary("return Array(256).fill('x'.repeat(2 ** 20))", ENOUGH, 512);
    assert_eq!(report["hostile"]["error"]["code"], "RESULT_TOO_LARGE", "{report:#}");
    assert!(report["peakMegabytes"].as_u64().unwrap() < 1_000, "{report:#}");
}

#[test]
fn jm_051_host_works_under_an_exhausted_budget() {
    let source = "
        const keep = []; try { for (;;) keep.push(new ArrayBuffer(2 ** 20)) } catch {}
        const result = await mock.echo({ a: [1, 2, 3] });
        let encoded; try { encoded = new TextEncoder().encode('x'.repeat(100_000)).length } catch (e) { encoded = e.name }
        return [result, encoded, crypto.randomUUID().length]";
    let report = canary(source, ENOUGH, 64);
    let value = &report["hostile"]["value"];
    assert_eq!(value[0], json!({ "a": [1, 2, 3] }), "{report:#}");
    assert_eq!(value[2], 36, "{report:#}");
}

async fn memory_returns() {
    let (executor, _) = executor();
    let limits = Limits { memory_bytes: 16 << 20, ..DEFAULT };
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
    };
    let mut after_warm_up = 0.0;
    for round in 0..60 {
        let script = Script::typescript("const a = []; for (;;) a.push({})").limits(limits);
        let result = executor.run(script).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::MemoryLimit);
        if round == 20 {
            after_warm_up = resident();
        }
    }
    let grown = resident() / after_warm_up;
    assert!(grown < 1.5, "resident memory grew by {grown}");
}

/// Alone, because the memory is that of a process.
#[test]
fn jm_052_memory_returns() {
    in_its_own_process(module_path!(), "jm_052_memory_returns", memory_returns());
}

//! Attempts to reach what is outside of the sandbox.

use super::*;

#[tokio::test]
async fn je_053_globals_are_the_checked_in_list() {
    let executor = cx::Executor::builder().build().unwrap();
    let result = executor.run_ts("return Object.getOwnPropertyNames(globalThis).sort()").await.unwrap();
    let names = result.value().unwrap().as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let expected: Vec<&str> = include_str!("../../../../js/globals.txt").lines().collect();
    assert_eq!(names.collect::<Vec<_>>(), expected);
    // Names that are bound without being properties of the global object would be here only.
    for name in [
        "Deno",
        "process",
        "require",
        "__bootstrap",
        "__cx",
        "WebAssembly",
        "SharedArrayBuffer",
        "Atomics",
        "fetch",
        "gc",
    ] {
        let result = executor.run_ts(&format!("return {name}")).await.unwrap();
        assert_eq!(result.error().unwrap().message, format!("{name} is not defined"));
    }
}

#[tokio::test]
async fn je_054_constructor_chain() {
    let source = "
        const attempts = [
            () => callMCPTool.constructor('return this')(),
            () => callMCPTool.constructor.constructor('return this')(),
            () => (async () => {}).constructor('return import(\"fs\")')(),
            () => Reflect.getPrototypeOf(function* () {}).constructor('yield 1')(),
            () => console.log.constructor('return 1')(),
            () => tools.mock.echo.constructor('return 1')(),
            () => setTimeout.constructor('return 1')(),
            () => ArrayBuffer.constructor('return 1')(),
            () => eval('1'),
            () => (0, eval)('globalThis.leaked = 1'),
            () => setTimeout('globalThis.leaked = 1', 0),
        ];
        return attempts.map((attempt) => { try { attempt(); return 'ran' } catch (e) { return e.name } })";
    let (result, _) = attack(source, DEFAULT).await;
    // The last one asks the timer for a string, and the timer takes none.
    let expected = [vec!["EvalError"; 10], vec!["TypeError"]].concat();
    assert_eq!(result.value(), Some(&json!(expected)));
}

#[tokio::test]
async fn je_055_dynamic_import_of_every_scheme() {
    let source = r#"
        const names = [];
        for (const u of ["file:///etc/passwd", "https://x/", "data:text/javascript,1", "blob:x", "node:path", "npm:x",
                         "jsr:x", "ext:core/mod.js", "ext:core/ops", "ext:cx/50_tools.js", "ext:deno_web/00_url.js",
                         "./x.js", "", "\0", "mcp:nope", "mcp:", "mcp:../mock", "mcp:mock?x"]) {
            try { await import(u); names.push("imported " + u) } catch (error) { names.push(error.name) }
        }
        return [...new Set(names)]"#;
    assert_eq!(value(source).await, json!(["TypeError"]));
}

#[tokio::test]
async fn je_056_static_import_and_export() {
    for source in [
        "import x from 'file:///etc/passwd'; return x",
        "export * from 'https://x/'",
        "import 'node:child_process'",
        "console.log('ran'); import y from './y.js'; return y",
    ] {
        let (result, _) = attack(source, DEFAULT).await;
        assert_eq!(result.error().unwrap().code, ErrorCode::SyntaxError, "{source}");
        assert_eq!(result.printed(), "", "{source}: nothing runs before");
    }
}

#[tokio::test]
async fn je_057_import_attributes_and_phases() {
    for source in [
        "await import('mcp:mock', { with: { type: 'json' } })",
        "await import('mcp:mock', { with: { type: 'text' } })",
        "await import('mcp:mock', { with: { type: 'bytes' } })",
        "await import.source('x.wasm')",
        "await import.source('mcp:mock')",
        "import source w from 'x.wasm'; w",
        "import defer * as n from 'x'; n",
    ] {
        let (result, _) = attack(source, DEFAULT).await;
        let error = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
        assert_eq!(error.code, ErrorCode::TranspileError, "{source}: {error}");
        assert!(error.message.ends_with("are not available"), "{source}: {error}");
    }
}

#[tokio::test]
async fn je_058_source_map_pull() {
    let (result, _) = attack("//# sourceMappingURL=file:///etc/passwd\nthrow new Error('x')", DEFAULT).await;
    let error = result.error().unwrap();
    assert_eq!(error.stack.as_deref(), Some("Error: x\n    at script.ts:2:7"));
}

#[tokio::test]
async fn je_059_console_has_no_other_way_out() {
    let source = "
        const found = new Set();
        for (let object = console; object; object = Object.getPrototypeOf(object)) {
            for (const key of Reflect.ownKeys(object)) found.add(String(key));
        }
        return [typeof console.constructor, [...found].filter((key) => /print|core|op_/i.test(key))]";
    assert_eq!(value(source).await, json!(["function", []]));
}

#[tokio::test]
async fn je_062_poisoned_primordials() {
    let source = "
        let call = 'replaced';
        try { Function.prototype.call = () => 'pwn' } catch (error) { call = error.name }
        try { Object.defineProperty(Function.prototype, 'call', { value: () => 'pwn' }) } catch (error) { call += error.name }
        const own: any = () => {}; own.call = () => 'own';
        Array.prototype.push = Map.prototype.get = Promise.prototype.then = JSON.stringify = JSON.parse =
            Function.prototype.apply = Object.keys = Reflect.apply = () => 'pwn';
        Array.prototype[Symbol.iterator] = function* () { yield 'pwn' };
        const result = await mock.echo({ a: 1 });
        let denied; try { await callMCPTool('mcp__nope__x') } catch (e) { denied = e.code }
        return { result, denied, blocking: call_tool('mock', 'echo', { b: 2 }), call, own: own.call() }";
    let (result, _) = attack(source, DEFAULT).await;
    assert_eq!(
        result.value(),
        Some(&json!({
            "result": { "a": 1 },
            "denied": "TOOL_NOT_FOUND",
            "blocking": { "ok": true, "result": { "b": 2 } },
            "call": "TypeErrorTypeError",
            "own": "own",
        })),
        "{}",
        result.to_json()
    );
}

#[tokio::test]
async fn je_063_thenable_hijack() {
    let source = "Object.prototype.then = function (resolve) { resolve({ server: 'denied' }) }; return await mock.echo({ a: 1 })";
    let (_, mock) = attack(source, ONE_SECOND).await;
    assert!(mock.calls.load(Ordering::SeqCst) <= 1);
}

#[tokio::test]
async fn je_064_065_prototype_setters() {
    let source = "
        let seen = 0;
        for (const name of ['name', 'server', 'tool', 'kind', 'value', 'arguments', 'message', 'code', '0']) {
            Object.defineProperty(Object.prototype, name, { __proto__: null, set(v) { seen++ }, get() {}, configurable: true });
        }
        Object.defineProperty(Array.prototype, '0', { __proto__: null, set(v) { seen++ }, configurable: true });
        const result = await callMCPTool('mcp__mock__echo', { a: 1 });
        const blocking = call_tool('mock', 'echo', { b: 2 });
        return { __proto__: null, a: result.a, ok: blocking.ok, seen }";
    let (result, _) = attack(source, DEFAULT).await;
    let value = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
    assert_eq!(*value, json!({ "a": 1, "ok": true, "seen": 0 }));
}

#[tokio::test]
async fn je_066_call_sites() {
    let source = "
        Error.prepareStackTrace = (error, sites) => sites.map((site) => [String(site.getThis?.()), typeof site.getFunction?.(), site.getFileName()]);
        return await new Promise((resolve) => setTimeout(() => resolve(new Error().stack), 1))";
    let (result, _) = attack(source, DEFAULT).await;
    let text = result.to_json().to_string();
    assert!(!text.contains("/root") && !text.contains("/home") && !text.contains("CallSite"), "{text}");
}

#[tokio::test]
async fn je_067_stack_text() {
    let (result, _) = attack("function f() { throw new Error('x') }\nf()", DEFAULT).await;
    let stack = result.error().unwrap().stack.clone().unwrap();
    assert_eq!(stack, "Error: x\n    at f (script.ts:1:22)\n    at script.ts:2:1");
    // A stack that the script wrote is shown, and names no line that does not exist.
    let written = "throw Object.assign(new Error('x'), { stack: 'Error: x\\n    at script.ts:9:1' })";
    let (result, _) = attack(written, DEFAULT).await;
    let error = result.error().unwrap();
    assert_eq!((error.line, error.stack.as_deref()), (None, Some("Error: x\n    at script.ts:9:1")));
}

#[tokio::test]
async fn je_068_pollution_across_runs() {
    let (executor, _) = executor();
    for _ in 0..6 {
        let source = "globalThis.x = 1; Object.prototype.y = 2; Array.prototype.map = null; Object.prototype.toJSON = () => 'z'";
        executor.run_ts(source).await.unwrap();
        let next =
            executor.run_ts("return [typeof x, ({}).y === undefined, [1].map((v) => v), {}]").await.unwrap();
        assert_eq!(next.value(), Some(&json!(["undefined", true, [1], {}])));
    }
}

#[tokio::test]
async fn je_069_070_work_after_the_end() {
    let source = "
        setTimeout(() => mock.count(), 20);
        new FinalizationRegistry(() => mock.count()).register({}, 0);
        return 1";
    let (executor, mock) = executor();
    assert_eq!(executor.run_ts(source).await.unwrap().value(), Some(&json!(1)));
    for _ in 0..10 {
        executor.run_ts("await new Promise((r) => setTimeout(r, 10))").await.unwrap();
    }
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn je_071_wrapper_break_out() {
    for source in
        ["})(); globalThis.leaked = 1; (async () => {", "}; leaked = 1; {", "/*", "`", "return 1 }", "*/ 1"]
    {
        let (result, _) = attack(source, DEFAULT).await;
        assert_eq!(
            result.error().map(|error| error.code),
            Some(ErrorCode::SyntaxError),
            "{source}: {}",
            result.to_json()
        );
    }
    for (source, expected) in
        [("1 //", 1), ("'use strict'; 2", 2), ("3 /* x */", 3), ("4;;;", 4), ("5\n//# x", 5)]
    {
        assert_eq!(value(source).await, json!(expected), "{source}");
    }
}

#[tokio::test]
async fn je_072_nothing_runs_during_transpilation() {
    for (source, code, message) in [
        ("enum E { A = require('fs') }", ErrorCode::RuntimeError, "require is not defined"),
        (
            "import x = require('fs'); x",
            ErrorCode::TranspileError,
            "`import … = require(…)` is not available",
        ),
        (
            "function f(@require('fs') x) {}",
            ErrorCode::TranspileError,
            "decorators of parameters are not available",
        ),
    ] {
        assert_eq!(failure(source).await, (code, message.to_owned()), "{source}");
    }
    let source = "/// <reference path='/etc/passwd' />\nthrow new Error('ran')";
    assert_eq!(failure(source).await, (ErrorCode::RuntimeError, "ran".to_owned()));
}

#[tokio::test]
async fn je_073_074_debugger_and_realms() {
    let source = "debugger; return [typeof ShadowRealm, typeof Worker, typeof importScripts]";
    assert_eq!(value(source).await, json!(["undefined", "undefined", "undefined"]));
}

/// Threat 76: every string that can be reached from the global object, walked.
#[tokio::test]
async fn je_076_no_secret_is_in_reach() {
    let source = r#"
        const seen = new Set(); const texts = []; const open = [globalThis];
        while (open.length) {
            const object = open.pop();
            if ((typeof object !== "object" && typeof object !== "function") || object === null || seen.has(object)) continue;
            seen.add(object);
            if (typeof object === "function") texts.push(Function.prototype.toString.call(object));
            try { open.push(Object.getPrototypeOf(object)) } catch {}
            let keys = []; try { keys = Reflect.ownKeys(object) } catch {}
            for (const key of keys) {
                let descriptor; try { descriptor = Object.getOwnPropertyDescriptor(object, key) } catch {}
                if (!descriptor) continue;
                if (typeof descriptor.value === "string") texts.push(descriptor.value);
                open.push(descriptor.value, descriptor.get, descriptor.set);
            }
        }
        const all = texts.join("\n");
        return [seen.size > 500, ["HOME", "PATH=", "/root", "/home/", "/usr/", "Bearer", "op_panic"].filter((word) => all.includes(word))]"#;
    assert_eq!(value(source).await, json!([true, []]));
}

#[test]
fn je_077_unhandled_rejections() {
    let source = "Promise.reject(new Error('x')); Promise.reject(null); new Promise(() => { throw Symbol() }); await null; await mock.echo(); return 1";
    let report = canary(source, ENOUGH, 64);
    assert_eq!(report["hostile"]["value"], 1, "{report:#}");
    let output = report["hostile"]["output"].as_str().unwrap();
    assert_eq!(output.matches("was rejected").count(), 3, "{output}");
}

#[tokio::test]
async fn je_078_tool_handle_forgery() {
    let mock = crate::support::mock::Mock::default();
    let executor = cx::Executor::builder().dispatcher(mock.clone()).deny(["mock.count"]).build().unwrap();
    let source = "
        const codes = [];
        const attempts = [
            () => callMCPTool('mcp__mock__count', {}, { allow: ['*'] }),
            () => callMCPTool.call({ allowed: true }, 'mcp__mock__count'),
            () => mock.count.call({ allowed: true }),
            () => Reflect.apply(mock.count, tools, []),
            () => mock['count\\0'](), () => mock[' count'](), () => mock.COUNT(), () => mock['ｃount'](),
            () => tools.__proto__.count(),
        ];
        for (const attempt of attempts) { try { await attempt(); codes.push('called') } catch (e) { codes.push(e.code ?? e.name) } }
        return codes";
    let result = executor.run_ts(source).await.unwrap();
    let codes = result.value().unwrap_or_else(|| panic!("{}", result.to_json())).as_array().unwrap();
    assert!(codes.iter().all(|code| code != "called"), "{codes:?}");
    assert_eq!(
        codes[..4],
        // A call has no option that allows anything.
        [json!("TypeError"), json!("TOOL_DENIED"), json!("TOOL_DENIED"), json!("TOOL_DENIED")]
    );
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
}

/// A property that gives another name each time is read once.
#[tokio::test]
async fn je_079_name_that_changes() {
    let source = "
        let n = 0; const name = { toString() { return n++ ? 'mcp__mock__count' : 'mcp__mock__echo' } };
        try { return await callMCPTool(name as any) } catch (e) { return [e.name, n] }";
    assert_eq!(value(source).await, json!(["TypeError", 0]));
}

/// deno_core's event loop reads its timers, and copies what is thrown there, whatever its length.
#[tokio::test]
async fn v_745_a_signal_has_nothing_of_its_timer() {
    let source = "
        const signal = AbortSignal.timeout(1e6);
        const found = [];
        for (const key of Object.getOwnPropertySymbols(signal)) {
            const value = signal[key];
            if (typeof value === 'object' && value !== null) {
                found.push([Reflect.ownKeys(value).length, Object.getPrototypeOf(value), Object.isFrozen(value)]);
            }
        }
        return found";
    assert_eq!(value(source).await, json!([[0, null, true]]));
}

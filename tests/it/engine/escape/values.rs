//! Values at the boundary between a script and the host.

use super::*;

#[tokio::test]
async fn bv_080_081_proto() {
    let source = r#"
        const result = await mock.pollute();
        const echoed = await mock.echo(JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}'));
        return [
            Object.hasOwn(result, "__proto__"), ({}).polluted === undefined,
            Object.hasOwn(echoed, "__proto__"), echoed.constructor,
            await mock.constructor({ c: 1 }), call_tool("mock", "then", { t: 1 }).ok, typeof mock.then,
        ]"#;
    assert_eq!(value(source).await, json!([true, true, true, 2, { "c": 1 }, true, "undefined"]));
}

#[tokio::test]
async fn bv_082_lone_surrogate_out() {
    let source =
        r#"return [await mock.echo({ s: "\ud800" }), call_tool("mock", "echo", { "\udfff": 1 }), "\ud800"]"#;
    let one = "\u{fffd}";
    assert_eq!(value(source).await, json!([{ "s": one }, { "ok": true, "result": { one: 1 } }, one]));
}

#[tokio::test]
async fn bv_084_numbers_without_json() {
    let source = "return [[NaN, Infinity, -0], await mock.echo({ a: NaN, b: -Infinity })]";
    assert_eq!(value(source).await, json!([[null, null, 0], { "a": null, "b": null }]));
}

#[tokio::test]
async fn bv_085_bigint() {
    assert_eq!(
        failure("return 1n").await.1,
        "value is a BigInt, which JSON does not have; use String() or Number()"
    );
    // An argument is a number with all its digits. The mock returns what it received as text.
    let source = "
        const n = 123456789012345678901234567890n;
        return await mock.text({ rows: [{ n }, -n, 1n, 1e25, null], s: `${n}` })";
    assert_eq!(
        value(source).await,
        r#"sent {"rows":[{"n":123456789012345678901234567890},-123456789012345678901234567890,1,1e+25,null],"s":"123456789012345678901234567890"}"#
    );
    let source = "try { await mock.echo({ a: 1n, rows: [{ n() {} }] }) } catch (e) { return e.message }";
    let message = value(source).await;
    assert!(message.as_str().unwrap().starts_with("arguments.rows[0].n is a function"), "{message}");
    let source = "try { await mock.echo({ n: 10n ** 400n }) } catch (e) { return [e.code, e.message] }";
    let found = value(source).await;
    assert_eq!(found[0], "INVALID_ARGUMENTS");
    assert!(found[1].as_str().unwrap().contains("beyond 10^308"), "{found}");
}

#[tokio::test]
async fn bv_086_large_numbers() {
    let source = r#"
        const text = await mock.text({ text: '{"id": 9007199254740993, "small": 1e-400}' });
        return [text.id, text.small, typeof (await mock.text({ text: '{"x": 1e400}' }))]"#;
    assert_eq!(value(source).await, json!([9_007_199_254_740_992_u64, 0, "string"]));
}

#[tokio::test]
async fn bv_087_cycle() {
    let (code, message) = failure("const a: any = {}; a.a = a; return a").await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.contains("circular"), "{message}");
}

#[test]
fn bv_088_billion_laughs() {
    let source = "let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return a";
    survives(source, "MEMORY_LIMIT", 1_500);
}

#[tokio::test]
async fn bv_089_depth() {
    let nested = |depth: usize| format!("let v: any = 1; for (let i = 0; i < {depth}; i++) v = [v]; ");
    assert!(value(&format!("{}return JSON.stringify(v).length", nested(100))).await.is_number());
    assert!(value(&format!("{}return v", nested(100))).await.is_array());
    for depth in [200, 3_000] {
        assert_eq!(failure(&format!("{}return v", nested(depth))).await.0, ErrorCode::RuntimeError);
        let source =
            format!("{}try {{ await mock.echo({{ v }}) }} catch (e) {{ return e.code }}", nested(depth));
        assert_eq!(value(&source).await, json!("INVALID_ARGUMENTS"));
    }
}

#[test]
fn bv_090_symbols() {
    let source = "
        const names = [];
        for (const attempt of [
            () => callMCPTool(Symbol('x'), {}), () => callMCPTool('mcp__mock__echo', Symbol()),
            () => mock[Symbol.iterator](), () => call_tool(Symbol(), Symbol()), () => mock.echo({ a: Symbol() }),
        ]) { try { names.push(await attempt()) } catch (e) { names.push(e.name) } }
        return names";
    let report = canary(source, ENOUGH, 64);
    assert_eq!(
        report["hostile"]["value"],
        json!(["TypeError", "McpToolError", "TypeError", { "ok": false, "error": {
            "code": "INVALID_ARGUMENTS", "message": "`server` and `tool` must be strings",
        } }, "McpToolError"]),
        "{report:#}"
    );
}

#[test]
fn bv_091_sparse_array() {
    for source in [
        "const a: any[] = []; a.length = 2 ** 32 - 1; return a",
        "const a: any[] = []; a.length = 2 ** 32 - 1; await mock.echo({ a })",
    ] {
        survives(source, "RUNTIME_ERROR", 2_000);
    }
}

#[tokio::test]
async fn bv_092_exotic_objects() {
    let source = "
        const { proxy, revoke } = Proxy.revocable({}, {}); revoke();
        const buffer = new ArrayBuffer(4); const view = new Uint8Array(buffer); structuredClone(buffer, { transfer: [buffer] });
        const names = [];
        for (const exotic of [proxy, new Proxy([], { get() { throw new Error('trap') } })]) {
            try { await mock.echo({ exotic }); names.push('sent') } catch (e) { names.push(e.name) }
        }
        try { await mock.echo({ generator: (function* () {})() }); names.push('sent') } catch (e) { names.push(e.message) }
        try { await mock.echo({ view }); names.push('sent') } catch (e) { names.push(e.message) }
        return [names, await mock.echo({ weak: new WeakMap(), global: typeof globalThis })]";
    let iterator = "arguments.generator is an iterator, which is read only once; use Array.from()";
    let bytes = "arguments.view is bytes, which JSON does not have; use bytes.toBase64(), or new TextDecoder().decode() for text";
    assert_eq!(
        value(source).await,
        json!([["McpToolError", "Error", iterator, bytes], { "weak": {}, "global": "object" }])
    );
}

#[tokio::test]
async fn bv_093_throwing_getters() {
    assert_eq!(failure("return { get a() { throw new Error('g') } }").await.1, "g");
    assert_eq!(failure("return { toJSON() { throw null } }").await.0, ErrorCode::RuntimeError);
}

#[tokio::test]
async fn bv_094_to_json_hijack() {
    let source = "Object.prototype.toJSON = function () { return { hijacked: true } }; return await mock.echo({ a: 1 })";
    let (result, _) = attack(source, DEFAULT).await;
    // A script may change the guest's own data; it cannot change the envelope.
    assert_eq!(result.tool_calls.len(), 1);
    assert_eq!(result.tool_calls[0].tool, "echo");
}

#[tokio::test]
async fn bv_095_thrown_non_errors() {
    for thrown in [
        "null",
        "undefined",
        "Symbol('s')",
        "42",
        "{ toString() { throw 1 } }",
        "Object.freeze(new Error('f'))",
        "Object.create(null)",
        "new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })",
        "Object.create(Error.prototype)",
        "Object.setPrototypeOf(() => {}, null)",
        "new (class extends Error { get name() { throw 1 } })",
    ] {
        let (code, _) = failure(&format!("throw {thrown}")).await;
        assert_eq!(code, ErrorCode::RuntimeError, "{thrown}");
    }
}

#[tokio::test]
async fn bv_096_causes_and_aggregates() {
    let (code, message) = failure("const e: any = new Error('loop'); e.cause = e; throw e").await;
    assert_eq!((code, message.as_str()), (ErrorCode::RuntimeError, "loop"));
    let source =
        "throw new AggregateError(Array.from({ length: 1e5 }, (_, i) => new Error('e' + i)), 'many')";
    let (code, message) = failure(source).await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.len() < 10_000 && message.starts_with("many; e0; e1; e2; and 99997 more"), "{message}");
}

#[tokio::test]
async fn bv_097_no_value() {
    for source in ["return;", "", "const a = 1;", "return undefined", "void 0"] {
        assert_eq!(value(source).await, Value::Null, "{source}");
    }
}

#[tokio::test]
async fn bv_098_odd_text_survives() {
    let source = r#"const s = "\0 \u2028 \u2029 \ufeff \u001b[31m \u202e"; console.log(s); return [s, (await mock.echo({ s })).s === s]"#;
    let (result, _) = attack(source, DEFAULT).await;
    assert_eq!(result.value(), Some(&json!(["\0 \u{2028} \u{2029} \u{feff} \u{1b}[31m \u{202e}", true])));
}

#[tokio::test]
async fn bv_099_odd_objects_from_a_tool() {
    let keys: Vec<String> = (0..10_000).map(|index| format!("\"k{index}\":{index}")).collect();
    let text = format!("{{\"a\":1,\"\":2,\"a\":3,{}}}", keys.join(","));
    let script = Script::typescript(
        "const r = await mock.text({ text: input }); return [r.a, r[''], Object.keys(r).length, Object.keys(r)[1]]",
    );
    let (executor, _) = executor();
    let result = executor.run(script.input(json!(text))).await.unwrap();
    assert_eq!(result.value(), Some(&json!([3, 2, 10_002, ""])));
}

/// What stands for the class of promises throws, or makes something else.
#[tokio::test]
async fn a_script_that_changes_the_class_of_promises_ends_as_without_that() {
    let species = |body: &str| {
        format!("Promise.prototype.constructor = {{ [Symbol.species]: function (start) {{ {body} }} }};")
    };
    let forged = species(
        r#"start(() => {}, () => {}); return Promise.resolve('-{"message":"a","code":"TOOL_DENIED"}')"#,
    );
    assert_eq!(value(&format!("{forged} return 1")).await, 1);
    assert_eq!(value(&format!("{} return 1", species("start(() => {}, () => {}); return {}"))).await, 1);
    let getter =
        "Object.defineProperty(Promise.prototype, 'constructor', { get() { throw new RangeError('a') } });";
    for changed in [&*species("throw new RangeError('a')"), getter] {
        let source = format!("{changed} return 1");
        let result = attack(&source, DEFAULT).await.0;
        let error = result.error().expect("an error of the script");
        assert_eq!(
            (error.code, error.name.as_deref(), &*error.message),
            (ErrorCode::RuntimeError, Some("RangeError"), "a")
        );
    }
}

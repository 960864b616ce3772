//! Errors that the engine describes: in native callbacks, where a panic ends the process.

use super::*;

#[test]
fn v_745_names_and_messages_that_no_text_has_room_for() {
    let named = "Error.stackTraceLimit = 200;
        const f = (left) => { if (left === 0) throw new Error('a'); f(left - 1); return 1 };
        Object.defineProperty(f, 'name', { value: 'x'.repeat(2 ** 22) });";
    survives(&format!("{named} try {{ f(150) }} catch (error) {{ return typeof error.stack }}"), "none", 400);
    survives(&format!("{named} f(150)"), "RUNTIME_ERROR", 400);
    for message in ["'x'.repeat(2 ** 29 - 24)", "'☃'.repeat(2 ** 28)"] {
        survives(&format!("return new Error({message}).stack.length"), "none", 400);
    }
    survives(
        "class C { f() { return new Error('a') } }
         Object.defineProperty(C.prototype, Symbol.toStringTag, { value: '☃'.repeat(2 ** 28) });
         Object.defineProperty(C.prototype.f, 'name', { value: '☃'.repeat(2 ** 28) });
         return typeof new C().f().stack",
        "none",
        400,
    );
}

/// A name that changes after the script has got its call sites.
#[tokio::test]
async fn v_745_call_sites_keep_their_names() {
    let source = "
        Error.prepareStackTrace = (error, sites) => sites;
        const f = () => new Error('a');
        const [site] = f().stack;
        Object.defineProperty(f, 'name', { value: '☃'.repeat(2 ** 28) });
        const long = f().stack[0];
        return [site.getFunctionName(), site.toString() === String(site), site.getFileName(),
                typeof site.getLineNumber(), long.getFunctionName(), long.toString(), Object.keys(site),
                site.getThis.name]";
    assert_eq!(value(source).await, json!(["f", true, "script.ts", "number", null, null, [], "getThis"]));
}

/// Getters and conversions of the script's own, which throw or are other values the second time.
#[tokio::test]
async fn v_745_traces_of_hostile_errors() {
    let source = "
        const stackOf = (parts) => Object.defineProperties(new Error('a'), parts).stack.split('\\n')[0];
        let times = 0;
        return [
            stackOf({ message: { get() { throw 1 } } }),
            stackOf({ message: { value: Symbol() }, name: { value: 'B' } }),
            stackOf({ message: { value: { toString() { throw 1 } } } }),
            stackOf({ message: { get: () => `m${times++}` }, name: { value: '' } }),
            stackOf({ message: { value: '' } }),
        ]";
    assert_eq!(value(source).await, json!(["Error", "B", "Error", "m0", "Error"]));
}

#[test]
fn v_747_a_failed_import_that_the_script_changes() {
    let forge = "Object.defineProperty(this, 'message', { value: 5 })";
    let forged = "Object.create(Error.prototype, { message: { value: 5 } })";
    for hook in [
        format!(
            "Error.prepareStackTrace = function (error) {{ (function () {{ {forge} }}).call(error); return '' }}"
        ),
        format!(
            "Object.defineProperty(TypeError.prototype, 'name', {{ get() {{ {forge}; return 'TypeError' }} }})"
        ),
        format!("Object.defineProperty(Error.prototype, 'stack', {{ get() {{ {forge}; return '' }} }})"),
        format!("Object.defineProperty(Object.prototype, 'code', {{ set() {{ {forge}; throw 1 }} }})"),
        format!("Symbol.for = () => {{ throw {forged} }}"),
        format!("const forged = {forged}; globalThis.TypeError = {{ get prototype() {{ throw forged }} }}"),
        "globalThis.TypeError = { prototype: new Proxy(Error.prototype, { getPrototypeOf() { throw 1 } }) }"
            .to_owned(),
    ] {
        let source = format!(
            "{hook};
             for (const specifier of ['x', 'mcp:nope', 'mcp:', 'mcp:mock', 'node:fs']) {{
                 try {{ await import(specifier) }} catch {{}}
             }}
             return 1"
        );
        survives(&source, "none", 400);
    }
}

/// What a script gets of a failed import, also the second time.
#[tokio::test]
async fn v_747_failed_imports_are_errors_of_the_script() {
    let source = "
        const found = [];
        for (const specifier of ['mcp:nope', 'mcp:nope', 'left-pad', 'left-pad']) {
            let error;
            try { await import(specifier) } catch (thrown) { error = thrown }
            found.push(error instanceof TypeError && error.name === 'TypeError' && typeof error.message);
            found.push(error.stack.includes('script.ts:'));
        }
        const first = await import('mcp:mock');
        return [found, first === await import('mcp:mock'), first.echo === first.default.echo]";
    assert_eq!(
        value(source).await,
        json!([["string", true, "string", true, "string", true, "string", true], true, true])
    );
}

/// deno_core made a list of the rejected promises while it held what the next rejection needs.
#[test]
fn v_756_a_promise_that_is_rejected_while_others_are_reported() {
    survives(
        "setTimeout(() => { Promise.reject(2) }, 1);
         setTimeout(() => {}, 2);
         const later = new Promise((done) => setTimeout(done, 20));
         Object.defineProperty(Array.prototype, 0, { set() { Promise.reject(1) } });
         await later",
        "none",
        400,
    );
}

#[tokio::test]
async fn v_756_rejections_in_timers_are_reported() {
    let source = "
        setTimeout(() => { Promise.reject(new Error('a')) }, 1);
        setTimeout(() => { Promise.reject(new Error('b')).catch(() => {}) }, 1);
        await new Promise((done) => setTimeout(done, 20));
        Promise.reject(new Error('c'));
        await new Promise((done) => setTimeout(done, 20))";
    let (result, _) = attack(source, DEFAULT).await;
    let reports =
        ["a", "c"].map(|name| format!("a promise that was not awaited was rejected: Error: {name}"));
    assert_eq!(result.printed(), reports.join("\n"));
}

/// The canary's report is all that may be on its stdout.
#[test]
fn v_757_what_nothing_catches_is_not_printed() {
    survives(
        "let called = 0;
         const registry = new FinalizationRegistry(() => { called++; throw new Error('a\\n{\"jsonrpc\":\"2.0\"}\\nb') });
         (() => { for (let i = 0; i < 1000; i++) registry.register({ i }) })();
         while (called === 0) {
             const kept = [];
             for (let i = 0; i < 1e5; i++) kept.push({ i });
             await new Promise((done) => setTimeout(done, 1));
         }",
        "none",
        400,
    );
}

/// Each import fails at once and makes the script import again.
#[test]
fn v_748_imports_that_follow_failed_imports() {
    for specifier in ["x", "mcp:nope"] {
        let source = format!(
            "const again = () => {{ import('{specifier}').catch(() => {{}}).then(again) }};
             for (let chain = 0; chain < 50; chain++) again();
             await new Promise(() => {{}})"
        );
        let report = canary(&source, 1_000, 900);
        assert_eq!(report["hostile"]["error"]["code"], "TIMEOUT", "{specifier}: {report:#}");
        assert_eq!(report["lost"], 0, "{specifier}: the thread has stopped: {report:#}");
    }
}

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

/// Names that are as long as they may be, of many frames.
#[tokio::test]
async fn v_745_frames_and_call_sites_are_bounded_together() {
    let source = "
        Error.stackTraceLimit = 5_000;
        const f = (left) => left === 0 ? new Error('a') : f(left - 1);
        Object.defineProperty(f, 'name', { value: 'x'.repeat(1_000) });
        const length = f(2_000).stack.length;
        Error.prepareStackTrace = (error, sites) => sites.length;
        return [length > 500_000 && length < 1_100_000, f(2_000).stack]";
    assert_eq!(value(source).await, json!([true, 1_000]));
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

/// What a script gets of a failed import, also the second time, and of one that has not failed.
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
        return [found, first.echo === (await import('mcp:mock')).echo, first.echo === first.default.echo]";
    assert_eq!(
        value(source).await,
        json!([["string", true, "string", true, "string", true, "string", true], true, true])
    );
}

#[tokio::test]
async fn v_741_rejections_in_timers_are_reported() {
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

/// Each import ends at once and makes the script import again.
#[test]
fn v_748_imports_that_follow_failed_imports() {
    for specifier in ["x", "mcp:nope", "node:fs"] {
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

/// An import of a module that was evaluated in the same turn, by code of the script that another module runs, and an
/// import as soon as it ends.
#[test]
fn v_740_imports_while_modules_are_evaluated() {
    for specifier in ["node:fs", "mcp:mock"] {
        let source = format!(
            "let isArmed = true;
             Object.defineProperty(globalThis, 'TypeError', {{
                 configurable: true,
                 get() {{
                     if (isArmed) {{
                         isArmed = false;
                         import('{specifier}').then(() => {{ import('x').catch(() => {{}}) }});
                     }}
                     return Error;
                 }},
             }});
             const first = import('{specifier}'), second = import('x').catch(() => {{}});
             await first;
             await second;
             return isArmed"
        );
        survives(&source, "none", 400);
    }
}

/// deno_core keeps each module until the run ends.
#[test]
fn v_740_modules_of_a_loop_of_imports_are_counted() {
    survives("for (;;) await import('mcp:mock')", "MEMORY_LIMIT", 400);
}

/// V8 prints what nothing listens to: the report of the canary would not be all of its stdout.
#[test]
fn v_739_uncaught_errors_that_v8_reports() {
    let lines = "'\\n{}\\n'.repeat(4096)";
    for source in [
        format!(
            "delete globalThis.queueMicrotask;
             queueMicrotask(() => {{ throw {lines} }});
             await new Promise(() => {{}})"
        ),
        format!(
            "globalThis.registry = new FinalizationRegistry(() => {{ throw {lines} }});
             (() => {{ for (let id = 0; id < 1_000; id++) registry.register({{ id }}, id) }})();
             for (;;) {{
                 globalThis.garbage = new Array(1e6).fill(1);
                 await new Promise((done) => setTimeout(done, 1));
             }}"
        ),
    ] {
        survives(&source, "RUNTIME_ERROR", 400);
    }
}

#[tokio::test]
async fn v_739_an_uncaught_error_that_v8_reports_fails_its_run() {
    let source = "
        delete globalThis.queueMicrotask;
        queueMicrotask(() => { throw new RangeError('a') });
        await new Promise(() => {})";
    assert_eq!(failure(source).await, (ErrorCode::RuntimeError, "a".to_owned()));
}

/// deno_core would have borrowed its list of rejections when the setter rejects another promise.
#[test]
fn v_741_a_rejection_while_rejections_are_reported() {
    survives(
        "let rejected = false;
         setTimeout(() => {
             Object.defineProperty(Array.prototype, '0', {
                 configurable: true,
                 set() { if (!rejected) { rejected = true; Promise.reject(1) } },
             });
             Promise.reject(2);
         }, 1);
         await new Promise((done) => setTimeout(done, 20));
         return 1",
        "none",
        400,
    );
}

/// To read an element of the list throws, in the op that makes a text of it.
#[test]
fn v_742_parameters_of_a_url_with_elements_that_throw() {
    let hidden = "Object.defineProperty(Array.prototype, '0', {
        configurable: true,
        set() {},
        get() { throw new Error('a') },
    });";
    for (source, code) in [
        (format!("const made = new URLSearchParams('a=b'); {hidden} return made.toString()"), "none"),
        (
            format!("const made = new URL('http://a.b/?c=d'); {hidden} made.searchParams.append('e', 'f')"),
            "none",
        ),
        (format!("{hidden} return new URLSearchParams({{ a: 'b' }}).toString()"), "RUNTIME_ERROR"),
    ] {
        survives(&source, code, 400);
    }
}

/// What deno_core reads of the error with which its event loop ends, also that of a stopped run.
#[test]
fn v_743_what_the_event_loop_reads_of_errors() {
    let endless = "Error.prototype[Symbol.for('errorAdditionalPropertyKeys')] = new Array(2 ** 32 - 1);";
    let large = "
        const text = 'x'.repeat(2 ** 20);
        const leaf = () => Object.assign(new Error(text), { name: text, stack: text });
        Error.prototype.cause = new AggregateError(Array.from({ length: 250 }, leaf));";
    for before in [endless, large] {
        for (source, code) in [
            ("await 1; for (;;) {}", "TIMEOUT"),
            ("setTimeout(() => { for (;;) {} }, 1); await new Promise(() => {})", "TIMEOUT"),
            (
                "for (let index = 0; index < 60_000; index++) Promise.reject(index);
                 await new Promise(() => {})",
                "RUNTIME_ERROR",
            ),
        ] {
            survives(&format!("{before} {source}"), code, 400);
        }
    }
}

/// The list of timers is given to a setter of the script, and that of callbacks has elements of a getter.
#[test]
fn v_743_what_a_script_lets_the_event_loop_throw() {
    let frozen = "
        const keys = { [Symbol.for('errorAdditionalPropertyKeys')]: new Array(2 ** 32 - 1) };
        const frozen = Object.freeze(Object.assign(new Error('a'), keys));";
    for source in [
        "let timers;
         Object.defineProperty(Array.prototype, '2', {
             configurable: true,
             get() { return this.second },
             set(value) { timers = this; this.second = value },
         });
         setTimeout(() => {}, 5);
         setTimeout(() => {}, 7);
         timers[1] = { get expiry() { throw frozen } };",
        "setTimeout(() => {
             Object.defineProperty(Array.prototype, '0', {
                 configurable: true,
                 get() { throw frozen },
                 set() {},
             });
             Promise.reject(1);
         }, 1);",
    ] {
        survives(&format!("{frozen} {source} await new Promise(() => {{}})"), "RUNTIME_ERROR", 400);
    }
}

#[tokio::test]
async fn v_743_too_many_rejections_are_an_error_that_says_so() {
    let source = "
        for (let index = 0; index < 60_000; index++) Promise.reject(index);
        await new Promise(() => {})";
    let expected = "too many promises were rejected at once that nothing handles";
    assert_eq!(failure(source).await, (ErrorCode::RuntimeError, expected.to_owned()));
}

//! Memory that no engine's meter sees, by number: see `docs/threats.md`. Each script runs in its own process.

use serde_json::{Value, json};

use crate::support::canary::{ENOUGH, canary};

/// How much a run may exceed its limit for a moment, in megabytes.
const BEYOND: u64 = 256;

/// How much of that may remain two seconds later.
const LEFT_OVER: u64 = 50;

const LIMIT: u64 = 128;

/// Runs a script with [`LIMIT`], and with more time than it can need, so that its outcome does not depend on the
/// machine. The process's memory stays within its bounds during and after the run.
fn bounded(source: &str) -> Value {
    let mut report = canary(source, ENOUGH, LIMIT);
    let megabytes = |name: &str| report[name].as_u64().unwrap();
    let (before, peak, settled) =
        (megabytes("beforeMegabytes"), megabytes("peakMegabytes"), megabytes("settledMegabytes"));
    assert!(peak <= before + LIMIT + BEYOND, "{source}: {report:#}");
    assert!(settled <= before + LEFT_OVER, "{source}: {report:#}");
    report["hostile"].take()
}

fn hits_the_limit(source: &str) {
    let outcome = bounded(source);
    assert_eq!(outcome["error"]["code"], "MEMORY_LIMIT", "{source}: {outcome:#}");
}

#[test]
fn v_260_text_that_the_host_makes_is_counted() {
    hits_the_limit("const k = [], s = 'x'.repeat(1e6); for (let i = 0; ; i++) k.push(btoa(i + s))");
    hits_the_limit("const k = [], s = btoa('x'.repeat(1e6)); for (let i = 0; ; i++) k.push(atob(s))");
    hits_the_limit(
        "const k = [], b = new Uint8Array(1e6).fill(65); for (;;) k.push(new TextDecoder('utf-16le').decode(b))",
    );
    hits_the_limit("const k = []; for (;;) k.push(new URL('http://a/' + 'x'.repeat(2 ** 19) + k.length))");
}

#[test]
fn v_260_bytes_that_the_host_makes_are_counted() {
    hits_the_limit("const k = [], s = 'x'.repeat(1e6); for (;;) k.push(new TextEncoder().encode(s))");
}

#[test]
fn v_260_what_v8_allocates_beside_its_heap_is_counted() {
    hits_the_limit("const k = []; for (;;) k.push(new Intl.DateTimeFormat('en'))");
}

/// Memory that is released stops no run, however much it is in all.
#[test]
fn v_260_garbage_outside_the_heap_is_collected() {
    for source in [
        "let n = 0; const s = 'x'.repeat(1e6); for (let i = 0; i < 400; i++) n += btoa(i + s).length; return n > 1",
        "let n = 0; const s = 'é'.repeat(1e6); for (let i = 0; i < 200; i++) n += new TextEncoder().encode(s).length; return n > 1",
        "let n = 0; for (let i = 0; i < 1000; i++) n += new Uint8Array(1e6).length; return n > 1",
        "let n = 0; const b = new Uint8Array(1e6).fill(65); for (let i = 0; i < 200; i++) n += new TextDecoder().decode(b).length; return n > 1",
    ] {
        let outcome = bounded(source);
        assert_eq!(outcome["value"], true, "{source}: {outcome:#}");
    }
}

#[test]
fn v_264_a_clone_shares_its_strings() {
    let outcome = bounded("return structuredClone(Array(60).fill('x'.repeat(2 ** 26))).length");
    assert_eq!(outcome["value"], 60, "{outcome:#}");
    hits_the_limit("const k = []; for (;;) k.push(structuredClone(Array(1e5).fill({ a: 1 })))");
}

/// Each was copied several times before the host refused it.
#[test]
fn v_749_names_that_are_longer_than_any_name() {
    for call in [
        "await callMCPTool(s)",
        // V8 makes one text of a key.
        "await tools.mock['x'.repeat(2 ** 20)]({})",
        "await state.get(s)",
        "await state.set(s, 1)",
        "await state.delete(s)",
        "await state.keys(s)",
        "await state.update(s, () => 1)",
        "await state.set('a', 'x'.repeat(2 ** 24))",
    ] {
        let outcome = bounded(&format!("const s = 'x'.repeat(2 ** 28); {call}"));
        assert_eq!(outcome["error"]["name"], "RangeError", "{call}: {outcome:#}");
    }
    let outcome = bounded("return call_tool('mock', 'x'.repeat(2 ** 28)).error.code");
    assert_eq!(outcome["value"], "INVALID_ARGUMENTS", "{outcome:#}");
}

/// deno_core copies a specifier before the loader sees it.
#[test]
fn v_785_a_specifier_that_is_longer_than_any_name() {
    for specifier in [
        "'mcp:' + 'x'.repeat(2 ** 28)",
        "'\u{2603}'.repeat(2 ** 28)",
        "{ toString: () => 'x'.repeat(2 ** 28) }",
        "{ [Symbol.toPrimitive]: () => 'mcp:' + 'x'.repeat(2 ** 28) }",
    ] {
        let outcome = bounded(&format!("await import({specifier})"));
        let message = outcome["error"]["message"].as_str().unwrap_or_default();
        let is_bound = message.starts_with("cannot import `a specifier of more than 4,100 characters`");
        assert!(is_bound, "{specifier}: {outcome:#}");
    }
    let literal = "x".repeat(900_000);
    bounded(&format!("for (let i = 0; i < 2_000; i++) import('{literal}').catch(() => {{}})"));
    // A script cannot replace what makes the text, and errors are those of the import.
    let outcome = bounded(
        "Object.prototype[Symbol.toPrimitive] = () => 'nothing';
         const found = [], __specifier = 1, specifiers = ['mcp:mock', { toString: () => 'mcp:mock', __proto__: null }, Symbol(),
             { toString() { throw 5 }, __proto__: null }, `mcp:${'mock'}`];
         for (const specifier of specifiers)
             found.push(await import(specifier).then((module) => typeof module.echo, (error) => error.name ?? error));
         return found",
    );
    assert_eq!(outcome["value"], json!(["function", "function", "TypeError", 5, "function"]), "{outcome:#}");
}

/// An op copies its arguments before the host can look at the run's memory again.
#[test]
fn v_265_one_host_call_copies_no_more_than_so_much() {
    for source in [
        "const p = new URLSearchParams(), s = 'x'.repeat(2 ** 26); for (let i = 0; i < 40; i++) p.append('a', s); return p.toString()",
        "const s = 'x'.repeat(2 ** 26); return btoa(s + s)",
        "const s = 'A'.repeat(2 ** 26); return atob(s + s)",
        "const s = 'x'.repeat(2 ** 26); return new TextEncoder().encode(s + s)",
        "const s = 'x'.repeat(2 ** 26); return new TextEncoder().encodeInto(s + s, new Uint8Array(1))",
        "const s = 'x'.repeat(2 ** 26); return new TextDecoder(s + s)",
        "const s = 'x'.repeat(2 ** 26); return new URL('http://a/' + s + s)",
        "const s = 'x'.repeat(2 ** 26); return new URL('b', 'http://a/' + s + s)",
        "const s = 'x'.repeat(2 ** 26); return URL.canParse('http://a/' + s + s)",
        "const s = 'x'.repeat(2 ** 26), u = new URL('http://a/'); u.hash = s + s; return 1",
        "const s = 'x'.repeat(2 ** 26), u = new URL('http://a/'); u.searchParams.append('a', s + s); return 1",
        "const s = 'x'.repeat(2 ** 26); return new URLSearchParams(s + s)",
    ] {
        let outcome = bounded(source);
        // Of a label that it does not know, the decoder itself says another `RangeError`.
        let message = outcome["error"]["message"].as_str().unwrap_or_default();
        let is_bound = message.ends_with(" can be converted at once; do it in parts");
        assert!(is_bound && outcome["error"]["name"] == "RangeError", "{source}: {outcome:#}");
    }
    // The op copies what it measured: a second reading could be longer.
    let outcome = bounded(
        "let n = 0; const s = { toString: () => n++ ? 'http://longer/' : 'http://a/' }; return [new URL(s).href, n]",
    );
    assert_eq!(outcome["value"], json!(["http://a/", 1]), "{outcome:#}");
}

/// Bytes become base64 beside the heap, and all of it becomes JSON.
#[test]
fn v_851_content_of_one_call_is_no_longer_than_so_much() {
    for source in [
        "emit({ type: 'image', mimeType: 'a/b', data: new Uint8Array(2 ** 26 + 1).fill(1) })",
        "await fs.writeFile('/tmp/a', new Uint8Array(2 ** 26 + 1).fill(1))",
        "await fs.appendFile('/tmp/a', 'x'.repeat(2 ** 28))",
    ] {
        let outcome = bounded(source);
        let message = outcome["error"]["message"].as_str().unwrap_or_default();
        assert!(message.ends_with(" can be converted at once; do it in parts"), "{source}: {outcome:#}");
    }
}

/// A script can give a buffer another length, which V8 does not use.
#[test]
fn v_265_the_length_of_a_buffer_is_its_own() {
    for buffer in ["new ArrayBuffer(6e7)", "new DataView(new ArrayBuffer(6e7))"] {
        let outcome = bounded(&format!(
            "const b = {buffer}; Object.defineProperty(b, 'byteLength', {{ value: 1 }});
             return new TextDecoder('latin1').decode(b)"
        ));
        let message = outcome["error"]["message"].as_str().unwrap_or_default();
        assert!(message.ends_with(" can be converted at once; do it in parts"), "{buffer}: {outcome:#}");
    }
}

/// An earlier run never makes a later one fail, and nothing accumulates.
#[test]
fn v_260_memory_comes_back_under_steady_load() {
    let report = canary("const k = []; for (;;) k.push(new Array(1e5).fill(1.5))", ENOUGH, LIMIT);
    let one = report["settledMegabytes"].as_u64().unwrap();
    assert!(one <= report["beforeMegabytes"].as_u64().unwrap() + LEFT_OVER, "{report:#}");
}

/// Of each directory the host kept its path with all of its names.
#[test]
fn v_811_many_directories_below_a_path_of_many_names() {
    let outcome = bounded(
        "const deep = '/tmp/' + 'a/'.repeat(1900); await fs.mkdir(deep, { recursive: true });
         await fs.mkdir('/tmp/w'); for (let i = 0; i < 10000; i++) await fs.mkdir('/tmp/w/' + i);
         await fs.rename('/tmp/w', deep + 'w');
         return (await fs.readdir(deep + 'w', { recursive: true })).length",
    );
    assert_eq!(outcome["value"], 10_000, "{outcome:#}");
}

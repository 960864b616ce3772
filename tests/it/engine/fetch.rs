//! `fetch` of scripts, against web servers on loopback: what a grant permits, and what a granted host may send.

/// Which addresses a script may reach, also by redirects.
mod addresses;
/// The connections of requests: how many, and when they end.
mod connections;
/// Requests in records, plans, rules and recordings.
mod records;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{
    Approval, ApprovalRequest, CancellationToken, ErrorCode, ExecuteResult, Executor, Grants, Limits,
    Permissions, Script, ToolCallStatus, ToolErrorCode,
};
use serde_json::{Value, json};

use crate::support::http_host::{Asked, HttpHost, Reply};
use crate::support::{python, wait_until};

/// An executor that grants these hosts.
fn executor(hosts: &[&str]) -> Executor {
    let net = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let grants = Grants { net, ..Grants::default() };
    Executor::builder().grants(grants).cache_directory(crate::support::python_cache()).build().unwrap()
}

#[track_caller]
fn value(result: &ExecuteResult) -> Value {
    result.value().cloned().unwrap_or_else(|| panic!("{:#}", result.to_json()))
}

/// Runs the same script in both languages, and checks that both have the same outcome.
async fn twins(executor: &Executor, input: Value, typescript: &str, in_python: &str) -> Value {
    let first = value(&executor.run(Script::typescript(typescript).input(input.clone())).await.unwrap());
    let second = value(&executor.run(Script::python(in_python).input(input)).await.unwrap());
    assert_eq!(first, second, "the two languages differ");
    first
}

/// The code of the error of each address that a script fetches, in both languages; `null` for none.
async fn codes(executor: &Executor, urls: &[String]) -> Vec<Value> {
    let typescript = "const codes = [];
        for (const url of input) {
            try { await (await fetch(url)).text(); codes.push(null); }
            catch (error) {
                if (!(error instanceof TypeError)) throw error;
                codes.push(error.cause?.code ?? 'INVALID_ARGUMENTS');
            }
        }
        return codes";
    let in_python = "codes = []
for url in inputs:
    try:
        await (await fetch(url)).text()
        codes.append(None)
    except McpToolError as error:
        codes.append(error.code)
codes";
    let Value::Array(codes) = twins(executor, json!(urls), typescript, in_python).await else {
        unreachable!()
    };
    codes
}

/// Answers with the request.
fn echo(asked: &Asked) -> Reply {
    let headers: Vec<&(String, String)> =
        asked.headers.iter().filter(|(name, _)| name.starts_with("x-") || name == "content-type").collect();
    let body = String::from_utf8_lossy(&asked.body);
    let echoed = json!({ "method": asked.method, "path": asked.path, "headers": headers, "body": body });
    let type_header = ("content-type", "application/json".to_owned());
    Reply::Whole(
        201,
        vec![type_header, ("x-b", "1".to_owned()), ("x-b", "2".to_owned())],
        echoed.to_string().into(),
    )
}

#[tokio::test]
async fn both_languages_fetch_from_a_granted_host() {
    python().await;
    let host = HttpHost::start(echo);
    let executor = executor(&[&format!("127.0.0.1:{}", host.port)]);
    let typescript = "const response = await fetch(input + '/a?b=c#d', {
            method: 'post', headers: { 'X-A': ' 1 ', 'content-type': 'text/x' }, body: 'h\u{e9}',
        });
        const { status, ok, url } = response;
        const second = await fetch(input + '/', { method: 'POST', body: JSON.stringify({ a: [1] }),
            headers: [['content-type', 'application/json']] });
        const third = await fetch(new Request(input, { method: 'PUT', body: new Uint8Array([104, 105]) }));
        return [status, ok, url.endsWith('/a?b=c'), response.headers.get('X-B'), await response.json(),
            JSON.parse(await second.text()).body, (await third.bytes()).length > 20, third.redirected]";
    let in_python = "response = await fetch(inputs + '/a?b=c#d', method='post',
    headers={'X-A': ' 1 ', 'content-type': 'text/x'}, body='h\u{e9}')
second = fetch_sync(inputs + '/', json={'a': [1]})
third = await fetch(inputs, method='PUT', body=b'hi')
import json
[response.status, response.ok, response.url.endswith('/a?b=c'), response.headers['X-B'], await response.json(),
    json.loads(second.text())['body'].replace(' ', ''), len(await third.bytes()) > 20, third.redirected]";
    let result = twins(&executor, json!(host.url("")), typescript, in_python).await;
    let echoed = json!({
        "method": "POST", "path": "/a?b=c", "body": "h\u{e9}", "headers": [["x-a", "1"], ["content-type", "text/x"]],
    });
    assert_eq!(result, json!([201, true, true, "1, 2", echoed, "{\"a\":[1]}", true, false]));
}

#[tokio::test]
async fn redirect_modes_are_those_of_the_web() {
    python().await;
    let host = HttpHost::start(|asked| match &*asked.path {
        "/" => Reply::redirect(302, "/end"),
        _ => Reply::text("end"),
    });
    let executor = executor(&["127.0.0.1"]);
    let typescript = "const manual = await fetch(input, { redirect: 'manual' });
        let code;
        try { await fetch(input, { redirect: 'error' }) } catch (error) { code = error.cause.code }
        return [manual.status, manual.headers.get('location'), manual.ok, code]";
    let in_python = "manual = await fetch(inputs, redirect='manual')
try:
    await fetch(inputs, redirect='error')
except McpToolError as error:
    code = error.code
[manual.status, manual.headers['location'], manual.ok, code]";
    let found = twins(&executor, json!(host.url("/")), typescript, in_python).await;
    assert_eq!(found, json!([302, "/end", false, "NET_FAILED"]));
    let paths: Vec<String> = host.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, ["/"; 4]);
}

#[tokio::test]
async fn bodies_are_read_in_parts_and_back_pressure_reaches_the_host() {
    python().await;
    let host = HttpHost::start(|asked| match &*asked.path {
        "/endless" => Reply::Endless(vec![b'a'; 65_536], Duration::ZERO),
        _ => Reply::Whole(200, Vec::new(), (0..2_000_000).map(|number: u32| number as u8).collect()),
    });
    let executor = executor(&["127.0.0.1"]);
    let typescript = "const whole = await (await fetch(input + '/a')).bytes();
        let length = 0, sum = 0, parts = 0;
        for await (const part of (await fetch(input + '/a')).body) {
            length += part.length; parts++;
            for (const byte of part) sum += byte;
        }
        const endless = await fetch(input + '/endless');
        let taken = 0;
        for await (const part of endless.body) { taken += part.length; if (taken > 500_000) break; }
        return [whole.length, whole[257], length, sum, parts > 2, taken > 500_000]";
    let in_python = "whole = await (await fetch(inputs + '/a')).bytes()
length = total = parts = taken = 0
async for part in await fetch(inputs + '/a'):
    length += len(part); parts += 1; total += sum(part)
endless = await fetch(inputs + '/endless')
async for part in endless:
    taken += len(part)
    if taken > 500_000:
        break
await endless.aclose()
[len(whole), whole[257], length, total, parts > 2, taken > 500_000]";
    let found = twins(&executor, json!(host.url("")), typescript, in_python).await;
    let sum: u64 = (0..2_000_000_u32).map(|number| u64::from(number as u8)).sum();
    assert_eq!(found, json!([2_000_000, 1, 2_000_000, sum, true, true]));
    wait_until(|| host.open() == 0).await;
}

#[tokio::test]
async fn typescript_has_the_classes_of_the_web() {
    let host = HttpHost::start(|_| Reply::text("\u{feff}h\u{e9}llo"));
    let source = "const check = (condition, what) => { if (!condition) throw new Error(what) };
        const headers = new Headers({ b: '2', A: '1' });
        headers.append('a', '3'); headers.append('Set-Cookie', 'x'); headers.append('set-cookie', 'y');
        check(JSON.stringify([...headers]) ===
            '[[\"a\",\"1, 3\"],[\"b\",\"2\"],[\"set-cookie\",\"x\"],[\"set-cookie\",\"y\"]]', 'headers');
        check(headers.getSetCookie().length === 2 && headers.has('B') && headers.get('c') === null, 'get');
        for (const bad of [['a b', '1'], ['a', '1\\n2'], ['a', '\\u0100']]) {
            let refused = false;
            try { headers.set(...bad) } catch (error) { refused = error instanceof TypeError }
            check(refused, bad);
        }
        const response = await fetch(input);
        const copy = response.clone();
        check(await response.text() === 'h\u{e9}llo' && response.bodyUsed && !copy.bodyUsed, 'text');
        check((await copy.arrayBuffer()).byteLength === 9, 'arrayBuffer');
        try { await response.text(); check(false) } catch (error) { check(/already/.test(error.message), error) }
        let text = '';
        for await (const part of (await fetch(input)).body.pipeThrough(new TextDecoderStream())) text += part;
        check(text === 'h\u{e9}llo', text);
        const [one, two] = (await fetch(input)).body.tee();
        check((await new Response(one).text()) === (await new Response(two).text()), 'tee');
        const reader = (await fetch(input)).body.getReader({ mode: 'byob' });
        check((await reader.read(new Uint8Array(4))).value.length === 4, 'byob');
        await reader.cancel();
        const made = Response.json({ a: 1 }, { status: 202, headers: { c: 'd' } });
        check(made.status === 202 && made.headers.get('content-type') === 'application/json', 'json');
        check((await made.json()).a === 1, 'value');
        const request = new Request(input, { method: 'POST', body: new URLSearchParams({ a: 'b c' }) });
        check(request.headers.get('content-type').startsWith('application/x-www-form-urlencoded'), 'form');
        check(await request.clone().text() === 'a=b+c' && !request.bodyUsed, 'clone');
        check((await fetch(request)).ok, 'request');
        for (const bad of [{ a: 1 }, [1]]) {
            try { new Request(input, { method: 'POST', body: bad }); check(false) }
            catch (error) { check(/JSON.stringify/.test(error.message), error) }
        }
        for (const name of ['data', 'json', 'params', 'timeout']) {
            try { new Request(input, { [name]: 1 }); check(false) }
            catch (error) { check(error.message.includes(`fetch has no option`) && error.message.includes(name), error) }
        }
        check(new Request(input, { mode: 'cors', cache: 'no-store' }).method === 'GET', 'other options of the web');
        check((await fetch(input, { method: 'HEAD' })).body === null, 'head');
        return 'good'";
    let result =
        executor(&["127.0.0.1"]).run(Script::typescript(source).input(json!(host.url("/")))).await.unwrap();
    assert_eq!(value(&result), "good");
}

/// A stream of bytes takes no empty part.
#[tokio::test]
async fn a_body_of_no_bytes_is_a_stream_of_no_parts() {
    let host = HttpHost::start(|_| Reply::text(""));
    let source = "const found = [];
        const count = async (body) => { let parts = 0; for await (const _ of body) parts++; return parts };
        for (const make of [() => fetch(input), () => new Response(''), async () => (await fetch(input)).clone()]) {
            found.push(await count((await make()).body), await (await make()).text());
        }
        const { buffer } = await (await fetch(input)).bytes();
        buffer.transfer();
        return [...found, (await (await fetch(input)).clone().arrayBuffer()).byteLength]";
    let result =
        executor(&["127.0.0.1"]).run(Script::typescript(source).input(json!(host.url("/")))).await.unwrap();
    assert_eq!(value(&result), json!([0, "", 0, "", 0, "", 0]));
}

#[tokio::test]
async fn a_signal_ends_a_request_whose_body_does_not_come() {
    let host = HttpHost::start(|_| Reply::text("received"));
    let source = "const controller = new AbortController();
        const pull = () => { controller.abort(new Error('enough')); return new Promise(() => {}) };
        const body = new ReadableStream({ pull });
        try { await fetch(input, { method: 'POST', body, signal: controller.signal }) }
        catch (error) { return error.message }";
    let result =
        executor(&["127.0.0.1"]).run(Script::typescript(source).input(json!(host.url("/")))).await.unwrap();
    assert_eq!(value(&result), "enough");
    assert_eq!(host.asked().len(), 0);
}

/// Texts, files, names with characters that would end a header, and a field that looks like the end of the form.
#[tokio::test]
async fn forms_are_sent_in_parts() {
    let host = HttpHost::start(|_| Reply::text("received"));
    let script = r#"const form = new FormData();
        form.append('text', 'one\ntwo\r\nthree');
        form.append('a"b\r\nX-Injected: 1', 'x');
        form.append('file', new Uint8Array([0, 255, 10]), 'b"in\r\n.dat');
        form.append('end', '--cx-form-0--\r\n');
        form.append('gone', '1');
        form.append('gone', '2');
        form.delete('gone');
        form.append('set', '1');
        form.append('set', '2');
        form.set('set', '3');
        await (await fetch(input, { method: 'POST', body: form })).text();
        const request = new Request(input, { method: 'POST', body: form });
        const empty = new Request(input, { method: 'POST', body: new FormData() });
        let refused = null;
        try { form.append('a', 'text', 'name'); } catch (error) { refused = error.name; }
        return [
            [...form].length, [...form.keys()].join(), form.get('set'), form.getAll('set'), form.has('gone'),
            form.get('gone'), (await request.text()).length, await empty.text(), refused, `${form}`,
            JSON.parse(JSON.stringify(form))[2],
        ]"#;
    let executor = executor(&["127.0.0.1"]);
    let result = executor.run(Script::typescript(script).input(json!(host.url("/form")))).await.unwrap();
    let found = value(&result);
    assert_eq!(found[0], 5);
    assert_eq!(found[1], "text,a\"b\r\nX-Injected: 1,file,end,set");
    assert_eq!(
        found.as_array().unwrap()[2..6],
        [json!("3"), json!(["3"]), json!(false), Value::Null],
        "{found}"
    );
    assert_eq!(
        found.as_array().unwrap()[7..],
        [
            json!("--cx-form-0--\r\n"),
            json!("TypeError"),
            json!("[object FormData]"),
            json!(["file", "b\"in\r\n.dat (3 bytes)"])
        ],
        "{found}"
    );
    let asked = host.asked().remove(0);
    assert_eq!(asked.header("content-type"), Some("multipart/form-data; boundary=cx-form-1"));
    assert_eq!(asked.header("x-injected"), None);
    let part = |head: &str, body: &[u8]| {
        [b"--cx-form-1\r\nContent-Disposition: form-data; ", head.as_bytes(), b"\r\n\r\n", body, b"\r\n"]
            .concat()
    };
    let expected = [
        part("name=\"text\"", b"one\r\ntwo\r\nthree"),
        part("name=\"a%22b%0D%0AX-Injected: 1\"", b"x"),
        part(
            "name=\"file\"; filename=\"b%22in%0D%0A.dat\"\r\nContent-Type: application/octet-stream",
            &[0, 255, 10],
        ),
        part("name=\"end\"", b"--cx-form-0--\r\n"),
        part("name=\"set\"", b"3"),
        b"--cx-form-1--\r\n".to_vec(),
    ]
    .concat();
    assert_eq!(String::from_utf8_lossy(&asked.body), String::from_utf8_lossy(&expected));
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn requests_count_against_the_limits() {
    python().await;
    let host = HttpHost::start(|asked| match &*asked.path {
        "/large" => Reply::text("a".repeat(200_000)),
        _ => Reply::text("small"),
    });
    let executor = executor(&["127.0.0.1"]);
    let limits = Limits { tool_calls: 2, result_bytes: 100_000, argument_bytes: 1_000, ..Limits::default() };
    for (typescript, in_python, code) in [
        (
            "await (await fetch(input + '/large')).text()",
            "await (await fetch(inputs + '/large')).text()",
            "RESULT_TOO_LARGE",
        ),
        (
            "await fetch(input, { method: 'POST', body: 'a'.repeat(2_000) })",
            "await fetch(inputs, body='a' * 2_000)",
            "INVALID_ARGUMENTS",
        ),
        (
            "for (let n = 0; n < 3; n++) await fetch(input)",
            "for _ in range(3):\n    await fetch(inputs)",
            "MAX_TOOL_CALLS_EXCEEDED",
        ),
    ] {
        for script in [Script::typescript(typescript), Script::python(in_python)] {
            let result = executor.run(script.input(json!(host.url(""))).limits(limits)).await.unwrap();
            let error = result.error().unwrap();
            assert_eq!(error.tool_code.map(|code| code.to_string()).as_deref(), Some(code), "{error:?}");
        }
    }
}

/// A host that a person has granted is not trusted: what it sends is bounded, and other runs go on.
#[tokio::test]
async fn a_hostile_host_costs_its_own_run_only() {
    let host = HttpHost::start(|asked| match &*asked.path {
        "/headers" => {
            let many = (0..300).map(|_| ("x-a", "b".repeat(100))).collect();
            Reply::Whole(200, many, Vec::new())
        }
        "/header" => Reply::Whole(200, vec![("x-a", "b".repeat(1_000_000))], Vec::new()),
        "/endless" => Reply::Endless(vec![b'a'; 65_536], Duration::ZERO),
        _ => Reply::text("hello"),
    });
    let executor = executor(&["127.0.0.1"]);
    let source = "const codes = [];
        for (const path of ['/headers', '/header', '/endless']) {
            try { await (await fetch(input + path)).text(); codes.push(null) }
            catch (error) { codes.push(error.cause.code) }
        }
        return codes";
    let hostile = executor.run(Script::typescript(source).input(json!(host.url(""))));
    let honest = executor
        .run(Script::typescript("return await (await fetch(input)).text()").input(json!(host.url("/"))));
    let (hostile, honest) = tokio::join!(hostile, honest);
    assert_eq!(value(&hostile.unwrap()), json!(["NET_FAILED", "NET_FAILED", "RESULT_TOO_LARGE"]));
    assert_eq!(value(&honest.unwrap()), "hello");
    wait_until(|| host.open() == 0).await;
}

/// What the language's own functions refuse, those of the web refuse too.
#[tokio::test]
async fn v_755_bodies_and_options_have_the_bounds_of_the_language() {
    let source = "const found = [];
        const bytes = new Uint8Array(2 ** 21);
        bytes[Symbol.iterator] = undefined;
        for (const make of [
            () => new Response('['.repeat(2 ** 21)).json(),
            () => Response.json(bytes),
            () => new Headers(bytes),
            () => new Request('http://127.0.0.1/', bytes),
        ]) {
            try { await make(); found.push('nothing'); } catch (error) { found.push(error.name); }
        }
        return found";
    let result = executor(&["127.0.0.1"]).run(Script::typescript(source)).await.unwrap();
    assert_eq!(value(&result), json!(["RangeError", "RangeError", "RangeError", "RangeError"]));
}

/// An op copies its arguments before the host can look at the run's memory again: streams have the bounds of
/// `TextEncoder` and `TextDecoder`.
#[tokio::test]
async fn v_850_streams_of_text_convert_no_more_than_so_much() {
    let source = "const found = [];
        const encoded = (text) => {
            const { readable, writable } = new TextEncoderStream();
            writable.getWriter().write(text).catch(() => {});
            return readable.getReader().read();
        };
        found.push([...(await encoded('h\u{20ac}')).value]);
        const long = 'x'.repeat(2 ** 25 + 1), end = ' can be converted at once; do it in parts';
        for (const make of [() => encoded(long), () => new TextDecoderStream(long)]) {
            try { await make(); found.push('nothing'); }
            catch (error) { found.push([error.name, error.message.endsWith(end)]); }
        }
        return [...found, TextDecoderStream.name, new TextDecoderStream('latin1').encoding]";
    let result = executor(&["127.0.0.1"]).run(Script::typescript(source)).await.unwrap();
    let refused = json!(["RangeError", true]);
    assert_eq!(
        value(&result),
        json!([[104, 226, 130, 172], refused, refused, "TextDecoderStream", "windows-1252"])
    );
}

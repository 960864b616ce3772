//! `fetch` of scripts, against web servers on loopback: what a grant permits, and what a granted host may send.

use std::net::TcpListener;
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
async fn without_a_grant_there_is_no_fetch() {
    python().await;
    let alone = executor(&[]);
    let granted = executor(&["127.0.0.1"]);
    let nothing = Permissions { net: Some(Vec::new()), ..Permissions::default() };
    for (executor, permissions) in [(&alone, Permissions::default()), (&granted, nothing)] {
        let names = "typeof fetch + typeof Response + typeof ReadableStream + ('fetch' in globalThis)";
        let script = Script::typescript(format!("return {names}")).permissions(permissions.clone());
        assert_eq!(value(&executor.run(script).await.unwrap()), json!("undefinedundefinedundefinedfalse"));
        for script in
            [Script::typescript("await fetch('http://127.0.0.1/')"), Script::python("await fetch('a')")]
        {
            let result = executor.run(script.permissions(permissions.clone())).await.unwrap();
            let error = result.error().unwrap();
            assert_eq!(error.code, ErrorCode::RuntimeError);
            assert!(error.hint.as_ref().unwrap().contains("--allow-net HOST"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn every_spelling_of_a_private_address_is_refused_unless_it_is_granted() {
    python().await;
    let host = HttpHost::start(|_| Reply::text("hello"));
    let urls: Vec<String> = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "127.0.0.1.",
        "localhost",
        "localhost.",
        "LOCALHOST",
    ]
    .iter()
    .map(|spelling| format!("http://{spelling}:{}/", host.port))
    .collect();
    for grants in [&["*"][..], &["example.com"], &["10.0.0.1"], &["127.0.0.1:1", "localhost:1"]] {
        let codes = codes(&executor(grants), &urls).await;
        assert!(codes.iter().all(|code| code == "NET_DENIED"), "{grants:?}: {codes:?}");
    }
    assert_eq!(host.asked().len(), 0);
    let codes = codes(&executor(&["127.0.0.1", "localhost"]), &urls).await;
    assert!(codes.iter().filter(|code| code.is_null()).count() >= 9, "{codes:?}");
}

/// A run's permission for one host of a wildcard grant does not count as a host that a person has named.
#[tokio::test]
async fn a_run_cannot_turn_a_pattern_into_a_private_name() {
    let host = HttpHost::start(|_| Reply::text("hello"));
    let executor = executor(&["*"]);
    let asks = Permissions { net: Some(vec!["localhost".parse().unwrap()]), ..Permissions::default() };
    let source = "try { await fetch(input) } catch (error) { return error.cause.code }";
    let url = format!("http://localhost:{}/", host.port);
    let result = executor.run(Script::typescript(source).input(json!(url)).permissions(asks)).await.unwrap();
    assert_eq!(value(&result), "NET_DENIED");
    assert_eq!(host.asked().len(), 0);
}

#[tokio::test]
async fn addresses_that_no_script_may_ask_for() {
    python().await;
    let urls = [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://a:b@127.0.0.1/",
        "nonsense",
        "http://127.0.0.1:22/",
        "http://127.0.0.1:6667/",
        "http://169.254.9.9/latest",
        "http://[fe80::1]/",
        "http://0/",
        "http://10.0.0.1/",
        "http://224.0.0.1/",
    ];
    let codes = codes(&executor(&["127.0.0.1"]), &urls.map(str::to_owned)).await;
    let invalid = ["INVALID_ARGUMENTS"; 4];
    let denied = ["NET_DENIED"; 7];
    assert_eq!(json!(codes), json!([&invalid[..], &denied[..]].concat()));
}

#[tokio::test]
async fn errors_say_which_host_and_what_to_do() {
    python().await;
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let executor = executor(&["127.0.0.1"]);
    for (url, code, words) in [
        (
            "http://10.1.2.3/secret".to_owned(),
            ToolErrorCode::NetDenied,
            ["`10.1.2.3`", "--allow-net 10.1.2.3"],
        ),
        (
            "http://api.example.com/secret".to_owned(),
            ToolErrorCode::NetDenied,
            ["`api.example.com`", "grants.net"],
        ),
        (
            format!("http://127.0.0.1:{closed}/secret"),
            ToolErrorCode::NetFailed,
            ["127.0.0.1", "cannot be reached"],
        ),
    ] {
        for script in [Script::typescript("await fetch(input)"), Script::python("await fetch(inputs)")] {
            let result = executor.run(script.input(json!(url))).await.unwrap();
            let error = result.error().unwrap();
            assert_eq!(error.tool_code, Some(code), "{error:?}");
            assert!(words.iter().all(|words| error.message.contains(words)), "{}", error.message);
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
    }
}

#[tokio::test]
async fn a_redirect_is_checked_like_a_request() {
    python().await;
    let inner = HttpHost::start(|_| Reply::text("secret"));
    let target = inner.url("/a");
    let by_name = format!("http://localhost:{}/a", inner.port);
    let decimal = format!("http://2130706433:{}/a", inner.port);
    let outer = HttpHost::start(move |asked| match &*asked.path {
        "/address" => Reply::redirect(302, target.as_str()),
        "/name" => Reply::redirect(307, by_name.as_str()),
        "/decimal" => Reply::redirect(301, decimal.as_str()),
        "/metadata" => Reply::redirect(302, "http://169.254.9.9/latest/meta-data/"),
        "/file" => Reply::redirect(302, "file:///etc/passwd"),
        "/password" => Reply::redirect(302, "http://a:b@127.0.0.1/"),
        "/loop" => Reply::redirect(302, "/loop"),
        "/self" => Reply::redirect(308, "/end"),
        _ => Reply::text("end"),
    });
    let only_outer = executor(&[&format!("127.0.0.1:{}", outer.port)]);
    let urls = ["/address", "/name", "/decimal", "/metadata", "/file", "/password", "/loop", "/self"];
    let found = codes(&only_outer, &urls.map(|path| outer.url(path))).await;
    let expected = [
        "NET_DENIED",
        "NET_DENIED",
        "NET_DENIED",
        "NET_DENIED",
        "INVALID_ARGUMENTS",
        "INVALID_ARGUMENTS",
        "NET_FAILED",
    ];
    assert_eq!(found[..7], expected.map(Value::from));
    assert_eq!(found[7], Value::Null);
    assert_eq!(inner.asked().len(), 0, "a redirect has reached a host that is not granted");
    // The first request and twenty redirects, in each language.
    assert_eq!(outer.asked().iter().filter(|asked| asked.path == "/loop").count(), 42);
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    python().await;
    let other = HttpHost::start(|_| Reply::text("other"));
    let (target, own) = (other.url("/"), "/same".to_owned());
    let first = HttpHost::start(move |asked| match &*asked.path {
        "/elsewhere" => Reply::redirect(307, target.as_str()),
        "/here" => Reply::redirect(307, own.as_str()),
        _ => Reply::text("first"),
    });
    let executor = executor(&["127.0.0.1"]);
    let typescript =
        "const headers = { authorization: 'Bearer s', cookie: 'a=b', 'x-a': '1' }; const found = [];
        for (const url of input) {
            const response = await fetch(url, { method: 'POST', body: 'b', headers });
            found.push([await response.text(), response.redirected]);
        }
        return found";
    let in_python = "headers = {'authorization': 'Bearer s', 'cookie': 'a=b', 'x-a': '1'}
found = []
for url in inputs:
    response = await fetch(url, method='POST', body='b', headers=headers)
    found.append([await response.text(), response.redirected])
found";
    let input = json!([first.url("/elsewhere"), first.url("/here")]);
    let found = twins(&executor, input, typescript, in_python).await;
    assert_eq!(found, json!([["other", true], ["first", true]]));
    for asked in other.asked() {
        assert_eq!((asked.header("authorization"), asked.header("cookie")), (None, None));
        assert_eq!((asked.header("x-a"), &asked.body[..], &*asked.method), (Some("1"), &b"b"[..], "POST"));
    }
    let same: Vec<Asked> = first.asked().into_iter().filter(|asked| asked.path == "/same").collect();
    assert!(same.iter().all(|asked| asked.header("authorization") == Some("Bearer s")) && same.len() == 2);
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
async fn a_request_that_is_not_wanted_any_more_closes_its_connection() {
    python().await;
    let host = HttpHost::start(|asked| match &*asked.path {
        "/silent" => Reply::Silence,
        _ => Reply::Endless(b"a".to_vec(), Duration::from_millis(20)),
    });
    let executor = executor(&["127.0.0.1"]);
    let typescript = "const names = [];
        for (const path of ['/silent', '/body']) {
            try {
                const response = await fetch(input + path, { signal: AbortSignal.timeout(100) });
                await response.text();
            } catch (error) { names.push(error.name) }
        }
        const controller = new AbortController();
        setTimeout(() => controller.abort(new Error('mine')), 50);
        try { await fetch(input + '/silent', { signal: controller.signal }) } catch (error) { names.push(error.message) }
        try { await fetch(input, { signal: AbortSignal.abort() }) } catch (error) { names.push(error.name) }
        const kept = fetch(input + '/silent').catch((error) => error.cause.code);
        return names";
    // Only one may be open: a request that went on would make the next one wait.
    let limits = Limits { calls_in_flight: 1, ..Limits::default() };
    let script = Script::typescript(typescript).input(json!(host.url(""))).limits(limits);
    let result = executor.run(script).await.unwrap();
    assert_eq!(value(&result), json!(["TimeoutError", "TimeoutError", "mine", "AbortError"]));
    wait_until(|| host.open() == 0).await;
    let in_python = "import asyncio
codes = []
for path in ('/silent', '/body'):
    try:
        async with asyncio.timeout(0.1):
            await (await fetch(inputs + path)).text()
    except TimeoutError:
        codes.append('timeout')
    try:
        await (await fetch(inputs + path, timeout=0.1)).text()
    except McpToolError as error:
        codes.append(error.code)
task = asyncio.create_task(fetch(inputs + '/silent'))
await asyncio.sleep(0.05)
task.cancel()
try:
    await task
except asyncio.CancelledError:
    codes.append('cancelled')
codes";
    let script = Script::python(in_python).input(json!(host.url(""))).limits(limits);
    let result = executor.run(script).await.unwrap();
    assert_eq!(value(&result), json!(["timeout", "NET_TIMEOUT", "timeout", "NET_TIMEOUT", "cancelled"]));
    wait_until(|| host.open() == 0).await;
}

#[tokio::test]
async fn the_end_of_a_run_closes_its_connections() {
    python().await;
    let host = HttpHost::start(|asked| match &*asked.path {
        "/silent" => Reply::Silence,
        _ => Reply::Endless(b"a".to_vec(), Duration::from_millis(20)),
    });
    let executor = executor(&["127.0.0.1"]);
    let limits = Limits { wall_time: Duration::from_millis(600), ..Limits::default() };
    let typescript = "await Promise.all([...Array(10)].map(async (_, n) =>
        (await fetch(input + (n % 2 ? '/silent' : '/body'))).text()))";
    let in_python = "import asyncio
async def read(path):
    return await (await fetch(inputs + path)).text()
await asyncio.gather(*[read('/silent' if n % 2 else '/body') for n in range(10)])";
    for script in [Script::typescript(typescript), Script::python(in_python)] {
        let script = script.input(json!(host.url("")));
        // Ended by its limit.
        let result = executor.run(script.clone().limits(limits)).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Timeout);
        wait_until(|| host.open() == 0).await;
        // Ended by its caller.
        let token = CancellationToken::new();
        let run = executor.run(script.clone().cancel_with(token.clone()));
        let (result, ()) = tokio::join!(run, async {
            wait_until(|| host.open() == 10).await;
            token.cancel();
        });
        assert_eq!(result.unwrap().error().unwrap().code, ErrorCode::Cancelled);
        wait_until(|| host.open() == 0).await;
        // Its future is dropped.
        let run = tokio::time::timeout(Duration::from_millis(400), executor.run(script));
        run.await.unwrap_err();
        wait_until(|| host.open() == 0).await;
    }
}

#[tokio::test]
async fn thousands_of_requests_at_once_have_few_connections() {
    python().await;
    let host = HttpHost::start(|_| Reply::text("a".repeat(1_000)));
    let executor = executor(&["127.0.0.1"]);
    let limits = Limits {
        tool_calls: 0,
        wall_time: Duration::from_secs(60),
        // All of them are in flight at once.
        memory_bytes: 256 << 20,
        ..Limits::default()
    };
    let typescript =
        "const texts = await Promise.all([...Array(10_000)].map(async () => (await fetch(input)).text()));
        return [texts.length, texts.every((text) => text.length === 1_000)]";
    let in_python = "import asyncio
async def read():
    return await (await fetch(inputs)).text()
texts = await asyncio.gather(*[read() for _ in range(10_000)])
[len(texts), all(len(text) == 1_000 for text in texts)]";
    for script in [Script::typescript(typescript), Script::python(in_python)] {
        let result = executor.run(script.input(json!(host.url("/"))).limits(limits)).await.unwrap();
        assert_eq!(value(&result), json!([10_000, true]));
        assert_eq!(result.usage.tool_calls, 10_000);
    }
    assert!(host.most_open() <= 2 * limits.calls_in_flight as usize, "{} connections", host.most_open());
    assert_eq!(host.asked().len(), 20_000);
}

#[tokio::test]
async fn responses_that_are_not_read_do_not_stop_a_script_without_a_message() {
    python().await;
    let host = HttpHost::start(|asked| match &*asked.path {
        "/silent" => Reply::Silence,
        _ => Reply::Endless(vec![b'a'; 1_024], Duration::from_millis(10)),
    });
    let limits = Limits { calls_in_flight: 4, ..Limits::default() };
    // Nothing waits any more for the call of the aborted request.
    let typescript = "const kept = [];
        await fetch(`${input}silent`, { signal: AbortSignal.timeout(50) }).catch(() => {});
        try { for (let n = 0; n < 10; n++) kept.push(await fetch(input)); } catch (error) {
            return [kept.length, error.cause.code];
        }";
    let in_python = "kept = []
try:
    for _ in range(10):
        kept.append(await fetch(inputs))
except McpToolError as error:
    result = [len(kept), error.code]
result";
    for script in [Script::typescript(typescript), Script::python(in_python)] {
        let executor = executor(&["127.0.0.1"]);
        let result = executor.run(script.input(json!(host.url("/"))).limits(limits)).await.unwrap();
        assert_eq!(value(&result), json!([4, "QUEUE_FULL"]));
        wait_until(|| host.open() == 0).await;
    }
}

/// A script may wait for a tool for any time and read its responses afterwards.
#[tokio::test]
async fn a_request_waits_while_its_script_waits_for_a_tool() {
    let host = HttpHost::start(|_| Reply::Whole(200, Vec::new(), vec![b'a'; 4 << 20]));
    let limits = Limits { calls_in_flight: 4, ..Limits::default() };
    let slow = |_: Value| async {
        // This is longer than requests wait for responses that are not read.
        tokio::time::sleep(Duration::from_secs(4)).await;
        Ok::<_, String>("waited")
    };
    let net = vec!["127.0.0.1".parse().unwrap()];
    let grants = Grants { net, ..Grants::default() };
    let executor = Executor::builder().grants(grants).tool("slow.tool", Value::Null, slow).build().unwrap();
    let source = "const kept = await Promise.all([1, 2, 3, 4].map(() => fetch(input)));
        const other = fetch(input);
        other.catch(() => {});
        const waited = await tools.slow.tool({});
        const lengths = [];
        for (const response of kept) lengths.push((await response.arrayBuffer()).byteLength);
        return [waited, lengths, (await other).status]";
    let script = Script::typescript(source).input(json!(host.url("/"))).limits(limits);
    let result = executor.run(script).await.unwrap();
    let length = 4 << 20;
    assert_eq!(value(&result), json!(["waited", [length, length, length, length], 200]));
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

#[tokio::test]
async fn a_request_is_recorded_like_a_call_and_without_secrets() {
    let host = HttpHost::start(|_| Reply::text("hello"));
    let executor = executor(&["127.0.0.1"]);
    let source =
        "await fetch(input + '/secret-path?key=secret-key', { headers: { authorization: 'secret' } });
        try { await fetch('http://10.0.0.1/secret-path') } catch {}";
    let result = executor.run(Script::typescript(source).input(json!(host.url("")))).await.unwrap();
    let call = &result.tool_calls[0];
    assert_eq!((&*call.server, &*call.tool), ("fetch", &*format!("127.0.0.1:{}", host.port)));
    assert_eq!((call.status, result.tool_calls.len()), (ToolCallStatus::Ok, 1));
    assert_eq!((result.usage.tool_calls, result.usage.tool_calls_refused), (1, 1));
    assert!(!result.to_json_text().contains("secret"), "{}", result.to_json_text());
}

#[tokio::test]
async fn a_dry_run_plans_requests_and_sends_none() {
    python().await;
    let host = HttpHost::start(|_| Reply::text("hello"));
    let executor = executor(&["127.0.0.1"]);
    let typescript = "const response = await fetch(input + '/a', { method: 'POST', body: 'b' });
        let code;
        try { await fetch('http://10.0.0.1/') } catch (error) { code = error.cause.code }
        return [response.status, await response.json(), code]";
    let in_python = "response = await fetch(inputs + '/a', method='POST', body='b')
try:
    await fetch('http://10.0.0.1/')
except McpToolError as error:
    code = error.code
[response.status, await response.json(), code]";
    for script in [Script::typescript(typescript), Script::python(in_python)] {
        let result = executor.run(script.input(json!(host.url(""))).dry_run()).await.unwrap();
        assert_eq!(value(&result), json!([200, { "dry run": true }, "NET_DENIED"]));
        let planned = &result.planned_calls.as_ref().unwrap()[0];
        assert_eq!(planned.server, "fetch");
        let arguments: Value = serde_json::from_str(planned.arguments.text()).unwrap();
        assert_eq!(
            (&arguments["method"], &arguments["url"], &arguments["body"]),
            (&json!("POST"), &json!(host.url("/a")), &json!("b"))
        );
    }
    assert_eq!(host.asked().len(), 0);
}

#[tokio::test]
async fn rules_deny_hosts_and_ask_about_them() {
    let host = HttpHost::start(|_| Reply::text("hello"));
    let name = format!("127.0.0.1:{}", host.port);
    let grants = Grants { net: vec!["127.0.0.1".parse().unwrap()], ..Grants::default() };
    let source = "try { return await (await fetch(input, { method: 'POST', body: 'b' })).text() }
        catch (error) { return error.cause.code }";
    let script = || Script::typescript(source).input(json!(host.url("/a?b")));
    // A rule that names the host without a port holds for each of its ports, and in a dry run too.
    for rule in [format!("fetch.{name}"), "fetch.127.0.0.1".to_owned()] {
        let denying = Executor::builder().grants(grants.clone()).deny([rule]).build().unwrap();
        for script in [script(), script().dry_run()] {
            assert_eq!(value(&denying.run(script).await.unwrap()), "TOOL_DENIED");
        }
    }
    assert_eq!(host.asked().len(), 0);
    // A list of tools does not restrict hosts.
    let allowing = Executor::builder().grants(grants.clone()).allow(["files.*"]).build().unwrap();
    assert_eq!(value(&allowing.run(script()).await.unwrap()), "hello");
    let asked = Arc::new(AtomicUsize::new(0));
    let (counted, shown) = (Arc::clone(&asked), host.url("/a?b"));
    let approver = move |request: ApprovalRequest| {
        assert_eq!((&*request.server, &*request.tool), ("fetch", &*name));
        assert_eq!(request.arguments["url"], json!(shown));
        assert_eq!((&request.arguments["method"], &request.arguments["body"]), (&json!("POST"), &json!("b")));
        let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        async move { if is_first { Approval::Deny { reason: None } } else { Approval::Approve } }
    };
    let asking =
        |rule: &str| Executor::builder().grants(grants.clone()).ask([rule]).approver(approver.clone());
    let by_all = asking("fetch.*").build().unwrap();
    assert_eq!(value(&by_all.run(script()).await.unwrap()), "TOOL_DENIED");
    assert_eq!(host.asked().len(), 1);
    assert_eq!(value(&by_all.run(script()).await.unwrap()), "hello");
    let by_host = asking("fetch.127.0.0.1").build().unwrap();
    assert_eq!(value(&by_host.run(script()).await.unwrap()), "hello");
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_recording_plays_responses_back() {
    python().await;
    let host = HttpHost::start(|asked| match &*asked.path {
        "/large" => Reply::Whole(200, vec![("x-a", "1".to_owned())], vec![b'z'; 500_000]),
        _ => Reply::text("hello"),
    });
    let executor = executor(&["127.0.0.1"]);
    let typescript =
        "const texts = await Promise.all([1, 2, 3].map(async () => (await fetch(input)).text()));
        let length = 0;
        for await (const part of (await fetch(input + 'large')).body) length += part.length;
        let code;
        try { await fetch('http://10.0.0.1/') } catch (error) { code = error.cause.code }
        return [texts, length, code, (await fetch(input + 'large')).headers.get('x-a')]";
    let in_python = "import asyncio
async def read():
    return await (await fetch(inputs)).text()
texts = await asyncio.gather(read(), read(), read())
length = 0
async for part in await fetch(inputs + 'large'):
    length += len(part)
try:
    await fetch('http://10.0.0.1/')
except McpToolError as error:
    code = error.code
[texts, length, code, (await fetch(inputs + 'large')).headers['x-a']]";
    let expected = json!([["hello", "hello", "hello"], 500_000, "NET_DENIED", "1"]);
    // Without any grant.
    let alone = Executor::builder().cache_directory(crate::support::python_cache()).build().unwrap();
    for script in [Script::typescript(typescript), Script::python(in_python)] {
        let (result, recording) = executor.record(script.input(json!(host.url("/")))).await.unwrap();
        assert_eq!(value(&result), expected);
        let before = host.asked().len();
        let replay = alone.replay(&recording.unwrap()).await.unwrap();
        assert_eq!(value(&replay.result), expected);
        assert_eq!(host.asked().len(), before, "a replay has sent a request");
    }
}

/// The recording has text bodies as text, and masks headers like fields.
#[tokio::test]
async fn a_recording_has_no_secret_of_a_request() {
    python().await;
    let host = HttpHost::start(|asked| match &*asked.path {
        "/sign-in" => Reply::Whole(
            200,
            vec![("set-cookie", "id=sesam-open; Secure".to_owned())],
            json!({ "access_token": "grade A secret" }).to_string().into(),
        ),
        _ => {
            Reply::text(if asked.header("x-api-key") == Some("grade A secret") { "welcome" } else { "who?" })
        }
    });
    let executor = executor(&["127.0.0.1"]);
    let typescript = "
        const form = new URLSearchParams({ client_secret: input.password });
        const signedIn = await fetch(input.url + 'sign-in', { method: 'POST', body: form });
        const { access_token } = await signedIn.json();
        const answer = await fetch(input.url, { headers: { 'x-api-key': access_token } });
        return [signedIn.headers.get('set-cookie').length > 2, await answer.text()]";
    let in_python = "
signed_in = await fetch(inputs['url'] + 'sign-in', body='client_secret=' + inputs['password'])
access_token = (await signed_in.json())['access_token']
answer = await fetch(inputs['url'], headers={'x-api-key': access_token})
[len(signed_in.headers['set-cookie']) > 2, await answer.text()]";
    let alone = Executor::builder().cache_directory(crate::support::python_cache()).build().unwrap();
    for script in [Script::typescript(typescript), Script::python(in_python)] {
        let input = json!({ "url": host.url("/"), "password": "hunter22" });
        let (result, recording) = executor.record(script.input(input)).await.unwrap();
        assert_eq!(value(&result), json!([true, "welcome"]));
        let text = recording.unwrap().to_text();
        for secret in ["hunter22", "grade A secret", "sesam"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let replay = alone.replay(&cx::Recording::parse(&text).unwrap()).await.unwrap();
        assert_eq!(replay.difference, None);
        assert_eq!(value(&replay.result), json!([true, "welcome"]));
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

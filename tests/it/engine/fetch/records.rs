//! Requests in records, plans, rules and recordings.

use super::*;

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

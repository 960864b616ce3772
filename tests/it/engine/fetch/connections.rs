//! The connections of requests: how many, and when they end.

use super::*;

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
for no_time in (0, -1, float('nan'), '1'):
    try:
        await fetch(inputs + '/silent', timeout=no_time)
    except TypeError as error:
        assert '`timeout` must be a number of seconds above 0' in str(error), error
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
        wall_time: Duration::from_secs(300),
        cpu_time: Duration::from_secs(300),
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

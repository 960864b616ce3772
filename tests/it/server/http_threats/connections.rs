//! Connections and sessions without number, and clients that do not read.

use super::*;

/// The value of a gauge or a counter at `/metrics`.
fn metric(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics", &[]).body();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
}

/// When all sessions are in use, one more is refused with `Retry-After`, and the end of one frees its slot.
#[test]
fn three_hundred_sessions() {
    let server = Server::plain();
    let sessions: Vec<_> = (0..256).map(|_| server.session()).collect();
    for _ in 0..44 {
        let reply = server.initialize(&[], "2025-11-25", &json!({}));
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    }
    // Other clients are served meanwhile.
    let list = server.stateless("tools/list", json!({})).result();
    assert_eq!(list["tools"].as_array().unwrap().len(), 3);
    assert_eq!(sessions[7].delete(), 202);
    is_well(&server);
    assert_eq!(server.initialize(&[], "2025-11-25", &json!({})).status, 503);
    for session in [&sessions[0], &sessions[255]] {
        assert_eq!(session.run("return 1")["value"], 1);
    }
}

#[test]
fn v_332_unused_sessions_make_room_at_once() {
    let server = Server::start(Start::new().arguments(&["--metrics"]));
    let first = server.initialize(&[], "2025-11-25", &json!({}));
    let first = first.header("mcp-session-id").unwrap().to_owned();
    let used: Vec<_> = (0..20).map(|_| server.session()).collect();
    let listening = server.session();
    let mut stream = listening.listen();
    for _ in 0..400 {
        assert_eq!(server.initialize(&[], "2025-11-25", &json!({})).status, 200);
    }
    // An honest client is served, with all its requests.
    is_well(&server);
    let session = server.session();
    for _ in 0..400 {
        assert_eq!(server.initialize(&[], "2025-11-25", &json!({})).status, 200);
    }
    for session in used.iter().chain([&session, &listening]) {
        assert_eq!(session.run("return 1")["value"], 1);
    }
    assert_eq!(metric(&server, "cx_http_sessions"), 256);
    assert_eq!(metric(&server, "cx_http_evicted_total{kind=\"session\"}"), 1 + 20 + 1 + 802 - 256);
    // The oldest of them were evicted first, and the id of an ended session is refused.
    assert_eq!(server.send("DELETE", "/mcp", &[("Mcp-Session-Id", &first)], "").status, 404);
    assert_eq!(listening.delete(), 202);
    assert!(stream.next().is_none());
}

/// Whatever a client says of itself is kept as long as its session: 256 sessions could have a gigabyte of names.
#[test]
fn v_820_what_a_session_keeps_of_its_client_is_small() {
    let server = Server::plain();
    let begin = |name: &str, capabilities: &Value| {
        let client = json!({ "name": name, "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
        server.post(&[], &json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params }))
    };
    assert_eq!(begin(&"n".repeat(60 << 10), &json!({})).status, 200);
    let many = json!({ "experimental": { "x": { "y": vec![json!({ "": 0 }); 1_000] } } });
    for (name, capabilities, said) in [
        (&*"n".repeat(3 << 20), &json!({}), "the message's `params` has "),
        ("n", &many, "the `params` of `initialize` have more than "),
    ] {
        let refused = begin(name, capabilities);
        assert_eq!((refused.status, refused.header("mcp-session-id")), (400, None));
        let refused: Value = serde_json::from_str(&refused.body()).unwrap();
        assert_eq!(refused["id"], 7);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(said), "{message}");
    }
    is_well(&server);
}

/// Hundreds of notifications can wait for a client that does not read, and each has the token.
#[test]
fn v_823_a_progress_token_is_short() {
    let server = Server::plain();
    let session = server.session();
    let call = |token: &str| {
        let params = json!({
            "name": "executeTypescript", "arguments": { "code": "progress(1, 2); return 1" },
            "_meta": { "progressToken": token },
        });
        session.begin(3, "tools/call", params)
    };
    let token = "t".repeat(254);
    let mut told = call(&token);
    assert_eq!(told.next().unwrap()["params"]["progressToken"], token);
    assert_eq!(told.result()["structuredContent"]["value"], 1);
    let refused = call(&format!("{token}t"));
    assert_eq!(refused.status, 400);
    let error = refused.message()["error"]["message"].to_string();
    assert!(error.contains("the message's `progressToken` has 257 bytes; the maximum is 256"), "{error}");
}

/// Whether the server has closed a connection that it has written nothing to.
fn is_closed(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.peek(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn v_333_half_heads_make_room_for_heads() {
    let server = Server::start(Start::new().server("slow", &["hang-call"]).arguments(&["--metrics"]));
    let session = server.session();
    // These must not be evicted: a client that listens, and one that waits for an answer.
    let mut stream = session.listen();
    let hangs = "return await tools.slow.target({})";
    let caller = server.session();
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| caller.begin_run(1, hangs).result());
        wait_for(|| server.notes("slow").contains("executed target").then_some(()));
        let crowd = || {
            let began = Instant::now();
            let half_heads: Vec<_> = (0..600)
                .map(|_| {
                    let mut stream = server.connect();
                    // The server may already have closed it.
                    let _gone = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ");
                    stream
                })
                .collect();
            is_well(&server);
            let closed = wait_for(|| {
                let closed = half_heads.iter().filter(|stream| is_closed(stream)).count();
                (closed >= 600 - 512).then_some(closed)
            });
            let are_oldest_closed = half_heads[..80].iter().all(is_closed);
            let is_newest_closed = half_heads[500..].iter().any(is_closed);
            let open = metric(&server, "cx_http_connections");
            (began.elapsed(), closed, are_oldest_closed, is_newest_closed, open)
        };
        // They would time out after ten seconds, which is a different promise. A busy machine may need that long for
        // them: then others try.
        let mut crowds = std::iter::repeat_with(crowd).take(6);
        let in_time = crowds.find(|(took, ..)| *took < Duration::from_secs(10));
        let (_, closed, are_oldest_closed, is_newest_closed, open) =
            in_time.expect("they make room before they time out");
        // Some more may have been evicted for clients that connected meanwhile.
        assert!(closed < 150, "{closed}");
        assert!(are_oldest_closed && !is_newest_closed, "the oldest first");
        assert!(open <= 512, "{open}");
        assert_eq!(server.notes("slow").matches("cancelled").count(), 0);
        assert_eq!(caller.delete(), 202);
        assert_eq!(answer.join().unwrap()["structuredContent"]["error"]["code"], "CANCELLED");
    });
    assert_eq!(session.delete(), 202);
    assert!(stream.next().is_none());
}

/// Idle connections that their clients keep open are evicted too.
#[test]
fn v_334_kept_connections_make_room() {
    let server = Server::plain();
    let ask = |stream: &mut TcpStream| {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut reader = std::io::BufReader::new(stream);
        let mut length = 0;
        let mut line = String::new();
        while std::io::BufRead::read_line(&mut reader, &mut line).unwrap() > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        assert!(String::from_utf8(body).unwrap().contains("\"healthy\":true"));
    };
    let kept: Vec<_> = (0..560)
        .map(|_| {
            let mut stream = server.connect();
            ask(&mut stream);
            stream
        })
        .collect();
    is_well(&server);
    // They are closed while others are served.
    wait_within(Duration::from_secs(8), || kept[..48].iter().all(is_closed).then_some(()));
    assert!(!kept[512..].iter().any(is_closed));
    // A connection that was not evicted still works.
    let mut last = kept.last().unwrap().try_clone().unwrap();
    last.set_nonblocking(false).unwrap();
    ask(&mut last);
}

#[test]
fn too_many_connections_are_refused() {
    let server = Server::plain();
    let session = server.session();
    let is_sent_away = |stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let mut answer = [0; 12];
        let is_refused = matches!(stream.peek(&mut answer), Ok(12)) && answer.ends_with(b"503");
        is_refused || is_closed(stream)
    };
    let crowd = || {
        let began = Instant::now();
        // Incomplete requests are not evicted for others of the same peer while they may still arrive.
        let held: Vec<_> = (0..600).map(|_| begin_body(&server, 100)).collect();
        let gone = wait_for(|| {
            let gone = held.iter().filter(|stream| is_sent_away(stream)).count();
            (gone >= 88).then_some(gone)
        });
        // Requests that take too long are evicted, long before their own timeout.
        wait_for(|| {
            let mut stream = server.connect();
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .ok()?;
            (Reply::try_read(stream).ok()?.status == 200).then_some(())
        });
        (began.elapsed(), gone)
    };
    // That is thirty seconds, which a busy machine may need for so many: then others try.
    let mut crowds = std::iter::repeat_with(crowd).take(4);
    let in_time = crowds.find(|(took, _)| *took < Duration::from_secs(30));
    let (_, gone) = in_time.expect("room for another request before the time of requests is over");
    // Requests beyond the bound are answered already, and no others. A request whose head was not read yet may have
    // been evicted.
    assert!(gone <= 100, "{gone}");
    wait_for(|| (session.begin_run(1, "return 1").status == 200).then_some(()));
}

#[test]
fn a_client_that_disconnects_ends_its_run() {
    let server = Server::start(Start::new().server("slow", &["hang-call"]));
    let hangs = "return await tools.slow.target({})";
    let params = json!({ "name": "executeTypescript", "arguments": { "code": hangs } });
    let session = server.session_without_resumption();
    let running = || server.notes("slow").matches("executed target").count();
    let cancelled = || server.notes("slow").matches("cancelled").count();
    // In a session of an earlier revision, without one before and after the first message, and by ending the session.
    let reply = session.begin_run(1, hangs);
    wait_for(|| (running() == 1).then_some(()));
    drop(reply);
    wait_within(SOON, || (cancelled() == 1).then_some(()));
    let told = "await call_tool; console.log(1); return await tools.slow.target({})";
    for (number, source) in [(2, hangs), (3, told)] {
        let mut params = params.clone();
        params["arguments"]["code"] = source.into();
        params["_meta"] = crate::support::serve::meta(json!({ "io.modelcontextprotocol/logLevel": "debug" }));
        let headers = [
            JSON[0],
            JSON[1],
            ("Mcp-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "executeTypescript"),
        ];
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let mut stream = server.connect();
        write!(stream, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", message.len())
            .unwrap();
        for (name, value) in headers {
            write!(stream, "{name}: {value}\r\n").unwrap();
        }
        write!(stream, "\r\n{message}").unwrap();
        wait_for(|| (running() == number).then_some(()));
        drop(stream);
        wait_within(SOON, || (cancelled() == number).then_some(()));
    }
    let ending = server.session();
    let reply = ending.begin_run(1, hangs);
    wait_for(|| (running() == 4).then_some(()));
    assert_eq!(ending.delete(), 202);
    wait_within(SOON, || (cancelled() == 4).then_some(()));
    assert_eq!(reply.result()["structuredContent"]["error"]["code"], "CANCELLED");
    let health = server.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    assert_eq!(health["connectionPool"]["waiting"], 0, "{health}");
    assert_eq!(session.run("return 1")["value"], 1);
}

/// A client that reads nothing delays no request, not even its own.
#[test]
fn a_stream_that_is_not_read_holds_up_no_other() {
    let server = Server::plain();
    let session = server.session();
    assert_eq!(session.begin(1, "logging/setLevel", json!({ "level": "debug" })).message()["id"], 1);
    let flood = "for (let i = 0; i < 100_000; i++) console.log('x'.repeat(1_000)); return 'flooded'";
    let arguments = json!({ "code": flood, "timeoutMs": 120_000 });
    let unread =
        session.begin(1, "tools/call", json!({ "name": "executeTypescript", "arguments": arguments }));
    for _ in 0..3 {
        assert_eq!(session.run("return 1")["value"], 1);
    }
    let result = unread.result();
    assert_eq!(result["structuredContent"]["value"], "flooded", "{result}");
}

/// A connected client that never reads counts as gone, and its run ends.
#[test]
fn a_client_that_never_reads_loses_its_run() {
    let server = Server::start(Start::new().server("slow", &["hang-call"]));
    let session = server.session_without_resumption();
    assert_eq!(session.begin(1, "logging/setLevel", json!({ "level": "debug" })).message()["id"], 1);
    // More than the system buffers for a connection.
    let source = "void tools.slow.target({}).catch(() => {});
        for (;;) {
            for (let i = 0; i < 100; i++) console.log('x'.repeat(4_000));
            await new Promise((resolve) => setTimeout(resolve, 10));
        }";
    let arguments = json!({ "code": source, "timeoutMs": 300_000 });
    let _unread =
        session.begin(2, "tools/call", json!({ "name": "executeTypescript", "arguments": arguments }));
    wait_for(|| server.notes("slow").contains("executed target").then_some(()));
    wait_for(|| server.notes("slow").contains("cancelled").then_some(()));
    assert_eq!(session.run("return 1")["value"], 1);
}

//! Bodies and streams of events that do not end, end too early, or are no answer.

use super::*;

#[tokio::test]
async fn up_222_bodies_that_are_no_answer_end_the_call() {
    for (headers, body, words) in [
        ("Content-Type: text/html\r\n", "<html>error</html>", "text/html"),
        ("", "{}", "missing"),
        ("Content-Type: application/json\r\n", "<html>error</html>", "expected value"),
        ("Content-Type: application/json\r\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"resul", "EOF"),
        ("Content-Type: application/json\r\n", "", "EOF"),
        (
            "Content-Type: application/json\r\n",
            "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
            "does not answer",
        ),
        ("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "bomb", "compressed"),
    ] {
        let fake = Fake::with_call(move |_, mut stream| async move {
            respond(&mut stream, "200 OK", headers, body).await;
        })
        .await;
        let (running, _state) = connected(&fake.url).await;
        let error = call(&running).await.unwrap_err();
        assert_eq!(error.code, UNREADABLE_ANSWER, "{headers}{body}: {error}");
        assert!(error.message.contains(words), "{headers}{body}: {}", error.message);
    }
}

#[tokio::test]
async fn up_222_a_truncated_body_ends_the_call() {
    let fake = Fake::with_call(|_, mut stream| async move {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"id\"";
        let _gone = stream.write_all(head.as_bytes()).await;
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    let error = tool_error(&call(&running).await.unwrap_err()).unwrap();
    assert_eq!(error.code, ToolErrorCode::UpstreamUnavailable);
    assert!(error.message.contains("whether the call took effect is unknown"), "{}", error.message);
}

#[tokio::test]
async fn up_222_an_endless_body_is_cut_off() {
    let fake = Fake::with_call(|_, mut stream| async move {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\"";
        let _gone = stream.write_all(head.as_bytes()).await;
        let spaces = vec![b' '; 1024 * 1024];
        while stream.write_all(&spaces).await.is_ok() {}
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    assert_eq!(call(&running).await.unwrap_err().code, OVERSIZED_ANSWER);
}

#[tokio::test]
async fn up_222_a_body_that_trickles_ends_with_the_deadline() {
    let fake = Fake::with_call(|_, mut stream| async move {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
        let _gone = stream.write_all(head.as_bytes()).await;
        while stream.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let deadlines = Deadlines { request: Duration::from_secs(3), ..DEADLINES };
    let (running, _state) = connected_within(&fake.url, deadlines).await;
    let error = tool_error(&call(&running).await.unwrap_err()).unwrap();
    assert!(error.message.contains("did not answer within 3000 ms"), "{}", error.message);
}

#[tokio::test]
async fn up_223_a_dropped_stream_is_resumed_where_it_was_and_the_call_is_not_repeated() {
    let last = Arc::new(Mutex::new(None));
    let call_body = Arc::new(Mutex::new(Value::Null));
    let (seen, kept) = (Arc::clone(&last), Arc::clone(&call_body));
    let fake = Fake::start(move |asked, mut stream| {
        let (seen, kept) = (Arc::clone(&seen), Arc::clone(&kept));
        async move {
            match (asked.method.as_str(), asked.body["method"].as_str()) {
                (_, Some("initialize")) => json_body(&mut stream, &initialized(&asked)).await,
                (_, Some("tools/call")) => {
                    *kept.lock() = asked.body.clone();
                    begin_events(&mut stream).await;
                    let _gone = stream.write_all(b"retry: 1\nid: a\n\nid: e-7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n").await;
                }
                ("GET", _) if asked.header("last-event-id").is_some() => {
                    *seen.lock() = asked.header("last-event-id").map(str::to_owned);
                    begin_events(&mut stream).await;
                    let call = Asked { body: kept.lock().clone(), ..asked };
                    let event = format!("id: e-7\nid: e-8\ndata: {}\n\n", result(&call, "resumed"));
                    let _gone = stream.write_all(event.as_bytes()).await;
                }
                ("GET", _) => respond(&mut stream, "405 Method Not Allowed", "", "").await,
                _ => respond(&mut stream, "202 Accepted", "", "").await,
            }
        }
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    assert_eq!(call(&running).await.unwrap()["content"][0]["text"], "resumed");
    assert_eq!(last.lock().as_deref(), Some("e-7"));
    assert_eq!(fake.methods().iter().filter(|method| *method == "tools/call").count(), 1);
}

#[tokio::test]
async fn up_223_a_stream_that_always_drops_is_abandoned() {
    let fake = Fake::start(move |asked, mut stream| async move {
        match (asked.method.as_str(), asked.body["method"].as_str()) {
            (_, Some("initialize")) => json_body(&mut stream, &initialized(&asked)).await,
            ("GET", _) if asked.header("last-event-id").is_none() => {
                respond(&mut stream, "405 Method Not Allowed", "", "").await;
            }
            (_, Some("tools/call")) | ("GET", _) => {
                begin_events(&mut stream).await;
                let _gone = stream.write_all(b"retry: 0\nid: 1\ndata: {}\n\n").await;
            }
            _ => respond(&mut stream, "202 Accepted", "", "").await,
        }
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    let error = tool_error(&call(&running).await.unwrap_err()).unwrap();
    assert!(error.message.contains("broke off before it answered"), "{}", error.message);
    // Five resumptions, and the standalone stream that the client opens.
    assert_eq!(fake.asked.lock().iter().filter(|asked| asked.header("last-event-id").is_some()).count(), 5);
}

#[tokio::test]
async fn up_223_a_huge_event_and_a_flood_of_comments_end_the_call() {
    for (line, code) in [(&b"data: "[..], OVERSIZED_ANSWER), (b": comment\n\n", UNREADABLE_ANSWER)] {
        let fake = Fake::with_call(move |_, mut stream| async move {
            begin_events(&mut stream).await;
            let _gone = stream.write_all(b"data: ").await;
            let block = if code == OVERSIZED_ANSWER { vec![b'x'; 1 << 20] } else { line.repeat(1 << 17) };
            if code == UNREADABLE_ANSWER {
                let _gone = stream.write_all(b"\n\n").await;
            }
            while stream.write_all(&block).await.is_ok() {}
        })
        .await;
        // An unoptimised build needs some time for 68 MB.
        let deadlines = Deadlines { request: WATCHDOG, ..DEADLINES };
        let (running, _state) = connected_within(&fake.url, deadlines).await;
        let error = call(&running).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
    }
}

//! The older transport, and servers of other revisions of the protocol.

use super::*;

/// A server of revision 2024-11-05: a stream, and messages to the URL that it announces.
async fn older(endpoint: &'static str, posts_to_the_stream: &'static str) -> Fake {
    let sink: Arc<Mutex<Option<tokio::sync::mpsc::UnboundedSender<String>>>> = Arc::default();
    Fake::start(move |asked, mut stream| {
        let sink = Arc::clone(&sink);
        async move {
            match (asked.method.as_str(), asked.path.as_str()) {
                ("GET", "/mcp") => {
                    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
                    *sink.lock() = Some(sender);
                    begin_events(&mut stream).await;
                    let first = format!("event: endpoint\ndata: {endpoint}\n\n");
                    let _gone = stream.write_all(first.as_bytes()).await;
                    while let Some(text) = receiver.recv().await {
                        if text == "end" {
                            return;
                        }
                        let event = format!("event: message\ndata: {text}\n\n");
                        let _gone = stream.write_all(event.as_bytes()).await;
                    }
                }
                ("POST", "/mcp") => respond(&mut stream, posts_to_the_stream, "", "").await,
                ("POST", _) => {
                    respond(&mut stream, "202 Accepted", "", "Accepted").await;
                    let answer = match asked.body["method"].as_str() {
                        Some("initialize") => initialized(&asked),
                        Some("tools/call") if asked.body["params"]["name"] == "t" => result(&asked, "older"),
                        Some("tools/call") => "end".to_owned(),
                        _ => return,
                    };
                    let _gone = sink.lock().as_ref().unwrap().send(answer);
                }
                _ => respond(&mut stream, "400 Bad Request", "", "").await,
            }
        }
    })
    .await
}

#[tokio::test]
async fn the_older_transport_is_found_and_remembered() {
    for refusal in ["404 Not Found", "405 Method Not Allowed", "400 Bad Request"] {
        let fake = older("/messages?session=1", refusal).await;
        let server = McpServer::http("s", fake.url.clone());
        let McpTransport::Http(http) = &server.transport else { unreachable!() };
        let known = Arc::new(LastKind::default());
        for connection in 0..2 {
            let (wire, _state) = connect_transport(
                Arc::from("s"),
                http,
                None,
                Arc::clone(&known),
                Notifications::default(),
                DEADLINES,
            )
            .unwrap();
            let running = rmcp::serve_client(ClientConfig::default(), wire).await.unwrap();
            assert_eq!(call(&running).await.unwrap()["content"][0]["text"], "older");
            let tried = fake
                .asked
                .lock()
                .iter()
                .filter(|asked| asked.method == "POST" && asked.path == "/mcp")
                .count();
            assert_eq!(tried, 1, "{refusal}, connection {connection}");
        }
    }
}

#[tokio::test]
async fn the_older_transport_ends_with_its_stream() {
    let fake = older("/messages", "404 Not Found").await;
    let (running, state) = connected(&fake.url).await;
    let ended = timeout(WATCHDOG, call_tool(&running, CallToolRequestParams::new("end"))).await.unwrap();
    assert!(ended.is_err());
    assert_eq!(state.end_reason(), Some("closed the connection"));
}

#[tokio::test]
async fn messages_of_the_older_transport_stay_within_the_origin() {
    let other =
        Fake::start(|_, mut stream| async move { respond(&mut stream, "202 Accepted", "", "").await }).await;
    let endpoint: &'static str = Box::leak(other.url.to_string().into_boxed_str());
    let fake = older(endpoint, "404 Not Found").await;
    let mut server = McpServer::http("s", fake.url.clone());
    if let McpTransport::Http(http) = &mut server.transport {
        http.kind = HttpKind::Sse;
    }
    let error = connect(&server, DEADLINES).await.0.err().unwrap();
    assert!(error.message.contains("another origin"), "{}", error.message);
    assert!(other.asked.lock().is_empty());
}

#[tokio::test]
async fn a_newer_server_is_spoken_to_in_its_revision() {
    let fake = Fake::start(|asked, mut stream| async move {
        let id = asked.body["id"].clone();
        let body = match asked.body["method"].as_str() {
            Some("server/discover") => json!({ "jsonrpc": "2.0", "id": id, "result": {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "new", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
            } }),
            _ => json!({ "jsonrpc": "2.0", "id": id, "result": {
                "resultType": "complete", "content": [{ "type": "text", "text": "new" }],
            } }),
        };
        json_body(&mut stream, &body.to_string()).await;
    })
    .await;
    let (wire, _state) = transport(&McpServer::http("s", fake.url.clone()), DEADLINES).unwrap();
    let lifecycle = rmcp::service::ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let running =
        rmcp::service::serve_client_with_lifecycle(ClientConfig::default(), wire, lifecycle).await.unwrap();
    let answer = call(&running).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "new");
    let asked = fake.asked.lock();
    assert_eq!(asked[0].header("mcp-method"), Some("server/discover"));
    assert_eq!(asked[1].header("mcp-method"), Some("tools/call"));
    assert_eq!(asked[1].header("mcp-name"), Some("t"));
    assert_eq!(asked[1].header("mcp-protocol-version"), Some("2026-07-28"));
}

#[tokio::test]
async fn an_older_server_refuses_discovery_in_any_way_and_is_still_connected() {
    let refusals = [
        (
            "400 Bad Request",
            "Content-Type: application/json\r\n",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Server not initialized"}}"#,
        ),
        ("400 Bad Request", "", "no"),
        ("404 Not Found", "", "no"),
        (
            "200 OK",
            "Content-Type: application/json\r\n",
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#,
        ),
    ];
    for (status, headers, body) in refusals {
        let fake = Fake::start(move |asked, mut stream| async move {
            match asked.body["method"].as_str() {
                Some("server/discover") => respond(&mut stream, status, headers, body).await,
                Some("initialize") => json_body(&mut stream, &initialized(&asked)).await,
                Some(_) => respond(&mut stream, "202 Accepted", "", "").await,
                None => respond(&mut stream, "405 Method Not Allowed", "", "").await,
            }
        })
        .await;
        let (wire, _state) = transport(&McpServer::http("s", fake.url.clone()), DEADLINES).unwrap();
        let lifecycle = rmcp::service::ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let running =
            rmcp::service::serve_client_with_lifecycle(ClientConfig::default(), wire, lifecycle).await;
        assert!(running.is_ok(), "{status} {body}: {:?}", running.err());
    }
}

/// Threat 825. Later requests repeat the version that the server names, in a header or in their `_meta`.
#[tokio::test]
async fn v_825_a_protocol_version_is_short() {
    let long = "1".repeat(65);
    for (version, is_taken) in
        [("1.0", true), (&long[..64], true), (&*long, false), ("2025-06-18\u{1b}[31m", false)]
    {
        let named = version.to_owned();
        let fake = Fake::start(move |asked, mut stream| {
            let mut answer: Value = serde_json::from_str(&initialized(&asked)).unwrap();
            answer["result"]["protocolVersion"] = named.as_str().into();
            async move {
                match asked.body["method"].as_str() {
                    Some("initialize") => json_body(&mut stream, &answer.to_string()).await,
                    Some(_) => respond(&mut stream, "202 Accepted", "", "").await,
                    None => respond(&mut stream, "405 Method Not Allowed", "", "").await,
                }
            }
        })
        .await;
        let (running, _state) = connect(&McpServer::http("s", fake.url.clone()), DEADLINES).await;
        assert_eq!(running.is_ok(), is_taken, "{version}");
    }
}

//! Ids of sessions.

use super::*;

#[tokio::test]
async fn up_225_session_ids_that_are_none_are_refused() {
    for id in ["a b".to_owned(), "x".repeat(1025), String::new(), "\u{e9}".to_owned()] {
        let shown = id.chars().take(8).collect::<String>();
        let fake = Fake::start(move |asked, mut stream| {
            let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {id}\r\n");
            async move { respond(&mut stream, "200 OK", &headers, &initialized(&asked)).await }
        })
        .await;
        let (running, _state) = connect(&McpServer::http("s", fake.url.clone()), DEADLINES).await;
        assert!(running.is_err(), "{shown}");
    }
}

#[tokio::test]
async fn up_225_a_session_id_does_not_change_afterwards() {
    let fake = Fake::with_call(|asked, mut stream| async move {
        let headers = "Content-Type: application/json\r\nMcp-Session-Id: other\r\n";
        respond(&mut stream, "200 OK", headers, &result(&asked, "x")).await;
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    call(&running).await.unwrap();
    call(&running).await.unwrap();
    let asked = fake.asked.lock();
    assert_eq!(asked.last().unwrap().header("mcp-session-id"), Some("s-1"));
}

/// Threat 655. The error of a tool has the word by which some servers say that they have lost a session.
#[tokio::test]
async fn v_655_the_words_of_an_error_end_no_session() {
    for (pinged, is_gone) in
        [("200 OK", false), ("500 Internal Server Error", false), ("400 Bad Request", true)]
    {
        let fake = Fake::start(move |asked, mut stream| async move {
            let headers = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";
            match asked.body["method"].as_str() {
                Some("initialize") => respond(&mut stream, "200 OK", headers, &initialized(&asked)).await,
                Some("ping") => {
                    let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": {} });
                    respond(&mut stream, pinged, headers, &answer.to_string()).await;
                }
                Some("tools/call") => {
                    let error =
                        json!({ "code": -32000, "message": "cannot pay: the checkout session has expired" });
                    let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
                    respond(&mut stream, "400 Bad Request", headers, &answer.to_string()).await;
                }
                Some(_) => respond(&mut stream, "202 Accepted", "", "").await,
                None => respond(&mut stream, "405 Method Not Allowed", "", "").await,
            }
        })
        .await;
        let (running, state) = connected(&fake.url).await;
        let error = call(&running).await.unwrap_err();
        assert_eq!(error.message.contains("did not run"), is_gone, "{pinged}: {}", error.message);
        assert_eq!(error.message.contains("cannot pay"), !is_gone, "{pinged}: {}", error.message);
        if is_gone {
            timeout(WATCHDOG, state.ended.cancelled()).await.unwrap();
        }
        assert_eq!(state.end_reason(), is_gone.then_some("ended the session"), "{pinged}");
        let asked = fake.asked.lock();
        let of_method =
            |name: &str| asked.iter().filter(|asked| asked.body["method"] == name).collect::<Vec<_>>();
        assert_eq!((of_method("tools/call").len(), of_method("ping").len()), (1, 1), "{pinged}");
        assert_eq!(of_method("ping")[0].header("mcp-session-id"), Some("s-1"));
    }
}

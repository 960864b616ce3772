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
        let (running, _state) = connect(&McpServer::http("s", fake.url.clone())).await;
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

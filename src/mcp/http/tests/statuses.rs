//! Statuses, lost sessions and redirects.

use super::*;

#[tokio::test]
async fn up_221_statuses_are_told_apart() {
    use ToolErrorCode::{RateLimited, UpstreamProtocol, UpstreamUnavailable};
    for (status, headers, code, words, seconds) in [
        ("401 Unauthorized", "", UpstreamUnavailable, "cx auth login s", None),
        ("403 Forbidden", "", UpstreamUnavailable, "refuses this client", None),
        (
            "403 Forbidden",
            "WWW-Authenticate: Bearer error=\"insufficient_scope\"\r\n",
            UpstreamUnavailable,
            "cx auth login s",
            None,
        ),
        ("404 Not Found", "", UpstreamUnavailable, "ended the session", None),
        ("405 Method Not Allowed", "", UpstreamUnavailable, "`url`", None),
        ("408 Request Timeout", "", UpstreamUnavailable, "408", None),
        ("409 Conflict", "", UpstreamUnavailable, "409", None),
        ("418 I'm a teapot", "", UpstreamProtocol, "418", None),
        ("429 Too Many Requests", "", RateLimited, "429", None),
        ("429 Too Many Requests", "Retry-After: 7\r\n", RateLimited, "429", Some(7)),
        ("429 Too Many Requests", "Retry-After: -5\r\n", RateLimited, "429", Some(0)),
        ("429 Too Many Requests", "Retry-After: 99999999999999\r\n", RateLimited, "429", Some(60)),
        (
            "429 Too Many Requests",
            "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            RateLimited,
            "429",
            Some(0),
        ),
        (
            "503 Service Unavailable",
            "Retry-After: Tue, 31 Dec 2999 23:59:59 GMT\r\n",
            UpstreamUnavailable,
            "503",
            Some(60),
        ),
        ("503 Service Unavailable", "Retry-After: soon\r\n", UpstreamUnavailable, "503", None),
        ("500 Internal Server Error", "", UpstreamUnavailable, "500", None),
        ("502 Bad Gateway", "", UpstreamUnavailable, "502", None),
    ] {
        let error = failure_of(status, headers).await;
        assert_eq!(error.code, code, "{status}");
        assert!(error.message.contains(words), "{status}: {}", error.message);
        assert_eq!(error.retry_after, seconds.map(Duration::from_secs), "{status} {headers}");
    }
}

#[tokio::test]
async fn up_221_no_content_is_no_answer() {
    let fake =
        Fake::with_call(|_, mut stream| async move { respond(&mut stream, "204 No Content", "", "").await })
            .await;
    let (running, _state) = connected(&fake.url).await;
    assert_eq!(call(&running).await.unwrap_err().code, UNREADABLE_ANSWER);
}

#[tokio::test]
async fn up_221_a_lost_session_ends_the_connection_and_sends_nothing_again() {
    let fake =
        Fake::with_call(|_, mut stream| async move { respond(&mut stream, "404 Not Found", "", "").await })
            .await;
    let (running, state) = connected(&fake.url).await;
    call(&running).await.unwrap_err();
    timeout(WATCHDOG, state.ended.cancelled()).await.unwrap();
    assert_eq!(state.end_reason(), Some("ended the session"));
    assert_eq!(fake.methods().iter().filter(|method| *method == "tools/call").count(), 1);
}

#[tokio::test]
async fn up_221_credentials_do_not_cross_origins() {
    let other =
        Fake::start(|_, mut stream| async move { respond(&mut stream, "200 OK", "", "").await }).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let target = other.url.clone();
        let fake = Fake::start(move |_, mut stream| {
            let location = format!("Location: {target}\r\n");
            async move { respond(&mut stream, status, &location, "").await }
        })
        .await;
        let server = McpServer::http("s", fake.url.clone()).header("Authorization", "Bearer secret");
        let error = connect(&server, DEADLINES).await.0.err().unwrap();
        assert_eq!(error.code, ToolErrorCode::UpstreamProtocol, "{status}");
        assert!(error.message.contains("redirects to"), "{status}: {}", error.message);
        assert!(!error.message.contains("secret"), "{}", error.message);
    }
    assert!(other.asked.lock().is_empty());
}

#[tokio::test]
async fn up_221_redirects_within_the_origin_end() {
    let fake = Fake::start(|asked, mut stream| async move {
        let location = format!("Location: {}x\r\n", asked.path);
        respond(&mut stream, "307 Temporary Redirect", &location, "").await;
    })
    .await;
    let error = start_error(&fake.url).await;
    assert!(error.message.contains("in circles"), "{}", error.message);
    assert_eq!(fake.asked.lock().len(), 4);
}

#[tokio::test]
async fn up_221_a_redirect_within_the_origin_is_followed() {
    let fake = Fake::start(|asked, mut stream| async move {
        match (asked.path.as_str(), asked.body["method"].as_str()) {
            ("/mcp", _) => respond(&mut stream, "307 Temporary Redirect", "Location: /new\r\n", "").await,
            (_, Some("initialize")) => json_body(&mut stream, &initialized(&asked)).await,
            _ => respond(&mut stream, "202 Accepted", "", "").await,
        }
    })
    .await;
    connected(&fake.url).await;
    assert!(fake.asked.lock().iter().any(|asked| asked.path == "/new" && asked.method == "POST"));
}

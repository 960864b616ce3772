//! Requests that go on without their connection, and streams that are resumed.

use std::time::Instant;

use futures::FutureExt as _;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::transport::Transport as _;
use serde_json::json;
use tokio::task::unconstrained;

use super::*;
use crate::server::http::session::SessionStream;
use crate::server::http::streams::{GRACE, MAX_AWAY};

/// A session whose client has a revision with streams that can be resumed.
async fn resumable(sessions: &Sessions) -> (SessionId, SessionTransport) {
    let (id, transport) = create(sessions).await.unwrap();
    sessions.session(&id).unwrap().streams.lock().are_resumable = true;
    (id, transport)
}

fn ping() -> ClientJsonRpcMessage {
    serde_json::from_value(json!({ "jsonrpc": "2.0", "id": "mine", "method": "ping" })).unwrap()
}

fn answer(number: i64) -> ServerJsonRpcMessage {
    serde_json::from_value(json!({ "jsonrpc": "2.0", "id": number, "result": {} })).unwrap()
}

async fn begin_with(
    sessions: &Sessions,
    id: &SessionId,
    token: Option<&Arc<AcceptedToken>>,
) -> SessionStream {
    sessions.session(id).unwrap().begin(ping(), token.cloned()).await.unwrap()
}

/// Begins a request, whose client then knows an event of its stream.
async fn begin(sessions: &Sessions, id: &SessionId) -> SessionStream {
    let mut stream = begin_with(sessions, id, None).await;
    let first = stream.next().now_or_never().unwrap().unwrap();
    assert!(first.event_id.is_some() && first.message.is_none() && first.retry.is_some());
    stream
}

fn resume(sessions: &Sessions, id: &SessionId, event: &str) -> Option<SessionStream> {
    sessions.session(id).unwrap().resume(event, None, None).ok()
}

/// The requests that rmcp was told to cancel.
fn cancelled(transport: &mut SessionTransport) -> Vec<i64> {
    let mut numbers = Vec::new();
    // tokio would let it wait after some messages.
    while let Some(Some(message)) = unconstrained(transport.receive()).now_or_never() {
        if let JsonRpcMessage::Notification(notification) = message
            && let ClientNotification::CancelledNotification(cancel) = notification.notification
            && let Some(RequestId::Number(number)) = cancel.params.request_id
        {
            numbers.push(number);
        }
    }
    numbers
}

/// Makes it look as if the clients had been away for this long, and ends what has to end then.
fn expire_after(sessions: &Sessions, id: &SessionId, time: Duration) {
    {
        let session = sessions.session(id).unwrap();
        let mut streams = session.streams.lock();
        let since = Instant::now().checked_sub(time).unwrap();
        for away in streams.requests.values_mut().filter_map(|stream| stream.away.as_mut()) {
            away.since = since;
        }
        for stream in &mut streams.ended {
            stream.since = since;
        }
    }
    sessions.expire();
}

#[tokio::test]
async fn a_request_ends_when_its_client_has_been_away_for_too_long() {
    let sessions = sessions(2);
    let (id, mut transport) = resumable(&sessions).await;
    drop(begin(&sessions, &id).await);
    expire_after(&sessions, &id, GRACE / 2);
    let back = resume(&sessions, &id, "1-0");
    assert!(back.is_some());
    // Its client is not away now.
    expire_after(&sessions, &id, GRACE);
    assert!(cancelled(&mut transport).is_empty());
    drop(back);
    expire_after(&sessions, &id, GRACE);
    assert_eq!(cancelled(&mut transport), [1_i64]);
    assert!(resume(&sessions, &id, "1-0").is_none());
}

#[tokio::test]
async fn an_answer_is_kept_for_a_client_that_comes_back() {
    let sessions = sessions(2);
    let (id, mut transport) = resumable(&sessions).await;
    drop(begin(&sessions, &id).await);
    transport.send(answer(1)).await.unwrap();
    let mut back = resume(&sessions, &id, "1-0").unwrap();
    assert!(back.next().await.unwrap().message.is_none());
    let event = back.next().await.unwrap();
    assert_eq!(event.event_id.as_deref(), Some("1-1"));
    let message = event.message.unwrap();
    let JsonRpcMessage::Response(response) = &*message else { panic!("{message:?}") };
    assert_eq!(response.id, RequestId::String("mine".into()));
    assert!(back.next().await.is_none());
    drop(back);
    // It may not have received that.
    expire_after(&sessions, &id, GRACE / 2);
    assert!(resume(&sessions, &id, "1-0").is_some());
    expire_after(&sessions, &id, GRACE);
    assert!(resume(&sessions, &id, "1-0").is_none());
    assert!(cancelled(&mut transport).is_empty());
}

#[tokio::test]
async fn a_request_is_cancelled_while_its_client_is_away() {
    let sessions = sessions(2);
    let (id, mut transport) = resumable(&sessions).await;
    drop(begin(&sessions, &id).await);
    let params = json!({ "requestId": "mine" });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    sessions.accept_message(&id, serde_json::from_value(cancel).unwrap()).await.unwrap();
    assert_eq!(cancelled(&mut transport), [1_i64]);
    let resumed = sessions.session(&id).unwrap().resume("1-0", None, None);
    assert_eq!(resumed.err(), Some(NotResumed::Complete));
}

/// So does one whose client cannot know an event of its stream.
#[tokio::test]
async fn a_request_of_an_earlier_revision_ends_with_its_connection() {
    let sessions = sessions(2);
    let (id, mut transport) = create(&sessions).await.unwrap();
    let mut stream = begin_with(&sessions, &id, None).await;
    assert!(stream.next().now_or_never().is_none(), "its client cannot read an event without a message");
    drop(stream);
    assert_eq!(cancelled(&mut transport), [1_i64]);
    let (id, mut transport) = resumable(&sessions).await;
    drop(begin_with(&sessions, &id, None).await);
    assert_eq!(cancelled(&mut transport), [1_i64]);
}

#[tokio::test]
async fn the_revision_says_whether_streams_can_be_resumed() {
    let sessions = sessions(4);
    for (version, is_resumable) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let (id, mut transport) = create(&sessions).await.unwrap();
        let program = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": program });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let result = json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": program });
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        let answering = async {
            transport.receive().await.unwrap();
            transport.send(serde_json::from_value(answer).unwrap()).await.unwrap();
        };
        let beginning = sessions.initialize_session(&id, serde_json::from_value(message).unwrap());
        let (begun, ()) = tokio::join!(beginning, answering);
        begun.unwrap();
        assert_eq!(sessions.session(&id).unwrap().streams.lock().are_resumable, is_resumable, "{version}");
    }
}

#[tokio::test]
async fn v_860_few_requests_go_on_without_a_connection() {
    let sessions = sessions(64);
    let (id, mut transport) = resumable(&sessions).await;
    for _ in 0..MAX_AWAY + 2 {
        drop(begin(&sessions, &id).await);
    }
    let first = i64::try_from(MAX_AWAY).unwrap() + 1;
    assert_eq!(cancelled(&mut transport), [first, first + 1]);
    // As many as there are connections, in all sessions together.
    let mut others = Vec::new();
    for _ in 1..512 / MAX_AWAY {
        let (id, mut transport) = resumable(&sessions).await;
        for _ in 0..MAX_AWAY {
            drop(begin(&sessions, &id).await);
        }
        assert!(cancelled(&mut transport).is_empty());
        others.push(transport);
    }
    let (last, mut of_last) = resumable(&sessions).await;
    drop(begin(&sessions, &last).await);
    assert_eq!(cancelled(&mut of_last), [1_i64]);
    // A client that comes back leaves its place to another one.
    let back = resume(&sessions, &id, "1-0");
    assert!(back.is_some());
    drop(begin(&sessions, &last).await);
    assert!(cancelled(&mut of_last).is_empty());
}

#[tokio::test]
async fn v_862_a_stream_is_resumed_in_its_session_and_with_its_token() {
    let sessions = sessions(4);
    let (id, _transport) = resumable(&sessions).await;
    let (other, _other_transport) = resumable(&sessions).await;
    let [own, foreign] = ["first", "second"].map(|token| {
        let token = HttpToken::new(token).unwrap();
        AcceptedToken::of_tenant(HttpTenant::new("a", token).unwrap())
    });
    let mut stream = begin_with(&sessions, &id, Some(&own)).await;
    assert!(stream.next().await.is_some());
    drop(stream);
    let resume = |id: &SessionId, event: &str, token: Option<&Arc<AcceptedToken>>| {
        sessions.session(id).unwrap().resume(event, token, None).is_ok()
    };
    assert!(!resume(&id, "1-0", None) && !resume(&id, "1-0", Some(&foreign)));
    assert!(!resume(&other, "1-0", Some(&own)));
    for event in ["", "-", "1", "1-", "-0", "1-1", "2-0", "0-0", "1-0-0", "a-b", "9223372036854775808-0"] {
        assert!(!resume(&id, event, Some(&own)), "{event}");
    }
    assert!(resume(&id, "1-0", Some(&own)));
}

#[tokio::test]
async fn v_864_calls_without_a_connection_keep_no_other_peer_out() {
    let sessions = sessions(4);
    let [flood, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|a| PeerKey::from(IpAddr::from(a)));
    let (mut streams, mut calls, mut transports) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..4 {
        let (id, transport) = by(&sessions, flood, resumable(&sessions)).await;
        streams.push(begin(&sessions, &id).await);
        calls.push(sessions.session(&id).unwrap().mcp.calls.begin());
        transports.push((id, transport));
    }
    let refused = by(&sessions, other, sessions.create_session()).await.err();
    assert!(matches!(refused, Some(SessionError::TooMany)), "their clients wait: {refused:?}");
    drop(streams);
    let tasks: Vec<_> =
        transports.iter().map(|(id, _)| sessions.session(id).unwrap().mcp.calls.begin()).collect();
    let refused = by(&sessions, other, sessions.create_session()).await.err();
    assert!(matches!(refused, Some(SessionError::TooMany)), "a task needs no connection: {refused:?}");
    drop(tasks);
    assert!(by(&sessions, other, sessions.create_session()).await.is_ok());
    assert!(!sessions.knows(&transports[0].0), "the oldest");
}

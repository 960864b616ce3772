//! Bounds of sessions.

use std::net::IpAddr;

use super::*;
use crate::executor::Executor;
use crate::server::ServerOptions;

fn sessions(most: usize) -> Sessions {
    let shared = Shared::new(Executor::builder().build().unwrap(), ServerOptions::default());
    let bounds = SessionBounds { most, idle: Duration::from_secs(600) };
    Sessions::new(Arc::new(shared), bounds, CancellationToken::new(), Arc::default())
}

/// Makes a session look as if it had been idle for this long.
fn age(sessions: &Sessions, id: &SessionId, by: Duration) {
    let session = sessions.session(id).unwrap();
    let mut streams = session.streams.lock();
    streams.used = streams.used.checked_sub(by).unwrap();
}

/// A session whose client has sent more than its first request.
async fn used(sessions: &Sessions) -> SessionId {
    let (id, _transport) = sessions.create_session().await.unwrap();
    // What the second message of a client sets.
    sessions.session(&id).unwrap().streams.lock().is_used = true;
    id
}

/// A peer that holds all sessions, in any state, cannot keep other peers out; and only that peer
/// loses sessions.
#[tokio::test]
async fn v_335_each_peer_has_a_share_of_the_sessions() {
    let sessions = sessions(8);
    let [flood, other, third] =
        [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3]].map(|a| PeerKey::from(IpAddr::from(a)));
    let honest = PEER.scope(other, used(&sessions)).await;
    let fresh = PEER.scope(other, sessions.create_session()).await.unwrap().0;
    let mut listening = Vec::new();
    for _ in 0..6 {
        let id = PEER.scope(flood, used(&sessions)).await;
        listening.push((sessions.create_standalone_stream(&id).await.unwrap(), id));
    }
    // The flooding peer gets no more than it can have. New sessions of others are not evicted for
    // it.
    assert!(PEER.scope(flood, sessions.create_session()).await.is_err());
    assert!(sessions.knows(&fresh) && sessions.knows(&honest));
    sessions.session(&fresh).unwrap().streams.lock().is_used = true;
    // Another peer gets its share, from the surplus of the flooding peer.
    let late = PEER.scope(third, used(&sessions)).await;
    assert_eq!(sessions.count(), 8);
    assert!(sessions.knows(&fresh) && sessions.knows(&honest) && sessions.knows(&late));
    assert!(!sessions.knows(&listening[0].1), "the oldest");
    // A session with a call in flight is never evicted.
    let calls: Vec<_> =
        listening[1..].iter().map(|(_, id)| sessions.session(id).unwrap().session.calls.begin()).collect();
    assert!(PEER.scope(third, sessions.create_session()).await.is_err());
    drop(calls);
    PEER.scope(third, sessions.create_session()).await.unwrap();
    assert!(!sessions.knows(&listening[1].1));
}

#[tokio::test]
async fn the_one_that_was_idle_for_longest_makes_room() {
    let sessions = sessions(3);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(used(&sessions).await);
    }
    let refused = REFUSED.scope(Cell::new(false), async {
        let refused = sessions.create_session().await.is_err();
        (refused, REFUSED.with(Cell::get))
    });
    assert_eq!(refused.await, (true, true));
    age(&sessions, &ids[0], Duration::from_secs(59));
    assert!(sessions.create_session().await.is_err(), "a minute is the least");
    age(&sessions, &ids[1], Duration::from_secs(62));
    age(&sessions, &ids[2], Duration::from_secs(90));
    // A session with a standalone stream is in use.
    let listening = sessions.create_standalone_stream(&ids[2]).await.unwrap();
    // So is a session with a task.
    let task = sessions.session(&ids[0]).unwrap().session.calls.begin();
    age(&sessions, &ids[0], Duration::from_secs(90));
    sessions.create_session().await.unwrap();
    drop(task);
    assert!(sessions.knows(&ids[0]) && !sessions.knows(&ids[1]) && sessions.knows(&ids[2]));
    drop(listening);
    assert_eq!(sessions.count(), 3);
}

#[tokio::test]
async fn ids_cannot_be_guessed_and_ended_sessions_are_not_known() {
    let sessions = sessions(2);
    let (id, _transport) = sessions.create_session().await.unwrap();
    let (other, _other_transport) = sessions.create_session().await.unwrap();
    assert!(id != other && id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    sessions.close_session(&id).await.unwrap();
    assert!(!sessions.knows(&id) && sessions.knows(&other));
    assert!(sessions.accept_message(&id, cancellation(1)).await.is_err());
    age(&sessions, &other, Duration::from_secs(601));
    sessions.expire();
    assert_eq!(sessions.count(), 0);
}

/// A client that does not read gets fewer notifications, but still gets its prompts and its answer.
#[tokio::test]
async fn notes_leave_room_for_questions_and_the_answer() {
    let mut streams = Streams::new();
    let (sender, mut receiver) = mpsc::channel(MAX_WAITING);
    let client_id = RequestId::String("mine".into());
    streams.requests.insert(1, RequestStream { client_id: client_id.clone(), progress: None, sender });
    let message =
        |value: serde_json::Value| -> ServerJsonRpcMessage { serde_json::from_value(value).unwrap() };
    for _ in 0..2 * MAX_WAITING {
        let mut notification = message(serde_json::json!({
            "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "x" }
        }));
        if let JsonRpcMessage::Notification(notification) = &mut notification {
            notification.notification.extensions_mut().insert(OriginatingRequestId(RequestId::Number(1)));
        }
        streams.route(notification).unwrap();
    }
    assert_eq!(receiver.len(), MAX_WAITING - KEPT_FOR_QUESTIONS);
    for number in 0..2 * KEPT_FOR_QUESTIONS {
        let mut question = message(serde_json::json!({ "jsonrpc": "2.0", "id": number, "method": "ping" }));
        if let JsonRpcMessage::Request(question) = &mut question {
            question.request.extensions_mut().insert(OriginatingRequestId(RequestId::Number(1)));
        }
        let asked = streams.route(question);
        assert_eq!(asked.is_ok(), number < KEPT_FOR_QUESTIONS - KEPT_FOR_ANSWER);
    }
    streams.route(message(serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": {} }))).unwrap();
    let mut last = None;
    while let Some(event) = receiver.recv().await {
        last = event.message;
    }
    assert!(matches!(last.as_deref(), Some(JsonRpcMessage::Response(answer)) if answer.id == client_id));
}

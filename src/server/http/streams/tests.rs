//! The queue of a stream whose client does not read.

use std::future::poll_fn;

use super::*;
use crate::server::http::events::{KEPT_FOR_ANSWER, KEPT_FOR_PROMPTS, MAX_WAITING};

/// A client that does not read gets fewer notifications, but still gets its prompts and its answer.
#[tokio::test]
async fn notes_leave_room_for_questions_and_the_answer() {
    let mut streams = Streams::new();
    let (sender, reader) = StreamEvents::plain();
    let client_id = RequestId::String("mine".into());
    let stream = RequestStream { client_id: client_id.clone(), progress: None, sender, away: None };
    streams.requests.insert(1, stream);
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
    for number in 0..2 * KEPT_FOR_PROMPTS {
        let mut question = message(serde_json::json!({ "jsonrpc": "2.0", "id": number, "method": "ping" }));
        if let JsonRpcMessage::Request(question) = &mut question {
            question.request.extensions_mut().insert(OriginatingRequestId(RequestId::Number(1)));
        }
        let asked = streams.route(question);
        assert_eq!(asked.is_ok(), number < KEPT_FOR_PROMPTS - KEPT_FOR_ANSWER);
    }
    // Only those that the client gets are waited for.
    assert_eq!(streams.server_requests.len(), KEPT_FOR_PROMPTS - KEPT_FOR_ANSWER);
    streams.route(message(serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": {} }))).unwrap();
    let (mut notifications, mut last) = (0, None);
    while let Some(event) = poll_fn(|context| reader.poll_next(context)).await {
        let is_notification = matches!(event.message.as_deref(), Some(JsonRpcMessage::Notification(_)));
        notifications += usize::from(is_notification);
        last = event.message;
    }
    assert_eq!(notifications, MAX_WAITING - KEPT_FOR_PROMPTS);
    assert!(matches!(last.as_deref(), Some(JsonRpcMessage::Response(answer)) if answer.id == client_id));
}

/// Threat 843. A client that does not read holds a bounded number of bytes, and still gets its answer.
#[tokio::test]
async fn v_843_notifications_that_are_not_read_are_bounded_in_bytes() {
    const LINE: usize = 100_000;
    let mut streams = Streams::new();
    let (sender, reader) = StreamEvents::plain();
    let client_id = RequestId::String("mine".into());
    let stream = RequestStream { client_id: client_id.clone(), progress: None, sender, away: None };
    streams.requests.insert(1, stream);
    let print = |streams: &mut Streams| {
        let line = "x".repeat(LINE);
        let mut notification: ServerJsonRpcMessage = serde_json::from_value(serde_json::json!({
            "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": line }
        }))
        .unwrap();
        if let JsonRpcMessage::Notification(notification) = &mut notification {
            notification.notification.extensions_mut().insert(OriginatingRequestId(RequestId::Number(1)));
        }
        streams.route(notification).unwrap();
    };
    for _ in 0..MAX_WAITING {
        print(&mut streams);
    }
    // What the client has read makes room.
    assert!(poll_fn(|context| reader.poll_next(context)).await.is_some());
    for _ in 0..MAX_WAITING {
        print(&mut streams);
    }
    let answer = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    streams.route(serde_json::from_value(answer).unwrap()).unwrap();
    let mut read = Vec::new();
    while let Some(event) = poll_fn(|context| reader.poll_next(context)).await {
        read.push(event.message);
    }
    let Some((last, lines)) = read.split_last() else { panic!("nothing was sent") };
    assert!(matches!(last.as_deref(), Some(JsonRpcMessage::Response(answer)) if answer.id == client_id));
    assert!((5..20).contains(&lines.len()), "{}", lines.len());
}

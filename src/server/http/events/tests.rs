//! Streams that are resumed, and the bounds of what is kept for that.

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::server::http::shares::PeerKey;

/// Fails a test that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

const MANY_BYTES: usize = 64 << 20;

fn line(text: &str) -> ServerJsonRpcMessage {
    let params = json!({ "level": "info", "data": text });
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
    serde_json::from_value(message).unwrap()
}

fn answer(text: &str) -> ServerJsonRpcMessage {
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    serde_json::from_value(json!({ "jsonrpc": "2.0", "id": 1, "result": result })).unwrap()
}

fn peer(number: u8) -> Holder {
    PeerKey::from(IpAddr::from([10, 0, 0, number])).into()
}

fn stream(kept: &Arc<KeptEvents>, request: i64, holder: Holder) -> (StreamSender, StreamReader) {
    StreamEvents::resumable(Resumption { request, token: None, holder, kept: Arc::clone(kept) })
}

fn say(events: &StreamEvents, text: &str) -> bool {
    events.push(line(text), MessageKind::Notification).is_ok()
}

fn end(sender: StreamSender, text: &str) {
    assert!(sender.events().push(answer(text), MessageKind::Answer).is_ok());
}

/// The ids of the events that a connection gets without waiting.
fn read(reader: &StreamReader) -> Vec<String> {
    let mut context = Context::from_waker(Waker::noop());
    let mut ids = Vec::new();
    while let Poll::Ready(Some(event)) = reader.poll_next(&mut context) {
        ids.push(event.event_id.unwrap());
    }
    ids
}

fn resume(events: &Arc<StreamEvents>, after: u64) -> StreamReader {
    events.resume(after, None, None).unwrap()
}

/// Whether a client could still resume the stream.
fn is_kept(events: &Arc<StreamEvents>) -> bool {
    events.resume(0, None, None).is_ok_and(|reader| reader.leave())
}

#[test]
fn a_stream_goes_on_where_its_client_was_cut_off() {
    let kept = Arc::new(KeptEvents::new(MANY_BYTES));
    let (sender, reader) = stream(&kept, 7, Holder::default());
    let events = Arc::clone(sender.events());
    assert!(say(&events, "a"));
    assert_eq!(read(&reader), ["7-0", "7-1"]);
    assert!(reader.leave() && say(&events, "b"));
    end(sender, "c");
    // The client need not have received what its connection has taken.
    // The first event has no message: the client may be cut off again before there is one.
    assert_eq!(read(&resume(&events, 0)), ["7-0", "7-1", "7-2", "7-3"]);
    assert_eq!(read(&resume(&events, 2)), ["7-2", "7-3"]);
    let refused = [3, 4].map(|after| events.resume(after, None, None).err());
    assert_eq!(refused, [Some(NotResumed::Complete), Some(NotResumed::NotKept)]);
    drop((events, reader));
    assert_eq!(kept.bytes(), 0);
}

#[tokio::test]
async fn the_newer_of_two_connections_has_the_stream() {
    let kept = Arc::new(KeptEvents::new(MANY_BYTES));
    let (sender, first) = stream(&kept, 7, Holder::default());
    let events = sender.events();
    assert_eq!(read(&first), ["7-0"]);
    let ending = poll_fn(|context| first.poll_next(context));
    let both = async { tokio::join!(ending, async { resume(events, 0) }) };
    let (ended, second) = timeout(WATCHDOG, both).await.expect("the first one ends");
    assert!(ended.is_none() && say(events, "a"));
    assert_eq!((read(&first), read(&second)), (Vec::new(), vec!["7-0".to_owned(), "7-1".to_owned()]));
    // When its connection is closed, the newer one still has it.
    assert!(!first.leave() && say(events, "b"));
    assert_eq!(read(&second), ["7-2"]);
    assert!(second.leave());
}

#[test]
fn v_843_a_stream_that_nobody_can_resume_keeps_nothing_without_its_connection() {
    let (sender, reader) = StreamEvents::plain();
    assert!(say(sender.events(), "a"));
    assert_eq!(sender.events().queue.lock().events.len(), 1);
    assert!(reader.leave() && !say(sender.events(), "b"));
    assert!(sender.events().queue.lock().events.is_empty());
}

#[test]
fn v_861_a_stream_without_a_connection_keeps_few_bytes_and_its_answer() {
    let kept = Arc::new(KeptEvents::new(MANY_BYTES));
    let (sender, reader) = stream(&kept, 7, Holder::default());
    let events = Arc::clone(sender.events());
    let long = "x".repeat(100_000);
    assert_eq!(read(&reader).len(), 1);
    assert!(reader.leave());
    assert_eq!((0..100).filter(|_| say(&events, &long)).count(), 9);
    let prompt = serde_json::from_value(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).unwrap();
    assert!(events.push(prompt, MessageKind::Prompt).is_ok(), "notifications leave space for it");
    end(sender, &"x".repeat(2_000_000));
    assert_eq!(read(&resume(&events, 0)).len(), 12);
}

#[test]
fn v_861_what_a_connection_has_taken_is_kept_within_bounds() {
    let kept = Arc::new(KeptEvents::new(MANY_BYTES));
    for (text, number, max) in [("x".repeat(100_000), 100, 10), ("x".to_owned(), 1_000, MAX_WAITING)] {
        let (sender, reader) = stream(&kept, 7, Holder::default());
        for _ in 0..number {
            assert!(say(sender.events(), &text));
            assert!(!read(&reader).is_empty());
        }
        assert!(reader.leave());
        let again = read(&resume(sender.events(), 0));
        assert_eq!((again.len(), again.last()), (1 + max, Some(&format!("7-{number}"))));
    }
    assert_eq!(kept.bytes(), 0);
}

#[test]
fn v_861_all_streams_together_keep_few_bytes() {
    let kept = Arc::new(KeptEvents::new(1 << 20));
    let ended = |request: i64, holder: Holder, bytes: usize| {
        let (sender, reader) = stream(&kept, request, holder);
        let events = Arc::clone(sender.events());
        assert!(reader.leave());
        end(sender, &"x".repeat(bytes));
        assert!(kept.bytes() <= 1 << 20);
        events
    };
    let small = ended(1, peer(1), 100_000);
    let mut large: Vec<_> = (2..11).map(|request| ended(request, peer(2), 300_000)).collect();
    // The peer that keeps most loses its oldest.
    assert!(is_kept(&small));
    assert_eq!(large.iter().map(is_kept).collect::<Vec<_>>(), [[false; 6].as_slice(), &[true; 3]].concat());
    // And before them what a connection has taken.
    let reader = resume(&large[8], 0);
    assert_eq!(read(&reader), ["10-0", "10-1"]);
    assert!(reader.leave());
    large.push(ended(11, peer(2), 300_000));
    assert_eq!(large[6..].iter().map(is_kept).collect::<Vec<_>>(), [false, true, false, true]);
    assert!(is_kept(&small));
    drop((small, large, reader));
    assert_eq!(kept.bytes(), 0);
}

#[test]
fn v_863_a_connection_that_resumes_is_told_how_large_the_answer_is() {
    let kept = Arc::new(KeptEvents::new(MANY_BYTES));
    let (sender, _reader) = stream(&kept, 7, Holder::default());
    let events = Arc::clone(sender.events());
    let told = Arc::new(AtomicUsize::new(0));
    let size = || {
        let told = Arc::clone(&told);
        AnswerSize::new(move |bytes| told.store(bytes, Ordering::Relaxed))
    };
    let waiting = events.resume(0, None, Some(size())).unwrap();
    assert!(say(&events, &"x".repeat(50_000)));
    assert_eq!(told.load(Ordering::Relaxed), 0);
    end(sender, &"x".repeat(20_000));
    assert!((70_000..76_000).contains(&told.load(Ordering::Relaxed)), "{told:?}");
    // The answer was made before this one.
    assert!(waiting.leave());
    told.store(0, Ordering::Relaxed);
    let _late = events.resume(1, None, Some(size())).unwrap();
    assert!((20_000..25_000).contains(&told.load(Ordering::Relaxed)), "{told:?}");
}

/// Otherwise a client that has read much of each of its calls could ask for all of it again on every connection.
#[test]
fn v_863_a_connection_that_resumes_a_call_in_progress_is_told_what_waits_for_it() {
    let kept = Arc::new(KeptEvents::new(MANY_BYTES));
    let (sender, first) = stream(&kept, 7, Holder::default());
    assert!(say(sender.events(), &"x".repeat(50_000)));
    assert_eq!(read(&first).len(), 2);
    let told = Arc::new(AtomicUsize::new(0));
    let size = AnswerSize::new({
        let told = Arc::clone(&told);
        move |bytes| told.store(bytes, Ordering::Relaxed)
    });
    let second = sender.events().resume(0, None, Some(size)).unwrap();
    assert!((50_000..53_000).contains(&told.load(Ordering::Relaxed)), "{told:?}");
    assert_eq!(read(&second), ["7-0", "7-1"]);
    assert_eq!(told.load(Ordering::Relaxed), 0, "it has all of it");
}

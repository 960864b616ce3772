//! Back-pressure, with a client that is controlled by the test and without handlers.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, JsonRpcMessage, RequestId,
    ServerNotification, ServerRequest, ServerResult,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::time::timeout;

use super::*;
use crate::server::stdio::backpressure::InFlight;

/// Fails a test that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

/// How long to wait before concluding that no more messages come. Everything is in this process, so
/// a message would come in microseconds, and the rest is for a busy machine.
const QUIET: Duration = Duration::from_secs(1);

/// Capacity of a pipe in bytes.
const PIPE: usize = 64 << 10;

/// More than any bound that is counted in requests.
const MANY: i64 = 3_000;

struct Pair {
    server: ClientLines<ReadHalf<DuplexStream>>,
    gone: CancellationToken,
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
}

fn pair() -> Pair {
    let (ours, theirs) = duplex(PIPE);
    let (server_reader, server_writer) = split(theirs);
    let gone = CancellationToken::new();
    let (server, writing) = ClientLines::new(server_reader, server_writer, gone.clone());
    tokio::spawn(writing);
    let (reader, writer) = split(ours);
    Pair { server, gone, reader, writer }
}

fn ping(id: i64) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
}

/// Pings with these ids.
fn pings(ids: std::ops::Range<i64>) -> String {
    ids.map(ping).collect()
}

fn cancellation(id: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
    )
}

impl Pair {
    /// Writes from another task, which blocks as a client would.
    fn write(
        self,
        text: String,
    ) -> (ClientLines<ReadHalf<DuplexStream>>, CancellationToken, ReadHalf<DuplexStream>) {
        let mut writer = self.writer;
        tokio::spawn(async move {
            let _gone = writer.write_all(text.as_bytes()).await;
            // The writer stays open.
            std::future::pending::<()>().await;
        });
        (self.server, self.gone, self.reader)
    }
}

/// Takes requests until no more come. Returns all messages.
async fn take(server: &mut ClientLines<ReadHalf<DuplexStream>>) -> Vec<ClientJsonRpcMessage> {
    let mut taken = Vec::new();
    while let Ok(Some(message)) = timeout(QUIET, server.receive()).await {
        taken.push(message);
    }
    taken
}

fn id_of(message: &ClientJsonRpcMessage) -> RequestId {
    match message {
        JsonRpcMessage::Request(request) => request.id.clone(),
        other => panic!("{other:?}"),
    }
}

async fn answer(server: &mut ClientLines<ReadHalf<DuplexStream>>, request: ClientJsonRpcMessage) {
    let id = id_of(&request);
    drop(request);
    server.send(JsonRpcMessage::response(ServerResult::empty(()), id)).await.unwrap();
}

#[tokio::test]
async fn v_325_requests_in_flight_are_bounded_and_none_is_lost() {
    let (mut server, gone, mut reader) = pair().write(pings(0..MANY));
    let reading = tokio::spawn(async move {
        let mut answers = String::new();
        let mut buffer = vec![0; PIPE];
        while answers.lines().count() < usize::try_from(MANY).unwrap() || !answers.ends_with('\n') {
            let count = reader.read(&mut buffer).await.unwrap();
            answers.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        answers
    });
    let mut in_flight = VecDeque::from(take(&mut server).await);
    assert_eq!(in_flight.len(), 512);
    // As many again are read into the look-ahead, and no more.
    assert!(server.look_ahead.is_full());
    // Whenever one is answered, the next one is handled.
    for _ in 0..3 {
        answer(&mut server, in_flight.pop_front().unwrap()).await;
        let mut next = take(&mut server).await;
        assert_eq!(next.len(), 1);
        in_flight.push_back(next.remove(0));
    }
    // Requests are handled in the order in which they were sent, to the last.
    let mut last = 0;
    while let Some(request) = in_flight.pop_front() {
        let RequestId::Number(id) = id_of(&request) else { panic!() };
        assert!(id > last);
        last = id;
        answer(&mut server, request).await;
        if last + i64::try_from(in_flight.len()).unwrap() < MANY {
            in_flight.push_back(timeout(WATCHDOG, server.receive()).await.unwrap().unwrap());
        }
    }
    assert_eq!(last, MANY);
    let answers = timeout(WATCHDOG, reading).await.unwrap().unwrap();
    for (id, line) in (0..MANY).zip(answers.lines()) {
        assert_eq!(line, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"));
    }
    assert!(!gone.is_cancelled());
}

#[tokio::test]
async fn v_326_what_is_not_answered_overtakes_what_waits() {
    // All slots are taken. Behind them are more requests, one of them twice, lines that are not
    // messages, two answers, and two cancellations.
    let mut text = pings(0..512);
    text.push_str(&pings(512..600));
    text.push_str(&ping(599));
    text.push_str("no message\n[]\n{}\n\n");
    text.push_str("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n");
    text.push_str("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"no\"}}\n");
    text.push_str(&cancellation("599"));
    text.push_str(&cancellation("7"));
    let (mut server, gone, mut reader) = pair().write(text);
    let mut requests = Vec::new();
    let mut others = Vec::new();
    for message in take(&mut server).await {
        match message {
            JsonRpcMessage::Request(_) => requests.push(message),
            other => others.push(other),
        }
    }
    assert_eq!(requests.len(), 512);
    assert!(matches!(others[0], JsonRpcMessage::Response(_)), "{others:?}");
    assert!(matches!(others[1], JsonRpcMessage::Error(_)), "{others:?}");
    // Of the cancelled requests, rmcp knows only 7. Its slot is in use until its handler has ended.
    assert!(matches!(others[2], JsonRpcMessage::Notification(_)), "{others:?}");
    assert_eq!(others.len(), 3);
    drop(requests.remove(7));
    let next = take(&mut server).await;
    assert_eq!(next.len(), 1, "its slot is free again");
    requests.extend(next);
    while let Some(request) = requests.pop() {
        answer(&mut server, request).await;
        requests.extend(take_one(&mut server).await);
    }
    // 599 was dropped twice. The three lines that are not messages were refused in their turn.
    let mut answers = String::new();
    let mut buffer = vec![0; PIPE];
    while let Ok(count) = timeout(QUIET, reader.read(&mut buffer)).await {
        answers.push_str(std::str::from_utf8(&buffer[..count.unwrap()]).unwrap());
    }
    assert_eq!(answers.lines().filter(|line| line.contains("\"result\"")).count(), 600 - 2, "{answers}");
    assert_eq!(answers.lines().filter(|line| line.contains("\"error\"")).count(), 3, "{answers}");
    assert!(!answers.contains("\"id\":599,") && !answers.contains("\"id\":7,"));
    assert!(!gone.is_cancelled());
}

async fn take_one(server: &mut ClientLines<ReadHalf<DuplexStream>>) -> Option<ClientJsonRpcMessage> {
    // If there is another one, it is already in the look-ahead.
    if server.look_ahead.is_empty() {
        return None;
    }
    timeout(QUIET, server.receive()).await.ok().flatten()
}

/// A question of the server. Any request that the protocol lets a server send is one.
fn question(id: i64) -> ServerJsonRpcMessage {
    let request: ServerRequest = serde_json::from_str("{\"method\":\"ping\"}").unwrap();
    JsonRpcMessage::request(request, RequestId::Number(id))
}

/// What the client reads until nothing more comes: how many errors, and the rest.
async fn errors_and_others(reader: &mut ReadHalf<DuplexStream>) -> (usize, usize) {
    let mut text = String::new();
    let mut buffer = vec![0; PIPE];
    while let Ok(count) = timeout(QUIET, reader.read(&mut buffer)).await {
        text.push_str(std::str::from_utf8(&buffer[..count.unwrap()]).unwrap());
    }
    let errors = text.lines().filter(|line| line.contains("\"error\"")).count();
    (errors, text.lines().count() - errors)
}

/// A call waits for the client's answer, which comes after more requests than are read ahead: those wait
/// for the slots of such calls.
#[tokio::test]
async fn v_576_an_answer_is_read_behind_any_number_of_requests() {
    let mut text = pings(0..MANY);
    text.push_str("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
    text.push_str(&pings(MANY..2 * MANY));
    let (mut server, gone, mut reader) = pair().write(text);
    let in_flight = take(&mut server).await;
    assert_eq!((in_flight.len(), server.look_ahead.is_full()), (512, true));
    server.send(question(7)).await.unwrap();
    let message = timeout(WATCHDOG, server.receive()).await.expect("it reads on").unwrap();
    assert!(matches!(&message, JsonRpcMessage::Response(answer) if answer.id == RequestId::Number(7)));
    // From there on the client is made to wait again. What came before was refused, and nothing is lost.
    assert!(take(&mut server).await.is_empty());
    let refused = usize::try_from(MANY).unwrap() - 1_024;
    assert_eq!(errors_and_others(&mut reader).await, (refused, 1));
    assert!(server.look_ahead.is_full() && !gone.is_cancelled());
}

/// Nothing waits for the answer to a question that was withdrawn.
#[tokio::test]
async fn v_576_a_client_waits_again_when_its_question_is_withdrawn() {
    let (mut server, gone, mut reader) = pair().write(pings(0..MANY));
    let in_flight = take(&mut server).await;
    assert_eq!((in_flight.len(), server.look_ahead.is_full()), (512, true));
    server.send(question(7)).await.unwrap();
    let withdrawn =
        CancelledNotification::new(CancelledNotificationParam::new(Some(RequestId::Number(7)), None));
    let withdrawn = ServerNotification::CancelledNotification(withdrawn);
    server.send(JsonRpcMessage::notification(withdrawn)).await.unwrap();
    assert!(take(&mut server).await.is_empty());
    assert_eq!(errors_and_others(&mut reader).await, (0, 2));
    assert!(!gone.is_cancelled());
}

#[tokio::test]
async fn v_325_bodies_in_flight_are_bounded() {
    let large = |id: i64| {
        let mut text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"executeTypescript\",\
             \"arguments\":{{\"code\":\"\",\"input\":\""
        );
        text.push_str(&"x".repeat(30 << 20));
        text.push_str("\"}}}\n");
        text
    };
    let text: String = (0..6).map(large).collect();
    let (mut server, _gone, _reader) = pair().write(text);
    // Two messages are 60 MB.
    let mut taken = Vec::new();
    for _ in 0..2 {
        taken.push(timeout(WATCHDOG, server.receive()).await.unwrap().unwrap());
    }
    // A third one fills the look-ahead.
    let began = std::time::Instant::now();
    while !server.look_ahead.is_full() {
        assert!(began.elapsed() < WATCHDOG);
        assert!(timeout(QUIET, server.receive()).await.is_err());
    }
    assert!(timeout(QUIET, server.receive()).await.is_err());
    answer(&mut server, taken.remove(0)).await;
    let next = timeout(WATCHDOG, server.receive()).await.unwrap().unwrap();
    assert_eq!(id_of(&next), RequestId::Number(3));
}

#[tokio::test]
async fn v_325_the_end_of_the_input_loses_nothing() {
    let Pair { mut server, gone, reader: _reader, mut writer } = pair();
    let text = pings(0..1_000);
    let writing = tokio::spawn(async move {
        writer.write_all(text.as_bytes()).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut taken = 0;
    while let Some(message) = timeout(WATCHDOG, server.receive()).await.unwrap() {
        assert!(matches!(message, JsonRpcMessage::Request(_)));
        assert!(!gone.is_cancelled(), "not before the last request");
        taken += 1;
    }
    writing.await.unwrap();
    assert_eq!(taken, 1_000);
    assert!(gone.is_cancelled());
}

/// Answers all requests. The client waits for `delay` between reads, or does not read at all.
async fn answer_all(delay: Option<Duration>) -> (bool, usize) {
    let mut text = String::new();
    let padding = "y".repeat(200);
    for id in 0..40_000 {
        let _ = writeln!(text, "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}{padding}\",\"method\":\"ping\"}}");
    }
    let (mut server, gone, mut reader) = pair().write(text);
    server.max_stall = Duration::from_secs(5);
    let reading = tokio::spawn(async move {
        let mut buffer = vec![0; PIPE];
        let Some(delay) = delay else { return std::future::pending().await };
        loop {
            tokio::time::sleep(delay).await;
            if reader.read(&mut buffer).await.unwrap() == 0 {
                return;
            }
        }
    });
    let mut answered = 0;
    while answered < 40_000
        && let Some(request) = timeout(WATCHDOG, server.receive()).await.expect("it goes on or ends")
    {
        answer(&mut server, request).await;
        answered += 1;
    }
    reading.abort();
    (gone.is_cancelled(), answered)
}

#[tokio::test]
async fn v_327_a_client_that_reads_nothing_is_disconnected() {
    let (is_gone, answered) = answer_all(None).await;
    assert!(is_gone);
    // 4 MB of answers were made, and no more.
    assert!((15_000..25_000).contains(&answered), "{answered}");
    // A client that reads slowly is not disconnected: each read counts as activity.
    assert_eq!(answer_all(Some(Duration::from_millis(20))).await, (false, 40_000));
}

#[test]
fn v_325_a_request_counts_until_it_is_dropped() {
    let in_flight = InFlight::default();
    let slots: Vec<_> = (0..511).map(|_| in_flight.enter(100)).collect();
    let last = Arc::new(in_flight.enter(100));
    assert!(!in_flight.has_room(1));
    let handler = Arc::clone(&last);
    drop(last);
    assert!(!in_flight.has_room(1), "cancelled, but a handler has it");
    drop(handler);
    assert!(in_flight.has_room(64 << 10) && !in_flight.has_room(64 << 20));
    drop(slots);
    // One request is always handled, however large.
    assert!(in_flight.has_room(usize::MAX / 2));
}

/// Deterministic pseudo-random numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end.max(1)
    }
}

/// The text that a client writes, and the requests that it cancels.
struct Conversation {
    text: String,
    requests: i64,
    cancelled: Vec<i64>,
    refused: usize,
}

fn conversation(random: &mut Random) -> Conversation {
    let mut made = Conversation { text: String::new(), requests: 0, cancelled: Vec::new(), refused: 0 };
    let cancels = 1 + random.below(30);
    for _ in 0..1_500 + random.below(2_000) {
        match random.below(100) {
            chance if chance < cancels && made.requests > 0 => {
                // The id of a request that is answered, in flight or parked.
                let id = made.requests - 1 - i64::try_from(random.below(900)).unwrap().min(made.requests - 1);
                made.text.push_str(&cancellation(&id.to_string()));
                made.cancelled.push(id);
            }
            31..36 => {
                made.text.push_str(["[]\n", "{}\n", "{\"id\"\n", "x\n", "7\n"][random.below(5)]);
                made.refused += 1;
            }
            36..40 => made.text.push_str("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n"),
            40..44 => {
                made.text.push_str("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\n");
            }
            _ => {
                made.text.push_str(&ping(made.requests));
                made.requests += 1;
            }
        }
    }
    made
}

/// For any messages in any order, and whatever the order of the answers: each request is answered
/// once unless it was cancelled, and the bound on requests in flight holds.
#[tokio::test]
async fn v_325_any_conversation_is_answered() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..40 {
        let Conversation { text, requests, cancelled, refused } = conversation(&mut random);
        let Pair { mut server, reader, mut writer, .. } = pair();
        let writing = tokio::spawn(async move {
            writer.write_all(text.as_bytes()).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        let reading = tokio::spawn(async move {
            let mut answers = String::new();
            let mut reader = reader;
            reader.read_to_string(&mut answers).await.unwrap();
            answers
        });
        let mut in_flight: Vec<ClientJsonRpcMessage> = Vec::new();
        loop {
            let is_idle = in_flight.is_empty();
            let message = if is_idle {
                timeout(WATCHDOG, server.receive()).await.unwrap().map(Some)
            } else if random.below(3) > 0 {
                // Receives a message if there is one.
                timeout(Duration::from_millis(1), server.receive())
                    .await
                    .map_or(Some(None), |got| got.map(Some))
            } else {
                Some(None)
            };
            match message {
                Some(Some(JsonRpcMessage::Notification(notification))) => {
                    let ClientNotification::CancelledNotification(cancel) = notification.notification else {
                        continue;
                    };
                    in_flight.retain(|request| Some(id_of(request)) != cancel.params.request_id);
                }
                Some(Some(request @ JsonRpcMessage::Request(_))) => {
                    in_flight.push(request);
                    let most = if server.is_at_end { 1_024 } else { 512 };
                    assert!(in_flight.len() <= most, "{}", in_flight.len());
                }
                Some(Some(_)) => {}
                Some(None) => {
                    for _ in 0..random.below(200).min(in_flight.len()) {
                        let request = in_flight.swap_remove(random.below(in_flight.len()));
                        answer(&mut server, request).await;
                    }
                }
                None => break,
            }
        }
        for request in in_flight {
            answer(&mut server, request).await;
        }
        server.close().await.unwrap();
        writing.await.unwrap();
        let answers = timeout(WATCHDOG, reading).await.unwrap().unwrap();
        let mut counts = vec![0; usize::try_from(requests).unwrap()];
        let mut errors = 0;
        for line in answers.lines() {
            let answer: serde_json::Value = serde_json::from_str(line).unwrap();
            if answer.get("error").is_some() {
                errors += 1;
            } else {
                counts[usize::try_from(answer["id"].as_u64().unwrap()).unwrap()] += 1;
            }
        }
        assert_eq!(errors, refused);
        for (id, &count) in (0..requests).zip(&counts) {
            let least = i32::from(!cancelled.contains(&id));
            assert!((least..=1).contains(&count), "{id}: {count} answers");
        }
    }
}

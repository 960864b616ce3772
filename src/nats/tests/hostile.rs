//! NATS servers, and clients of them, that do what they like.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::Message;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::{RUN, WORKER, key};
use crate::nats::queue::{Claimed, claim, offer};
use crate::nats::seal::Purpose;
use crate::nats::server::{Access, Addresses, NatsServer};

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// A NATS server that says what a test wants.
struct FakeServer(TcpListener);

/// A connection of a client.
struct FakeConnection(BufReader<TcpStream>);

impl FakeServer {
    async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn addresses(&self) -> Addresses {
        Addresses::parse(&format!("nats://{}", self.0.local_addr().unwrap()), false).unwrap()
    }

    /// The next connection, whose client waits to be told whether its credentials are good.
    async fn next(&self) -> FakeConnection {
        let (stream, _) = timeout(LONG, self.0.accept()).await.expect("a connection").unwrap();
        let mut connection = FakeConnection(BufReader::new(stream));
        connection.send(b"INFO {\"headers\":true,\"max_payload\":1048576}\r\n").await;
        connection.line("PING").await;
        connection
    }

    /// The next connection.
    async fn accept(&self) -> FakeConnection {
        let mut connection = self.next().await;
        connection.send(b"PONG\r\n").await;
        connection
    }

    /// A client that is connected, and its connection.
    async fn connected(&self) -> (NatsServer, FakeConnection) {
        let (addresses, access) = (self.addresses(), Access::default());
        let (client, connection) = tokio::join!(NatsServer::connect(&addresses, &access), self.accept());
        (client.unwrap(), connection)
    }
}

impl FakeConnection {
    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    async fn message(&mut self, subject: &str, subscription: &str, reply: &str, payload: &[u8]) {
        let line = format!("MSG {subject} {subscription} {reply} {}\r\n", payload.len());
        self.send(&[line.as_bytes(), payload, b"\r\n"].concat()).await;
    }

    /// The words of the client's next line that starts with `begins`.
    async fn line(&mut self, begins: &str) -> Vec<String> {
        loop {
            let mut line = Vec::new();
            let read = timeout(LONG, self.0.read_until(b'\n', &mut line)).await.expect("a line").unwrap();
            assert!(read > 0, "the client has gone");
            let line = String::from_utf8_lossy(&line);
            if line.starts_with(begins) {
                return line.split_whitespace().map(str::to_owned).collect();
            }
        }
    }
}

/// A worker may ask for runs, and not write to the queue or to a tenant's bucket. The front end may, and its answer
/// goes where the worker says.
#[tokio::test]
async fn v_586_a_claim_is_answered_at_an_inbox_only() {
    let fake = FakeServer::start().await;
    let (server, mut connection) = fake.connected().await;
    let offered = tokio::spawn(async move { offer(&server, &key(), 0).await.map(drop) });
    let subscribed = connection.line("SUB cx.run.").await;
    let (subject, subscription) = (&subscribed[1], &subscribed[2]);
    let run = subject.split('.').nth(2).unwrap();
    connection.line("HPUB cx.queue ").await;
    let sealed = key().seal(Purpose::Claim, &[run, WORKER], b"cx run 1").unwrap();
    let claim = [WORKER.as_bytes(), &sealed].concat();
    for reply in ["$KV.cx-state-payments.head.0", "cx.queue", "_INBOXES.a", "_INBOX.a"] {
        connection.message(subject, subscription, reply, &claim).await;
    }
    let answered = connection.line("PUB ").await;
    assert_eq!(answered[1], "_INBOX.a");
    assert!(offered.await.unwrap().is_ok());
}

/// The client library tries the same credentials for ever.
#[tokio::test]
async fn v_587_a_connection_whose_credentials_are_refused_is_known() {
    let fake = FakeServer::start().await;
    let (server, connection) = fake.connected().await;
    drop(connection);
    drop(fake.accept().await);
    assert!(!server.has_ended());
    let mut refused = fake.next().await;
    refused.send(b"-ERR 'Authorization Violation'\r\n").await;
    let ended = async {
        while !server.has_ended() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, ended).await.expect("a refusal");
    // As when an administrator has taken it back.
    drop(refused);
    let _connection = fake.accept().await;
    let accepted = async {
        while server.has_ended() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, accepted).await.expect("a connection");
}

/// The client library reads the kind of an error before it looks whether there is one.
#[tokio::test]
async fn v_587_a_connection_whose_task_has_ended_is_known() {
    let fake = FakeServer::start().await;
    let (server, mut connection) = fake.connected().await;
    assert!(!server.has_ended());
    connection.send(b"-ERR\r\n").await;
    let ended = async {
        while !server.has_ended() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, ended).await.expect("an end");
}

#[tokio::test]
async fn v_588_a_message_without_an_end_ends_the_connection() {
    const PIECES: usize = 512;
    let fake = FakeServer::start().await;
    let (server, mut connection) = fake.connected().await;
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    let endless = tokio::spawn(async move {
        connection.send(b"MSG a 1 999999999999\r\n").await;
        let piece = vec![b'a'; 1 << 20];
        // Not all that a machine has, should the client take it.
        while counted.load(Ordering::SeqCst) < PIECES {
            if connection.0.write_all(&piece).await.is_err() {
                return;
            }
            counted.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(2)).await;
        }
        std::future::pending::<()>().await;
    });
    let again = fake.accept().await;
    endless.abort();
    // A connection on which nothing is answered ends too, later.
    assert!(taken.load(Ordering::SeqCst) < PIECES);
    drop((again, server));
}

/// The message of an offer.
fn offer_of(sealed: &[u8]) -> Message {
    Message {
        subject: "cx.queue".into(),
        reply: None,
        payload: [RUN.as_bytes(), sealed].concat().into(),
        headers: None,
        status: None,
        description: None,
        length: 0,
    }
}

/// Slots for called runs, which others wait for, would be used up by runs that wait.
#[tokio::test]
async fn v_596_an_offer_counts_in_the_queue_of_its_depth_only() {
    let fake = FakeServer::start().await;
    let (server, mut connection) = fake.connected().await;
    let offered = tokio::spawn({
        let server = server.clone();
        async move { offer(&server, &key(), 2).await.map(drop) }
    });
    assert_eq!(connection.line("HPUB cx.").await[1], "cx.nested.2");
    offered.abort();
    for (text, depth) in [("cx run 1", 1), ("cx run 1 at 1", 2), ("cx run 1 at 1", 0)] {
        let sealed = key().seal(Purpose::Offer, &[RUN], text.as_bytes()).unwrap();
        let error = claim(&server, &key(), depth, &offer_of(&sealed)).await.err();
        let error = error.unwrap_or_else(|| panic!("{text} at {depth}")).to_string();
        assert!(error.contains("a message in it is not a run"), "{text} at {depth}: {error}");
    }
    let sealed = key().seal(Purpose::Offer, &[RUN], b"cx run 1 at 1").unwrap();
    let message = offer_of(&sealed);
    let claimed = tokio::spawn(async move { claim(&server, &key(), 1, &message).await.map(drop) });
    // It is asked for.
    connection.line("SUB cx.run.00112233445566778899aabbccddeeff.").await;
    claimed.abort();
}

/// Whoever sees a claim knows the subject to which its worker listens.
#[tokio::test]
async fn v_594_what_comes_before_a_run_is_granted_does_not_collect() {
    let fake = FakeServer::start().await;
    let (server, mut connection) = fake.connected().await;
    let offered = key().seal(Purpose::Offer, &[RUN], b"cx run 1").unwrap();
    let message = offer_of(&offered);
    let claimed = tokio::spawn(async move { claim(&server, &key(), 0, &message).await });
    let subscribed = connection.line("SUB cx.run.").await;
    let (subject, subscription) = (&subscribed[1], &subscribed[2]);
    let worker = subject.split('.').nth(3).unwrap();
    let asked = connection.line("PUB cx.run.").await;
    for _ in 0..100 {
        connection.message(subject, subscription, "", &[0; 100_000]).await;
    }
    // All of it has been read before the answer comes.
    connection.send(b"PING\r\n").await;
    connection.line("PONG").await;
    sleep(Duration::from_millis(500)).await;
    let grant = key().seal(Purpose::Grant, &[RUN, worker], b"granted").unwrap();
    connection.message(&asked[2], "0", "", &grant).await;
    let Ok(Claimed::Granted(mut channel)) = claimed.await.unwrap() else { panic!("it is granted") };
    assert!(!channel.has_waiting());
}

//! More connections than there are slots.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;

use super::*;

/// Sends a request, and returns the whole answer.
async fn get(listener: &TcpListener) -> String {
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_connection_without_a_slot_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (begun, mut number) = watch::channel(0);
    let (release, released) = watch::channel(false);
    // Answers that take until they are released.
    let answer: Answer = Arc::new(move |_request: Request<Body>| {
        begun.send_modify(|number| *number += 1);
        let mut released = released.clone();
        Box::pin(async move {
            released.wait_for(|is_released| *is_released).await.unwrap();
            Response::new(Body::from("released"))
        })
    });
    let stop = CancellationToken::new();
    let clients = async {
        let first = futures::future::join_all((0..MAX_CONNECTIONS).map(|_| get(&listener)));
        let others = async {
            number.wait_for(|number| *number == MAX_CONNECTIONS).await.unwrap();
            let refused = get(&listener).await;
            assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
            assert!(refused.contains("retry-after: 1") && refused.contains("all 8 connections"), "{refused}");
            // One that waits gets the slot of another.
            let waiting = get(&listener);
            let (waiting, _sent) = tokio::join!(waiting, async { release.send(true).unwrap() });
            assert!(waiting.starts_with("HTTP/1.1 200 ") && waiting.ends_with("released"), "{waiting}");
        };
        let (first, ()) = tokio::join!(first, others);
        assert!(first.iter().all(|answer| answer.ends_with("released")), "{first:?}");
        stop.cancel();
    };
    tokio::join!(serve(&listener, answer, &stop), clients);
}

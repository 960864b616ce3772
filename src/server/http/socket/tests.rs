use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::*;
use crate::server::http::connections::{Connections, OpenConnection};
use crate::server::http::shares::PeerKey;

/// What the heads of a connection say, read in pieces of `size` bytes.
fn heads(text: &str, size: usize) -> Vec<Head> {
    let (mut heads, mut found) = (Heads::default(), Vec::new());
    for piece in text.as_bytes().chunks(size) {
        heads.read(piece, |head| found.push(head));
    }
    found
}

#[test]
fn heads_are_found_wherever_the_pieces_end() {
    let plain = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\na\r\n\r\nb: c\n";
    let empty = "GET /healthz HTTP/1.0\nContent-Length: 0\n\n";
    let chunked =
        "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    let length_first = "POST / HTTP/1.1\r\ncontent-length: 3\r\nTRANSFER-ENCODING : chunked\r\n\r\n";
    let encoding_first = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n";
    let old = Head::default();
    let well = Head { is_http_11: true, ..old };
    let last = Head { is_last: true, ..well };
    let ambiguous = Head { is_ambiguous: true, ..last };
    for (text, expected) in [
        (plain.to_owned(), vec![well]),
        (format!("\r\n{plain}\r\n{empty}{plain}"), vec![well, old, well]),
        (format!("{plain}{chunked}"), vec![well, last]),
        (length_first.to_owned(), vec![ambiguous]),
        (format!("{empty}{encoding_first}"), vec![old, ambiguous]),
        (format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(2 * MAX_HEAD_BYTES)), vec![]),
    ] {
        for size in [1, 2, 7, 1_000_000] {
            assert_eq!(heads(&text, size), expected, "{size}: {}", &text[..text.len().min(200)]);
        }
    }
}

#[test]
fn a_request_is_complete_with_its_body() {
    let head = "POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n";
    let chunked = "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (text, is_complete) in [
        (String::new(), true),
        ("GET / HTTP/1.1\r\n".to_owned(), false),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), true),
        (head.to_owned(), false),
        (format!("{head}a"), false),
        (format!("{head}ab"), true),
        (format!("{head}abP"), false),
        (format!("{chunked}2\r\nab\r\n"), false),
        (format!("{chunked}2;x=y\r\n\r\n\r\n0\r\n"), false),
        (format!("{chunked}2\r\nab\r\n0\r\nA: b\r\n\r\n"), true),
        (format!("{chunked}ffffffffffffffff\r\n"), false),
        (format!("{chunked}x\r\n"), false),
    ] {
        for size in [1, 3, 1_000] {
            let mut heads = Heads::default();
            text.as_bytes().chunks(size).for_each(|piece| heads.read(piece, |_| {}));
            assert_eq!(heads.is_complete(), is_complete, "{size}: {text}");
        }
    }
}

/// A client, its connection and the server's socket of it.
async fn connect() -> (TcpStream, OpenConnection, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let open = Connections::new(1, false).open(PeerKey::Local, permit);
    let socket = Socket::new(stream, Arc::clone(&open.connection));
    (client, open, socket)
}

/// A client that reads nothing, and then everything.
#[tokio::test]
async fn v_579_a_socket_notices_how_fast_its_client_reads() {
    let (mut client, open, mut socket) = connect().await;
    let is_slow_in_a_day = || {
        let later = std::time::Instant::now() + Duration::from_secs(86_400);
        open.connection.activity.pace.is_slow(later)
    };
    socket.write_all(b"all of it fits").await.unwrap();
    socket.flush().await.unwrap();
    assert!(!is_slow_in_a_day());
    // More than any system stores for a connection.
    let answer = vec![b'x'; 64 << 20];
    assert!(timeout(Duration::from_millis(300), socket.write_all(&answer)).await.is_err());
    assert!(is_slow_in_a_day());
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.map(|_| all.len())
    });
    socket.write_all(b"the end").await.unwrap();
    socket.flush().await.unwrap();
    assert!(!is_slow_in_a_day());
    drop(socket);
    assert!(reading.await.unwrap().unwrap() > 7);
}

/// Threat 826. Scripts have empty lines, and what is sent with them is no request.
#[tokio::test]
async fn v_826_the_end_of_an_upgraded_connection_is_passed_on() {
    let (mut client, open, mut socket) = connect().await;
    let script = b"it looks like\na request\n\n";
    open.connection.activity.begin_upgrade();
    client.write_all(script).await.unwrap();
    // It still reads, so that nothing else says that it is gone.
    client.shutdown().await.unwrap();
    let mut read = Vec::new();
    timeout(Duration::from_secs(60), socket.read_to_end(&mut read)).await.unwrap().unwrap();
    assert_eq!(read, script);
}

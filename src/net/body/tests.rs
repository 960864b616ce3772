use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use super::*;
use crate::net::call::{FetchRequest, RedirectMode};
use crate::net::connections::{Connections, Grant, HttpResponse, Times, system_resolver};
use crate::net::request::HttpRequest;

/// How long a host sends, if nobody ends it.
const LONG: Duration = Duration::from_secs(60);

/// A response whose body is in gzip. `send` sends what follows the header of gzip.
async fn response(idle: Duration, send: impl FnOnce(&mut TcpStream) + Send + 'static) -> HttpResponse {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _head = stream.read(&mut [0; 4_096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n").unwrap();
        stream.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]).unwrap();
        send(&mut stream);
    });
    let request = FetchRequest {
        id: 1,
        url,
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
        redirect: RedirectMode::Follow,
        timeout_ms: None,
    };
    let times = Times { connect: LONG, head: LONG, idle, total: LONG };
    let connections = Connections::new(Arc::new(|_: &str, _: u16| Grant::Itself), system_resolver(), times);
    let request = HttpRequest::prepare(request).unwrap();
    connections.send(&request, 1 << 20, Instant::now() + LONG).await.unwrap()
}

/// Threat 819: a body that is compressed blocks without output, as fast as it is read, until the connection ends.
#[tokio::test]
async fn v_819_a_body_without_output_ends_with_its_time() {
    let mut response = response(Duration::from_millis(500), |stream| {
        let (blocks, started) = ([0, 0, 0, 0xff, 0xff].repeat(100_000), Instant::now());
        while started.elapsed() < LONG && stream.write_all(&blocks).is_ok() {}
    })
    .await;
    let names: Vec<String> = response.head.pairs().into_iter().map(|[name, _value]| name).collect();
    assert!(!names.contains(&"content-encoding".to_owned()), "{names:?}");
    // The end of the host's patience would be `NetFailed`.
    assert_eq!(response.body.part().await.unwrap_err().code, ToolErrorCode::NetTimeout);
}

/// Threat 852: when the time is over, there is more at once.
#[tokio::test]
async fn v_852_the_time_of_a_body_counts_also_while_there_is_more_of_it() {
    let mut response = response(LONG, |stream| {
        // A megabyte of zeros, whose repetitions have codes of one bit.
        let begin = [0xed_u8, 0xc1, 0x31, 0x01, 0, 0, 0, 0xc2, 0xa0, 0xf5, 0x4f, 0x6d, 0x08, 0x5f, 0xa0];
        let zeros = [begin.as_slice(), &[0; 1_016], &[0x3e, 0x03]].concat();
        stream.write_all(&zeros).unwrap();
        // Until the response is dropped.
        let _end = stream.read(&mut [0]);
    })
    .await;
    let part = response.body.part().await.unwrap();
    assert!(part.bytes.len() >= PART_BYTES && !part.is_last, "{} bytes", part.bytes.len());
    response.body.ends = Instant::now();
    assert_eq!(response.body.part().await.unwrap_err().code, ToolErrorCode::NetTimeout);
}

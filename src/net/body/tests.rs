use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread;

use super::*;
use crate::net::call::{FetchRequest, RedirectMode};
use crate::net::connections::{Connections, Grant, Times, system_resolver};
use crate::net::request::HttpRequest;

/// How long a host sends, if nobody ends it.
const LONG: Duration = Duration::from_secs(60);

/// Threat 819: a body that is compressed blocks without output, as fast as it is read, until the connection ends.
fn endless() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _head = stream.read(&mut [0; 4_096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n").unwrap();
        stream.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]).unwrap();
        let (blocks, started) = ([0, 0, 0, 0xff, 0xff].repeat(100_000), Instant::now());
        while started.elapsed() < LONG && stream.write_all(&blocks).is_ok() {}
    });
    port
}

#[tokio::test]
async fn v_819_a_body_without_output_ends_with_its_time() {
    let url = format!("http://127.0.0.1:{}/", endless());
    let request = FetchRequest {
        id: 1,
        url,
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
        redirect: RedirectMode::Follow,
        timeout_ms: None,
    };
    let times = Times { connect: LONG, head: LONG, idle: Duration::from_millis(500), total: LONG };
    let connections = Connections::new(Arc::new(|_: &str, _: u16| Grant::Itself), system_resolver(), times);
    let request = HttpRequest::prepare(request).unwrap();
    let mut response = connections.send(&request, 1 << 20, Instant::now() + LONG).await.unwrap();
    let names: Vec<String> = response.head.pairs().into_iter().map(|[name, _value]| name).collect();
    assert!(!names.contains(&"content-encoding".to_owned()), "{names:?}");
    // The end of the host's patience would be `NetFailed`.
    assert_eq!(response.body.part().await.unwrap_err().code, ToolErrorCode::NetTimeout);
}

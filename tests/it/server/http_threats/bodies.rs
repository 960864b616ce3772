//! Bodies and heads that are large, or do not end.

use super::*;
use crate::support::serve::status_bytes;

#[test]
fn a_body_of_100_megabytes() {
    let server = Server::plain();
    let megabyte = vec![b' '; 1 << 20];
    for is_announced in [true, false] {
        let mut stream = server.connect();
        let length = if is_announced {
            format!("Content-Length: {}", 100 << 20)
        } else {
            "Transfer-Encoding: chunked".to_owned()
        };
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: {}\r\nContent-Type: application/json\r\n{length}\r\n\r\n",
            JSON[0].1
        )
        .unwrap();
        for _ in 0..100 {
            if !is_announced {
                write!(stream, "{:x}\r\n", megabyte.len()).unwrap();
            }
            stream.write_all(&megabyte).unwrap();
            if !is_announced {
                stream.write_all(b"\r\n").unwrap();
            }
        }
        if !is_announced {
            stream.write_all(b"0\r\n\r\n").unwrap();
        }
        let reply = Reply::read(stream);
        assert_eq!(reply.status, 413);
    }
    let peak = status_bytes(server.process(), "VmHWM:");
    assert!(peak < 300 << 20, "{peak} bytes");
    is_well(&server);
}

#[test]
fn bodies_that_do_not_end() {
    let server = Server::plain();
    let slow = begin_body(&server, 1_000);
    // Together they are slightly larger than a body may be.
    let large: Vec<_> = (0..8).map(|_| begin_body(&server, 33 << 20)).collect();
    let refused = wait_for(|| {
        large.iter().position(|stream| {
            stream.set_nonblocking(true).unwrap();
            matches!(stream.peek(&mut [0; 12]), Ok(12))
        })
    });
    large[refused].set_nonblocking(false).unwrap();
    let mut large = large;
    let reply = Reply::read(large.remove(refused));
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    // Small requests are read all this time.
    is_well(&server);
    drop(large);
    assert_eq!(Reply::read(slow).status, 408);
    is_well(&server);
}

/// Bodies that fill the common bound keep out other large bodies, and nothing else.
#[test]
fn v_336_large_bodies_keep_no_small_request_out() {
    let server = Server::plain();
    let mut held: Vec<_> = (0..7).map(|_| begin_body(&server, 33 << 20)).collect();
    // The rest of 256 MiB, in pieces that become smaller and smaller.
    for (bytes, count) in [(1 << 20, 30), (64 << 10, 20), (4 << 10, 20), (128, 40)] {
        held.extend((0..count).map(|_| begin_body(&server, bytes)));
    }
    let refused = |held: &[TcpStream]| {
        let is_refused = |stream: &&TcpStream| {
            stream.set_nonblocking(true).unwrap();
            matches!(stream.peek(&mut [0; 12]), Ok(12))
        };
        held.iter().filter(is_refused).count()
    };
    wait_for(|| (refused(&held) > 0).then_some(()));
    is_well(&server);
    assert_eq!(refused(&held[37..]), 0, "small bodies are read");
}

/// Threat 657. The head of the answer to a call comes before its run is admitted.
#[test]
fn v_657_inputs_of_runs_that_wait_count_as_bodies() {
    let server = Server::start(Start::new().arguments(&["--max-runs", "3", "--queue-timeout", "10m"]));
    let session = server.session_without_resumption();
    let begin = |id: u32, code: &str, megabytes: usize| {
        let input = "x".repeat(megabytes * 1_000_000);
        let arguments = json!({ "code": code, "input": input, "timeoutMs": 600_000 });
        session.begin(id, "tools/call", json!({ "name": "executeTypescript", "arguments": arguments }))
    };
    let wait_for_pool = |active: u32, waiting: u32| {
        let is_pool = |health: &Value| {
            let pool = &health["connectionPool"];
            pool["active"] == active && pool["waiting"] == waiting
        };
        server.wait_for_health(is_pool);
    };
    let sleep = "await new Promise((resolve) => setTimeout(resolve, 600_000))";
    let running: Vec<_> = (1..=3).map(|id| begin(id, sleep, 15)).collect();
    wait_for_pool(3, 0);
    // The inputs of runs that were admitted do not count any more: together it would be more than 256 MiB.
    let waiting: Vec<_> = (4..=10).map(|id| begin(id, "return 1", 34)).collect();
    assert!(running.iter().chain(&waiting).all(|reply| reply.status == 200));
    wait_for_pool(3, 7);
    let refused = begin(11, "return 1", 34);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    // Small requests are not affected.
    let small = session.begin_run(12, "return 1");
    assert_eq!(small.status, 200);
    wait_for_pool(3, 8);
    drop((waiting, small));
    wait_for_pool(3, 0);
    assert_eq!(begin(13, "return 1", 34).status, 200);
}

#[test]
fn a_head_that_does_not_end() {
    let server = Server::plain();
    let start = Instant::now();
    let mut idle = server.connect();
    let mut slow = server.connect();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ").unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    // A byte now and then keeps the connection from being idle.
    let ended = loop {
        let mut byte = [0];
        let is_open = slow.write_all(b"x").is_ok();
        match slow.read(&mut byte) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break true,
        }
        if !is_open || start.elapsed() > WATCHDOG {
            break !is_open;
        }
    };
    assert!(ended, "a head without an end is read for ever");
    // A client that sends nothing at all is disconnected too.
    assert_eq!(idle.read(&mut [0; 64]).unwrap(), 0);
    is_well(&server);
}

//! Against servers on loopback that write what they are told, byte by byte.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::net::call::{FetchRequest, RedirectMode};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Timeouts that tests wait for.
const SHORT: Times = Times {
    connect: Duration::from_millis(500),
    head: Duration::from_millis(500),
    idle: Duration::from_millis(500),
    total: Duration::from_secs(3),
};

/// Timeouts of what is answered, also on a busy machine.
const AMPLE: Times = Times {
    connect: Duration::from_secs(60),
    head: Duration::from_secs(60),
    idle: Duration::from_secs(60),
    total: Duration::from_secs(60),
};

/// A timeout that no test waits for.
const LONG: Duration = Duration::from_secs(3_600);

/// Timeout of tests that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

const MEGABYTE: usize = 1 << 20;

/// A server that hands every connection to `serve`, and counts them.
async fn server<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(stream));
        }
    });
    (port, connections)
}

/// Reads the head of a request.
async fn head_of(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// A server that answers every request with these bytes, and closes.
async fn answering(answer: impl Into<Vec<u8>>) -> (u16, Arc<AtomicUsize>) {
    let answer: Arc<[u8]> = answer.into().into();
    server(move |mut stream| {
        let answer = Arc::clone(&answer);
        async move {
            head_of(&mut stream).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    })
    .await
}

async fn hello() -> (u16, Arc<AtomicUsize>) {
    answering("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await
}

/// A resolver that has a list of answers for each name. It gives one after the other, and the last one again.
fn resolver(names: &[(&str, &[&[&str]])]) -> (Resolver, Arc<AtomicUsize>) {
    let address = |text: &&str| text.parse::<IpAddr>().unwrap();
    let answers = |lists: &&[&[&str]]| lists.iter().map(|list| list.iter().map(address).collect()).collect();
    let names: HashMap<String, Vec<Vec<IpAddr>>> =
        names.iter().map(|(name, lists)| ((*name).to_owned(), answers(lists))).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let resolver: Resolver = Arc::new(move |host| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        let found = names.get(host).and_then(|lists| lists.get(number).or(lists.last())).cloned();
        async move { found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such host")) }.boxed()
    });
    (resolver, asked)
}

/// Grants as a person writes them: names and addresses, `*` for every name.
fn granted(hosts: &[&str]) -> Granted {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    Arc::new(move |host, port| {
        let itself = [host.to_owned(), format!("{host}:{port}")];
        match hosts.iter().any(|granted| itself.contains(granted)) {
            true => Grant::Itself,
            false if host.parse::<IpAddr>().is_err() && hosts.iter().any(|granted| granted == "*") => {
                Grant::Among
            }
            false => Grant::No,
        }
    })
}

fn request(url: &str) -> HttpRequest {
    HttpRequest::prepare(FetchRequest {
        id: 1,
        url: url.to_owned(),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
        redirect: RedirectMode::Follow,
        timeout_ms: None,
    })
    .unwrap()
}

async fn send(connections: &Connections, url: &str) -> Result<HttpResponse, ToolError> {
    let ends = Instant::now() + connections.times.total;
    connections.send(&request(url), MEGABYTE, ends).await
}

/// The whole body of what a server answers, or the code of the error.
async fn body(connections: &Connections, url: &str) -> Result<Vec<u8>, ToolErrorCode> {
    let mut response = send(connections, url).await.map_err(|error| error.code)?;
    let mut bytes = Vec::new();
    loop {
        let part = response.body.part().await.map_err(|error| error.code)?;
        bytes.extend(part.bytes);
        if part.is_last {
            return Ok(bytes);
        }
    }
}

fn by_name(name: &str, addresses: &[&str], grants: &[&str]) -> Connections {
    Connections::new(granted(grants), resolver(&[(name, &[addresses])]).0, AMPLE)
}

#[tokio::test]
async fn a_name_leads_to_private_addresses_only_if_they_are_granted() {
    let (port, connections) = hello().await;
    let url = |host: &str| format!("http://{host}:{port}/");
    let local = ["127.0.0.1"];
    for (name, addresses, grants, expected) in [
        // A name of the internet that leads to this machine: whoever answers for it decides that, and not the
        // person who has granted it.
        ("api.example.com", &local[..], &["api.example.com"][..], Err(ToolErrorCode::NetDenied)),
        ("api.example.com", &local, &["*"], Err(ToolErrorCode::NetDenied)),
        ("api.example.com", &local, &["api.example.com", "127.0.0.1"], Ok(b"hello".to_vec())),
        ("api.example.com", &local, &["api.example.com", "127.0.0.1:1"], Err(ToolErrorCode::NetDenied)),
        // A name that only this machine or a private network has.
        ("localhost", &local, &["localhost"], Ok(b"hello".to_vec())),
        ("db.internal", &local, &["db.internal"], Ok(b"hello".to_vec())),
        ("localhost", &local, &["*"], Err(ToolErrorCode::NetDenied)),
        ("localhost", &local, &[], Err(ToolErrorCode::NetDenied)),
        // Metadata services need a grant of their own, whatever the name.
        ("metadata.internal", &["169.254.9.9"], &["metadata.internal"], Err(ToolErrorCode::NetDenied)),
        ("metadata.internal", &["fd00:ec2::254"], &["metadata.internal"], Err(ToolErrorCode::NetDenied)),
        ("a.internal", &["0.0.0.0"], &["a.internal"], Err(ToolErrorCode::NetDenied)),
        ("a.internal", &["224.0.0.1"], &["a.internal", "224.0.0.1"], Err(ToolErrorCode::NetDenied)),
        // Every form of an address.
        ("api.example.com", &["::ffff:127.0.0.1"], &["api.example.com"], Err(ToolErrorCode::NetDenied)),
        ("api.example.com", &["64:ff9b::7f00:1"], &["api.example.com"], Err(ToolErrorCode::NetDenied)),
        ("api.example.com", &["2002:7f00:1::1"], &["api.example.com"], Err(ToolErrorCode::NetDenied)),
        ("api.example.com", &["100.64.0.1"], &["api.example.com"], Err(ToolErrorCode::NetDenied)),
        ("api.example.com", &["fd00::1"], &["api.example.com"], Err(ToolErrorCode::NetDenied)),
        // Of several addresses those that pass are used.
        (
            "api.example.com",
            &["10.0.0.1", "127.0.0.1"],
            &["api.example.com", "127.0.0.1"],
            Ok(b"hello".to_vec()),
        ),
        ("api.example.com", &[], &["api.example.com"], Err(ToolErrorCode::NetFailed)),
    ] {
        let before = connections.load(Ordering::Relaxed);
        let answer = body(&by_name(name, addresses, grants), &url(name)).await;
        assert_eq!(answer, expected, "{name} {addresses:?} {grants:?}");
        let made = connections.load(Ordering::Relaxed) - before;
        assert_eq!(made, usize::from(expected.is_ok()), "{name} {addresses:?} {grants:?}");
    }
    let error =
        send(&by_name("api.example.com", &local, &["api.example.com"]), &url("api.example.com")).await;
    let message = error.unwrap_err().message;
    assert!(message.contains("leads to 127.0.0.1") && message.contains("--allow-net 127.0.0.1"), "{message}");
}

#[tokio::test]
async fn addresses_in_requests_are_granted_as_they_are() {
    let (port, connections) = hello().await;
    let none = || resolver(&[]).0;
    for spelling in ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "[::ffff:7f00:1]"] {
        let url = format!("http://{spelling}:{port}/");
        for grants in [&[][..], &["*"], &["example.com"], &["10.0.0.1"], &["127.0.0.1:1"]] {
            let answer = body(&Connections::new(granted(grants), none(), AMPLE), &url).await;
            assert_eq!(answer, Err(ToolErrorCode::NetDenied), "{spelling} {grants:?}");
        }
        assert_eq!(connections.load(Ordering::Relaxed), 0, "{spelling}");
    }
    for spelling in ["127.0.0.1", "2130706433", "0x7f.1"] {
        let url = format!("http://{spelling}:{port}/");
        let own = format!("127.0.0.1:{port}");
        let answer = body(&Connections::new(granted(&[&own]), none(), AMPLE), &url).await;
        assert_eq!(answer.unwrap(), b"hello", "{spelling}");
    }
    let groups = Connections::new(granted(&["224.0.0.1"]), none(), AMPLE);
    assert_eq!(body(&groups, "http://224.0.0.1/").await, Err(ToolErrorCode::NetDenied));
}

/// DNS rebinding: the first answer is an address that passes, the next ones lead to this machine.
#[tokio::test]
async fn a_name_is_resolved_once_and_its_connections_go_to_the_checked_address() {
    let (port, connections) = hello().await;
    let url = format!("http://api.example.com:{port}/");
    // `127.0.0.2` has no listener; it stands for the address that passes.
    let (resolver, asked) = resolver(&[("api.example.com", &[&["127.0.0.2"], &["127.0.0.1"]])]);
    let granted = granted(&["api.example.com", "127.0.0.2"]);
    let run = Connections::new(granted, resolver, AMPLE);
    for _ in 0..3 {
        let error = send(&run, &url).await.unwrap_err();
        assert_eq!(error.code, ToolErrorCode::NetFailed, "{error}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "each request has resolved the name again");
    assert_eq!(connections.load(Ordering::Relaxed), 0, "a request went to an address that was not checked");
}

#[tokio::test]
async fn requests_at_once_resolve_a_name_once() {
    let (port, connections) = hello().await;
    let (resolver, asked) = resolver(&[("a.internal", &[&["127.0.0.1"]])]);
    let run = Connections::new(granted(&["a.internal"]), resolver, AMPLE);
    let url = format!("http://a.internal:{port}/");
    let answers = futures::future::join_all((0..50).map(|_| body(&run, &url))).await;
    assert!(answers.iter().all(|answer| answer.as_deref() == Ok(b"hello")));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(connections.load(Ordering::Relaxed), 50);
}

#[tokio::test]
async fn a_name_that_was_not_resolved_is_resolved_again() {
    let (port, _) = hello().await;
    let answers: &[&[&str]] = &[&[], &["127.0.0.1"]];
    let (resolver, _) = resolver(&[("a.internal", answers)]);
    let run = Connections::new(granted(&["a.internal"]), resolver, AMPLE);
    let url = format!("http://a.internal:{port}/");
    assert_eq!(body(&run, &url).await, Err(ToolErrorCode::NetFailed));
    assert_eq!(body(&run, &url).await.unwrap(), b"hello");
}

/// The connections of a run on loopback.
fn local() -> Connections {
    local_within(AMPLE)
}

fn local_within(times: Times) -> Connections {
    Connections::new(granted(&["127.0.0.1"]), resolver(&[]).0, times)
}

#[tokio::test]
async fn heads_without_an_end_are_refused() {
    // In one header, in many, and one byte after the other.
    for kind in 0..3 {
        let (port, _) = server(move |mut stream| async move {
            head_of(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\na: ").await;
            loop {
                let more: &[u8] = match kind {
                    0 => &[b'b'; 4_096],
                    1 => b"b\r\na: ",
                    _ => b"b",
                };
                if stream.write_all(more).await.is_err() {
                    return;
                }
                if kind == 2 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        })
        .await;
        // The time for the head ends it, with what connecting has left, and no other one.
        let times = if kind == 2 { SHORT } else { AMPLE };
        let connections = local_within(Times { total: LONG, ..times });
        let url = format!("http://127.0.0.1:{port}/");
        let sent = tokio::time::timeout(WATCHDOG, send(&connections, &url)).await;
        let error = sent.expect("it ends").unwrap_err();
        let expected = if kind == 2 { ToolErrorCode::NetTimeout } else { ToolErrorCode::NetFailed };
        assert_eq!(error.code, expected, "{kind}: {error}");
    }
}

#[tokio::test]
async fn what_is_no_http_is_an_error() {
    for answer in
        ["", "nonsense\r\n\r\n", "HTTP/1.1 9999 OK\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"]
    {
        let (port, _) = answering(answer).await;
        let answer = body(&local(), &format!("http://127.0.0.1:{port}/")).await;
        assert_eq!(answer, Err(ToolErrorCode::NetFailed));
    }
}

#[tokio::test]
async fn bodies_end_at_the_limit() {
    let (port, _) = server(|mut stream| async move {
        head_of(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'a'; 65_536]).await.is_ok() {}
    })
    .await;
    let answer = body(&local(), &format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(answer, Err(ToolErrorCode::ResultTooLarge));
}

/// A gigabyte of zeros in a megabyte: three layers would be a terabyte, but only one is taken off.
#[tokio::test]
async fn a_compressed_body_is_counted_as_it_is_unpacked() {
    use std::io::Write as _;
    let zeros = vec![0; MEGABYTE];
    // A response with so many bytes more than are sent.
    let pack = |megabytes: usize, missing: usize| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for _ in 0..megabytes {
            packer.write_all(&zeros).unwrap();
        }
        let body = packer.finish().unwrap();
        let bytes = body.len() + missing;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {bytes}\r\n\r\n");
        [head.into_bytes(), body].concat()
    };
    // The rest never comes: what waits for all of it ends with `NET_TIMEOUT`.
    let begun: Arc<[u8]> = pack(2, MEGABYTE).into();
    let (port, _) = server(move |mut stream| {
        let begun = Arc::clone(&begun);
        async move {
            head_of(&mut stream).await;
            let _ = stream.write_all(&begun).await;
            tokio::time::sleep(LONG).await;
        }
    })
    .await;
    let answer = body(&local(), &format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(answer, Err(ToolErrorCode::ResultTooLarge));
    // Exactly as much as may be is no error.
    let (port, _) = answering(pack(1, 0)).await;
    assert_eq!(body(&local(), &format!("http://127.0.0.1:{port}/")).await.unwrap(), zeros);
}

#[tokio::test]
async fn bodies_that_trickle_or_stop_end_in_time() {
    // Each is ended by one time, and by no other one.
    for (pause, times, least) in [
        (LONG, Times { idle: SHORT.idle, ..AMPLE }, SHORT.idle),
        (Duration::from_millis(100), Times { total: SHORT.total, ..AMPLE }, SHORT.total),
    ] {
        let (port, _) = server(move |mut stream| async move {
            head_of(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\na").await;
            loop {
                tokio::time::sleep(pause).await;
                if stream.write_all(b"a").await.is_err() {
                    return;
                }
            }
        })
        .await;
        let started = Instant::now();
        let (connections, url) = (local_within(times), format!("http://127.0.0.1:{port}/"));
        let answer = tokio::time::timeout(WATCHDOG, body(&connections, &url)).await;
        assert_eq!(answer.expect("it ends"), Err(ToolErrorCode::NetTimeout));
        let took = started.elapsed() + Duration::from_millis(50);
        assert!(took > least, "{pause:?}: {took:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_cut_is_an_error() {
    let (port, _) = answering("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello").await;
    assert_eq!(body(&local(), &format!("http://127.0.0.1:{port}/")).await, Err(ToolErrorCode::NetFailed));
}

#[tokio::test]
async fn a_body_is_received_as_it_is_read() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let (port, _) = server(move |mut stream| {
        let counted = Arc::clone(&counted);
        async move {
            head_of(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n").await;
            while stream.write_all(&[b'a'; 65_536]).await.is_ok() {
                counted.fetch_add(65_536, Ordering::Relaxed);
            }
        }
    })
    .await;
    let connections = Connections::new(granted(&["127.0.0.1"]), resolver(&[]).0, Times::default());
    let ends = Instant::now() + Duration::from_secs(60);
    let url = request(&format!("http://127.0.0.1:{port}/"));
    let mut response = connections.send(&url, 1 << 30, ends).await.unwrap();
    let part = response.body.part().await.unwrap();
    assert!(!part.is_last && part.bytes.len() < MEGABYTE);
    tokio::time::sleep(Duration::from_millis(300)).await;
    // What fits into the buffers of both sockets and of the HTTP client.
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 16 * MEGABYTE, "{sent} bytes were received without anybody who reads them");
}

#[tokio::test]
async fn nothing_comes_from_the_environment_and_nothing_is_added() {
    let (seen, mut heads) = tokio::sync::mpsc::unbounded_channel();
    let (port, _) = server(move |mut stream| {
        let seen = seen.clone();
        async move {
            let head = head_of(&mut stream).await;
            let _ = seen.send(head);
            let answer = b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n";
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    let connections = local();
    for _ in 0..2 {
        send(&connections, &format!("http://127.0.0.1:{port}/a?b")).await.unwrap();
        let head = heads.recv().await.unwrap().to_ascii_lowercase();
        let mut names: Vec<&str> =
            head.lines().skip(1).filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"], "{head}");
        assert!(
            head.starts_with("get /a?b http/1.1\r\n") && head.contains("accept-encoding: gzip\r\n"),
            "{head}"
        );
    }
}

#[test]
fn ipv6_loopback_needs_a_grant_too() {
    let own = granted(&["::1"]);
    let run = |granted: &Granted| Connections::new(Arc::clone(granted), resolver(&[]).0, AMPLE);
    let origin = request("http://[::1]/").origin();
    run(&own).check(&origin).unwrap();
    let error = run(&granted(&["*", "127.0.0.1"])).check(&origin).unwrap_err();
    assert!(error.message.contains("`--allow-net '[::1]'`"), "{error}");
    let address = IpAddr::V6(Ipv6Addr::LOCALHOST);
    assert!(!run(&granted(&["a.example"])).may_lead_to(&request("http://a.example/").origin(), address));
    assert!(!run(&granted(&["a.example"])).may_lead_to(&request("http://a.example/").origin(), LOOPBACK));
}

/// Threat 815: a name server that does not answer keeps a thread for longer than its run.
#[tokio::test]
async fn v_815_all_runs_together_resolve_a_bounded_number_of_names() {
    const BOUND: usize = 4;
    let all = Arc::new(Semaphore::new(BOUND));
    let (begins, mut begun) = tokio::sync::mpsc::unbounded_channel();
    // With the test itself.
    let gate = Arc::new(std::sync::Barrier::new(BOUND + 1));
    let waiting = Arc::clone(&gate);
    let look_up = move |_host: &str| {
        begins.send(()).unwrap();
        waiting.wait();
        Ok(vec![LOOPBACK])
    };
    // Three runs, each with four names.
    let runs = [(); 3].map(|()| bounded_resolver(look_up.clone(), &all));
    let found: Vec<_> =
        runs.iter().flat_map(|run| [(); MAX_RESOLUTIONS].map(|()| tokio::spawn(run("a.example")))).collect();
    let mut free = Vec::new();
    for _ in 0..3 {
        for _ in 0..BOUND {
            begun.recv().await.unwrap();
        }
        free.push(all.available_permits());
        let gate = Arc::clone(&gate);
        tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
    }
    for one in found {
        assert_eq!(one.await.unwrap().unwrap(), [LOOPBACK]);
    }
    assert_eq!(free, [0; 3]);
}

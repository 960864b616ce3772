//! Requests that are refused.

use super::*;

#[test]
fn invalid_request_bodies() {
    let server = Server::plain();
    let send = |kind: &str, body: &str| server.send("POST", "/v1/runs", &[("Content-Type", kind)], body);
    problem(send("text/plain", "{}"), 415, "INVALID_ARGUMENTS");
    problem(server.send("POST", "/v1/runs", &[], "{}"), 415, "INVALID_ARGUMENTS");
    // A compressed body would be no JSON, and the message would not say why.
    for (encoding, is_read) in [("gzip", false), ("br, identity", false), ("Identity", true)] {
        let reply = create(&server, &[("Content-Encoding", encoding)], &typescript("return 1"));
        if is_read {
            assert_eq!(reply.message()["value"], 1, "{encoding}");
        } else {
            assert_eq!(reply.header("accept-encoding"), Some("identity"), "{encoding}");
            let refused = problem(reply, 415, "");
            assert!(refused["detail"].as_str().unwrap().contains("`Content-Encoding`"), "{refused}");
        }
    }
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    let deep_input = format!(
        r#"{{"language":"typescript","code":"return 1","input":{}1{}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    let many =
        format!(r#"{{"language":"typescript","code":"1","allowedTools":[{}1]}}"#, "1,".repeat(400_000));
    let long = format!(r#"{{"language":"typescript","code":"{}"}}"#, "x".repeat(5 << 20));
    let bodies = [
        "",
        "null",
        "[]",
        "{",
        "{}",
        "\u{0}",
        "\"a\"",
        "{\"language\":\"typescript\"}",
        "{\"code\":1}",
        r#"{"code":"return 1","language":7}"#,
        r#"{"code":"return 1","language":"typescript","stream":"yes"}"#,
        r#"{"code":"return 1","language":"typescript","background":true,"stream":true}"#,
        r#"{"code":"return 1","script":"a","language":"typescript"}"#,
        r#"{"script":"nothing","language":"typescript"}"#,
        r#"{"code":"return 1","language":"typescript","timeoutMs":-1}"#,
        r#"{"code":"return 1","language":"typescript","__proto__":{}}"#,
        &deep,
        &many,
        &long,
    ];
    for body in bodies {
        problem(send("application/json", body), 400, "INVALID_ARGUMENTS");
    }
    problem(send("application/json", &deep_input), 400, "INVALID_ARGUMENTS");
    let announced = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 40000000\r\n\r\n",
        server.address
    );
    let mut stream = server.connect();
    stream.write_all(announced.as_bytes()).unwrap();
    let _refused = stream.write_all(&vec![b' '; 40_000_000]);
    problem(Reply::read(stream), 413, "");
    // A client that waits for the answer sends no megabytes in vain.
    let mut stream = server.connect();
    let expecting = announced.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    stream.write_all(expecting.as_bytes()).unwrap();
    problem(Reply::read(stream), 413, "");
    let mut stream = server.connect();
    let request = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(b"\xff\xfe\x00").unwrap();
    problem(Reply::read(stream), 400, "INVALID_ARGUMENTS");
    // The last of two fields with one name counts, also where they are kept as text.
    let twice = r#"{"language":"typescript","input":1,"code":"return input","input":2}"#;
    assert_eq!(send("application/json", twice).message()["value"], 2);
    assert_eq!(run(&server, &typescript("return 1"))["value"], 1);
}

#[test]
fn paths_and_methods_that_there_are_not() {
    let server = Server::plain();
    problem(server.get("/v1", &[]), 404, "");
    problem(server.get("/v1/odd", &[]), 404, "");
    problem(server.get("/v1/runs/../../etc/passwd", &[]), 404, "");
    problem(server.get("/v1/runs/%2e%2e", &[]), 404, "RUN_NOT_FOUND");
    problem(server.get("/v1/runs/%ff", &[]), 400, "");
    let reply = server.get("/v1/runs", &[]);
    assert_eq!(reply.header("allow"), Some("POST"));
    problem(reply, 405, "");
    problem(server.send("PUT", "/v1/runs/a", &[], ""), 405, "");
    problem(server.send("POST", "/openapi.json", &[], ""), 405, "");
    assert_eq!(server.get("/odd", &[]).status, 404);
}

#[test]
fn the_token_host_and_origin_are_checked() {
    let server = Server::start(Start::new().variable("CX_HTTP_TOKEN", TOKEN));
    let body = typescript("return 1");
    let reply = create(&server, &[], &body);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    problem(reply, 401, "");
    for path in ["/v1/runs/a", "/v1/runs/a/output", "/openapi.json", "/v1/odd"] {
        problem(server.get(path, &[]), 401, "");
    }
    problem(server.send("DELETE", "/v1/runs/a", &[], ""), 401, "");
    let token = format!("Bearer {TOKEN}");
    let token = ("Authorization", token.as_str());
    assert_eq!(create(&server, &[token], &body).message()["value"], 1);
    problem(create(&server, &[token, ("Origin", "https://evil.example")], &body), 403, "");
    problem(create(&server, &[token, ("Host", "evil.example")], &body), 403, "");
    let local = create(&server, &[token, ("Origin", "http://localhost:3000")], &body);
    assert_eq!(local.header("access-control-allow-origin"), Some("http://localhost:3000"));
    let exposed = local.header("access-control-expose-headers").unwrap().to_owned();
    assert!(exposed.contains("Location"), "{exposed}");
}

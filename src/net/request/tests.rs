use http::HeaderValue;

use super::*;
use crate::net::call::{FetchCall, GuestBytes, RedirectMode};

fn wanted(url: &str) -> FetchRequest {
    FetchRequest {
        id: 1,
        url: url.to_owned(),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
        redirect: RedirectMode::Follow,
        timeout_ms: None,
    }
}

fn host(url: &str) -> String {
    HttpRequest::prepare(wanted(url))
        .map_or_else(|error| error.code.to_string(), |request| request.origin().name())
}

fn problem(request: FetchRequest) -> String {
    let error = HttpRequest::prepare(request).unwrap_err();
    assert_eq!(error.code, ToolErrorCode::InvalidArguments);
    error.message
}

#[test]
fn every_spelling_of_an_address_is_one() {
    for spelling in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "%31%32%37.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:0001]",
    ] {
        assert_eq!(host(&format!("http://{spelling}/a")), "127.0.0.1", "{spelling}");
        assert_eq!(host(&format!("http://{spelling}:8080/a")), "127.0.0.1:8080", "{spelling}");
    }
    for (url, expected) in [
        ("http://LOCALHOST./", "localhost"),
        ("http://localhost../", "localhost"),
        ("https://Example.COM:443/", "example.com"),
        ("http://example.com:443/", "example.com:443"),
        ("https://example.com:80/", "example.com:80"),
        ("http://[::1]:81/", "[::1]:81"),
        ("https://b\u{fc}cher.example/", "xn--bcher-kva.example"),
        // Addresses that look as if they had another host.
        ("http://example.com\\@127.0.0.1/", "example.com"),
        ("http:/\\127.0.0.1/", "127.0.0.1"),
        ("\thttp://a\nb.example/", "ab.example"),
        ("http://256.0.0.1/", "INVALID_ARGUMENTS"),
        ("http://1.2.3.4.5/", "INVALID_ARGUMENTS"),
        ("http://0x100000000/", "INVALID_ARGUMENTS"),
        ("http://a b/", "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(host(url), expected, "{url:?}");
    }
}

#[test]
fn addresses_that_no_script_may_ask_for() {
    for (url, words) in [
        ("ftp://example.com/", "knows `https:` and `http:` only: `ftp:`"),
        ("file:///etc/passwd", "knows `https:`"),
        ("data:text/plain,a", "knows `https:`"),
        ("javascript:1", "knows `https:`"),
        ("http://user:secret@example.com/", "user name"),
        ("http://user@example.com/", "user name"),
        ("http://:secret@example.com/", "user name"),
        ("example.com", "expected an address"),
        ("", "expected an address"),
        ("http://", "expected an address"),
    ] {
        let problem = problem(wanted(url));
        assert!(problem.contains(words) && !problem.contains("secret"), "{url}: {problem}");
    }
    assert!(problem(wanted(&format!("http://a/{}", "b".repeat(MAX_URL_BYTES)))).contains("at most"));
    for port in [22, 25, 6000, 6667, 10080] {
        let error = HttpRequest::prepare(wanted(&format!("http://example.com:{port}/"))).unwrap_err();
        assert_eq!(error.code, ToolErrorCode::NetDenied, "{port}");
    }
    // A fragment is the script's own.
    let request = HttpRequest::prepare(wanted("http://example.com/a?b#secret")).unwrap();
    assert_eq!(request.url.as_str(), "http://example.com/a?b");
}

#[test]
fn methods_and_headers_are_checked() {
    let with = |name: &str, value: &str| FetchRequest {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..wanted("http://a.example/")
    };
    for name in [
        "Host",
        "CONNECTION",
        "Content-Length",
        "Transfer-Encoding",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Via",
        "Keep-Alive",
        "Accept-Encoding",
        "Proxy-Authorization",
        "Proxy-Connection",
        "Sec-Fetch-Site",
        "Set-Cookie",
    ] {
        assert!(problem(with(name, "a")).contains("leave it out"), "{name}");
    }
    for name in ["", "a b", "a:", "a\n", "\u{e9}"] {
        assert!(problem(with(name, "a")).contains("the name of a header"), "{name:?}");
    }
    for value in ["a\r\nhost: b", "a\nb", "a\0b", "\u{1}"] {
        assert!(problem(with("x-a", value)).contains("line break"), "{value:?}");
    }
    assert!(problem(with("x-a", "\u{100}")).contains("U+00FF"));
    let request = HttpRequest::prepare(with("X-A", " \u{e9} ")).unwrap();
    assert_eq!(request.headers["x-a"].as_bytes(), [0xe9]);
    let many =
        FetchRequest { headers: vec![("a".to_owned(), "b".to_owned()); 101], ..wanted("http://a.example/") };
    assert!(problem(many).contains("101 headers"));
    assert!(problem(with("x-a", &"b".repeat(MAX_HEADER_BYTES))).contains("bytes"));
    for (method, expected) in [("patch", "PATCH"), ("Get", "GET"), ("PROPFIND", "PROPFIND")] {
        let request = FetchRequest { method: method.to_owned(), ..wanted("http://a.example/") };
        assert_eq!(HttpRequest::prepare(request).unwrap().method.as_str(), expected);
    }
    for method in ["CONNECT", "trace", "Track", "", "A B", "A\r\n"] {
        let request = FetchRequest { method: method.to_owned(), ..wanted("http://a.example/") };
        assert!(problem(request).contains("method"), "{method:?}");
    }
    let body =
        FetchRequest { body: Some(GuestBytes::Base64("YQ==".to_owned())), ..wanted("http://a.example/") };
    assert!(problem(body).contains("no body"));
}

/// Threat 817: ten thousand requests can wait for a connection.
#[test]
fn v_817_a_method_is_short_and_counts() {
    let with = |length| FetchRequest { method: "A".repeat(length), ..wanted("http://a.example/") };
    let longest = HttpRequest::prepare(with(MAX_METHOD_BYTES)).unwrap();
    assert_eq!(longest.method.as_str().len(), MAX_METHOD_BYTES);
    assert!(problem(with(MAX_METHOD_BYTES + 1)).contains("at most 64"));
    let bytes = |length| FetchCall::Open(Box::new(with(length))).bytes();
    assert_eq!(bytes(1_000) - bytes(0), 1_000);
}

fn head(status: StatusCode, target: &str) -> Head {
    let headers = [(header::LOCATION, HeaderValue::from_str(target).unwrap())];
    Head { status, headers: headers.into_iter().collect() }
}

/// Method, body and the names of the headers after a redirect with this status to `target`.
fn after(method: &str, status: u16, target: &str) -> (String, String, Vec<String>) {
    let sent = ["authorization", "cookie", "content-type", "x-a"];
    let request = FetchRequest {
        method: method.to_owned(),
        headers: sent.map(|name| (name.to_owned(), "1".to_owned())).to_vec(),
        body: (method != "GET").then(|| GuestBytes::Text("a".to_owned())),
        ..wanted("https://a.example/b/c?d")
    };
    let request = HttpRequest::prepare(request).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    let next = request.redirected(&head(status, target)).unwrap();
    let body = if next.body.is_empty() { "" } else { " with a body" };
    let mut headers: Vec<String> = next.headers.keys().map(ToString::to_string).collect();
    headers.sort_unstable();
    (format!("{}{body}", next.method), next.url.to_string(), headers)
}

#[test]
fn redirects_keep_what_the_standard_says() {
    let all = ["authorization", "content-type", "cookie", "x-a"].map(str::to_owned).to_vec();
    let without_body = ["authorization", "cookie", "x-a"].map(str::to_owned).to_vec();
    let elsewhere = ["content-type", "x-a"].map(str::to_owned).to_vec();
    for (method, status, target, expected) in [
        ("POST", 307, "/e", ("POST with a body", "https://a.example/e", &all)),
        ("POST", 308, "e", ("POST with a body", "https://a.example/b/e", &all)),
        ("POST", 301, "?e", ("GET", "https://a.example/b/c?e", &without_body)),
        ("POST", 302, "/e", ("GET", "https://a.example/e", &without_body)),
        ("PUT", 302, "/e", ("PUT with a body", "https://a.example/e", &all)),
        ("PUT", 303, "/e", ("GET", "https://a.example/e", &without_body)),
        ("GET", 303, "/e", ("GET", "https://a.example/e", &all)),
        // Another origin: another host, another scheme, another port.
        ("GET", 302, "//b.example/", ("GET", "https://b.example/", &elsewhere)),
        ("GET", 302, "http://a.example/", ("GET", "http://a.example/", &elsewhere)),
        ("POST", 307, "https://a.example:8443/", ("POST with a body", "https://a.example:8443/", &elsewhere)),
    ] {
        let (method_and_body, url, headers) = after(method, status, target);
        assert_eq!((&*method_and_body, &*url, &headers), expected, "{method} {status} {target}");
    }
}

#[test]
fn redirects_lead_to_no_other_scheme_and_carry_no_password() {
    let request = HttpRequest::prepare(wanted("http://a.example/")).unwrap();
    for target in [
        "file:///etc/passwd",
        "ftp://a.example/",
        "http://a:b@a.example/",
        "http://a.example:22/",
        "http://[",
    ] {
        request.redirected(&head(StatusCode::FOUND, target)).unwrap_err();
    }
}

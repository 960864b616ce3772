//! Faults of HTTP responses: statuses, bodies, streams, sessions.

use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use crate::http::{Http, Request, respond, stand_silently, write_chunk};
use crate::server::{notification, text_result};

/// Answers wrongly, if this mode does so here. Returns whether it did.
pub(crate) fn strike(http: &Http, request: &Request, stream: &mut TcpStream) -> std::io::Result<bool> {
    if request.method == "GET" {
        return strike_get(http, request, stream);
    }
    if request.method != "POST" {
        return Ok(false);
    }
    let struck = status(http, stream)? || body(http, request, stream)? || events(http, request, stream)?;
    Ok(struck)
}

fn strike_get(http: &Http, request: &Request, stream: &mut TcpStream) -> std::io::Result<bool> {
    let options = &http.server.options;
    let is_resumed = request.header("last-event-id").is_some();
    match options.mode.as_str() {
        "401-with-metadata" if request.path.starts_with("/.well-known/oauth-protected-resource") => {
            let resource = format!("{}/mcp", http.origin);
            let metadata = json!({ "resource": resource, "authorization_servers": [http.elsewhere] });
            let headers = [("Content-Type", "application/json")];
            respond(stream, "200 OK", &headers, metadata.to_string().as_bytes())?;
        }
        _ if request.path != "/mcp" => respond(stream, "404 Not Found", &[], b"")?,
        "405" => respond(stream, "405 Method Not Allowed", &[], b"")?,
        "sse-cut" if is_resumed && options.variant == "resumes" => {
            options.note("resumed");
            let id = http.cut.lock().unwrap().take().unwrap_or_default();
            begin_events(stream)?;
            write_chunk(stream, format!("id: 2\ndata: {}\n\n", text_result(&id, "well")).as_bytes())?;
            stream.write_all(b"0\r\n\r\n")?;
        }
        "sse-cut" | "sse-retry-0" | "sse-retry-huge" if is_resumed => {
            options.note("resumed");
            begin_events(stream)?;
            write_chunk(stream, format!("id: 2\n{}data: \n\n", retry(http)).as_bytes())?;
            return Err(ErrorKind::BrokenPipe.into());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn status(http: &Http, stream: &mut TcpStream) -> std::io::Result<bool> {
    let options = &http.server.options;
    let metadata = format!(
        "Bearer error=\"invalid_token\", resource_metadata=\"{}/.well-known/oauth-protected-resource\"",
        http.origin
    );
    let location = format!("{}/mcp", http.elsewhere);
    let retry_after = match options.variant.as_str() {
        "" => "2",
        "huge" => "99999999999999999999",
        "negative" => "-5",
        "date" => "Fri, 21 Nov 2098 00:00:00 GMT",
        seconds => seconds,
    };
    let retry_after = ("Retry-After", retry_after);
    let (line, header) = match options.mode.as_str() {
        "401" => ("401 Unauthorized", None),
        "401-with-metadata" => ("401 Unauthorized", Some(("WWW-Authenticate", metadata.as_str()))),
        "403" => ("403 Forbidden", None),
        "404-session" if http.sessions.load(Ordering::SeqCst) == 1 => {
            // The next session is fine.
            http.sessions.fetch_add(1, Ordering::SeqCst);
            ("404 Not Found", None)
        }
        "405" => ("405 Method Not Allowed", None),
        "408" => ("408 Request Timeout", None),
        "409" => ("409 Conflict", None),
        "429" => ("429 Too Many Requests", Some(retry_after)),
        "500" => ("500 Internal Server Error", None),
        "502" => ("502 Bad Gateway", None),
        "503" => ("503 Service Unavailable", Some(retry_after)),
        "204" => ("204 No Content", None),
        "redirect-301" => ("301 Moved Permanently", Some(("Location", location.as_str()))),
        "redirect-302" => ("302 Found", Some(("Location", location.as_str()))),
        "redirect-307" => ("307 Temporary Redirect", Some(("Location", location.as_str()))),
        _ => return Ok(false),
    };
    if ["204", "408", "500", "502", "503"].contains(&options.mode.as_str()) && !options.at_all {
        // Such an answer does not say whether the call took effect. Here it did.
        options.note("executed target");
    }
    respond(stream, line, header.as_slice(), b"")?;
    Ok(true)
}

fn body(http: &Http, request: &Request, stream: &mut TcpStream) -> std::io::Result<bool> {
    let options = &http.server.options;
    let well = text_result(&request.body["id"], "well").to_string();
    let json = ("Content-Type", "application/json");
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let megabyte = vec![b'x'; 1 << 20];
    let executed = || options.note("executed target");
    match options.mode.as_str() {
        "wrong-content-type" => {
            executed();
            respond(stream, "200 OK", &[("Content-Type", "text/plain")], well.as_bytes())?;
        }
        "html-error" => {
            executed();
            let page =
                format!("<!DOCTYPE html><html><body>Bad gateway {}</body></html>", "&nbsp;".repeat(9_999));
            let line = if options.variant == "502" { "502 Bad Gateway" } else { "200 OK" };
            respond(stream, line, &[("Content-Type", "text/html")], page.as_bytes())?;
        }
        "truncated-chunked" => {
            executed();
            write!(stream, "{chunked}{:x}\r\n{}", well.len(), &well[..well.len() / 2])?;
            return Err(ErrorKind::BrokenPipe.into());
        }
        "endless-body" => {
            executed();
            stream.write_all(chunked.as_bytes())?;
            write_chunk(stream, br#"{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":""#)?;
            loop {
                write_chunk(stream, &megabyte)?;
            }
        }
        "slow-loris" => {
            executed();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                well.len()
            )?;
            for byte in well.as_bytes() {
                stream.write_all(&[*byte])?;
                std::thread::sleep(Duration::from_millis(options.number(1_000)));
            }
        }
        "gzip-bomb" => {
            executed();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\n{}: {}\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
                json.0, json.1
            )?;
            write_chunk(stream, &bomb_head())?;
            // Sixteen chunks are a megabyte compressed and 160 MB decompressed; all of them are ten gigabytes.
            for _ in 0..1_024 {
                write_chunk(stream, &BOMB.repeat(5_000))?;
            }
            stream.write_all(b"0\r\n\r\n")?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn events(http: &Http, request: &Request, stream: &mut TcpStream) -> std::io::Result<bool> {
    let options = &http.server.options;
    let id = &request.body["id"];
    let mode = options.mode.as_str();
    if !mode.starts_with("sse-") || mode == "sse-answers" {
        return Ok(false);
    }
    options.note("executed target");
    begin_events(stream)?;
    match mode {
        "sse-cut" | "sse-retry-0" | "sse-retry-huge" => {
            *http.cut.lock().unwrap() = Some(id.clone());
            let message = notification("notifications/message", json!({ "level": "info", "data": "soon" }));
            write_chunk(stream, format!("id: 1\n{}data: {message}\n\n", retry(http)).as_bytes())?;
            return Err(ErrorKind::BrokenPipe.into());
        }
        "sse-no-end" => stand_silently(stream)?,
        "sse-huge-event" => {
            write_chunk(
                stream,
                format!(
                    r#"data: {{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#
                )
                .as_bytes(),
            )?;
            let megabyte = vec![b'x'; 1 << 20];
            for _ in 0..options.number(40) {
                write_chunk(stream, &megabyte)?;
            }
            write_chunk(stream, b"\"}]}}\n\n")?;
        }
        "sse-comment-flood" => loop {
            write_chunk(stream, &b": comment\n".repeat(6_000))?;
        },
        _ => {
            let well = text_result(id, "well");
            let event = format!("id: 1\ndata: {well}\n\n");
            write_chunk(stream, event.repeat(3).as_bytes())?;
        }
    }
    stream.write_all(b"0\r\n\r\n")?;
    Ok(true)
}

/// The session's header, which is wrong in some modes.
pub(crate) fn session_header(http: &Http, method: &str) -> String {
    let session = http.sessions.load(Ordering::SeqCst);
    let begins = method == "initialize";
    match http.server.options.mode.as_str() {
        "modern-only" => String::new(),
        "session-crlf" if begins => "Mcp-Session-Id: one\rX-Injected: yes\r\n".to_owned(),
        "session-1mb" if begins => format!("Mcp-Session-Id: {}\r\n", "s".repeat(1 << 20)),
        "session-changing" => {
            let next = http.sessions.fetch_add(1, Ordering::SeqCst);
            format!("Mcp-Session-Id: changing-{next}\r\n")
        }
        _ if begins => format!("Mcp-Session-Id: session-{session}\r\n"),
        _ => String::new(),
    }
}

fn begin_events(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
}

fn retry(http: &Http) -> &'static str {
    match http.server.options.mode.as_str() {
        "sse-retry-0" => "retry: 0\n",
        "sse-retry-huge" => "retry: 1000000000000\n",
        _ => "retry: 20\n",
    }
}

/// Eight times "repeat the last 258 bytes", at 13 bits each, which ends where a byte ends.
const BOMB: [u8; 13] = bomb();

/// The bits of one repetition, in the order in which they are written: length 258, distance 1.
const REPEAT: [u8; 13] = [1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];

const fn bomb() -> [u8; 13] {
    let mut bytes = [0; 13];
    let mut position = 0;
    while position < 13 * 8 {
        bytes[position / 8] |= REPEAT[position % 13] << (position % 8);
        position += 1;
    }
    bytes
}

/// A gzip header, the begin of a block with the fixed code, and literals that end where a byte ends.
fn bomb_head() -> Vec<u8> {
    let mut head = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    // An empty stored block brings us to a byte's end; then three bits of the fixed block's head and
    // literals of nine bits (144 is the first), five of which make 48 bits with it.
    head.extend([0, 0, 0, 0xff, 0xff]);
    let mut bits = vec![0, 1, 0];
    for _ in 0..5 {
        bits.extend([1, 1, 0, 0, 1, 0, 0, 0, 0]);
    }
    head.extend(
        bits.chunks(8)
            .map(|bits| bits.iter().enumerate().fold(0_u8, |byte, (position, bit)| byte | (bit << position))),
    );
    head
}

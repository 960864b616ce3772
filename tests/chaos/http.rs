//! The transports over HTTP/1.1: requests read by hand, answers written by hand.

use std::io::{BufRead as _, BufReader, Error, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::Value;

use crate::faults;
use crate::options::Transport;
use crate::server::{Server, Sink, text_result};

/// A healthy client's largest request is an argument of 8 MB.
const MAX_BODY: u64 = 32 << 20;

/// The server at its address.
pub(crate) struct Http {
    pub(crate) server: Arc<Server>,
    /// This server's origin and that of another one, to which nothing secret may be sent.
    pub(crate) origin: String,
    pub(crate) elsewhere: String,
    /// Counts sessions; the last one is the one that is open.
    pub(crate) sessions: AtomicU64,
    /// Requests about tasks that wait for an answer.
    polls: AtomicU64,
    /// The call whose stream was cut.
    pub(crate) cut: Mutex<Option<Value>>,
    /// The stream of the transport of 2024.
    events: Mutex<Option<mpsc::Sender<String>>>,
}

impl Http {
    /// The status with which a request about a task is refused, by a proxy that is restarted or has enough: the first
    /// two of three, or all.
    fn refuses_again(&self) -> Option<&'static str> {
        const UNAVAILABLE: &str = "503 Service Unavailable";
        match self.server.options.variant.as_str() {
            "refused" => (self.polls.fetch_add(1, Ordering::SeqCst) % 3 < 2).then_some(UNAVAILABLE),
            "refused-always" => Some(UNAVAILABLE),
            "limited-always" => Some("429 Too Many Requests"),
            _ => None,
        }
    }
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Reads the next request of a connection; `None` at its end.
    fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut parts = line.split_whitespace().map(str::to_owned);
        let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut request = Self { method, path, headers, body: Value::Null };
        let length: u64 = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = Vec::new();
        reader.take(length.min(MAX_BODY)).read_to_end(&mut body)?;
        request.body = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Some(request))
    }
}

/// Messages of one request that are to be written to its response.
struct Channel(Mutex<mpsc::Sender<String>>);

impl Sink for Channel {
    fn send_text(&self, message: &str) -> std::io::Result<()> {
        let sent = self.0.lock().unwrap().send(message.to_owned());
        sent.map_err(|_| Error::from(ErrorKind::BrokenPipe))
    }
}

/// Serves until the process is killed.
pub(crate) fn serve(server: &Arc<Server>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let http = Arc::new(Http {
        server: Arc::clone(server),
        origin: origin(&listener),
        elsewhere: origin(&elsewhere),
        sessions: AtomicU64::new(0),
        polls: AtomicU64::new(0),
        cut: Mutex::default(),
        events: Mutex::default(),
    });
    let path = if server.options.transport == Transport::Sse { "sse" } else { "mcp" };
    println!("listening {}/{path}", http.origin);
    let there = Arc::clone(&http);
    std::thread::spawn(move || accept(&elsewhere, &there, answer_elsewhere));
    let answer = if server.options.transport == Transport::Sse { answer_sse } else { answer_streamable };
    accept(&listener, &http, answer);
}

/// Answers one request. An error ends the connection.
type Answer = fn(&Http, &Request, &mut TcpStream) -> std::io::Result<()>;

fn accept(listener: &TcpListener, http: &Arc<Http>, answer: Answer) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { continue };
        let http = Arc::clone(http);
        std::thread::spawn(move || -> std::io::Result<()> {
            stream.set_nodelay(true)?;
            let mut reader = BufReader::new(stream.try_clone()?);
            while let Some(request) = Request::read(&mut reader)? {
                answer(&http, &request, &mut stream)?;
            }
            Ok(())
        });
    }
}

/// The other origin, which must receive no request with a secret. It answers, so that a client that follows a redirect
/// is detected.
fn answer_elsewhere(http: &Http, request: &Request, stream: &mut TcpStream) -> std::io::Result<()> {
    http.server.options.note(&format!(
        "elsewhere {} authorization={} body={}",
        request.method,
        request.header("authorization").unwrap_or("none"),
        request.body["method"],
    ));
    let body = text_result(&request.body["id"], "from elsewhere").to_string();
    respond(stream, "200 OK", &[("Content-Type", "application/json")], body.as_bytes())
}

fn answer_streamable(http: &Http, request: &Request, stream: &mut TcpStream) -> std::io::Result<()> {
    let options = &http.server.options;
    let name = request.body["params"]["name"].as_str().unwrap_or_default();
    let method = request.body["method"].as_str().unwrap_or_default();
    options.note(&format!("request {} {} {method} {name}", request.method, request.path));
    let strikes = options.at_all || name == "target" || request.method == "GET";
    if strikes && faults::strike(http, request, stream)? {
        return Ok(());
    }
    if request.path != "/mcp" {
        return respond(stream, "404 Not Found", &[], b"");
    }
    match request.method.as_str() {
        "POST" => {}
        "GET" => return stand(stream),
        "DELETE" => return respond(stream, "200 OK", &[], b""),
        _ => return respond(stream, "405 Method Not Allowed", &[], b""),
    }
    let has_no_sessions = options.is("modern-only") || options.variant == "modern";
    let is_lenient = has_no_sessions || options.mode.starts_with("session-");
    let session = http.sessions.load(Ordering::SeqCst);
    let is_known = request.header("mcp-session-id") == Some(&*format!("session-{session}"));
    if method != "initialize" && method != "server/discover" && !is_lenient && !is_known {
        return respond(stream, "404 Not Found", &[], b"");
    }
    if matches!(method, "tasks/get" | "tasks/result")
        && let Some(status) = http.refuses_again()
    {
        return respond(stream, status, &[("Retry-After", "0")], b"");
    }
    let (sender, messages) = mpsc::channel();
    let sink: Arc<dyn Sink> = Arc::new(Channel(Mutex::new(sender)));
    if method.is_empty() || request.body["id"].is_null() {
        http.server.handle(&request.body, &sink);
        return respond(stream, "202 Accepted", &[], b"");
    }
    if method == "initialize" {
        http.sessions.fetch_add(1, Ordering::SeqCst);
    }
    http.server.handle(&request.body, &sink);
    drop(sink);
    let session = faults::session_header(http, method);
    let streams = ["progress", "add_tool", "target"].contains(&name)
        || method == "tasks/result"
        || options.is("elicits") && ["resources/read", "prompts/get"].contains(&method);
    if streams || options.is("sse-answers") {
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{session}Transfer-Encoding: chunked\r\n\r\n"
        )?;
        for message in messages {
            write_chunk(stream, format!("data: {message}\n\n").as_bytes())?;
        }
        if options.is("hang-call") {
            return stand_silently(stream);
        }
        return stream.write_all(b"0\r\n\r\n");
    }
    match messages.recv() {
        Ok(message) => {
            let length = message.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{session}Content-Length: {length}\r\n\r\n"
            )?;
            stream.write_all(message.as_bytes())
        }
        // A server that does not answer does not close either.
        Err(_) => stand_silently(stream),
    }
}

/// The transport of 2024: one stream for all answers, and an address to post to.
fn answer_sse(http: &Http, request: &Request, stream: &mut TcpStream) -> std::io::Result<()> {
    let options = &http.server.options;
    let name = request.body["params"]["name"].as_str().unwrap_or_default();
    options.note(&format!("request {} {} {name}", request.method, request.path));
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/sse") => {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
            )?;
            let (sender, messages) = mpsc::channel();
            *http.events.lock().unwrap() = Some(sender);
            let endpoint = match options.mode.as_str() {
                "endpoint-elsewhere" => format!("{}/messages", http.elsewhere),
                _ => "/messages?session=1".to_owned(),
            };
            if !options.is("no-endpoint") {
                write!(stream, "event: endpoint\ndata: {endpoint}\n\n")?;
            }
            loop {
                match messages.recv_timeout(Duration::from_secs(1)) {
                    Ok(message) if message == "cut" => return Err(ErrorKind::BrokenPipe.into()),
                    Ok(message) => write!(stream, "event: message\ndata: {message}\n\n")?,
                    Err(mpsc::RecvTimeoutError::Timeout) => stream.write_all(b": still here\n\n")?,
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Err(ErrorKind::BrokenPipe.into()),
                }
            }
        }
        ("POST", "/messages?session=1") => {
            let Some(sender) = http.events.lock().unwrap().clone() else {
                return respond(stream, "404 Not Found", &[], b"");
            };
            respond(stream, "202 Accepted", &[], b"")?;
            if options.is("sse-cut") && name == "target" {
                options.note("executed target");
                let _gone = sender.send("cut".to_owned());
                return Ok(());
            }
            let sink: Arc<dyn Sink> = Arc::new(Channel(Mutex::new(sender)));
            http.server.handle(&request.body, &sink);
            Ok(())
        }
        // Also the post to `/sse` by which clients find out that this is the transport of 2024.
        _ => respond(stream, "405 Method Not Allowed", &[], b""),
    }
}

/// A stream without messages.
fn stand(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
    loop {
        stream.write_all(b": still here\n\n")?;
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Waits until the client closes the connection.
pub(crate) fn stand_silently(stream: &mut TcpStream) -> std::io::Result<()> {
    while stream.read(&mut [0; 1_024])? > 0 {}
    Err(ErrorKind::BrokenPipe.into())
}

pub(crate) fn write_chunk(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    stream.write_all(&chunk)
}

/// A whole response.
pub(crate) fn respond(
    stream: &mut TcpStream,
    status: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !status.starts_with("204") {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    stream.write_all(&[head.as_bytes(), b"\r\n", body].concat())
}

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A web server on loopback for scripts that fetch.
pub(crate) struct HttpHost {
    pub(crate) port: u16,
    state: Arc<State>,
}

/// A request that was received.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// What the server does with a request.
pub(crate) enum Reply {
    /// Answers with a status, headers and a body.
    Whole(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Nothing, until the other side closes the connection.
    Silence,
    /// A body of parts with a pause after each, without an end.
    Endless(Vec<u8>, Duration),
}

#[derive(Default)]
struct State {
    asked: Mutex<Vec<Asked>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

impl Reply {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Whole(200, vec![("content-type", "text/plain".to_owned())], text.into().into_bytes())
    }

    pub(crate) fn redirect(status: u16, target: impl Into<String>) -> Self {
        Self::Whole(status, vec![("location", target.into())], Vec::new())
    }
}

impl HttpHost {
    pub(crate) fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let (shared, answer) = (Arc::clone(&state), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
                    shared.most_open.fetch_max(open, Ordering::SeqCst);
                    serve(&stream, &shared, &*answer);
                    let _ = stream.shutdown(Shutdown::Both);
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, state }
    }

    /// The address of a path at this machine's address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.state.open.load(Ordering::SeqCst)
    }

    /// The maximum number of connections that were open at once.
    pub(crate) fn most_open(&self) -> usize {
        self.state.most_open.load(Ordering::SeqCst)
    }
}

/// Answers requests until the connection ends.
fn serve(stream: &TcpStream, state: &State, answer: &dyn Fn(&Asked) -> Reply) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        state.asked.lock().unwrap().push(asked.clone());
        let mut out = stream;
        match answer(&asked) {
            Reply::Whole(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                head.push_str("\r\n");
                let body = if asked.method == "HEAD" { Vec::new() } else { body };
                if out.write_all(&[head.into_bytes(), body].concat()).is_err() {
                    return;
                }
            }
            Reply::Silence => {
                let _ = reader.read(&mut [0]);
                return;
            }
            Reply::Endless(part, pause) => {
                let mut written = out.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                while written.is_ok() {
                    written = out.write_all(&part).and_then(|()| out.flush());
                    std::thread::sleep(pause);
                }
                return;
            }
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let line = line.trim_end();
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, headers, body })
}

//! Third-party clients whose connections are cut while a script runs, as by a proxy that is restarted. They resume its
//! stream by themselves.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::support::interop::{node_modules, python, script};
use crate::support::serve::{Start, WATCHDOG, wait_for_end};
use crate::support::serve_http::{Server, wait_within};

/// The part of a request for the rest of a stream that others lack.
const RESUMES: &str = "\r\nlast-event-id: ";

/// A proxy whose connections can be cut.
struct Proxy {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
    /// How often a client has asked for the rest of a stream.
    resumed: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (open, resumed) = (Arc::default(), Arc::default());
        let proxy = Self { address, open: Arc::clone(&open), resumed: Arc::clone(&resumed) };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { return };
                let pair = [client.try_clone().unwrap(), server.try_clone().unwrap()];
                open.lock().extend(pair);
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || pass_on(back.0, back.1, |_| ()));
                let resumed = Arc::clone(&resumed);
                let mut text = String::new();
                thread::spawn(move || {
                    pass_on(client, server, |bytes| {
                        let before = text.matches(RESUMES).count();
                        text.push_str(&String::from_utf8_lossy(bytes).to_ascii_lowercase());
                        resumed.fetch_add(text.matches(RESUMES).count() - before, Ordering::SeqCst);
                    });
                });
            }
        });
        proxy
    }

    fn cut(&self) {
        for stream in self.open.lock().drain(..) {
            let _closed_already = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Passes bytes on until either side is closed, and closes both then.
fn pass_on(mut from: TcpStream, mut to: TcpStream, mut look: impl FnMut(&[u8])) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        look(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _closed_already = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Cuts the connections of a client twice while its script runs. `tells` says whether the script reports progress.
fn check(mut client: Command, tells: bool) {
    let granted = tempfile::tempdir().unwrap();
    let directory = granted.path().to_str().unwrap();
    let server = Server::start(Start::new().arguments(&["--allow-read", directory, "--timeout", "200s"]));
    let proxy = Proxy::start(server.address);
    let go = granted.path().join("go");
    let tell = if tells { "progress(done++, 1e6);" } else { "" };
    let source = format!(
        "let done = 0; const names = () => fs.readdir({directory:?});
         while ((await names()).length === 0) {{ {tell} await new Promise((next) => setTimeout(next, 20)); }}
         return 'whole'"
    );
    let mut client = client
        .arg(format!("http://{}/mcp", proxy.address))
        .arg(source)
        .env("HOME", server.directory())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let output = BufReader::new(client.stdout.take().unwrap());
    let reader = thread::spawn({
        let lines = Arc::clone(&lines);
        move || output.lines().map_while(Result::ok).for_each(|line| lines.lock().push(line))
    });
    let wait_for_more_than = |count| wait_within(WATCHDOG, || (lines.lock().len() > count).then_some(()));
    wait_for_more_than(0);
    for number in 1..=2 {
        let before = lines.lock().len();
        proxy.cut();
        wait_within(WATCHDOG, || (proxy.resumed.load(Ordering::SeqCst) >= number).then_some(()));
        // A script that reports progress may have done so before the cut. Else there is nothing but the id of the event
        // from which its stream was resumed.
        wait_for_more_than(if tells { lines.lock().len() } else { before });
    }
    fs::write(&go, "").unwrap();
    assert!(wait_for_end(&mut client, WATCHDOG).success());
    reader.join().unwrap();
    assert_eq!(lines.lock().last().map(String::as_str), Some("whole"));
}

#[test]
fn the_typescript_sdk_resumes_the_stream_of_a_script() {
    for sdk in ["v1", "v2"] {
        let mut client = Command::new("node");
        client.args([script("cut.mjs"), sdk.to_owned(), node_modules()]);
        check(client, false);
    }
}

#[test]
fn the_python_sdk_resumes_the_stream_of_a_script() {
    let mut client = Command::new(python("python"));
    client.arg(script("cut.py"));
    check(client, true);
}

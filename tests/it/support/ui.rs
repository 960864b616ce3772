//! `cx ui` as a process, requests to its page by hand, and the page in a real browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::serve::WATCHDOG;

/// The command with the files of a user in this directory, as for [`Start`](super::serve::Start).
pub(crate) fn cx(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).env_remove("CX_HTTP_TOKEN");
    for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        command.env(name, directory);
    }
    command
}

/// A page that is served.
pub(crate) struct Ui {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The token that works once.
    pub(crate) token: String,
}

impl Ui {
    pub(crate) fn start(directory: &Path) -> Self {
        let mut child = cx(directory, &["ui", "--no-browser"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let link = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line}"));
        let (address, token) = link.split_once("/ui#token=").unwrap();
        Self { child, address: address.parse().unwrap(), token: token.to_owned() }
    }

    /// The address to open in a browser.
    pub(crate) fn link(&self) -> String {
        format!("http://{}/ui#token={}", self.address, self.token)
    }

    /// Starts a session by hand, as a browser does. Returns its token.
    pub(crate) fn sign_in(&self) -> String {
        let (status, body) = bearer(self.address, "POST", "/ui/session", &self.token, "");
        assert_eq!(status, 200, "{body}");
        let session: Value = serde_json::from_str(&body).unwrap();
        session["token"].as_str().unwrap().to_owned()
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Sends a request and returns the whole answer: its head and its body.
pub(crate) fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A server that refuses the rest of a request may reset the connection after its answer.
    let _reset = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends a request with these header lines.
pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[String],
    body: &str,
) -> (u16, String) {
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|header| header.starts_with("Host:")) {
        request.push_str(&format!("Host: {address}\r\n"));
    }
    for header in headers {
        request.push_str(&format!("{header}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let answer = exchange(address, &request);
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("{answer}")).parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// Sends a request with a token.
pub(crate) fn bearer(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (u16, String) {
    send(address, method, path, &[format!("Authorization: Bearer {token}")], body)
}

/// Opens a page in a browser that runs its scripts, takes the steps of `tests/browser.mjs`, and returns the requested
/// values. The page's own policy must refuse nothing that the page does.
pub(crate) fn browse(address: &str, steps: &Value) -> Vec<Value> {
    let output = Command::new(super::interop::node_24())
        .arg(crate::tidy::root().join("tests/browser.mjs"))
        .args([address, &steps.to_string()])
        .output()
        .expect("node is missing: tests/interop/install.sh installs it, and Debian's chromium");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut values: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failures = values.pop().unwrap();
    // Refusals that a test provokes: text as markup, and a link that was used before.
    let is_expected = |failure: &Value| {
        let failure = failure.as_str().unwrap();
        failure.contains("requires 'TrustedHTML' assignment") || failure.contains("401 (Unauthorized)")
    };
    assert!(failures["failures"].as_array().unwrap().iter().all(is_expected), "{failures}");
    values
}

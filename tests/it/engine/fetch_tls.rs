//! `fetch` of scripts over TLS, with a server whose certificate an authority of the test has signed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{certificates, python_cache};

/// `openssl s_server`, which answers each `GET` with a page about the connection.
struct TlsHost {
    child: Child,
    port: u16,
}

impl TlsHost {
    fn start(directory: &Path) -> Self {
        certificates::make(directory);
        let mut child = Command::new("openssl")
            .args([
                "s_server",
                "-accept",
                "127.0.0.1:0",
                "-cert",
                "server.pem",
                "-key",
                "server-key.pem",
                "-www",
            ])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.filter_map(|line| line.strip_prefix("ACCEPT 127.0.0.1:")?.parse().ok()).next();
        Self { child, port: port.unwrap() }
    }
}

impl Drop for TlsHost {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn a_host_over_tls_needs_a_certificate_that_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let host = TlsHost::start(directory.path());
    let run = |url: &str, authorities: Option<&str>, python: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
        let script = if python {
            "try:\n  r = await fetch(inputs)\n  x = [r.status, 'TLS' in await r.text()]\nexcept McpToolError as e:\n  x = e.code\nx"
        } else {
            "try { const r = await fetch(input); return [r.status, (await r.text()).includes('TLS')] }\n\
             catch (error) { return error.cause.code }"
        };
        command
            .args(["run", "--json", "--allow-net", "127.0.0.1", "--allow-net", "localhost"])
            .args([
                "--lang",
                if python { "py" } else { "ts" },
                "--input",
                &json!(url).to_string(),
                "-e",
                script,
            ])
            .current_dir(directory.path())
            .env("HOME", directory.path())
            .env("XDG_STATE_HOME", directory.path())
            .env("XDG_CONFIG_HOME", directory.path())
            .env("XDG_CACHE_HOME", python_cache())
            .stdin(Stdio::null());
        if let Some(file) = authorities {
            command.env("SSL_CERT_FILE", directory.path().join(file));
        }
        let output = command.output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(result["success"], true, "{result}");
        result["value"].clone()
    };
    let url = format!("https://127.0.0.1:{}/", host.port);
    for python in [false, true] {
        assert_eq!(run(&url, Some("ca.pem"), python), json!([200, true]));
        // An untrusted authority, another name than that of the certificate, and a server without TLS.
        assert_eq!(run(&url, None, python), "NET_FAILED");
        assert_eq!(run(&url.replace("127.0.0.1", "localhost"), Some("ca.pem"), python), "NET_FAILED");
        assert_eq!(run(&url.replace("https", "http"), Some("ca.pem"), python), "NET_FAILED");
    }
}

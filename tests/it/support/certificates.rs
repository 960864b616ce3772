//! A certificate authority for a test, and a certificate for this machine that it has signed, made with `openssl`.

use std::path::Path;
use std::process::Command;

/// Makes `ca.pem`, `server.pem` and `server-key.pem` in a directory. The certificate is for the address 127.0.0.1.
pub(crate) fn make(directory: &Path) {
    let openssl = |arguments: &[&str]| {
        let made = Command::new("openssl").args(arguments).current_dir(directory).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    let authority =
        ["req", "-x509", "-subj", "/CN=cx-test-authority", "-keyout", "ca-key.pem", "-out", "ca.pem"];
    openssl(&[&authority[..], &key].concat());
    let server = [
        "req",
        "-x509",
        "-subj",
        "/CN=cx-test-server",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca-key.pem",
        "-keyout",
        "server-key.pem",
        "-out",
        "server.pem",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ];
    openssl(&[&server[..], &key].concat());
}

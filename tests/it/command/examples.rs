//! The demo's scripts against the demo's server, through the command.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::own_files;

fn check(script: &str) {
    let test_binary = std::env::current_exe().unwrap();
    let server: PathBuf = test_binary.parent().unwrap().parent().unwrap().join("examples/library-server");
    assert!(server.exists(), "cargo builds the examples with the tests: {}", server.display());
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("mcp.json");
    let entry = serde_json::json!({ "mcpServers": { "library": { "command": server } } });
    std::fs::write(&config, entry.to_string()).unwrap();
    let output = own_files(&mut Command::new(env!("CARGO_BIN_EXE_cx")), directory.path())
        .args(["run", "--mcp-config"])
        .arg(&config)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scripts").join(script))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(script, String::from_utf8_lossy(&output.stdout));
}

#[test]
fn total() {
    check("total.ts");
}

#[test]
fn search() {
    check("search.ts");
}

#[test]
fn fan_out() {
    check("fan_out.ts");
}

#[test]
fn by_branch() {
    check("by_branch.py");
}

#[test]
fn failing_tool() {
    check("failing_tool.ts");
}

/// `examples/mcp.json` is what people copy: it must be read as it is.
#[test]
fn the_configuration_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mcp.json");
    cx::Executor::builder().mcp_config_file(path).build().unwrap();
}

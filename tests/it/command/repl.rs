//! `cx repl`: inputs that somebody types at a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::chaos;

/// What is on the screen when these have been typed at the prompt, and the exit status.
fn typed(home: &Path, arguments: &[&str], inputs: &[&str]) -> (String, Option<i32>) {
    let config = home.join("mcp.json");
    let server = json!({ "command": chaos::program(), "args": ["stdio", "well"] });
    fs::write(&config, json!({ "mcpServers": { "notes": server } }).to_string()).unwrap();
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompt.py"))
        .arg(json!(inputs).to_string())
        .args([env!("CARGO_BIN_EXE_cx"), "repl", "--mcp-config"])
        .arg(&config)
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("XDG_CACHE_HOME", crate::support::python_cache())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let screen = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    (screen, output.status.code())
}

#[test]
fn each_input_is_a_script_and_has_the_last_value() {
    let home = tempfile::tempdir().unwrap();
    let inputs = [
        "6 * 7\r",
        "input + 1\r",
        // Two lines: the bracket is open after the first.
        "[{ name: 'first', size: 1 },\r{ name: 'second', size: 2 }]\r",
        "input.map((row) => row.size)\r",
        "nobody()\r",
        "await state.set('kept', 'from before')\r",
        "await state.get('kept')\r",
        ":nothing\r",
        "\x04",
    ];
    let (screen, status) = typed(home.path(), &["--session", "test"], &inputs);
    assert_eq!(status, Some(0), "{screen}");
    let after = |text: &str| screen.split_once(text).unwrap_or_else(|| panic!("no {text}: {screen}")).1;
    assert!(after("6 * 7").contains("\n42\n"), "{screen}");
    assert!(after("input + 1").contains("\n43\n"), "{screen}");
    let rows: Vec<String> =
        screen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in ["name size", "first 1", "second 2"] {
        assert!(rows.iter().any(|line| line == row), "{row}: {screen}");
    }
    assert!(after("nobody()").contains("nobody is not defined"), "{screen}");
    assert!(after("state.get('kept')").contains("\nfrom before\n"), "{screen}");
    assert!(screen.contains("there is no `:nothing`"), "{screen}");
    // Only the user can read what was typed, and the next session has it.
    let history = home.path().join(".local/state/cx/repl_history.ts");
    assert_eq!(fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    let (screen, _) = typed(home.path(), &[], &["\x1b[A\x1b[A\r", "\x04"]);
    assert!(screen.contains("state.get('kept')"), "{screen}");
}

#[test]
fn names_are_completed_from_the_catalogue() {
    let home = tempfile::tempdir().unwrap();
    // The first call makes the tools known.
    let inputs =
        ["(await tools.notes.echo({ n: 1 })).n\r", "(await tools.notes.ec\t({ n: 41 })).n + 1\r", "\x04"];
    let (screen, status) = typed(home.path(), &[], &inputs);
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("\n42\n"), "{screen}");
}

#[test]
fn python_has_a_prompt_too() {
    let home = tempfile::tempdir().unwrap();
    // A block ends with an empty line.
    let inputs = ["for x in range(2):\rprint('line', x)\r\r", "6 * 7\r", "inputs + 1\r", ":quit\r"];
    let (screen, status) = typed(home.path(), &["--lang", "py"], &inputs);
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("\n42\n") && screen.contains("\n43\n"), "{screen}");
}

#[test]
fn a_script_that_does_not_end_is_stopped() {
    let home = tempfile::tempdir().unwrap();
    let (screen, status) = typed(home.path(), &["--timeout", "1s"], &["for (;;) {}\r", "1 + 1\r", "\x04"]);
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("TIMEOUT") || screen.contains("--timeout"), "{screen}");
    assert!(screen.contains("\n2\n"), "{screen}");
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let output = Command::new(env!("CARGO_BIN_EXE_cx")).arg("repl").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`cx run -`"), "{output:?}");
}

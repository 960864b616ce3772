//! `cx repl`: inputs that a user types at a terminal.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::home::Home;
use crate::support::chaos;

/// The screen after these lines were typed at the prompt, and the exit status.
fn typed(home: &Path, arguments: &[&str], inputs: &[&str]) -> (String, Option<i32>) {
    typed_with(home, arguments, &json!(inputs))
}

/// The same, with inputs as `prompt.py` has them.
fn typed_with(home: &Path, arguments: &[&str], inputs: &Value) -> (String, Option<i32>) {
    let config = home.join("mcp.json");
    let server = chaos::entry(&["well", "--notes", home.join("notes").to_str().unwrap()]);
    fs::write(&config, json!({ "mcpServers": { "notes": server } }).to_string()).unwrap();
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompt.py"))
        .arg(inputs.to_string())
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
        "absent()\r",
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
    assert!(after("absent()").contains("absent is not defined"), "{screen}");
    assert!(after("state.get('kept')").contains("\nfrom before\n"), "{screen}");
    assert!(screen.contains("there is no `:nothing`"), "{screen}");
    // Only the user can read the history, and the next session has it.
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
    let (screen, status) = typed(home.path(), &["--timeout", "6s"], &["for (;;) {}\r", "1 + 1\r", "\x04"]);
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("TIMEOUT") && screen.contains("--timeout"), "{screen}");
    assert!(screen.contains("\n2\n"), "{screen}");
}

/// An editor needs a cursor: at a dumb terminal input is read as plain lines.
#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompt.py"))
        // Ctrl-C drops an input of two lines and stops a script that does not end, and the last value is still known.
        .arg(
            json!(["6 * 7\r", "[input + 1,\r2]\r", "[1,\r", ["... ", "\x03"], "input\r", ":quit\r"])
                .to_string(),
        )
        .args([env!("CARGO_BIN_EXE_cx"), "repl"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("TERM", "dumb")
        .env("CX_RAW", "1")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let screen = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert_eq!(output.status.code(), Some(0), "{screen}");
    assert!(!screen.contains('\x1b'), "{screen:?}");
    assert!(screen.contains("ts> 6 * 7\n42\n"), "{screen}");
    assert_eq!(screen.matches("[\n  43,\n  2\n]\n").count(), 2, "{screen}");
    assert!(screen.contains("... ^C\n"), "{screen}");
}

/// Inputs of a pipe are run one after the other, without a prompt.
#[test]
fn a_pipe_is_read_line_by_line() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], text: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cx"))
            .arg("repl")
            .args(arguments)
            .current_dir(home.path())
            .env_clear()
            .env("HOME", home.path())
            .env("XDG_CACHE_HOME", crate::support::python_cache())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (String::from_utf8_lossy(&output.stdout).into_owned(), said, output.status.code())
    };
    let (out, said, status) = run(&[], "6 * 7\n[input,\n  1]\n:table off\n[{ a: 1 }]\n'last'");
    assert_eq!((out.as_str(), said.as_str(), status), ("42\n[42,1]\n[{\"a\":1}]\nlast\n", "", Some(0)));
    let (out, said, status) = run(&[], "absent()\n1 + 1\n");
    assert_eq!((out.as_str(), status), ("2\n", Some(1)), "{said}");
    assert!(said.contains("absent is not defined") && !said.contains("earlier"), "{said}");
    // Variables end with their input, which surprises at a prompt.
    for (arguments, text) in [(&[][..], "const g = 1\ng\n"), (&["--lang", "py"][..], "g = 1\ng\n")] {
        let (_, said, status) = run(arguments, text);
        assert!(said.contains("the `g` of an earlier one ended with it") && status == Some(1), "{said}");
    }
    let (out, said, status) = run(&["--lang", "py"], "for x in range(2):\n    print(x)\n\n40 + 2\n");
    assert_eq!((out.as_str(), status), ("0\n1\n42\n", Some(0)), "{said}");
    // An input that is still open at the end is a syntax error of the script.
    let (_, said, status) = run(&[], "[1,\n");
    assert_eq!(status, Some(1), "{said}");
}

/// Without a bound a line without an end takes all memory.
#[test]
fn v_780_a_line_without_an_end_is_not_read_as_a_whole() {
    let home = Home::new();
    home.configure(&json!({ "limits": { "maxSourceBytes": 1_000 } }));
    let run = |input: Stdio| {
        let output = home.command(&["repl"]).stdin(input).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr), output.status.code())
    };
    let (_, said, status) = run(fs::File::open("/dev/zero").unwrap().into());
    let problem = "error: an input on stdin is longer than 1000 bytes, the most that a script may have \
        (`limits.maxSourceBytes`)\n";
    assert_eq!((said.as_str(), status), (problem, Some(2)));
    // Also in lines; the ends of lines of the maximum length do not count.
    let longest = format!("{}7", " ".repeat(999));
    home.write("fits", &format!("{longest}\r\n{longest}\n"));
    let file = |name: &str| fs::File::open(home.path(name)).unwrap().into();
    assert_eq!(run(file("fits")), ("7\n7\n".to_owned(), String::new(), Some(0)));
    home.write("long", &format!("[{}\n", "7,\n".repeat(500)));
    assert_eq!(run(file("long")).1, problem);
}

/// The shell behind it would otherwise show nothing that is typed.
#[test]
fn a_signal_at_the_prompt_ends_the_session_and_restores_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let type_keys = |inputs: Value| {
        let output = Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompt.py"))
            .arg(inputs.to_string())
            .args([env!("CARGO_BIN_EXE_cx"), "repl"])
            .current_dir(home.path())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (String::from_utf8_lossy(&output.stdout).replace('\r', ""), output.status.code())
    };
    // Those of `kill`, of a terminal that is closed, and of Ctrl-C elsewhere, which does nothing here.
    for (inputs, expected) in [
        (json!(["1 + 1\r", 15]), 130),
        (json!([1]), 130),
        (json!([["ts> ", "for (;;) {}\r"], ["for (;;) {}", 15]]), 130),
        (json!([2, ["", "\u{4}"]]), 0),
        // In the background the system stops the session at its prompt; a handler would be stopped with it.
        (json!("background"), 143),
    ] {
        let (screen, status) = type_keys(inputs.clone());
        assert_eq!(status, Some(expected), "{inputs}: {screen}");
        assert!(!screen.contains("the terminal is raw"), "{inputs}: {screen}");
    }
}

/// The editor reads such a terminal without an end.
#[test]
fn a_closed_terminal_ends_the_session_and_closes_its_servers() {
    let home = tempfile::tempdir().unwrap();
    let calls = "await tools.notes.echo({}); 'clo' + 'sing'\r";
    let (screen, status) = typed_with(home.path(), &[], &json!([calls, ["closing", "x"], ["> x", ""]]));
    assert_eq!(status, Some(130), "{screen}");
    let notes = fs::read_to_string(home.path().join("notes")).unwrap();
    assert!(notes.ends_with("stdin ended\n"), "it was killed: {notes}");
}

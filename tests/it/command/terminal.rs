//! The command at a terminal: colors, widths, and what it waits for.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const CX: &str = env!("CARGO_BIN_EXE_cx");

/// The screen of a terminal after a shell has run `line` there, in which `cx` is the command, and a user has typed
/// `answer` where asked; and the exit status.
fn screen(home: &Path, answer: &str, line: &str) -> (String, Option<i32>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py");
    let binaries = Path::new(CX).parent().unwrap().display().to_string();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("python3")
        .arg(script)
        .args([answer, "sh", "-c", line])
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", path)
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stdout).replace('\r', ""), output.status.code())
}

/// The screen of a terminal at which a command was started and `tests/prompt.py` has typed, and the exit status.
fn typed(home: &Path, inputs: &Value, command: &[&str]) -> (String, Option<i32>) {
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompt.py"))
        .arg(inputs.to_string())
        .args(command)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

#[test]
fn colors_are_for_terminals_that_want_them() {
    let home = tempfile::tempdir().unwrap();
    let fails = "cx run -e 'throw new Error(1)'";
    for (line, has_color) in [
        (fails.to_owned(), true),
        ("cx --help".to_owned(), true),
        ("cx --unknown".to_owned(), true),
        (format!("NO_COLOR=1 {fails}"), false),
        ("NO_COLOR=1 cx --help".to_owned(), false),
        ("NO_COLOR=1 cx --unknown".to_owned(), false),
        (format!("TERM=dumb {fails}"), false),
        ("TERM=dumb cx --help".to_owned(), false),
        (format!("CLICOLOR=0 {fails}"), false),
        (format!("{fails} 2>&1 | cat"), false),
        (format!("CLICOLOR_FORCE=1 {fails} 2>&1 | cat"), true),
        ("CLICOLOR_FORCE=1 cx --help | cat".to_owned(), true),
        (format!("NO_COLOR=1 CLICOLOR_FORCE=1 {fails}"), false),
    ] {
        let (screen, _) = screen(home.path(), "", &line);
        assert_eq!(screen.contains("\x1b["), has_color, "{line}: {screen:?}");
        let expected = if line.contains("--help") { "Usage" } else { "rror" };
        assert!(screen.contains(expected), "{line}: {screen}");
    }
}

/// THREATS 593: what is printed for other programs has names as scripts and servers chose them.
#[test]
fn v_593_a_terminal_obeys_nothing_that_is_printed_for_programs() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("trail")).unwrap();
    let lines = "no line \u{1b}]0;owned\u{7}\n{\"seq\":1,\"tool\":\"\\u001b[31m\u{9b}31m\u{202e}\"}\n";
    fs::write(home.path().join("trail/2026-01-01.jsonl"), lines).unwrap();
    for arguments in ["show --json", "export --format csv"] {
        let line = format!("cx audit --audit trail {arguments}");
        let (shown, status) = screen(home.path(), "", &line);
        assert_eq!(status, Some(0), "{line}: {shown:?}");
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{line}: {shown:?}");
        assert!(shown.contains("\\u{9b}31m"), "{line}: {shown:?}");
        let (piped, _) = screen(home.path(), "", &format!("{line} | cat"));
        assert!(piped.contains('\u{9b}'), "{line}: {piped:?}");
    }
}

#[test]
fn errors_fit_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let source =
        format!("const a = '{}'; throw new Error('far right'); '{}'", "x".repeat(150), "y".repeat(150));
    fs::write(home.path().join("wide.ts"), source).unwrap();
    for columns in [60, 100] {
        let line = format!("stty cols {columns}; NO_COLOR=1 cx run wide.ts");
        let (screen, _) = screen(home.path(), "", &line);
        let widest = screen.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns && widest > columns - 25, "{widest} of {columns}:\n{screen}");
        assert!(screen.contains("throw new Error"), "{screen}");
    }
}

#[test]
fn what_is_waited_for_is_said() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (&["run", "-"][..], "reading the script from the terminal; Ctrl-D ends it"),
        (&["run", "-e", "1", "--input", "@-"], "reading the input from the terminal; Ctrl-D ends it"),
        (&["serve"], "waiting for a client on stdin: "),
    ] {
        // SIGINT ends what waits.
        let (screen, _) = typed(home.path(), &json!([[said, 2]]), &[&[CX], arguments].concat());
        assert!(screen.contains(said), "{arguments:?}: {screen}");
    }
}

/// There the system stops it when it reads stdin; a handler of the signal would be stopped with it.
#[test]
fn a_server_in_the_background_of_its_terminal_ends_at_a_signal() {
    let home = tempfile::tempdir().unwrap();
    let (screen, status) = typed(home.path(), &json!("background"), &[CX, "serve"]);
    assert_eq!(status, Some(143), "{screen}");
}

/// THREATS 835: as under `nohup`. What reads single keys would read such a terminal without an end.
#[test]
fn v_835_a_closed_terminal_ends_what_reads_keys_although_its_signal_is_ignored() {
    for (arguments, awaited) in
        [("repl", "ts> "), ("setup --no-connect", "Which servers should be behind cx?"), ("top", "q quit")]
    {
        let home = tempfile::tempdir().unwrap();
        let claude = json!({ "mcpServers": { "notes": { "command": "/nonexistent/server" } } });
        fs::write(home.path().join(".claude.json"), claude.to_string()).unwrap();
        let line = format!("trap '' HUP; stty rows 24 cols 80; exec '{CX}' {arguments}");
        // An empty text closes the terminal.
        let (screen, status) = typed(home.path(), &json!([[awaited, ""]]), &["sh", "-c", &line]);
        assert_eq!(status, Some(130), "{arguments}: {screen}");
    }
}

#[test]
fn a_refusal_is_no_success() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("work")).unwrap();
    fs::write(home.path().join("work/.cx.json"), r#"{"deny": ["x.*"]}"#).unwrap();
    let (shown, status) = screen(home.path(), "n", "cd work; cx trust .cx.json");
    assert_eq!(status, Some(1), "{shown}");
    assert!(shown.contains("exactly this content? [y/N] <typed>n\nnot trusted\n"), "{shown}");
    let (shown, status) = screen(home.path(), "y", "cd work; cx trust .cx.json");
    assert_eq!(status, Some(0), "{shown}");
    let (shown, status) = screen(home.path(), "no", "cx state clear --all");
    assert_eq!(status, Some(1), "{shown}");
    assert!(shown.contains("all workspaces and sessions? [y/N] <typed>no\nnothing was deleted\n"), "{shown}");
    let (shown, status) = screen(home.path(), "y", "cx state clear --all");
    assert_eq!(status, Some(0), "{shown}");
}

/// The status line is shown while a server is slow, and only where escape sequences are allowed.
#[test]
fn what_asks_servers_says_which() {
    let home = tempfile::tempdir().unwrap();
    let chaos = crate::support::chaos::program();
    let line = format!("sleep 1; exec '{}' stdio well", chaos.display());
    let servers = json!({ "notes": { "command": "sh", "args": ["-c", line] } });
    fs::create_dir_all(home.path().join(".config/cx")).unwrap();
    let config = json!({ "mcpServers": servers }).to_string();
    fs::write(home.path().join(".config/cx/config.json"), config).unwrap();
    fs::write(home.path().join("script.ts"), "await tools.notes.echo({})").unwrap();
    let asking = "asking `notes` for their tools";
    for (line, said) in [
        ("cx tools list --refresh", asking),
        ("cx types --refresh --out types", asking),
        ("cx cache clear; cx types --out types", asking),
        ("cx sync", asking),
        ("cx cache clear; cx check script.ts", "checking script.ts"),
    ] {
        let (shown, status) = screen(home.path(), "", line);
        assert_eq!(status, Some(0), "{line}: {shown}");
        assert!(shown.contains(said), "{line}: {shown:?}");
        // The line is removed at the end.
        let after = shown.rsplit(said).next().unwrap();
        assert!(after.contains("\x1b[2K"), "{line}: {after:?}");
    }
    for line in [
        "NO_COLOR=1 cx tools list --refresh",
        "TERM=dumb cx types --refresh --out types",
        "cx types --refresh --out types 2>&1 | cat",
        "cx tools list --refresh 2>said; cat said",
    ] {
        let (shown, status) = screen(home.path(), "", line);
        assert_eq!(status, Some(0), "{line}: {shown}");
        assert!(!shown.contains("asking") && !shown.contains('\x1b'), "{line}: {shown:?}");
    }
}

/// At the end setup connects to the servers, and reports how many tokens are saved by putting them behind cx.
#[test]
fn setup_says_what_it_waits_for_and_what_is_saved() {
    let home = tempfile::tempdir().unwrap();
    let chaos = crate::support::chaos::program();
    let line = format!("sleep 1; exec '{}' stdio well", chaos.display());
    let servers = json!({
        "notes": { "command": "sh", "args": ["-c", line] },
        "gone": { "command": "/nonexistent/server" },
    });
    let claude = json!({ "mcpServers": servers }).to_string();
    fs::write(home.path().join(".claude.json"), claude).unwrap();
    let (shown, status) = screen(home.path(), "", "cx setup --yes --take-out");
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.contains("asking `") && shown.contains("`notes`"), "{shown:?}");
    // A server that fails is named, and the others are counted.
    assert!(shown.contains("  gone   failed: "), "{shown:?}");
    let (_, of_notes) = shown.split_once("  notes  8 tools, ").unwrap_or_else(|| panic!("{shown:?}"));
    let (tokens, _) = of_notes.split_once(" tokens\n").unwrap();
    assert!(tokens.parse::<usize>().unwrap() > 0, "{shown:?}");
    let said = format!("the definitions of all these tools in a conversation: {tokens} tokens without cx, ");
    assert!(shown.contains(&said), "{said}: {shown:?}");
}

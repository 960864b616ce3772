//! The questions of `cx setup` at a terminal.

use super::*;

/// The screen after a user has answered the questions of `cx setup`, and the exit status.
fn dialogue(
    home: &Home,
    directory: &str,
    arguments: &[&str],
    answers: &[(&str, &str)],
) -> (String, Option<i32>) {
    dialogue_with(home, directory, arguments, &json!(answers))
}

/// The same. An answer can be the number of a signal; `"background"` in place of all is one in the background.
fn dialogue_with(home: &Home, directory: &str, arguments: &[&str], answers: &Value) -> (String, Option<i32>) {
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompt.py"))
        .arg(answers.to_string())
        .args([env!("CARGO_BIN_EXE_cx"), "setup", "--no-connect"])
        .args(arguments)
        .current_dir(home.path(directory))
        .env_clear()
        .env("HOME", home.directory.path())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    (text(&output.stdout).replace('\r', ""), output.status.code())
}

const SERVERS: &str = "Which servers should be behind cx?";
const CLIENTS: &str = "Which clients should start cx?";
const TAKE_OUT: &str = "Take these servers out";
const CHANGES: &str = "Make these changes?";
const DOWN: &str = "\x1b[B";

/// Enter chooses the same as `--yes --take-out`.
#[test]
fn questions_have_defaults() {
    let silent = Home::everything();
    assert!(silent.setup(&["--yes", "--take-out", "--no-connect"]).status.success());
    let home = Home::everything();
    let answers = [(SERVERS, "\r"), (CLIENTS, "\r"), (TAKE_OUT, "\r"), (CHANGES, "\r")];
    let (screen, status) = dialogue(&home, ".", &[], &answers);
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("The files as they were are in"), "{screen}");
    for path in [OWN, CLAUDE.0, CURSOR.0, CODEX.0, ZED.0, GOOSE.0, OPENCODE.0] {
        assert_eq!(home.read(path), silent.read(path), "{path}");
    }
    // Again: one server is left, which the client has switched off; and setup asks about the servers that cx already
    // has.
    let existing = ("What should happen to them?", "\r");
    let answers = [(SERVERS, " \r"), (TAKE_OUT, "n\r"), existing, (CHANGES, "n\r")];
    let (screen, status) = dialogue(&home, ".", &[], &answers);
    assert!(screen.contains("> [ ] notes (OpenCode)") && screen.contains("+ server `notes`"), "{screen}");
    assert!(screen.ends_with("nothing was changed\n"), "{screen}");
    assert_eq!(status, Some(1), "{screen}");
}

#[test]
fn questions_can_be_answered_otherwise() {
    // One server and one client are deselected, and nothing is taken out.
    let home = Home::with(&[CLAUDE, CURSOR]);
    let cursor = home.read(CURSOR.0);
    let answers = [(SERVERS, " \r"), (CLIENTS, &*format!("{DOWN} \r")), (TAKE_OUT, "n\r"), (CHANGES, "y\r")];
    let (screen, status) = dialogue(&home, ".", &[], &answers);
    assert_eq!(status, Some(0), "{screen}");
    let own = home.json(OWN);
    // Cursor also has the server that was not chosen from Claude Code.
    assert_eq!(
        own["mcpServers"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["github", "library", "github-cursor"]
    );
    assert_eq!(home.read(CURSOR.0), cursor);
    let claude = home.read(CLAUDE.0);
    assert!(claude.contains("\"serve\"") && claude.contains("\"library\""), "{claude}");
    // A server of one directory is offered, and not chosen by default.
    let home = with_projects();
    let (screen, status) = choose_in_projects(&home);
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("[ ] database (Claude Code, in ~/project only)"), "{screen}");
    let own = home.json(OWN);
    assert_eq!(own["mcpServers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["everywhere", "library"]);
    // No, Escape and Ctrl-C change nothing. Only the last is an interrupt.
    let home = Home::with(&[CLAUDE]);
    let before = home.files();
    for (answers, expected) in [
        (&[(SERVERS, "\r"), (CLIENTS, "\r"), (TAKE_OUT, "\r"), (CHANGES, "n\r")][..], 1),
        (&[(SERVERS, "\x1b")], 1),
        (&[(SERVERS, "\r"), (CLIENTS, "\x03")], 130),
        (&[(SERVERS, "\r"), (CLIENTS, "\r"), (TAKE_OUT, "\r"), (CHANGES, "\x03")], 130),
    ] {
        let (screen, status) = dialogue(&home, ".", &[], answers);
        assert_eq!(status, Some(expected), "{screen}");
        assert!(screen.ends_with("nothing was changed\n"), "{screen}");
        assert_eq!(home.files(), before);
    }
}

/// Answers the questions for Claude Code alone: `everywhere` is preselected, and `library`, of the directory, is added.
fn choose_in_projects(home: &Home) -> (String, Option<i32>) {
    let choose_second = format!("{DOWN} \r");
    let answers = [(SERVERS, &*choose_second), (CLIENTS, "\r"), (TAKE_OUT, "\r"), (CHANGES, "\r")];
    dialogue(home, "project", &["--client", "claude-code"], &answers)
}

#[test]
fn non_interactive_asks_nothing_and_says_the_same_plan() {
    let home = Home::with(&[CLAUDE]);
    let planned = text(&home.setup(&["--dry-run"]).stdout);
    let output = home
        .command(&["--non-interactive", "--no-connect"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with(&planned), "{planned}\n{}", text(&output.stdout));
    let own = home.json(OWN);
    assert_eq!(own["mcpServers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["library", "github"]);
    // At a terminal it asks nothing either.
    let home = Home::with(&[CLAUDE]);
    let (screen, status) = dialogue(&home, ".", &["--non-interactive"], &[]);
    assert_eq!(status, Some(0), "{screen}");
    assert!(!screen.contains('?') && screen.contains("done: "), "{screen}");
    assert_eq!(home.json(OWN), own);
    // A terminal without a cursor cannot show the questions.
    let home = Home::with(&[CLAUDE]);
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py"))
        .args(["", env!("CARGO_BIN_EXE_cx"), "setup"])
        .current_dir(home.directory.path())
        .env("HOME", home.directory.path())
        .env("TERM", "dumb")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stdout).contains("this terminal cannot show lists: --yes makes"),
        "{}",
        text(&output.stdout)
    );
}

/// The shell behind it would otherwise show neither a cursor nor what is typed.
#[test]
fn a_signal_during_a_question_changes_nothing_and_restores_the_terminal() {
    // Those of a terminal that is closed, of Ctrl-C elsewhere, and of `kill`.
    for signal in [1, 2, 15] {
        let home = Home::with(&[CLAUDE]);
        let claude = home.read(CLAUDE.0);
        let (screen, status) = dialogue_with(&home, ".", &[], &json!([[SERVERS, signal]]));
        assert_eq!(status, Some(130), "{signal}: {screen}");
        assert!(!screen.contains("the terminal is raw"), "{signal}: {screen}");
        assert_eq!(home.read(CLAUDE.0), claude, "{signal}");
    }
    // In the background the system stops the process at its question; a handler would be stopped with it.
    let (screen, status) = dialogue_with(&Home::with(&[CLAUDE]), ".", &[], &json!("background"));
    assert_eq!(status, Some(143), "{screen}");
}

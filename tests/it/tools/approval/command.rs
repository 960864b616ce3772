//! Approval in the command and in a server.

use super::*;

/// The command in a directory with a configuration that requires approval, and a server that records its calls.
struct Place(tempfile::TempDir);

impl Place {
    fn new(config: Value) -> Self {
        Self::with("well", config)
    }

    /// The server's mode of `tests/chaos`.
    fn with(mode: &str, config: Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Self(directory);
        let mut config = config;
        let notes = place.path("notes").display().to_string();
        config["mcpServers"] =
            json!({ "chaos": { "command": chaos::program(), "args": ["stdio", mode, "--notes", notes] } });
        std::fs::create_dir_all(place.path(".config/cx")).unwrap();
        std::fs::write(place.path(".config/cx/config.json"), config.to_string()).unwrap();
        place
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.current_dir(self.0.path()).env_clear().env("HOME", self.0.path()).env("PATH", path);
        command
    }

    fn cx(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_cx")));
        command.arg("run").args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs the command at a terminal where a user types `answer` when asked, and returns what is on the screen and
    /// the exit status.
    fn at_terminal(&self, answer: &str, arguments: &[&str]) -> (String, Option<i32>) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py");
        let mut command = self.command(Path::new("python3"));
        command.arg(script).arg(answer).arg(env!("CARGO_BIN_EXE_cx")).arg("run").args(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut screen = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut screen).unwrap();
        let status = child.wait().unwrap();
        (String::from_utf8_lossy(&screen).replace('\r', ""), status.code())
    }

    fn was_called(&self, tool: &str) -> bool {
        let noted = std::fs::read_to_string(self.path("notes")).unwrap_or_default();
        noted.contains(&format!("executed {tool}"))
    }
}

const ECHO: &str = "return (await tools.chaos.echo({ a: 'x\\u001b[2K\\u202e', n: [1] })).n";

#[test]
fn the_command_without_a_terminal_refuses() {
    let place = Place::new(json!({ "ask": ["chaos.echo"] }));
    for arguments in
        [&["-e", ECHO][..], &["--ask", "destructive", "-e", ECHO], &["--allow", "chaos.echo", "-e", ECHO]]
    {
        let output = place.cx(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("TOOL_DENIED") && said.contains("takes `chaos.echo` out of `ask`"), "{said}");
    }
    assert!(!place.was_called("echo"));
}

/// A script whose call makes the server ask for a size, which has a default, and a color.
fn asking() -> String {
    let properties = json!({
        "size": { "type": "integer", "default": 2 },
        "color": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] },
    });
    let schema = json!({ "type": "object", "properties": properties, "required": ["color"] });
    let params = json!({ "message": "which\u{1b}[2J one?", "requestedSchema": schema });
    let arguments = json!({ "method": "elicitation/create", "params": params });
    format!(
        "const {{ result }} = (await tools.chaos.target({arguments})).answer; return JSON.stringify(result)"
    )
}

#[test]
fn a_server_asks_at_the_terminal() {
    let place = Place::with("elicits", json!({}));
    let script = asking();
    // Yes; the default; a color that does not exist, and one by its number.
    let (screen, status) = place.at_terminal("y\n\ngreen\n2", &["-e", &script]);
    assert_eq!(status, Some(0), "{screen}");
    for part in [
        "The server `chaos` asks in a call of `target`.",
        "\n> which\\u{1b}[2J one?\n",
        "size [2]> ",
        "  2. b (Blue)\n",
        "the field `color` expects one of `r`, `b`",
        r#"{\"action\":\"accept\",\"content\":{\"size\":2,\"color\":\"b\"}}"#,
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    // Text that was typed before the question does not answer it.
    let (screen, _) = place.at_terminal("n", &["-e", &script]);
    assert!(screen.contains(r#"{\"action\":\"decline\"}"#) && !screen.contains("size"), "{screen}");
}

/// An address is shown, and cx does not open it.
#[test]
fn a_server_names_an_address_at_the_terminal() {
    let place = Place::with("elicits", json!({}));
    let params = json!({
        "mode": "url", "message": "sign in", "url": "https://example.com/in?a=1", "elicitationId": "1"
    });
    let arguments = json!({ "method": "elicitation/create", "params": params });
    let script = format!("return (await tools.chaos.target({arguments})).answer.result.action");
    for (answer, action) in [("y", "accept"), ("n", "decline"), ("", "decline")] {
        let (screen, status) = place.at_terminal(answer, &["-e", &script]);
        assert_eq!(status, Some(0), "{screen}");
        for part in [
            "The server `chaos` asks in a call of `target`.",
            "\nAddress: https://example.com/in?a=1\n",
            "Open it in a browser if you trust it with this. Do you? [y/N] ",
        ] {
            assert!(screen.contains(part), "{part}: {screen}");
        }
        assert!(screen.contains(&format!("\"{action}\"")), "{answer}: {screen}");
    }
}

#[test]
fn the_command_without_a_terminal_declares_no_questions() {
    let place = Place::with("elicits", json!({}));
    let source =
        asking().replace("const { result } =", "const { error } =").replace("(result)", "(error.code)");
    let output = place.cx(&["-e", &source]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "\"-32601\"", "{output:?}");
}

#[test]
fn the_command_asks_at_the_terminal() {
    let place = Place::new(json!({}));
    let arguments = ["--ask", "chaos.echo", "-e", ECHO];
    for (answer, expected) in
        [("n", "refused"), ("", "refused"), ("maybe later", "maybe later"), ("yy", "yy")]
    {
        let (screen, status) = place.at_terminal(answer, &arguments);
        assert_eq!(status, Some(1), "{answer}: {screen}");
        assert!(screen.contains("TOOL_DENIED") && screen.contains(expected), "{answer}: {screen}");
    }
    assert!(!place.was_called("echo"));
    let (screen, status) = place.at_terminal("y", &arguments);
    assert_eq!(status, Some(0), "{screen}");
    assert!(place.was_called("echo"));
    for shown in [
        "The script `eval.ts` asks to call chaos.echo\n",
        "because: `ask` names it: `chaos.echo`\n",
        "      \"a\": \"x\\u001b[2K\\u202e\",\n      \"n\": [\n        1\n      ]\n",
        "Make this call of chaos.echo, exactly as shown, once? [y/N, or why not] ",
    ] {
        assert!(screen.contains(shown), "{shown}: {screen}");
    }
    assert!(!screen.contains('\u{202e}') && !screen.contains("x\u{1b}[2K"), "{screen:?}");
}

/// Output that a script prints while a question is open comes after the answer: it cannot print a false question below.
#[test]
fn a_script_cannot_write_under_the_question() {
    let place = Place::new(json!({ "ask": ["chaos.echo"] }));
    let source = "const call = tools.chaos.echo({ n: 1 });
        const printing = (async () => { for (let i = 0; i < 20; i++) {
            console.log('FORGED'); await new Promise((done) => setTimeout(done, 50)) } })();
        await call; await printing; return 'end'";
    let (screen, status) = place.at_terminal("y", &["-e", source]);
    assert_eq!(status, Some(0), "{screen}");
    let question = screen.find("asks to call").unwrap();
    let answered = screen.find("or why not] ").unwrap();
    assert!(!screen[question..answered].contains("FORGED"), "{screen}");
    assert_eq!(screen.matches("FORGED").count(), 20, "{screen}");
    // The helper marks where the answer was typed, a while after the question.
    let typed = screen.find("<typed>").unwrap();
    assert!(!screen[answered..typed].contains("FORGED"), "{screen}");
}

#[test]
fn the_command_makes_a_dry_run() {
    let place = Place::new(json!({ "readOnly": ["chaos.count"] }));
    let source = "await tools.chaos.count({}); return await tools.chaos.echo({ a: 'b' })";
    let output = place.cx(&["--dry-run", "-e", source]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"dry run\":true}\n");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "dry run: 1 call was not made:\n  chaos.echo {\"a\":\"b\"}\n");
    assert!(place.was_called("count") && !place.was_called("echo"));
    // Without a call to leave out it says what there was.
    for (source, expected) in [
        ("return 1", "the script called no tool"),
        ("await tools.chaos.count({})", "1 was made, because it only reads"),
    ] {
        let output = place.cx(&["--dry-run", "-e", source]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said, format!("dry run: no call was left out: {expected}\n"));
    }
    let output = place.cx(&["--dry-run", "--json", "-e", source]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["plannedCalls"], json!([{ "tool": "mcp__chaos__echo", "arguments": { "a": "b" } }]));
}

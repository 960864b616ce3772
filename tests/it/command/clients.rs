//! `cx setup`: how it changes clients' files, and how the change is undone.

/// The questions of `cx setup` at a terminal.
mod dialogue;
/// Files that are changed with care, and files that are left alone.
mod files;
/// Servers of single directories.
mod projects;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cx::{Executor, McpServer, Tool};
use serde_json::{Value, json};

/// The home directory of a user of seven clients.
struct Home {
    directory: tempfile::TempDir,
}

/// The example server.
fn library_server() -> PathBuf {
    let test_binary = std::env::current_exe().unwrap();
    let server = test_binary.parent().unwrap().parent().unwrap().join("examples/library-server");
    assert!(server.exists(), "cargo builds the examples with the tests: {}", server.display());
    server
}

/// A file below the home directory, and its content.
type Written = (&'static str, &'static str);

const CLAUDE: Written = (
    ".claude.json",
    r#"{
  // what I have
  "numStartups": 12,
  "mcpServers": {
    "library": { "type": "stdio", "command": "LIBRARY" },
    "github": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"] },
    "nothing": {}, // to do
  },
}
"#,
);
const DESKTOP: Written = (".config/Claude/claude_desktop_config.json", "{broken");
const CURSOR: Written = (
    ".cursor/mcp.json",
    r#"{"mcpServers":{"library":{"command":"LIBRARY"},"github":{"command":"other"},"code-executor":{"command":"npx","args":["-y","code-executor-mcp"]}}}"#,
);
const CODEX: Written = (
    ".codex/config.toml",
    "# mine\nmodel = \"x\"\n\n[mcp_servers.files] # keep\ncommand = \"files\"\nenv_vars = [\"NOT_SET_ANYWHERE\"]\n",
);
const ZED: Written = (".config/zed/settings.json", "{\n  \"theme\": \"One\", // nice\n}\n");
const GOOSE: Written = (
    ".config/goose/config.yaml",
    "# mine\nGOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n  memory:\n    type: \
     stdio\n    cmd: memory\n    enabled: true\n",
);
const OPENCODE: Written = (
    ".config/opencode/opencode.json",
    "{ \"mcp\": { \"notes\": { \"type\": \"local\", \"command\": [\"notes\", \"--all\"], \"enabled\": false } } }\n",
);

impl Home {
    fn with(files: &[Written]) -> Self {
        let home = Self { directory: tempfile::tempdir().unwrap() };
        let library = library_server().display().to_string();
        for (path, content) in files {
            let path = home.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content.replace("LIBRARY", &library)).unwrap();
        }
        home
    }

    fn everything() -> Self {
        Self::with(&[CLAUDE, DESKTOP, CURSOR, CODEX, ZED, GOOSE, OPENCODE])
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
        command.args(["setup"]).args(arguments).current_dir(self.directory.path()).env_clear();
        command.env("HOME", self.directory.path()).env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    fn setup(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn report(&self, arguments: &[&str]) -> Value {
        let output = self.setup(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// All files except those of cx.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut directories = vec![self.directory.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.ends_with("cx") || path.ends_with(".cache") {
                } else if path.is_dir() {
                    directories.push(path);
                } else {
                    files.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        files
    }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

const OWN: &str = ".config/cx/config.json";

#[test]
fn a_plan_changes_nothing_and_says_what_it_would() {
    let home = Home::everything();
    let before = home.files();
    let output = home.setup(&["--dry-run", "--take-out"]);
    assert!(output.status.success());
    let shown = text(&output.stdout);
    for said in [
        "Claude Code  ~/.claude.json",
        "nothing  left where it is",
        "left as it is",
        "is not valid JSON",
        "code-executor  an executor like cx: never behind it",
        "files  left where it is: it needs the variable NOT_SET_ANYWHERE, which is not set here",
        "notes  switched off: notes --all",
        "+ server `library`",
        "- server `library`, now behind cx",
        "+ server `github-cursor`",
    ] {
        assert!(shown.contains(said), "{said}:\n{shown}");
    }
    assert_eq!(shown.matches("+ server `library`").count(), 1, "{shown}");
    assert!(!home.path(OWN).exists());
    assert_eq!(home.files(), before);
}

#[test]
fn servers_move_behind_cx_and_back() {
    let home = Home::everything();
    let before = home.files();
    fs::set_permissions(home.path(CLAUDE.0), fs::Permissions::from_mode(0o640)).unwrap();
    let output = home.setup(&["--yes", "--take-out", "--no-connect"]);
    assert!(output.status.success(), "{}", text(&output.stderr));

    // cx reads what was written, and has the servers.
    let library = library_server().display().to_string();
    assert_eq!(
        home.json(OWN),
        json!({ "mcpServers": {
            "library": { "command": library },
            "github": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"] },
            "github-cursor": { "command": "other" },
            "memory": { "command": "memory" },
        } })
    );
    assert_eq!(fs::metadata(home.path(OWN)).unwrap().permissions().mode() & 0o777, 0o600);
    // The clients start cx, with everything else as it was.
    let claude = home.read(CLAUDE.0);
    assert!(claude.starts_with("{\n  // what I have\n  \"numStartups\": 12,\n"), "{claude}");
    assert!(claude.contains("\"nothing\": {}, // to do"), "{claude}");
    assert!(claude.contains("\"args\": [\"serve\"]") && !claude.contains("library"), "{claude}");
    assert_eq!(fs::metadata(home.path(CLAUDE.0)).unwrap().permissions().mode() & 0o777, 0o640);
    let codex = home.read(CODEX.0);
    assert!(codex.starts_with(CODEX.1), "{codex}");
    assert!(codex.contains("\n[mcp_servers.cx]\ncommand = "), "{codex}");
    let zed = home.read(ZED.0);
    assert!(zed.contains("\"theme\": \"One\", // nice\n  \"context_servers\": {"), "{zed}");
    let goose = home.read(GOOSE.0);
    assert!(
        goose.starts_with("# mine\nGOOSE_MODEL: x\n") && goose.contains("    type: builtin\n  cx:\n"),
        "{goose}"
    );
    assert!(!goose.contains("memory"), "{goose}");
    let opencode = home.json(OPENCODE.0);
    assert_eq!(opencode["mcp"]["cx"]["command"][1], "serve");
    assert_eq!(opencode["mcp"]["notes"]["enabled"], false);
    assert_eq!(home.read(DESKTOP.0), DESKTOP.1);
    let cursor: Value = home.json(CURSOR.0);
    let names: Vec<&String> = cursor["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["code-executor", "cx"]);

    // A second time there is nothing to do, and nothing to undo.
    let after = home.files();
    let output = home.setup(&["--yes", "--take-out", "--no-connect"]);
    assert!(text(&output.stdout).contains("nothing to do: what was chosen is"), "{}", text(&output.stdout));
    assert_eq!(home.files(), after);

    let output = home.setup(&["--undo"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(home.files(), before);
    assert!(!home.path(OWN).exists());
    assert_eq!(home.setup(&["--undo"]).status.code(), Some(2));
}

#[test]
fn a_file_that_was_changed_since_is_not_put_back() {
    let home = Home::with(&[CLAUDE, CURSOR]);
    assert!(home.setup(&["--yes", "--no-connect"]).status.success());
    let changed = home.read(CLAUDE.0).replace("12", "13");
    fs::write(home.path(CLAUDE.0), &changed).unwrap();
    let cursor = home.read(CURSOR.0);
    let output = home.setup(&["--undo"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(".claude.json"), "{}", text(&output.stderr));
    assert_eq!((home.read(CLAUDE.0), home.read(CURSOR.0)), (changed.clone(), cursor));
    let output = home.setup(&["--undo", "--force"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!home.read(CLAUDE.0).contains("\"serve\""));
    // What a user has written is not lost, only moved.
    let said = text(&output.stdout);
    let (_, copy) = said.split_once("what ~/.claude.json had is in ~/").unwrap_or_else(|| panic!("{said}"));
    assert_eq!(home.read(copy.trim_end()), changed);
}

#[test]
fn a_configuration_that_exists_is_merged_replaced_or_kept() {
    let own = (
        OWN,
        "{\n  // rules\n  \"deny\": [\"github.delete_repository\"],\n  \"mcpServers\": { \"github\": { \"command\": \
         \"mine\" }, \"old\": { \"command\": \"old\" } }\n}\n",
    );
    let names = |home: &Home| {
        let shown = Command::new(env!("CARGO_BIN_EXE_cx"))
            .args(["config", "show", "--json"])
            .current_dir(home.directory.path())
            .env("HOME", home.directory.path())
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(shown["deny"], json!(["github.delete_repository"]));
        let servers = shown["mcpServers"].as_object().unwrap();
        servers
            .iter()
            .map(|(name, server)| (name.clone(), server["command"].clone()))
            .collect::<BTreeMap<_, _>>()
    };
    let home = Home::with(&[CLAUDE, own]);
    let output = home.setup(&["--yes", "--no-connect", "--take-out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(home.read(OWN).contains("// rules"));
    let merged = names(&home);
    assert_eq!(merged.keys().collect::<Vec<_>>(), ["github", "github-claude-code", "library", "old"]);
    assert_eq!(merged["github"], "mine");

    let home = Home::with(&[CLAUDE, own]);
    assert!(home.setup(&["--yes", "--no-connect", "--existing", "reset"]).status.success());
    let reset = names(&home);
    assert_eq!(reset.keys().collect::<Vec<_>>(), ["github", "library"]);
    assert_eq!(reset["github"], "npx");

    let home = Home::with(&[CLAUDE, own]);
    let output = home.setup(&["--yes", "--no-connect", "--existing", "keep", "--take-out"]);
    // By its name in the client, also where cx has another server of that name.
    let said = text(&output.stdout);
    for name in ["library", "github"] {
        let note = format!("note: `{name}` of Claude Code is not in cx's configuration, which is kept");
        assert!(said.contains(&note), "{said}");
    }
    assert_eq!(home.read(OWN), own.1);
    // Entries that cx cannot use stay in the client.
    assert!(home.read(CLAUDE.0).contains("library"));
}

/// It was left out without a word, and the clients were changed.
#[test]
fn a_named_server_that_cannot_move_is_an_error() {
    let home = Home::with(&[CLAUDE, CURSOR, CODEX]);
    for (name, expected) in [
        ("absent", "no client has a server `absent`"),
        ("code-executor", "`code-executor` cannot be put behind cx: it is an executor like cx"),
        ("nothing", "`nothing` cannot be put behind cx: "),
        ("files", "`files` cannot be put behind cx: "),
    ] {
        let output = home.setup(&["--yes", "--no-connect", "--server", "library", "--server", name]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.starts_with(&format!("error: {expected}")), "{said}");
    }
    let output = home.setup(&["--yes", "--no-connect", "--client", "codex", "--server", "library"]);
    let expected = "error: `library` is a server of Claude Code, which --client leaves out: \
        add `--client claude-code`\n";
    assert_eq!((&*text(&output.stderr), output.status.code()), (expected, Some(2)));
    assert!(!home.path(OWN).exists());
}

/// The tokens (o200k) of the definitions of the example server, counted here.
fn tokens_of_library() -> usize {
    let server = McpServer::stdio("library", library_server().to_str().unwrap());
    let executor = Executor::builder().mcp_server(server).build().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (name, refreshed) in runtime.block_on(executor.refresh_tools()) {
        refreshed.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let known = executor.known_tools();
    runtime.block_on(executor.close());
    let tokens = |tool: &Tool| {
        let definition = &tool.definition;
        let shown = json!({
            "name": definition.name,
            "description": definition.description,
            "inputSchema": definition.input_schema.to_value(),
        });
        bpe_openai::o200k_base().count(&*shown.to_string())
    };
    known[0].tools.iter().flatten().map(tokens).sum()
}

#[test]
fn the_saving_is_counted() {
    let home = Home::with(&[CLAUDE]);
    let report = home.report(&["--yes", "--take-out", "--server", "library"]);
    let server = &report["servers"][0];
    assert_eq!(server["name"], "library");
    assert!(server["tools"].as_u64().unwrap() > 3, "{server}");
    assert_eq!(report["tokensBefore"], server["tokens"]);
    assert_eq!(server["tokens"], tokens_of_library(), "{server}");
    let after = report["tokensAfter"].as_u64().unwrap();
    assert!((200..1_000).contains(&after), "{after}");
}

#[test]
fn tools_that_rules_hide_are_counted_apart() {
    let rules: Written = (OWN, r#"{ "allow": ["other.*", "library.search_*"] }"#);
    let home = Home::with(&[CLAUDE, rules]);
    let report = home.report(&["--yes", "--server", "library"]);
    let server = &report["servers"][0];
    let (tools, hidden) = (server["tools"].as_u64().unwrap(), server["hiddenTools"].as_u64().unwrap());
    assert!(hidden > 0, "{server}");
    assert!(home.setup(&["--undo"]).status.success());
    let output = home.setup(&["--yes", "--server", "library"]);
    assert_eq!(tools, 1, "{server}");
    let said = format!("library  1 tool, {hidden} more hidden by the rules `allow` and `deny`");
    assert!(text(&output.stdout).contains(&said), "{said}: {}", text(&output.stdout));
}

/// Names in cx are ASCII. No server is lost, none takes another's name, and each new name is printed.
#[test]
fn a_server_whose_name_is_not_ascii_gets_one_that_tells_it() {
    let servers = r#"{"mcpServers":{
        "öl":{"command":"a"}, "ol":{"command":"b"}, "Grün Über":{"command":"c"}, "日本":{"command":"d"},
        "ﬁle":{"command":"e"}, "😀":{"command":"f"}}}"#;
    let home = Home::with(&[(".claude.json", servers)]);
    let report = home.report(&["--yes", "--no-connect"]);
    let own = home.json(OWN);
    let names: BTreeSet<&str> = own["mcpServers"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["ol", "ol-claude-code", "Grun-Uber", "u65e5u672c", "file", "server"].into());
    assert_eq!(own["mcpServers"]["ol-claude-code"]["command"], "b");
    let notes = report["notes"].to_string();
    for said in [
        "`öl` of Claude Code is `ol` in cx: names there have letters and digits of ASCII",
        "`ol` of Claude Code is `ol-claude-code` in cx: it has another server `ol`",
        "`日本` of Claude Code is `u65e5u672c` in cx",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
}

#[test]
fn variables_of_the_shell_are_named() {
    let home = Home::with(&[CLAUDE]);
    let mut command = home.command(&["--dry-run"]);
    let output = command.env("GITHUB_TOKEN", "ghp_secret").env("OTHER_TOKEN", "x").output().unwrap();
    let shown = text(&output.stdout);
    assert!(shown.contains(r#""env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}" }"#), "{shown}");
    assert!(!shown.contains("OTHER_TOKEN") && !shown.contains("ghp_secret"), "{shown}");
    // Other variables of the service, and one that is no credential.
    let servers = json!({ "mcpServers": {
        "github": { "command": "npx", "args": ["@modelcontextprotocol/server-github"] },
        "slack": { "command": "npx", "args": ["server-slack"] },
        "postgres": { "command": "npx", "args": ["server-postgres"] },
    } });
    let home = Home::with(&[(CLAUDE.0, "{}")]);
    fs::write(home.path(CLAUDE.0), servers.to_string()).unwrap();
    let mut command = home.command(&["--dry-run"]);
    for name in ["GH_TOKEN", "SLACK_TEAM_ID", "DATABASE_URL", "PGPASSWORD", "SLACK_NOTHING", "TEAM_ID"] {
        command.env(name, "x");
    }
    let shown = text(&command.output().unwrap().stdout);
    for named in ["GH_TOKEN", "SLACK_TEAM_ID", "DATABASE_URL", "PGPASSWORD"] {
        assert!(shown.contains(&format!("${{{named}}}")), "{named}: {shown}");
    }
    assert!(!shown.contains("SLACK_NOTHING") && !shown.contains("{TEAM_ID"), "{shown}");
}

/// A user with servers for two directories, one of which also has files of four clients.
fn with_projects() -> Home {
    let home = Home::with(&[CURSOR]);
    let (project, other) = (home.path("project"), home.path("other"));
    fs::create_dir(&other).unwrap();
    let library = library_server().display().to_string();
    let claude = json!({
        "numStartups": 12,
        "mcpServers": { "everywhere": { "command": "everywhere" } },
        "projects": {
            project.to_str().unwrap(): {
                "history": [1],
                "mcpServers": { "library": { "command": library }, "database": { "command": "db", "args": ["project"] } },
            },
            other.to_str().unwrap(): { "mcpServers": { "database": { "command": "db", "args": ["other"] } } },
            "/nothing": { "mcpServers": {} },
            "/nowhere": { "mcpServers": { "old": { "command": "old" } } },
        },
    });
    for (path, text) in [
        (".claude.json", format!("{claude:#}\n")),
        (
            "project/.mcp.json",
            r#"{"mcpServers":{"shared":{"command":"shared","env":{"KEY":"${NOT_SET_ANYWHERE}"}}}}"#
                .to_owned(),
        ),
        (
            "project/.vscode/mcp.json",
            "{\n  // ours\n  \"servers\": {\n    \"tasks\": { \"command\": \"tasks\", \"args\": [\"${workspaceFolder}/tasks.json\"] }\n  }\n}\n".to_owned(),
        ),
        ("project/.cursor/mcp.json", "{broken".to_owned()),
        (
            "project/.codex/config.toml",
            "model = \"x\"\n\n[mcp_servers.docs]\ncommand = \"docs\"\n".to_owned(),
        ),
        ("project/.gemini/settings.json", r#"{"theme":"x"}"#.to_owned()),
        ("project/opencode.json", r#"{"mcp":{"notes":{"type":"local","command":["./notes"]}}}"#.to_owned()),
        (
            "project/.zed/settings.json",
            r#"{"context_servers":{"cx":{"command":"cx","args":["serve"]},"lint":{"command":"lint"}}}"#
                .to_owned(),
        ),
    ] {
        let path = home.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    home
}

/// `cx setup` in the directory that has its own files of clients.
fn at_work(home: &Home, arguments: &[&str]) -> Output {
    home.command(arguments).current_dir(home.path("project")).output().unwrap()
}

/// Claude Code keeps the history of all projects beside the servers.
#[test]
fn a_large_file_is_read_too() {
    let home = Home::with(&[(CLAUDE.0, "{}")]);
    let history = vec!["x".repeat(1_000); 3_000];
    let claude = json!({ "projects": { "/project": { "history": history } }, "mcpServers": { "a": { "command": "a" } } });
    fs::write(home.path(CLAUDE.0), claude.to_string()).unwrap();
    assert!(home.setup(&["--yes", "--take-out", "--no-connect"]).status.success());
    let mut after = home.json(CLAUDE.0);
    assert_eq!(after["mcpServers"]["cx"]["args"], json!(["serve"]));
    after["mcpServers"] = claude["mcpServers"].clone();
    assert_eq!(after, claude);
    // A large file that is no configuration at all.
    fs::File::create(home.path(CLAUDE.0)).unwrap().set_len(1 << 30).unwrap();
    assert!(text(&home.setup(&["--dry-run"]).stdout).contains("larger than 16 MB"));
}

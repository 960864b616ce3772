//! `cx setup`: how it changes clients' files, and how the change is undone.

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
    assert!(text(&output.stdout).contains("nothing to do"), "{}", text(&output.stdout));
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
    assert!(text(&output.stdout).contains("is not in cx's configuration, which is kept"));
    assert_eq!(home.read(OWN), own.1);
    // Entries that cx cannot use stay in the client.
    assert!(home.read(CLAUDE.0).contains("library"));
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

/// A comment before a removed server is usually about something else.
#[test]
fn comments_before_a_server_stay_when_it_is_taken_out() {
    let before = "# head of the file\n\n# model = \"x\"\n[mcp_servers.library]\ncommand = \"LIBRARY\"\n\n\
        # of the next\n[mcp_servers.library.env]\nA = \"1\"\n\n# about the tui\n[tui]\nx = 1 # one\n";
    let home = Home::with(&[(CODEX.0, before)]);
    let whole = home.read(CODEX.0);
    assert!(home.setup(&["--yes", "--take-out", "--no-connect"]).status.success());
    let after = home.read(CODEX.0);
    assert!(!after.contains("library"), "{after}");
    for comment in [
        "# head of the file\n\n# model = \"x\"\n",
        "# of the next\n",
        "# about the tui\n[tui]\nx = 1 # one\n",
    ] {
        assert!(after.contains(comment), "{comment}: {after}");
    }
    // The last table of the file, and an inline table.
    let last = "model = \"x\"\n\n# about the library\n[mcp_servers]\n# in a line\nlibrary = { command = \"LIBRARY\" }\n";
    let home = Home::with(&[(CODEX.0, last)]);
    assert!(home.setup(&["--yes", "--take-out", "--no-connect"]).status.success());
    let after = home.read(CODEX.0);
    assert!(after.contains("# about the library") && after.contains("# in a line"), "{after}");
    assert!(!after.contains("library ="), "{after}");
    assert!(home.setup(&["--undo"]).status.success());
    assert_eq!(home.read(CODEX.0), last.replace("LIBRARY", &library_server().display().to_string()));
    assert!(whole.starts_with("# head"));
}

#[test]
fn executors_are_recognized_however_they_are_started() {
    let servers = json!({ "mcpServers": {
        "code-executor": { "command": "node", "args": ["/opt/ce/dist/index.js"] },
        "in-docker": { "command": "docker", "args": ["run", "-i", "someone/code-executor-mcp:latest"] },
        "with-env": { "command": "env", "args": ["A=b", "cx", "serve"] },
        "in-shell": { "command": "bash", "args": ["-c", "exec '/usr/local/bin/cx' serve --deny x"] },
        "nightly": { "command": "/usr/local/bin/cx-nightly", "args": ["serve"] },
        "cx": { "url": "http://127.0.0.1:8000/mcp" },
        "serves": { "command": "docs", "args": ["serve", "cx"] },
    } });
    let home = Home::with(&[(CURSOR.0, "{}")]);
    fs::write(home.path(CURSOR.0), servers.to_string()).unwrap();
    let report = home.report(&["--dry-run"]);
    let clients = report["clients"].as_array().unwrap();
    let cursor = clients.iter().find(|client| client["client"] == "cursor").unwrap();
    let fitness = |name: &str| {
        let servers = cursor["servers"].as_array().unwrap();
        servers.iter().find(|server| server["name"] == name).unwrap()["fitness"].clone()
    };
    for name in ["with-env", "in-shell", "nightly", "cx"] {
        assert_eq!(fitness(name), "cx", "{name}");
    }
    for name in ["code-executor", "in-docker"] {
        assert_eq!(fitness(name), "executor", "{name}");
    }
    assert_eq!(fitness("serves"), "usable");
    assert_eq!(cursor["hasCx"], true);
}

#[test]
fn only_one_setup_changes_files_at_a_time() {
    let home = Home::with(&[CLAUDE]);
    let directory = home.path(".local/state/cx/setup");
    fs::create_dir_all(&directory).unwrap();
    for directory in [".local/state/cx/setup", ".local/state/cx"] {
        fs::set_permissions(home.path(directory), fs::Permissions::from_mode(0o700)).unwrap();
    }
    let lock = fs::File::create(directory.join("lock")).unwrap();
    lock.lock().unwrap();
    fs::write(directory.join("lock"), "4711 1700000000\n").unwrap();
    let before = home.files();
    let output = home.setup(&["--yes", "--no-connect"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("process 4711, since 2023-11-14T22:13:20Z"), "{said}");
    // Also before anything is asked.
    assert!(text(&home.setup(&[]).stderr).contains("process 4711"));
    assert!(home.setup(&["--dry-run"]).status.success());
    assert_eq!(home.files(), before);
    // The lock file of a process that has ended blocks no other.
    drop(lock);
    assert!(home.setup(&["--yes", "--no-connect"]).status.success());
}

#[test]
fn without_a_terminal_nothing_is_guessed() {
    let home = Home::with(&[CLAUDE]);
    let before = home.files();
    let output = home.setup(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--yes"), "{}", text(&output.stderr));
    assert_eq!(home.files(), before);
    // An output format is no answer to the questions.
    let output = home.setup(&["--json"]);
    assert_eq!(output.status.code(), Some(2));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["error"]["code"], "INVALID_ARGUMENTS", "{printed}");
    assert!(printed["error"]["message"].as_str().unwrap().contains("--yes"), "{printed}");
    assert_eq!(home.files(), before);
    assert!(!home.path(OWN).exists());
    let output = home.setup(&["--yes", "--client", "zed"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("installed: claude-code"), "{}", text(&output.stderr));
}

#[test]
fn a_linked_file_stays_a_link() {
    let home = Home::with(&[("dotfiles/claude.json", CLAUDE.1)]);
    std::os::unix::fs::symlink(home.path("dotfiles/claude.json"), home.path(".claude.json")).unwrap();
    assert!(home.setup(&["--yes", "--no-connect"]).status.success());
    assert!(home.path(".claude.json").is_symlink());
    assert!(home.read("dotfiles/claude.json").contains("serve"));
    assert!(Path::new(&home.path(OWN)).exists());
}

/// A client's list of servers has another type: nothing can be added to it, and the other clients are set up.
#[test]
fn a_file_without_a_list_of_servers_is_left_alone() {
    let strange: [Written; 4] = [
        (".claude.json", "[]"),
        (CODEX.0, "mcp_servers = \"x\"\n"),
        (ZED.0, "{ \"context_servers\": null }"),
        (OPENCODE.0, "{ \"mcp\": [\"notes\"] }"),
    ];
    let home = Home::with(&[&strange[..], &[CURSOR, (GOOSE.0, "# mine\nextensions:\n")]].concat());
    let report = home.report(&["--yes", "--no-connect"]);
    for client in report["clients"].as_array().unwrap() {
        let is_strange = strange.iter().any(|(path, _)| client["file"] == home.path(path).to_str().unwrap());
        let problem = client["problem"].as_str().unwrap_or_default();
        assert_eq!(problem.contains("expected an object, found "), is_strange, "{client:#}");
    }
    for (path, text) in strange {
        assert_eq!(home.read(path), text);
    }
    for path in [CURSOR.0, GOOSE.0] {
        assert!(home.read(path).contains("serve"), "{}", home.read(path));
    }
}

/// Home directories are often links. Servers of files below it are not counted a second time as those of a directory.
#[test]
fn a_home_directory_that_is_a_link_is_one_directory() {
    let home = Home::everything();
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("home");
    std::os::unix::fs::symlink(home.directory.path(), &link).unwrap();
    for (named, entered) in
        [(&*link, home.directory.path()), (home.directory.path(), &*link), (&*link, &*link)]
    {
        let mut command = home.command(&["--dry-run", "--json"]);
        let output = command.env("HOME", named).current_dir(entered).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["clients"].as_array().unwrap().len(), 7, "{report:#}");
        assert_eq!(report["projects"], json!([]), "{named:?} from {entered:?}");
    }
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

#[test]
fn servers_of_one_directory_are_listed_with_their_files_and_stay() {
    let home = with_projects();
    let before = home.files();
    let output = at_work(&home, &["--yes", "--take-out", "--no-connect"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for said in [
        "Claude Code, in ~/project only  ~/.claude.json\n  library  ",
        "Claude Code, in ~/other only  ~/.claude.json\n  database  db other\n",
        "Claude Code, in /nowhere only, which does not exist any more  ~/.claude.json\n  old  old\n",
        "Claude Code, in ~/project only  ~/project/.mcp.json\n  shared  left where it is: it needs the variable",
        "`cx trust .mcp.json` lets cx use them here, and only here",
        "VS Code, in ~/project only  ~/project/.vscode/mcp.json\n  tasks  tasks '${workspaceFolder}/tasks.json'\n",
        "Cursor, in ~/project only  ~/project/.cursor/mcp.json\n  left as it is: ",
        "Codex, in ~/project only  ~/project/.codex/config.toml\n  docs  docs\n",
        "OpenCode, in ~/project only  ~/project/opencode.json\n  notes  ./notes\n",
        "Zed, in ~/project only  ~/project/.zed/settings.json\n  cx  starts cx already\n  lint  lint\n",
    ] {
        assert!(shown.contains(said), "{said}:\n{shown}");
    }
    assert!(!shown.contains("gemini") && !shown.contains("/nothing"), "{shown}");
    // None of them moves: they belong to one directory, and some belong to other people too.
    let own = home.json(OWN);
    let names: Vec<&String> = own["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["everywhere", "library", "github"]);
    let claude = home.json(".claude.json");
    let was: Value = serde_json::from_slice(&before[&home.path(".claude.json")]).unwrap();
    assert_eq!(claude["projects"], was["projects"]);
    let files = home.files();
    for (path, bytes) in before.iter().filter(|(path, _)| path.starts_with(home.path("project"))) {
        assert_eq!(files[path], *bytes, "{}", path.display());
    }
    // Naming one does not move it either, unless servers of directories are asked for.
    let output = at_work(&home, &["--yes", "--server", "tasks"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("of one directory only, in ~/project/.vscode/mcp.json: --projects lets it move"),
        "{said}"
    );
}

#[test]
fn servers_of_one_directory_move_when_they_are_chosen() {
    let home = with_projects();
    let before = home.files();
    let output = at_work(&home, &["--yes", "--projects", "--take-out", "--no-connect"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("- server `database` of ~/project, now behind cx"), "{shown}");
    assert!(
        shown.contains("`tasks` was a server of ~/project only: behind cx it is there in all directories"),
        "{shown}"
    );
    assert!(!shown.contains("`library` was a server of"), "{shown}");
    // The server of Cursor for all directories is the same; two others with one name are named after their directories.
    let own = home.json(OWN);
    let names: Vec<&String> = own["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["everywhere", "library", "github", "database", "database-other", "tasks", "docs", "lint", "notes"]
    );
    let args = |name: &str| own["mcpServers"][name]["args"][0].as_str().unwrap().to_owned();
    assert_eq!((args("database"), args("database-other")), ("project".to_owned(), "other".to_owned()));
    // The entries that the directory gave them stay.
    let project = home.path("project");
    assert_eq!(args("tasks"), project.join("tasks.json").to_str().unwrap());
    assert_eq!(own["mcpServers"]["notes"], json!({ "command": "./notes", "cwd": project }));
    assert!(own["mcpServers"]["library"].get("cwd").is_none());
    let claude = home.json(".claude.json");
    let project = &claude["projects"][home.path("project").to_str().unwrap()];
    assert_eq!(*project, json!({ "history": [1], "mcpServers": {} }));
    assert_eq!(claude["mcpServers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["cx"]);
    assert_eq!(claude["numStartups"], 12);
    // Of the directory's own files only Zed's changes, because it starts cx here. VS Code, OpenCode, Codex and Zed are
    // not installed.
    assert_eq!(
        home.read("project/.zed/settings.json"),
        r#"{"context_servers":{"cx":{"command":"cx","args":["serve"]}}}"#
    );
    for kept in [
        "project/.vscode/mcp.json",
        "project/.codex/config.toml",
        "project/opencode.json",
        "project/.mcp.json",
        "project/.cursor/mcp.json",
    ] {
        assert_eq!(home.files()[&home.path(kept)], before[&home.path(kept)], "{kept}");
    }
    assert!(home.setup(&["--undo"]).status.success());
    assert_eq!(home.files(), before);
    // Where the client is installed it starts cx in every directory, so the servers leave the file.
    let home = with_projects();
    let user = home.path(".config/Code/User/mcp.json");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    fs::write(user, "{}").unwrap();
    let output = at_work(&home, &["--yes", "--projects", "--take-out", "--no-connect", "--server", "tasks"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(home.read("project/.vscode/mcp.json"), "{\n  // ours\n  \"servers\": {}\n}\n");
    let tasks = json!({ "command": "tasks", "args": [home.path("project/tasks.json")] });
    assert_eq!(home.json(OWN)["mcpServers"], json!({ "tasks": tasks }));
}

#[test]
fn servers_of_one_directory_are_in_the_report() {
    let home = with_projects();
    let mut command = home.command(&["--dry-run", "--json"]);
    let output = command.current_dir(home.path("project")).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let projects = report["projects"].as_array().unwrap();
    let all: Vec<(&str, String, Vec<&str>)> = projects
        .iter()
        .map(|project| {
            let of_home =
                project["file"].as_str().unwrap().trim_start_matches(home.directory.path().to_str().unwrap());
            let servers = project["servers"].as_array().unwrap().iter();
            let names = servers.map(|server| server["name"].as_str().unwrap()).collect();
            (project["client"].as_str().unwrap(), of_home.to_owned(), names)
        })
        .collect();
    let expected: [(&str, &str, &[&str]); 9] = [
        ("claude-code", "/.claude.json", &["library", "database"]),
        ("claude-code", "/.claude.json", &["database"]),
        ("claude-code", "/.claude.json", &["old"]),
        ("claude-code", "/project/.mcp.json", &["shared"]),
        ("cursor", "/project/.cursor/mcp.json", &[]),
        ("vscode", "/project/.vscode/mcp.json", &["tasks"]),
        ("codex", "/project/.codex/config.toml", &["docs"]),
        ("zed", "/project/.zed/settings.json", &["cx", "lint"]),
        ("opencode", "/project/opencode.json", &["notes"]),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(client, file, names)| (*client, (*file).to_owned(), names.to_vec())).collect();
    assert_eq!(all, expected);
    assert_eq!(projects[0]["directory"], home.path("project").to_str().unwrap());
    assert_eq!((&projects[7]["hasCx"], &projects[5]["hasCx"]), (&json!(true), &json!(false)));
    // One client alone.
    let output = at_work(&home, &["--dry-run", "--json", "--client", "claude-code"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let projects = report["projects"].as_array().unwrap();
    assert_eq!(projects.len(), 4, "{report}");
    assert!(projects.iter().all(|project| project["client"] == "claude-code"), "{report}");
}

/// The screen after a user has answered the questions of `cx setup`, and the exit status.
fn dialogue(
    home: &Home,
    directory: &str,
    arguments: &[&str],
    answers: &[(&str, &str)],
) -> (String, Option<i32>) {
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompt.py"))
        .arg(json!(answers).to_string())
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

//! Files that are changed with care, and files that are left alone.

use super::*;

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

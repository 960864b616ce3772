//! Servers of single directories.

use super::*;

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
    let output = at_work(&home, &["--yes", "--projects", "--server", "old"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("`old` cannot be put behind cx: it is for /nowhere, which does not exist"),
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

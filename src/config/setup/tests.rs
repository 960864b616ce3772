//! What setup finds by a given environment, and how it writes files.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::edit::Edit;
use super::{Choices, Plan, SetupError, SetupLock, Survey, undo};
use crate::config::clients::Layout;
use crate::config::environment::{Directories, Environment};

/// The text after `cx` came into the list and `gone` went.
fn edited(text: &str, gone: &[&str]) -> String {
    let entry = json!({ "command": "cx", "args": ["serve", "-v"] });
    let remove = gone.iter().map(|name| (*name).to_owned()).collect();
    let edit = Edit { set: vec![("cx".to_owned(), entry)], remove };
    edit.apply(Layout::Json, text, &["mcpServers".to_owned()]).unwrap()
}

#[test]
fn what_stands_in_one_line_stays_in_one_line() {
    let compact = r#"{"command":"cx","args":["serve","-v"]}"#;
    let spaced = r#"{ "command": "cx", "args": ["serve", "-v"] }"#;
    let narrow = r#"{"command": "cx", "args": ["serve", "-v"]}"#;
    for (before, gone, after) in [
        // As a program writes it.
        (r#"{"mcpServers":{"a":{"command":"a"},"b":{}}}"#, vec![], format!(r#"{{"mcpServers":{{"a":{{"command":"a"}},"b":{{}},"cx":{compact}}}}}"#)),
        (r#"{"mcpServers":{"a":{"command":"a"},"b":{}}}"#, vec!["a"], format!(r#"{{"mcpServers":{{"b":{{}},"cx":{compact}}}}}"#)),
        (r#"{"mcpServers":{"a":{},"b":{},"c":{}}}"#, vec!["b"], format!(r#"{{"mcpServers":{{"a":{{}},"c":{{}},"cx":{compact}}}}}"#)),
        (r#"{"mcpServers":{"a":{},"b":{},"c":{}}}"#, vec!["c", "a"], format!(r#"{{"mcpServers":{{"b":{{}},"cx":{compact}}}}}"#)),
        // Nothing is left, or nothing was there.
        (r#"{"mcpServers":{"a":{}},"x":1}"#, vec!["a"], format!(r#"{{"mcpServers":{{"cx":{compact}}},"x":1}}"#)),
        (r#"{"mcpServers":{}}"#, vec![], format!(r#"{{"mcpServers":{{"cx":{compact}}}}}"#)),
        (r#"{"x":1}"#, vec![], format!(r#"{{"x":1,"mcpServers":{{"cx":{compact}}}}}"#)),
        // As people and Python write it.
        ("{ \"mcpServers\": { \"a\": {} } }\n", vec![], format!("{{ \"mcpServers\": {{ \"a\": {{}}, \"cx\": {spaced} }} }}\n")),
        ("{ \"mcpServers\": { \"a\": {} } }\n", vec!["a"], format!("{{ \"mcpServers\": {{ \"cx\": {spaced} }} }}\n")),
        (r#"{"mcpServers": {"a": {}, "b": {}}}"#, vec!["b"], format!(r#"{{"mcpServers": {{"a": {{}}, "cx": {narrow}}}}}"#)),
        // A comma at the end, comments, and a byte order mark.
        (r#"{"mcpServers": {"a": {}, /* of b, all */ "b": {},}}"#, vec![], format!(r#"{{"mcpServers": {{"a": {{}}, /* of b, all */ "b": {{}}, "cx": {narrow},}}}}"#)),
        (r#"{"mcpServers": {"a": {} /* , */ , "b": {} /* , */ }}"#, vec!["a"], format!(r#"{{"mcpServers": {{ "b": {{}}, "cx": {narrow} /* , */ }}}}"#)),
        ("\u{feff}{\"mcpServers\":{\"a\":{}}}", vec![], format!("\u{feff}{{\"mcpServers\":{{\"a\":{{}},\"cx\":{compact}}}}}")),
        // A value that is replaced.
        (r#"{"mcpServers":{"cx":{"command":"old"},"a":{}}}"#, vec![], format!(r#"{{"mcpServers":{{"cx":{compact},"a":{{}}}}}}"#)),
        // The list is one line of a file that has several.
        ("{\n\t\"x\": 1, // one\n\t\"mcpServers\": {\"a\": {}}\n}\n", vec!["a"], format!("{{\n\t\"x\": 1, // one\n\t\"mcpServers\": {{\"cx\": {narrow}}}\n}}\n")),
        ("{\n\t\"x\": 1, // one\n\t\"mcpServers\": {\"a\": {}}\n}\n", vec![], format!("{{\n\t\"x\": 1, // one\n\t\"mcpServers\": {{\"a\": {{}}, \"cx\": {narrow}}}\n}}\n")),
        // One entry in each line, as before.
        ("{\n  \"mcpServers\": {\n    \"a\": { \"x\": 1 },\n    \"b\": {}\n  }\n}\n", vec!["a"], "{\n  \"mcpServers\": {\n    \"b\": {},\n    \"cx\": {\n      \"command\": \"cx\",\n      \"args\": [\"serve\", \"-v\"]\n    }\n  }\n}\n".to_owned()),
        // No format to keep.
        ("{}\n", vec![], "{\n  \"mcpServers\": {\n    \"cx\": {\n      \"command\": \"cx\",\n      \"args\": [\"serve\", \"-v\"]\n    }\n  }\n}\n".to_owned()),
    ] {
        assert_eq!(edited(before, &gone), after, "{before} without {gone:?}");
    }
}

#[test]
fn a_list_below_other_keys_is_changed_alone() {
    let text =
        r#"{"projects":{"/a":{"x":1,"mcpServers":{"one":{},"two":{}}},"/b":{"mcpServers":{"one":{}}}}}"#;
    let keys = ["projects", "/a", "mcpServers"].map(str::to_owned);
    let edit = Edit { set: Vec::new(), remove: vec!["one".to_owned()] };
    let after = r#"{"projects":{"/a":{"x":1,"mcpServers":{"two":{}}},"/b":{"mcpServers":{"one":{}}}}}"#;
    assert_eq!(edit.apply(Layout::JsonWithProjects, text, &keys).unwrap(), after);
    let edit = Edit { set: Vec::new(), remove: vec!["three".to_owned()] };
    let error = edit.apply(Layout::JsonWithProjects, text, &keys).unwrap_err();
    assert_eq!(error, "`three` is not in it any more");
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The paths of each system are computed from its variables alone, so those of Windows can be tried anywhere.
#[test]
fn clients_are_found_below_the_variables_of_windows() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("AppData/Roaming");
    let files = [
        ("claude-desktop", "Claude/claude_desktop_config.json", r#"{"mcpServers":{"one":{"command":"a"}}}"#),
        ("vscode", "Code/User/mcp.json", r#"{"servers":{"two":{"command":"b"}}}"#),
        ("zed", "Zed/settings.json", r#"{"context_servers":{"three":{"command":"c"}}}"#),
        (
            "goose",
            "Block/goose/config/config.yaml",
            "extensions:\n  four:\n    type: stdio\n    cmd: d\n    enabled: true\n",
        ),
    ];
    for (_, path, text) in files {
        write(&data.join(path), text);
    }
    // Those that have their files in the home directory on all systems.
    write(&home.path().join(".cursor/mcp.json"), r#"{"mcpServers":{"five":{"command":"e"}}}"#);
    write(&home.path().join(".codeium/windsurf/mcp_config.json"), "{}");
    let (home_text, data_text) = (home.path().to_str().unwrap(), data.to_str().unwrap());
    let workspace = home.path().join("work");
    fs::create_dir(&workspace).unwrap();
    let survey = Survey::of(&workspace, Environment::of([("HOME", home_text), ("APPDATA", data_text)]));
    let found = |name: &str| survey.clients.iter().find(|client| client.name == name);
    for (name, path, _) in files {
        let client = found(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!((&client.file, client.servers.len()), (&data.join(path), 1), "{name}");
    }
    let names: Vec<&str> = survey.clients.iter().map(|client| client.name).collect();
    assert_eq!(names, ["claude-desktop", "cursor", "vscode", "windsurf", "zed", "goose"]);
    // They get cx there.
    let mut choices = Choices::new("cx");
    choices.clients = names.iter().map(|name| (*name).to_owned()).collect();
    choices.servers = survey
        .clients
        .iter()
        .flat_map(|client| client.servers.iter().map(|server| (client.list(), server.name.clone())))
        .collect();
    let plan = Plan::new(&survey, &choices).unwrap();
    for (name, path, _) in files {
        let change = plan.changes.iter().find(|change| change.path == data.join(path));
        let change = change.unwrap_or_else(|| panic!("{name}: {plan:?}"));
        assert_eq!(change.actions, ["+ server `cx`: cx serve"], "{name}");
    }
    assert_eq!(plan.changes[0].actions.len(), 5);
    // Without the variable there are none.
    let survey = Survey::of(&workspace, Environment::of([("HOME", home_text)]));
    let names: Vec<&str> = survey.clients.iter().map(|client| client.name).collect();
    assert_eq!(names, ["cursor", "windsurf"]);
}

/// A client, its file below the home directory, what is in it, and a part of the entry that it reads.
type ClientOfTest = (&'static str, &'static str, &'static str, &'static str);

/// Puts cx into the files, reads them again, and requires that each client starts it.
fn check_entries(files: &[ClientOfTest]) {
    let home = tempfile::tempdir().unwrap();
    for (_, path, text, _) in files {
        write(&home.path().join(path), text);
    }
    let workspace = home.path().join("work");
    fs::create_dir(&workspace).unwrap();
    let home_text = home.path().to_str().unwrap();
    let survey = || Survey::of(&workspace, Environment::of([("HOME", home_text)]));
    let before = survey();
    let mut choices = Choices::new("/opt/cx");
    choices.clients = before.clients.iter().map(|client| client.name.to_owned()).collect();
    let plan = Plan::new(&before, &choices).unwrap();
    assert_eq!(plan.changes.len(), files.len(), "{plan:?}");
    for change in &plan.changes {
        fs::write(&change.path, &change.after).unwrap();
    }
    let after = survey();
    for (name, path, _, entry) in files {
        let client = after.clients.iter().find(|client| client.name == *name);
        let client = client.unwrap_or_else(|| panic!("{name}"));
        assert_eq!((&client.file, client.has_cx), (&home.path().join(path), true), "{name}");
        assert_eq!(client.program.as_deref(), Some("/opt/cx"), "{name}");
        let text = fs::read_to_string(&client.file).unwrap();
        assert!(text.contains(entry), "{name} has no {entry}: {text}");
    }
}

#[test]
fn every_client_gets_the_entry_that_it_reads() {
    check_entries(&[
        ("claude-code", ".claude.json", "{}", r#""type": "stdio""#),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "{}", r#""args": ["serve"]"#),
        ("cursor", ".cursor/mcp.json", "{}", r#""type": "stdio""#),
        ("vscode", ".config/Code/User/mcp.json", "{}", r#""type": "stdio""#),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "{}", r#""args": ["serve"]"#),
        ("codex", ".codex/config.toml", "model = \"x\"\n", "tool_timeout_sec = 620"),
        ("gemini-cli", ".gemini/settings.json", "{}", r#""timeout": 620000"#),
        ("zed", ".config/zed/settings.json", "{}", r#""source": "custom""#),
        ("opencode", ".config/opencode/opencode.json", "{}", r#""type": "local""#),
        ("goose", ".config/goose/config.yaml", "extensions:\n", "timeout: 620"),
    ]);
    // On macOS two of them have their files elsewhere.
    check_entries(&[
        (
            "claude-desktop",
            "Library/Application Support/Claude/claude_desktop_config.json",
            "{}",
            r#""args": ["serve"]"#,
        ),
        ("vscode", "Library/Application Support/Code/User/mcp.json", "{}", r#""type": "stdio""#),
    ]);
}

/// A user of Claude Code who moves its one server behind cx, and the lock of the change.
struct Moving {
    home: tempfile::TempDir,
    plan: Plan,
    lock: SetupLock,
}

const CLAUDE: &str = r#"{"mcpServers":{"a":{"command":"a"}}}"#;

impl Moving {
    /// `prepare` gets the home directory before it is read.
    fn new(prepare: impl FnOnce(&Path)) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".claude.json"), CLAUDE).unwrap();
        prepare(home.path());
        let workspace = home.path().join("work");
        fs::create_dir(&workspace).unwrap();
        let environment = Environment::of([("HOME", home.path().to_str().unwrap())]);
        let lock = SetupLock::acquire(&Directories::in_environment(&environment).unwrap()).unwrap();
        let survey = Survey::of(&workspace, environment);
        let mut choices = Choices::new("cx");
        choices.clients = survey.clients.iter().map(|client| client.name.to_owned()).collect();
        choices.servers = vec![(survey.clients[0].list(), "a".to_owned())];
        choices.take_out = true;
        let plan = Plan::new(&survey, &choices).unwrap();
        Self { home, plan, lock }
    }

    /// Whether nothing is changed, and so nothing can be undone.
    fn check_unchanged(&self, claude: &str) {
        assert_eq!(fs::read_to_string(self.home.path().join(".claude.json")).unwrap(), claude);
        assert!(!self.home.path().join(".config/cx/config.json").exists());
        assert!(matches!(undo(&self.lock, false), Err(SetupError::NothingToUndo)));
    }
}

/// The files before it in the plan were written, and are put back.
#[test]
fn a_file_that_cannot_be_written_takes_the_others_back() {
    // No file can be made there, whoever tries.
    let moving = Moving::new(|home| std::os::unix::fs::symlink("/proc/self", home.join(".cursor")).unwrap());
    assert_eq!(moving.plan.changes.len(), 3, "{:?}", moving.plan);
    let error = moving.plan.apply(&moving.lock).unwrap_err();
    let cursor = moving.home.path().join(".cursor/mcp.json");
    assert!(matches!(&error, SetupError::Io { path, .. } if *path == cursor), "{error}");
    moving.check_unchanged(CLAUDE);
}

/// While a user is asked, a client may write its file.
#[test]
fn a_file_that_was_changed_since_the_plan_is_not_written() {
    let moving = Moving::new(|_| ());
    let claude = moving.home.path().join(".claude.json");
    let changed = r#"{"numStartups":2,"mcpServers":{"a":{"command":"a"}}}"#;
    fs::write(&claude, changed).unwrap();
    let error = moving.plan.apply(&moving.lock).unwrap_err();
    assert!(matches!(&error, SetupError::Changed { path } if *path == claude), "{error}");
    moving.check_unchanged(changed);
}

/// Each of them would be compared with all others, and a file in a directory can be of anyone.
#[test]
fn a_list_of_thousands_of_servers_is_left_where_it_is() {
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("work");
    fs::create_dir(&workspace).unwrap();
    let list = |count: usize| {
        let servers = (0..count).map(|number| (format!("s{number}"), json!({ "command": "a" })));
        json!({ "mcpServers": servers.collect::<serde_json::Map<_, _>>() }).to_string()
    };
    let read = |count: usize| {
        write(&home.path().join(".cursor/mcp.json"), &list(count));
        write(&workspace.join(".cursor/mcp.json"), &list(count));
        let survey = Survey::of(&workspace, Environment::of([("HOME", home.path().to_str().unwrap())]));
        let client = survey.clients.iter().find(|client| client.name == "cursor").unwrap();
        let project = survey.projects.iter().find(|project| project.client == "cursor").unwrap();
        let problems = [client.problem.clone(), project.problem.clone()];
        (problems, client.servers.len(), project.servers.len())
    };
    assert_eq!(read(1_000), ([None, None], 1_000, 1_000));
    let (problems, of_client, of_project) = read(1_001);
    assert_eq!((of_client, of_project), (0, 0));
    for problem in problems {
        let problem = problem.unwrap();
        assert!(problem.contains("at most 1000 servers") && problem.contains("1001"), "{problem}");
    }
}

//! What setup finds by a given environment, and how it writes files.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::edit::{Edit, apply};
use super::{Choices, Plan, SetupError, SetupLock, Survey, undo};
use crate::config::clients::Layout;
use crate::config::environment::{Directories, Environment};

/// The text after `cx` came into the list and `gone` went.
fn edited(text: &str, gone: &[&str]) -> String {
    let entry = json!({ "command": "cx", "args": ["serve", "-v"] });
    let remove = gone.iter().map(|name| (*name).to_owned()).collect();
    let edit = Edit { set: vec![("cx".to_owned(), entry)], remove };
    apply(Layout::Json, text, &[(vec!["mcpServers".to_owned()], edit)]).unwrap()
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
        (r#"{"mcpServers": {"a": {} /* , */ , "b": {} /* , */ }}"#, vec!["a"], format!(r#"{{"mcpServers": {{"b": {{}}, "cx": {narrow} /* , */ }}}}"#)),
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
    let without = |name: &str| {
        let edit = Edit { set: Vec::new(), remove: vec![name.to_owned()] };
        let keys = ["projects", "/a", "mcpServers"].map(str::to_owned).to_vec();
        apply(Layout::JsonWithProjects, text, &[(keys, edit)])
    };
    let after = r#"{"projects":{"/a":{"x":1,"mcpServers":{"two":{}}},"/b":{"mcpServers":{"one":{}}}}}"#;
    assert_eq!(without("one").unwrap(), after);
    assert_eq!(without("three").unwrap_err(), "`three` is not in it any more");
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
    let survey = Survey::with_environment(
        &workspace,
        Environment::from_variables([("HOME", home_text), ("APPDATA", data_text)]),
    );
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
    let survey = Survey::with_environment(&workspace, Environment::from_variables([("HOME", home_text)]));
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
    let survey = || Survey::with_environment(&workspace, Environment::from_variables([("HOME", home_text)]));
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
        let environment = Environment::from_variables([("HOME", home.path().to_str().unwrap())]);
        let lock = SetupLock::acquire(&Directories::in_environment(&environment).unwrap()).unwrap();
        let survey = Survey::with_environment(&workspace, environment);
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
        let survey = Survey::with_environment(
            &workspace,
            Environment::from_variables([("HOME", home.path().to_str().unwrap())]),
        );
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

#[test]
fn v_616_servers_of_thousands_of_directories_are_bounded() {
    let home = tempfile::tempdir().unwrap();
    let projects = |count: usize, history: usize| {
        let project = |number| (format!("/p{number}"), json!({ "mcpServers": { "a": { "command": "a" } } }));
        let projects: serde_json::Map<_, _> = (0..count).map(project).collect();
        json!({ "projects": projects, "history": "x".repeat(history) }).to_string()
    };
    let read = |count: usize, history: usize| {
        write(&home.path().join(".claude.json"), &projects(count, history));
        Survey::with_environment(
            home.path(),
            Environment::from_variables([("HOME", home.path().to_str().unwrap())]),
        )
        .projects
    };
    // A large file takes longer for each of them.
    for (history, max) in [(0, 500), (1 << 20, 50)] {
        let found = read(max, history);
        assert_eq!(found.len(), max);
        assert!(found.iter().all(|project| project.problem.is_none() && project.servers.len() == 1));
        let found = read(max + 200, history);
        assert_eq!(found.len(), max + 1);
        let last = found.last().unwrap();
        assert!(last.servers.is_empty());
        let expected = format!("more than {max} directories");
        assert!(last.problem.as_deref().is_some_and(|problem| problem.contains(&expected)), "{expected}");
    }
}

fn choose_all_servers(survey: &Survey, choices: &mut Choices) {
    let servers = survey.lists().flat_map(|(list, servers)| {
        servers.iter().map(move |server| (list.clone(), server.name.clone())).collect::<Vec<_>>()
    });
    choices.servers = servers.collect();
}

/// One more, and cx would refuse the whole file.
#[test]
fn v_616_cx_gets_no_more_servers_than_it_can_have() {
    let home = tempfile::tempdir().unwrap();
    let list = |program: &str, count: usize| {
        let server = |number| (format!("{program}{number}"), json!({ "command": program }));
        json!({ "mcpServers": (0..count).map(server).collect::<serde_json::Map<_, _>>() }).to_string()
    };
    write(&home.path().join(".cursor/mcp.json"), &list("a", 600));
    write(&home.path().join(".codeium/windsurf/mcp_config.json"), &list("b", 600));
    let workspace = home.path().join("work");
    fs::create_dir(&workspace).unwrap();
    let survey = Survey::with_environment(
        &workspace,
        Environment::from_variables([("HOME", home.path().to_str().unwrap())]),
    );
    let mut choices = Choices::new("cx");
    choices.clients = survey.clients.iter().map(|client| client.name.to_owned()).collect();
    choose_all_servers(&survey, &mut choices);
    choices.take_out = true;
    let plan = Plan::new(&survey, &choices).unwrap();
    let placed = plan.servers.iter().filter(|server| server.name_in_cx.is_some()).count();
    assert_eq!(placed, 1_000);
    assert!(plan.notes.iter().any(|note| note.contains("`b599` is left where it is: cx has 1000 servers")));
    // Those stay with their client.
    let windsurf = plan.changes.iter().find(|change| change.owner == "Windsurf").unwrap();
    let after: serde_json::Value = serde_json::from_slice(&windsurf.after).unwrap();
    assert_eq!(after["mcpServers"].as_object().unwrap().len(), 201, "200 servers, and cx");
}

/// Clients have the server of one program under names of their own.
#[test]
fn a_server_with_two_names_is_one_server() {
    let home = tempfile::tempdir().unwrap();
    let of = |list: serde_json::Value| json!({ "mcpServers": list }).to_string();
    let memory = json!({ "command": "memory", "args": ["-y"] });
    write(&home.path().join(".cursor/mcp.json"), &of(json!({ "memory": memory, "notes": memory })));
    let other = json!({ "command": "memory", "args": ["-n"] });
    let windsurf = of(json!({ "graph": memory, "twice": memory, "third": memory, "other": other }));
    write(&home.path().join(".codeium/windsurf/mcp_config.json"), &windsurf);
    let workspace = home.path().join("work");
    fs::create_dir(&workspace).unwrap();
    let survey = Survey::with_environment(
        &workspace,
        Environment::from_variables([("HOME", home.path().to_str().unwrap())]),
    );
    let mut choices = Choices::new("cx");
    choose_all_servers(&survey, &mut choices);
    let plan = Plan::new(&survey, &choices).unwrap();
    let placed: Vec<(&str, &str)> = plan
        .servers
        .iter()
        .map(|server| (server.name.as_str(), server.name_in_cx.as_deref().unwrap()))
        .collect();
    // One list that has it several times keeps them.
    let expected = [
        ("memory", "memory"),
        ("notes", "notes"),
        ("graph", "memory"),
        ("twice", "twice"),
        ("third", "third"),
        ("other", "other"),
    ];
    assert_eq!(placed, expected, "{:?}", plan.notes);
    assert_eq!(plan.notes, ["`graph` of Windsurf is `memory` in cx: both start or reach the same"]);
}

#[test]
fn servers_are_taken_out_of_one_line_together() {
    let entry = r#""cx":{"command":"cx","args":["serve","-v"]}"#;
    for (before, gone, after) in [
        (
            r#"{"mcpServers":{"a":1,"b":2,"c":3,"d":4}}"#,
            ["b", "c"],
            format!(r#"{{"mcpServers":{{"a":1,"d":4,{entry}}}}}"#),
        ),
        (r#"{"mcpServers":{"a":1,"b":2}}"#, ["b", "a"], format!(r#"{{"mcpServers":{{{entry}}}}}"#)),
    ] {
        assert_eq!(edited(before, &gone), after, "{before} without {gone:?}");
    }
    let without = |text: &str, remove: &[&str]| {
        let remove = remove.iter().map(|name| (*name).to_owned()).collect();
        let edit = Edit { set: Vec::new(), remove };
        apply(Layout::Json, text, &[(vec!["mcpServers".to_owned()], edit)])
    };
    let text = r#"{"mcpServers":{"a":1, "b":2, "c":3, "d":4,}}"#;
    assert_eq!(without(text, &["a", "c", "d"]).unwrap(), r#"{"mcpServers":{"b":2,}}"#);
    assert_eq!(without(text, &["b", "d", "c", "a"]).unwrap(), r#"{"mcpServers":{}}"#);
    assert_eq!(without(text, &["a", "e"]).unwrap_err(), "`e` is not in it any more");
}

/// `toml_edit` writes line feeds.
#[test]
fn a_file_of_windows_keeps_its_line_ends() {
    let text = "# head\nmodel = \"x\"\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[other]\nt = \"\"\"a\nb\"\"\"\n";
    let text = &text.replace('\n', "\r\n");
    let edit =
        Edit { set: vec![("cx".to_owned(), json!({ "command": "cx" }))], remove: vec!["a".to_owned()] };
    let after = apply(Layout::Toml, text, &[(vec!["mcp_servers".to_owned()], edit)]).unwrap();
    assert!(after.contains("[mcp_servers.cx]\r\ncommand = \"cx\"\r\n"), "{after:?}");
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
    assert!(after.contains("# head\r\n") && after.contains("a\r\nb"), "{after:?}");
}

/// The user may keep such files on a disk that is not there just now. A file in its place would be the end of the link.
#[test]
fn v_617_a_link_that_leads_to_no_file_stays() {
    let moving = Moving::new(|home| {
        fs::create_dir(home.join(".cursor")).unwrap();
        std::os::unix::fs::symlink("/nowhere/mcp.json", home.join(".cursor/mcp.json")).unwrap();
    });
    let is_left = |note: &String| note.starts_with("Cursor is left as it is: ");
    assert!(moving.plan.notes.iter().any(is_left), "{:?}", moving.plan.notes);
    moving.plan.apply(&moving.lock).unwrap();
    assert!(moving.home.path().join(".cursor/mcp.json").is_symlink());
    // The same holds for cx's own file.
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join(".config/cx")).unwrap();
    std::os::unix::fs::symlink("/nowhere/config.json", home.path().join(".config/cx/config.json")).unwrap();
    let survey = Survey::with_environment(
        home.path(),
        Environment::from_variables([("HOME", home.path().to_str().unwrap())]),
    );
    let error = Plan::new(&survey, &Choices::new("cx")).unwrap_err();
    assert!(error.to_string().contains("found a link that leads to none"), "{error}");
}

/// Opening a pipe waits for who writes to it.
#[test]
fn v_617_a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let make_pipe = |path: &Path| {
        fs::remove_file(path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
    };
    let moving = Moving::new(|_| ());
    let claude = moving.home.path().join(".claude.json");
    moving.plan.apply(&moving.lock).unwrap();
    let after = fs::read(&claude).unwrap();
    make_pipe(&claude);
    for force in [false, true] {
        let error = undo(&moving.lock, force).unwrap_err();
        assert!(matches!(&error, SetupError::Io { path, .. } if *path == claude), "{error}");
    }
    // What was there before can still be had.
    fs::remove_file(&claude).unwrap();
    fs::write(&claude, after).unwrap();
    undo(&moving.lock, false).unwrap();
    assert_eq!(fs::read_to_string(&claude).unwrap(), CLAUDE);
    let moving = Moving::new(|_| ());
    let claude = moving.home.path().join(".claude.json");
    make_pipe(&claude);
    let error = moving.plan.apply(&moving.lock).unwrap_err();
    assert!(matches!(&error, SetupError::Io { path, .. } if *path == claude), "{error}");
}

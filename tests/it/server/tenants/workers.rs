//! Workers and the audit trail of several tenants.

use std::collections::HashMap;

use super::*;

/// The children of a process and theirs, which are workers, once they have not changed for a while: workers are forked
/// and ended after runs.
fn settled_descendants(process: u32) -> HashSet<String> {
    let descendants = || -> HashSet<String> {
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // The name of the program may have spaces. After it come the state and the parent.
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            let parent = fields.split_whitespace().nth(1).unwrap_or_default().to_owned();
            (entry.file_name().to_string_lossy().into_owned(), parent)
        });
        let parents: HashMap<String, String> = processes.collect();
        let process = process.to_string();
        let is_child = |child: &String| parents.get(child) == Some(&process);
        let descends = |one: &&String| is_child(one) || parents.get(*one).is_some_and(is_child);
        parents.keys().filter(descends).cloned().collect()
    };
    wait_within(Duration::from_secs(60), || {
        let seen = descendants();
        std::thread::sleep(Duration::from_millis(300));
        (descendants() == seen).then_some(seen)
    })
}

/// With workers that serve many runs, the clients of one tenant meet their own worker again, and never that of another
/// tenant. With two tokens scripts run in such processes by default.
#[cfg(target_os = "linux")]
#[test]
fn v_508_two_tenants_never_share_a_worker() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let file = tokens_file(directory.path(), &two());
    let start = Start::new()
        .within(Arc::clone(&directory))
        .config("isolation", json!({ "mode": "process", "runsPerWorker": 1000 }));
    let server = Server::start_with(&["--http", "127.0.0.1:0", "--tokens-file", &file], start);
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let (of_alice, of_bob) = (alice.session(), bob.session());
    let workers_after = |tenant: Tenant<'_>, session: &str| {
        assert_eq!(tenant.run_in(session, "return 1")["value"], 1);
        settled_descendants(server.process())
    };
    // A worker whose run took more than 12 ms of CPU time serves no other run, and the first ones in a test build take
    // more.
    let mut workers = workers_after(alice, &of_alice);
    let (mut in_a_row, mut again) = (0, 0);
    for _ in 0..100 {
        let now = workers_after(alice, &of_alice);
        let is_same = now == workers;
        in_a_row = if is_same { in_a_row + 1 } else { 0 };
        again += u32::from(is_same);
        workers = now;
        if in_a_row == 3 {
            break;
        }
    }
    // On a busy machine hardly any run takes so little.
    assert!(again > 0, "no worker was used again");
    assert_ne!(workers_after(bob, &of_bob), workers, "the worker of another tenant was used");
}

/// More than one token means worker processes unless configured otherwise, and the mode is reported.
#[cfg(target_os = "linux")]
#[test]
fn v_509_several_tokens_mean_worker_processes() {
    let isolation = |tokens: &str, arguments: &[&str], config: Option<&str>| {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let file = tokens_file(directory.path(), tokens);
        let mut start = Start::new().within(Arc::clone(&directory));
        if let Some(mode) = config {
            start = start.config("isolation", json!({ "mode": mode }));
        }
        let mut all = vec!["--http", "127.0.0.1:0", "--tokens-file", &file];
        all.extend(arguments);
        let server = Server::start_with(&all, start);
        let alice = Tenant::new(&server, ALICE);
        assert_eq!(alice.value("return 1"), 1);
        let called = alice.stateless("tools/call", json!({ "name": "health", "arguments": {} }));
        let called = called["result"]["structuredContent"]["isolation"].clone();
        assert_eq!(server.health()["isolation"], called);
        called.as_str().unwrap().to_owned()
    };
    let one = format!("alice {ALICE}\n");
    assert_eq!(isolation(&two(), &[], None), "process");
    assert_eq!(isolation(&one, &[], None), "in-process");
    assert_eq!(isolation(&two(), &["--isolation", "in-process"], None), "in-process");
    assert_eq!(isolation(&two(), &[], Some("in-process")), "in-process");
    assert_eq!(isolation(&one, &[], Some("process")), "process");
    // It is reported at the start.
    let directory = tempfile::tempdir().unwrap();
    let file = tokens_file(directory.path(), &two());
    for (arguments, expected) in [
        (&[][..], "2 tokens of 2 tenants (alice, bob): scripts run in worker processes, none of which"),
        (&["--isolation", "in-process"][..], "(alice, bob): scripts run in the process of the server, which"),
    ] {
        let mut all = vec!["--http", "127.0.0.1:0", "--tokens-file", &file];
        all.extend(arguments);
        let said = said_at_start(directory.path(), &all);
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains(ALICE) && !said.contains(BOB), "{said}");
    }
}

/// The first two lines that a server prints.
fn said_at_start(directory: &Path, arguments: &[&str]) -> String {
    use std::io::{BufRead as _, BufReader};
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_cx"))
        .arg("serve")
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .env_remove("CX_HTTP_TOKEN")
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().take(2);
    let said = lines.map(Result::unwrap).collect::<Vec<_>>().join("\n");
    child.kill().unwrap();
    child.wait().unwrap();
    said
}

#[test]
fn v_510_the_audit_trail_names_the_tenant() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let file = tokens_file(directory.path(), &two());
    let trail = directory.path().join("trail");
    let start = Start::new().within(Arc::clone(&directory)).config("audit", json!({ "directory": trail }));
    let arguments = ["--http", "127.0.0.1:0", "--isolation", "in-process", "--tokens-file", &file];
    {
        let mut server = Server::start_with(&arguments, start);
        let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
        let session = alice.session();
        assert_eq!(alice.run_in(&session, "return 'alice'")["value"], "alice");
        assert_eq!(bob.value("return 'bob'"), "bob");
        assert_eq!(bob.rest(&[], "return 'bob'").status, 200);
        server.signal("TERM");
        server.wait(crate::support::serve_http::WATCHDOG);
    }
    let mut lines = Vec::new();
    for entry in fs::read_dir(&trail).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        lines.extend(text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
    }
    let clients = |event: &str| -> Vec<String> {
        let of_event = lines.iter().filter(|line| line["event"] == event);
        of_event.map(|line| line["client"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let runs = clients("run.started");
    assert_eq!(runs.len(), 3, "{lines:#?}");
    assert!(runs[0].starts_with("alice/client "), "{runs:?}");
    assert!(runs[1..].iter().all(|client| client == "bob/all clients without a session"), "{runs:?}");
    let requests = clients("request");
    assert!(requests.iter().any(|client| client.starts_with("alice/client ")), "{requests:?}");
    assert!(requests.iter().filter(|client| *client == "bob/Local").count() >= 2, "{requests:?}");
    assert!(requests.iter().all(|client| client.starts_with("alice/") || client.starts_with("bob/")));
}

//! `cx ui`: the page of runs, servers and approvals, through requests by hand and in a real browser.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::serve::{Client, END, Start};
use crate::support::serve_http::{Server, TOKEN, wait_for};
use crate::support::ui::{Ui, bearer, browse, cx, exchange, send};

/// A name that would be markup if it were not text.
const HOSTILE: &str = "<img src=x onerror=document.title='owned'>";

/// A server whose runs are in the trail of the configuration, with a listener.
fn watched(more: &[&str]) -> Client {
    let start = Start::new().server("well", &["well"]).config("audit", json!({}));
    start.arguments(&["--metrics", "127.0.0.1:0"]).arguments(more).with_stderr().spawn().shaken()
}

/// The files by which running servers are found.
fn registered(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("cx/running")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn state(ui: &Ui, session: &str) -> Value {
    let (status, body) = bearer(ui.address, "GET", "/ui/state", session, "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The content of the page, once it satisfies a condition.
fn state_with(ui: &Ui, session: &str, condition: impl Fn(&Value) -> bool) -> Value {
    wait_for(|| Some(state(ui, session)).filter(&condition))
}

#[test]
fn the_page_shows_runs_servers_and_what_was_kept_out() {
    let mut client = watched(&[]);
    client.call(
        "executeTypescript",
        json!({ "code": "for (let i = 0; i < 3; i++) await tools.well.echo({ text: 'x'.repeat(4000) }); \
                         await tools.well.fail({}).catch(() => {}); return 1" }),
    );
    client.run("throw new Error('no')");
    let files = registered(client.directory());
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let ui = Ui::start(client.directory());
    let session = ui.sign_in();
    let shown = state_with(&ui, &session, |state| {
        let ended = |runs: &Vec<Value>| runs.iter().filter(|run| run["durationMs"].is_u64()).count();
        // A busy server may give its metrics too late.
        state["runs"].as_array().is_some_and(|runs| ended(runs) == 2)
            && state["servers"][0]["metrics"].is_object()
            && state["keptOut"]["points"].as_array().is_some_and(|points| !points.is_empty())
    });
    let runs = shown["runs"].as_array().unwrap();
    assert_eq!((&runs[0]["outcome"], &runs[1]["outcome"]), (&json!("RUNTIME_ERROR"), &json!("ok")));
    assert_eq!((&runs[1]["calls"], &runs[1]["callsFailed"]), (&json!(4), &json!(1)));
    assert_eq!(runs[1]["client"], "test 1");
    let server = &shown["servers"][0];
    assert_eq!(server["process"], client.process());
    assert_eq!((&server["metrics"]["runsOk"], &server["metrics"]["calls"]), (&json!(1.0), &json!(4.0)));
    assert_eq!(server["metrics"]["upstream"][0]["breaker"], "closed");
    assert!(shown["keptOut"]["total"].as_f64().unwrap() > 2_000.0, "{shown}");
    // Each sum has its time in seconds since 1970.
    let points = shown["keptOut"]["points"].as_array().unwrap();
    assert!(points.iter().all(|point| point[0].as_u64().unwrap() > 1_700_000_000), "{shown}");
    assert!(points.last().unwrap()[1].as_f64().unwrap() > 2_000.0, "{shown}");
    // The waterfall is a document whose address works once and which may execute nothing.
    let id = runs[1]["id"].as_str().unwrap();
    let (status, body) = bearer(ui.address, "POST", &format!("/ui/runs/{id}"), &session, "");
    let address: Value = serde_json::from_str(&body).unwrap();
    let address = address["address"].as_str().unwrap();
    assert_eq!(status, 200);
    let page = exchange(
        ui.address,
        &format!("GET {address} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", ui.address),
    );
    assert!(page.contains("<b>well.echo</b>") && page.contains("TOOL_ERROR"), "{page}");
    assert!(page.contains("frame-ancestors 'self'; sandbox"), "{page}");
    assert_eq!(send(ui.address, "GET", address, &[], "").0, 404, "it works twice");
    // A server that has ended is no longer shown, and its file is removed.
    let directory = client.directory().to_owned();
    client.signal("KILL");
    state_with(&ui, &session, |state| state["servers"].as_array().unwrap().is_empty());
    assert_eq!(registered(&directory), Vec::<PathBuf>::new());
    drop(ui);
    // A server that ends normally removes its file itself.
    let mut client = watched(&[]);
    wait_for(|| (registered(client.directory()).len() == 1).then_some(()));
    client.close_stdin();
    assert_eq!(client.wait(END).code(), Some(0));
    assert_eq!(registered(client.directory()), Vec::<PathBuf>::new());
}

#[test]
fn an_approval_is_answered_on_the_page_and_nowhere_else() {
    let mut client = watched(&["--approver", "page", "--ask", "well.*"]);
    let ui = Ui::start(client.directory());
    let session = ui.sign_in();
    let code = format!("return await tools.well.echo({{ text: {HOSTILE:?}, number: 7 }})");
    let begin = |client: &mut Client| client.begin_call("executeTypescript", json!({ "code": code }));
    let waiting = |ui: &Ui| {
        let shown = state_with(ui, &session, |state| {
            state["approvals"].as_array().unwrap().iter().any(|approval| approval["answerable"] == true)
        });
        assert_eq!(shown["approvals"].as_array().unwrap().len(), 1, "the trail's is shown too: {shown}");
        shown["approvals"][0].clone()
    };
    let path = |approval: &Value| format!("/ui/approvals/{}", approval["id"].as_str().unwrap());
    // Denied, with a reason that the script reads.
    let call = begin(&mut client);
    let approval = waiting(&ui);
    assert_eq!(approval["call"], "well.echo");
    let arguments: Value = serde_json::from_str(approval["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({ "text": HOSTILE, "number": 7 }), "they are shown whole");
    // Only an unambiguous answer with the session's token, from this page, is accepted.
    let approve = r#"{"approve":true}"#;
    assert_eq!(send(ui.address, "POST", &path(&approval), &[], approve).0, 401);
    assert_eq!(bearer(ui.address, "POST", &path(&approval), &ui.token, approve).0, 401, "the one-time token");
    for (origin, status) in [("https://evil.example", 403), ("http://127.0.0.1:1", 403), ("null", 403)] {
        let headers = [format!("Authorization: Bearer {session}"), format!("Origin: {origin}")];
        assert_eq!(send(ui.address, "POST", &path(&approval), &headers, approve).0, status, "{origin}");
    }
    for body in
        ["", "true", "{}", r#"{"approve":1}"#, r#"{"approve":true,"all":true}"#, r#"{"approve":"true"}"#]
    {
        assert_eq!(bearer(ui.address, "POST", &path(&approval), &session, body).0, 400, "{body}");
    }
    let long = format!(r#"{{"approve":true,"reason":"{}"}}"#, "x".repeat(9_000));
    assert_eq!(bearer(ui.address, "POST", &path(&approval), &session, &long).0, 413);
    assert_eq!(bearer(ui.address, "GET", &path(&approval), &session, "").0, 404);
    let deny = r#"{"approve":false,"reason":"not today"}"#;
    assert_eq!(bearer(ui.address, "POST", &path(&approval), &session, deny).0, 200);
    let answer = client.answer(&call);
    assert!(answer.to_string().contains("not today"), "{answer}");
    assert_eq!(
        bearer(ui.address, "POST", &path(&approval), &session, approve).0,
        404,
        "it is answered twice"
    );
    // Approved: this call, once. The next one asks again.
    let call = begin(&mut client);
    let next = waiting(&ui);
    assert_ne!(next["id"], approval["id"]);
    assert_eq!(bearer(ui.address, "POST", &path(&approval), &session, approve).0, 404, "an old id");
    let own = [format!("Authorization: Bearer {session}"), format!("Origin: http://{}", ui.address)];
    assert_eq!(send(ui.address, "POST", &path(&next), &own, approve).0, 200);
    let answer = client.answer(&call);
    assert!(answer["result"]["structuredContent"]["success"] == true, "{answer}");
    let call = begin(&mut client);
    let third = waiting(&ui);
    // A run that is cancelled withdraws its question.
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call },
    }));
    state_with(&ui, &session, |state| state["approvals"].as_array().unwrap().is_empty());
    assert_eq!(bearer(ui.address, "POST", &path(&third), &session, approve).0, 404);
    client.end();
}

#[test]
fn approvals_of_clients_are_shown_and_not_answered() {
    let start = Start::new().server("well", &["well"]).config("audit", json!({}));
    let mut client = start.arguments(&["--metrics", "127.0.0.1:0", "--ask", "well.*"]).spawn();
    client.request(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
                "clientInfo": { "name": "asks", "version": "1" } }),
    );
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client.begin_call("executeTypescript", json!({ "code": "await tools.well.echo({ text: 'a' })" }));
    let ui = Ui::start(client.directory());
    let session = ui.sign_in();
    let shown = state_with(&ui, &session, |state| !state["approvals"].as_array().unwrap().is_empty());
    let approval = &shown["approvals"][0];
    assert_eq!((&approval["answerable"], &approval["call"]), (&json!(false), &json!("well.echo")));
    // Its run is shown while it goes on.
    let run = &shown["runs"][0];
    assert!(run["id"] == approval["run"] && run["durationMs"].is_null(), "{shown}");
    let path = format!("/ui/approvals/{}", approval["id"].as_str().unwrap());
    let (status, _) = bearer(ui.address, "POST", &path, &session, r#"{"approve":true}"#);
    assert_eq!(status, 404);
}

#[test]
fn the_page_is_for_whom_has_the_token() {
    let directory = tempfile::tempdir().unwrap();
    let ui = Ui::start(directory.path());
    let host = |host: &str| vec![format!("Host: {host}")];
    // The static files contain nothing secret, but are not served under other host names: an attacker may own one (DNS
    // rebinding).
    assert_eq!(send(ui.address, "GET", "/ui", &[], "").0, 200);
    let port = ui.address.port();
    assert_eq!(send(ui.address, "GET", "/ui", &host(&format!("localhost:{port}")), "").0, 200);
    for name in ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example"] {
        assert_eq!(send(ui.address, "GET", "/ui", &host(&format!("{name}:{port}")), "").0, 403, "{name}");
    }
    for path in ["/", "/metrics", "/mcp", "/uix"] {
        assert_eq!(send(ui.address, "GET", path, &[], "").0, 404, "{path}");
    }
    for (method, path) in [
        ("GET", "/ui/state"),
        ("GET", "/ui/approvals"),
        ("GET", "/ui/metrics"),
        ("POST", "/ui/session"),
        ("POST", "/ui/runs/abc"),
        ("POST", "/ui/approvals/abc"),
        ("GET", "/ui/x"),
        ("PUT", "/ui/state"),
    ] {
        assert_eq!(send(ui.address, method, path, &[], "").0, 401, "{path}");
        assert_eq!(bearer(ui.address, method, path, "guess", "").0, 401, "{path}");
    }
    let session = ui.sign_in();
    assert_eq!(bearer(ui.address, "POST", "/ui/session", &ui.token, "").0, 401, "the token works twice");
    assert_eq!(bearer(ui.address, "POST", "/ui/session", &session, "").0, 401);
    assert_eq!(bearer(ui.address, "PUT", "/ui/state", &session, "").0, 405);
    assert_eq!(bearer(ui.address, "POST", "/ui/runs/..%2f..", &session, "").0, 404);
    // The restrictions that every answer sets.
    let page = exchange(
        ui.address,
        &format!("GET /ui HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", ui.address),
    );
    for part in [
        "default-src 'none'; script-src 'self'",
        "require-trusted-types-for 'script'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("http:") && !page.contains("https:"), "something is from elsewhere: {page}");
    // No server runs, and the page says so.
    let notes = state(&ui, &session)["notes"].to_string();
    assert!(notes.contains("no server runs"), "{notes}");
}

#[test]
fn a_server_that_does_not_listen_is_shown_with_what_to_do() {
    let mut client = Start::new().spawn().shaken();
    client.run("return 1");
    let ui = Ui::start(client.directory());
    let session = ui.sign_in();
    let shown = state_with(&ui, &session, |state| state["servers"][0].is_object());
    assert_eq!(shown["servers"][0]["transport"], "stdio");
    assert!(shown["servers"][0]["metrics"].is_null());
    let notes = shown["notes"].to_string();
    assert!(notes.contains("--metrics 127.0.0.1:0") && notes.contains("no audit trail"), "{notes}");
    client.end();
    // A page that answers approvals needs an address.
    let directory = tempfile::tempdir().unwrap();
    let output = cx(directory.path(), &["serve", "--approver", "page"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn the_page_in_a_browser_runs_nothing_of_others_and_is_used_by_keys() {
    let mut client = watched(&["--approver", "page", "--ask", "well.echo"]);
    let throws = format!("throw new Error({HOSTILE:?})");
    client.call("executeTypescript", json!({ "code": throws }));
    let code = format!("return await tools.well.echo({{ text: {HOSTILE:?} }})");
    let call = client.begin_call("executeTypescript", json!({ "code": code }));
    let ui = Ui::start(client.directory());
    let focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent";
    let values = browse(
        &ui.link(),
        &json!([
            { "wait": "document.title == '(1) cx'" },
            { "wait": "!document.querySelector('.approve').disabled" },
            { "value": "document.querySelector('#approvals').innerText" },
            { "value": "location.href + document.documentElement.outerHTML" },
            // The first keys lead to the content, and to the calls that wait.
            { "key": "Tab" }, { "value": focused },
            { "key": "Tab" }, { "value": focused },
            { "key": "Tab" }, { "value": focused },
            { "key": "Enter" },
            { "wait": "document.querySelector('#approvals').hidden" },
            { "wait": "document.querySelector('#status').textContent.startsWith('Approved: well.echo')" },
            { "wait": "document.querySelectorAll('#run-list .good').length == 1" },
            { "value": "document.querySelector('#run-list').innerText" },
            // The run's drawing is in a frame that cannot reach the page.
            { "value": "document.querySelector('#run-list button').click()" },
            { "wait": "document.querySelector('#run-frame').src.includes('/ui/shown/')" },
            { "value": "[document.activeElement.id, document.querySelector('#run-frame').contentDocument]" },
            // A script can only come from a file of this server, and text does not become markup.
            { "value": "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'markup' } catch (e) { return e.name } })()" },
        ]),
    );
    let shown = values[0].as_str().unwrap();
    assert!(shown.contains("1 call waits for approval") && shown.contains("well.echo"), "{shown}");
    assert!(shown.contains(&format!("\"text\": {HOSTILE:?}")), "{shown}");
    let page = values[1].as_str().unwrap();
    assert!(!page.contains("<img") && !page.contains("token=") && !page.contains(&ui.token), "{page}");
    assert_eq!(
        values[2..5],
        ["Skip to the runs", "All arguments of well.echo", "Approve this call of well.echo"]
    );
    let runs = values[5].as_str().unwrap();
    assert!(runs.contains("RUNTIME_ERROR") && runs.contains("ok"), "{runs}");
    assert_eq!(values[7], json!(["run-title", null]));
    assert_eq!(values[8], "TypeError");
    let answer = client.answer(&call);
    assert_eq!(answer["result"]["structuredContent"]["success"], true, "{answer}");
    // A second use of the link shows how to get another one.
    let values = browse(
        &ui.link(),
        &json!([
            { "wait": "document.querySelector('#status').textContent.startsWith('Not signed in')" },
            { "value": "[document.querySelector('#content').hidden, document.querySelector('#sign-in').hidden]" },
        ]),
    );
    assert_eq!(values[0], json!([true, false]));
    client.end();
}

/// What a screen reader announces, and where the keyboard focus is after an answer.
#[test]
fn the_page_is_used_with_a_screen_reader() {
    let mut client = watched(&["--approver", "page", "--ask", "well.echo"]);
    client.run("return 1");
    let calls = ["first", "second"].map(|text| {
        let code = format!("return await tools.well.echo({{ text: '{text}' }})");
        client.begin_call("executeTypescript", json!({ "code": code }))
    });
    let ui = Ui::start(client.directory());
    let values = browse(
        &ui.link(),
        &json!([
            { "wait": "document.querySelectorAll('.approve:not(:disabled)').length == 2" },
            { "wait": "document.querySelectorAll('.server table tbody tr').length > 0" },
            { "tree": true },
            // Each answer removes its button. The focus goes where another key approves nothing.
            { "value": "document.querySelector('.approve').focus()" },
            { "key": "Enter" },
            { "wait": "document.querySelectorAll('.approve').length == 1" },
            { "value": "document.activeElement.id" },
            { "value": "document.querySelector('.approve').focus()" },
            { "key": "Enter" },
            { "wait": "document.querySelectorAll('.approve').length == 0" },
            { "value": "document.activeElement.id" },
        ]),
    );
    let told: Vec<[String; 3]> = serde_json::from_value(values[0].clone()).unwrap();
    let is_named = |role: &str| {
        ["button", "link", "textbox", "table", "region", "image", "columnheader"].contains(&role)
    };
    let nameless: Vec<&[String; 3]> =
        told.iter().filter(|[role, name, _]| is_named(role) && name.is_empty()).collect();
    assert_eq!(nameless, Vec::<&[String; 3]>::new());
    let names = |wanted: &str| -> Vec<&str> {
        told.iter().filter(|[role, ..]| role == wanted).map(|[_, name, _]| &**name).collect()
    };
    let upstream = format!("Upstream servers of process {}", client.process());
    assert_eq!(names("table"), ["Runs", &*upstream]);
    assert!(names("columnheader").starts_with(&["Script", "Outcome"]), "{told:?}");
    assert_eq!(names("status").len(), 1, "changes are announced: {told:?}");
    // The label of a button says which of two calls of one tool it approves.
    let approve = told.iter().filter(|[_, name, _]| name == "Approve this call of well.echo");
    let mut described: Vec<&str> = approve.map(|[.., description]| &**description).collect();
    described.sort_unstable();
    assert_eq!(described, ["first", "second"].map(|text| format!("{{ \"text\": \"{text}\" }}")));
    assert_eq!((&values[2], &values[4]), (&json!("approvals-title"), &json!("runs")));
    for call in calls {
        let answer = client.answer(&call);
        assert_eq!(answer["result"]["structuredContent"]["success"], true, "{answer}");
    }
    client.end();
}

#[test]
fn the_page_is_drawn_in_light_and_dark_and_on_a_phone() {
    let mut client = watched(&["--approver", "page", "--ask", "well.slow"]);
    client
        .run("await Promise.all([1, 2, 3].map(() => tools.well.echo({ text: 'x'.repeat(3000) }))); return 1");
    client.run("throw new Error('no')");
    client.begin_call("executeTypescript", json!({ "code": "await tools.well.slow({ ms: 1 })" }));
    let ui = Ui::start(client.directory());
    let file = |name: &str| client.directory().join(name).display().to_string();
    browse(
        &ui.link(),
        &json!([
            { "wait": "document.title == '(1) cx'" },
            { "wait": "document.querySelectorAll('#run-list tr').length == 3" },
            { "wait": "!document.querySelector('.approve').disabled" },
            { "wait": "document.querySelector('#kept-out-line').getAttribute('points') !== ''" },
            { "picture": file("light.png") },
            { "picture": file("dark.png"), "dark": true },
            { "picture": file("phone.png"), "width": 390, "height": 1400 },
            // Nothing is wider than the screen.
            { "wait": "document.documentElement.scrollWidth <= 390" },
            { "value": "document.querySelector('#run-list tr:last-child button').click()" },
            { "wait": "document.querySelector('#run-frame').src.includes('/ui/shown/')" },
            { "picture": file("run.png") },
        ]),
    );
    let picture = |name: &str| fs::read(file(name)).unwrap();
    let pictures = ["light.png", "dark.png", "phone.png", "run.png"].map(picture);
    for picture in &pictures {
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{} bytes", picture.len());
    }
    assert_ne!(pictures[0], pictures[1]);
}

#[test]
fn a_run_is_opened_as_a_page() {
    let mut client = watched(&["--traces", "gone"]);
    client.run("await tools.well.echo({ text: 'a' }); return 1");
    let home = client.directory().to_owned();
    let id = wait_for(|| {
        let output = cx(&home, &["runs", "list", "--json"]).output().unwrap();
        let runs: Value = serde_json::from_slice(&output.stdout).ok()?;
        runs[0]["ended"].is_object().then(|| runs[0]["id"].as_str().unwrap().to_owned())
    });
    // The server's own traces are gone: the audit trail has the run too.
    let is_page = |path: PathBuf| path.extension().is_some_and(|ending| ending == "html");
    let gone = home.join("gone");
    wait_for(|| fs::read_dir(&gone).unwrap().any(|file| is_page(file.unwrap().path())).then_some(()));
    fs::remove_dir_all(&gone).unwrap();
    let open = |arguments: &[&str]| {
        let all: Vec<&str> = ["runs", "open"].into_iter().chain(arguments.iter().copied()).collect();
        cx(&home, &all).env("BROWSER", home.join("browser")).output().unwrap()
    };
    let output = open(&[&id, "--no-browser"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("failed to read the traces in "), "{output:?}");
    let path = String::from_utf8(output.stdout.clone()).unwrap();
    let page = fs::read_to_string(path.trim()).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert!(page.contains("<b>well.echo</b>") && page.contains("drawn from the audit trail"), "{page}");
    assert_eq!(fs::metadata(path.trim()).unwrap().permissions().mode() & 0o777, 0o600);
    // A stored trace also has the source. The user's browser is given the name of its file.
    fs::create_dir(home.join("traces")).unwrap();
    let kept = home.join(format!("traces/run-0000000000001-{id}.html"));
    fs::write(&kept, "kept").unwrap();
    fs::write(home.join("browser"), "#!/bin/sh\necho \"$1\" >opened\n").unwrap();
    fs::set_permissions(home.join("browser"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = open(&[&id, "--traces", "traces"]);
    assert!(String::from_utf8_lossy(&output.stdout).trim().ends_with("html"), "{output:?}");
    let opened =
        wait_for(|| fs::read_to_string(home.join("opened")).ok().filter(|text| text.ends_with('\n')));
    assert!(opened.trim().ends_with(kept.file_name().unwrap().to_str().unwrap()), "{opened}");
    for (wrong, part) in [("nosuchrun", "no run `nosuchrun`"), ("../../etc/passwd", "is not an id of a run")]
    {
        let output = open(&[wrong]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{output:?}");
    }
    client.end();
}

#[test]
fn a_server_over_http_has_the_page_behind_its_token() {
    let start = Start::new().variable("CX_HTTP_TOKEN", TOKEN).config("audit", json!({}));
    let server = Server::start(start);
    let at = server.address;
    assert_eq!(send(at, "GET", "/ui", &[], "").0, 200);
    assert_eq!(send(at, "GET", "/ui/state", &[], "").0, 401);
    assert_eq!(bearer(at, "POST", "/ui/session", "guess", "").0, 401);
    let (status, body) = bearer(at, "POST", "/ui/session", TOKEN, "");
    assert_eq!(status, 200, "{body}");
    let session: Value = serde_json::from_str(&body).unwrap();
    let session = session["token"].as_str().unwrap();
    let (status, body) = bearer(at, "GET", "/ui/state", session, "");
    assert_eq!(status, 200, "{body}");
    let shown: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(shown["servers"][0]["process"], server.process(), "{shown}");
    // Each token has one purpose. Another page of this machine may use MCP, and not this page.
    let read = || {
        let file = registered(server.directory()).pop()?;
        serde_json::from_str::<Value>(&fs::read_to_string(file).ok()?).ok()
    };
    let known = wait_for(read);
    let operator = known["token"].as_str().unwrap();
    assert_eq!(bearer(at, "GET", "/ui/metrics", operator, "").0, 200);
    for path in ["/mcp", "/metrics"] {
        for token in [session, operator] {
            assert_eq!(bearer(at, "GET", path, token, "").0, 401, "{path}");
        }
    }
    assert_eq!(bearer(at, "GET", "/ui/state", TOKEN, "").0, 401);
    let headers = [format!("Authorization: Bearer {session}"), "Origin: http://localhost:1".to_owned()];
    assert_eq!(send(at, "GET", "/ui/state", &headers, "").0, 403);
    // Without a token no user can sign in there; `cx ui` has the operator's token.
    let open = Server::plain();
    assert_eq!(send(open.address, "POST", "/ui/session", &[], "").0, 401);
    let ui = Ui::start(open.directory());
    let session = ui.sign_in();
    let shown = state_with(&ui, &session, |state| state["servers"][0]["metrics"].is_object());
    assert_eq!(shown["servers"][0]["transport"], "http", "{shown}");
    assert!(shown["servers"][0]["metrics"]["runsLimit"].as_f64().unwrap() > 0.0, "{shown}");
}

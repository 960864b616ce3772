//! Scripts that call saved scripts, whose runs are executed by other machines: each is a run of its own, while the
//! workers of its callers wait for it.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::nats::{Front, NatsServer, end};
use crate::support::serve::{Start, save_script};
use crate::support::serve_http::{Reply, Server, TOKEN, wait_within};
use crate::support::{own_files, write_secret};

/// The maximum time of a run on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Calls one script after another, as deep as scripts may call one another, and then three at the same time that call
/// another one each.
const CALLS: &str = "const deep = await scripts.first({});\n\
    const wide = await Promise.all([1, 2, 3].map(() => scripts.third({})));\n\
    return [deep, ...wide]";

/// Saves the scripts that it calls.
fn save_scripts(directory: &Path) {
    for (name, source) in [
        ("first.ts", "return 'a' + await scripts.second({})"),
        ("second.py", "'b' + await scripts.third({})"),
        ("third.ts", "return 'c' + await scripts.fourth({})"),
        ("fourth.ts", "return 'd'"),
    ] {
        save_script(directory, name, source);
    }
}

/// The value that it then returns.
fn returned() -> Value {
    json!(["abcd", "cd", "cd", "cd"])
}

#[test]
fn v_596_called_scripts_are_executed_by_the_slot_that_their_callers_wait_for() {
    let Some(server) = NatsServer::start() else { return };
    let (_worker, front) = (server.worker(1), Front::new(&server, "well"));
    save_scripts(&front.path(""));
    let result = front.run(&["--timeout", "60s", "-e", CALLS]);
    assert_eq!(result["value"], returned(), "{result}");
}

/// A machine that was asked to stop still executes the scripts that its runs call.
#[test]
fn a_worker_that_stops_executes_the_scripts_that_its_runs_call() {
    let Some(server) = NatsServer::start() else { return };
    let (mut worker, front) = (server.worker(1), Front::new(&server, "well"));
    save_scripts(&front.path(""));
    let code = "await tools.here.echo({ text: 'a' });\n\
        await new Promise((done) => setTimeout(done, 2000));\n\
        return await scripts.first({})";
    let run = front.spawn(&["--timeout", "60s", "-e", code]);
    wait_within(LONG, || front.notes().contains("executed echo").then_some(()));
    worker.signal("TERM");
    let result = end(run, LONG);
    assert_eq!(result["value"], "abcd", "{result}");
    assert_eq!(worker.wait(LONG).code(), Some(0), "{}", worker.said());
}

/// A server that lends this many workers, without servers of its own.
fn lender(count: &str) -> Server {
    Server::start(Start::new().variable("CX_HTTP_TOKEN", TOKEN).arguments(&["--compute", count]))
}

/// The only worker for runs that nothing has called waits for the scripts that its run calls, one after another, each of
/// which waits for another one.
#[test]
fn v_597_called_scripts_are_executed_by_workers_of_their_own() {
    let (server, here) = (lender("1"), tempfile::tempdir().unwrap());
    save_scripts(here.path());
    write_secret(&here.path().join("token"), TOKEN);
    let output = own_files(&mut Command::new(env!("CARGO_BIN_EXE_cx")), here.path())
        .args(["run", "--json", "--timeout", "60s", "--remote", &format!("http://{}", server.address)])
        .arg("--remote-token-file")
        .arg(here.path().join("token"))
        .args(["-e", "return [await scripts.first({}), await scripts.first({})]"])
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(result["value"], json!(["abcd", "abcd"]), "{result}");
}

/// Requests a worker as an executor does, with the additional lines `more` in the head of the request.
fn ask_for_worker(server: &Server, more: &str) -> TcpStream {
    let mut stream = server.connect();
    let head = format!(
        "GET /v1/workers HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: upgrade\r\n\
         Upgrade: cx-worker\r\n{more}\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn status(stream: &TcpStream) -> u16 {
    Reply::read(stream.try_clone().unwrap()).status
}

/// An executor may claim any level for its runs. At each level it gets no more workers than for runs that nothing has
/// called.
#[test]
fn v_597_a_depth_that_is_made_up_has_its_own_bound() {
    let server = lender("1");
    let ask = |depth: &str| ask_for_worker(&server, &format!("cx-worker-depth: {depth}\r\n"));
    for depth in ["5", "-1", "", "one", "18446744073709551616"] {
        assert_eq!(status(&ask(depth)), 400, "{depth:?}");
    }
    // All of these stay connected, and send nothing.
    let asked = ["0", "1", "2", "3", "4"].map(|depth| {
        let lent = ask(depth);
        assert_eq!(status(&lent), 101, "{depth}");
        // At once, because a worker that gets nothing is returned after a while.
        (lent, ask(depth))
    });
    for (_lent, more) in &asked {
        assert_eq!(status(more), 503);
    }
    // A worker that was returned is lent to the run that waits for one.
    drop(asked);
    let run = ask("1");
    assert_eq!(status(&run), 101);
}

/// Spare workers can wait minutes for their runs, and have a bound of their own.
#[test]
fn v_611_workers_that_are_asked_for_ahead_of_time_keep_none_from_runs() {
    let server = lender("2");
    let ask = |more: &str| ask_for_worker(&server, more);
    let statuses = |asked: &[TcpStream]| {
        let mut statuses: Vec<u16> = asked.iter().map(status).collect();
        statuses.sort_unstable();
        statuses
    };
    let ahead = "cx-worker-ahead: 1\r\n";
    let spares = [ask(ahead), ask(ahead), ask(ahead)];
    assert_eq!(statuses(&spares), [101, 101, 503]);
    let runs = [ask(""), ask(""), ask("")];
    assert_eq!(statuses(&runs), [101, 101, 503]);
    // A run waits for a worker to be returned: for a second, which a busy machine may need for it. Then others try.
    let is_waited_for = |lent: Vec<TcpStream>| {
        let waiting = ask("");
        std::thread::sleep(Duration::from_millis(100));
        drop(lent);
        status(&waiting) == 101
    };
    let lend = || wait_within(LONG, || Some(ask("")).filter(|run| status(run) == 101));
    assert!(is_waited_for(runs.into()) || (0..20).any(|_| is_waited_for(vec![lend(), lend()])));
}

/// The executor's spare does not keep its only worker from its run, in either language.
#[test]
fn v_620_one_worker_is_enough_for_one_run_at_a_time() {
    let (server, here) = (lender("1"), tempfile::tempdir().unwrap());
    let token = here.path().join("token");
    write_secret(&token, TOKEN);
    let url = format!("http://{}", server.address);
    let isolation = json!({ "mode": "remote", "url": url, "tokenFile": token });
    let front = Server::start(Start::new().config("isolation", isolation));
    let session = front.session();
    for number in 0..6 {
        let (tool, code) = match number % 2 {
            0 => ("executeTypescript", format!("return {number}")),
            _ => ("executePython", number.to_string()),
        };
        let params = json!({ "name": tool, "arguments": { "code": code } });
        // The worker of the run before has a second to end, which a busy machine may need for it. A spare that kept the
        // run's worker would keep it for minutes.
        let result = wait_within(LONG, || {
            let result = session.begin(number, "tools/call", params.clone()).result();
            (result["structuredContent"]["error"]["code"] != "ENGINE_UNAVAILABLE").then_some(result)
        });
        assert_eq!(result["structuredContent"]["value"], number, "{result}");
    }
}

//! `cx run --remote`: the script runs in a worker process of another cx, and its tools are here.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::nats::result;
use crate::support::serve::{Start, wait_for_end};
use crate::support::serve_http::{Reply, Server, TOKEN, WATCHDOG, wait_for};
use crate::support::{chaos, descendants_of, own_files, write_secret};

/// A server that lends workers and has no upstream servers.
fn lender(more: &[&str]) -> Server {
    let arguments: Vec<&str> = ["--compute", "4"].iter().chain(more).copied().collect();
    Server::start(Start::new().variable("CX_HTTP_TOKEN", TOKEN).arguments(&arguments))
}

/// Where the tools are: a separate workspace, with a server of `tests/chaos`.
struct Here {
    directory: TempDir,
}

impl Here {
    fn new(mode: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let notes = directory.path().join("notes");
        let server = json!({ "command": chaos::program(), "args": ["stdio", "--notes", notes, mode] });
        let config = json!({ "mcpServers": { "here": server } });
        std::fs::write(directory.path().join("mcp.json"), config.to_string()).unwrap();
        write_secret(&directory.path().join("token"), TOKEN);
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn notes(&self) -> String {
        std::fs::read_to_string(self.path("notes")).unwrap_or_default()
    }

    fn command(&self, url: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
        command
            .args(["run", "--json", "--mcp-config"])
            .arg(self.path("mcp.json"))
            .args(["--remote", url, "--remote-token-file"])
            .arg(self.path("token"))
            .args(arguments);
        own_files(&mut command, self.directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, server: &Server, arguments: &[&str]) -> Value {
        let output = self.command(&format!("http://{}", server.address), arguments).output().unwrap();
        result(&output)
    }

    fn spawn(&self, server: &Server, arguments: &[&str]) -> Child {
        self.command(&format!("http://{}", server.address), arguments).spawn().unwrap()
    }
}

/// The worker processes of a server, and their fork servers.
fn workers(server: &Server) -> Vec<PathBuf> {
    descendants_of(server.process())
}

#[test]
fn the_script_runs_there_and_its_tools_are_here() {
    let (server, here) = (lender(&[]), Here::new("well"));
    let result =
        here.run(&server, &["-e", "console.log('there'); return await tools.here.echo({ text: 'a' })"]);
    assert_eq!((&result["success"], &result["output"]), (&json!(true), &json!("there")), "{result}");
    assert_eq!(result["toolCallsMade"], 1);
    assert_eq!(here.notes().matches("executed echo").count(), 1);
    let python = "import json\nprint('there')\nr = await tools.here.echo(text='b')\ninputs['n'] * 7";
    let result = here.run(&server, &["--lang", "py", "--input", "{\"n\": 6}", "-e", python]);
    assert_eq!((&result["value"], &result["output"]), (&json!(42), &json!("there")), "{result}");
    // State and the names of tools are kept here.
    let kept = here.run(&server, &["-e", "await state.set('k', 7); return await state.get('k')"]);
    assert_eq!(kept["value"], 7, "{kept}");
    let again =
        here.run(&server, &["-e", "return [await state.get('k'), (await searchTools('echo')).length > 0]"]);
    assert_eq!(again["value"], json!([7, true]), "{again}");
    let failed = here.run(&server, &["-e", "const a = 1;\nthrow new TypeError('no')"]);
    assert_eq!(
        (&failed["error"]["name"], &failed["error"]["line"]),
        (&json!("TypeError"), &json!(2)),
        "{failed}"
    );
}

/// This executor's rules, budgets and approvals hold, whatever the other machine does.
#[test]
fn calls_are_decided_here() {
    let (server, here) = (lender(&[]), Here::new("well"));
    let call = "return await tools.here.echo({ text: 'a' })";
    let denied = here.run(&server, &["--deny", "here.*", "-e", call]);
    assert_eq!(denied["error"]["toolCode"], "TOOL_DENIED", "{denied}");
    let asked = here.run(&server, &["--ask", "here.*", "-e", call]);
    assert_eq!(asked["error"]["toolCode"], "TOOL_DENIED", "{asked}");
    let twice = "await tools.here.echo({ text: 'a' }); return await tools.here.echo({ text: 'b' })";
    let counted = here.run(&server, &["--max-tool-calls", "1", "-e", twice]);
    assert_eq!(counted["error"]["code"], "MAX_TOOL_CALLS_EXCEEDED", "{counted}");
    assert_eq!(here.notes().matches("executed echo").count(), 1);
}

#[test]
fn a_run_ends_at_the_limits_of_both() {
    let (server, here) = (lender(&["--timeout", "20s", "--cpu-time", "5s"]), Here::new("well"));
    for (arguments, code) in [
        (&["--timeout", "500ms", "-e", "for (;;);"][..], "TIMEOUT"),
        (&["--cpu-time", "200ms", "-e", "for (;;);"], "CPU_LIMIT"),
        (&["--cpu-time", "200ms", "--lang", "py", "-e", "while True: pass"], "CPU_LIMIT"),
        (
            &["--memory", "32MiB", "-e", "const a = []; for (;;) a.push(new Array(1e5).fill(1.5))"],
            "MEMORY_LIMIT",
        ),
    ] {
        let ended = here.run(&server, arguments);
        assert_eq!(ended["error"]["code"], code, "{arguments:?}: {ended}");
    }
    // The other machine's operator limits the worker: it is ended, and the run reports it.
    let ended = here.run(&server, &["--timeout", "60s", "--cpu-time", "60s", "-e", "for (;;);"]);
    assert_eq!(ended["error"]["code"], "ENGINE_CRASHED", "{ended}");
    // The local stand-in process has not failed.
    assert!(!ended["error"]["message"].as_str().unwrap().contains("exit status"), "{ended}");
    assert_eq!(here.run(&server, &["-e", "return 1"])["value"], 1);
}

#[test]
fn a_run_ends_with_either_machine() {
    let (mut server, here) = (lender(&[]), Here::new("hang-call"));
    // A fork server and a worker of each language.
    let idle = wait_for(|| Some(workers(&server).len()).filter(|&count| count >= 4));
    // This side: the process is killed, and the worker there ends with its connection.
    let hangs = "return await tools.here.target({})";
    let mut run = here.spawn(&server, &["--timeout", "600s", "-e", hangs]);
    wait_for(|| here.notes().contains("executed target").then_some(()));
    let during = workers(&server);
    run.kill().unwrap();
    run.wait().unwrap();
    let are_gone = || workers(&server).len() <= idle && during.iter().any(|worker| !worker.exists());
    wait_for(|| are_gone().then_some(()));
    // The other side: the server stops, and the run reports that its worker has gone.
    std::fs::remove_file(here.path("notes")).unwrap();
    let mut run = here.spawn(&server, &["-e", hangs]);
    wait_for(|| here.notes().contains("executed target").then_some(()));
    server.signal("TERM");
    assert!(server.wait(WATCHDOG).success());
    let status = wait_for_end(&mut run, WATCHDOG);
    let said = std::io::read_to_string(run.stdout.take().unwrap()).unwrap();
    assert!(!status.success() && said.contains("ENGINE_CRASHED"), "{said}");
}

#[test]
fn what_is_wrong_with_the_server_is_said() {
    let here = Here::new("well");
    let said = |url: &str, problem: &str| {
        let output = here.command(url, &["-e", "return 1"]).output().unwrap();
        let all =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && all.contains(problem), "{url}: {all}");
        assert!(!all.contains("heim@"), "{url}: {all}");
    };
    said("nothing", "invalid `--remote`: expected the address of a server");
    said("http://user:geheim@127.0.0.1:1", "expected the address of a server");
    said("http://192.0.2.1:8000", "without TLS");
    said("http://127.0.0.1:1", "cannot be reached");
    let off = Server::start(Start::new().variable("CX_HTTP_TOKEN", TOKEN));
    said(&format!("http://{}", off.address), "needs `--compute`");
    let server = lender(&[]);
    std::fs::write(here.path("token"), TOKEN.replace('0', "f")).unwrap();
    said(&format!("http://{}", server.address), "does not accept the token");
    let mut without = Command::new(env!("CARGO_BIN_EXE_cx"));
    without.args(["run", "--remote", &format!("http://{}", server.address), "-e", "return 1"]);
    let output =
        without.env("HOME", here.directory.path()).current_dir(here.directory.path()).output().unwrap();
    let all = String::from_utf8_lossy(&output.stderr);
    assert!(all.contains("needs a token: `--remote-token-file`"), "{all}");
    std::fs::set_permissions(here.path("token"), PermissionsExt::from_mode(0o644)).unwrap();
    said(&format!("http://{}", server.address), "others may read or change it");
    std::fs::remove_file(here.path("token")).unwrap();
    let output = here.command(&format!("http://{}", server.address), &["-e", "return 1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let failure = result(&output);
    assert_eq!(failure["error"]["code"], "INVALID_ARGUMENTS", "{failure}");
    let message = failure["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("--remote-token-file ") && message.contains("No such file"), "{failure}");
    // The operator's token runs nothing.
    let tenants = "a fedcba9876543210fedcba9876543210";
    let of_tenants = Start::new().variable("CX_HTTP_TOKEN", TOKEN).variable("CX_HTTP_TOKENS", tenants);
    let server = Server::start(of_tenants.arguments(&["--compute", "1"]));
    write_secret(&here.path("token"), TOKEN);
    said(&format!("http://{}", server.address), "it needs the token of one");
}

/// Asks for a worker as an executor does, and sends `first` when it is lent.
fn upgraded(server: &Server, first: &[u8]) -> TcpStream {
    let mut stream = server.connect();
    let head = format!(
        "GET /v1/workers HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: upgrade\r\n\
         Upgrade: cx-worker\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut switched = Vec::new();
    while !switched.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        switched.push(byte[0]);
    }
    assert!(switched.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&switched));
    stream.write_all(first).unwrap();
    stream
}

/// Neither side trusts the data of the connection.
#[test]
fn hostile_connections_cost_a_worker_at_most() {
    let (server, here) = (lender(&[]), Here::new("well"));
    let token = format!("Bearer {TOKEN}");
    let headers = [("Authorization", token.as_str())];
    assert_eq!(server.get("/v1/workers", &[]).status, 401);
    assert_eq!(server.get("/v1/workers", &headers).status, 426);
    for first in [&b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0"[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 64]] {
        let mut stream = upgraded(&server, first);
        let mut rest = Vec::new();
        let _reset = stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{rest:?}");
    }
    // Connections that send nothing hold their permit for ten seconds at most, and at most four of them do.
    let silent: Vec<_> = (0..4).map(|_| upgraded(&server, b"")).collect();
    let mut stream = server.connect();
    let head = format!(
        "GET /v1/workers HTTP/1.1\r\nHost: {}\r\nAuthorization: {token}\r\nConnection: upgrade\r\nUpgrade: cx-worker\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(Reply::read(stream).status, 503);
    drop(silent);
    let run = || Some(here.run(&server, &["-e", "return 1"])).filter(|result| result["value"] == 1);
    wait_for(run);
}

/// What an executor has sent last may look like the head of a request, whose answer its client would wait for.
#[test]
fn v_826_an_executor_that_is_gone_is_noticed_whatever_it_has_sent() {
    let server = lender(&[]);
    let ends_at_once = || {
        let began = Instant::now();
        // The beginning of a frame of 1,000 bytes.
        let mut stream = upgraded(&server, b"\xe8\x03\0\0\0\0\0\0\0\0\0\0it looks like\na request\n\n");
        stream.shutdown(Shutdown::Write).unwrap();
        let _reset = stream.read_to_end(&mut Vec::new());
        began.elapsed() < Duration::from_secs(10)
    };
    // The rest of the frame would be late after ten seconds, which is a different promise. A busy machine may need that
    // long: then others try.
    assert!((0..6).any(|_| ends_at_once()));
}

/// As many at once as there are workers to lend.
#[test]
fn many_runs_at_once() {
    let (server, here) = (lender(&[]), Here::new("well"));
    let values: Vec<Value> = std::thread::scope(|scope| {
        let runs = (0..4).map(|number| {
            let (here, server) = (&here, &server);
            scope.spawn(move || {
                let code =
                    format!("return [{number}, (await tools.here.echo({{ text: '{number}' }})) !== null]");
                here.run(server, &["-e", &code])["value"].clone()
            })
        });
        runs.collect::<Vec<_>>().into_iter().map(|run| run.join().unwrap()).collect()
    });
    for (number, value) in values.iter().enumerate() {
        assert_eq!(*value, json!([number, true]));
    }
}

/// The configuration sets it for every script, also for those of `cx serve`.
#[test]
fn the_configuration_names_the_other_machine() {
    let (server, here) = (lender(&[]), Here::new("well"));
    let isolation = json!({
        "mode": "remote",
        "url": format!("http://{}", server.address),
        "tokenFile": here.path("token"),
    });
    let start = Start::new().server("well", &["well"]).config("isolation", isolation);
    let front = Server::start(start);
    let idle = wait_for(|| Some(workers(&server)).filter(|workers| workers.len() >= 4));
    let session = front.session();
    let result = session.run("return await tools.well.echo({ text: 'a' })");
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(front.notes("well").matches("executed echo").count(), 1);
    // The other machine has one worker less: it has served this run.
    wait_for(|| idle.iter().any(|worker| !worker.exists()).then_some(()));
    drop(server);
    let result = session.run("return 1");
    assert_eq!(result["error"]["code"], "ENGINE_UNAVAILABLE", "{result}");
    assert!(result["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{result}");
}

//! The metrics page at a separate address, and the files in `docs/observability` that use its metrics.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, WATCHDOG};
use crate::support::serve_http::wait_for;
use crate::tidy::root;

const RULES: &str = "docs/observability/alerts.yml";

/// Sends a request and returns the whole answer.
fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

/// The stderr that a client sees, once it contains this text.
fn stderr_with(client: &Client, part: &str) -> String {
    let began = Instant::now();
    loop {
        let stderr = client.stderr();
        if stderr.contains(part) && stderr.ends_with('\n') {
            return stderr;
        }
        assert!(began.elapsed() < WATCHDOG, "no {part}: {stderr}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn address_of(client: &Client) -> SocketAddr {
    let stderr = stderr_with(client, "/metrics\n");
    let address = stderr.split_once("metrics at http://").unwrap().1;
    address.split_once("/metrics").unwrap().0.parse().unwrap()
}

#[test]
fn the_metrics_of_a_server_over_stdio() {
    let servers = Start::new().server("well", &["well"]);
    let mut client = servers.arguments(&["--metrics", "127.0.0.1:0"]).with_stderr().spawn().shaken();
    let address = address_of(&client);
    client.run("for (let i = 0; i < 9; i++) await tools.well.echo({ text: 'x'.repeat(1000) }); return 1");
    let page = get(address, "/metrics");
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    assert!(page.contains("content-type: text/plain; version=0.0.4"), "{page}");
    // Two lengths can hide one request in another (request smuggling).
    let mut hiding = std::net::TcpStream::connect(address).unwrap();
    let lengths = "Content-Length: 4\r\nTransfer-Encoding: chunked";
    write!(hiding, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n{lengths}\r\n\r\n0\r\n\r\n").unwrap();
    let mut refused = String::new();
    hiding.read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 411 ") && refused.matches("HTTP/1.1").count() == 1, "{refused}");
    assert!(refused.contains("connection: close"), "{refused}");
    for line in [
        "cx_runs_total{language=\"typescript\",outcome=\"ok\"} 1",
        "cx_tool_calls_total{server=\"well\",outcome=\"ok\"} 9",
        "circuit_breaker_state{server=\"well\"} 0",
        "pool_active_connections{server=\"well\"} 0",
        "pool_queue_depth{server=\"well\"} 0",
        "mcp_server_operation_duration_seconds_count{mcp_method_name=\"tools/call\",network_transport=\"pipe\"} 1",
        "mcp_client_operation_duration_seconds_count{mcp_method_name=\"tools/call\",network_transport=\"pipe\"} 9",
        // In the conventions' buckets, which differ from those of cx's own histograms.
        "mcp_client_operation_duration_seconds_bucket{mcp_method_name=\"tools/call\",network_transport=\"pipe\",le=\"0.02\"}",
        "cx_run_queue_wait_seconds_count{language=\"typescript\"} 1",
        "cx_cache_requests_total{cache=\"tool_lists\",result=\"miss\"} ",
        "cx_cache_requests_total{cache=\"tool_lists\",result=\"hit\"} ",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    let value = |name: &str| -> u64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {page}")).parse().unwrap()
    };
    let (returned, answered) = (value("cx_tool_result_bytes_total"), value("cx_answer_bytes_total"));
    assert!(returned >= 9 * 1000 && answered < 200, "{returned} {answered}");
    assert_eq!(value("cx_context_kept_out_bytes_total"), returned - answered);
    assert_eq!(value("cx_context_kept_out_tokens_estimate_total"), (returned - answered) / 4);
    // A script whose answer is longer than its tools' results has kept nothing out of the context.
    client.run("return 'y'.repeat(5000)");
    let page = get(address, "/metrics");
    assert!(page.contains(&format!("cx_context_kept_out_bytes_total {}\n", returned - answered)), "{page}");
    client.end();
}

/// The page follows changes of the file of its token.
#[test]
fn v_542_a_replaced_token_does_not_read_the_metrics() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let path = directory.path().join("token");
    let replace = |token: &str| {
        // Only its user can read it.
        let next = tempfile::NamedTempFile::new_in(directory.path()).unwrap();
        std::fs::write(next.path(), token).unwrap();
        next.persist(&path).unwrap();
    };
    replace("old");
    let start = Start::new().within(Arc::clone(&directory));
    let file = path.display().to_string();
    let start = start.arguments(&["--metrics", "127.0.0.1:0", "--token-file", &file]);
    let client = start.with_stderr().spawn().shaken();
    let address = address_of(&client);
    let is_read = |token: &str| {
        let head = format!("Host: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}");
        send(address, &format!("GET /metrics HTTP/1.1\r\n{head}\r\n\r\n")).starts_with("HTTP/1.1 200 ")
    };
    assert_eq!(["old", "new"].map(is_read), [true, false]);
    replace("new");
    wait_for(|| is_read("new").then_some(()));
    assert!(!is_read("old"));
    client.end();
}

/// The page has the failures that the circuit breaker counts: five failures of the server open it; failures that a tool
/// reports and refused calls do not count.
#[test]
fn failures_that_the_circuit_breaker_counts_are_on_the_page() {
    let start = Start::new().server("well", &["well"]);
    let start = start.server_with("hangs", &["hang-call"], json!({ "timeoutMs": 200 }));
    let mut client = start.arguments(&["--metrics", "127.0.0.1:0"]).with_stderr().spawn().shaken();
    let address = address_of(&client);
    let failures = |server: &str| {
        let page = get(address, "/metrics");
        let name = format!("circuit_breaker_failures_total{{server=\"{server}\"}} ");
        let value = page.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok());
        let state = format!("circuit_breaker_state{{server=\"{server}\"}} ");
        let state = page.lines().find_map(|line| line.strip_prefix(&state)).unwrap();
        (value.unwrap_or(0), state.to_owned())
    };
    let mut call = |server: &str, tool: &str, times: u32| {
        let source = format!(
            "const codes = [];
             for (let i = 0; i < {times}; i++) {{
                 codes.push(await tools.{server}.{tool}({{}}).then(() => 'ok', (error) => error.code));
             }}
             return codes"
        );
        client.run(&source)["value"].clone()
    };
    assert_eq!(call("well", "fail", 7), json!(vec!["TOOL_ERROR"; 7]));
    assert_eq!(call("hangs", "target", 3), json!(vec!["TOOL_TIMEOUT"; 3]));
    assert_eq!(failures("hangs"), (3, "0".to_owned()));
    let codes = call("hangs", "target", 4);
    assert_eq!(codes, json!(["TOOL_TIMEOUT", "TOOL_TIMEOUT", "CIRCUIT_OPEN", "CIRCUIT_OPEN"]));
    assert_eq!(failures("hangs"), (5, "1".to_owned()));
    assert_eq!(failures("well"), (0, "0".to_owned()));
    client.end();
}

/// Calls that wait for a slot of their server: the current number, and how many have waited.
#[test]
fn calls_that_wait_for_their_server_are_on_the_page() {
    let start = Start::new().server_with("narrow", &["hang-call"], json!({ "maxConcurrent": 1 }));
    let mut client = start.arguments(&["--metrics", "127.0.0.1:0"]).with_stderr().spawn().shaken();
    let address = address_of(&client);
    let wait_until_page_has = |active: u32, waiting: u32| {
        let active = format!("pool_active_connections{{server=\"narrow\"}} {active}\n");
        let waiting = format!("pool_queue_depth{{server=\"narrow\"}} {waiting}\n");
        wait_for(|| {
            let page = get(address, "/metrics");
            (page.contains(&active) && page.contains(&waiting)).then_some(())
        });
    };
    let code = "await Promise.all([1, 2, 3].map(() => tools.narrow.target({})))";
    let call = client.begin_call("executeTypescript", json!({ "code": code }));
    wait_until_page_has(1, 2);
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call },
    }));
    wait_until_page_has(0, 0);
    let waits = |page: &str| {
        let count = "pool_queue_wait_seconds_count{server=\"narrow\"} ";
        page.lines().find_map(|line| line.strip_prefix(count)?.parse::<u64>().ok()).unwrap_or(0)
    };
    let before = waits(&get(address, "/metrics"));
    // Of three calls at once the first does not wait.
    client.run("await Promise.all([1, 2, 3].map(() => tools.narrow.slow({ ms: 2000 }))); return 1");
    let page = get(address, "/metrics");
    assert_eq!(waits(&page), before + 2, "{page}");
    // The buckets reach the wait that the alert rules warn of.
    for bound in ["0.1", "10", "30"] {
        let bucket = format!("pool_queue_wait_seconds_bucket{{server=\"narrow\",le=\"{bound}\"}}");
        assert!(page.contains(&bucket), "{bucket}: {page}");
    }
    client.end();
}

/// Waits until the page has a value of this metric, which has no labels, for which the condition holds.
fn wait_for_value(address: SocketAddr, name: &str, condition: impl Fn(f64) -> bool) {
    wait_for(|| {
        let page = get(address, "/metrics");
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.is_some_and(|value| condition(value.parse().unwrap())).then_some(())
    });
}

/// A trail that cannot be written fails no run: a warning, a gauge, a counter and `health` say so, until it can be
/// written again.
#[test]
fn a_trail_that_cannot_be_written_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    // A file is where the directory should be.
    let trail = directory.path().join("trail");
    std::fs::write(&trail, "").unwrap();
    let start = Start::new().arguments(&["--metrics", "127.0.0.1:0", "--audit", trail.to_str().unwrap()]);
    let mut client = start.with_stderr().spawn().shaken();
    let address = address_of(&client);
    assert_eq!(client.run("return 7")["value"], 7);
    let health = client.wait_for_health(|health| health["auditLog"]["failure"].is_object());
    let report = &health["auditLog"];
    assert_eq!(report["failure"]["message"], "the audit trail cannot be written", "{health:#}");
    assert!(report["dropped"].as_u64().unwrap() > 0 && report["enabled"] == true, "{health:#}");
    wait_for_value(address, "cx_audit_failing", |value| value == 1.0);
    wait_for_value(address, "cx_audit_events_dropped_total", |value| value > 0.0);
    stderr_with(&client, &format!("warning: the audit trail cannot be written: {}: ", trail.display()));
    std::fs::remove_file(&trail).unwrap();
    client.wait_for_health(|health| health["auditLog"]["failure"].is_null());
    wait_for_value(address, "cx_audit_failing", |value| value == 0.0);
    wait_for_value(address, "cx_audit_events_total", |value| value > 0.0);
    let stderr = stderr_with(&client, "the audit trail is written again");
    assert_eq!(stderr.matches("cannot be written").count(), 1, "{stderr}");
    client.end();
}

/// The lines are written, and their end cannot be signed: a new checkpoint is written to a file of this name first.
#[test]
fn a_trail_that_cannot_be_signed_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let trail = directory.path().join("trail");
    let start = Start::new().arguments(&["--metrics", "127.0.0.1:0", "--audit", trail.to_str().unwrap()]);
    let mut client = start.with_stderr().spawn().shaken();
    let address = address_of(&client);
    client.wait_for_health(|health| health["auditLog"]["lines"].as_u64() > Some(0));
    let obstacle = trail.join(".new-checkpoint");
    // The file may be there for a moment.
    wait_for(|| std::fs::create_dir(&obstacle).ok());
    assert_eq!(client.run("return 7")["value"], 7);
    // The end is signed in a pause, so that nothing is asked meanwhile.
    stderr_with(&client, &format!("warning: the audit trail cannot be signed: {}: ", trail.display()));
    let report = &client.health()["auditLog"];
    assert_eq!(report["signingFailure"]["message"], "the audit trail cannot be signed", "{report:#}");
    assert!(report["failure"].is_null() && report["dropped"].is_null(), "{report:#}");
    wait_for_value(address, "cx_audit_unsigned", |value| value == 1.0);
    wait_for_value(address, "cx_audit_signing_failures_total", |value| value > 0.0);
    std::fs::remove_dir(&obstacle).unwrap();
    let stderr = stderr_with(&client, "the audit trail is signed again");
    assert_eq!(stderr.matches("cannot be signed").count(), 1, "{stderr}");
    let report = &client.health()["auditLog"];
    assert!(report["signingFailure"].is_null(), "{report:#}");
    wait_for_value(address, "cx_audit_unsigned", |value| value == 0.0);
    client.end();
}

/// Traces that cannot be written fail no run. They are counted, and stderr has one line until they can be written
/// again.
#[test]
fn v_571_traces_that_cannot_be_written_are_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let traces = directory.path().join("traces");
    let arguments = ["--traces", traces.to_str().unwrap(), "--metrics", "127.0.0.1:0"];
    let mut client = Start::new().arguments(&arguments).with_stderr().spawn().shaken();
    let address = address_of(&client);
    std::fs::remove_dir(&traces).unwrap();
    for number in 0..5 {
        assert_eq!(client.run(&format!("return {number}"))["value"], number);
    }
    wait_for(|| get(address, "/metrics").contains("cx_traces_lost_total 5\n").then_some(()));
    stderr_with(&client, "warning: no trace can be written to ");
    std::fs::create_dir(&traces).unwrap();
    assert_eq!(client.run("return 1")["value"], 1);
    let stderr = stderr_with(&client, "traces are written again: 5 were lost");
    assert_eq!(stderr.matches("no trace can be written").count(), 1, "{stderr}");
    client.end();
}

#[test]
fn the_metrics_page_answers_nothing_else() {
    let client = Start::new().arguments(&["--metrics", "127.0.0.1:0"]).with_stderr().spawn().shaken();
    let address = address_of(&client);
    let head = |text: String| text.lines().next().unwrap().to_owned();
    for path in ["/", "/mcp", "/healthz", "/metrics/", "/metrics/../x"] {
        assert_eq!(head(get(address, path)), "HTTP/1.1 404 Not Found", "{path}");
    }
    assert!(get(address, "/").contains("there are only `/metrics` and `/ui` here"));
    // Monitors ask without wanting a body.
    for path in ["/metrics", "/ui"] {
        let asks = format!("HEAD {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let answer = send(address, &asks);
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{path}: {answer}");
    }
    let post = format!(
        "POST /metrics HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(head(send(address, &post)), "HTTP/1.1 405 Method Not Allowed");
    // A page in a browser reaches it under another host name.
    let rebound = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(head(send(address, rebound)), "HTTP/1.1 403 Forbidden");
    let page = format!(
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nOrigin: https://evil.example\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(head(send(address, &page)), "HTTP/1.1 403 Forbidden");
    // Silent connections block the page for a while, and never the client.
    let idle: Vec<TcpStream> = (0..32).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut client = client;
    assert_eq!(client.run("return 1")["value"], 1);
    wait_for(|| (head(get(address, "/metrics")) == "HTTP/1.1 200 OK").then_some(()));
    drop(idle);
    client.end();
}

#[test]
fn a_second_server_at_the_address_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut client = Start::new().arguments(&["--metrics", &address]).with_stderr().spawn().shaken();
    let stderr = stderr_with(&client, "no metrics page");
    assert!(stderr.contains(&address) && stderr.contains("port 0 for a free one"), "{stderr}");
    assert_eq!(client.run("return 1")["value"], 1);
    client.end();
    // An address that other machines can reach needs a token.
    let (mut command, _directory) = Start::new().arguments(&["--metrics", "0.0.0.0:0"]).command();
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("set a token"), "{output:?}");
}

/// The names of metrics in a text of PromQL: words that look like ours.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let own = ["cx_", "pool_", "circuit_", "process_", "rate_limited", "mcp_"];
    words.filter(|word| own.iter().any(|start| word.starts_with(start))).map(str::to_owned).collect()
}

/// The metrics that the document lists. Another test compares them with those that exist.
fn documented() -> BTreeSet<String> {
    let document = std::fs::read_to_string(root().join("docs/observability.md")).unwrap();
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let mut names = BTreeSet::new();
    for (name, rest) in rows {
        if rest.starts_with("histogram") {
            names.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
        } else if rest.starts_with("counter") || rest.starts_with("gauge") {
            names.insert(name.to_owned());
        }
    }
    names
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

#[test]
fn alert_rules_are_valid_and_name_metrics_that_exist() {
    let rules = std::fs::read_to_string(root().join(RULES)).unwrap();
    let known = documented();
    let used: BTreeSet<String> =
        rules.lines().filter(|line| line.trim().starts_with("expr:")).flat_map(metrics_in).collect();
    assert!(used.len() >= 6, "{used:?}");
    assert!(used.is_subset(&known), "not exported: {:?}", used.difference(&known));
    // The promised alerts: depth, failures, wait.
    for promised in ["pool_queue_depth > 150", "circuit_breaker_failures_total[5m]) > 10", "> 15"] {
        assert!(rules.contains(promised), "{promised}");
    }
    assert!(has("promtool"), "promtool is missing: tests/interop/install.sh installs Debian's prometheus");
    let checked =
        Command::new("promtool").args(["check", "rules", RULES]).current_dir(root()).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success() && said.contains("10 rules found"), "{said}{checked:?}");
}

/// The promised alerts fire beyond their thresholds, and not below: `tests/alerts.yml`.
#[test]
fn alerts_fire_at_their_thresholds() {
    assert!(has("promtool"), "promtool is missing: tests/interop/install.sh installs Debian's prometheus");
    let tested = Command::new("promtool")
        .args(["test", "rules", "tests/alerts.yml"])
        .current_dir(root())
        .output()
        .unwrap();
    let said = [tested.stdout, tested.stderr].concat();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_dashboard_asks_valid_questions_about_metrics_that_exist() {
    let text = std::fs::read_to_string(root().join("docs/observability/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let known = documented();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut used, mut rules) = (BTreeSet::new(), Vec::new());
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let own = metrics_in(expression);
            assert!(!own.is_empty(), "{target}");
            used.extend(own);
            // As Grafana sends it.
            let sent = expression.replace("$__rate_interval", "5m").replace("$__range", "1h");
            rules.push(json!({ "record": format!("panel_{}", rules.len()), "expr": sent }));
        }
        assert!(panel["gridPos"]["x"].as_u64().unwrap() + panel["gridPos"]["w"].as_u64().unwrap() <= 24);
    }
    assert!(used.is_subset(&known), "not exported: {:?}", used.difference(&known));
    assert!(used.len() > 25, "{used:?}");
    // Prometheus can parse each expression. JSON is YAML.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("panels.yml");
    let count = rules.len();
    let groups = json!({ "groups": [{ "name": "panels", "rules": rules }] });
    std::fs::write(&file, groups.to_string()).unwrap();
    let checked = Command::new("promtool").args(["check", "rules"]).arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success() && said.contains(&format!("{count} rules found")), "{said}{checked:?}");
}

/// A Prometheus of Debian scrapes a running server, and evaluates the alert rules on it.
#[test]
fn a_real_prometheus_scrapes_the_page() {
    assert!(has("prometheus"), "prometheus is missing: tests/interop/install.sh installs Debian's");
    let servers = Start::new().server("well", &["well"]);
    let mut client = servers.arguments(&["--metrics", "127.0.0.1:0"]).with_stderr().spawn().shaken();
    let address = address_of(&client);
    client.run("await tools.well.echo({ text: 'a' }); return 1");
    let directory = tempfile::tempdir().unwrap();
    let config = json!({
        "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
        "rule_files": [root().join(RULES)],
        "scrape_configs": [{ "job_name": "cx", "static_configs": [{ "targets": [address.to_string()] }] }],
    });
    // JSON is YAML.
    let file = directory.path().join("prometheus.yml");
    std::fs::write(&file, config.to_string()).unwrap();
    let start = || {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let prometheus = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address={free}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        (prometheus, free)
    };
    let query = |free: SocketAddr, path: &str| -> Option<Value> {
        let mut stream = TcpStream::connect(free).ok()?;
        stream.set_read_timeout(Some(WATCHDOG)).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {free}\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    };
    let (mut prometheus, mut free) = start();
    let began = Instant::now();
    let value = loop {
        // Another process may have taken its port.
        if prometheus.try_wait().unwrap().is_some() {
            (prometheus, free) = start();
        }
        let answer = query(free, "/api/v1/query?query=cx_tool_calls_total");
        let results = answer.as_ref().and_then(|answer| answer["data"]["result"].as_array()).cloned();
        if let Some([first, ..]) = results.as_deref() {
            break first.clone();
        }
        if began.elapsed() > WATCHDOG {
            let _killed = prometheus.kill();
            panic!("nothing was scraped: {answer:?}");
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let rules = query(free, "/api/v1/rules");
    let targets = query(free, "/api/v1/targets");
    let _killed = prometheus.kill();
    let _ended = prometheus.wait();
    assert_eq!(value["metric"]["server"], "well", "{value}");
    assert_eq!(value["value"][1], "1", "{value}");
    let targets = targets.unwrap();
    assert_eq!(targets["data"]["activeTargets"][0]["health"], "up", "{targets}");
    let rules = rules.unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 10);
    for rule in rules {
        assert!(rule["lastError"].is_null() && rule["state"] == "inactive", "{rule}");
    }
    client.end();
}

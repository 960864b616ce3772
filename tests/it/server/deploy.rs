//! The files of `deploy/`: valid by their own tools, consistent with the program, and sufficient to run it.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::interop::{schemas_python, script};
use crate::support::nats::{Front, NatsServer, Worker};
use crate::support::serve::{Start, wait_for_end};
use crate::support::serve_http::{Server, TOKEN, WATCHDOG, wait_for};

/// The oldest and the newest version that the manifests are for: `preStop.sleep` is of 1.30.
const KUBERNETES: [&str; 2] = ["1.30.0", "1.37.0"];

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

#[expect(clippy::print_stderr, reason = "the user has to know what was not tested")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// The manifests of `cx serve` by their kind, after the check of their schemas.
fn manifests() -> Value {
    manifests_of("kubernetes")
}

fn manifests_of(folder: &str) -> Value {
    let checked = Command::new(schemas_python())
        .arg(script("schemas/check_kubernetes.py"))
        .arg(file(folder))
        .args(KUBERNETES)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    serde_json::from_slice(&checked.stdout).unwrap()
}

#[track_caller]
fn post(server: &Server, token: &str, language: &str, code: &str) -> Value {
    let token = format!("Bearer {token}");
    let headers = [("Content-Type", "application/json"), ("Authorization", token.as_str())];
    let body = json!({ "language": language, "code": code });
    server.send("POST", "/v1/runs", &headers, &body.to_string()).message()
}

#[test]
fn the_manifests_are_valid_and_fit_together() {
    let all = manifests();
    let deployment = &all["Deployment"];
    let pod = &deployment["spec"]["template"];
    let labels = &pod["metadata"]["labels"];
    let selectors = [
        &deployment["spec"]["selector"]["matchLabels"],
        &all["Service"]["spec"]["selector"],
        &all["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        &all["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        &pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    ];
    for selector in selectors {
        assert_eq!(selector, labels);
    }
    assert_eq!(
        all["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"],
        deployment["metadata"]["name"]
    );
    assert_eq!(pod["spec"]["serviceAccountName"], all["ServiceAccount"]["metadata"]["name"]);
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let config = volumes.iter().find(|volume| volume["name"] == "config").unwrap();
    assert_eq!(config["configMap"]["name"], all["ConfigMap"]["metadata"]["name"]);
    let container = &pod["spec"]["containers"][0];
    for mount in container["volumeMounts"].as_array().unwrap() {
        assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
    }
    // Every permission of the pod is in the manifest, and not left to a default.
    let security = &container["securityContext"];
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
    assert_ne!(pod["spec"]["securityContext"]["seccompProfile"]["type"], "Unconfined");
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    // A server reaches the internet for a script: not the cluster, and not the cloud's credentials.
    let policy = &all["NetworkPolicy"]["spec"];
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    assert!(
        policy["ingress"][0]["from"].as_array().is_some_and(|from| !from.is_empty()),
        "anyone may come in"
    );
    for rule in policy["egress"].as_array().unwrap() {
        for to in rule["to"].as_array().unwrap() {
            let Some(block) = to.get("ipBlock").filter(|block| block["cidr"] == "0.0.0.0/0") else {
                continue;
            };
            for private in [
                "10.0.0.0/8",
                "100.64.0.0/10",
                "127.0.0.0/8",
                "168.63.129.16/32",
                "169.254.0.0/16",
                "172.16.0.0/12",
                "192.0.0.0/24",
                "192.168.0.0/16",
            ] {
                assert!(block["except"].as_array().unwrap().contains(&private.into()), "{private}");
            }
        }
    }
    // A pod that ends lets its runs end first: the config map's timeout is shorter than that time.
    let sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    let config: Value =
        serde_json::from_str(all["ConfigMap"]["data"]["config.json"].as_str().unwrap()).unwrap();
    let timeout = config["limits"]["timeoutMs"].as_u64().unwrap().div_ceil(1000);
    assert!(timeout < sleep && sleep + 5 < grace, "{timeout} {sleep} {grace}");
}

#[test]
fn the_manifests_of_workers_are_valid_and_fit_together() {
    let all = manifests_of("kubernetes-worker");
    let deployment = &all["Deployment"];
    let pod = &deployment["spec"]["template"];
    let labels = &pod["metadata"]["labels"];
    let selectors = [
        &deployment["spec"]["selector"]["matchLabels"],
        &all["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        &all["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        &pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    ];
    for selector in selectors {
        assert_eq!(selector, labels);
    }
    let scaling = &all["HorizontalPodAutoscaler"]["spec"];
    assert_eq!(scaling["scaleTargetRef"]["name"], deployment["metadata"]["name"]);
    assert_eq!(pod["spec"]["serviceAccountName"], all["ServiceAccount"]["metadata"]["name"]);
    let container = &pod["spec"]["containers"][0];
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    for mount in container["volumeMounts"].as_array().unwrap() {
        assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
    }
    let config = volumes.iter().find(|volume| volume["name"] == "config").unwrap();
    assert_eq!(config["configMap"]["name"], all["ConfigMap"]["metadata"]["name"]);
    let security = &container["securityContext"];
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
    assert_ne!(pod["spec"]["securityContext"]["seccompProfile"]["type"], "Unconfined");
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    // A worker reaches names and the NATS server, and listens to monitoring only.
    let policy = &all["NetworkPolicy"]["spec"];
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    for rule in policy["egress"].as_array().unwrap() {
        assert!(rule["to"].as_array().unwrap().iter().all(|to| to.get("ipBlock").is_none()), "{rule}");
    }
    // Runs end before the pod does.
    let arguments: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let value = |name: &str| arguments[arguments.iter().position(|word| *word == name).unwrap() + 1];
    let timeout: u64 = value("--timeout").strip_suffix('s').unwrap().parse().unwrap();
    assert!(timeout + 5 < pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap());
    // The memory of all runs that it executes at the same time.
    let runs: u64 = value("--concurrency").parse().unwrap();
    let memory: u64 = value("--memory").strip_suffix("MiB").unwrap().parse().unwrap();
    assert_eq!(container["resources"]["limits"]["memory"], "3Gi");
    assert!(runs * (2 * memory + 128) + 256 <= 3 << 10);
    let depth = &scaling["metrics"][0]["external"];
    assert_eq!(depth["target"]["averageValue"], json!(runs.to_string()));
    let rules = std::fs::read_to_string(file("prometheus/adapter-rules.yaml")).unwrap();
    assert!(rules.contains(&format!("'{}{{", depth["metric"]["name"].as_str().unwrap())), "no rule");
}

/// The arguments and the configuration of the manifests, and the metric that the autoscaler reads.
#[test]
fn a_worker_runs_as_the_deployment_starts_it() {
    let Some(nats) = NatsServer::start() else { return };
    let all = manifests_of("kubernetes-worker");
    let container = &all["Deployment"]["spec"]["template"]["spec"]["containers"][0];
    let directory = tempfile::tempdir().unwrap();
    let config = all["ConfigMap"]["data"]["config.json"].as_str().unwrap();
    let mut config: Value = serde_json::from_str(config).unwrap();
    // The NATS server of this test has neither TLS nor accounts.
    let isolation = config["isolation"].as_object_mut().unwrap();
    isolation.insert("url".to_owned(), nats.url().into());
    isolation.insert("keyFile".to_owned(), json!(nats.key()));
    isolation.remove("credentialsFile").unwrap();
    std::fs::write(directory.path().join("config.json"), config.to_string()).unwrap();
    let arguments = container["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
    command
        .args(arguments.map(|word| if word == "0.0.0.0:9464" { "127.0.0.1:0" } else { word }))
        .env_clear()
        .current_dir(directory.path());
    for variable in container["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap();
        match name {
            "CX_HTTP_TOKEN" => command.env(name, TOKEN),
            "CX_CONFIG" => command.env(name, directory.path().join("config.json")),
            "HOME" => command.env(name, directory.path()),
            "XDG_CACHE_HOME" => command.env(name, crate::support::python_cache()),
            other => panic!("{other}: what is it for?"),
        };
    }
    let worker = Worker::new(command);
    worker.wait_for_line("taking scripts from");
    let front = Front::new(&nats, "well");
    assert_eq!(front.run(&["-e", "return await tools.here.echo({ text: 'a' }) !== null"])["value"], true);
    let said = worker.said();
    let address = said.lines().find_map(|line| line.strip_prefix("metrics at http://")).unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    let name = "cx_queue_runs_waiting";
    assert_eq!(all["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["external"]["metric"]["name"], name);
    let page = |token: &str| get(address, token);
    assert!(page("").starts_with("HTTP/1.1 401"));
    wait_for(|| page(TOKEN).contains(&format!("\n{name} 0")).then_some(()));
}

fn get(address: &str, token: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    std::io::read_to_string(stream).unwrap()
}

/// The arguments, variables and paths of the manifests, and the metrics that the autoscaler reads.
#[test]
fn the_program_runs_as_the_deployment_starts_it() {
    let all = manifests();
    starts_as_the_deployment_says(&all, None);
    // The secret may have the tokens of tenants.
    starts_as_the_deployment_says(&all, Some("a-token-of-one-0123456789abcdef0123456789"));
}

fn starts_as_the_deployment_says(all: &Value, tenant: Option<&str>) {
    let container = &all["Deployment"]["spec"]["template"]["spec"]["containers"][0];
    let arguments: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!(arguments[..3], ["serve", "--http", "0.0.0.0:8000"]);
    assert_eq!(container["ports"][0]["containerPort"], 8000);
    let directory = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let config = directory.path().join("config.json");
    std::fs::write(&config, all["ConfigMap"]["data"]["config.json"].as_str().unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
    command
        .args(["serve", "--http", "0.0.0.0:0"])
        .args(&arguments[3..])
        .env_clear()
        .current_dir(directory.path());
    for variable in container["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap();
        match name {
            "CX_HTTP_TOKEN" => command.env(name, TOKEN),
            "CX_HTTP_TOKENS" => {
                assert_eq!(variable["valueFrom"]["secretKeyRef"]["optional"], true);
                match tenant {
                    Some(token) => command.env(name, format!("one {token}\nother {token}-2\n")),
                    None => &mut command,
                }
            }
            "CX_CONFIG" => command.env(name, &config),
            "HOME" => command.env(name, directory.path()),
            "XDG_CACHE_HOME" => command.env(name, crate::support::python_cache()),
            other => panic!("{other}: what is it for?"),
        };
    }
    let server = Server::start_command(command, directory);
    let client = tenant.unwrap_or(TOKEN);
    assert_eq!(post(&server, client, "typescript", "return 1")["value"], 1);
    assert_eq!(post(&server, client, "python", "1")["value"], 1);
    let health = server.get("/healthz", &[("Authorization", &format!("Bearer {client}"))]).body();
    let isolation = if tenant.is_some() { "process" } else { "in-process" };
    assert!(health.contains(&format!("\"isolation\":\"{isolation}\"")), "{health}");
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        let path = container[probe]["httpGet"]["path"].as_str().unwrap();
        // As the kubelet does: at the pod's address, without a token.
        let reply = server.get(path, &[("Host", "10.1.2.3:8000")]);
        assert_eq!((reply.status, reply.body().trim()), (200, r#"{"healthy":true}"#), "{probe}");
    }
    let metrics = server.get("/metrics", &[("Authorization", &format!("Bearer {TOKEN}"))]).body();
    let rules = std::fs::read_to_string(file("prometheus/adapter-rules.yaml")).unwrap();
    let scaling = all["HorizontalPodAutoscaler"]["spec"]["metrics"].as_array().unwrap();
    let named = scaling.iter().filter_map(|metric| metric["pods"]["metric"]["name"].as_str());
    for name in named.inspect(|name| assert!(rules.contains(&format!("'{name}{{")), "{name}: no rule")) {
        assert!(metrics.contains(&format!("\n{name} ")), "{name} is no metric:\n{metrics}");
    }
}

/// Both engines, a server over stdio, and the end of runs that compute, under the seccomp profile.
#[test]
fn the_seccomp_profile_is_enough_and_refuses_the_rest() {
    let (wrapper, profile) = (script("schemas/with_seccomp.py"), file("kubernetes/seccomp.json"));
    let confined = |program: &[&str]| {
        Command::new("python3").arg(&wrapper).arg(&profile).args(program).output().unwrap()
    };
    if confined(&["true"]).status.code() == Some(77) {
        return skipped("there is no libseccomp.so.2 on this machine");
    }
    let tries = "import ctypes, os, socket\n\
        c = ctypes.CDLL(None, use_errno=True)\n\
        assert c.unshare(0x10000000) == -1 and c.ptrace(0, 0, 0, 0) == -1 and c.mount(0, 0, 0, 0, 0) == -1\n\
        for family in (17, 40):\n\
        \x20   try: socket.socket(family, socket.SOCK_RAW)\n\
        \x20   except PermissionError: continue\n\
        \x20   raise SystemExit(f'{family}: a socket')\n";
    let refused = confined(&["python3", "-c", tries]);
    assert!(refused.status.success(), "{}", String::from_utf8_lossy(&refused.stderr));
    let start =
        Start::new().server("well", &["well"]).wrapped(&["python3", &wrapper, profile.to_str().unwrap()]);
    let server = Server::start(start);
    let called = post(&server, "", "typescript", "return await tools.well.echo({ text: 'a' })");
    assert_eq!(called["success"], true, "{called}");
    assert_eq!(post(&server, "", "python", "import zlib; zlib.crc32(b'a')")["value"], 3_904_355_907_u64);
    for (language, code) in [("typescript", "for (;;);"), ("python", "while True: pass")] {
        let body = json!({ "language": language, "code": code, "timeoutMs": 300 });
        let reply =
            server.send("POST", "/v1/runs", &[("Content-Type", "application/json")], &body.to_string());
        assert_eq!(reply.message()["error"]["code"], "TIMEOUT", "{language}");
    }
}

/// Worker processes, which are the default with several tokens, confine themselves under the profile too.
#[test]
fn the_seccomp_profile_is_enough_for_worker_processes() {
    let (wrapper, profile) = (script("schemas/with_seccomp.py"), file("kubernetes/seccomp.json"));
    let tried = Command::new("python3").arg(&wrapper).arg(&profile).arg("true").output().unwrap();
    if tried.status.code() == Some(77) {
        return skipped("there is no libseccomp.so.2 on this machine");
    }
    let start = Start::new().config("isolation", json!({ "mode": "process", "require": true })).wrapped(&[
        "python3",
        &wrapper,
        profile.to_str().unwrap(),
    ]);
    let server = Server::start(start);
    for (language, code, expected) in [("typescript", "return 1 + 1", 2), ("python", "1 + 2", 3)] {
        let result = post(&server, "", language, code);
        assert_eq!(result["value"], expected, "{language}: {result}");
    }
}

/// A worker whose run has ended waits for the next one, confined. Where it has no user namespace of its own, or the
/// kernel does not count in each, the limit would be one of all processes of the user: there is none.
#[test]
fn v_687_the_kernel_limits_the_threads_of_a_worker() {
    let start = Start::new().config("isolation", json!({ "mode": "process", "runsPerWorker": 100 }));
    let mut client = start.spawn().shaken();
    assert_eq!(client.run("return 1")["value"], 1);
    let file = |process: &str, name: &str| {
        std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default()
    };
    let user_namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user")).ok();
    let server = client.process().to_string();
    let is_apart = |process: &str| match user_namespace(process) {
        Some(namespace) => Some(namespace) != user_namespace(&server),
        // Only root may see that of a worker. Other users have capabilities only in one of their own.
        None => !file(process, "status").lines().any(|line| line == "CapEff:\t0000000000000000"),
    };
    let parent = |process: &str| {
        let stat = file(process, "stat");
        let parent = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(1));
        parent.unwrap_or_default().to_owned()
    };
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    // Workers are forked by a child of the server, which is not confined itself.
    let alone: Vec<String> = processes
        .filter_map(|name| name.into_string().ok())
        .filter(|process| file(process, "cmdline").starts_with("cx-worker"))
        .filter(|process| [parent(process), parent(&parent(process))].contains(&server))
        .filter(|process| file(process, "status").lines().any(|line| line == "Seccomp:\t2"))
        .filter(|process| is_apart(process))
        .collect();
    if alone.is_empty() || cx::SandboxFeatures::of_kernel().landlock_abi < Some(2) {
        return skipped("workers have no user namespace here, or none in which the kernel counts threads");
    }
    let most = 64 + 2 * std::thread::available_parallelism().unwrap().get();
    let limit = format!("Max processes             {most:<20} {most:<20} processes");
    let limits: Vec<String> = alone.iter().map(|child| file(child, "limits")).collect();
    assert!(limits.iter().any(|limits| limits.contains(&limit)), "{limits:?}");
    client.end();
}

/// `systemd-analyze` reads the units as systemd does.
#[test]
fn the_units_are_valid_and_confined() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skipped("there is no systemd-analyze on this machine");
    }
    let directory = tempfile::tempdir().unwrap();
    for name in ["cx.service", "cx.socket", "cx-worker.service"] {
        let unit = std::fs::read_to_string(file("systemd").join(name)).unwrap();
        // The program has to exist.
        let unit = unit.replace("/usr/local/bin/cx ", &format!("{} ", env!("CARGO_BIN_EXE_cx")));
        std::fs::write(directory.path().join(name), unit).unwrap();
    }
    let unit = |name: &str| directory.path().join(name);
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args([unit("cx.service"), unit("cx.socket"), unit("cx-worker.service")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    // Its findings about other units of the machine are ignored.
    let own: Vec<_> = said.lines().filter(|line| line.contains("cx.") || line.contains("cx-")).collect();
    assert!(verified.status.success() && own.is_empty(), "{said}");
    for name in ["cx.service", "cx-worker.service"] {
        // Worker processes confine themselves with these; without them scripts would still run.
        let unit_text = std::fs::read_to_string(unit(name)).unwrap();
        for needed in [
            "\nRestrictNamespaces=user net ipc\n",
            " landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp ",
            // Metadata services of clouds, which give out credentials: those of src/net/address.rs. Azure's name server
            // has the address of its other services.
            "\nIPAddressDeny=169.254.0.0/16 fe80::/10 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254\n",
        ] {
            assert!(unit_text.contains(needed), "{name}: {needed}");
        }
        let security = Command::new("systemd-analyze")
            .args(["security", "--no-pager", "--offline=yes", "--threshold=20"])
            .arg(unit(name))
            .output()
            .unwrap();
        assert!(security.status.success(), "{name}: {}", String::from_utf8_lossy(&security.stdout));
    }
}

/// A command that gets a socket as from systemd: as descriptor 3, with variables that name this process.
fn activated(socket: OwnedFd, start: Start) -> (Command, std::sync::Arc<tempfile::TempDir>) {
    let passing =
        "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1; export LISTEN_PID LISTEN_FDS; exec \"$@\"";
    let start = start.wrapped(&["sh", "-c", passing, "sh"]).arguments(&["--http", "systemd"]);
    let (mut command, directory) = start.command();
    command.stdin(Stdio::from(socket));
    (command, directory)
}

#[test]
fn the_socket_of_systemd_outlives_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for number in 0..2 {
        // Sent before there is a server: the request waits in the queue of the socket.
        let waiting = std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
            std::io::read_to_string(stream).unwrap()
        });
        let (mut command, directory) = activated(listener.try_clone().unwrap().into(), Start::new());
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        assert!(waiting.join().unwrap().starts_with("HTTP/1.1 200 OK"), "{number}");
        let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        assert!(wait_for_end(&mut child, WATCHDOG).success());
        let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        assert!(said.contains(&format!("listening on http://{address}/mcp")), "{said}");
        drop(directory);
    }
}

/// The message of a command that must not start a server.
#[track_caller]
fn refused(mut command: Command) -> String {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = wait_for_end(&mut child, WATCHDOG);
    assert_eq!(status.code(), Some(2));
    std::io::read_to_string(child.stderr.take().unwrap()).unwrap()
}

#[test]
fn a_socket_that_is_none_is_refused() {
    let (mut command, _directory) = Start::new().arguments(&["--http", "systemd"]).command();
    command.stdin(Stdio::null());
    let said = refused(command);
    assert!(said.contains("expected one socket in LISTEN_FDS, found 0"), "{said}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connection = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (command, _directory) = activated(connection.into(), Start::new());
    let said = refused(command);
    assert!(said.contains("does not listen"), "{said}");
    // An address that others can reach needs a token here too.
    let open = TcpListener::bind("0.0.0.0:0").unwrap();
    let (command, _directory) = activated(open.into(), Start::new());
    refused(command);
}

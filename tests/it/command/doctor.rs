//! `cx doctor`: each kind of problem is reported once, with its remedy, and a healthy machine has none.

mod stored;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use cx::ProviderKind;
use serde_json::{Value, json};

use super::home::Home;
use crate::support::chaos::entry;
use crate::support::interop::script;
use crate::support::provider::{FakeProvider, KEY, Reply};
use crate::support::python_cache;

impl Home {
    fn doctor(&self, arguments: &[&str]) -> Examined {
        Examined::new(command(self, &[&["doctor", "--json"], arguments].concat()).output().unwrap())
    }
}

fn with_config(config: &Value) -> Home {
    let home = Home::new();
    home.configure(config);
    home
}

/// The command, with a cache in which Python is unpacked once for all tests.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env("XDG_CACHE_HOME", python_cache());
    command
}

/// A report, with the exit status.
struct Examined {
    report: Value,
    status: i32,
}

impl Examined {
    fn new(output: Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let report = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
        let status = output.status.code().unwrap();
        let examined = Self { report, status };
        assert_eq!(examined.report["ok"], status == 0, "{}", examined.report);
        assert_eq!(examined.report["problems"], examined.all("problem").len(), "{}", examined.report);
        assert_eq!(examined.report["warnings"], examined.all("warning").len(), "{}", examined.report);
        for check in examined.all("problem").iter().chain(&examined.all("warning")) {
            let hint = check["hint"].as_str().unwrap();
            assert!(!hint.is_empty() && !hint.contains('\n'), "{check}");
        }
        examined
    }

    fn all(&self, status: &str) -> Vec<&Value> {
        self.report["checks"].as_array().unwrap().iter().filter(|check| check["status"] == status).collect()
    }

    /// The checks of a section.
    fn section(&self, section: &str) -> Vec<&Value> {
        let checks = self.report["checks"].as_array().unwrap().iter();
        checks.filter(|check| check["section"] == section).collect()
    }

    /// Asserts that there is a check with this status, and that its message and its remedy contain these texts.
    fn has(&self, status: &str, section: &str, message: &str, hint: &str) -> &Value {
        let is_it = |check: &&&Value| {
            check["status"] == status
                && check["message"].as_str().unwrap().contains(message)
                && check["hint"].as_str().unwrap_or_default().contains(hint)
        };
        let found = self.section(section).into_iter().find(|check| is_it(&check));
        found.unwrap_or_else(|| panic!("no {status} in {section} with `{message}`: {:#}", self.report))
    }
}

#[test]
fn a_machine_that_is_well_has_no_problems() {
    let home = with_config(&json!({ "mcpServers": { "well": entry(&["well"]) } }));
    let cx = env!("CARGO_BIN_EXE_cx");
    home.write(
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "cx": { "command": cx, "args": ["serve"] } } }).to_string(),
    );
    let well = home.doctor(&[]);
    assert_eq!((well.status, &well.report["problems"], &well.report["warnings"]), (0, &json!(0), &json!(0)));
    let engines = well.section("engines");
    assert!(engines.iter().all(|engine| engine["details"]["firstScriptMs"].as_f64().unwrap() > 0.0));
    assert_eq!(engines[0]["details"]["v8"], cx::Versions::of_this_build().v8.unwrap());
    // The interpreter's own message.
    assert_eq!(engines[1]["details"]["cpython"], cx::Versions::of_this_build().python.unwrap());
    let server = well.has("ok", "servers", "8 tools, MCP ", "");
    for time in ["startMs", "handshakeMs", "listMs"] {
        assert!(server["details"][time].as_f64().unwrap() > 0.0, "{server}");
    }
    well.has("ok", "clients", "starts cx", "");
    let memory = well.has("ok", "machine", "all scripts together have", "");
    assert!(memory["details"]["totalBytes"].as_u64().unwrap() > 0 && memory["details"]["source"].is_string());
    assert!(well.section("machine")[1]["details"]["processors"].as_u64().unwrap() > 0);
    assert_eq!(well.section("sandbox features of the kernel").len(), 5);
    well.has("ok", "audit trail", "off", "");
    well.has("ok", "language model", "none is configured", "");
    // No answer of a server is kept, and nothing was pinned.
    let state = fs::read_dir(home.path(".local/state/cx")).unwrap().flatten();
    let names: Vec<String> = state.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("pins-")), "{names:?}");
}

#[test]
fn what_confines_worker_processes_is_said() {
    for (isolation, said) in
        [("process", "configured; everything"), ("in-process", "not configured; everything")]
    {
        let home = with_config(&json!({ "isolation": { "mode": isolation } }));
        home.doctor(&["--offline"]).has("ok", "sandbox features of the kernel", said, "");
    }
}

/// A filter of system calls simulates a kernel without Landlock.
#[test]
fn a_kernel_without_landlock_is_reported_and_what_requires_it_does_not_start() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes/seccomp.json");
    let mut profile: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let names = profile["syscalls"][0]["names"].as_array_mut().unwrap();
    names.retain(|name| !name.as_str().unwrap().starts_with("landlock_"));
    let there = |isolation: Value, arguments: &[&str]| {
        let home = with_config(&json!({ "isolation": isolation }));
        home.write("profile.json", &profile.to_string());
        Command::new("python3")
            .arg(script("schemas/with_seccomp.py"))
            .arg(home.path("profile.json"))
            .arg(env!("CARGO_BIN_EXE_cx"))
            .args(arguments)
            .current_dir(home.0.path())
            .env_clear()
            .env("HOME", home.0.path())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("XDG_CACHE_HOME", python_cache())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let doctor = there(json!({ "mode": "process" }), &["doctor", "--json", "--offline"]);
    if doctor.status.code() == Some(77) {
        return skipped("there is no libseccomp.so.2 on this machine");
    }
    let doctor = Examined::new(doctor);
    let lacks = "configured; this kernel lacks what confines them: Landlock";
    let check = doctor.has("warning", "sandbox features of the kernel", lacks, "5.13 or later with Landlock");
    assert_eq!(check["details"]["missing"], json!(["Landlock"]));
    let run = ["run", "-e", "return 1 + 1"];
    let weaker = there(json!({ "mode": "process" }), &run);
    assert_eq!(String::from_utf8_lossy(&weaker.stdout), "2\n", "{weaker:?}");
    let refused = there(json!({ "mode": "process", "require": true }), &run);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("this kernel lacks what confines worker processes: Landlock"), "{said}");
}

#[expect(clippy::print_stderr, reason = "the user has to know what was not tested")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn the_report_is_for_people_and_has_colors_where_they_are_wanted() {
    let home = with_config(&json!({ "mcpServers": { "gone": { "command": "no-such-program" } } }));
    let output = command(&home, &["doctor"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(!text.contains('\u{1b}') && output.stderr.is_empty(), "{text:?}");
    assert!(
        text.contains("\nservers\n  problem  gone: ")
            && text.contains("\n           -> install `no-such-program`")
    );
    assert!(text.ends_with("1 problem\n"), "{text}");
    let output = command(&home, &["doctor", "--offline"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\u{1b}[32mok"));
    let output = command(&home, &["doctor", "--offline"])
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains('\u{1b}'));
}

#[test]
fn each_server_that_fails_says_why_and_what_to_do() {
    let home = with_config(&json!({ "mcpServers": {
        "gone": { "command": "no-such-program" },
        "dies": { "command": "sh", "args": ["-c", "echo Traceback: no such database >&2; exit 1"] },
        "silent": { "command": "sleep", "args": ["60"], "connectTimeoutMs": 300 },
        "far": { "url": "http://127.0.0.1:1/mcp" },
        "well": entry(&["well"]),
    } }));
    let ill = home.doctor(&[]);
    assert_eq!(ill.status, 1);
    ill.has(
        "problem",
        "servers",
        "cannot be started",
        "install `no-such-program`, or correct `command` of `gone`",
    );
    ill.has("problem", "servers", "Traceback: no such database", "start it by hand");
    let silent = ill.has("problem", "servers", "did not answer", "set `connectTimeoutMs` of `silent`");
    assert!(silent["details"]["failedAfterMs"].as_f64().unwrap() >= 290.0, "{silent}");
    assert!(silent["hint"].as_str().unwrap().contains("config.json"), "{silent}");
    ill.has("problem", "servers", "", "check `url` and `headers` of `far`");
    ill.has("ok", "servers", "8 tools", "");
    // With `--offline` no server is started.
    let offline = home.doctor(&["--offline"]);
    assert_eq!(offline.status, 0);
    assert!(offline.section("servers").iter().all(|server| server["status"] == "skipped"));
    let empty = Home::new().doctor(&[]);
    empty.has("warning", "servers", "no server is configured", "cx setup");
}

#[test]
fn a_server_that_wants_a_sign_in_and_tokens_that_cannot_be_used() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = stream.read(&mut request);
            let _ = stream
                .write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            // What may still come of the request is read: a close before it would reset the connection, and the answer
            // could be lost.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let url = format!("http://127.0.0.1:{port}/mcp");
    let home = with_config(&json!({ "mcpServers": { "issues": { "url": url } } }));
    let ill = home.doctor(&[]);
    ill.has("problem", "servers", "requires signing in", "cx auth login issues");
    assert!(ill.section("sign-ins").is_empty(), "{:#}", ill.report);
    // A damaged file of tokens, with the name under which signing in would write it.
    let server = cx::McpServer::http("issues", url.parse().unwrap());
    let tokens = home.path(".local/state/cx/tokens");
    fs::create_dir_all(&tokens).unwrap();
    for path in [".local", ".local/state", ".local/state/cx", ".local/state/cx/tokens"] {
        fs::set_permissions(home.path(path), fs::Permissions::from_mode(0o700)).unwrap();
    }
    let file = tokens.join(format!("{}.json", server.identity()));
    fs::write(&file, "{").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let ill = home.doctor(&["--offline"]);
    assert_eq!(ill.status, 1);
    ill.has("problem", "sign-ins", "what is stored is damaged", "cx auth login issues");
    let status = command(&home, &["auth", "status", "issues"]).output().unwrap();
    assert_eq!(status.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&status.stdout).contains("cannot be used; sign in again"));
    // Of all servers over HTTP.
    let status = command(&home, &["auth", "status"]).output().unwrap();
    assert_eq!(status.status.code(), Some(1));
    let all = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(all, "issues: the stored sign-in cannot be used; sign in again\n");
    let servers = json!({
        "files": { "command": "x" },
        "mail": { "url": url, "headers": { "authorization": "Bearer secret" } },
    });
    home.write(".config/cx/config.json", &json!({ "mcpServers": servers }).to_string());
    let status = command(&home, &["auth", "status"]).output().unwrap();
    assert_eq!(status.status.code(), Some(0));
    let all = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(all, "mail: has an `Authorization` header in the configuration\n");
    // Why a server is not there is said.
    home.write(".mcp.json", &json!({ "mcpServers": { "other": { "url": url } } }).to_string());
    for arguments in [&["auth", "status"][..], &["auth", "status", "other"]] {
        let said = command(&home, arguments).output().unwrap().stderr;
        assert!(String::from_utf8_lossy(&said).contains("warning[config_untrusted]"), "{arguments:?}");
    }
}

#[test]
fn configuration_that_is_wrong_ignored_or_not_trusted() {
    let home = Home::new();
    home.write(".config/cx/config.json", "{ \"mcpServers\": ");
    let ill = home.doctor(&["--offline", "--ask-model"]);
    assert_eq!(ill.status, 1);
    ill.has("problem", "configuration", "config.json", "");
    // The other checks are made nevertheless.
    assert_eq!(ill.section("engines").len(), 2);
    for unknown in ["servers", "caches", "audit trail", "language model"] {
        ill.has("skipped", unknown, "the configuration cannot be used", "");
        assert_eq!(ill.section(unknown).len(), 1);
    }
    ill.has("ok", "sandbox features of the kernel", "not known whether they are configured", "");

    // A line for each check, however many mistakes a file has.
    home.write(".config/cx/config.json", r#"{"mcpServer": {}, "limits": {"timeoutMs": 0}}"#);
    let ill = home.doctor(&["--offline"]);
    let check =
        ill.has("problem", "configuration", "`mcpServer`: unknown key; ", "did you mean `mcpServers`?");
    let message = check["message"].as_str().unwrap();
    assert!(message.contains("`limits.timeoutMs`: expected ") && !message.contains('\n'), "{message}");

    home.write(".config/cx/config.json", &json!({
        "mcpServers": { "well": entry(&["well"]), "odd": { "command": "x", "env": { "LD_PRELOAD": "x.so" } } },
        "deny": ["absent.delete_*"],
        "limits": { "timeoutMs": 1000 },
    }).to_string());
    home.write(".mcp.json", &json!({ "mcpServers": { "of_the_workspace": { "command": "x" } } }).to_string());
    let ill = home.doctor(&["--offline"]);
    assert_eq!(ill.status, 0, "{:#}", ill.report);
    ill.has("warning", "configuration", "", "cx trust");
    ill.has("warning", "configuration", "`absent.delete_*` of `deny` matches nothing", "correct the pattern");
    ill.has("warning", "configuration", "LD_PRELOAD", "");
    ill.has("ok", "configuration", "used (user)", "");

    home.write(
        ".config/cx/config.json",
        &json!({
            "mcpServers": { "needs": { "command": "x", "env": { "TOKEN": "${NOT_SET_ANYWHERE}" } } },
        })
        .to_string(),
    );
    let ill = home.doctor(&["--offline"]);
    assert!(ill.report["problems"].as_u64().unwrap() + ill.report["warnings"].as_u64().unwrap() > 0);
    assert!(ill.report.to_string().contains("NOT_SET_ANYWHERE"), "{:#}", ill.report);

    home.write(".config/cx/config.json", "{}");
    home.write(".local/state/cx/trust.json", "{}");
    fs::set_permissions(home.path(".local/state/cx/trust.json"), fs::Permissions::from_mode(0o666)).unwrap();
    home.doctor(&["--offline"]).has(
        "problem",
        "configuration",
        "the list cannot be read",
        "remove `trust.json`",
    );
}

#[test]
fn limits_of_the_process_that_are_too_small() {
    let home = Home::new();
    let limited = |limit: &str| {
        let script = format!("ulimit {limit} && exec \"$0\" doctor --json --offline");
        let mut command = command(&home, &[]);
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_cx")]).current_dir(home.0.path()).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let _ = command.stdin(Stdio::null());
        Examined::new(shell.output().unwrap())
    };
    // Enough for Python, and not for V8. On this machine they need some 440,000 and 640,000, which includes the memory
    // of the process itself: that differs between machines.
    let ill = limited("-d 560000");
    ill.has("problem", "engines", "`ulimit -d`", "docs/limits.md");
    assert_eq!(ill.has("ok", "engines", "CPython", "")["name"], "Python");
    let ill = limited("-n 20");
    ill.has("problem", "machine", "`ulimit -n`", "docs/limits.md");
    let ill = limited("-n 60");
    ill.has("warning", "machine", "enough for one script", "--max-runs");
    let little = with_config(&json!({ "totalMemoryBytes": 134_217_728 }));
    little.doctor(&["--offline"]).has(
        "warning",
        "machine",
        "one script of 128 MiB at a time",
        "totalMemoryBytes",
    );
}

#[test]
fn clients_that_do_not_start_cx_or_start_another_one() {
    let home = Home::new();
    home.write(".cursor/mcp.json", &json!({ "mcpServers": { "files": { "command": "files" } } }).to_string());
    home.doctor(&["--offline"]).has("warning", "clients", "does not start cx", "cx setup");
    let gone = json!({ "mcpServers": { "cx": { "command": "/nowhere/cx", "args": ["serve"] } } });
    home.write(".cursor/mcp.json", &gone.to_string());
    home.doctor(&["--offline"]).has(
        "problem",
        "clients",
        "/nowhere/cx as cx, which is not a program",
        "correct the `command`",
    );
    home.write(".cursor/mcp.json", "{broken");
    home.doctor(&["--offline"]).has("problem", "clients", "cannot be read", "correct ~/.cursor/mcp.json");
}

#[test]
fn the_language_model_is_asked_only_when_told_to() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_asked| Reply::Text("ok".to_owned()));
    let llm = json!({ "provider": "openai", "model": "m", "url": provider.url(), "apiKey": KEY });
    let home = with_config(&json!({ "llm": llm }));
    let well = home.doctor(&["--offline"]);
    well.has("ok", "language model", "openai, model m", "");
    assert!(provider.asked().is_empty());
    let well = home.doctor(&["--offline", "--ask-model"]);
    well.has("ok", "language model", "it answered after", "");
    assert_eq!(provider.asked().len(), 1);
    assert!(!well.report.to_string().contains(KEY));
    let llm = json!({ "provider": "openai", "model": "m", "url": provider.url(), "apiKey": "wrong" });
    let ill = with_config(&json!({ "llm": llm })).doctor(&["--offline", "--ask-model"]);
    ill.has("problem", "language model", "MODEL_", "docs/llm.md");
    let ill = with_config(&json!({ "llm": { "provider": "openai", "model": "m" } })).doctor(&["--offline"]);
    ill.has("problem", "language model", "has no key", "set OPENAI_API_KEY");
}

#[test]
fn the_version_is_one_line_with_those_of_the_engines() {
    let home = Home::new();
    let output = command(&home, &["--version"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let versions = cx::Versions::of_this_build();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with(&format!("cx {} (V8 ", env!("CARGO_PKG_VERSION"))), "{text}");
    for version in [versions.v8, versions.python, versions.wasmtime] {
        assert!(text.contains(version.unwrap()), "{text}");
    }
    assert!(text.contains("MCP 2026-07-28 2025-11-25"), "{text}");
    assert_eq!(command(&home, &["-V"]).output().unwrap().stdout, format!("cx {}\n", versions.cx).as_bytes());
    // wasmtime does not export its version, so the test takes it from the lock file.
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).unwrap();
    let wasmtime = format!("name = \"wasmtime\"\nversion = \"{}\"\n", versions.wasmtime.unwrap());
    assert!(lock.contains(&wasmtime), "{wasmtime}");
}

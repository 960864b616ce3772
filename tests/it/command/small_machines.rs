//! The command where the system grants little: each limit either leads to an error that says what is needed, or has no
//! effect.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::python_cache;
use crate::support::serve::Start;
use crate::support::serve_http::wait_for;

const CX: &str = env!("CARGO_BIN_EXE_cx");

/// The languages, each with a script whose value is 2.
const LANGUAGES: [&str; 2] = ["ts", "py"];

#[expect(clippy::print_stderr, reason = "a machine on which something cannot be tested says so")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Executes its arguments under a limit of `ulimit`.
fn limited(limit: &str) -> Vec<String> {
    ["bash", "-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")].map(str::to_owned).to_vec()
}

/// Executes the command with arguments, started by a program that sets the limit.
fn cx_under(wrapper: &[String], home: &Path, arguments: &[&str]) -> Output {
    let words: Vec<&str> =
        wrapper.iter().map(String::as_str).chain([CX]).chain(arguments.iter().copied()).collect();
    Command::new(words[0])
        .args(&words[1..])
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_STATE_HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("XDG_CACHE_HOME", python_cache())
        .env_remove("CX_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The outcome of a limited command: it ran, or said what is needed. Nothing else is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ran,
    Refused,
}

/// `says` is in the error of a command that did not run.
fn outcome(what: &str, output: &Output, says: &str) -> Outcome {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for crash in ["panicked", "Fatal", "fatal", "overflow", "backtrace", "Aborted", "dumped"] {
        assert!(!stderr.contains(crash), "{what}: {:?}: {stderr}", output.status);
    }
    match output.status.code() {
        Some(0) => {
            assert_eq!(stdout, "2\n", "{what}: {stderr}");
            Outcome::Ran
        }
        Some(2) => {
            assert!(stderr.contains("error: ") && stderr.contains(says), "{what}: {stderr}");
            assert_eq!(stdout, "", "{what}");
            Outcome::Refused
        }
        _ => panic!("{what}: {:?}: {stdout}{stderr}", output.status),
    }
}

fn run_limited(language: &str, limit: &str, says: &str) -> Outcome {
    let home = tempfile::tempdir().unwrap();
    let output =
        cx_under(&limited(limit), home.path(), &["run", "--lang", language, "-e", expression(language)]);
    outcome(&format!("{language} under `ulimit {limit}`"), &output, says)
}

fn expression(language: &str) -> &'static str {
    if language == "ts" { "return 1 + 1" } else { "1 + 1" }
}

/// The first value of a limit at which the language runs; it runs at all larger ones.
fn first_that_runs(language: &str, option: &str, values: &[u64], says: &str) -> u64 {
    let outcomes: Vec<Outcome> =
        values.iter().map(|value| run_limited(language, &format!("{option} {value}"), says)).collect();
    let first = outcomes.iter().position(|outcome| *outcome == Outcome::Ran).expect("it runs with the most");
    let later = &outcomes[first..];
    assert!(later.iter().all(|outcome| *outcome == Outcome::Ran), "{language} {option}: {outcomes:?}");
    values[first]
}

/// Kilobytes of address space that the program needs before it can do anything. The kernel, the dynamic
/// linker and, just above, the start of Rust's runtime (the signal stack of the first thread) end what has less.
fn kilobytes_to_start() -> u64 {
    let home = tempfile::tempdir().unwrap();
    let starts = |kilobytes: &u64| {
        let output = cx_under(&limited(&format!("-v {kilobytes}")), home.path(), &["--version"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_before_main = stderr.contains("failed to allocate an alternative stack");
        let has_crashed = stderr.contains("panicked") || stderr.contains("atal");
        assert!(is_before_main || !has_crashed, "{kilobytes}: {stderr}");
        output.status.code().is_some_and(|code| [0, 2].contains(&code))
    };
    (10_000..1_000_000).step_by(10_000).find(starts).expect("it starts with a gigabyte")
}

/// From what the program itself needs, up to more than it ever needs.
#[test]
fn little_address_space_is_an_error_that_says_how_much_is_needed() {
    let start = kilobytes_to_start();
    let mut values: Vec<u64> = (0..20).map(|step| start + step * 3_000).collect();
    values.extend([start + 100_000, start + 200_000, start + 400_000, start + 700_000]);
    values.extend([2, 4, 8, 16, 32, 36, 40, 48, 52, 64].map(|gigabytes| gigabytes << 20));
    // V8 reserves 48 GiB, of which it keeps 16.
    let typescript = first_that_runs("ts", "-v", &values, "`ulimit -v");
    assert_eq!(typescript, 52 << 20);
    let python = first_that_runs("py", "-v", &values, "`ulimit -v");
    assert!(python <= 2 << 20, "{python}");
}

#[test]
fn little_private_memory_is_an_error_that_says_how_much_is_needed() {
    let values =
        [10_000, 50_000, 70_000, 100_000, 150_000, 200_000, 300_000, 400_000, 600_000, 800_000, 2_000_000];
    for language in LANGUAGES {
        first_that_runs(language, "-d", &values, "`ulimit -d`");
    }
}

#[test]
fn few_descriptors_are_an_error_that_says_how_many_are_needed() {
    let values: Vec<u64> = (4..48).step_by(2).collect();
    for language in LANGUAGES {
        let first = first_that_runs(language, "-n", &values, "file descriptors are needed");
        assert!(first > 16, "{language}: {first}");
    }
    let home = tempfile::tempdir().unwrap();
    for count in [4, 8, 16, 24] {
        let output = cx_under(&limited(&format!("-n {count}")), home.path(), &["serve"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{count}: {stderr}");
        assert_eq!(output.status.code(), Some(2), "{count}: {stderr}");
        assert!(stderr.contains("(`ulimit -n`, here "), "{count}: {stderr}");
    }
    let output = cx_under(&limited("-n 256"), home.path(), &["serve"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_small_stack_is_an_error_or_none() {
    let values = [64, 100, 128, 200, 256, 300, 400, 511, 512, 600, 1024, 2048, 7000, 8192];
    assert_eq!(first_that_runs("ts", "-s", &values, "raise it with `ulimit -s 8192`"), 512);
    // Python has its own stacks.
    assert_eq!(first_that_runs("py", "-s", &values, "`ulimit -s"), 64);
}

/// Executes its arguments as a user who may have `threads` threads. For root there is no such limit, so root becomes
/// another user, and the program is mounted where that user can reach it. `None` where that cannot be done.
fn limited_threads(directory: &Path, threads: usize) -> Option<Vec<String>> {
    if !rustix::process::getuid().is_root() {
        // Other threads of this user count too.
        let others =
            Command::new("sh").args(["-c", "ps -L --no-headers -u $(id -u) | wc -l"]).output().unwrap();
        let others: usize = String::from_utf8_lossy(&others.stdout).trim().parse().ok()?;
        return Some(limited(&format!("-u {}", others + threads)));
    }
    let program = directory.join("cx");
    fs::write(&program, "").unwrap();
    // A user with no other process: these would count too.
    let user = 500_000 + std::process::id();
    let script = format!(
        "mount --bind \"$0\" {program} && shift 0 && HOME={home} XDG_CACHE_HOME={home} exec setpriv --reuid={user} \
         --regid={user} --clear-groups bash -c 'ulimit -u {threads} && exec \"$0\" \"$@\"' {program} \"$@\"",
        program = program.display(),
        home = directory.display(),
    );
    let works =
        Command::new("unshare").args(["-m", "setpriv", "--reuid=65534", "--clear-groups", "true"]).status();
    works
        .is_ok_and(|status| status.success())
        .then(|| ["unshare", "-m", "bash", "-c", &script].map(str::to_owned).to_vec())
}

#[test]
fn few_threads_are_an_error_that_says_how_many_are_needed() {
    use std::os::unix::fs::PermissionsExt as _;

    for language in LANGUAGES {
        let mut outcomes = Vec::new();
        for threads in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 40] {
            let directory = tempfile::tempdir().unwrap();
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
            let Some(wrapper) = limited_threads(directory.path(), threads) else {
                skip("there is no other user to become");
                return;
            };
            let arguments = ["run", "--lang", language, "-e", expression(language)];
            let output = cx_under(&wrapper, directory.path(), &arguments);
            outcomes.push(outcome(
                &format!("{language} with {threads} threads"),
                &output,
                "threads are needed",
            ));
        }
        assert_eq!(outcomes.first(), Some(&Outcome::Refused), "{language}: {outcomes:?}");
        assert_eq!(outcomes.last(), Some(&Outcome::Ran), "{language}: {outcomes:?}");
    }
}

/// Executes its arguments where memory cannot be made executable. `None` if this kernel does not support that.
fn without_executable_memory() -> Option<Vec<String>> {
    // PR_SET_MDWE and PR_MDWE_REFUSE_EXEC_GAIN, of Linux 6.3.
    let script = "import ctypes, os, sys\n\
                  if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): sys.exit(77)\n\
                  os.execv(sys.argv[1], sys.argv[1:])";
    let wrapper = ["python3", "-c", script].map(str::to_owned).to_vec();
    let works = Command::new("python3").args(["-c", script, "/bin/true"]).status();
    works.is_ok_and(|status| status.success()).then_some(wrapper)
}

#[test]
fn memory_that_cannot_be_executed_is_an_error_that_says_so() {
    let Some(wrapper) = without_executable_memory() else {
        skip("this kernel has no PR_SET_MDWE, or there is no python3");
        return;
    };
    for language in LANGUAGES {
        let home = tempfile::tempdir().unwrap();
        let output =
            cx_under(&wrapper, home.path(), &["run", "--lang", language, "-e", expression(language)]);
        let says = "MemoryDenyWriteExecute";
        assert_eq!(outcome(language, &output, says), Outcome::Refused);
    }
    // Commands without an engine need none.
    let home = tempfile::tempdir().unwrap();
    assert!(cx_under(&wrapper, home.path(), &["config", "schema"]).status.success());
}

fn words(wrapper: &[String]) -> Vec<&str> {
    wrapper.iter().map(String::as_str).collect()
}

/// An engine that does not start does not end the server: the answer says why, and the other language works.
#[test]
fn a_server_says_which_engine_does_not_start() {
    let wrapper = limited("-v 4000000");
    let mut client = Start::new().wrapped(&words(&wrapper)).spawn().shaken();
    let failed = client.run("return 1");
    assert_eq!(failed["error"]["code"], "ENGINE_UNAVAILABLE", "{failed}");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("of address space are needed") && message.contains("`ulimit -v"), "{failed}");
    let hint = failed["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("raise that limit") && hint.contains("other language"), "{failed}");
    let python = client.call("executePython", json!({ "code": "1 + 1", "timeoutMs": 100_000 }));
    assert_eq!(python["structuredContent"]["value"], 2, "{python}");
    let health = client.health();
    assert_eq!(health["healthy"], false, "{health}");
    assert!(health["engines"]["typescript"]["error"].as_str().unwrap().contains("ulimit -v"), "{health}");
    assert_eq!(health["engines"]["python"].get("error"), None, "{health}");
    assert_eq!(health["memory"], json!({ "totalBytes": 4_000_000_u64 * 1024 / 2, "source": "RLIMIT_AS" }));
    client.end();
}

#[test]
fn a_server_without_executable_memory_answers() {
    let Some(wrapper) = without_executable_memory() else {
        skip("this kernel has no PR_SET_MDWE, or there is no python3");
        return;
    };
    let mut client = Start::new().wrapped(&words(&wrapper)).spawn().shaken();
    for tool in ["executeTypescript", "executePython"] {
        let answer = client.call(tool, json!({ "code": "1" }));
        let error = &answer["structuredContent"]["error"];
        assert_eq!(error["code"], "ENGINE_UNAVAILABLE", "{answer}");
        assert!(error["message"].as_str().unwrap().contains("MemoryDenyWriteExecute"), "{answer}");
    }
    client.end();
}

/// The memory of all runs follows resource limits, the option and the configuration.
#[test]
fn health_says_how_much_memory_there_is_for_scripts_and_why() {
    let memory = |start: Start| {
        let mut client = start.spawn().shaken();
        let memory = client.health()["memory"].clone();
        client.end();
        memory
    };
    let option = || Start::new().arguments(&["--total-memory", "256MiB"]);
    assert_eq!(memory(option()), json!({ "totalBytes": 256 << 20, "source": "option" }));
    let configured = || Start::new().config("totalMemoryBytes", json!(384 << 20));
    assert_eq!(memory(configured()), json!({ "totalBytes": 384 << 20, "source": "option" }));
    let both = configured().arguments(&["--total-memory", "256MiB"]);
    assert_eq!(memory(both), json!({ "totalBytes": 256 << 20, "source": "option" }));
    let wrapper = limited("-d 1048576");
    let limited = Start::new().wrapped(&words(&wrapper));
    assert_eq!(memory(limited), json!({ "totalBytes": 512 << 20, "source": "RLIMIT_DATA" }));
    let unlimited = memory(Start::new());
    let source = unlimited["source"].as_str().unwrap();
    assert!(["machine", "cgroup"].contains(&source), "{unlimited}");
    assert!(unlimited["totalBytes"].as_u64().unwrap() >= 128 << 20, "{unlimited}");
}

/// The file with the memory limit of this process's own control group, if it has one.
fn own_limit_file() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = |prefix: &str| {
        Some(groups.lines().find_map(|line| line.split_once(prefix))?.1.trim_start_matches('/'))
    };
    let v1 = path(":memory:")
        .map(|path| Path::new("/sys/fs/cgroup/memory").join(path).join("memory.limit_in_bytes"));
    let v2 = path("0::").map(|path| Path::new("/sys/fs/cgroup").join(path).join("memory.max"));
    [v1, v2].into_iter().flatten().find(|file| file.exists())
}

/// In a container of a gigabyte: only the child sees a control group with that limit in place of this process's own.
#[test]
fn the_limit_of_a_container_is_what_scripts_share() {
    let is_root = rustix::process::getuid().is_root();
    let unshare = if is_root { "-m" } else { "-rm" };
    let directory = tempfile::tempdir().unwrap();
    let fake = directory.path().join("limit");
    let Some(file) = own_limit_file() else {
        skip("this process has no control group with a limit of memory");
        return;
    };
    let script = format!("mount --bind {} {} && exec \"$0\" \"$@\"", fake.display(), file.display());
    let wrapper = ["unshare", unshare, "bash", "-c", &script].map(str::to_owned).to_vec();
    fs::write(&fake, "1073741824\n").unwrap();
    let works = Command::new(&wrapper[0]).args(&wrapper[1..]).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        skip("a namespace of mounts cannot be made here");
        return;
    }
    let memory = |limit: &str| {
        fs::write(&fake, limit).unwrap();
        let mut client = Start::new().wrapped(&words(&wrapper)).spawn().shaken();
        assert_eq!(client.run("return 1 + 1")["value"], 2);
        let memory = client.health()["memory"].clone();
        client.end();
        memory
    };
    assert_eq!(memory("1073741824\n"), json!({ "totalBytes": 512 << 20, "source": "cgroup" }));
    // More scripts than fit, each with almost as much memory as it may use. In a container of this size the kernel
    // would end a server that ran all of them at once.
    fs::write(&fake, "1073741824\n").unwrap();
    let mut client = Start::new().wrapped(&words(&wrapper)).spawn().shaken();
    let code = "const bytes = new Uint8Array(100 << 20).fill(1);
                await new Promise((done) => setTimeout(done, 700));
                return bytes[bytes.length - 1]";
    let calls: Vec<Value> =
        (0..14).map(|_| client.begin_call("executeTypescript", json!({ "code": code }))).collect();
    for call in &calls {
        let answer = client.answer(call);
        assert_eq!(answer["result"]["structuredContent"]["value"], 1, "{answer}");
    }
    assert!(client.peak_bytes() < 900 << 20, "{} bytes", client.peak_bytes());
    client.end();
    // Scripts run one after the other where there is not memory for two.
    assert_eq!(memory("134217728\n"), json!({ "totalBytes": 128 << 20, "source": "cgroup" }));
    assert_ne!(memory("max\n")["source"], "cgroup");
}

/// A directory of control groups for processors, removed in the end.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _gone = fs::remove_dir(&self.0);
    }
}

/// The quota of a container decides, not the machine's processors: V8 starts a thread for each.
#[test]
fn a_quota_of_processors_is_what_engines_count() {
    let group = Group(PathBuf::from(format!("/sys/fs/cgroup/cpu/cx-test-{}", std::process::id())));
    let file = |name: &str, text: &str| fs::write(group.0.join(name), text);
    let is_made = fs::create_dir(&group.0).is_ok()
        && file("cpu.cfs_period_us", "100000").is_ok()
        && file("cpu.cfs_quota_us", "100000").is_ok();
    let cores = fs::read_to_string("/proc/cpuinfo").unwrap_or_default().matches("processor\t").count();
    if !is_made || cores < 2 {
        skip("control groups of version 1 cannot be made here, or there is one processor");
        return;
    }
    let check = |wrapper: &[&str], expected: usize| {
        let mut client = Start::new().wrapped(wrapper).spawn().shaken();
        assert_eq!(client.run("return 1 + 1")["value"], 2);
        let count = || {
            let tasks = fs::read_dir(format!("/proc/{}/task", client.process())).unwrap();
            let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
            names.filter(|name| name.starts_with("V8 DefaultWorke")).count()
        };
        // Threads name themselves when they begin.
        wait_for(|| (count() == expected).then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(count(), expected);
        client.end();
    };
    let script = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.0.display());
    check(&["bash", "-c", &script], 1);
    check(&["env"], cores.min(4));
}

/// `ulimit -f`: what is written beyond it is an error of the write.
#[test]
fn a_limit_on_files_is_an_error_of_what_writes_them() {
    let home = tempfile::tempdir().unwrap();
    let source = "
        const codes = [];
        for (const size of [10, 900000, 10]) {
            try { await state.set('key', 'x'.repeat(size)); codes.push('ok') }
            catch (error) { codes.push(error.code + ': ' + error.message) }
        }
        return codes";
    // Kilobytes: the empty database fits, and a large value does not.
    let output = cx_under(&limited("-f 200"), home.path(), &["run", "-e", source]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{:?}: {stderr}", output.status);
    let codes: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&codes[0], &codes[2]), (&json!("ok"), &json!("ok")), "{codes}");
    let refused = codes[1].as_str().unwrap();
    assert!(refused.starts_with("STATE_FULL: ") && refused.contains("ulimit -f"), "{codes}");
    // Not even the empty database fits.
    let home = tempfile::tempdir().unwrap();
    let output = cx_under(&limited("-f 1"), home.path(), &["run", "-e", source]);
    assert_eq!(output.status.code(), Some(0), "{:?}", output.status);
    let codes: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        codes.as_array().unwrap().iter().all(|code| code.as_str().unwrap().starts_with("STATE_")),
        "{codes}"
    );
}

/// Python's machine code cannot be kept, and the file in memory that it needs is limited too.
#[test]
fn a_limit_on_files_ends_no_process_that_keeps_machine_code() {
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().join("cache");
    let run = |limit: &str| {
        let wrapper = limited(limit);
        let mut command = Command::new(&wrapper[0]);
        command
            .args(&wrapper[1..])
            .args([CX, "run", "--lang", "py", "-e", "1 + 1"])
            .env("XDG_CACHE_HOME", &cache);
        command.env("HOME", home.path()).current_dir(home.path()).stdin(Stdio::null()).output().unwrap()
    };
    // More than the memory image, and less than image and code together.
    assert_eq!(outcome("-f 50000", &run("-f 50000"), ""), Outcome::Ran);
    assert_eq!(outcome("-f 1000", &run("-f 1000"), "`ulimit -f unlimited`"), Outcome::Refused);
}

/// A server gets SIGXFSZ with its default action, as every program expects.
#[test]
fn a_server_does_not_inherit_what_the_command_does_with_signals() {
    let home = tempfile::tempdir().unwrap();
    let status = home.path().join("status");
    let config = home.path().join("mcp.json");
    let script = format!("cp /proc/self/status {}", status.display());
    let servers = json!({ "mcpServers": { "a": { "command": "sh", "args": ["-c", script] } } });
    fs::write(&config, servers.to_string()).unwrap();
    let config = config.to_str().unwrap();
    let source = "try { await tools.a.b({}) } catch { return 2 }";
    let output = cx_under(&["env".to_owned()], home.path(), &["run", "--mcp-config", config, "-e", source]);
    assert_eq!(outcome("a server", &output, ""), Outcome::Ran);
    let status = fs::read_to_string(&status).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    // SIGXFSZ and SIGPIPE.
    assert_eq!(ignored & (1 << (25 - 1) | 1 << (13 - 1)), 0, "{ignored:x}");
}

//! `cx sync`: what it refreshes and keeps, and what the system runs every day.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::home::Home;
use crate::support::chaos::entry;
use crate::support::serve::WATCHDOG;

impl Home {
    fn with_servers(servers: &Value) -> Self {
        let home = Self::new();
        home.configure(&json!({ "mcpServers": servers }));
        home
    }

    fn sync(&self, arguments: &[&str]) -> (String, i32) {
        shown(&self.command(&[&["sync"], arguments].concat()).output().unwrap())
    }

    fn last(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path(".local/state/cx/last-sync.json")).unwrap()).unwrap()
    }
}

fn shown(output: &Output) -> (String, i32) {
    let text =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    (text, output.status.code().unwrap())
}

#[test]
fn lists_are_refreshed_and_what_came_of_it_is_kept() {
    let home = Home::with_servers(&json!({ "well": entry(&["well"]) }));
    home.write(
        ".cursor/mcp.json",
        &json!({ "mcpServers": {
            "cx": { "command": "cx", "args": ["serve"] },
            "well": { "command": "x" },
            "new": { "command": "y" },
        } })
        .to_string(),
    );
    // The same server under another name, as `cx setup` leaves it where two clients have it.
    let codex = "[mcp_servers.cx]\ncommand = \"cx\"\nargs = [\"serve\"]\n[mcp_servers.other]\n";
    let server = entry(&["well"]);
    home.write(
        ".codex/config.toml",
        &format!("{codex}command = {}\nargs = {}\n", server["command"], server["args"]),
    );
    let (text, status) = home.sync(&[]);
    assert_eq!(status, 0, "{text}");
    assert!(!text.contains("Codex"), "{text}");
    assert!(
        text.contains("well: 8 tools") && text.contains("Cursor: not behind cx: new; `cx setup`"),
        "{text}"
    );
    let file = home.path(".local/state/cx/last-sync.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = home.last();
    assert_eq!((&first["ok"], &first["servers"][0]["tools"]), (&json!(true), &json!(8)), "{first}");
    assert_eq!(first["clients"][0]["notBehindCx"], json!(["new"]));
    let answered = first["servers"][0]["lastSuccess"].clone();
    assert!(answered.as_str().is_some_and(|time| humantime::parse_rfc3339(time).is_ok()), "{first}");
    // The lists are those that others use.
    let mut list = Command::new(env!("CARGO_BIN_EXE_cx"));
    list.args(["tools", "list"]).current_dir(home.0.path()).env_clear().env("HOME", home.0.path());
    assert!(shown(&list.output().unwrap()).0.contains("well.echo"));

    // One fails: the other is refreshed, and the time of the first one's last success is kept.
    let servers = json!({ "well": { "command": "no-such-program" }, "other": entry(&["well"]) });
    home.configure(&json!({ "mcpServers": servers }));
    let (text, status) = home.sync(&[]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("well: failed: ") && text.contains("other: 8 tools"), "{text}");
    let last = home.last();
    let of = |name: &str| {
        last["servers"].as_array().unwrap().iter().find(|server| server["name"] == name).unwrap()
    };
    assert_eq!(
        (&last["ok"], &of("well")["ok"], &of("other")["ok"]),
        (&json!(false), &json!(false), &json!(true))
    );
    assert_eq!(of("well")["lastSuccess"], answered);
    assert!(of("well")["error"].as_str().unwrap().contains("no-such-program"));

    // A configuration that cannot be read is recorded as a failure too.
    home.write(".config/cx/config.json", "{");
    let (text, status) = home.sync(&["--json"]);
    assert_eq!(status, 1, "{text}");
    assert!(home.last()["error"].as_str().unwrap().contains("config.json"));
    let printed: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(printed, home.last());
}

#[test]
fn types_are_written_only_if_they_have_changed() {
    let home = Home::with_servers(&json!({ "well": entry(&["well"]) }));
    let (text, status) = home.sync(&["--types", "types", "--lang", "ts,py,ts"]);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("wrote types/cx.d.ts") && text.contains("cx_tools.pyi"), "{text}");
    let last = home.last();
    assert_eq!(last["types"].as_array().unwrap().len(), 2, "{last}");
    let of = |index: usize| (&last["types"][index]["language"], &last["types"][index]["directory"]);
    let (typescript, python, types) = (json!("typescript"), json!("python"), json!("types"));
    assert_eq!((of(0), of(1)), ((&typescript, &types), (&python, &types)), "{last}");
    let file = home.path("types/cx.d.ts");
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().append(true).open(&file).unwrap().set_modified(long_ago).unwrap();
    let (text, _) = home.sync(&["--types", "types", "--lang", "ts"]);
    assert!(text.contains("typescript types in types: unchanged"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), long_ago);
    // No server answers and nothing is known: the old files stay.
    home.configure(&json!({ "mcpServers": { "never": { "command": "no-such-program" } } }));
    let before = fs::read(&file).unwrap();
    let (text, status) = home.sync(&["--types", "types"]);
    assert_eq!((status, fs::read(&file).unwrap()), (1, before), "{text}");
}

#[test]
fn the_second_of_two_is_told_who_holds_the_lock() {
    let home = Home::with_servers(
        &json!({ "slow": { "command": "sleep", "args": ["60"], "connectTimeoutMs": 60_000 } }),
    );
    let mut first = home.command(&["sync"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lock = home.path(".local/state/cx/sync/lock");
    let deadline = Instant::now() + WATCHDOG;
    while fs::read_to_string(&lock).unwrap_or_default().trim().is_empty() {
        assert!(Instant::now() < deadline, "the first takes the lock");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (text, status) = home.sync(&[]);
    assert_eq!(status, 1, "{text}");
    let holder = format!("another `cx sync` is running (process {}, since ", first.id());
    assert!(text.contains(&holder), "{text}");
    let printed = home.command(&["sync", "--json"]).output().unwrap().stdout;
    let printed: Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(printed["ok"], false);
    first.kill().unwrap();
    first.wait().unwrap();
    // A lock whose holder has died is free.
    home.configure(&json!({ "mcpServers": {} }));
    assert_eq!(home.sync(&[]).1, 0);
}

/// A `systemctl` that records its arguments.
fn fake_systemctl(home: &Home, exit: i32) -> String {
    home.write("bin/systemctl", &format!("#!/bin/sh\necho \"$@\" >> \"$HOME/told\"\nexit {exit}\n"));
    fs::set_permissions(home.path("bin/systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap())
}

/// The value of a key in an INI file.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key}=")));
    line.unwrap_or_else(|| panic!("no {key} in {text}"))
}

#[test]
fn systemd_runs_it_every_day_between_four_and_six() {
    let home = Home::with_servers(&json!({}));
    let path = fake_systemctl(&home, 0);
    let cx = |arguments: &[&str]| {
        shown(&home.command(&[&["sync"], arguments].concat()).env("PATH", &path).output().unwrap())
    };
    assert_eq!(cx(&["--status", "--scheduler", "systemd"]).1, 1);
    let install = ["--install", "--scheduler", "systemd", "--types", "my $types %h \"x\""];
    let (text, status) = cx(&install);
    assert_eq!(status, 0, "{text}");
    let units = home.path(".config/systemd/user");
    let read = |name: &str| fs::read_to_string(units.join(name)).unwrap();
    let timer = read("cx-sync.timer");
    let (hour, minute) = value(&timer, "OnCalendar").trim_start_matches("*-*-* ").split_once(':').unwrap();
    // The time of day follows from the path of the home, which differs from test to test.
    assert!(["04", "05"].contains(&hour) && minute.len() == "07:00".len(), "{timer}");
    // The same minute whenever it is installed.
    assert_eq!(cx(&install).1, 0);
    assert_eq!(read("cx-sync.timer"), timer);
    let service = read("cx-sync.service");
    let types = format!("\"{}/my $$types %%h \\\"x\\\"\"", home.0.path().display());
    assert!(value(&service, "ExecStart").contains(&format!("\"sync\" \"--types\" {types}")), "{service}");
    assert!(service.contains(&format!("Environment=\"PATH={path}\"")), "{service}");
    verify_with_systemd(&units);
    assert!(fs::read_to_string(home.path("told")).unwrap().contains("--user enable --now cx-sync.timer"));
    home.sync(&[]);
    let (text, status) = cx(&["--status", "--scheduler", "systemd"]);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains(&format!("every day at {hour}:")) && text.contains("all went well"), "{text}");
    let (text, status) = cx(&["--uninstall", "--scheduler", "systemd"]);
    assert_eq!((status, fs::read_dir(&units).unwrap().count()), (0, 0), "{text}");
    assert!(fs::read_to_string(home.path("told")).unwrap().contains("--user disable --now cx-sync.timer"));
    assert!(cx(&["--uninstall", "--scheduler", "systemd"]).0.contains("not installed"));
    // Without systemd the files are written, and a message says that nothing runs them.
    let path = fake_systemctl(&home, 1);
    let output = home.command(&[&["sync"], &install[..]].concat()).env("PATH", &path).output().unwrap();
    let (text, status) = shown(&output);
    assert!(
        status == 1 && text.contains("written and not started") && units.join("cx-sync.timer").exists(),
        "{text}"
    );
}

#[test]
fn a_scheduler_that_does_not_answer_is_not_waited_for() {
    let home = Home::with_servers(&json!({}));
    let path = fake_systemctl(&home, 0);
    home.write("bin/systemctl", "#!/bin/sh\nexec sleep 600\n");
    let install = ["sync", "--install", "--scheduler", "systemd"];
    let (text, status) = shown(&home.command(&install).env("PATH", &path).output().unwrap());
    assert!(status == 1 && text.contains("was stopped after 10 s"), "{text}");
}

/// systemd's own findings, where it is installed.
#[expect(clippy::print_stderr, reason = "a machine on which something cannot be tested says so")]
fn verify_with_systemd(units: &Path) {
    let files = ["cx-sync.timer", "cx-sync.service"].map(|name| units.join(name));
    let mut verify = Command::new("systemd-analyze");
    match verify
        .args(["--user", "verify"])
        .args(files)
        .env("XDG_RUNTIME_DIR", units.ancestors().nth(3).unwrap())
        .output()
    {
        Ok(output) => assert!(output.status.success() && output.stderr.is_empty(), "{}", shown(&output).0),
        Err(_missing) => eprintln!("skipped: there is no systemd-analyze here"),
    }
}

/// Has Python parse what is on its stdin and print JSON.
fn parsed(program: &str, text: &str) -> Value {
    use std::io::Write as _;
    let mut child = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

const ODD: &str = "a <b> & \"c\" --d $e %f";

/// What `--install --dry-run` prints, without the line with the file's name.
fn printed(home: &Home, scheduler: &str) -> (String, String) {
    let arguments = ["--install", "--dry-run", "--scheduler", scheduler, "--types", ODD, "--lang", "py"];
    let (text, status) = home.sync(&arguments);
    assert_eq!(status, 0, "{text}");
    let (name, text) = text.split_once('\n').unwrap();
    (name.to_owned(), text.to_owned())
}

#[test]
fn an_agent_of_launchd_is_a_property_list() {
    let home = Home::with_servers(&json!({}));
    let (name, text) = printed(&home, "launchd");
    assert!(name.ends_with("/Library/LaunchAgents/dev.cx.sync.plist"), "{name}");
    assert!(!home.path("Library").exists());
    let agent = parsed(
        "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))",
        &text,
    );
    let types = home.path(ODD).display().to_string();
    let words = agent["ProgramArguments"].as_array().unwrap();
    assert_eq!(words[1..], json!(["sync", "--types", types, "--lang", "py"]).as_array().unwrap()[..]);
    assert_eq!(words[0], env!("CARGO_BIN_EXE_cx"));
    assert_eq!(agent["Label"], "dev.cx.sync");
    // The time of day follows from the path of the home, which differs from test to test.
    assert!([4, 5].contains(&agent["StartCalendarInterval"]["Hour"].as_u64().unwrap()), "{agent}");
    assert!(agent["StartCalendarInterval"]["Minute"].as_u64().unwrap() < 60);
    assert_eq!(agent["EnvironmentVariables"]["PATH"], std::env::var("PATH").unwrap());
    if let Ok(mut plutil) = Command::new("plutil").args(["-lint", "-"]).stdin(Stdio::piped()).spawn() {
        use std::io::Write as _;
        plutil.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(plutil.wait().unwrap().success());
    }
}

/// The elements that a task has, in the order of its schema (MS-TSCH 2.5), and nothing else.
#[test]
fn a_task_of_windows_has_the_elements_of_its_schema() {
    let home = Home::with_servers(&json!({}));
    let (name, text) = printed(&home, "windows");
    assert!(name.ends_with("cx-sync.xml"), "{name}");
    let program = "
import json, sys, xml.etree.ElementTree as tree
def shape(element):
    name = element.tag.split('}')
    assert name[0] == '{http://schemas.microsoft.com/windows/2004/02/mit/task', element.tag
    children = [shape(child) for child in element]
    return [name[1], children if children else element.text]
root = tree.fromstring(sys.stdin.buffer.read())
assert root.attrib == {'version': '1.2'}, root.attrib
print(json.dumps(shape(root)))";
    let task = parsed(program, &text);
    let children = |node: &Value| -> Vec<String> {
        node[1].as_array().unwrap().iter().map(|child| child[0].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(children(&task), ["RegistrationInfo", "Triggers", "Principals", "Settings", "Actions"]);
    let trigger = &task[1][1][1][0];
    assert_eq!(trigger[0], "CalendarTrigger");
    assert_eq!(children(trigger), ["StartBoundary", "Enabled", "ScheduleByDay"]);
    let start = trigger[1][0][1].as_str().unwrap();
    // The time of day follows from the path of the home, which differs from test to test.
    assert!(("2026-01-01T04:00".."2026-01-01T06:00").contains(&start), "{start}");
    let exec = &task[1][4][1][0];
    assert_eq!(children(exec), ["Command", "Arguments", "WorkingDirectory"]);
    let types = home.path("a <b> & \\\"c\\\" --d $e %f").display().to_string();
    assert_eq!(exec[1][1][1], format!("sync --types \"{types}\" --lang py"));
    assert_eq!(
        children(&task[1][3]),
        [
            "MultipleInstancesPolicy",
            "DisallowStartIfOnBatteries",
            "StopIfGoingOnBatteries",
            "StartWhenAvailable",
            "ExecutionTimeLimit",
        ]
    );
}

#[test]
fn actions_exclude_each_other_and_need_one() {
    let home = Home::with_servers(&json!({}));
    for arguments in [
        &["--install", "--uninstall"][..],
        &["--dry-run"],
        &["--scheduler", "systemd"],
        &["--lang", "py"],
        &["--install", "--json"],
    ] {
        assert_eq!(home.sync(arguments).1, 2, "{arguments:?}");
    }
    let (text, status) = home.sync(&["--install", "--dry-run", "--types", "a\nb"]);
    assert!(status == 2 && text.contains("control character"), "{text}");
}

/// systemd joins a line that ends with a backslash and the next one, which is the command. XML cannot have the third
/// name.
#[test]
fn v_621_paths_that_the_systems_files_cannot_have_are_refused() {
    let home = Home::with_servers(&json!({}));
    for (name, expected) in [("a\\", 2), ("b ", 2), ("c\u{ffff}d", 2), ("e \\f", 0)] {
        let directory = home.path(name);
        fs::create_dir(&directory).unwrap();
        let mut command = home.command(&["sync", "--install", "--dry-run", "--scheduler", "systemd"]);
        let (text, status) = shown(&command.env("HOME", &directory).output().unwrap());
        assert_eq!(status, expected, "{name:?}: {text}");
        assert_eq!(text.contains("which the system's files cannot have"), expected == 2, "{text}");
    }
}

#[test]
fn the_end_of_a_failed_servers_stderr_is_in_the_record() {
    let script = "echo Traceback >&2; echo no such database >&2; exit 1";
    let home = Home::with_servers(&json!({ "dead": { "command": "sh", "args": ["-c", script] } }));
    let (text, status) = home.sync(&[]);
    assert!(status == 1 && text.contains("before it answered the handshake: no such database\n"), "{text}");
    let error = &home.last()["servers"][0]["error"];
    assert!(error.as_str().unwrap().ends_with(": no such database"), "{error}");
}

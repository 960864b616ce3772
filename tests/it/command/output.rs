//! The command's output is written, or the command reports that it is not; and a reader that does not read stops
//! nothing.

/// Readers that stall or are slow.
mod readers;

use std::fs::{self, File};
use std::io::{PipeReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::serve::{WATCHDOG, wait_for_end};
use crate::support::serve_http::wait_for;

const ENDLESS: &str = "for (;;) console.log('x'.repeat(100))";

/// More bytes than a pipe and the queue of the command hold.
const MEGABYTE_OF_OUTPUT: &str = "console.log('x'.repeat(1_000_000)); return 1";

fn cx(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
    command
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .stdin(Stdio::null());
    command
}

fn output_of(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    cx(home.path(), arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Programs that collect logs get no escape sequences, unless they ask for colors.
#[test]
fn logs_have_colors_for_those_who_see_them() {
    let home = tempfile::tempdir().unwrap();
    let servers = json!({ "mcpServers": { "broken": { "command": "false" } } });
    fs::write(home.path().join("servers.json"), servers.to_string()).unwrap();
    let arguments = ["run", "--mcp-config", "servers.json", "-e", "return await tools.broken.tool({})"];
    for (variable, has_color) in [("CLICOLOR", false), ("CLICOLOR_FORCE", true)] {
        let mut command = cx(home.path(), &arguments);
        let output = command.env("CX_LOG", "cx=info").env(variable, "1").output().unwrap();
        let log = text(&output.stderr);
        let line = log.lines().find(|line| line.contains("server did not start"));
        let line = line.unwrap_or_else(|| panic!("nothing is logged: {log}"));
        assert_eq!(line.contains('\u{1b}'), has_color, "{variable}: {line}");
    }
}

#[test]
fn a_filter_of_logs_that_cannot_be_used_is_said() {
    let home = tempfile::tempdir().unwrap();
    for (filter, is_said) in [("cx=loud", true), ("cx=debug,,", false), ("", false)] {
        let output = cx(home.path(), &["run", "-e", "return 1"]).env("CX_LOG", filter).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "1\n"));
        let said = text(&output.stderr);
        assert_eq!(
            said.contains("warning: nothing is logged, because CX_LOG has no filter"),
            is_said,
            "{said}"
        );
    }
}

/// Each command, and each way to print.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["help", "run"],
    &["run", "-e", "console.log(1)"],
    &["run", "-e", "return 1"],
    &["run", "-e", "return 1", "--json"],
    &["run", "-e", "return 1", "--unknown", "--json"],
    &["tools", "list"],
    &["tools", "list", "--json"],
    &["tools", "search", "x"],
    &["tools", "changed"],
    &["types"],
    &["cache", "clear"],
    &["state", "list"],
    &["state", "list", "--json"],
    &["state", "clear"],
    &["config", "show"],
    &["config", "show", "--json"],
    &["config", "schema"],
    &["sync"],
    &["sync", "--json"],
    &["doctor", "--offline"],
    &["doctor", "--offline", "--json"],
    &["check", "-e", "return 1", "--json"],
    &["runs", "list"],
    &["scripts", "list"],
    &["man"],
    &["completions", "bash"],
    &["top", "--once"],
];

/// Commands that run until they are stopped end when stdout is closed.
#[test]
fn commands_that_go_on_end_with_their_stdout() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("a.ts"), "console.log('x'.repeat(100_000))").unwrap();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut watching = cx(home.path(), &["watch", "a.ts"]).stdout(full()).spawn().unwrap();
    assert_eq!(wait_for_end(&mut watching, WATCHDOG).code(), Some(4));
    let mut watching = cx(home.path(), &["watch", "a.ts"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(watching.stdout.take());
    assert_eq!(wait_for_end(&mut watching, WATCHDOG).code(), Some(141));
    let mut serving = cx(home.path(), &["serve"])
        .stdin(Stdio::piped())
        .stdout(full())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = serving.stdin.take().unwrap();
    let first = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    writeln!(stdin, "{first}").unwrap();
    assert_eq!(wait_for_end(&mut serving, WATCHDOG).code(), Some(4));
    let said = std::io::read_to_string(serving.stderr.take().unwrap()).unwrap();
    assert!(said.contains("stdout could not be written"), "{said}");
    drop(stdin);
}

/// A signal that was ignored when the command was started stays ignored, as of what a shell runs in the background.
#[test]
fn ignored_signals_stay_ignored() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("a.ts"), "return 1").unwrap();
    for arguments in [
        "watch a.ts",
        "types --watch --out b.d.ts",
        "run -e 'await new Promise((done) => setTimeout(done, 50_000))' --timeout 60s",
    ] {
        let command = format!("trap '' INT HUP; exec {} {arguments}", env!("CARGO_BIN_EXE_cx"));
        let mut child = Command::new("sh")
            .args(["-c", &command])
            .current_dir(home.path())
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let process = child.id().to_string();
        // Before, the shell may not yet ignore the signals.
        let name = format!("/proc/{process}/comm");
        wait_for(|| std::fs::read_to_string(&name).is_ok_and(|name| name.trim() == "cx").then_some(()));
        std::thread::sleep(Duration::from_millis(1_500));
        for signal in ["-INT", "-HUP"] {
            Command::new("kill").args([signal, &process]).status().unwrap();
        }
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(child.try_wait().unwrap(), None, "{arguments}");
        Command::new("kill").args(["-TERM", &process]).status().unwrap();
        wait_for_end(&mut child, WATCHDOG);
    }
}

#[test]
fn a_full_stdout_is_an_error_of_every_command() {
    let home = tempfile::tempdir().unwrap();
    for arguments in COMMANDS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = cx(home.path(), arguments).stdout(full).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {said}");
        assert_eq!(said, "error: failed to write to stdout: No space left on device (os error 28)\n");
    }
}

/// Stdout that a shell has closed with `>&-`. The standard library then opens `/dev/null` in its place.
#[test]
fn a_closed_stdout_is_an_error_and_a_null_device_is_not() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], redirection: &str| {
        let script = format!("exec \"$@\" {redirection}");
        let mut command = Command::new("sh");
        command.args(["-c", script.as_str(), "sh", env!("CARGO_BIN_EXE_cx")]).args(arguments);
        command.current_dir(home.path()).env_clear().env("HOME", home.path());
        let output =
            command.env("PATH", std::env::var("PATH").unwrap()).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    for arguments in COMMANDS {
        let (code, said) = run(arguments, ">&-");
        assert_eq!(code, Some(4), "{arguments:?}: {said}");
        assert_eq!(said, "error: failed to write to stdout: Bad file descriptor (os error 9)\n");
    }
    // A command that prints nothing loses nothing.
    assert_eq!(run(&["run", "-e", "throw 1"], ">&-").0, Some(1));
    // Some programs open it for reading too, as the standard library does.
    for redirection in [">/dev/null", "1<>/dev/null", ">/dev/null <&-"] {
        assert_eq!(run(&["run", "-e", "return 1"], redirection), (Some(0), String::new()), "{redirection}");
    }
    let (code, said) = run(&["serve"], ">&-");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("stdout is closed"), "{said}");
}

#[test]
fn a_closed_pipe_ends_every_command_quietly() {
    let home = tempfile::tempdir().unwrap();
    for arguments in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = cx(home.path(), arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(141), String::new()), "{arguments:?}");
    }
}

/// Output beyond the limit of the result, from both languages, in the order in which it was printed.
#[test]
fn everything_that_is_printed_is_written() {
    let rows = "for (let i = 0; i < 40_000; i++) console.log(`row ${i}`, 'x'.repeat(90)); return 'end'";
    let python = "for i in range(40_000): print('row', i, 'x' * 90)\nreturn 'end'";
    for (language, source) in [("ts", rows), ("py", python)] {
        let home = tempfile::tempdir().unwrap();
        let mut command = cx(home.path(), &["run", "--lang", language, "-e", source, "--stats"]);
        let output = command.env("XDG_CACHE_HOME", crate::support::python_cache()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let printed = text(&output.stdout);
        let wanted = (0..40_000).map(|i| format!("row {i} {}\n", "x".repeat(90)));
        let wanted: String = wanted.chain(["\"end\"\n".to_owned()]).collect();
        assert!(printed == wanted, "{} bytes of {}", printed.len(), wanted.len());
        // The figures count it as well; line ends beyond the limit are not counted.
        let said = text(&output.stderr);
        let came_out = said.split("; ").nth(1).and_then(|rest| rest.split_once(" bytes came out"));
        let came_out: usize = came_out.unwrap_or_else(|| panic!("{said}")).0.parse().unwrap();
        let least = printed.len() - 40_000 - 1;
        assert!((least..=printed.len()).contains(&came_out), "{came_out}: {said}");
        // Times are for people: they have one decimal place.
        let mut fractions = said.split("; ").nth(2).unwrap().split('.').skip(1);
        let is_short = |fraction: &str| fraction.find(|one: char| !one.is_ascii_digit()) == Some(1);
        assert!(said.contains(" CPU)") && fractions.all(is_short), "{said}");
    }
    // One line that is longer than any queue, and one that ends as lines of CSV do.
    let output =
        output_of(&["run", "-e", "console.log('ä'.repeat(2_000_000)); console.log('a\\r\\nb\\r\\x1b\\r')"]);
    assert!(text(&output.stdout) == format!("{}\na\r\nb\\u{{d}}\\u{{1b}}\r\n", "ä".repeat(2_000_000)));
}

/// A file with the lines that a script prints has no other line, and what parses a value always gets one.
#[test]
fn a_null_is_printed_only_where_nothing_else_is() {
    for (language, source, expected) in [
        ("ts", "console.log('a,b'); console.log('1,2')", "a,b\n1,2\n"),
        ("py", "print('a,b')\nrows = 1", "a,b\n"),
        ("ts", "emit('a'); return null", "a\n"),
        ("ts", "return null", "null\n"),
        ("ts", "console.warn('a')", "null\n"),
        ("ts", "console.log('a'); return 0", "a\n0\n"),
        // What is printed last is in no result, which has at most 1 MB of output.
        ("ts", "console.warn('x'.repeat(2_000_000)); console.log('a')", "a\n"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let mut command = cx(home.path(), &["run", "--lang", language, "-e", source]);
        let output = command.env("XDG_CACHE_HOME", crate::support::python_cache()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), expected, "{source}");
    }
}

#[test]
fn a_result_says_that_it_has_not_all_output() {
    let output = output_of(&["run", "-e", "console.log('x'.repeat(2_000_000))", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["output"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(report["outputBytesDropped"], 2_000_000 - (1 << 20));
    let said = text(&output.stderr);
    assert!(said.starts_with("warning: 951424 bytes of output are not in the result"), "{said}");
}

#[test]
fn failures_before_a_run_are_json_too() {
    let check = |arguments: &[&str], code: &str, words: &str| {
        let output = output_of(arguments);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), String::new()), "{arguments:?}");
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let message = report["error"]["message"].take();
        for hint in ["Usage:", "--help"] {
            assert!(!message.as_str().unwrap().contains(hint), "{message}");
        }
        assert!(message.as_str().is_some_and(|message| message.contains(words)), "{arguments:?}: {message}");
        assert_eq!(report["success"], json!(false));
        assert_eq!(report["error"]["code"], code, "{arguments:?}: {message}");
    };
    let arguments = "INVALID_ARGUMENTS";
    check(&["run", "--json"], arguments, "<FILE|--eval <CODE>>");
    check(&["run", "-e", "1", "--json", "--timeout", "soon"], arguments, "invalid value 'soon'");
    check(&["tools", "search", "--json"], arguments, "<WORDS>...");
    check(&["run", "missing.ts", "--json"], arguments, "`missing.ts`: No such file");
    check(
        &["run", "return 6 * 7", "--json"],
        arguments,
        "`return 6 * 7`; code that is an argument is run with `-e",
    );
    check(&["run", "-e", "1", "--input", "{", "--json"], arguments, "--input is not JSON");
    check(
        &["run", "-e", "1", "--timeout", "11m", "--json"],
        arguments,
        "invalid `--timeout`: must be between",
    );
    check(&["run", "-e", "1", "--memory", "1KB", "--json"], arguments, "invalid `--memory`: must be between");
    check(&["run", "-e", "1", "--memory", "128", "--json"], arguments, "128 is bytes; did you mean 128MiB?");
    let serve = text(&output_of(&["serve", "--total-memory", "512"]).stderr);
    assert!(serve.contains("512 is bytes; did you mean 512MiB?"), "{serve}");
    check(&["run", "-e", "1", "--ask", "x", "--json"], arguments, "invalid `--ask`: expected");
    check(&["run", "-e", "1", "--fuel", "5", "--json"], arguments, "--fuel is for Python only");
    let configuration = "INVALID_CONFIGURATION";
    check(
        &["run", "-e", "1", "--mcp-config", "missing.json", "--json"],
        configuration,
        "missing.json: failed to",
    );
    check(&["tools", "list", "--mcp-config", "missing.json", "--json"], configuration, "missing.json");
    check(&["config", "show", "--mcp-config", "missing.json", "--json"], configuration, "missing.json");
    check(&["tools", "show", "x.y", "--json"], "FAILED", "no tool `x.y` is known");
    // Arguments after `--` are not options.
    let output = output_of(&["tools", "search", "--unknown", "--", "--json"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
}

/// A cause that is already in the text of the error is printed once.
#[test]
fn errors_say_each_thing_once() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join(".cache")).unwrap();
    fs::write(home.path().join(".cache/cx"), "").unwrap();
    let output = cx(home.path(), &["cache", "clear"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert_eq!(said, "error: the cache cannot be read or written: Not a directory (os error 20)\n");
}

#[test]
fn a_declaration_file_is_replaced_or_stays() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("cx.d.ts");
    let old = "// Written by `cx types`.\n";
    fs::write(&path, old).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&path, home.path().join("link.d.ts")).unwrap();
    // A file of zero bytes may be written, which has the effect of a full disk.
    let limited = format!("ulimit -f 0; trap '' XFSZ; exec {} types --out cx.d.ts", env!("CARGO_BIN_EXE_cx"));
    let output =
        Command::new("sh").args(["-c", &limited]).current_dir(home.path()).env("HOME", home.path()).output();
    let said = text(&output.unwrap().stderr);
    assert_eq!(said, "error: failed to write `cx.d.ts`: File too large (os error 27)\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), old);
    assert_eq!(cx(home.path(), &["types", "--out", "link.d.ts"]).status().unwrap().code(), Some(0));
    let new = fs::read_to_string(&path).unwrap();
    assert!(new.contains("declare"), "{new}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let names: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_str().unwrap().starts_with(".cx-new-")), "{names:?}");
    let output = cx(home.path(), &["types", "--out", "missing/cx.d.ts"]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(said, "error: failed to write `missing/cx.d.ts`: No such file or directory (os error 2)\n");
    // A device is written to in place: no file is made in its directory.
    let output = cx(home.path(), &["types", "--out", "/dev/full"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("failed to write `/dev/full`"));
    assert_eq!(cx(home.path(), &["types", "--out", "/dev/null"]).status().unwrap().code(), Some(0));
}

#[test]
fn input_and_scripts_come_as_people_have_them() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("A.PY"), b"\xef\xbb\xbfreturn [inputs, 1 // 1]\n").unwrap();
    fs::write(home.path().join("b.Ts"), b"\xef\xbb\xbfconst a: number = input; return a").unwrap();
    fs::write(home.path().join("input.json"), b"\xef\xbb\xbf7").unwrap();
    let run = |arguments: &[&str], stdin: &str| {
        let mut command = cx(home.path(), arguments);
        command.env("XDG_CACHE_HOME", crate::support::python_cache());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        // A command that fails before it reads has closed its stdin.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let is = |value: &str| (Some(0), format!("{value}\n"), String::new());
    assert_eq!(run(&["run", "A.PY", "--input", "@input.json"], ""), is("[7,1]"));
    assert_eq!(run(&["run", "b.Ts", "--input", "@input.json"], ""), is("7"));
    assert_eq!(run(&["run", "b.Ts", "--input", "@-"], "\u{feff}8"), is("8"));
    let (status, _, said) = run(&["run", "-", "--input", "@-"], "1");
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("not both"), "{said}");
}

#[test]
fn localhost_is_an_address() {
    let home = tempfile::tempdir().unwrap();
    let mut command = cx(home.path(), &["serve", "--http", "localhost:0"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 27];
    child.stderr.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(text(&said), "listening on http://127.0.0");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for wrong in ["example.com:80", "localhost", "localhost:x", "8000"] {
        assert_eq!(output_of(&["serve", "--http", wrong]).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn all_state_is_not_cleared_without_confirmation() {
    let output = output_of(&["state", "clear", "--all"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("stdin is not a terminal; --yes deletes all state without it"), "{said}");
    assert_eq!(output_of(&["state", "clear", "--all", "--yes"]).status.code(), Some(0));
}

/// `cx help` and the page about the command describe every exit status alike.
#[test]
fn the_exit_statuses_are_documented() {
    let help = text(&output_of(&["help"]).stdout);
    let statuses = help.split("Exit status:").nth(1).unwrap();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/command.md")).unwrap();
    for status in ["0", "1", "2", "3", "4", "130", "141"] {
        assert!(
            statuses.lines().any(|line| line.split_whitespace().next() == Some(status)),
            "{status}: {help}"
        );
        assert!(page.contains(&format!("\n| {status} | ")), "{status}");
    }
}

/// Where the stack ends deno_core printed the message of an error, as it is, for each trace that it could not finish.
#[test]
fn v_746_no_trace_is_printed_where_the_stack_ends() {
    let code = "
        const fall = () => {
            try { fall() } catch {}
            try { new Error('\\x1b[31mforged').stack } catch {}
        };
        fall();
        return 1";
    let output = output_of(&["run", "-e", code]);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("1\n".to_owned(), String::new()));
}

//! `cx run --record` and `cx replay`, with a real server that is gone at the replay.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use cx::ProviderKind;
use serde_json::{Value, json};

use crate::support::chaos;
use crate::support::own_files;
use crate::support::provider::{FakeProvider, KEY, Reply};

/// A token as a server of the user would return it.
const TOKEN: &str = "ghp_0123456789abcdefghij";

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
    own_files(&mut command, directory).args(arguments);
    command
}

fn cx(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments).output().unwrap()
}

/// Records a script that calls a real server, and removes the server's files.
fn record(directory: &Path, name: &str, source: &str) -> Output {
    record_with(directory, name, source, &[])
}

/// The same, with more arguments.
fn record_with(directory: &Path, name: &str, source: &str, more: &[&str]) -> Output {
    chaos::configure_well(directory);
    fs::write(directory.join(name), source).unwrap();
    let input = json!({ "token": TOKEN, "n": 1 }).to_string();
    let arguments = ["run", name, "--mcp-config", "mcp.json", "--input", &input, "--record", "run.jsonl"];
    let output = cx(directory, &[&arguments, more].concat());
    assert!(directory.join("run.jsonl").is_file(), "{output:?}");
    fs::remove_file(directory.join("mcp.json")).unwrap();
    // The file does not exist if the script has called nothing.
    let _ = fs::remove_file(directory.join("notes"));
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const TYPESCRIPT: &str = "const found = await searchTools('slow');
const answers = await Promise.all([9, 3, 6].map((ms) => tools.well.slow({ ms, note: 'n' + ms })));
console.log(found.length, new Date().toISOString(), Math.random());
return { answers, at: Date.now() };
";

const PYTHON: &str = "import asyncio, random, time
found = await search_tools('slow')
answers = await asyncio.gather(*[tools.well.slow(ms=ms, note=f'n{ms}') for ms in (9, 3, 6)])
print(len(found), time.time(), random.random())
{'answers': answers, 'at': time.time()}
";

/// Both languages, in this process and in a worker: the replay prints what the run has printed, to the byte, and starts
/// nothing.
#[test]
fn a_replay_needs_no_server() {
    let scripts = [("report.ts", TYPESCRIPT), ("report.py", PYTHON)];
    let runs = scripts.iter().flat_map(|script| [(script, "in-process"), (script, "process")]);
    for ((name, source), isolation) in runs {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let run = record_with(directory, name, source, &["--isolation", isolation]);
        assert!(run.status.success(), "{run:?}");
        let mode = fs::metadata(directory.join("run.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::remove_file(directory.join(name)).unwrap();
        let replay = cx(directory, &["replay", "run.jsonl"]);
        assert_eq!(text(&replay.stdout), text(&run.stdout), "{}", text(&replay.stderr));
        assert_eq!(replay.status.code(), Some(0));
        assert!(text(&replay.stderr).contains("the outcome is the recorded one"), "{replay:?}");
        assert!(!directory.join("notes").exists(), "the server was started");
    }
}

/// Answers of a language model are recorded too: a replay needs neither the provider nor its key.
#[test]
fn a_replay_needs_no_model() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("blue".to_owned()));
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::write(directory.join("ask.ts"), "return await llm.ask('which color?', { maxTokens: 20 })").unwrap();
    let mut command = command(directory, &["run", "ask.ts", "--record", "run.jsonl"]);
    command.envs([("CX_LLM", "true"), ("CX_LLM_PROVIDER", "openai"), ("CX_LLM_MODEL", "m")]);
    let run = command.env("CX_LLM_URL", provider.url()).env("OPENAI_API_KEY", KEY).output().unwrap();
    assert!(run.status.success() && text(&run.stdout).contains("blue"), "{run:?}");
    assert!(!fs::read_to_string(directory.join("run.jsonl")).unwrap().contains(KEY));
    let replay = cx(directory, &["replay", "run.jsonl"]);
    assert_eq!((replay.status.code(), text(&replay.stdout)), (Some(0), text(&run.stdout)), "{replay:?}");
    assert_eq!(provider.asked().len(), 1);
}

#[test]
fn an_edited_script_shows_its_first_difference() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let source =
        "const a = await tools.well.slow({ ms: 1 }); const b = await tools.well.slow({ ms: 2 }); return 1";
    record(directory, "report.ts", source);
    fs::write(directory.join("edited.ts"), source.replace("ms: 2", "ms: 3")).unwrap();
    let replay = cx(directory, &["replay", "run.jsonl", "--edit", "edited.ts"]);
    assert_eq!(replay.status.code(), Some(1));
    let expected = "the edited script goes another way at call 2: \
        expected well.slow with {\"ms\":2}; got well.slow with {\"ms\":3}";
    assert!(text(&replay.stderr).contains(expected), "{}", text(&replay.stderr));
    let replay = cx(directory, &["replay", "run.jsonl", "--edit", "edited.ts", "--json"]);
    let report: Value = serde_json::from_slice(&replay.stdout).unwrap();
    assert_eq!(report["same"], false);
    assert_eq!(report["difference"]["call"], 2);
    let replay = cx(directory, &["replay", "run.jsonl", "--json"]);
    let report: Value = serde_json::from_slice(&replay.stdout).unwrap();
    assert_eq!((&report["same"], &report["result"]["value"]), (&json!(true), &json!(1)));
    assert_eq!(report["result"]["toolCallsMade"], 2);
}

/// The check before a run asks servers, and a replay has none.
#[test]
fn a_script_that_was_refused_is_refused_again() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let run = record(directory, "report.ts", "await tools.absent.call({}); return 1");
    assert!(text(&run.stderr).contains("no server `absent`"), "{}", text(&run.stderr));
    let replay = cx(directory, &["replay", "run.jsonl", "--json"]);
    let report: Value = serde_json::from_slice(&replay.stdout).unwrap();
    assert_eq!(report["same"], true, "{report:#}");
    assert_eq!(report["result"]["error"]["code"], "CHECK_FAILED", "{report:#}");
    fs::write(directory.join("edited.ts"), "return 1").unwrap();
    let replay = cx(directory, &["replay", "run.jsonl", "--edit", "edited.ts"]);
    assert_eq!(replay.status.code(), Some(1));
}

/// The findings of its imports are read back from the recording.
#[test]
fn a_script_whose_imports_were_refused_is_refused_again() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let run = record(directory, "report.py", "import requests\nimport numpy\n");
    assert!(text(&run.stderr).contains("No module named 'requests'"), "{}", text(&run.stderr));
    let replay = cx(directory, &["replay", "run.jsonl", "--json"]);
    let report: Value = serde_json::from_slice(&replay.stdout).unwrap();
    assert_eq!(report["same"], true, "{report:#}");
    let problems = report["result"]["error"]["problems"].as_array().unwrap();
    let codes: Vec<&Value> = problems.iter().map(|problem| &problem["code"]).collect();
    assert_eq!(codes, ["MODULE_UNAVAILABLE", "MODULE_UNAVAILABLE"], "{report:#}");
}

#[test]
fn a_recording_has_no_secrets_and_explains_itself() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let source = "const a = await tools.well.slow({ ms: 1, note: input.token }); console.log(input.token); throw new Error('no')";
    let run = record(directory, "report.ts", source);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stdout).contains(TOKEN));
    let file = fs::read_to_string(directory.join("run.jsonl")).unwrap();
    assert!(!file.contains(TOKEN), "{file}");
    let replay = cx(directory, &["replay", "run.jsonl"]);
    assert_eq!(replay.status.code(), Some(0), "{replay:?}");
    assert_eq!(text(&replay.stdout), "***1\n");
    assert!(text(&replay.stderr).contains("1 secret is masked in both"), "{replay:?}");
    let explained = cx(directory, &["replay", "run.jsonl", "--explain"]);
    let explained = text(&explained.stdout);
    for part in [
        "line of TypeScript",
        "1. at",
        "well.slow with",
        "the error RUNTIME_ERROR: no",
        "Masked: 1 secret, in ",
    ] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
}

/// THREATS 671: otherwise the calls of the script have their effects, and what they were is lost.
#[test]
fn v_671_a_script_whose_recording_or_trace_cannot_be_written_is_not_run() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("taken.html")).unwrap();
    for (argument, file, problem) in [
        ("--record", "absent/run.jsonl", "no file can be made in "),
        ("--trace", "absent/run.html", "no file can be made in "),
        ("--record", "taken.html", "it is a directory"),
        ("--trace", "taken.html", "it is a directory"),
    ] {
        let run = cx(directory, &["run", "-e", "console.log('ran')", argument, file]);
        assert_eq!((run.status.code(), text(&run.stdout)), (Some(2), ""), "{file}: {run:?}");
        let said = text(&run.stderr);
        assert!(said.contains("the script is not run") && said.contains(problem), "{file}: {said}");
    }
    // A disk that is full after the run costs the trace and not the recording.
    symlink("/dev/full", directory.join("full.html")).unwrap();
    let run = cx(directory, &["run", "-e", "return 1", "--trace", "full.html", "--record", "run.jsonl"]);
    assert_eq!((run.status.code(), text(&run.stdout)), (Some(2), "1\n"), "{run:?}");
    assert!(text(&run.stderr).contains("failed to write the trace `full.html`"), "{run:?}");
    assert_eq!(cx(directory, &["replay", "run.jsonl"]).status.code(), Some(0));
}

#[test]
fn what_is_no_recording_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for (content, expected) in [
        ("", "cut off after line 0"),
        ("{}", "this is not a recording"),
        ("[1]", "begins with a JSON object"),
        (
            "{\"line\":\"start\",\"recording\":7,\"cx\":\"9.9\\u001b[31m\"}",
            "replay it with cx 9.9\\u{1b}[31m",
        ),
        ("{\"line\":\"start\",\"recording\":1}", "line 1 of the recording is damaged"),
    ] {
        fs::write(directory.join("wrong.jsonl"), content).unwrap();
        let replay = cx(directory, &["replay", "wrong.jsonl"]);
        assert_eq!(replay.status.code(), Some(2), "{replay:?}");
        assert!(text(&replay.stderr).contains(expected), "{expected}: {}", text(&replay.stderr));
        assert!(!text(&replay.stderr).contains('\u{1b}'), "{replay:?}");
    }
    let missing = cx(directory, &["replay", "missing.jsonl"]);
    assert_eq!(missing.status.code(), Some(2));
    let directory_itself = cx(directory, &["replay", "."]);
    assert!(text(&directory_itself.stderr).contains("is a directory"), "{directory_itself:?}");
}

/// Untrusted text does not reach the terminal unescaped.
#[test]
fn an_untrusted_recording_writes_nothing_to_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    record(directory, "report.ts", "const a = await tools.well.slow({ ms: 1 }); throw new Error('no' + a)");
    let file = fs::read_to_string(directory.join("run.jsonl")).unwrap();
    assert!(file.contains("\"name\":\"report.ts\"") && file.contains("slow"), "{file}");
    let file = file.replace("\"name\":\"report.ts\"", "\"name\":\"\\u001b[31mx.ts\"");
    fs::write(directory.join("run.jsonl"), file.replace("slow", "\\u001b]0;owned\\u0007")).unwrap();
    for arguments in [&["replay", "run.jsonl"][..], &["replay", "run.jsonl", "--explain"]] {
        let replay = cx(directory, arguments);
        let printed = [replay.stdout, replay.stderr].concat();
        assert!(!printed.contains(&0x1b) && !printed.contains(&7), "{}", String::from_utf8_lossy(&printed));
        assert!(printed.len() > 40);
    }
}

/// An untrusted script has the time of any run, whatever the recording says.
#[test]
fn an_untrusted_recording_gets_no_more_time() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    record(directory, "report.ts", "return 1");
    fs::write(directory.join("endless.ts"), "for (;;) {}").unwrap();
    let arguments = ["replay", "run.jsonl", "--edit", "endless.ts", "--timeout", "300ms"];
    let replay = cx(directory, &arguments);
    assert_eq!(replay.status.code(), Some(1), "{replay:?}");
    let said = text(&replay.stderr);
    assert!(said.contains("expected the value 1; got the error") && said.contains(" than 300ms"), "{said}");
}

/// In TypeScript, reading granted directories is a call of the host and is recorded. In Python it is not: the user is
/// told when recording, and not only when a replay differs.
#[test]
fn a_recording_says_that_it_lacks_the_files_of_a_python_script() {
    for (name, source, is_lacking) in [
        ("read.ts", "return await fs.readFile(input.path, 'utf8')", false),
        ("read.py", "open(inputs['path']).read()", true),
        ("other.py", "open('/tmp/x', 'w').write('granted')", false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().canonicalize().unwrap().join("data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("a"), "granted").unwrap();
        fs::write(directory.path().join(name), source).unwrap();
        let input = json!({ "path": data.join("a") }).to_string();
        let grant = ["--allow-read", "data", "--input", &input, "--record", "run.jsonl"];
        let output = cx(directory.path(), &[&["run", name][..], &grant].concat());
        assert!(output.status.success(), "{output:?}");
        let warned = text(&output.stderr).contains("lacks what the script found in granted directories");
        assert_eq!(warned, is_lacking, "{name}: {}", text(&output.stderr));
        let explained = cx(directory.path(), &["replay", "run.jsonl", "--explain"]);
        assert_eq!(text(&explained.stdout).contains("Not recorded: "), is_lacking, "{explained:?}");
        fs::remove_dir_all(&data).unwrap();
        let replayed = cx(directory.path(), &["replay", "run.jsonl"]);
        assert_eq!(replayed.status.success(), !is_lacking, "{replayed:?}");
    }
}

/// Threat 775. The output is longer than what a pipe holds. A replay that is not read to its end has not printed its
/// outcome.
#[test]
fn v_775_a_replay_says_that_its_output_was_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    record(directory, "long.ts", "return 'x'.repeat(1_000_000)");
    for form in [&[] as &[&str], &["--json"]] {
        let (_reader, writer) = std::io::pipe().unwrap();
        let arguments = [&["replay", "run.jsonl", "--timeout", "8s"][..], form].concat();
        let output = command(directory, &arguments).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains(" bytes of output were not written: stdout is not read"), "{said}");
    }
}

/// Threat 775. The reader ends the replay, as `head` does: that is no difference from the recorded run.
#[test]
fn v_775_a_replay_whose_reader_is_gone_is_not_compared() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let source = "for (let i = 0; i < 3_000; i++) console.log('x'.repeat(1_000))";
    record(directory, "long.ts", source);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(directory, &["replay", "run.jsonl"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(141), ""));
}

/// Threat 776. The outcome is one line of the file, with an object for each printed line.
#[test]
fn v_776_a_run_that_has_printed_many_lines_can_be_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let run = record(directory, "lines.ts", "for (let i = 0; i < 20_000; i++) console.log('a')");
    let replay = cx(directory, &["replay", "run.jsonl"]);
    assert_eq!(replay.status.code(), Some(0), "{}", text(&replay.stderr));
    assert_eq!(replay.stdout, run.stdout);
}

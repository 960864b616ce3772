//! `cx check` and `cx watch`, with servers that were never asked.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::tools::Place;
use crate::support::chaos::{entry, runs};
use crate::support::interop::type_checker;
use crate::support::serve::{WATCHDOG, wait_for_end};
use crate::support::serve_http::wait_for;

fn place() -> Place {
    Place::new(&json!({ "well": entry(&["well"]) }))
}

fn write(place: &Place, name: &str, text: &str) {
    fs::write(place.0.path().join(name), text).unwrap();
}

#[test]
fn a_script_is_checked_and_not_run() {
    let place = place();
    write(&place, "good.ts", "console.log('no'); return await tools.well.echo({ a: 1 })");
    let (out, said, status) = place.prints(&["check", "good.ts"]);
    assert_eq!((out.as_str(), said.as_str(), status), ("", "good.ts: no errors, no warnings\n", 0));
    let (out, said, status) = place.prints(&["check", "-e", "return await tools.well.echo({ a: 1 })"]);
    assert_eq!((out.as_str(), said.as_str(), status), ("", "eval.ts: no errors, no warnings\n", 0));
    write(&place, "bad.ts", "const a = 1;\nreturn await tools.well.ecco({});");
    let (out, said, status) = place.prints(&["check", "bad.ts"]);
    let expected = "error[TOOL_NOT_FOUND]: no tool `ecco` on server `well`; did you mean `echo`?\n --> bad.ts:2:25\n  |\n\
                    2 | return await tools.well.ecco({});\n  |                         ^^^^\n\
                    bad.ts: 1 error, no warnings\n";
    assert_eq!((out.as_str(), said.as_str(), status), ("", expected, 1));
    write(&place, "bad.py", "if inputs:\n    await tools.well.ecco()\nx = (");
    let (_, said, status) = place.prints(&["check", "bad.py"]);
    assert!(said.starts_with("warning[TOOL_NOT_FOUND]: no tool `ecco`"), "{said}");
    assert!(said.contains("\nerror[SYNTAX_ERROR]: '(' was never closed\n"), "{said}");
    assert!(said.ends_with("bad.py: 1 error, 1 warning\n"), "{said}");
    assert_eq!(status, 1);
    write(&place, "doubtful.py", "if inputs:\n    await tools.well.ecco()\n");
    let (_, said, status) = place.prints(&["check", "doubtful.py"]);
    assert!(said.starts_with("warning[TOOL_NOT_FOUND]: no tool `ecco`"), "{said}");
    assert_eq!(status, 0);
    let (out, _, status) = place.prints(&["check", "bad.ts", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let finding = json!({
        "severity": "error", "code": "TOOL_NOT_FOUND",
        "message": "no tool `ecco` on server `well`; did you mean `echo`?",
        "line": 2, "column": 25, "endLine": 2, "endColumn": 29,
        "sourceLine": "return await tools.well.ecco({});",
    });
    assert_eq!((report, status), (json!({ "success": false, "findings": [finding] }), 1));
    assert_eq!(place.prints(&["check", "no-such-file.ts"]).2, 2);
}

#[test]
fn a_run_of_a_script_that_cannot_succeed_does_nothing() {
    let place = place();
    // The run knows the lists that `cx check` has requested, and asks again before it refuses.
    write(
        &place,
        "bad.ts",
        "console.log('started');\nawait tools.well.echo({});\nawait tools.nowhere.echo({});",
    );
    let (out, said, status) = place.prints(&["run", "bad.ts"]);
    assert_eq!((out.as_str(), status), ("", 1), "{said}");
    assert!(said.starts_with("error[TOOL_NOT_FOUND]: no server `nowhere`"), "{said}");
    assert!(
        said.ends_with("error[CHECK_FAILED]: the script was not run, because it cannot succeed\n"),
        "{said}"
    );
    let (out, _, _) = place.prints(&["run", "bad.ts", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["error"]["code"], "CHECK_FAILED");
    assert_eq!(report["error"]["problems"][0]["line"], 3, "{report}");
}

#[test]
fn a_failed_run_says_what_is_doubtful_elsewhere() {
    let place = place();
    write(&place, "failing.ts", "if (input === 1) await tools.nowhere.echo({});\nthrow new Error('that');");
    let (_, said, status) = place.prints(&["run", "failing.ts"]);
    assert!(said.starts_with("error[RUNTIME_ERROR]: Error: that\n"), "{said}");
    assert!(said.contains("\nwarning[TOOL_NOT_FOUND]: no server `nowhere`"), "{said}");
    assert_eq!(status, 1);
    write(&place, "broken.ts", "const a = ;\nconst b = ;");
    let (_, said, _) = place.prints(&["run", "broken.ts"]);
    assert_eq!(said.matches("error[SYNTAX_ERROR]: expression expected").count(), 2, "{said}");
    assert!(
        said.ends_with("error[SYNTAX_ERROR]: the script was not run, because it cannot be compiled\n"),
        "{said}"
    );
}

#[test]
fn offline_no_server_is_started() {
    let notes = tempfile::tempdir().unwrap();
    let notes = notes.path().join("notes");
    let place = Place::new(&json!({ "well": entry(&["well", "--notes", notes.to_str().unwrap()]) }));
    write(&place, "bad.ts", "return await tools.well.ecco({})");
    let (_, said, status) = place.prints(&["check", "--offline", "bad.ts"]);
    assert!(said.starts_with("warning[TOOLS_UNKNOWN]: the tools of server `well` are not known"), "{said}");
    assert!(status == 0 && !notes.exists(), "{said}");
    // Once the tools are known, they are used for the check. They may be old, so nothing is certain.
    assert_eq!(place.prints(&["tools", "list", "--refresh"]).2, 0);
    let started = fs::read_to_string(&notes).unwrap();
    let (_, said, status) = place.prints(&["check", "--offline", "bad.ts"]);
    assert!(said.starts_with("warning[TOOL_NOT_FOUND]") && status == 0, "{said}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), started);
}

#[test]
fn a_server_that_cannot_be_asked_is_said() {
    let place = Place::new(&json!({ "gone": { "command": "/nonexistent/server" } }));
    write(&place, "script.py", "await tools.gone.anything()");
    let (_, said, status) = place.prints(&["check", "script.py"]);
    assert!(said.starts_with("warning[TOOLS_UNKNOWN]: the tools of server `gone` are not known"), "{said}");
    assert_eq!(status, 0);
}

/// A directory with the type checkers, under the names by which they are called.
fn checkers(place: &Place) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let bin = place.0.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, program) in [("tsc", "typescript/bin/tsc"), ("pyright", "pyright/index.js")] {
        let path = bin.join(name);
        let text = format!("#!/bin/sh\nexec node '{}' \"$@\"\n", type_checker(program).display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// Checks a script with the type checkers. Returns what is said and the exit status.
fn check_types(place: &Place) -> impl Fn(&str, &str) -> (String, Option<i32>) {
    let path = checkers(place);
    move |name, text| {
        write(place, name, text);
        let output = place.command(&["check", "--types", name]).env("PATH", &path).output().unwrap();
        (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
    }
}

/// A type checker knows neither the globals and modules of scripts nor their top level by itself.
#[test]
fn what_scripts_may_do_is_no_error_of_a_type_checker() {
    let place = place();
    let check = check_types(&place);
    let web = "console.log(1); setTimeout(() => {}, 1);\nconst copy = structuredClone({ a: input });\n\
        for (const [k, v] of new URLSearchParams('a=b')) console.log(k, v, copy);\n\
        const r = await fetch('https://a.b', { signal: AbortSignal.timeout(5) });\n\
        for await (const chunk of r.body ?? []) console.log(chunk);\nnamespace A { export const x = 1; }\n\
        try { JSON.parse('x'); } catch (e) { console.log(e.message); }\n\
        const list = []; list.push(1, 'x'); const seen = {}; for (const key of ['a']) seen[key] = list;\n\
        const field = (row) => row.name; console.log(list, seen, field({ name: 1 }));\n\
        return [A.x, new TextEncoder().encode('x'), crypto.randomUUID(), performance.now(), Temporal.Now.instant()];";
    let files = "import { readFile } from \"node:fs/promises\";\nimport fs from \"fs\";\n\
        export default async () => [await readFile('/tmp/a', 'utf8'), await fs.readFile('/tmp/b')];";
    let python = "import attr, bs4, dateutil.parser, jmespath, yaml\n\
        from mcp import McpToolError as Failed, runtime\nfrom mcp_tools.well import echo\n\
        async with asyncio.timeout(5):\n    me = await echo(a=1)\n\
        async for piece in llm.ask('x', stream=True):\n    print(piece)\n\
        print(mcp.servers_sync(), await call_mcp_tool('well.echo', a=1), mcp_well, [name for name in tools.well])\n\
        return [me, runtime, Failed, attr, bs4, dateutil, jmespath, yaml]";
    for (name, text) in [("web.ts", web), ("files.ts", files), ("all.py", python)] {
        let (said, status) = check(name, text);
        assert_eq!((said, status), (format!("{name}: no errors, no warnings\n"), Some(0)));
    }
    // What they have not is one, without the proposal to install something.
    let (said, status) = check("page.ts", "console.log(document.title)");
    assert!(said.contains("Cannot find name 'document'.\n") && status == Some(1), "{said}");
    let (said, status) = check("part.py", "import json.nothing\nreturn json");
    assert!(said.contains("reportMissingImports") && status == Some(1), "{said}");
}

#[test]
fn types_are_checked_by_the_real_type_checkers() {
    let place = place();
    let check = check_types(&place);
    let (said, status) =
        check("good.ts", "const n: number = 1;\nconst me = await tools.well.echo({ a: n });\nreturn me");
    assert_eq!((said.as_str(), status), ("good.ts: no errors, no warnings\n", Some(0)));
    let (said, status) = check("bad.ts", "// a line\nconst n: number = 'x';\nreturn n");
    assert!(said.starts_with("error[TS2322]: Type 'string' is not assignable to type 'number'."), "{said}");
    assert!(said.contains("bad.ts:2:7"), "{said}");
    assert_eq!(status, Some(1));
    // The lines of a message are sentences.
    let (said, _) = check("deep.ts", "const n: number[] = ['x'].map((x) => x);\nreturn n");
    let expected = "Type 'string[]' is not assignable to type 'number[]': Type 'string' is not";
    assert!(said.contains(expected), "{said}");
    for (name, text) in [
        ("full.ts", "return await tools.mcp__well__echo({ a: 1 })"),
        ("full.py", "return await tools.mcp__well__echo(a=1)"),
    ] {
        let (said, status) = check(name, text);
        assert_eq!((said, status), (format!("{name}: no errors, no warnings\n"), Some(0)));
    }
    let (said, status) = check("good.py", "n = 1\nme = await tools.well.echo(a=n)\nreturn me");
    assert_eq!((said.as_str(), status), ("good.py: no errors, no warnings\n", Some(0)));
    let (said, status) = check("bad.py", "n: int = 'x'\nreturn n");
    assert!(
        said.starts_with(
            "error[reportAssignmentType]: Type \"Literal['x']\" is not assignable to declared type"
        ),
        "{said}"
    );
    assert_eq!(status, Some(1));
    // A problem in a Markdown fence is on its line of the file.
    let (said, status) = check("fenced.ts", "Here it is:\n\n```ts\nconst n: number = 'x';\nreturn n\n```\n");
    assert!(said.contains("TS2322") && said.contains("fenced.ts:4:7"), "{said}");
    assert_eq!(status, Some(1));
    let (said, status) = check("fenced.py", "```python\nn: int = 'x'\n```\n");
    assert!(said.contains("reportAssignmentType") && said.contains("fenced.py:2:10"), "{said}");
    assert_eq!(status, Some(1));
    // A finding that cx has too is reported once, as an error; the other findings are beside it.
    let (said, status) = check(
        "twice.ts",
        "const a = await tools.well.ecco({});\nconst b = await tools.well.big({ bytes: 'many' });\n\
         if (b) await tools.well.ecco({});\nconst n: number = 'x';\nreturn [a, b, n]",
    );
    assert_eq!(said.matches("error[TOOL_NOT_FOUND]").count(), 2, "{said}");
    assert!(said.contains("error[INVALID_ARGUMENTS]") && said.contains("error[TS2322]"), "{said}");
    assert!(said.ends_with("twice.ts: 4 errors, no warnings\n") && status == Some(1), "{said}");
    let (said, status) = check(
        "twice.py",
        "a = await tools.well.ecco()\nb = await tools.well.big(bytes='many')\ntools.well.big(bytes=1)\nreturn [a, b]",
    );
    for code in ["TOOL_NOT_FOUND", "INVALID_ARGUMENTS", "NOT_AWAITED"] {
        assert_eq!(said.matches(&format!("error[{code}]")).count(), 1, "{code}: {said}");
    }
    assert!(said.ends_with("twice.py: 3 errors, no warnings\n") && status == Some(1), "{said}");
    // Without them.
    let output =
        place.command(&["check", "--types", "good.ts"]).env("PATH", "/nonexistent").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("`--types` needs `tsc` on the path"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

/// A program of the shell under the name of a type checker. Returns the `PATH` on which it is found.
fn fake_checker(place: &Place, name: &str, program: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let bin = place.0.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let path = bin.join(name);
    fs::write(&path, format!("#!/bin/sh\n{program}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// Its exit status was not looked at, so that a script seemed to have no errors where `node` was missing.
#[test]
fn a_type_checker_that_fails_is_no_success() {
    let place = place();
    write(&place, "script.ts", "return 1");
    write(&place, "script.py", "return 1");
    for (name, script, program, expected) in [
        ("tsc", "script.ts", "echo 'no node' >&2; exit 127", "`tsc` failed: exit status: 127: no node"),
        ("tsc", "script.ts", "kill -9 $$", "`tsc` failed: signal: 9 (SIGKILL)"),
        ("tsc", "script.ts", "echo 'error TS5023: x'; exit 1", "`tsc` failed: error TS5023: x"),
        ("tsc", "script.ts", "exec yes", "`tsc` was stopped because it printed more than 67108864 bytes"),
        (
            "pyright",
            "script.py",
            "echo 'no node' >&2; exit 127",
            "`pyright` failed: exit status: 127: no node",
        ),
        ("pyright", "script.py", "echo '{}'; exit 3", "`pyright` failed: exit status: 3"),
        ("pyright", "script.py", "echo ok", "`pyright` printed something else than JSON"),
    ] {
        let path = fake_checker(&place, name, program);
        let output = place.command(&["check", "--types", script]).env("PATH", path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((&*said, output.status.code()), (&*format!("error: {expected}\n"), Some(2)), "{program}");
    }
}

/// Ctrl-C would otherwise leave the script and the declarations in the directory for temporary files, and what a script
/// under the name of the type checker has started.
#[test]
fn an_interrupt_ends_the_type_checker_and_removes_its_files() {
    let place = place();
    write(&place, "script.ts", "return 1");
    let [started, temporary] = ["started", "temporary"].map(|name| place.0.path().join(name));
    fs::create_dir(&temporary).unwrap();
    let program = format!("sleep 1000 & echo $$ $! > '{0}.new'; mv '{0}.new' '{0}'; wait", started.display());
    let path = fake_checker(&place, "tsc", &program);
    let mut command = place.command(&["check", "--types", "script.ts"]);
    let mut child = command.env("PATH", path).env("TMPDIR", &temporary).spawn().unwrap();
    let processes = wait_for(|| fs::read_to_string(&started).ok());
    let (checker, sleeper) = processes.trim().split_once(' ').unwrap();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(wait_for_end(&mut child, WATCHDOG).code(), Some(130));
    assert!(!Path::new("/proc").join(checker).exists());
    // It is nobody's child any longer, and may wait as a zombie for who reaps it.
    wait_for(|| (!runs(sleeper)).then_some(()));
    let left = fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Writes over the beginning of a file with a text that is not shorter. The file is at no time empty, which a busy
/// machine may leave it for so long that it counts as a change of its own.
fn write_in_place(place: &Place, name: &str, text: &str) {
    let mut file = fs::File::options().write(true).open(place.0.path().join(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Puts another file in the place of one, as editors do.
fn replace(place: &Place, name: &str, text: &str) {
    write(place, "new", text);
    fs::rename(place.0.path().join("new"), place.0.path().join(name)).unwrap();
}

/// A `cx watch` whose output goes to files.
struct Watch<'a> {
    child: Child,
    place: &'a Place,
}

impl<'a> Watch<'a> {
    fn start(place: &'a Place, arguments: &[&str]) -> Self {
        let file = |name: &str| fs::File::create(place.0.path().join(name)).unwrap();
        let mut command = place.command(arguments);
        let child = command.stdin(Stdio::null()).stdout(file("out")).stderr(file("said")).spawn().unwrap();
        Self { child, place }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.place.0.path().join(name)).unwrap()
    }

    /// Waits until stderr has a text this many times.
    fn says(&self, text: &str, times: usize) {
        for _ in 0..2_400 {
            if self.read("said").matches(text).count() >= times {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{text:?} is not said {times} times: {}", self.read("said"));
    }

    fn signal(&mut self, name: &str) -> Option<i32> {
        let sent =
            Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        wait_for_end(&mut self.child, WATCHDOG).code()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn a_script_is_run_again_when_it_or_its_input_changes() {
    let place = Place::new(&json!({}));
    write(&place, "script.ts", "return input.n + 1");
    write(&place, "input.json", r#"{ "n": 1 }"#);
    let mut watch = Watch::start(&place, &["watch", "script.ts", "--input", "@input.json"]);
    watch.says("watch: ok after", 1);
    assert_eq!(watch.read("out"), "2\n");
    write_in_place(&place, "script.ts", "return input.n + 10");
    watch.says("watch: ok after", 2);
    assert_eq!(watch.read("out"), "2\n11\n");
    // Replaced by another file, as editors do, with the file absent for a moment.
    write(&place, "new", "throw new Error('oh')");
    fs::remove_file(place.0.path().join("script.ts")).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    fs::rename(place.0.path().join("new"), place.0.path().join("script.ts")).unwrap();
    watch.says("watch: failed (status 1) after", 1);
    // The input.
    replace(&place, "script.ts", "return input.n");
    watch.says("watch: ok after", 3);
    write_in_place(&place, "input.json", r#"{ "n": 5 }"#);
    watch.says("watch: input.json changed", 1);
    watch.says("watch: ok after", 4);
    assert_eq!(watch.read("out"), "2\n11\n1\n5\n");
    // A run that has not ended is stopped.
    replace(
        &place,
        "script.ts",
        "console.log('begun'); await new Promise((end) => setTimeout(end, 60_000));",
    );
    wait_for(|| watch.read("out").contains("begun").then_some(()));
    replace(&place, "script.ts", "return 'after'");
    watch.says("watch: ok after", 5);
    assert!(watch.read("out").ends_with("begun\n\"after\"\n"), "{}", watch.read("out"));
    // The file is only touched: nothing happens, and Ctrl-C ends the command with the status of the last run.
    write_in_place(&place, "script.ts", "return 'after'");
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(watch.read("said").matches("watch: ok after").count(), 5);
    assert_eq!(watch.signal("INT"), Some(0));
}

/// The status is not that of an earlier run.
#[test]
fn a_run_that_was_stopped_for_a_change_was_interrupted() {
    let place = Place::new(&json!({}));
    write(&place, "script.ts", "return 1");
    let mut watch = Watch::start(&place, &["watch", "script.ts"]);
    watch.says("watch: ok after", 1);
    replace(
        &place,
        "script.ts",
        "console.log('begun'); await new Promise((end) => setTimeout(end, 60_000));",
    );
    wait_for(|| watch.read("out").contains("begun").then_some(()));
    fs::remove_file(place.0.path().join("script.ts")).unwrap();
    watch.says("script.ts is gone; waiting for it", 1);
    assert_eq!(watch.signal("INT"), Some(130));
}

#[test]
fn a_saved_script_is_run_again_when_its_file_changes() {
    let place = Place::new(&json!({}));
    let folder = place.0.path().join("CONFIG/cx/scripts");
    fs::create_dir_all(&folder).unwrap();
    let save = |code: &str| {
        write(&place, "new", &format!("// Gives a number.\nexport default () => {code};\n"));
        fs::rename(place.0.path().join("new"), folder.join("number.ts")).unwrap();
    };
    save("1");
    let mut watch = Watch::start(&place, &["watch", "number"]);
    watch.says("watch: ok after", 1);
    save("2");
    watch.says("number.ts changed", 1);
    watch.says("watch: ok after", 2);
    assert_eq!(watch.read("out"), "1\n2\n");
    assert_eq!(watch.signal("INT"), Some(0));
}

#[test]
fn a_saved_script_is_checked_by_its_name() {
    let place = place();
    let folder = place.0.path().join("CONFIG/cx/scripts");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("wrong.py"), "await tools.well.ecco()\n").unwrap();
    write(&place, "wrong", "return 1");
    let (_, said, status) = place.prints(&["check", "wrong"]);
    assert!(said.contains("`wrong` is the saved script; `./wrong` is the file"), "{said}");
    assert!(said.contains("error[TOOL_NOT_FOUND]") && said.contains("scripts/wrong.py:1:18"), "{said}");
    assert_eq!(status, 1);
    assert_eq!(place.prints(&["check", "./wrong"]).2, 0);
    let (_, said, status) = place.prints(&["check", "nothing-saved"]);
    assert!(said.contains("there is no file `nothing-saved` here either") && status == 2, "{said}");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let place = Place::new(&json!({}));
    write(&place, "script.ts", "return 1");
    for arguments in [
        &["watch", "-"][..],
        &["watch", "-e", "1"],
        &["watch", "script.ts", "--input", "@-"],
        &["watch", "nothing-saved"],
    ] {
        let (_, said, status) = place.prints(arguments);
        assert_eq!(status, 2, "{arguments:?}: {said}");
    }
}

//! `cx types`, with servers that were never asked and some that cannot be.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::home::Home;
use super::tools::Place;
use crate::support::chaos::{self, entry};
use crate::support::serve::{WATCHDOG, wait_for_end};
use crate::support::serve_http::wait_for;

#[test]
fn servers_that_were_never_asked_are_asked_and_failures_are_said() {
    let well = entry(&["well"]);
    let broken = json!({ "command": "/nonexistent/server" });
    let place = Place::new(&json!({ "faulty": well, "broken": broken }));
    let path = place.0.path().join("types/cx.d.ts");
    let (_, said, status) = place.prints(&["types", "--out", "types"]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("`broken`: UPSTREAM_UNAVAILABLE"), "{said}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("  echo(args?: ") && text.contains("  readonly broken: any;"), "{text}");
    // Known tools are written again unchanged; the broken server is asked again.
    let (report, said, status) = place.prints(&["types", "--out", "types", "--check"]);
    assert_eq!((report.as_str(), status), ("", 1), "{said}");
    place.configure(&json!({ "faulty": well }));
    let (report, said, status) = place.prints(&["types", "--out", "types", "--check"]);
    assert_eq!(status, 1, "{said}");
    assert!(report.starts_with("types/cx.d.ts: lines: 1 new, 7 gone\n"), "{report}");
    assert!(report.contains("  - readonly broken: any;\n"), "{report}");
    assert_eq!(place.prints(&["types", "--out", "types"]).2, 0);
    assert_eq!(place.prints(&["types", "--out", "types", "--check"]).2, 0);
    // In Python the same, and without starting anything.
    let (_, said, status) = place.prints(&["types", "--lang", "py", "--out", "typings", "--offline"]);
    assert_eq!(status, 0, "{said}");
    let stub = fs::read_to_string(place.0.path().join("typings/cx_tools.pyi")).unwrap();
    assert!(stub.contains("    async def echo(self, "), "{stub}");
    let globals = fs::read_to_string(place.0.path().join("typings/__builtins__.pyi")).unwrap();
    assert!(globals.contains("\nfaulty: _cx.FaultyTools\n"), "{globals}");
    assert!(place.0.path().join("typings/mcp_tools.pyi").is_file());
    // If nothing is known of any server, the old file stays.
    let before = fs::read_to_string(&path).unwrap();
    place.configure(&json!({ "broken": broken }));
    let (_, said, status) = place.prints(&["types", "--out", "types"]);
    assert_eq!(status, 1);
    assert!(said.contains("the old declarations are kept"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

/// Another process has asked the server again, and its tools have changed.
#[test]
fn types_are_written_again_when_tools_change() {
    let place = Place::new(&json!({}));
    let (mode, program) = (place.0.path().join("mode"), chaos::program());
    fs::write(&mode, "well").unwrap();
    let line = format!("exec '{}' stdio $(cat '{}')", program.display(), mode.display());
    place.configure(&json!({ "first": { "command": "sh", "args": ["-c", line] } }));
    let path = place.0.path().join("types/cx.d.ts");
    let mut child = place.command(&["types", "--watch", "--out", "types"]).spawn().unwrap();
    let has = |name: &str| fs::read_to_string(&path).is_ok_and(|text| text.contains(name));
    wait_for(|| has("  echo(").then_some(()));
    assert!(!has("  showTime("), "{}", fs::read_to_string(&path).unwrap());
    fs::write(&mode, "apps").unwrap();
    assert_eq!(place.prints(&["tools", "list", "--refresh"]).2, 0);
    wait_for(|| has("  showTime(").then_some(()));
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(wait_for_end(&mut child, WATCHDOG).code(), Some(0));
}

#[test]
fn types_are_written_again_when_the_configuration_changes() {
    let well = entry(&["well"]);
    let place = Place::new(&json!({ "first": well }));
    let path = place.0.path().join("cx.d.ts");
    let said = place.0.path().join("said");
    let mut command = place.command(&["types", "--watch", "--out", "cx.d.ts"]);
    let mut child = command.stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
    let has = |name: &str| fs::read_to_string(&path).is_ok_and(|text| text.contains(name));
    wait_for(|| has("readonly first: McpServer1;").then_some(()));
    place.configure(&json!({ "first": well, "second": well }));
    wait_for(|| has("readonly second: McpServer2;").then_some(()));
    // A mistake is reported once, however long it stays.
    fs::write(place.0.path().join("new"), "{ broken").unwrap();
    fs::rename(place.0.path().join("new"), place.0.path().join("mcp.json")).unwrap();
    let mistakes = || fs::read_to_string(&said).unwrap().matches("is not valid JSON").count();
    wait_for(|| (mistakes() > 0).then_some(()));
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(mistakes(), 1);
    place.configure(&json!({ "first": well, "second": well, "third": well }));
    wait_for(|| has("readonly third: McpServer3;").then_some(()));
    let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(wait_for_end(&mut child, WATCHDOG).code(), Some(0));
}

#[test]
fn a_file_that_is_not_of_types_is_not_replaced() {
    let place = Place::new(&json!({}));
    let path = place.0.path().join("report.ts");
    for script in [
        "return await tools.well.echo({})\n",
        "// Has the declarations of `cx types`.\nreturn tools.well\n",
        "\n",
    ] {
        fs::write(&path, script).unwrap();
        let (_, said, status) = place.prints(&["types", "--out", "report.ts"]);
        assert_eq!(status, 2, "{said}");
        assert!(said.contains("`report.ts` is not a file of `cx types`"), "{said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), script);
    }
    // All of several files are checked before one is written.
    fs::create_dir(place.0.path().join("typings")).unwrap();
    fs::write(place.0.path().join("typings/mcp_tools.pyi"), "x: int\n").unwrap();
    assert_eq!(place.prints(&["types", "--lang", "py", "--out", "typings"]).2, 2);
    assert_eq!(fs::read_dir(place.0.path().join("typings")).unwrap().count(), 1);
    let (_, said, status) = place.prints(&["types", "--lang", "py", "--out", "report.ts"]);
    assert!(said.contains("`report.ts` is a file, and 3 files are written") && status == 2, "{said}");
    // One that is empty, as of `mktemp`, and one of its own are replaced.
    fs::write(&path, "").unwrap();
    assert_eq!(place.prints(&["types", "--out", "report.ts"]).2, 0);
    let own = fs::read_to_string(&path).unwrap();
    for changed in [format!("{own}// more\n"), format!("/* eslint-disable */\n{own}")] {
        fs::write(&path, changed).unwrap();
        assert_eq!(place.prints(&["types", "--out", "report.ts"]).2, 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), own);
    }
    // All of Python's have it.
    for _ in 0..2 {
        assert_eq!(place.prints(&["types", "--lang", "py", "--out", "stubs"]).2, 0);
        let stubs = fs::read_dir(place.0.path().join("stubs")).unwrap();
        for stub in stubs.map(|entry| entry.unwrap().path()) {
            fs::write(&stub, format!("# ruff: noqa\n{}", fs::read_to_string(&stub).unwrap())).unwrap();
        }
    }
}

/// Otherwise declarations without any tools replace those that were written first, or all servers are asked every
/// second.
#[test]
fn without_stored_lists_servers_are_asked_when_the_configuration_changes_only() {
    for more in [&[][..], &["--refresh"]] {
        let home = Home::new();
        let (starts, program) = (home.path("starts"), chaos::program());
        let line = format!("echo >> '{}'; exec '{}' stdio well", starts.display(), program.display());
        let server = json!({ "command": "sh", "args": ["-c", line] });
        home.configure(&json!({ "cache": { "enabled": false }, "mcpServers": { "first": server } }));
        // Makes the directories of cx, which are looked at too, as the one is in which it runs.
        fs::create_dir(home.path("types")).unwrap();
        assert!(home.command(&["types", "--out", "types/cx.d.ts"]).output().unwrap().status.success());
        // What is new counts as changed again for three seconds. After them the first two looks find a change: to the
        // first one all files are new.
        let written = home.path("types/cx.d.ts").metadata().unwrap().modified().unwrap();
        wait_for(|| written.elapsed().is_ok_and(|age| age > Duration::from_secs(5)).then_some(()));
        fs::remove_file(home.path("types/cx.d.ts")).unwrap();
        let count = || fs::metadata(&starts).unwrap().len();
        let asked = count() + 2;
        let mut command = home.command(&["types", "--watch", "--out", "types/cx.d.ts"]);
        let mut child = command.args(more).spawn().unwrap();
        let declared = || fs::read_to_string(home.path("types/cx.d.ts")).unwrap_or_default();
        wait_for(|| (count() == asked && declared().contains("  echo(")).then_some(()));
        // Two more looks.
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(count(), asked, "{more:?}");
        assert!(declared().contains("  echo("), "{more:?}: {}", declared());
        let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(stopped.success());
        assert_eq!(wait_for_end(&mut child, WATCHDOG).code(), Some(0));
    }
}

#[test]
fn a_path_is_shown_on_one_line() {
    let home = Home::new();
    let output = home.command(&["types", "--check", "--out", "a\n\u{200b}b"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!((&*said, output.status.code()), ("a\\u{a}\\u{200b}b/cx.d.ts: missing\n", Some(1)));
    // Also by other commands.
    for arguments in [&["replay", "a\nb"][..], &["run", "--trace", "a\nb", "-e", "return 1"]] {
        let output = home.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("a\\u{a}b"), "{arguments:?}: {said}");
        assert!(!said.contains("a\nb"), "{arguments:?}: {said}");
    }
}

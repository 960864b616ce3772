//! What differs between machines and scripts do not notice: language, time zone, directories, disks.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::python_cache;

fn cx() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cx"))
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn value(command: &mut Command, language: &str, code: &str) -> Value {
    let output = command.args(["run", "--lang", language, "-e", code]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", shown(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The environment of a machine in India with a German user.
const ELSEWHERE: [(&str, &str); 5] = [
    ("TZ", "Asia/Kolkata"),
    ("LANG", "de_DE.UTF-8"),
    ("LC_ALL", "de_DE.UTF-8"),
    ("LANGUAGE", "de"),
    ("XDG_CACHE_HOME", ""),
];

#[test]
fn scripts_in_typescript_see_utc_and_english_on_every_machine() {
    let code = "
        const date = new Date(0), format = Intl.DateTimeFormat().resolvedOptions()
        return [
            date.getHours(), date.getTimezoneOffset(), date.toString(), date.toLocaleString(),
            new Date(1970, 0, 1).getTime(), Date.parse('1970-01-01T00:00'), format.timeZone, format.locale,
            Temporal.Now.timeZoneId(), (1234.5).toLocaleString(), ['z', 'ä'].sort(Intl.Collator().compare),
            Intl.NumberFormat().resolvedOptions().locale, date.toLocaleString('de', { timeZone: 'Asia/Kolkata' }),
        ]";
    let expected = json!([
        0,
        0,
        "Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)",
        "1/1/1970, 12:00:00 AM",
        0,
        0,
        "UTC",
        "en-US",
        "UTC",
        "1,234.5",
        ["ä", "z"],
        "en-US",
        "1.1.1970, 05:30:00",
    ]);
    assert_eq!(value(cx().envs(ELSEWHERE), "ts", code), expected);
}

#[test]
fn scripts_in_python_see_utc_and_english_on_every_machine() {
    let code = "
import datetime, locale, time, zoneinfo
moment = datetime.datetime.fromtimestamp(0)
[
    time.localtime(0).tm_hour, time.timezone, time.tzname[0], moment.hour, str(moment.astimezone().tzinfo),
    time.mktime((1970, 1, 1, 0, 0, 0, 0, 0, 0)), locale.getlocale()[0] in (None, 'en_US', 'C'), f'{1234.5:n}',
    moment.strftime('%A'), datetime.datetime.fromtimestamp(0, zoneinfo.ZoneInfo('Asia/Kolkata')).isoformat(),
]";
    let expected =
        json!([0, 0, "UTC", 0, "UTC", 0.0, true, "1234.5", "Thursday", "1970-01-01T05:30:00+05:30",]);
    assert_eq!(value(cx().envs(ELSEWHERE).env("XDG_CACHE_HOME", python_cache()), "py", code), expected);
}

#[test]
fn a_script_knows_when_it_started() {
    let code = "return [Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000]";
    assert_eq!(value(&mut cx(), "ts", code), json!([true]));
}

#[expect(clippy::print_stderr, reason = "a machine on which something cannot be tested says so")]
fn skip(why: &str) {
    eprintln!("skipped: no disk can be made here: {why}");
}

/// Runs a shell script in which `/disk` … is a small file system of its own: `$DISK` names it. `None` where the
/// kernel does not let this user mount one.
fn with_disk(megabytes: u32, script: &str) -> Option<String> {
    let directory = TempDir::new().unwrap();
    let setup = format!("mount -t tmpfs -o size={megabytes}m tmpfs \"$DISK\" || exit 99\n{script}");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &setup])
        .env("DISK", directory.path())
        .env("CX", env!("CARGO_BIN_EXE_cx"))
        .env_remove("XDG_CACHE_HOME")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = shown(&output);
    if output.status.code() == Some(99) || text.contains("unshare") {
        skip(&text);
        return None;
    }
    assert!(output.status.success(), "{text}");
    Some(text)
}

/// Fills the disk to its last byte.
const FILL: &str =
    "(cat /dev/zero > \"$DISK/rest\") 2>/dev/null; (cat /dev/zero >> \"$DISK/rest\") 2>/dev/null;";

#[test]
fn on_a_full_disk_state_can_be_read_and_cleared() {
    // States of the file: with its log, the same without shared memory, alone, and as a killed process leaves it.
    let write = "$CX run -e 'for (let i = 0; i < 40; i++) await state.set(`k${i}`, \"x\".repeat(5000))'
        $CX run --session other -e 'await state.set(\"k\", 1)'";
    let killed = "$CX run -e 'await state.set(\"more\", 1); await new Promise(r => setTimeout(r, 60_000))' &
        sleep 3; kill -9 $!; wait";
    let without_memory = "rm \"$DISK\"/cx/*-shm";
    let only_file = "python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(\"PRAGMA journal_mode = DELETE\")' \
        \"$DISK/cx/scripts.sqlite3\"";
    for end in ["", without_memory, only_file, killed] {
        let script = format!(
            "set -u
            export XDG_STATE_HOME=\"$DISK\"
            {write}
            {end}
            {FILL}
            $CX run -e 'console.log(\"read\", (await state.get(\"k1\")).length)'
            $CX run -e 'try {{ await state.set(\"large\", \"x\".repeat(200_000)) }} catch (e) {{ console.log(e.code) }}'
            $CX state list
            $CX state clear
            $CX run -e 'console.log(\"cleared\", await state.keys())'
            $CX run --session other -e 'console.log(\"other\", await state.keys())'
            $CX state clear --all --yes
            $CX state list"
        );
        let Some(text) = with_disk(2, &script) else { return };
        for part in [
            "read 5000",
            "STATE_FULL",
            "session other: 1 key",
            "of workspace",
            "cleared []",
            "other [ \"k\" ]",
            "deleted 1 key of all",
            "no state",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// Python's machine code in a directory.
fn kept(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory.join("python")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".cwasm")).collect()
}

#[test]
fn without_home_python_is_made_ready_once() {
    let temporary = TempDir::new().unwrap();
    let run = || {
        let mut command = cx();
        let output = command
            .args(["run", "--lang", "py", "-e", "1 + 1"])
            .env_remove("HOME")
            .env_remove("XDG_CACHE_HOME")
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(shown(&output), "2\n");
    };
    run();
    let own = format!("cx-{}", rustix::process::geteuid().as_raw());
    let directory = temporary.path().join(own);
    let [file] = &kept(&directory)[..] else { panic!("one file: {:?}", kept(&directory)) };
    let inode =
        || std::os::unix::fs::MetadataExt::ino(&fs::metadata(directory.join("python").join(file)).unwrap());
    let first = inode();
    run();
    assert_eq!(inode(), first, "the second process uses what the first one has made");
}

#[test]
fn on_a_full_or_read_only_disk_python_is_kept_elsewhere_or_the_warning_says_what_helps() {
    let temporary = TempDir::new().unwrap();
    let elsewhere = temporary.path().display();
    let script = format!(
        "export HOME=\"$DISK\"
        {FILL}
        for i in 1 2; do TMPDIR='{elsewhere}' $CX run --lang py -e '\"first\"'; done
        rm \"$DISK/rest\"; mount -o remount,ro \"$DISK\" || exit 99
        TMPDIR='{elsewhere}' $CX run --lang py -e '\"second\"'
        TMPDIR=\"$DISK\" $CX run --lang py -e '\"third\"'"
    );
    let Some(text) = with_disk(1, &script) else { return };
    assert!(text.starts_with("\"first\"\n\"first\"\n\"second\"\n\"third\"\n"), "{text}");
    let warnings: Vec<_> = text.lines().filter(|line| line.contains("Python is not kept")).collect();
    let [warning] = warnings[..] else { panic!("one warning: {text}") };
    assert!(warning.contains("`cache.directory`") && warning.contains("XDG_CACHE_HOME"), "{warning}");
    assert!(warning.to_lowercase().contains("read-only"), "{warning}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
}

/// Setup would find no client of the user, and could keep nothing.
#[test]
fn setup_needs_a_home_directory_also_for_a_plan() {
    for arguments in [&["setup", "--dry-run"][..], &["setup", "--yes"]] {
        let output = cx().args(arguments).env_clear().stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(shown(&output).contains("set HOME"), "{}", shown(&output));
    }
}

//! `cx doctor` and what is stored: directories, damaged files, the audit trail.

use super::*;

#[test]
fn directories_that_cannot_be_used() {
    let home = Home::new();
    home.write("file", "");
    let doctor = |name: &str, value: &str| {
        let mut command = command(&home, &["doctor", "--json", "--offline"]);
        Examined::new(command.env(name, home.path(value)).output().unwrap())
    };
    let ill = doctor("XDG_CACHE_HOME", "file/below");
    ill.has("problem", "caches", "cannot be written", "set `cache.directory`");
    doctor("XDG_STATE_HOME", "file/below").has("problem", "state", "cannot be written", "set XDG_STATE_HOME");
    // Other users could have written these files.
    for (name, section) in [("XDG_CACHE_HOME", "caches"), ("XDG_STATE_HOME", "state")] {
        let directory = home.path("open/cx");
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        doctor(name, "open").has("problem", section, "other users can write to it", "for you alone");
    }
    let mut without_home = command(&home, &["doctor", "--json", "--offline"]);
    without_home.env_remove("HOME").env_remove("XDG_CACHE_HOME");
    let ill = Examined::new(without_home.output().unwrap());
    ill.has("problem", "caches", "HOME is not set", "set HOME");
    ill.has("problem", "state", "HOME is not set", "set HOME");
    let off = with_config(&json!({ "cache": { "enabled": false } }));
    off.doctor(&["--offline"]).has("warning", "caches", "switched off", "remove `cache.enabled`");
}

#[test]
fn damaged_files_that_were_set_aside() {
    let home = with_config(&json!({ "mcpServers": { "well": entry(&["well"]) } }));
    let run = |arguments: &[&str]| {
        let output = command(&home, arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["run", "-e", "await state.set('a', 1)"]);
    run(&["tools", "list", "--refresh"]);
    home.doctor(&["--offline"]).has("ok", "state", "1 key, of 1 workspace or session", "");
    let state = home.path(".local/state/cx");
    fs::write(state.join("scripts.sqlite3"), "not a database at all, and long enough to be one".repeat(100))
        .unwrap();
    run(&["run", "-e", "await state.set('a', 1)"]);
    for entry in fs::read_dir(&state).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("pins-") {
            fs::write(entry.path(), "{").unwrap();
        }
    }
    let ill = home.doctor(&["--offline"]);
    ill.has("problem", "state", "was damaged and set aside as", "rm ");
    ill.has("problem", "servers", "those of `well` were damaged", "cx tools accept well");
    // Their file is there now, and is not reported a second time.
    let state = home.doctor(&["--offline"]).section("state").into_iter().cloned().collect::<Vec<_>>();
    assert!(!json!(state).to_string().contains("pins-"), "{state:?}");
}

/// The command is copied into a shell.
#[test]
fn the_command_that_removes_a_damaged_file_names_only_that_file() {
    let home = Home::new();
    home.write("my state/cx/other.damaged", "");
    let mut doctor = command(&home, &["doctor", "--json", "--offline"]);
    let ill = Examined::new(doctor.env("XDG_STATE_HOME", home.path("my state")).output().unwrap());
    ill.has("warning", "state", "a file was damaged", "/my state/cx/other.damaged'");
    ill.has("warning", "state", "a file was damaged", "remove it: rm '/");
}

#[test]
fn an_audit_trail_that_was_changed_or_cannot_be_written() {
    let home = with_config(&json!({ "audit": {} }));
    home.doctor(&["--offline"]).has("ok", "audit trail", "no lines yet", "");
    for _ in 0..3 {
        assert!(command(&home, &["run", "-e", "return 1"]).status().unwrap().success());
    }
    let well = home.doctor(&["--offline"]);
    well.has("ok", "audit trail", "are as they were written", "");
    // Older files and those of others are not read, so their size does not matter.
    for name in ["2020-01-01", "notes"] {
        let other = home.path(&format!(".local/state/cx/audit/{name}.jsonl"));
        fs::File::create(&other).unwrap().set_len(65 << 20).unwrap();
        home.doctor(&["--offline"]).has("ok", "audit trail", "are as they were written", "");
        fs::remove_file(other).unwrap();
    }
    // A check writes no lines to the audit trail.
    let lines = || {
        let trail = fs::read_dir(home.path(".local/state/cx/audit")).unwrap().flatten();
        let files =
            trail.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        files.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).max().unwrap()
    };
    let (file, before) = lines();
    home.doctor(&[]);
    assert_eq!(lines().1, before);
    let later = file.with_file_name("2999-01-01.jsonl");
    fs::rename(&file, &later).unwrap();
    home.doctor(&["--offline"]).has("warning", "audit trail", "that of 2999-01-01", "the clock is right");
    fs::OpenOptions::new().write(true).open(&later).unwrap().set_len(65 << 20).unwrap();
    home.doctor(&["--offline"]).has("skipped", "audit trail", "is not verified here", "");
    fs::rename(&later, &file).unwrap();
    fs::write(&file, before.replacen("run.started", "run.Started", 1)).unwrap();
    let ill = home.doctor(&["--offline"]);
    ill.has("problem", "audit trail", "is not what was written", "cx audit verify");
    let home = with_config(&json!({ "audit": { "directory": "/proc/none", "required": true } }));
    home.doctor(&["--offline"]).has(
        "problem",
        "audit trail",
        "every call is refused",
        "set `audit.directory`",
    );
}

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use super::*;
use crate::tools::{ToolError, ToolErrorCode};

const WAIT: Duration = Duration::from_secs(2);

/// A store in a directory of its own, and the simulated current day.
struct Stage {
    directory: tempfile::TempDir,
    day: Arc<AtomicU64>,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            day: Arc::new(AtomicU64::new(20_000)),
            runtime: tokio::runtime::Runtime::new().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("cx/state.sqlite3")
    }

    /// A separate store, as in another process: only the file is shared.
    fn store(&self) -> StateStore {
        let day = Arc::clone(&self.day);
        let clock =
            move || SystemTime::UNIX_EPOCH + Duration::from_secs(day.load(Ordering::Relaxed) * 86_400);
        StateStore::of(StateFile::with_clock(self.path(), Box::new(clock)))
    }

    fn run(&self, store: &StateStore, session: &str) -> Run<'_> {
        Run { stage: self, state: RunState::new(store.clone(), StateScope::session(session).unwrap(), false) }
    }
}

struct Run<'a> {
    stage: &'a Stage,
    state: RunState,
}

impl Run<'_> {
    fn call(&self, call: StateCall) -> Result<String, ToolError> {
        let deadline = Instant::now() + Duration::from_secs(30);
        let handle = self.stage.runtime.handle();
        self.stage.runtime.block_on(self.state.call(call, deadline, handle)).map_err(ToolError::from)
    }

    fn get(&self, key: &str) -> String {
        self.call(StateCall::Get { key: key.to_owned(), tagged: false }).unwrap()
    }

    fn try_set(&self, key: &str, value: &str) -> Result<String, ToolError> {
        self.call(StateCall::Set { key: key.to_owned(), value: value.to_owned(), expected: None })
    }

    fn set(&self, key: &str, value: &str) {
        assert_eq!(self.try_set(key, value).unwrap(), "true");
    }

    fn delete(&self, key: &str) -> bool {
        self.call(StateCall::Delete { key: key.to_owned() }).unwrap() == "true"
    }

    fn keys(&self, prefix: &str) -> String {
        self.call(StateCall::Keys { prefix: prefix.to_owned() }).unwrap()
    }
}

#[test]
fn what_is_kept_is_there_for_the_next_process() {
    let stage = Stage::new();
    let store = stage.store();
    assert!(!stage.path().exists(), "nothing is made before it is needed");
    assert!(store.usage().unwrap().is_empty() && store.clear_all().unwrap() == 0);
    assert!(!stage.path().exists());
    let run = stage.run(&store, "a");
    assert_eq!((run.get("k"), run.keys("")), ("[]".to_owned(), "[]".to_owned()));
    assert!(!run.delete("k"));
    run.set("k", r#"{"b": [1, 2.5, null], "a": "ö\u0000"}"#);
    run.set("__proto__", "1");
    run.set("k2", "null");
    for store in [store, stage.store()] {
        let run = stage.run(&store, "a");
        assert_eq!(run.get("k"), r#"[{"b":[1,2.5,null],"a":"ö\u0000"}]"#);
        assert_eq!((run.get("__proto__"), run.get("k2")), ("[1]".to_owned(), "[null]".to_owned()));
        assert_eq!(run.keys(""), r#"["__proto__","k","k2"]"#);
        assert_eq!(run.keys("k"), r#"["k","k2"]"#);
        assert_eq!(run.keys("%"), "[]", "a prefix is no pattern");
    }
    assert!(run.delete("k") && !run.delete("k"));
    assert_eq!(run.get("k"), "[]");
}

#[test]
fn scopes_do_not_see_each_other() {
    let stage = Stage::new();
    let store = stage.store();
    let (a, b) = (stage.run(&store, "/a"), stage.run(&store, "/b"));
    let workspace = Run {
        stage: &stage,
        state: RunState::new(store.clone(), StateScope::workspace(Path::new("/a")), false),
    };
    a.set("k", "1");
    b.set("k", "2");
    workspace.set("k", "3");
    let of = |run: &Run<'_>| run.get("k");
    assert_eq!((of(&a), of(&b), of(&workspace)), ("[1]".to_owned(), "[2]".to_owned(), "[3]".to_owned()));
    let usage = store.usage().unwrap();
    let scopes: Vec<String> = usage.iter().map(|usage| usage.scope.to_string()).collect();
    assert_eq!(scopes, ["workspace /a", "session /a", "session /b"]);
    assert!(usage.iter().all(|usage| (usage.keys, usage.bytes, usage.unused_days) == (1, 2, 0)), "{usage:?}");
    assert_eq!(store.clear(&StateScope::session("/a").unwrap()).unwrap(), 1);
    assert_eq!((of(&a), of(&b), of(&workspace)), ("[]".to_owned(), "[2]".to_owned(), "[3]".to_owned()));
    assert_eq!(store.clear_all().unwrap(), 2);
    assert!(store.usage().unwrap().is_empty());
    // Deleted data must not remain in the files.
    a.set("k", r#""a secret of somebody""#);
    store.clear_all().unwrap();
    for file in fs::read_dir(stage.path().parent().unwrap()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(8).any(|window| window == b"a secret"));
    }
}

#[test]
fn every_bound_says_which_it_is() {
    let stage = Stage::new();
    let run = stage.run(&stage.store(), "a");
    let code = |result: Result<String, ToolError>, part: &str| {
        let error = result.unwrap_err();
        assert!(error.message.contains(part), "{error}");
        error.code
    };
    run.set(&"ö".repeat(256), "1");
    for key in ["", &"x".repeat(257)] {
        assert_eq!(code(run.try_set(key, "1"), "1 to 256 characters"), ToolErrorCode::InvalidArguments);
        let get = StateCall::Get { key: key.to_owned(), tagged: false };
        assert_eq!(code(run.call(get), "1 to 256 characters"), ToolErrorCode::InvalidArguments);
    }
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    run.set("large", &text(1 << 20));
    let refused = run.try_set("large", &text((1 << 20) + 1));
    assert_eq!(code(refused, "1048577 bytes of JSON, at most 1048576"), ToolErrorCode::InvalidArguments);
    assert_eq!(run.get("large").len(), (1 << 20) + 2, "what was there stays");
    for value in ["", "{", "[1,]", "\"\\ud800\"", &"[".repeat(200)] {
        assert_eq!(code(run.try_set("k", value), "not valid JSON"), ToolErrorCode::InvalidArguments);
    }
    for index in 0..14 {
        run.set(&format!("more {index}"), &text(1 << 20));
    }
    assert_eq!(code(run.try_set("last", &text(1 << 20)), "at most 16777216"), ToolErrorCode::StateFull);
    // Replacing a value counts only the difference in size.
    run.set("large", "1");
    run.set("last", &text(1 << 20));
    let other = stage.run(&stage.store(), "other");
    for index in 0..1_000 {
        other.set(&index.to_string(), "1");
    }
    assert_eq!(code(other.try_set("one more", "1"), "1000 keys already"), ToolErrorCode::StateFull);
    other.set("999", "2");
    assert!(other.delete("0"));
    other.set("one more", "1");
    assert!(other.try_set("0", "1").is_err());
}

#[test]
fn all_state_together_is_bounded() {
    let stage = Stage::new();
    let store = stage.store();
    let large = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    let refused = (0..300).find_map(|index| {
        stage.run(&store, &format!("session {}", index / 15)).try_set(&index.to_string(), &large).err()
    });
    let error = refused.expect("300 MB do not fit");
    assert_eq!(error.code, ToolErrorCode::StateFull);
    assert!(error.message.contains("256 MB") && error.message.contains("cx state clear"), "{error}");
    let bytes = |ending: &str| fs::metadata(format!("{}{ending}", stage.path().display())).unwrap().len();
    assert!(bytes("") <= 256 << 20, "{}", bytes(""));
    // Existing scopes can be read, and deleting makes room.
    assert!(stage.run(&store, "session 0").delete("0"));
    stage.run(&store, "another").set("k", "1");
}

#[test]
fn one_run_may_write_only_so_much() {
    let stage = Stage::new();
    let store = stage.store();
    let run = stage.run(&store, "a");
    run.set("k", "1");
    let written = run.state.written_bytes.load(Ordering::Relaxed);
    assert_eq!(written, 2 + 4096);
    run.state.written_bytes.store(MAX_WRITTEN_BYTES - 2 * written, Ordering::Relaxed);
    run.set("k", "2");
    assert!(run.delete("k"));
    let error = run.try_set("k", "3").unwrap_err();
    assert_eq!(error.code, ToolErrorCode::StateFull);
    assert!(error.message.contains("this run has written 1 GB"), "{error}");
    assert_eq!(run.get("k"), "[]", "it still reads");
    stage.run(&store, "a").set("k", "3");
}

#[test]
fn a_change_of_what_is_expected_only() {
    let stage = Stage::new();
    let run = stage.run(&stage.store(), "a");
    let set = |value: &str, expected: &str| {
        let call = StateCall::Set {
            key: "k".to_owned(),
            value: value.to_owned(),
            expected: Some(expected.to_owned()),
        };
        run.call(call).unwrap()
    };
    assert_eq!(set("1", "some tag"), "[]", "it is not there");
    assert_eq!(set("1", ""), "true");
    let tagged = run.call(StateCall::Get { key: "k".to_owned(), tagged: true }).unwrap();
    assert_eq!(set("2", ""), tagged, "it is there already");
    let entry: (u32, String) = serde_json::from_str(&tagged).unwrap();
    assert_eq!(set("2", &entry.1), "true");
    assert!(set("3", &entry.1).starts_with("[2,"));
    assert_eq!(run.get("k"), "[2]");
}

/// Adds one to `k`, as `state.update` does.
fn add_one(run: &Run<'_>) {
    let mut entry = run.call(StateCall::Get { key: "k".to_owned(), tagged: true }).unwrap();
    loop {
        let (old, expected) = match serde_json::from_str::<Vec<Value>>(&entry).unwrap().as_slice() {
            [value, tag] => (value.as_u64().unwrap(), tag.as_str().unwrap().to_owned()),
            _ => (0, String::new()),
        };
        let call =
            StateCall::Set { key: "k".to_owned(), value: (old + 1).to_string(), expected: Some(expected) };
        entry = run.call(call).unwrap();
        if entry == "true" {
            return;
        }
    }
}

#[test]
fn no_update_of_several_is_lost() {
    let stage = Stage::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // The first opening is part of the race.
                let run = stage.run(&stage.store(), "a");
                for _ in 0..50 {
                    add_one(&run);
                }
            });
        }
    });
    assert_eq!(stage.run(&stage.store(), "a").get("k"), "[200]");
}

#[test]
fn what_nobody_uses_for_90_days_is_forgotten() {
    let stage = Stage::new();
    let store = stage.store();
    let (read, written, left) =
        (stage.run(&store, "read"), stage.run(&store, "written"), stage.run(&store, "left"));
    for run in [&read, &written, &left] {
        run.set("k", "1");
    }
    stage.day.fetch_add(90, Ordering::Relaxed);
    assert_eq!(read.get("k"), "[1]");
    written.set("k", "2");
    assert_eq!(store.usage().unwrap().last().unwrap().unused_days, 90);
    stage.day.fetch_add(1, Ordering::Relaxed);
    // Both in the process that has the file open, and in the next one.
    for store in [store, stage.store()] {
        let usage = store.usage().unwrap();
        let left: Vec<_> = usage.iter().filter_map(|usage| usage.scope.as_session()).collect();
        assert_eq!(left, ["read", "written"]);
    }
    assert_eq!(left.get("k"), "[]");
}

#[test]
fn only_the_person_can_read_it() {
    let stage = Stage::new();
    stage.run(&stage.store(), "a").set("k", "1");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(stage.path().parent().unwrap()), 0o700);
    for file in fs::read_dir(stage.path().parent().unwrap()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
    // If others can read the file, the permission is removed.
    fs::set_permissions(stage.path(), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(stage.run(&stage.store(), "a").get("k"), "[1]");
    assert_eq!(mode(&stage.path()), 0o600);
}

#[test]
fn files_of_others_are_not_used() {
    let refused = |prepare: &dyn Fn(&Path)| {
        let stage = Stage::new();
        fs::create_dir(stage.path().parent().unwrap()).unwrap();
        prepare(&stage.path());
        let error = stage.run(&stage.store(), "a").try_set("k", "1").unwrap_err();
        assert_eq!(error.code, ToolErrorCode::StateUnavailable);
        assert!(
            !error.message.contains(stage.directory.path().to_str().unwrap()),
            "a script learns no paths: {error}"
        );
        let told = stage.store().usage().unwrap_err();
        (error.message, format!("{told}"))
    };
    let (script, person) = refused(&|path| {
        let elsewhere = path.with_file_name("elsewhere");
        fs::write(&elsewhere, "").unwrap();
        symlink(&elsewhere, path).unwrap();
    });
    assert!(
        script.contains("`cx state list` says why") && person.contains("is not a regular file"),
        "{person}"
    );
    let (_, person) = refused(&|path| {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
    });
    assert!(person.contains("can be written by another user"), "{person}");
    let (_, person) = refused(&|path| {
        fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o777)).unwrap();
        fs::write(path, "").unwrap();
    });
    assert!(person.contains("can be written by another user"), "{person}");
    let (_, person) = refused(&|path| fs::create_dir(path).unwrap());
    assert!(person.contains("is not a regular file"), "{person}");
    let (script, _) = refused(&|path| {
        let foreign = Connection::open(path).unwrap();
        foreign.execute_batch("CREATE TABLE theirs (id INTEGER)").unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    });
    assert!(script.contains("another program"), "{script}");
}

#[test]
fn a_file_of_a_later_version_is_left_alone() {
    let stage = Stage::new();
    stage.run(&stage.store(), "a").set("k", "1");
    let newer = Connection::open(stage.path()).unwrap();
    newer.pragma_update(None, "user_version", 2).unwrap();
    let error = stage.run(&stage.store(), "a").try_set("k", "2").unwrap_err();
    assert_eq!(error.code, ToolErrorCode::StateUnavailable);
    assert!(error.message.contains("newer version of cx"), "{error}");
    newer.pragma_update(None, "user_version", 1).unwrap();
    assert_eq!(stage.run(&stage.store(), "a").get("k"), "[1]");
}

#[test]
fn a_damaged_file_is_moved_aside() {
    let stage = Stage::new();
    fs::create_dir(stage.path().parent().unwrap()).unwrap();
    fs::write(stage.path(), "x".repeat(10_000)).unwrap();
    fs::set_permissions(stage.path(), Permissions::from_mode(0o600)).unwrap();
    let run = stage.run(&stage.store(), "a");
    run.set("k", "1");
    let damaged = stage.path().with_extension("sqlite3.damaged");
    assert_eq!(fs::read(&damaged).unwrap().len(), 10_000);
    assert_eq!(stage.run(&stage.store(), "a").get("k"), "[1]");
}

#[test]
fn a_file_that_is_damaged_while_it_is_used() {
    let stage = Stage::new();
    let store = stage.store();
    let run = stage.run(&store, "a");
    let other = stage.run(&stage.store(), "a");
    for index in 0..100 {
        run.set(&index.to_string(), &format!("\"{}\"", "x".repeat(5_000)));
    }
    assert_eq!(other.keys("").matches(',').count(), 99);
    // Checkpoint into the file itself, then overwrite all of it but the first page with garbage.
    store
        .file
        .with(WAIT, |connection, _| {
            Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
        })
        .unwrap();
    let file = fs::OpenOptions::new().write(true).open(stage.path()).unwrap();
    let length = file.metadata().unwrap().len();
    std::os::unix::fs::FileExt::write_all_at(
        &file,
        &vec![0xA5; usize::try_from(length).unwrap() - 4096],
        4096,
    )
    .unwrap();
    // Closed only at the end of the test, because closing it would release locks of this process.
    store.file.with(WAIT, |connection, _| Ok(connection.execute_batch("PRAGMA shrink_memory")?)).unwrap();
    assert_eq!(run.keys("nothing"), "[]");
    run.set("k", "1");
    assert_eq!(other.get("k"), "[1]", "the other one finds the new file");
    assert!(stage.path().with_extension("sqlite3.damaged").exists());
    drop(file);
}

#[test]
fn a_file_that_is_removed_is_made_again() {
    let stage = Stage::new();
    let run = stage.run(&stage.store(), "a");
    run.set("k", "1");
    fs::remove_dir_all(stage.path().parent().unwrap()).unwrap();
    assert_eq!(run.get("k"), "[]");
    run.set("k", "2");
    assert_eq!(stage.run(&stage.store(), "a").get("k"), "[2]");
}

#[test]
fn who_holds_the_file_for_long_is_not_waited_for() {
    let stage = Stage::new();
    let run = stage.run(&stage.store(), "a");
    run.set("k", "1");
    let mut other = Connection::open(stage.path()).unwrap();
    let held = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let started = Instant::now();
    let error = run.try_set("k", "2").unwrap_err();
    assert_eq!(
        (error.code, error.retry_after),
        (ToolErrorCode::StateUnavailable, Some(Duration::from_secs(1)))
    );
    assert!(started.elapsed() >= Duration::from_millis(1_500), "it was waited for");
    assert_eq!(run.get("k"), "[1]", "reading goes on");
    // A run that ends sooner does not block the queue for as long.
    let handle = stage.runtime.handle();
    let call = StateCall::Set { key: "k".to_owned(), value: "2".to_owned(), expected: None };
    let started = Instant::now();
    stage.runtime.block_on(run.state.call(call, Instant::now(), handle)).unwrap_err();
    assert!(started.elapsed() < Duration::from_millis(1_500), "{:?}", started.elapsed());
    drop(held);
    run.set("k", "2");
}

#[test]
fn who_gives_up_waiting_has_changed_nothing() {
    let stage = Stage::new();
    let store = stage.store();
    let run = stage.run(&store, "a");
    run.set("k", "1");
    let turn = Arc::clone(&store.turn).try_acquire_owned().unwrap();
    let call = StateCall::Set { key: "k".to_owned(), value: "2".to_owned(), expected: None };
    let handle = stage.runtime.handle();
    let mut waiting = Box::pin(run.state.call(call, Instant::now() + WAIT, handle));
    assert!(futures::FutureExt::now_or_never(&mut waiting).is_none());
    drop(waiting);
    drop(turn);
    assert_eq!(run.get("k"), "[1]");
}

#[test]
fn what_a_dry_run_writes_stays_in_it() {
    let stage = Stage::new();
    let store = stage.store();
    let real = stage.run(&store, "a");
    real.set("k", "1");
    let dry = Run { stage: &stage, state: RunState::new(store, StateScope::session("a").unwrap(), true) };
    assert_eq!(dry.get("k"), "[1]");
    dry.set("new", "2");
    dry.set("k", "3");
    add_one(&dry);
    assert_eq!((dry.get("k"), dry.keys("")), ("[4]".to_owned(), r#"["k","new"]"#.to_owned()));
    assert!(dry.delete("new"));
    for index in 0..999 {
        dry.set(&format!("more {index}"), "1");
    }
    assert_eq!(
        dry.try_set("one more", "1").unwrap_err().code,
        ToolErrorCode::StateFull,
        "bounds are the same"
    );
    assert_eq!((real.get("k"), real.keys("")), ("[1]".to_owned(), r#"["k"]"#.to_owned()));
}

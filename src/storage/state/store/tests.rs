use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::atomic::AtomicI64;
use std::time::{Duration, SystemTime};

use super::*;
use crate::storage::state::days::Clock;
use crate::tools::{ToolError, ToolErrorCode};

mod bounds;
mod damage;

const WAIT: Duration = Duration::from_secs(2);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A store in a directory of its own, and the simulated current day.
struct Stage {
    directory: tempfile::TempDir,
    /// Days since 1970 on the wall clock, and since the start of the test on the monotonic one.
    day: Arc<AtomicI64>,
    passed: Arc<AtomicI64>,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            day: Arc::new(AtomicI64::new(20_000)),
            passed: Arc::default(),
            runtime: tokio::runtime::Runtime::new().unwrap(),
        }
    }

    /// In memory, where the system has a file system for that: for tests that write much.
    fn in_memory() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self { directory, ..Self::new() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("cx/state.sqlite3")
    }

    /// A separate store, as in another process: only the file is shared.
    fn store(&self) -> StateStore {
        let (day, passed) = (Arc::clone(&self.day), Arc::clone(&self.passed));
        let started = Instant::now();
        let days = |days: i64| DAY * u32::try_from(days).unwrap();
        let wall = move || match day.load(Ordering::Relaxed) {
            before @ ..0 => SystemTime::UNIX_EPOCH - days(-before) + DAY / 2,
            day => SystemTime::UNIX_EPOCH + days(day) + DAY / 2,
        };
        let monotonic = move || started + days(passed.load(Ordering::Relaxed));
        let clock = Clock { wall: Box::new(wall), monotonic: Box::new(monotonic) };
        StateStore::from_file(StateFile::with_clock(self.path(), clock))
    }

    /// Lets days pass, on both clocks.
    fn pass(&self, days: i64) {
        self.day.fetch_add(days, Ordering::Relaxed);
        self.passed.fetch_add(days, Ordering::Relaxed);
    }

    /// A run on another day of the wall clock, in a process of its own, and back.
    fn run_on(&self, day: i64) {
        let today = self.day.swap(day, Ordering::Relaxed);
        let run = self.run(&self.store(), "elsewhen");
        run.set("k", "1");
        assert_eq!(run.get("k"), "[1]");
        self.day.store(today, Ordering::Relaxed);
    }

    /// The sessions that have state.
    fn sessions(&self) -> Vec<String> {
        let usage = self.store().usage().unwrap();
        usage.iter().filter_map(|usage| usage.scope.as_session().map(str::to_owned)).collect()
    }

    /// The files of the store, with their contents, when no process has it open.
    fn bytes(&self) -> Vec<u8> {
        let connection = Connection::open(self.path()).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        connection.close().unwrap();
        fs::read(self.path()).unwrap()
    }

    fn damaged(&self) -> PathBuf {
        self.path().with_extension("sqlite3.damaged")
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
    let tenant = |name: &str, handle: &str| Run {
        stage: &stage,
        state: RunState::new(store.clone(), StateScope::session_of(Some(name), handle).unwrap(), false),
    };
    // A tenant's name has no slash, so that these are two.
    let tenants = [tenant("a", "b/c"), tenant("a-b", "c")];
    tenants[0].set("k", "4");
    assert_eq!((of(&tenants[0]), of(&tenants[1])), ("[4]".to_owned(), "[]".to_owned()));
    assert!(StateScope::session_of(Some("a/b"), "c").is_err());
    let kept: Vec<_> = store.usage().unwrap().into_iter().map(|usage| usage.scope).collect();
    let of_tenant = kept.iter().find(|scope| scope.as_tenant().is_some()).unwrap();
    assert_eq!((of_tenant.as_tenant(), of_tenant.as_session()), (Some("a"), Some("b/c")));
    assert_eq!((of_tenant.to_string().as_str(), of_tenant.as_client()), ("session b/c of tenant a", None));
    assert_eq!(store.clear(of_tenant).unwrap(), 1);
    assert_eq!(store.clear(&StateScope::session("/a").unwrap()).unwrap(), 1);
    assert_eq!((of(&a), of(&b), of(&workspace)), ("[]".to_owned(), "[2]".to_owned(), "[3]".to_owned()));
    assert_eq!(store.clear_all().unwrap(), 2);
    assert!(store.usage().unwrap().is_empty());
    // Deleted data must not remain in the files.
    a.set("k", r#""a secret of a person""#);
    store.clear_all().unwrap();
    for file in fs::read_dir(stage.path().parent().unwrap()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(8).any(|window| window == b"a secret"));
    }
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

/// A file as version 1 made it: days since 1970.
fn version_1(stage: &Stage, scopes: &[(&str, i64)]) {
    fs::create_dir(stage.path().parent().unwrap()).unwrap();
    let old = Connection::open(stage.path()).unwrap();
    old.execute_batch(
        "
    CREATE TABLE scopes (
        id INTEGER PRIMARY KEY,
        kind INTEGER NOT NULL,
        name BLOB NOT NULL,
        used INTEGER NOT NULL,
        keys INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        UNIQUE (kind, name)
    ) STRICT;
    CREATE TABLE entries (
        scope INTEGER NOT NULL REFERENCES scopes (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        UNIQUE (scope, key)
    ) STRICT;
    PRAGMA application_id = 1668838260;
    PRAGMA user_version = 1;
    PRAGMA journal_mode = WAL;
",
    )
    .unwrap();
    for (name, used) in scopes {
        let insert = "INSERT INTO scopes (kind, name, used, keys, bytes) VALUES (1, ?1, ?2, 1, 2)";
        old.execute(insert, rusqlite::params![name.as_bytes(), used]).unwrap();
        old.execute("INSERT INTO entries VALUES (?1, 'k', '1')", [old.last_insert_rowid()]).unwrap();
    }
    fs::set_permissions(stage.path(), Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_file_of_the_first_version_is_migrated() {
    let stage = Stage::new();
    // One was used under a wrong clock, and one a year ago, which the first version would delete.
    version_1(&stage, &[("today", 20_000), ("2090", 43_829), ("old", 19_635), ("same", 19_635)]);
    let store = stage.store();
    let usage = store.usage().unwrap();
    let ages: Vec<_> =
        usage.iter().map(|usage| (usage.scope.as_session().unwrap(), usage.unused_days)).collect();
    assert_eq!(ages, [("2090", 0), ("today", 1), ("old", 2), ("same", 2)]);
    assert_eq!(stage.run(&store, "old").get("k"), "[1]");
    assert!(!stage.damaged().exists());
    // It is the same file as a new one from now on.
    assert_eq!(stage.run(&stage.store(), "today").get("k"), "[1]");
    assert!(!stage.damaged().exists());
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
    let set_version = |version: i64| {
        newer.pragma_update(None, "user_version", version).unwrap();
        newer.execute("UPDATE meta SET version = ?1", [version]).unwrap();
    };
    set_version(3);
    let error = stage.run(&stage.store(), "a").try_set("k", "2").unwrap_err();
    assert_eq!(error.code, ToolErrorCode::StateUnavailable);
    assert!(error.message.contains("newer version of cx"), "{error}");
    set_version(2);
    assert_eq!(stage.run(&stage.store(), "a").get("k"), "[1]");
}

#[test]
fn a_damaged_file_is_set_aside_and_told() {
    let stage = Stage::new();
    fs::create_dir(stage.path().parent().unwrap()).unwrap();
    fs::write(stage.path(), "x".repeat(10_000)).unwrap();
    fs::set_permissions(stage.path(), Permissions::from_mode(0o600)).unwrap();
    let store = stage.store();
    assert_eq!(store.damaged_file(), None);
    let run = stage.run(&store, "a");
    run.set("k", "1");
    assert_eq!(store.damaged_file(), Some(stage.damaged()));
    assert_eq!(fs::read(stage.damaged()).unwrap().len(), 10_000);
    assert_eq!(stage.run(&stage.store(), "a").get("k"), "[1]");
    assert_eq!(store.clear_all().unwrap(), 1);
    assert_eq!(store.damaged_file(), None, "what is private in it goes too");
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
fn a_lock_that_is_held_for_long_is_not_awaited() {
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
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(1_500), "it was waited for");
    assert_eq!(run.get("k"), "[1]", "reading goes on");
    // A run that ends sooner does not block the queue for as long.
    let handle = stage.runtime.handle();
    let sooner = (0..3).map(|_| {
        let call = StateCall::Set { key: "k".to_owned(), value: "2".to_owned(), expected: None };
        let started = Instant::now();
        stage.runtime.block_on(run.state.call(call, Instant::now(), handle)).unwrap_err();
        started.elapsed()
    });
    // None of them waits, so the least is measured, which a busy machine does not delay.
    let least = sooner.min().unwrap();
    assert!(least < waited, "{least:?}, and {waited:?} for one with time");
    drop(held);
    run.set("k", "2");
}

#[test]
fn a_waiter_that_times_out_has_changed_nothing() {
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

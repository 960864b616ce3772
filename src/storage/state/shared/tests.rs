//! Two processes on one store, which goes away, confirms nothing, and is full.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::*;
use crate::storage::shared::fake::FakeStore;

/// A store and the processes that share it.
struct Stage {
    store: Arc<FakeStore>,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new() -> Self {
        let store = Arc::new(FakeStore::default());
        store.now.store(20_000 * DAY, Ordering::Relaxed);
        Self { store, runtime: tokio::runtime::Runtime::new().unwrap() }
    }

    fn process(&self) -> Arc<SharedState> {
        Arc::new(SharedState::new(Arc::clone(&self.store) as Arc<dyn SharedStore>))
    }

    fn call(&self, process: &Arc<SharedState>, session: &str, call: StateCall) -> Result<String, StateError> {
        let scope = StateScope::session(session).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        self.runtime.block_on(process.call(call, &scope, deadline, self.runtime.handle()))
    }

    fn keys(&self, prefix: &str) -> usize {
        self.store.entries.lock().keys().filter(|key| key.starts_with(prefix)).count()
    }
}

fn set(key: &str, value: &str, expected: Option<&str>) -> StateCall {
    StateCall::Set { key: key.to_owned(), value: value.to_owned(), expected: expected.map(str::to_owned) }
}

fn get(key: &str) -> StateCall {
    StateCall::Get { key: key.to_owned(), tagged: false }
}

fn delete(key: &str) -> StateCall {
    StateCall::Delete { key: key.to_owned() }
}

/// A string of so many bytes of JSON.
fn long(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

#[test]
fn what_one_process_sets_another_reads() {
    let stage = Stage::new();
    let (one, other) = (stage.process(), stage.process());
    assert_eq!(stage.call(&one, "s", get("a")).unwrap(), "[]");
    assert_eq!(stage.call(&one, "s", set("a", "{\"b\": 1}", None)).unwrap(), "true");
    assert_eq!(stage.call(&other, "s", get("a")).unwrap(), "[{\"b\":1}]");
    // Values of every length: in the head, in one part, in several.
    for bytes in [1_024, 1_025, 300_000, 1 << 20] {
        stage.call(&other, "s", set("b", &long(bytes), None)).unwrap();
        assert_eq!(stage.call(&one, "s", get("b")).unwrap().len(), bytes + 2);
    }
    assert_eq!(stage.call(&one, "s", StateCall::Keys { prefix: String::new() }).unwrap(), "[\"a\",\"b\"]");
    // Only the parts of the last value are left.
    assert_eq!(stage.keys("part."), 4);
    assert_eq!(stage.call(&one, "s", delete("b")).unwrap(), "true");
    assert_eq!(stage.call(&other, "s", delete("b")).unwrap(), "false");
    assert_eq!(stage.keys("part."), 0);
    let invalid = stage.call(&one, "s", set("a", "{", None));
    assert!(matches!(invalid, Err(StateError::Invalid(_))), "{invalid:?}");
}

#[test]
fn scopes_are_apart_whatever_they_are_called() {
    let stage = Stage::new();
    let process = stage.process();
    let names = ["s", "s.t", "part.s", "*", ">", "a b", "workspace /", "\u{e4}"];
    for name in names {
        stage.call(&process, name, set("k", &serde_json::Value::from(name).to_string(), None)).unwrap();
    }
    for name in names {
        let kept = stage.call(&process, name, get("k")).unwrap();
        assert_eq!(kept, format!("[{}]", serde_json::Value::from(name)));
    }
    assert_eq!(stage.keys("head."), names.len());
    let scopes: [StateScope; 2] =
        [StateScope::workspace(std::path::Path::new("/")), StateScope::session("/").unwrap()];
    let hidden: BTreeSet<String> = scopes.iter().map(|scope| process.scopes.name(scope).unwrap()).collect();
    assert_eq!(hidden.len(), 2, "a session cannot be named like a workspace");
}

#[test]
fn the_expected_value_is_that_of_all_processes() {
    let stage = Stage::new();
    let (one, other) = (stage.process(), stage.process());
    let tagged = || StateCall::Get { key: "n".to_owned(), tagged: true };
    stage.call(&one, "s", set("n", "1", Some(""))).unwrap();
    let before = stage.call(&other, "s", tagged()).unwrap();
    let tag = before[4..].trim_end_matches("\"]").to_owned();
    assert_eq!(stage.call(&other, "s", set("n", "2", Some(&tag))).unwrap(), "true");
    let differs = stage.call(&one, "s", set("n", "3", Some(&tag))).unwrap();
    assert!(differs.starts_with("[2,\""), "{differs}");
    assert_eq!(stage.call(&one, "s", set("n", "3", Some(""))).unwrap(), differs);
    assert_eq!(stage.call(&one, "s", set("new", "3", Some(&tag))).unwrap(), "[]");
}

/// Eight tasks in two processes count to 200 in one value, as `state.update` does, and each has a key of its own.
#[test]
fn concurrent_changes_lose_nothing() {
    let stage = Stage::new();
    let processes = [stage.process(), stage.process()];
    stage.runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..8 {
            let process = Arc::clone(&processes[task % 2]);
            tasks.spawn(async move {
                let scope = StateScope::session("s").unwrap();
                let handle = Handle::current();
                let deadline = Instant::now() + Duration::from_secs(60);
                let call = |call| process.call(call, &scope, deadline, &handle);
                for round in 0..25 {
                    let tagged = StateCall::Get { key: "n".to_owned(), tagged: true };
                    let mut found = call(tagged).await.unwrap();
                    loop {
                        let parsed: serde_json::Value = serde_json::from_str(&found).unwrap();
                        let next = (parsed[0].as_u64().unwrap_or(0) + 1).to_string();
                        let expected = parsed[1].as_str().unwrap_or("").to_owned();
                        found = call(set("n", &next, Some(&expected))).await.unwrap();
                        if found == "true" {
                            break;
                        }
                    }
                    call(set(&format!("{task}-{round}"), "1", None)).await.unwrap();
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
    assert_eq!(stage.call(&processes[0], "s", get("n")).unwrap(), "[200]");
    let keys = stage.call(&processes[0], "s", StateCall::Keys { prefix: String::new() }).unwrap();
    assert_eq!(serde_json::from_str::<Vec<String>>(&keys).unwrap().len(), 201);
}

#[test]
fn bounds_are_those_of_all_processes() {
    let stage = Stage::new();
    let processes = [stage.process(), stage.process()];
    for number in 0..1_000 {
        stage.call(&processes[number % 2], "keys", set(&number.to_string(), "1", None)).unwrap();
    }
    for process in &processes {
        let full = stage.call(process, "keys", set("one more", "1", None));
        assert!(matches!(full, Err(StateError::Full(_))), "{full:?}");
        stage.call(process, "keys", set("0", "2", None)).unwrap();
    }
    for number in 0..15 {
        stage.call(&processes[number % 2], "bytes", set(&number.to_string(), &long(1 << 20), None)).unwrap();
    }
    let parts = stage.keys("part.");
    stage.call(&processes[0], "bytes", set("last", &long(1_000_000), None)).unwrap();
    let full = stage.call(&processes[1], "bytes", set("more", &long(1_000_000), None));
    assert!(matches!(full, Err(StateError::Full(_))), "{full:?}");
    // What was written for it is not left behind.
    assert_eq!(stage.keys("part."), parts + 4);
    // Replacing a value counts the difference only.
    stage.call(&processes[1], "bytes", set("last", &long(1_000_001), None)).unwrap();
    stage.call(&processes[1], "other", set("more", &long(1_000_000), None)).unwrap();
}

/// Keys of 1,000 bytes make a list that is longer than one entry.
#[test]
fn a_long_list_of_keys_is_kept_in_parts() {
    let stage = Stage::new();
    let (one, other) = (stage.process(), stage.process());
    let key = |number: usize| format!("{number:03}{}", "\u{1f600}".repeat(250));
    for number in 0..300 {
        stage.call(&one, "s", set(&key(number), "1", None)).unwrap();
    }
    assert!(stage.keys("part.") > 1);
    let keys = stage.call(&other, "s", StateCall::Keys { prefix: "29".to_owned() }).unwrap();
    assert_eq!(serde_json::from_str::<Vec<String>>(&keys).unwrap().len(), 10);
    for number in 0..300 {
        assert_eq!(stage.call(&other, "s", delete(&key(number))).unwrap(), "true");
    }
    assert_eq!(stage.keys("part."), 0, "the parts of earlier lists are removed");
}

#[test]
fn a_store_that_is_away_is_an_error() {
    let stage = Stage::new();
    let process = stage.process();
    stage.call(&process, "s", set("a", "1", None)).unwrap();
    stage.store.is_away.store(true, Ordering::Relaxed);
    for call in [get("a"), set("a", "2", None), delete("a"), StateCall::Keys { prefix: String::new() }] {
        let away = stage.call(&process, "s", call);
        assert!(matches!(away, Err(StateError::Away(_))), "{away:?}");
    }
    stage.store.is_away.store(false, Ordering::Relaxed);
    assert_eq!(stage.call(&process, "s", get("a")).unwrap(), "[1]");
}

/// A write whose confirmation is lost is an error, and what it has written stays whole.
#[test]
fn an_unconfirmed_write_leaves_a_whole_value() {
    let stage = Stage::new();
    let process = stage.process();
    stage.call(&process, "s", set("a", &long(2_000), None)).unwrap();
    // A part.
    stage.store.unconfirmed.store(1, Ordering::Relaxed);
    let lost = stage.call(&process, "s", set("a", &long(3_000), None));
    assert!(matches!(lost, Err(StateError::Away(_))), "{lost:?}");
    assert_eq!(stage.call(&process, "s", get("a")).unwrap().len(), 2_002);
    // The head alone.
    stage.call(&process, "s", set("b", "1", None)).unwrap();
    stage.store.unconfirmed.store(1, Ordering::Relaxed);
    let lost = stage.call(&process, "s", set("b", "2", None));
    assert!(matches!(lost, Err(StateError::Away(_))), "{lost:?}");
    assert_eq!(stage.call(&process, "s", get("b")).unwrap(), "[2]");
}

#[test]
fn a_full_store_can_be_read_and_emptied() {
    let stage = Stage::new();
    let process = stage.process();
    stage.store.most.store(40_000, Ordering::Relaxed);
    stage.call(&process, "s", set("a", &long(30_000), None)).unwrap();
    let full = stage.call(&process, "s", set("b", &long(30_000), None));
    assert!(matches!(full, Err(StateError::Full(_))), "{full:?}");
    assert_eq!(stage.call(&process, "s", get("a")).unwrap().len(), 30_002);
    assert_eq!(stage.call(&process, "s", delete("a")).unwrap(), "true");
    stage.call(&process, "s", set("b", &long(30_000), None)).unwrap();
}

#[test]
fn what_was_changed_by_others_is_damaged() {
    let stage = Stage::new();
    let process = stage.process();
    stage.call(&process, "s", set("a", &long(3_000), None)).unwrap();
    stage.store.entries.lock().retain(|key, _| !key.starts_with("part."));
    let damaged = stage.call(&process, "s", get("a"));
    assert!(matches!(damaged, Err(StateError::DamagedValue(_))), "{damaged:?}");
    stage.call(&process, "s", set("a", "1", None)).unwrap();
    assert_eq!(stage.call(&process, "s", get("a")).unwrap(), "[1]");
    for head in [&b""[..], b"\x01", b"\x01\x00{", b"\x01\x01{}"] {
        let mut entries = stage.store.entries.lock();
        entries.values_mut().for_each(|entry| entry.value = Some(head.to_vec()));
        drop(entries);
        let damaged = stage.call(&process, "s", get("a"));
        assert!(matches!(damaged, Err(StateError::Away(_))), "{head:?}: {damaged:?}");
    }
    stage.store.entries.lock().values_mut().for_each(|entry| entry.value = Some(b"\x02\x00{}".to_vec()));
    assert!(matches!(stage.call(&process, "s", get("a")), Err(StateError::NewerShared)));
}

#[test]
fn what_is_not_used_is_removed() {
    let stage = Stage::new();
    let process = stage.process();
    stage.call(&process, "old", set("a", &long(3_000), None)).unwrap();
    stage.call(&process, "used", set("a", &long(3_000), None)).unwrap();
    // What a process has left that has died before it has replaced the head.
    let used = process.scopes.name(&StateScope::session("used").unwrap()).unwrap();
    stage.runtime.block_on(parts::write(&*stage.store, &used, &long(3_000))).unwrap();
    let pass = |time: i64| stage.store.now.fetch_add(time, Ordering::Relaxed);
    pass(MAX_WRITE / 2);
    stage.call(&process, "now", set("a", "1", None)).unwrap();
    stage.runtime.block_on(process.scopes.sweep()).unwrap();
    assert_eq!((stage.keys("head."), stage.keys("part.")), (3, 3), "it may belong to a write");
    pass(MAX_WRITE);
    stage.call(&process, "now", set("a", "2", None)).unwrap();
    stage.runtime.block_on(process.scopes.sweep()).unwrap();
    assert_eq!((stage.keys("head."), stage.keys("part.")), (3, 2));
    // Reading counts as use.
    pass(MAX_UNUSED - DAY);
    stage.call(&process, "used", get("a")).unwrap();
    pass(2 * DAY);
    stage.call(&process, "now", set("a", "3", None)).unwrap();
    stage.runtime.block_on(process.scopes.sweep()).unwrap();
    assert_eq!((stage.keys("head."), stage.keys("part.")), (2, 1));
    assert_eq!(stage.call(&process, "old", get("a")).unwrap(), "[]");
    assert_eq!(stage.call(&process, "used", get("a")).unwrap().len(), 3_002);
}

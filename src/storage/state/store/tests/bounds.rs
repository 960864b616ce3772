//! How much state there may be, and for how long it is kept.

use super::*;

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
    assert_eq!(code(other.try_set("0", "1"), "1000 keys already"), ToolErrorCode::StateFull);
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
fn what_is_not_used_on_90_days_of_use_is_forgotten() {
    let stage = Stage::new();
    let store = stage.store();
    let (read, written, left) =
        (stage.run(&store, "read"), stage.run(&store, "written"), stage.run(&store, "left"));
    for run in [&read, &written, &left] {
        run.set("k", "1");
    }
    // The last day counts when the next one follows.
    for day in 1..=90 {
        stage.pass(1);
        assert_eq!(read.get("k"), "[1]");
        written.set("k", &day.to_string());
    }
    assert_eq!(store.usage().unwrap().last().unwrap().unused_days, 90);
    assert_eq!(stage.sessions(), ["read", "written", "left"]);
    stage.pass(1);
    // Both in the process that has the file open, and in the next one.
    for store in [store, stage.store()] {
        let usage = store.usage().unwrap();
        let left: Vec<_> = usage.iter().filter_map(|usage| usage.scope.as_session()).collect();
        assert_eq!(left, ["read", "written"]);
    }
    assert_eq!(left.get("k"), "[]");
}

#[test]
fn days_without_any_run_do_not_count() {
    let stage = Stage::new();
    stage.run(&stage.store(), "a").set("k", "1");
    for _ in 0..5 {
        stage.pass(1_000);
        stage.run(&stage.store(), "b").set("k", "1");
    }
    assert_eq!(stage.sessions(), ["a", "b"]);
    let usage = stage.store().usage().unwrap();
    assert_eq!(usage.iter().map(|usage| usage.unused_days).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn a_run_with_a_wrong_clock_forgets_nothing_that_a_right_one_keeps() {
    let stage = Stage::new();
    stage.run(&stage.store(), "a").set("k", "1");
    let other = stage.store();
    let daily = stage.run(&other, "daily");
    for _ in 0..90 {
        stage.pass(1);
        daily.set("k", "1");
    }
    let today = stage.day.load(Ordering::Relaxed);
    let state = || {
        let usage = stage.store().usage().unwrap();
        let age = |name: &str| {
            let scope = usage.iter().find(|usage| usage.scope.as_session() == Some(name));
            scope.map(|usage| usage.unused_days)
        };
        (age("a"), age("daily"))
    };
    assert_eq!(state(), (Some(90), Some(0)), "the last day on which it is kept");
    // 2090, 1990, 1901, the first days of 1970, and days around today.
    for day in [43_829, 7_305, -25_202, 0, 1, -1, today - 1, today - 40, today + 40, today + 5_000_000] {
        for _ in 0..3 {
            stage.run_on(day);
            assert_eq!(state(), (Some(90), Some(0)), "after a run on day {day}");
        }
    }
    // A machine whose clock starts in 1970, again and again.
    for _ in 0..200 {
        stage.run_on(0);
        stage.run(&stage.store(), "daily").set("k", "1");
    }
    assert_eq!(state().0, Some(90));
    // Time goes on where it was.
    stage.pass(1);
    daily.set("k", "1");
    assert_eq!(state().0, None);
}

#[test]
fn days_do_not_pass_faster_in_a_process_whose_clock_races() {
    let stage = Stage::new();
    let store = stage.store();
    stage.run(&store, "a").set("k", "1");
    let run = stage.run(&store, "b");
    for _ in 0..200 {
        stage.day.fetch_add(1, Ordering::Relaxed);
        run.set("k", "1");
    }
    assert_eq!(stage.sessions(), ["a", "b"]);
}

//! Damaged files.

use super::*;

/// Whatever is done to a file: it works, or is set aside.
#[test]
fn every_damaged_byte_is_survived() {
    let stage = Stage::in_memory();
    let store = stage.store();
    for session in ["first session", "second session"] {
        let run = stage.run(&store, session);
        for index in 0..12 {
            run.set(&format!("key {index}"), &format!("\"{}\"", index.to_string().repeat(500)));
        }
    }
    drop(store);
    let whole = stage.bytes();
    // Set aside, damaged values, and good files.
    let mut outcomes = (0, 0, 0);
    let header = (0..100).flat_map(|at| [(at, 0x01), (at, 0xFF)]);
    let spread = (100..whole.len()).step_by(257).map(|at| (at, 0x80));
    // The texts of the schema, and the beginning of each page.
    let schema = (100..4096).step_by(61).filter(|at| whole[*at] != 0).map(|at| (at, 0x01));
    let pages = (4096..whole.len()).filter(|at| at % 4096 < 12).map(|at| (at, 0xFF));
    for (at, flip) in header.chain(spread).chain(schema).chain(pages) {
        let mut bytes = whole.clone();
        bytes[at] ^= flip;
        fs::remove_dir_all(stage.path().parent().unwrap()).unwrap();
        fs::create_dir(stage.path().parent().unwrap()).unwrap();
        fs::write(stage.path(), &bytes).unwrap();
        fs::set_permissions(stage.path(), Permissions::from_mode(0o600)).unwrap();
        let store = stage.store();
        let run = stage.run(&store, "first session");
        let context = format!("byte {at} ^ {flip:#x}");
        let mut damaged = Vec::new();
        for index in 0..12 {
            let key = format!("key {index}");
            let got = run.call(StateCall::Get { key: key.clone(), tagged: false });
            if let Err(error) = got {
                assert!(error.message.contains(&format!("`{key}` is damaged")), "{context}: {error}");
                damaged.push(key);
            }
        }
        let listed = store.usage().unwrap_or_else(|error| panic!("{context}: {error:?}"));
        for key in damaged {
            outcomes.1 += 1;
            assert!(listed.iter().any(|usage| usage.damaged_keys.contains(&key)), "{context}: {key}");
            run.set(&key, "1");
            assert_eq!(run.get(&key), "[1]", "{context}");
        }
        run.call(StateCall::Keys { prefix: String::new() })
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        run.try_set("new", "1").unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(run.get("new"), "[1]", "{context}");
        // The next process finds a good file.
        let next = stage.store();
        assert_eq!(stage.run(&next, "first session").get("new"), "[1]", "{context}");
        if next.damaged_file().is_some() {
            outcomes.0 += 1;
        } else {
            outcomes.2 += 1;
        }
        next.clear_all().unwrap_or_else(|error| panic!("{context}: {error:?}"));
    }
    assert!(outcomes.0 > 50 && outcomes.1 > 5 && outcomes.2 > 50, "{outcomes:?}");
}

#[test]
fn a_damaged_value_is_named_and_can_be_replaced() {
    let stage = Stage::new();
    let store = stage.store();
    let run = stage.run(&store, "a");
    for key in ["text", "bytes", "good"] {
        run.set(key, "[1,2,3]");
    }
    let hand = Connection::open(stage.path()).unwrap();
    hand.execute("UPDATE entries SET value = '[1,2' WHERE key = 'text'", []).unwrap();
    hand.execute("UPDATE entries SET value = CAST(x'22ff22' AS TEXT) WHERE key = 'bytes'", []).unwrap();
    for key in ["text", "bytes"] {
        let get = |tagged| run.call(StateCall::Get { key: key.to_owned(), tagged });
        for error in [get(false).unwrap_err(), get(true).unwrap_err()] {
            assert_eq!(error.code, ToolErrorCode::StateUnavailable);
            assert!(error.message.contains(&format!("the value of `{key}` is damaged")), "{error}");
            assert!(error.message.contains("`cx state list`"), "{error}");
        }
    }
    assert_eq!(run.get("good"), "[[1,2,3]]");
    assert_eq!(store.usage().unwrap()[0].damaged_keys, ["bytes", "text"]);
    run.set("text", "4");
    assert!(run.delete("bytes"));
    assert_eq!((run.get("text"), run.get("bytes")), ("[4]".to_owned(), "[]".to_owned()));
    assert!(store.usage().unwrap()[0].damaged_keys.is_empty());
}

#[test]
fn wrong_sums_are_computed_anew() {
    let stage = Stage::new();
    let store = stage.store();
    let run = stage.run(&store, "a");
    for key in ["a", "b", "c"] {
        run.set(key, "1");
    }
    let hand = Connection::open(stage.path()).unwrap();
    for wrong in [i64::MAX, i64::MIN, -5, 1_000_000_000] {
        hand.execute("UPDATE scopes SET keys = ?1, bytes = ?1", [wrong]).unwrap();
        run.set("d", "1");
        let usage = &store.usage().unwrap()[0];
        assert_eq!((usage.keys, usage.bytes), (4, 8), "{wrong}");
        assert!(run.delete("d"));
    }
    // Deleting one of several keys keeps the others.
    hand.execute("UPDATE scopes SET keys = 1", []).unwrap();
    assert!(run.delete("c"));
    assert_eq!(run.keys(""), r#"["a","b"]"#);
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

/// SQLite opens the files beside its own without a look at what they are.
#[test]
fn v_797_a_pipe_beside_the_state_file_is_refused_and_not_waited_for() {
    let stage = Stage::new();
    stage.run(&stage.store(), "a").set("key", "1");
    for ending in ["-journal", "-wal", "-shm"] {
        let path = stage.path().with_file_name(format!("state.sqlite3{ending}"));
        for is_pipe in [true, false] {
            if is_pipe {
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
            } else {
                symlink("elsewhere", &path).unwrap();
            }
            let store = stage.store();
            let error = store.usage().err().unwrap();
            let expected = format!("state.sqlite3{ending} is not a regular file");
            assert!(format!("{error:?}").contains(&expected), "{error:?}");
            fs::remove_file(&path).unwrap();
            assert_eq!(stage.run(&store, "a").get("key"), "[1]", "{ending}");
        }
    }
}

use std::fs;
use std::path::{Path, PathBuf};

use super::{keep_copies, take_back, undo};
use crate::config::environment::{Directories, Environment};
use crate::config::setup::plan::{FileChange, Plan};
use crate::config::setup::{SetupError, SetupLock};

fn change(path: &Path) -> FileChange {
    FileChange {
        path: path.to_owned(),
        owner: "a client".to_owned(),
        actions: Vec::new(),
        before: Some(b"old".to_vec()),
        after: b"new".to_vec(),
    }
}

/// The second change stands for another program, which writes while the copies are made.
#[test]
fn v_618_a_file_that_changes_while_others_are_written_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment::of([("HOME", home.path().to_str().unwrap())]);
    let lock = SetupLock::acquire(&Directories::in_environment(&environment).unwrap()).unwrap();
    let file = home.path().join("a.json");
    fs::write(&file, "old").unwrap();
    let plan = Plan { changes: vec![change(&file), change(&file)], servers: Vec::new(), notes: Vec::new() };
    let error = plan.apply(&lock).unwrap_err();
    assert!(matches!(&error, SetupError::Changed { path } if *path == file), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert!(matches!(undo(&lock, false), Err(SetupError::NothingToUndo)));
}

/// As on a disk that is full: neither the next file nor the last one can be written.
#[test]
fn v_618_what_could_not_be_put_back_can_be_undone_later() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment::of([("HOME", home.path().to_str().unwrap())]);
    let lock = SetupLock::acquire(&Directories::in_environment(&environment).unwrap()).unwrap();
    let (file, nowhere) = (home.path().join("a.json"), PathBuf::from("/proc/self/none"));
    fs::write(&file, "new").unwrap();
    let written = [change(&file), change(&nowhere)];
    let copies = keep_copies(&lock.root, &written).unwrap();
    assert_eq!(take_back(&written, &copies).unwrap(), [nowhere]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    let error = undo(&lock, false).unwrap_err();
    assert!(matches!(error, SetupError::ChangedSince { .. }), "{error}");
    // Once all of them are as before there is nothing left to do.
    assert!(take_back(&written[..1], &copies).unwrap().is_empty());
    assert!(matches!(undo(&lock, false), Err(SetupError::NothingToUndo)));
}

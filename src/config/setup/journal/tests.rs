use std::fs;
use std::path::{Path, PathBuf};

use super::{keep_copies, numbers, take_back, undo};
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

fn lock_in(home: &Path) -> SetupLock {
    let environment = Environment::from_variables([("HOME", home.to_str().unwrap())]);
    SetupLock::acquire(&Directories::in_environment(&environment).unwrap()).unwrap()
}

/// The second change stands for another program, which writes while the copies are made.
#[test]
fn v_618_a_file_that_changes_while_others_are_written_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let lock = lock_in(home.path());
    let file = home.path().join("a.json");
    fs::write(&file, "old").unwrap();
    let plan = Plan { changes: vec![change(&file), change(&file)], servers: Vec::new(), notes: Vec::new() };
    let error = plan.apply(&lock).unwrap_err();
    assert!(matches!(&error, SetupError::Changed { path } if *path == file), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert!(matches!(undo(&lock, false), Err(SetupError::NothingToUndo)));
}

/// The copies of the last twenty times are kept.
#[test]
fn the_copies_of_the_oldest_changes_go() {
    let home = tempfile::tempdir().unwrap();
    let lock = lock_in(home.path());
    let file = home.path().join("a.json");
    for _ in 0..23 {
        fs::write(&file, "old").unwrap();
        let plan = Plan { changes: vec![change(&file)], servers: Vec::new(), notes: Vec::new() };
        plan.apply(&lock).unwrap();
    }
    assert_eq!(numbers(&lock.root), (4..=23).collect::<Vec<u64>>());
}

/// As on a disk that is full: neither the next file nor the last one can be written.
#[test]
fn v_618_what_could_not_be_put_back_can_be_undone_later() {
    let home = tempfile::tempdir().unwrap();
    let lock = lock_in(home.path());
    let (file, nowhere) = (home.path().join("a.json"), PathBuf::from("/proc/self/none"));
    fs::write(&file, "new").unwrap();
    let written = [change(&file), change(&nowhere)];
    let copies = keep_copies(&lock.root, &written).unwrap();
    assert_eq!(take_back(&written, &copies), [nowhere]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    let error = undo(&lock, false).unwrap_err();
    assert!(matches!(error, SetupError::ChangedSince { .. }), "{error}");
    // Once all of them are as before there is nothing left to do.
    fs::write(&file, "new").unwrap();
    assert!(take_back(&written[..1], &copies).is_empty());
    assert!(matches!(undo(&lock, false), Err(SetupError::NothingToUndo)));
}

/// The first file is back already, and the last one was never written: neither is of the change that is left. No
/// user can replace the file that the link in the middle leads to.
#[cfg(target_os = "linux")]
#[test]
fn v_618_only_what_could_not_be_put_back_is_undone_later() {
    let home = tempfile::tempdir().unwrap();
    let lock = lock_in(home.path());
    let [back, left, never] = ["a.json", "b.json", "c.json"].map(|name| home.path().join(name));
    let after = fs::read("/proc/version").unwrap();
    let changes = [change(&back), FileChange { after: after.clone(), ..change(&left) }, change(&never)];
    let copies = keep_copies(&lock.root, &changes).unwrap();
    fs::write(&back, "new").unwrap();
    std::os::unix::fs::symlink("/proc/version", &left).unwrap();
    fs::write(&never, "of another program").unwrap();
    assert_eq!(take_back(&changes[..2], &copies), std::slice::from_ref(&left));
    assert_eq!(fs::read_to_string(&back).unwrap(), "old");
    // Now it can be written.
    fs::remove_file(&left).unwrap();
    fs::write(&left, &after).unwrap();
    fs::write(&back, "of another program").unwrap();
    assert_eq!(undo(&lock, false).unwrap().files, std::slice::from_ref(&left));
    let texts = [&back, &left, &never].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(texts, ["of another program", "old", "of another program"]);
    assert!(matches!(undo(&lock, false), Err(SetupError::NothingToUndo)));
}

/// A client writes its file while the next one cannot be written.
#[test]
fn v_618_what_a_client_has_written_since_is_not_put_back() {
    let home = tempfile::tempdir().unwrap();
    let lock = lock_in(home.path());
    let file = home.path().join("a.json");
    fs::write(&file, "of a client").unwrap();
    let written = [change(&file)];
    let copies = keep_copies(&lock.root, &written).unwrap();
    assert_eq!(take_back(&written, &copies), std::slice::from_ref(&file));
    assert_eq!(fs::read_to_string(&file).unwrap(), "of a client");
    let error = undo(&lock, false).unwrap_err();
    assert!(
        matches!(&error, SetupError::ChangedSince { files } if *files == std::slice::from_ref(&file)),
        "{error}"
    );
}

/// Nor can the journal be written then, which is not what the user has to know.
#[test]
fn v_618_files_are_put_back_even_if_the_journal_cannot_be_written() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a.json");
    fs::write(&file, "new").unwrap();
    assert!(take_back(&[change(&file)], Path::new("/proc/self/none")).is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
}

/// The second change stands for another program, which writes the first file before the last one turns out to be one
/// that no user can write: its directory is missing, so that its path leads to the first file only when it is written.
#[cfg(target_os = "linux")]
#[test]
fn v_618_a_change_that_stays_half_written_names_what_is_left() {
    let home = tempfile::tempdir().unwrap();
    let lock = lock_in(home.path());
    let (file, nowhere) = (home.path().join("a.json"), PathBuf::from("/proc/self/none"));
    fs::write(&file, "old").unwrap();
    let other = FileChange {
        before: None,
        after: b"of another program".to_vec(),
        ..change(&home.path().join("missing/../a.json"))
    };
    let last = FileChange { before: None, ..change(&nowhere) };
    let plan = Plan { changes: vec![change(&file), other, last], servers: Vec::new(), notes: Vec::new() };
    let SetupError::HalfWritten { problem, left } = plan.apply(&lock).unwrap_err() else {
        panic!("all of it is as before")
    };
    assert!(matches!(&*problem, SetupError::Io { path, .. } if *path == nowhere), "{problem}");
    assert_eq!(left, std::slice::from_ref(&file));
    // It is the only file of the change that is undone later.
    assert_eq!(undo(&lock, true).unwrap().files, std::slice::from_ref(&file));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
}

#[test]
fn a_change_that_is_half_written_does_not_say_that_nothing_was_written() {
    let [changed, left] = ["/a.json", "/b.json"].map(PathBuf::from);
    let problem = Box::new(SetupError::Changed { path: changed });
    assert_eq!(
        SetupError::HalfWritten { problem, left: vec![left] }.to_string(),
        "/a.json was changed by another program meanwhile; and these could not be put back: /b.json. \
         `cx setup --undo` does it once they can be written"
    );
}

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::*;

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path().join("a/b"));
    (directory, store)
}

fn add(store: &Store, name: &str, number: u32) {
    store
        .update(name, 1, |old: Option<Vec<u32>>| ([old.unwrap_or_default(), vec![number]].concat(), ()))
        .unwrap();
}

#[test]
fn what_is_written_is_read_and_removed() {
    let (_directory, store) = store();
    assert_eq!(store.read::<Vec<u32>>("one", 1).unwrap(), None);
    assert!(store.names().unwrap().is_empty());
    add(&store, "one", 1);
    add(&store, "one", 2);
    add(&store, "two", 3);
    assert_eq!(store.read("one", 1).unwrap(), Some(vec![1, 2]));
    assert_eq!(store.names().unwrap(), ["one", "two"]);
    store.remove("one").unwrap();
    store.remove("one").unwrap();
    assert_eq!(store.names().unwrap(), ["two"]);
    let mode = fs::metadata(store.path("two")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::metadata(&store.directory).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn another_version_counts_as_missing() {
    let (_directory, store) = store();
    add(&store, "one", 1);
    assert_eq!(store.read::<Vec<u32>>("one", 2).unwrap(), None);
}

#[test]
fn a_file_cut_or_changed_at_any_byte_counts_as_missing() {
    let (_directory, store) = store();
    add(&store, "one", 1234);
    let whole = fs::read(store.path("one")).unwrap();
    for length in 0..whole.len() {
        fs::write(store.path("one"), &whole[..length]).unwrap();
        assert_eq!(store.read::<Vec<u32>>("one", 1).unwrap(), None, "cut to {length}");
    }
    let at = whole.windows(4).position(|window| window == b"1234").unwrap();
    let mut changed = whole.clone();
    changed[at] = b'9';
    fs::write(store.path("one"), changed).unwrap();
    assert_eq!(store.read::<Vec<u32>>("one", 1).unwrap(), None);
    fs::write(store.path("one"), b"\xff\xfe").unwrap();
    assert_eq!(store.read::<Vec<u32>>("one", 1).unwrap(), None);
    add(&store, "one", 5);
    assert_eq!(store.read("one", 1).unwrap(), Some(vec![5]));
}

#[test]
fn links_pipes_and_files_of_others_are_refused() {
    let (directory, store) = store();
    add(&store, "real", 1);
    std::os::unix::fs::symlink(store.path("real"), store.path("link")).unwrap();
    assert!(store.read::<Vec<u32>>("link", 1).is_err());
    fs::create_dir(store.path("directory")).unwrap();
    assert!(store.read::<Vec<u32>>("directory", 1).is_err());
    let pipe = store.path("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(store.read::<Vec<u32>>("pipe", 1).is_err());
    fs::set_permissions(store.path("real"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(store.read::<Vec<u32>>("real", 1).unwrap_err().kind(), ErrorKind::PermissionDenied);
    let open_to_all = directory.path().join("open");
    fs::create_dir(&open_to_all).unwrap();
    fs::set_permissions(&open_to_all, fs::Permissions::from_mode(0o777)).unwrap();
    let open_to_all = Store::new(open_to_all);
    assert!(open_to_all.update("one", 1, |_: Option<u32>| (1, ())).is_err());
}

#[test]
fn no_change_is_lost_between_threads() {
    let (_directory, store) = store();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || (0..25).for_each(|number| add(store, "shared", thread * 100 + number)));
        }
    });
    assert_eq!(store.read::<Vec<u32>>("shared", 1).unwrap().unwrap().len(), 100);
}

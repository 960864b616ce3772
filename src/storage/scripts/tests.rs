use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

fn folder(owner: FolderOwner) -> (TempDir, ScriptFolder) {
    let directory = tempfile::tempdir().unwrap();
    let folder = ScriptFolder::new(directory.path().join("scripts"), owner);
    (directory, folder)
}

fn names(folder: &ScriptFolder) -> Vec<String> {
    folder.list().unwrap().files.into_iter().map(|file| file.name).collect()
}

#[test]
fn names_are_plain() {
    for good in ["a", "list-issues", "a_b", "0", &"x".repeat(MAX_NAME)] {
        assert!(is_name(good), "{good}");
    }
    for bad in [
        "",
        "__proto__",
        "-rf",
        "A",
        "a.b",
        "..",
        "../x",
        "a/b",
        "a b",
        "ä",
        "a\n",
        "a\0",
        &"x".repeat(MAX_NAME + 1),
    ] {
        assert!(!is_name(bad), "{bad:?}");
    }
}

#[test]
fn what_is_saved_is_private_and_whole() {
    let (_directory, folder) = folder(FolderOwner::User);
    assert_eq!(folder.list().unwrap(), FolderList::default(), "a folder that is not there has none");
    let path = folder.save("one", Extension::Ts, "return 1", false).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(folder.directory()).unwrap().permissions().mode() & 0o777, 0o700);
    let again = folder.save("one", Extension::Py, "1", false).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists, "also in the other language");
    folder.save("one", Extension::Py, "1", true).unwrap();
    let list = folder.list().unwrap();
    assert_eq!((list.files.len(), list.files[0].extension), (1, Extension::Py), "it has replaced the other");
    assert_eq!(folder.read(&list.files[0]).unwrap(), "1");
    assert!(folder.remove("one").unwrap());
    assert!(!folder.remove("one").unwrap());
    assert!(!folder.remove("../one").unwrap());
}

#[test]
fn bad_names_and_sizes_are_not_saved() {
    let (_directory, folder) = folder(FolderOwner::User);
    for name in ["../escape", "", "__proto__", "a/b"] {
        let refused = folder.save(name, Extension::Ts, "return 1", true).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{name}");
    }
    let large = "x".repeat(usize::try_from(MAX_SCRIPT_BYTES).unwrap() + 1);
    let refused = folder.save("large", Extension::Ts, &large, false).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(!folder.directory().exists(), "nothing was written");
}

#[test]
fn a_folder_is_full_at_its_bound() {
    let (_directory, folder) = folder(FolderOwner::User);
    folder.save("s0", Extension::Ts, "0", false).unwrap();
    for number in 1..=MAX_SCRIPTS {
        fs::write(folder.directory().join(format!("s{number}.ts")), "1").unwrap();
    }
    let list = folder.list().unwrap();
    assert_eq!(list.files.len(), MAX_SCRIPTS);
    assert_eq!(list.problems.len(), 1);
    let full = folder.save("more", Extension::Ts, "1", false).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    folder.save("s1", Extension::Ts, "2", true).unwrap();
}

#[test]
fn links_and_what_is_no_file_are_no_scripts() {
    let (directory, folder) = folder(FolderOwner::User);
    folder.save("good", Extension::Ts, "1", false).unwrap();
    let secret = directory.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let within = |name: &str| folder.directory().join(name);
    symlink(&secret, within("link.ts")).unwrap();
    fs::create_dir(within("folder.py")).unwrap();
    fs::write(within("Upper.ts"), "1").unwrap();
    fs::write(within("notes.txt"), "1").unwrap();
    fs::write(within("huge.ts"), vec![b'x'; usize::try_from(MAX_SCRIPT_BYTES).unwrap() + 1]).unwrap();
    assert_eq!(names(&folder), ["good"]);
    let list = folder.list().unwrap();
    let wrong: Vec<_> =
        list.problems.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(wrong, ["Upper.ts", "folder.py", "huge.ts", "link.ts"]);
    // A link that takes the place of a file after it was listed is not read.
    let file = &list.files[0];
    fs::remove_file(&file.path).unwrap();
    symlink(&secret, &file.path).unwrap();
    folder.read(file).unwrap_err();
}

#[test]
fn a_link_in_a_workspace_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("a.ts"), "1").unwrap();
    fs::create_dir(directory.path().join(".cx")).unwrap();
    let path = directory.path().join(".cx/scripts");
    symlink(&elsewhere, &path).unwrap();
    ScriptFolder::new(path, FolderOwner::Workspace).list().unwrap_err();
}

#[test]
fn a_folder_that_others_can_change_is_not_used() {
    let (_directory, folder) = folder(FolderOwner::User);
    folder.save("a", Extension::Ts, "1", false).unwrap();
    fs::set_permissions(folder.directory(), fs::Permissions::from_mode(0o777)).unwrap();
    folder.list().unwrap_err();
    fs::set_permissions(folder.directory(), fs::Permissions::from_mode(0o700)).unwrap();
    let list = folder.list().unwrap();
    fs::set_permissions(&list.files[0].path, fs::Permissions::from_mode(0o666)).unwrap();
    folder.read(&list.files[0]).unwrap_err();
}

#[test]
fn a_changed_file_is_another_one() {
    let (_directory, folder) = folder(FolderOwner::User);
    folder.save("a", Extension::Ts, "1", false).unwrap();
    let before = folder.list().unwrap();
    assert_eq!(folder.list().unwrap(), before);
    folder.save("a", Extension::Ts, "2", true).unwrap();
    assert_ne!(folder.list().unwrap(), before);
}

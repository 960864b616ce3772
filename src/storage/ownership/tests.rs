use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::Ownership;

#[test]
fn a_mode_says_who_else_has_access() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    File::create(&path).unwrap();
    // Others may write, all may write, others have access.
    for (mode, expected) in [
        (0o600, (false, false, false)),
        (0o644, (false, false, true)),
        (0o610, (false, false, true)),
        (0o660, (true, false, true)),
        (0o602, (true, true, true)),
        (0o620, (true, false, true)),
    ] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let ownership = Ownership::from_metadata(&fs::metadata(&path).unwrap());
        let found = (ownership.others_may_write(), ownership.all_may_write(), ownership.others_have_access());
        assert_eq!(found, expected, "{mode:o}");
        assert!(ownership.is_ours() && ownership.is_ours_or_of_root());
    }
}

/// The user of a test may be root, whose own files have to be its alone.
#[test]
fn root_may_let_a_group_read() {
    let of = |user, mode| Ownership { user, mode };
    let is_ours = rustix::process::geteuid().is_root();
    for mode in [0o600, 0o440, 0o640, 0o400] {
        assert_eq!(of(0, mode).is_of_root_for_its_group(), !is_ours, "{mode:o}");
        assert!(!of(4321, mode).is_of_root_for_its_group(), "{mode:o}");
    }
    for mode in [0o644, 0o660, 0o650, 0o604] {
        assert!(!of(0, mode).is_of_root_for_its_group(), "{mode:o}");
    }
}

#[test]
fn the_owner_decides_whose_it_is() {
    let user = rustix::process::geteuid().as_raw();
    let of = |user| Ownership { user, mode: 0o600 };
    assert!(of(user).is_ours());
    assert_eq!(of(0).is_ours(), user == 0);
    assert!(of(0).is_ours_or_of_root());
    assert!(!of(user + 1).is_ours() && !of(user + 1).is_ours_or_of_root());
}

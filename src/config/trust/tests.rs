//! The bound of the list. `cx trust` and what trust changes are tested with the command.

use super::*;

#[test]
fn a_full_list_takes_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let trusted = TrustStore { store: Store::new(directory.path()) };
    let path = |number: usize| format!("/workspace/{number}.json");
    let files =
        (0..MAX_FILES).map(|number| (path(number), TrustedContent { sha256: sha256(b"old") })).collect();
    let document = Document { files };
    trusted.store.update(NAME, VERSION, |_: Option<Document>| (document, ())).unwrap();
    let trust = |number: usize| {
        let path = PathBuf::from(path(number));
        trusted.trust(&TrustRequest { path, sha256: sha256(b"new"), description: Vec::new() })
    };
    let full = trust(MAX_FILES).unwrap_err();
    assert_eq!((full.kind(), full.to_string().contains("revoke some")), (io::ErrorKind::StorageFull, true));
    // A file of the list may change.
    trust(0).unwrap();
    assert!(trusted.is_trusted(Path::new(&path(0)), b"new").unwrap());
    assert!(trusted.revoke(Path::new(&path(1))).unwrap());
    trust(MAX_FILES).unwrap();
}

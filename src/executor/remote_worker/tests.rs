//! The file of the token for a server that lends workers.

use super::*;

/// Threat 766.
#[test]
fn v_766_a_token_file_is_read_whole_or_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path();
    let with_length = |length: usize| {
        std::fs::write(path, "a".repeat(length)).unwrap();
        authorization(path)
    };
    let header = with_length(4_096).unwrap();
    assert_eq!((header.len(), header.is_sensitive()), ("Bearer ".len() + 4_096, true));
    let error = with_length(4_097).unwrap_err();
    assert_eq!(error, format!("the token file `{}` is longer than 4096 bytes", path.display()));
}

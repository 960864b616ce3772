use super::*;

/// The example of Go's `golang.org/x/mod/sumdb/note`, from which the format comes.
const SECRET: &str = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const PUBLIC: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const TEXT: &str =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const SIGNED: &str =
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=";

#[test]
fn notes_are_those_of_other_tools() {
    let signer = Signer::parse(SECRET).unwrap();
    assert_eq!(signer.verifier().render(), PUBLIC);
    let note = signer.sign(TEXT);
    assert_eq!(note, format!("{TEXT}\n\u{2014} PeterNeumann {SIGNED}\n"));
    let verifier = Verifier::parse(PUBLIC).unwrap();
    assert_eq!(verifier.verify(&note), Some(TEXT));
    // The number of the key is of its name and the key.
    assert!(Signer::parse(&SECRET.replace("c74f20a3", "c74f20a4")).is_none());
    assert!(Verifier::parse(&PUBLIC.replace("c74f20a3", "c74f20a4")).is_none());
    for other in [note.replace("your problem,", "my problem,"), note.replace("x08", "x09"), TEXT.to_owned()] {
        assert_eq!(verifier.verify(&other), None, "{other}");
    }
}

#[test]
fn a_new_key_signs_and_survives_as_text() {
    let (secret, signer) = Signer::generate("cx-audit-0").unwrap();
    let checkpoint = Checkpoint { origin: "cx-audit-0".to_owned(), size: 7, hash: "ab".repeat(32) };
    let note = Signer::parse(&secret).unwrap().sign(&checkpoint.render());
    let verifier = Verifier::parse(&signer.verifier().render()).unwrap();
    assert_eq!(Checkpoint::parse(verifier.verify(&note).unwrap()), Some(checkpoint));
    let (_, other) = Signer::generate("cx-audit-0").unwrap();
    assert_eq!(other.verifier().verify(&note), None);
    for text in ["", "a+b", "PRIVATE+KEY+a+00000000+AQ==", "a+00000000+AQ=="] {
        assert!(Signer::parse(text).is_none() && Verifier::parse(text).is_none(), "{text}");
    }
}

#[test]
fn a_note_has_at_most_64_kib() {
    let signer = Signer::parse(SECRET).unwrap();
    let note = |length: usize| signer.sign(&format!("{}\n", "x".repeat(length)));
    let others = note(0).len();
    let longest = note(MAX_NOTE_BYTES - others);
    assert!(signer.verifier().verify(&longest).is_some_and(|text| longest.starts_with(text)));
    assert_eq!(signer.verifier().verify(&note(MAX_NOTE_BYTES - others + 1)), None);
}

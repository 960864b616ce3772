//! What passes, and what another worker can do again.

use super::super::frames::{self, RunNumber};
use super::super::wire::{FromWorker, ToWorker};
use super::Relay;

fn frame(run: u64, message: &FromWorker) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames::append(&mut bytes, RunNumber(run), message, 1 << 20).unwrap();
    bytes
}

fn ready() -> Vec<u8> {
    frame(0, &FromWorker::Ready { protocol: 1, active: vec!["a".to_owned()], missing: Vec::new() })
}

fn surveyed() -> Vec<u8> {
    frame(7, &FromWorker::Surveyed { survey: "{}".to_owned(), took_ns: 5 })
}

fn log() -> Vec<u8> {
    frame(7, &FromWorker::Log { level: 0, text: "a".to_owned() })
}

fn order(message: &ToWorker) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames::append(&mut bytes, RunNumber(7), message, 1 << 20).unwrap();
    bytes
}

/// Takes everything that is to be sent.
fn send_all(relay: &mut Relay) -> Vec<u8> {
    let mut all = Vec::new();
    while !relay.unsent().is_empty() {
        // Some at a time.
        let some = relay.unsent()[..relay.unsent().len().min(5)].to_vec();
        relay.sent(some.len());
        all.extend(some);
    }
    all
}

fn hear(relay: &mut Relay, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in bytes {
        relay.hear(&[*byte], &mut out);
    }
    out
}

#[test]
fn another_worker_begins_again_unseen() {
    let mut relay = Relay::default();
    let (start, proceed) =
        ([order(&ToWorker::Proceed), order(&ToWorker::Proceed)].concat(), order(&ToWorker::Proceed));
    relay.note(&start);
    assert_eq!(send_all(&mut relay), start);
    assert_eq!(hear(&mut relay, &ready()), ready());
    assert_eq!(hear(&mut relay, &surveyed()), surveyed());
    relay.note(&proceed);
    assert_eq!(send_all(&mut relay), proceed);
    // Half of a message is no effect yet, and is not passed on.
    assert_eq!(hear(&mut relay, &surveyed()[..9]), b"");
    assert!(relay.can_begin_again());
    relay.begin_again();
    // What follows the survey is sent only when this worker has surveyed too.
    assert_eq!(send_all(&mut relay), start);
    assert_eq!(hear(&mut relay, &ready()), b"");
    assert_eq!(send_all(&mut relay), b"");
    assert_eq!(hear(&mut relay, &surveyed()), b"");
    assert_eq!(send_all(&mut relay), proceed);
    // Now it has an effect, and everything passes.
    assert_eq!(hear(&mut relay, &log()), log());
    assert!(!relay.can_begin_again());
    relay.note(b"later");
    assert_eq!(send_all(&mut relay), b"later");
    assert_eq!(hear(&mut relay, b"anything"), b"anything");
}

#[test]
fn what_is_not_known_to_be_harmless_is_an_effect() {
    for message in [
        FromWorker::Failed("no".to_owned()),
        FromWorker::Query { call: 1, text: "{}".to_owned() },
        FromWorker::Computing,
        FromWorker::Random(4),
    ] {
        let mut relay = Relay::default();
        let bytes = frame(7, &message);
        assert_eq!(hear(&mut relay, &bytes), bytes);
        assert!(!relay.can_begin_again() && relay.has_passed_anything());
    }
    // Neither is one that claims to be longer than those are: nothing is held back for it.
    let mut relay = Relay::default();
    let mut long = ready();
    long[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(hear(&mut relay, &long), long);
    assert!(!relay.can_begin_again());
}

//! Messages that are forged, lost, repeated, reordered or cut off, and addresses.

mod hostile;

use std::time::{Duration, Instant};

use super::bucket::ListedKeys;
use super::conversation::{Conversation, Heard, MAX_DATA, MAX_MESSAGE, WINDOW};
use super::seal::tenant::TenantKey;
use super::seal::{Purpose, SharedKey, Side};
use super::server::Addresses;
use super::tenant::check_name;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const RUN: &str = "00112233445566778899aabbccddeeff";
const WORKER: &str = "ffeeddccbbaa99887766554433221100";

fn key() -> SharedKey {
    SharedKey::new(SECRET).unwrap()
}

/// Both sides of a conversation.
fn sides(now: Instant) -> (Conversation, Conversation) {
    let side = |side| Conversation::new(key().conversation(side, RUN, WORKER).unwrap(), now);
    (side(Side::Executor), side(Side::Worker))
}

/// Everything that can be delivered; the end of the stream as `$`.
fn delivered(side: &mut Conversation) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(data) = side.arrived() {
        all.extend(if data.is_empty() { b"$" } else { data });
        let count = data.len();
        side.delivered(count);
    }
    all
}

#[test]
fn a_key_has_a_least_length_and_no_white_space_around_it() {
    assert!(SharedKey::new(&SECRET[1..]).is_none());
    assert!(SharedKey::new(&format!("{}{}", &SECRET[1..], "\n\n\n")).is_none());
    let (one, other) = (key(), SharedKey::new(&format!(" {SECRET}\n")).unwrap());
    let sealed = one.seal(Purpose::Offer, &[RUN], b"a").unwrap();
    assert_eq!(other.open(Purpose::Offer, &[RUN], &sealed).unwrap(), b"a");
}

#[test]
fn a_key_is_a_whole_file_of_text() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (text, is_key) in [
        (SECRET.to_owned(), true),
        ("a".repeat(4_096), true),
        ("a".repeat(4_097), false),
        ("\0".repeat(64), false),
    ] {
        std::fs::write(file.path(), &text).unwrap();
        assert_eq!(SharedKey::read(file.path()).is_ok(), is_key, "{} bytes", text.len());
    }
    let error = SharedKey::read("/dev/zero".as_ref()).unwrap_err();
    assert!(error.starts_with("the key file `/dev/zero` has no key: "), "{error}");
}

#[test]
fn what_stands_alone_is_for_one_purpose_and_one_run() {
    let sealed = key().seal(Purpose::Claim, &[RUN, WORKER], b"cx run 1").unwrap();
    assert!(!sealed.windows(6).any(|bytes| bytes == b"cx run"));
    assert_eq!(key().open(Purpose::Claim, &[RUN, WORKER], &sealed).unwrap(), b"cx run 1");
    assert_eq!(key().open(Purpose::Grant, &[RUN, WORKER], &sealed), None);
    assert_eq!(key().open(Purpose::Claim, &[WORKER, RUN], &sealed), None);
    let other = SharedKey::new(&SECRET.replace('0', "1")).unwrap();
    assert_eq!(other.open(Purpose::Claim, &[RUN, WORKER], &sealed), None);
    for position in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[position] ^= 1;
        assert_eq!(key().open(Purpose::Claim, &[RUN, WORKER], &changed), None, "{position}");
        assert_eq!(key().open(Purpose::Claim, &[RUN, WORKER], &sealed[..position]), None, "{position}");
    }
}

#[test]
fn streams_arrive_in_order_and_end() {
    let now = Instant::now();
    let (mut executor, mut worker) = sides(now);
    for data in ["one", "two", "three"] {
        let message = executor.send(data.as_bytes(), now).unwrap();
        assert_eq!(worker.hear(&message, now), Heard::Alive);
    }
    let end = executor.send(b"", now).unwrap();
    worker.hear(&end, now);
    assert_eq!(delivered(&mut worker), b"onetwothree$");
    assert!(!executor.is_received());
    let beat = worker.beat().unwrap();
    executor.hear(&beat, now);
    assert!(executor.is_received());
    let answer = worker.send(b"four", now).unwrap();
    executor.hear(&answer, now);
    assert_eq!(delivered(&mut executor), b"four");
}

#[test]
fn what_was_changed_or_replayed_is_refused() {
    let now = Instant::now();
    let (mut executor, mut worker) = sides(now);
    let message = executor.send(b"data", now).unwrap();
    for position in 0..message.len() {
        let mut changed = message.clone();
        changed[position] ^= 0x80;
        assert_eq!(worker.hear(&changed, now), Heard::Refused, "{position}");
        assert_eq!(worker.hear(&message[..position], now), Heard::Refused, "{position}");
    }
    let longer = [&message[..], b"!"].concat();
    assert_eq!(worker.hear(&longer, now), Heard::Refused);
    assert_eq!(worker.hear(&vec![0; MAX_MESSAGE + 1], now), Heard::Refused);
    // Nothing of that has kept the message itself from being heard, once.
    assert_eq!(worker.hear(&message, now), Heard::Alive);
    assert_eq!(worker.hear(&message, now), Heard::Refused);
    // A side does not hear itself, nor another conversation.
    assert_eq!(executor.hear(&message, now), Heard::Refused);
    let mut other = Conversation::new(key().conversation(Side::Worker, RUN, RUN).unwrap(), now);
    assert_eq!(other.hear(&message, now), Heard::Refused);
    assert_eq!(delivered(&mut worker), b"data");
    // The number of a message is part of what is sealed.
    let mut later = executor.beat().unwrap();
    later[0] += 1;
    assert_eq!(worker.hear(&later, now), Heard::Refused);
}

#[test]
fn what_is_lost_is_sent_again_and_what_comes_late_is_left_out() {
    let begin = Instant::now();
    let (mut executor, mut worker) = sides(begin);
    let messages: Vec<Vec<u8>> =
        (0..5_u8).map(|number| executor.send(&[b'a' + number], begin).unwrap()).collect();
    // The second one is lost, and the fourth overtakes the third.
    for number in [0, 3, 2, 4] {
        worker.hear(&messages[number], begin);
    }
    assert_eq!(delivered(&mut worker), b"a");
    assert!(executor.resend(begin + Duration::from_millis(100)).is_empty());
    let beat = worker.beat().unwrap();
    executor.hear(&beat, begin);
    let later = begin + Duration::from_secs(2);
    let again: Vec<Vec<u8>> = executor.resend(later).into_iter().map(Option::unwrap).collect();
    assert_eq!(again.len(), 4);
    assert!(executor.resend(later).is_empty());
    for message in again {
        assert_eq!(worker.hear(&message, later), Heard::Alive);
    }
    assert_eq!(delivered(&mut worker), b"bcde");
    // Sent once more, because the answer was lost: nothing arrives twice.
    for message in executor.resend(later + Duration::from_secs(2)).into_iter().flatten() {
        assert_eq!(worker.hear(&message, later), Heard::Alive);
    }
    assert_eq!(delivered(&mut worker), b"");
    // The number of the late one is not accepted any more either.
    assert_eq!(worker.hear(&messages[1], later), Heard::Refused);
}

#[test]
fn a_side_that_does_not_read_stops_the_other() {
    let now = Instant::now();
    let (mut executor, mut worker) = sides(now);
    let mut sent = 0;
    while executor.space() > 0 {
        let data = vec![7; executor.space()];
        let message = executor.send(&data, now).unwrap();
        worker.hear(&message, now);
        sent += data.len() as u64;
    }
    assert_eq!(sent, WINDOW);
    // It has received everything, which ends the repetition, and has delivered nothing, so that there is no space.
    let beat = worker.beat().unwrap();
    executor.hear(&beat, now);
    assert!(executor.is_received());
    assert_eq!(executor.space(), 0);
    assert!(!worker.should_tell());
    assert_eq!(delivered(&mut worker).len() as u64, WINDOW);
    assert!(worker.should_tell());
    let beat = worker.beat().unwrap();
    assert!(!worker.should_tell());
    executor.hear(&beat, now);
    assert_eq!(executor.space(), MAX_DATA);
    // Many small messages are bounded too.
    let mut count = 0;
    while executor.space() > 0 {
        let message = executor.send(b"a", now).unwrap();
        worker.hear(&message, now);
        count += 1;
        assert!(count < 1_000);
    }
    assert!(worker.should_tell());
}

/// What a side holds is bounded also if the other one does not keep to the window.
#[test]
fn more_than_the_window_is_not_kept() {
    let now = Instant::now();
    let (mut executor, mut worker) = sides(now);
    for _ in 0..2_000 {
        let message = executor.send(&[0; MAX_DATA], now).unwrap();
        worker.hear(&message, now);
    }
    assert_eq!(delivered(&mut worker).len() as u64, WINDOW);
    for _ in 0..2_000 {
        let message = worker.send(b"", now).unwrap();
        executor.hear(&message, now);
    }
    assert!(delivered(&mut executor).len() < 300);
}

#[test]
fn giving_up_and_silence() {
    let now = Instant::now();
    let (mut executor, mut worker) = sides(now);
    let abort = executor.abort().unwrap();
    assert_eq!(worker.hear(&abort, now + Duration::from_secs(5)), Heard::Aborted);
    assert_eq!(worker.silence(now + Duration::from_secs(8)), Duration::from_secs(3));
    // What is refused is no sign of life.
    assert_eq!(worker.hear(&abort, now + Duration::from_secs(7)), Heard::Refused);
    assert_eq!(worker.silence(now + Duration::from_secs(8)), Duration::from_secs(3));
}

#[test]
fn addresses_are_those_of_servers_and_have_no_secrets() {
    let parse = |text: &str, has_credentials| {
        Addresses::parse(text, has_credentials).map(|addresses| addresses.to_string())
    };
    for text in ["nats://127.0.0.1:4222", "tls://nats.example.com:4222", "nats://a:1,nats://b:2", "localhost"]
    {
        assert!(parse(text, false).is_ok(), "{text}");
    }
    for text in [
        "",
        "http://nats.example.com",
        "ws://nats.example.com",
        "nats://",
        "nats://a,",
        "nats://a/path",
        "nats://a?query",
        "nats://a b",
    ] {
        let problem = parse(text, false).unwrap_err();
        assert!(problem.contains("expected the address"), "{text}: {problem}");
    }
    for text in ["nats://user:secret@nats.example.com", "nats://user:secret,1@nats.example.com"] {
        let problem = parse(text, false).unwrap_err();
        assert!(problem.contains("nats.example.com`") && !problem.contains("secret"), "{problem}");
    }
    assert!(parse("nats://token@nats.example.com", false).is_err());
    // Credentials stay on this machine, or cross the network encrypted.
    for text in ["nats://127.0.0.1", "nats://[::1]:4222", "nats://localhost", "tls://nats.example.com"] {
        assert!(parse(text, true).is_ok(), "{text}");
    }
    for text in ["nats://nats.example.com", "nats://192.0.2.1", "tls://a.example.com,nats://b.example.com"] {
        let problem = parse(text, true).unwrap_err();
        assert!(problem.contains("without TLS"), "{text}: {problem}");
    }
}

#[test]
fn entries_of_a_tenant_are_for_its_key_its_name_and_one_place() {
    let tenant = |secret: &str, name: &str| TenantKey::new(secret, name).unwrap();
    let key = tenant(SECRET, "one");
    let sealed = key.seal("$KV.cx-state-one.head.a", b"value").unwrap();
    assert!(!sealed.windows(5).any(|bytes| bytes == b"value"));
    assert_eq!(key.open("$KV.cx-state-one.head.a", &sealed).unwrap(), b"value");
    assert_eq!(key.open("$KV.cx-state-one.head.b", &sealed), None);
    assert_eq!(tenant(SECRET, "two").open("$KV.cx-state-one.head.a", &sealed), None);
    assert_eq!(tenant(&SECRET.replace('0', "1"), "one").open("$KV.cx-state-one.head.a", &sealed), None);
    for position in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[position] ^= 1;
        assert_eq!(key.open("$KV.cx-state-one.head.a", &changed), None, "{position}");
        assert_eq!(key.open("$KV.cx-state-one.head.a", &sealed[..position]), None, "{position}");
    }
    // Names cannot be found out or made equal.
    let hidden = key.hide(b's', b"session");
    assert_eq!(hidden, tenant(SECRET, "one").hide(b's', b"session"));
    assert_eq!(hidden.as_ref().unwrap().len(), 32);
    for other in [
        tenant(SECRET, "two").hide(b's', b"session"),
        key.hide(b'r', b"session"),
        key.hide(b's', b"session "),
        tenant(&SECRET.replace('0', "1"), "one").hide(b's', b"session"),
    ] {
        assert_ne!(hidden, other);
    }
    assert!(TenantKey::new(&SECRET[1..], "one").is_none());
}

#[test]
fn names_of_tenants_are_parts_of_names_of_buckets() {
    for name in ["a", "payments-2", &"x".repeat(32)] {
        assert_eq!(check_name(name), Ok(()));
    }
    for name in ["", "A", "a.b", "a b", "*", ">", "a/b", "\u{e4}", &"x".repeat(33)] {
        assert!(check_name(name).is_err(), "{name}");
    }
}

/// Whoever may write to a bucket chooses how many entries it has, and their names.
#[test]
fn v_539_the_keys_of_a_bucket_take_little_memory() {
    let mut listed = ListedKeys::default();
    let long = "k".repeat(1 << 20);
    assert_eq!((0..1_000).take_while(|_| listed.add(&long)).count(), 63);
    assert_eq!(listed.keys.len(), 64);
    let mut listed = ListedKeys::default();
    assert_eq!((0..2_000_000).take_while(|_| listed.add("k")).count(), 999_999);
}

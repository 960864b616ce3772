mod damaged;
mod days;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::run::observer::{ModelAnswered, ModelSending};
use crate::telemetry::audit::append::{SECRET_KEY, date, write_checkpoint};
use crate::telemetry::audit::verify::{Verification, VerifyOptions, verify};

/// A directory for a trail, which is removed at the end.
struct Place(tempfile::TempDir);

impl Place {
    /// Waits if it is almost midnight, when another file begins.
    fn new() -> Self {
        const DAY: u64 = 86_400;
        const LONGEST: u64 = 60;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let left = DAY - now % DAY;
        if left < LONGEST {
            std::thread::sleep(Duration::from_secs(left));
        }
        Self(tempfile::tempdir().unwrap())
    }

    fn trail(&self) -> PathBuf {
        self.0.path().join("trail")
    }

    fn options(&self) -> AuditOptions {
        AuditOptions { checkpoint_lines: 10, ..AuditOptions::new(self.trail()) }
    }

    /// Writes events `from..to`, between a start and a stop. Returns the state at the end.
    fn write(&self, from: u64, to: u64) -> AuditStatus {
        let trail = AuditTrail::start(self.options()).unwrap();
        for number in from..to {
            trail.push(Entry::new("test", vec![("number", number.into())]));
        }
        trail.stop();
        let status = trail.status();
        assert_eq!(status.failure, None);
        status
    }

    fn verify(&self) -> Verification {
        verify(&self.trail(), &VerifyOptions::default()).unwrap()
    }

    fn file(&self, day: &str) -> PathBuf {
        self.trail().join(format!("{day}.jsonl"))
    }

    fn today(&self) -> PathBuf {
        self.file(&date(SystemTime::now()))
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.today()).unwrap().lines().map(str::to_owned).collect()
    }

    fn set_lines(&self, lines: &[String]) {
        fs::write(self.today(), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }

    /// What a verification finds wrong after `change`.
    fn wrong_after(&self, change: impl FnOnce(&mut Vec<String>)) -> String {
        let before = self.lines();
        let mut lines = before.clone();
        change(&mut lines);
        self.set_lines(&lines);
        let found = self.verify();
        self.set_lines(&before);
        assert!(!found.is_ok());
        found.problems.iter().map(|problem| format!("{}: {}\n", problem.line, problem.problem)).collect()
    }
}

/// A record with a recomputed hash, as a forger who knows the format writes it.
fn rehashed(line: &str, change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> String {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
    fields.remove("hash");
    change(&mut fields);
    let hash = crate::storage::files::sha256(&super::super::canonical::object(&fields));
    fields.insert("hash".to_owned(), hash.into());
    String::from_utf8(super::super::canonical::object(&fields)).unwrap()
}

/// The trail would say that lines are missing which it has, and with `required` a run would be refused for that.
#[test]
fn v_770_lines_that_are_written_are_not_lost_with_a_checkpoint() {
    let place = Place::new();
    place.write(0, 1);
    // A new checkpoint is written to a file of this name first.
    let obstacle = place.trail().join(".new-checkpoint");
    fs::create_dir(&obstacle).unwrap();
    let status = place.write(1, 25);
    assert!(status.signing_failure.is_some() && status.dropped == 0, "{status:?}");
    let lines = place.lines();
    assert!(!lines.iter().any(|line| line.contains("lines.dropped")), "{lines:?}");
    fs::remove_dir(&obstacle).unwrap();
    assert_eq!(place.write(25, 26).signing_failure, None);
    let found = place.verify();
    assert!(found.is_ok(), "{:?}", found.problems);
    assert_eq!(found.signed_through, found.last);
}

/// A trail without a pause is signed too: little of it is without a signature when its process is killed.
#[tokio::test]
async fn a_busy_trail_is_signed_every_few_lines() {
    let place = Place::new();
    let trail = AuditTrail::start(place.options()).unwrap();
    // It is signed after the tenth line was acknowledged, before the next one is written.
    for number in 0..12_u64 {
        let (acknowledge, written) = oneshot::channel();
        let mut entry = Entry::new("test", vec![("number", number.into())]);
        entry.acknowledge = Some(acknowledge);
        trail.push(entry);
        assert!(written.await.unwrap());
    }
    let checkpoint = fs::read_to_string(place.trail().join("checkpoint")).unwrap();
    let signed: u64 = checkpoint.lines().nth(1).unwrap().parse().unwrap();
    assert!(signed >= 10, "{checkpoint}");
}

#[test]
fn a_changed_trail_does_not_verify() {
    let place = Place::new();
    place.write(0, 25);
    let found = place.verify();
    assert!(found.is_ok(), "{:?}", found.problems);
    // 25 events, a start and a stop, and two checkpoints.
    assert_eq!((found.lines, found.first, found.last, found.writers), (29, 1, 29, 1));
    assert_eq!((found.checkpoints, found.signed_through), (3, 29));
    let edited = place.wrong_after(|lines| lines[5] = lines[5].replace("\"number\":4", "\"number\":5"));
    assert!(edited.contains("6: line 6 is not what was written"), "{edited}");
    let rewritten = place.wrong_after(|lines| {
        lines[5] = rehashed(&lines[5], |fields| drop(fields.insert("number".to_owned(), 9.into())));
    });
    assert!(rewritten.contains("7: line 6 was changed, or line 7 was"), "{rewritten}");
    let cut = place.wrong_after(|lines| drop(lines.drain(3..6)));
    assert!(cut.contains("4: 3 lines are missing before line 7"), "{cut}");
    let reordered = place.wrong_after(|lines| lines.swap(3, 4));
    assert!(reordered.contains("4: 1 lines are missing") && reordered.contains("5: line 4 follows line 5"));
    let head = place.wrong_after(|lines| drop(lines.drain(..2)));
    assert!(head.contains("2 lines before it are missing"), "{head}");
    let tail = place.wrong_after(|lines| lines.truncate(27));
    assert!(tail.contains("2 lines are missing at the end"), "{tail}");
    // A field that is there twice has one meaning for some readers and another for others.
    let twice = place.wrong_after(|lines| lines[5] = lines[5].replacen('{', "{\"number\":4,", 1));
    assert!(twice.contains("6: line 6 is not what was written"), "{twice}");
    let all = place.wrong_after(Vec::clear);
    assert!(all.contains("29 lines are missing at the end"), "{all}");
    // The end is cut off together with what would show it. The checkpoints among the lines say how
    // far it is signed.
    let (last, kept) = (place.trail().join("checkpoint"), place.trail().join("kept"));
    fs::rename(&last, &kept).unwrap();
    let both = place.wrong_after(|lines| lines.truncate(24));
    assert!(both.contains("there is no last checkpoint"), "{both}");
    assert_eq!(place.verify().signed_through, 20);
    fs::rename(&kept, &last).unwrap();
}

/// A quick look at a long trail: the newest file, whatever the older ones have.
#[test]
fn the_newest_file_can_be_verified_alone() {
    let place = Place::new();
    place.write(0, 25);
    let lines = place.lines();
    let (old, new) = lines.split_at(12);
    let earlier = place.trail().join("2020-01-01.jsonl");
    fs::write(&earlier, old.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    place.set_lines(new);
    let newest = || {
        let options = VerifyOptions { newest_file_only: true, ..VerifyOptions::default() };
        verify(&place.trail(), &options).unwrap()
    };
    assert!(place.verify().is_ok(), "{:?}", place.verify().problems);
    let found = newest();
    assert!(found.is_ok(), "{:?}", found.problems);
    assert_eq!((found.lines, found.first, found.last), (17, 13, 29));
    fs::write(&earlier, "").unwrap();
    assert!(!place.verify().is_ok() && newest().is_ok());
    let mut changed = new.to_vec();
    changed[3] = changed[3].replace("\"number\"", "\"Number\"");
    place.set_lines(&changed);
    assert!(!newest().is_ok());
    place.set_lines(&new[..new.len() - 2]);
    assert!(!newest().is_ok(), "its end was cut off");
}

/// Whoever has the key writes another trail. Only a checkpoint that is kept elsewhere contradicts it.
#[test]
fn a_kept_checkpoint_shows_a_trail_that_was_rewritten() {
    let place = Place::new();
    place.write(0, 5);
    let kept = write_checkpoint(&place.trail()).unwrap();
    let key = fs::read_to_string(place.trail().join("key.pub")).unwrap();
    place.write(5, 9);
    let with_kept = |key: Option<String>| {
        let options = VerifyOptions { key, checkpoints: vec![kept.clone()], ..VerifyOptions::default() };
        verify(&place.trail(), &options).unwrap()
    };
    assert!(with_kept(Some(key.clone())).is_ok());
    // The owner writes everything anew, with the same key.
    fs::remove_file(place.today()).unwrap();
    fs::remove_file(place.trail().join("checkpoint")).unwrap();
    place.write(100, 130);
    assert!(place.verify().is_ok());
    let found = with_kept(None);
    assert!(
        found.problems[0].problem.contains("the kept checkpoint 1 has another hash of line 7"),
        "{found:?}"
    );
    // With another key.
    fs::remove_file(place.trail().join(SECRET_KEY)).unwrap();
    fs::remove_file(place.today()).unwrap();
    fs::remove_file(place.trail().join("checkpoint")).unwrap();
    place.write(0, 9);
    assert!(place.verify().is_ok());
    assert!(!with_kept(Some(key)).is_ok());
}

/// Threat 732.
#[test]
fn v_732_a_copy_without_the_key_is_not_signed_and_stays_as_it_is() {
    let place = Place::new();
    place.write(0, 5);
    fs::remove_file(place.trail().join(SECRET_KEY)).unwrap();
    let error = write_checkpoint(&place.trail()).unwrap_err();
    assert!(error.to_string().ends_with("key is missing, and only that key signs the trail"), "{error}");
    assert!(!place.trail().join(SECRET_KEY).exists());
    assert!(place.verify().is_ok());
}

#[test]
fn several_processes_make_one_chain() {
    let place = Place::new();
    let trails: Vec<AuditTrail> = (0..4).map(|_| AuditTrail::start(place.options()).unwrap()).collect();
    std::thread::scope(|scope| {
        for (writer, trail) in trails.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..500 {
                    trail.push(Entry::new("test", vec![("number", number.into()), ("from", writer.into())]));
                    if number % 50 == 0 {
                        std::thread::sleep(Duration::from_millis(3));
                    }
                }
            });
        }
    });
    drop(trails);
    let found = place.verify();
    assert!(found.is_ok(), "{:?}", found.problems);
    assert_eq!(found.writers, 4);
    let written = place.lines().iter().filter(|line| line.contains("\"event\":\"test\"")).count();
    assert_eq!(written, 2_000);
}

#[test]
fn fd_the_trail_is_private() {
    let place = Place::new();
    place.write(0, 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.trail()), 0o700);
    for entry in fs::read_dir(place.trail()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    // A directory that others can write to is not used.
    fs::set_permissions(place.trail(), fs::Permissions::from_mode(0o777)).unwrap();
    let trail = AuditTrail::start(place.options()).unwrap();
    trail.stop();
    assert!(trail.status().failure.unwrap().1.contains("another user"));
}

/// The text of servers and scripts can neither begin a line nor add a field.
#[test]
fn hostile_names_cannot_forge_lines() {
    let place = Place::new();
    let trail = AuditTrail::start(place.options()).unwrap();
    let name = "x\"}\n{\"event\":\"call.did\",\"server\":\"\u{2028}\r\n\0".repeat(50);
    let fields = vec![("server", name_preview(&name).into()), ("tool", name_preview(&name).into())];
    trail.push(Entry::new("call.will", fields));
    trail.stop();
    let found = place.verify();
    assert!(found.is_ok(), "{:?}", found.problems);
    assert_eq!(found.lines, 3);
    let line: Value = serde_json::from_str(&place.lines()[1]).unwrap();
    assert!(line["server"].as_str().unwrap().starts_with("x\"}\n{\"event\""));
    assert!(place.lines()[1].len() < 3_000);
}

/// What a process that was killed has written in part is set aside, and the trail says so.
#[test]
fn v_736_an_incomplete_last_line_is_set_aside_by_the_next_one() {
    let place = Place::new();
    place.write(0, 3);
    let mut text = fs::read_to_string(place.today()).unwrap();
    text.push_str("{\"at\":\"2026");
    fs::write(place.today(), &text).unwrap();
    let found = place.verify();
    assert!(found.is_ok() && found.notices[0].contains("incomplete"), "{found:?}");
    // Threat 736: a checkpoint leaves it to the next line, which says so.
    write_checkpoint(&place.trail()).unwrap();
    assert_eq!(fs::read_to_string(place.today()).unwrap(), text);
    place.write(3, 6);
    let found = place.verify();
    assert!(found.is_ok(), "{:?}", found.problems);
    assert!(found.notices[0].contains("set aside: damaged-"), "{found:?}");
    assert!(place.lines()[5].contains("\"event\":\"line.damaged\""));
    let aside = fs::read_dir(place.trail()).unwrap().map(|entry| entry.unwrap().path());
    let aside = aside.into_iter().find(|path| path.to_string_lossy().contains("damaged-")).unwrap();
    assert_eq!(fs::read_to_string(aside).unwrap(), "{\"at\":\"2026");
}

/// A program that may write to the trail adds no fields to lines of cx, and does not end the writer.
#[test]
fn a_line_that_cannot_be_of_the_chain_is_not_continued() {
    let with_fields = format!("\",\"query\":\"{}", "x".repeat(53));
    for (hash, sequence) in [(with_fields, 99), ("a".repeat(64), u64::MAX)] {
        let place = Place::new();
        place.write(0, 3);
        let mut lines = place.lines();
        let last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        assert_eq!(hash.len(), last["hash"].as_str().unwrap().len());
        lines.push(json!({ "event": "test", "hash": hash, "seq": sequence }).to_string());
        place.set_lines(&lines);
        place.write(3, 5);
        let next: Value = serde_json::from_str(&place.lines()[lines.len()]).unwrap();
        assert_eq!(next["prev"], last["hash"]);
        assert_eq!(next["seq"].as_u64(), last["seq"].as_u64().map(|before| before + 1));
        assert!(next.get("query").is_none() && !place.verify().is_ok(), "{next}");
    }
}

/// Files that cannot be written are reported, and what was lost meanwhile is counted in the trail.
#[test]
fn what_could_not_be_written_is_reported_in_the_trail() {
    let place = Place::new();
    // A file is where the directory should be.
    fs::write(place.trail(), "").unwrap();
    let trail = AuditTrail::start(place.options()).unwrap();
    trail.push(Entry::new("test", Vec::new()));
    let failed = || trail.status().failure.is_some() && trail.status().dropped == 2;
    eventually(failed);
    fs::remove_file(place.trail()).unwrap();
    eventually(|| trail.status().failure.is_none());
    trail.stop();
    let found = place.verify();
    assert!(found.is_ok() && found.notices[0].contains("2 events were not written"), "{found:?}");
}

fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it does not come true");
}

#[test]
fn more_events_than_the_queue_holds_are_counted() {
    let queue = EntryQueue::default();
    let pushed = (0..100_000).filter(|_| queue.push(Entry::new("test", Vec::new()))).count();
    let batch = queue.next(Duration::ZERO, VecDeque::new());
    assert_eq!(batch.entries.len(), pushed);
    assert_eq!(batch.dropped, 100_000 - pushed as u64);
    assert!(batch.dropped > 0);
}

/// The memory of a burst is returned.
#[test]
fn events_are_queued_in_the_memory_of_earlier_ones() {
    let queue = EntryQueue::default();
    let capacity_after = |spare: usize| {
        queue.next(Duration::ZERO, VecDeque::with_capacity(spare));
        assert!(queue.push(Entry::new("test", Vec::new())));
        queue.next(Duration::ZERO, VecDeque::new()).entries.capacity()
    };
    let (usual, burst) = (capacity_after(1_000), capacity_after(100_000));
    assert!((1_000..4_000).contains(&usual), "{usual}");
    assert!((1_000..10_000).contains(&burst), "{burst}");
}

fn observed_run() -> Arc<ObservedRun> {
    Arc::new(ObservedRun {
        id: "r".to_owned(),
        script: "script.ts".to_owned(),
        language: Some(crate::run::script::Language::TypeScript),
        client: None,
        client_name: None,
        trace: None,
        is_dry_run: false,
        started: std::time::Instant::now(),
    })
}

fn question() -> RunEvent<'static> {
    RunEvent::ModelSending(ModelSending {
        request: 1,
        provider: "fake",
        model: Some("small"),
        messages: "[\"a secret question\"]",
        system_prompt: Some("be brief"),
        is_stream: false,
    })
}

fn answer() -> RunEvent<'static> {
    RunEvent::ModelAnswered(ModelAnswered {
        request: 1,
        provider: "fake",
        model: Some("small-1"),
        result: Ok(Some("a secret answer")),
        input_tokens: Some(5),
        output_tokens: Some(7),
        finish_reason: Some("stop"),
        violations: &["email"],
        duration: Duration::from_millis(3),
    })
}

/// Of a request to a language model there are hashes, and no text.
#[test]
fn requests_to_models_are_hashed() {
    let place = Place::new();
    let trail = AuditTrail::start(place.options()).unwrap();
    let run = observed_run();
    trail.observe(&run, &question());
    trail.observe(&run, &answer());
    trail.stop();
    let lines = place.lines();
    assert!(lines.iter().all(|line| !line.contains("secret")), "{lines:?}");
    let [will, did] = [1, 2].map(|at| serde_json::from_str::<Value>(&lines[at]).unwrap());
    assert_eq!((&will["event"], &will["provider"]), (&json!("model.will"), &json!("fake")));
    let sha256 = crate::storage::files::sha256;
    assert_eq!(will["messagesSha256"], sha256(b"[\"a secret question\"]"));
    assert_eq!(will["systemPromptSha256"], sha256(b"be brief"));
    assert_eq!((&did["inputTokens"], &did["violations"]), (&json!(5), &json!(["email"])));
    assert_eq!(did["answerSha256"], sha256(b"a secret answer"));
}

/// The ends of calls that were in flight when their run ended are reported after its end, and are in the trail.
#[test]
fn the_end_of_a_trail_waits_for_what_was_sent() {
    let place = Place::new();
    let trail = AuditTrail::start(place.options()).unwrap();
    let run = observed_run();
    trail.observe(&run, &question());
    std::thread::scope(|scope| {
        // As when a process is closed twice.
        scope.spawn(|| trail.stop());
        scope.spawn(|| trail.stop());
        eventually(|| trail.shared.open.awaited() == 2);
        trail.observe(&run, &answer());
    });
    assert_eq!(trail.status().dropped, 0);
    let lines = place.lines();
    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    let written = names.into_iter().filter(|name| *name != "checkpoint").collect::<Vec<_>>();
    assert_eq!(written, ["logger.started", "model.will", "model.did", "logger.stopped"]);
    assert!(place.verify().is_ok());
}

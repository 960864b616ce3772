use std::convert::Infallible;

use serde_json::json;

use super::*;

/// Fails a test that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

/// What ends a run of a test.
type End = watch::Sender<Option<FinishedRun>>;

fn run(id: &str, key: Option<&KeyedBody>) -> (RestRun, End) {
    let (end, answer) = watch::channel(None);
    let mut task = JoinSet::new();
    task.spawn(std::future::pending());
    let (cancel, printed) = (CancellationToken::new(), Printed::default());
    (RestRun::new(Some(id.to_owned()), key.cloned(), cancel, printed, answer, task), end)
}

fn start(runs: &RestRuns, id: &str, key: Option<&KeyedBody>) -> (Started, Option<End>) {
    let mut end = None;
    let started = runs.start(key, || {
        let (run, of_run) = run(id, key);
        end = Some(of_run);
        Ok::<_, Infallible>(run)
    });
    (started.unwrap(), end)
}

/// Starts a run that is new, and returns what ends it.
#[track_caller]
fn begin(runs: &RestRuns, id: &str, key: Option<&KeyedBody>) -> End {
    let (Started::Now(_), Some(end)) = start(runs, id, key) else { panic!("{id} is not new") };
    end
}

/// Ends a run. The time of each end is another one.
fn end(run: &End, answer: RunAnswer) {
    std::thread::sleep(Duration::from_millis(2));
    run.send_replace(Some(FinishedRun::new(answer, None)));
}

fn refusal() -> RunAnswer {
    RunAnswer::Refused(Arc::new(json!({ "code": "QUEUE_FULL", "message": "too many" })))
}

/// The ids of the runs that are kept, once there are `count` of them. No request comes meanwhile.
async fn kept(runs: &RestRuns, count: usize) -> Vec<String> {
    let looked = async {
        loop {
            let ids: Vec<_> = runs.runs.lock().iter().filter_map(|run| run.id.clone()).collect();
            if ids.len() == count {
                return ids;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(WATCHDOG, looked).await.expect("the others are removed")
}

#[tokio::test]
async fn v_479_answers_are_kept_within_64_megabytes() {
    let runs = RestRuns::new(Arc::default());
    // One text for all: what counts is what each says that it has.
    let answer = RunAnswer::Ended("x".repeat(20 << 20).into());
    let ends: Vec<End> = (0..6).map(|number| begin(&runs, &number.to_string(), None)).collect();
    let running = begin(&runs, "running", None);
    for run in &ends {
        end(run, answer.clone());
    }
    assert_eq!(kept(&runs, 4).await, ["3", "4", "5", "running"]);
    assert!(runs.find("2").is_none() && runs.find("3").is_some());
    // One that is larger than all may be leaves nothing.
    end(&running, RunAnswer::Ended("x".repeat(MAX_BYTES + 1).into()));
    assert!(kept(&runs, 0).await.is_empty());
}

#[tokio::test]
async fn v_479_so_many_answers_are_kept() {
    let runs = RestRuns::new(Arc::default());
    let ends: Vec<End> = (0..MAX_ANSWERS + 2).map(|number| begin(&runs, &number.to_string(), None)).collect();
    for run in &ends {
        end(run, refusal());
    }
    let ids = kept(&runs, MAX_ANSWERS).await;
    assert_eq!(ids.first().map(String::as_str), Some("2"));
}

#[tokio::test]
async fn v_479_an_answer_is_kept_for_an_hour() {
    let runs = RestRuns::new(Arc::default());
    for (id, age) in [("old", KEPT + Duration::from_secs(1)), ("recent", KEPT - WATCHDOG)] {
        let at = Instant::now().checked_sub(age).unwrap();
        begin(&runs, id, None).send_replace(Some(FinishedRun { at, ..FinishedRun::new(refusal(), None) }));
    }
    assert!(runs.find("old").is_none() && runs.find("recent").is_some());
}

#[tokio::test]
async fn v_480_the_key_of_a_run_that_was_refused_is_free() {
    let runs = RestRuns::new(Arc::default());
    let key = KeyedBody::new("key", b"body");
    let of_other = KeyedBody::new("key", b"another body");
    let first = begin(&runs, "first", Some(&key));
    assert!(matches!(start(&runs, "again", Some(&key)).0, Started::Before(run) if run.has_id("first")));
    assert!(matches!(start(&runs, "other", Some(&of_other)).0, Started::KeyOfOther));
    end(&first, refusal());
    // Nothing was done, so the same request may be sent again, and another one too.
    let second = begin(&runs, "second", Some(&of_other));
    assert!(matches!(start(&runs, "again", Some(&key)).0, Started::KeyOfOther));
    end(&second, RunAnswer::Ended("{}".into()));
    assert!(matches!(start(&runs, "again", Some(&of_other)).0, Started::Before(run) if run.has_id("second")));
}

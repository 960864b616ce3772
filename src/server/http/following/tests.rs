//! What readers of tokens do, and what is said of it: each test reads as often as it says, without the pauses.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::yield_now;
use tokio::time::advance;

use super::*;
use crate::error::OptionName;
use crate::executor::Executor;
use crate::server::ServerOptions;

type Reading = TokenReading<u32>;
type Step = Box<dyn FnOnce() -> Reading + Send>;

/// A value that the target refuses until it is told to use it.
const UNUSABLE: u32 = 0;

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Used(u32),
    Problem(String),
    Recovered,
}

struct Recording {
    events: UnboundedSender<Event>,
    uses_all: AtomicBool,
}

impl Target for Recording {
    type Value = u32;

    async fn replace(&mut self, value: u32) -> Result<(), Error> {
        if value == UNUSABLE && !self.uses_all.load(Ordering::Relaxed) {
            return Err(Error::InvalidOptions {
                option: OptionName::Token,
                problem: "it is unusable".to_owned(),
            });
        }
        self.events.send(Event::Used(value)).unwrap();
        Ok(())
    }
}

/// What each of these readings does, in their order. Later ones find nothing new.
fn followed(readings: Vec<Step>) -> (Followed<Recording>, UnboundedReceiver<Event>) {
    let (sender, events) = unbounded_channel();
    let readings = Mutex::new(VecDeque::from(readings));
    let read = move || {
        // Not under the lock, because a reading may take long.
        let reading = readings.lock().pop_front();
        reading.map_or(TokenReading::Unchanged, |reading| reading())
    };
    let problems = sender.clone();
    let on_problem = move |problem: Option<&str>| {
        let event = problem.map_or(Event::Recovered, |problem| Event::Problem(problem.to_owned()));
        problems.send(event).unwrap();
    };
    let target = Recording { events: sender, uses_all: AtomicBool::new(false) };
    (Followed::new(Arc::new(read), target, Box::new(on_problem)), events)
}

fn finds(reading: Reading) -> Step {
    Box::new(move || reading)
}

fn fails(problem: &str) -> Step {
    finds(TokenReading::Failed(problem.to_owned()))
}

/// A reading that takes until the returned sender says what it has found, and says when it has begun.
fn slow() -> (Step, std::sync::mpsc::Sender<Reading>, UnboundedReceiver<()>) {
    let (found, finding) = std::sync::mpsc::channel();
    let (begun, beginning) = unbounded_channel();
    let reading = move || {
        begun.send(()).unwrap();
        // The test has failed if there is none.
        finding.recv().unwrap_or(TokenReading::Unchanged)
    };
    (Box::new(reading), found, beginning)
}

fn events(receiver: &mut UnboundedReceiver<Event>) -> Vec<Event> {
    std::iter::from_fn(|| receiver.try_recv().ok()).collect()
}

fn problem(text: &str) -> Event {
    Event::Problem(text.to_owned())
}

/// Reads once, which takes longer than it may and then finds this. Returns what was said before that.
async fn look_slowly(
    followed: &mut Followed<Recording>,
    receiver: &mut UnboundedReceiver<Event>,
    (found, mut beginning): (std::sync::mpsc::Sender<Reading>, UnboundedReceiver<()>),
    reading: Reading,
) -> Vec<Event> {
    let finding = async {
        beginning.recv().await.unwrap();
        // The clock stands still while a reader blocks.
        advance(MAX_READ + Duration::from_secs(1)).await;
        for _ in 0..100 {
            yield_now().await;
        }
        let said = events(receiver);
        found.send(reading).unwrap();
        said
    };
    tokio::join!(followed.look(), finding).1
}

const TOO_SLOW: &str = "they could not be read within 10 s";

#[tokio::test(start_paused = true)]
async fn v_545_a_slow_reading_is_reported_and_one_that_ends_well_clears_that() {
    let (reading, found, beginning) = slow();
    let (mut followed, mut receiver) = followed(vec![reading]);
    let said = look_slowly(&mut followed, &mut receiver, (found, beginning), TokenReading::Unchanged).await;
    assert_eq!(said, [problem(TOO_SLOW)]);
    assert_eq!(events(&mut receiver), [Event::Recovered]);
    followed.look().await;
    assert!(events(&mut receiver).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reading_that_finds_something_new_is_used() {
    let (reading, found, beginning) = slow();
    let (mut followed, mut receiver) = followed(vec![reading]);
    let said = look_slowly(&mut followed, &mut receiver, (found, beginning), TokenReading::Changed(7)).await;
    assert_eq!(said, [problem(TOO_SLOW)]);
    assert_eq!(events(&mut receiver), [Event::Used(7), Event::Recovered]);
}

/// The file is as unusable as before: a slow reading that finds nothing new is no better one.
#[tokio::test(start_paused = true)]
async fn what_was_wrong_before_a_slow_reading_still_is() {
    let (reading, found, beginning) = slow();
    let (mut followed, mut receiver) =
        followed(vec![fails("line 1"), reading, fails("line 1"), finds(TokenReading::Changed(7))]);
    followed.look().await;
    assert_eq!(events(&mut receiver), [problem("line 1")]);
    let said = look_slowly(&mut followed, &mut receiver, (found, beginning), TokenReading::Unchanged).await;
    assert_eq!(said, [problem(TOO_SLOW)]);
    // It was reported before, so it is not reported again.
    followed.look().await;
    assert!(events(&mut receiver).is_empty());
    followed.look().await;
    assert_eq!(events(&mut receiver), [Event::Used(7), Event::Recovered]);
}

/// What the reader has not finished may be a change, so that nothing new does not mean that all is well.
#[tokio::test]
async fn v_545_a_reader_that_panics_is_reported_once_until_it_finds_something() {
    let panics = || -> Step { Box::new(|| -> Reading { panic!("a test's reader") }) };
    let (mut followed, mut receiver) =
        followed(vec![panics(), panics(), finds(TokenReading::Unchanged), finds(TokenReading::Changed(7))]);
    followed.look().await;
    assert_eq!(events(&mut receiver), [problem("the reader of the tokens panicked")]);
    followed.look().await;
    followed.look().await;
    assert!(events(&mut receiver).is_empty());
    followed.look().await;
    assert_eq!(events(&mut receiver), [Event::Used(7), Event::Recovered]);
}

#[tokio::test]
async fn each_problem_is_reported_once_until_another_one() {
    let readings = vec![
        fails("line 1"),
        fails("line 1"),
        finds(TokenReading::Changed(UNUSABLE)),
        finds(TokenReading::Changed(UNUSABLE)),
        fails("line 1"),
        finds(TokenReading::Changed(7)),
        fails("line 1"),
    ];
    let number = readings.len();
    let (mut followed, mut receiver) = followed(readings);
    for _ in 0..number {
        followed.look().await;
    }
    let unusable = Error::InvalidOptions { option: OptionName::Token, problem: "it is unusable".to_owned() };
    let unusable = problem(&unusable.to_string());
    let recovered = [Event::Used(7), Event::Recovered, problem("line 1")];
    let expected: Vec<Event> =
        [problem("line 1"), unusable, problem("line 1")].into_iter().chain(recovered).collect();
    assert_eq!(events(&mut receiver), expected);
}

/// A token may be another source's, which then gets a new one.
#[tokio::test]
async fn what_could_not_be_used_is_tried_again_until_something_else_is_read() {
    let unusable = || finds(TokenReading::Changed(UNUSABLE));
    let readings = vec![
        unusable(),
        finds(TokenReading::Unchanged),
        finds(TokenReading::Unchanged),
        unusable(),
        fails("line 1"),
        finds(TokenReading::Unchanged),
    ];
    let (mut followed, mut receiver) = followed(readings);
    followed.look().await;
    assert_eq!(events(&mut receiver).len(), 1, "a problem");
    followed.look().await;
    assert!(events(&mut receiver).is_empty());
    followed.target.uses_all.store(true, Ordering::Relaxed);
    followed.look().await;
    assert_eq!(events(&mut receiver), [Event::Used(UNUSABLE), Event::Recovered]);
    // What is no longer in the file is not used.
    followed.target.uses_all.store(false, Ordering::Relaxed);
    followed.look().await;
    followed.look().await;
    assert_eq!(events(&mut receiver).len(), 2, "two problems");
    followed.target.uses_all.store(true, Ordering::Relaxed);
    followed.look().await;
    assert!(events(&mut receiver).is_empty());
}

/// Two sources fail by themselves: the one that can be used again does not speak for the other.
#[tokio::test]
async fn the_server_fails_until_every_source_can_be_used() {
    let executor = Executor::builder().build().unwrap();
    let shared = Arc::new(Shared::new(executor, ServerOptions::default()));
    let [mut token, mut tenants] =
        [TokenOwner::Operator, TokenOwner::Tenants].map(|owner| problem_reporter(&shared, owner));
    token(Some("line 1"));
    token(Some("line 2"));
    tenants(Some("line 3"));
    token(None);
    assert!(shared.tokens_failing());
    tenants(None);
    assert!(!shared.tokens_failing());
    // A server that has ended has no source.
    token(Some("line 1"));
    drop(token);
    assert!(!shared.tokens_failing());
}

//! Lists on disk, between processes that live and processes that are killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use cx::Executor;

use crate::numbered::{Numbered, TOOLS};

/// How often two processes are killed.
const KILLS: u64 = 200;

fn executor(cache: &Path, state: &Path, number: Option<u64>) -> Executor {
    Executor::builder()
        .warm_isolates(0)
        .cache_directory(cache)
        .state_directory(state)
        .dispatcher(Numbered { number })
        .build()
        .unwrap()
}

/// The number that all tools on disk carry. That it is one, and all tools are there, is the point.
fn number_on_disk(cache: &Path, state: &Path) -> Option<u64> {
    let executor = executor(cache, state, None);
    let known = executor.known_tools().remove(0);
    assert!(executor.tool_changes().is_ok(), "the accepted definitions can be read");
    let tools = known.tools?;
    assert_eq!(tools.len(), TOOLS, "a list is whole");
    let numbers: Vec<u64> = tools
        .iter()
        .map(|tool| tool.definition.description.as_ref().and_then(|text| text.parse().ok()).unwrap())
        .collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    Some(numbers[0])
}

fn writer(cache: &Path, state: &Path, first: u64) -> (Child, Receiver<u64>) {
    let program = std::env::current_exe().unwrap();
    let program = program.parent().unwrap().parent().unwrap().join("examples/cache-writer");
    #[expect(clippy::disallowed_methods, reason = "a child to be killed")]
    let mut child = Command::new(program)
        .args([cache.as_os_str(), state.as_os_str()])
        .arg(first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the writer is built with the tests");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, written) = channel();
    std::thread::spawn(move || {
        for number in lines.map_while(Result::ok).filter_map(|line| line.parse().ok()) {
            let _nobody_looks = sender.send(number);
        }
    });
    (child, written)
}

/// Two processes write to one directory and are killed at a random point, two hundred times: what was
/// written last is there, and is whole.
#[test]
fn nothing_is_torn_or_lost_when_processes_are_killed() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, state) = (directory.path().join("cache"), directory.path().join("state"));
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut seen = 0;
    for round in 0..KILLS {
        // Even numbers from one, odd ones from the other, all beyond what there was.
        let first = (seen / 2 + 1_000) * 2;
        let mut writers = [writer(&cache, &state, first), writer(&cache, &state, first + 1)];
        // Some are killed before they have written anything, most in the middle of it.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut first_written = 0;
        if round % 8 > 0 {
            first_written = writers[0].1.recv_timeout(Duration::from_secs(20)).expect("the first write");
        }
        std::thread::sleep(Duration::from_micros(random % 20_000));
        for (child, _) in &mut writers {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let written: Vec<u64> = writers
            .iter()
            .zip([first_written, 0])
            .map(|((_, written), first)| written.try_iter().last().unwrap_or(first))
            .collect();
        let found = number_on_disk(&cache, &state).unwrap_or(0);
        assert!(found >= seen, "round {round}: {found} after {seen} was there");
        // One writer may have asked later than the other; what it wrote itself is in order.
        if let Some(last) = written.iter().find(|last| **last > 0 && **last % 2 == found % 2) {
            assert!(found >= *last, "round {round}: {found} after {last} was written");
        }
        assert!(found > 0 || written == [0, 0], "round {round}: nothing is there after {written:?}");
        seen = found;
    }
    assert!(seen > KILLS, "{seen} is the last of the writes");
    // What killed writers leave behind does not pile up.
    let count = |directory: &Path| std::fs::read_dir(directory).unwrap().count();
    assert!(count(&cache) + count(&state) <= 6, "{} and {} files", count(&cache), count(&state));
}

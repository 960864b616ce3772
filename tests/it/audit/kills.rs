//! The trail of processes that are killed: docs/threats.md, FD 235.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cx::audit::{AuditOptions, AuditReader, AuditTrail, VerifyOptions, verify};

/// How often two processes are killed in the suite. `make audit-kills` does it 200 times.
const ROUNDS: u64 = 8;

/// How often the two writers of one trail are killed. The trail is verified each time, which takes longer the longer it
/// is.
const SERIES: usize = 20;

fn writer(root: &Path, name: &str) -> Child {
    let test_binary = std::env::current_exe().unwrap();
    let program = test_binary.parent().unwrap().parent().unwrap().join("examples/audit-writer");
    assert!(program.exists(), "cargo builds the examples with the tests: {}", program.display());
    Command::new(program)
        .args([root.join("trail"), root.join("received")])
        .arg(name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Two processes that append to one trail are killed at any moment: no line is torn, the chain holds, and each call that
/// the server has received was written before. A call is sent when its line is acknowledged, so no acknowledged line is
/// lost.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are for people to read")]
fn fd_235_a_killed_process_leaves_a_whole_trail() {
    let rounds = std::env::var("CX_AUDIT_KILLS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let series = (0..rounds).step_by(SERIES);
    let least = Duration::from_millis(20);
    let mut received: usize =
        series.map(|first| killed(first..rounds.min(first + SERIES as u64), least)).sum();
    // On a busy machine hardly any engine may have been started by then.
    for longer in 1..=10_u32 {
        if received as u64 <= rounds {
            received += killed(0..2, longer * Duration::from_secs(1));
        }
    }
    println!(
        "{rounds} times two processes were killed; each of {received} calls received was in the trail before"
    );
    assert!(received as u64 > rounds, "hardly anything was called");
}

/// Repeatedly kills two processes that write one trail, each time after the time `least` or a little later. Returns how
/// many calls the server has received.
fn killed(rounds: Range<u64>, least: Duration) -> usize {
    let root = tempfile::tempdir().unwrap();
    let trail = root.path().join("trail");
    for round in rounds {
        let names = [format!("a{round}"), format!("b{round}")];
        let mut writers = names.each_ref().map(|name| writer(root.path(), name));
        for writer in &mut writers {
            let mut line = String::new();
            BufReader::new(writer.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
        }
        // Engines take longer to start on a loaded machine, so a kill comes at any time between no call and many.
        std::thread::sleep(least + Duration::from_millis(round * 37 % 230));
        for writer in &mut writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        // The next process sets an incomplete line aside.
        drop(AuditTrail::start(AuditOptions::new(&trail)).unwrap());
        let found = verify(&trail, &VerifyOptions::default()).unwrap();
        assert!(found.is_ok(), "round {round}: {:?}", found.problems);
    }
    let mut announced = HashSet::new();
    let mut scripts = HashMap::new();
    let mut reader = AuditReader::new(&trail);
    while let Some(line) = reader.next_line(false).unwrap() {
        let run = line.text_of("run").unwrap_or_default().to_owned();
        match line.text_of("event") {
            Some("run.started") => drop(scripts.insert(run, line.text_of("script").unwrap().to_owned())),
            Some("call.will") => {
                let arguments: serde_json::Value =
                    serde_json::from_str(line.text_of("arguments").unwrap()).unwrap();
                announced.insert(format!("{} {}", scripts[&run], arguments["number"]));
            }
            _ => {}
        }
    }
    let received = fs::read_to_string(root.path().join("received")).unwrap_or_default();
    let unannounced: Vec<&str> = received.lines().filter(|line| !announced.contains(*line)).collect();
    assert!(unannounced.is_empty(), "{} of {}: {unannounced:?}", unannounced.len(), received.lines().count());
    received.lines().count()
}

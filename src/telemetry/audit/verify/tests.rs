use std::collections::{BTreeSet, HashSet};
use std::fs;

use serde_json::{Value, json};

use super::{AuditProblem, Check, MAX_KEPT, MAX_TEXT, Verification, VerifyOptions, verify};
use crate::telemetry::audit::read::AuditLine;

fn check() -> Check {
    Check {
        newest_file_only: false,
        found: Verification::default(),
        verifier: None,
        expected: Vec::new(),
        previous: None,
        writers: BTreeSet::new(),
        open: HashSet::new(),
        removed: HashSet::new(),
    }
}

fn line(number: u64, fields: &Value) -> AuditLine {
    let text = fields.to_string();
    let fields = serde_json::from_str(&text).unwrap();
    AuditLine { file: "2026-01-01.jsonl".to_owned(), number, text, fields: Some(fields), is_complete: true }
}

/// Threat 590.
#[test]
fn v_590_the_texts_of_another_ones_trail_are_not_kept() {
    let (long, mut check) = ("a".repeat(100_000), check());
    for number in 1..=200_u64 {
        // Times that go back.
        let at = format!("{}{long}", 999 - number);
        for event in ["call.will", "retention", "lines.dropped", "line.damaged"] {
            let own = format!("{number} {long}");
            let fields = json!({
                "seq": number, "event": event, "writer": own, "run": own, "throughHash": own, "at": at,
                "reason": own, "file": own, "call": number, "through": number,
            });
            check.line(&line(number, &fields));
        }
    }
    assert_eq!((check.writers.len(), check.open.len(), check.removed.len()), (200, 200, 200));
    let kept = check.writers.iter().chain(check.open.iter().map(|(run, _)| run));
    let kept = kept.chain(check.removed.iter().map(|(_, hash)| hash));
    assert!(kept.map(String::len).max() <= Some(MAX_TEXT));
    assert!(check.found.notices.iter().map(String::len).max() < Some(4 * MAX_TEXT));
}

/// Threat 590.
#[test]
fn v_590_the_removed_files_of_a_trail_are_bounded() {
    let mut check = check();
    for number in 0..MAX_KEPT as u64 + 10 {
        check.line(&line(1, &json!({ "event": "retention", "through": number })));
    }
    assert_eq!(check.removed.len(), MAX_KEPT);
}

/// Threat 590.
#[test]
fn v_590_the_largest_number_of_a_line_is_a_number() {
    let directory = tempfile::tempdir().unwrap();
    let lines = format!("{{\"seq\":{}}}\n{{\"seq\":0}}\n", u64::MAX);
    fs::write(directory.path().join("2026-01-01.jsonl"), lines).unwrap();
    let found = verify(directory.path(), &VerifyOptions::default()).unwrap();
    let expected = format!("line 0 follows line {}", u64::MAX);
    assert!(found.problems.iter().any(|problem| problem.problem == expected), "{:?}", found.problems);
}

/// Threat 725: bytes without a line end, between two lines that follow each other.
#[test]
fn v_725_a_line_that_is_too_long_is_a_problem() {
    let directory = tempfile::tempdir().unwrap();
    let lines = format!("{{\"seq\":1}}\n{}{{\"seq\":2}}\n", " ".repeat(1 << 20));
    fs::write(directory.path().join("2026-01-01.jsonl"), lines).unwrap();
    let found = verify(directory.path(), &VerifyOptions::default()).unwrap();
    let is_named = |problem: &AuditProblem| problem.line == 2 && problem.problem == "it is not a JSON object";
    assert!(found.problems.iter().any(is_named), "{:?}", found.problems);
}

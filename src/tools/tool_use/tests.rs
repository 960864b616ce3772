use super::*;

fn position(server: &str, tool: &str) -> Option<usize> {
    (server == "s").then(|| tool.parse().ok()).flatten()
}

fn record(tool_use: &ToolUse, tools: &[&str]) -> bool {
    tool_use.record(tools.iter().map(|tool| ("s", *tool)))
}

/// The tools that are used with one, best known first.
fn together(tool_use: &ToolUse, tool: usize) -> Vec<u32> {
    let mut together = tool_use.learned(position).together.remove(&tool).unwrap_or_default();
    together.sort_by(|a, b| b.1.total_cmp(&a.1));
    together.into_iter().map(|(other, _)| other).collect()
}

fn popular(tool_use: &ToolUse) -> Vec<u32> {
    tool_use.learned(position).popularity.into_iter().map(|(tool, _)| tool).collect()
}

#[test]
fn tools_that_runs_call_together_are_known() {
    let tool_use = ToolUse::new(None, true);
    let before = tool_use.changes();
    for run in [&["1", "2", "1"][..], &["1", "2", "3"], &["1", "3"], &["1", "2"], &["4"], &["5", "gone"]] {
        assert!(record(&tool_use, run));
    }
    assert!(!record(&tool_use, &[]));
    assert_eq!(tool_use.changes() - before, 6);
    assert_eq!(together(&tool_use, 1), [2, 3]);
    // What one run did may be chance.
    assert!(together(&tool_use, 5).is_empty());
    assert_eq!(popular(&tool_use)[..2], [1, 2]);
    let learned = tool_use.learned(position);
    assert!((learned.popularity[0].1 - 1.0).abs() < 0.01, "{learned:?}");
}

#[test]
fn nothing_is_known_when_it_is_off() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path());
    let on = ToolUse::new(Some(store.clone()), true);
    assert!(record(&on, &["1", "2"]));
    on.save();
    let off = ToolUse::new(Some(store), false);
    assert!(!record(&off, &["1", "2"]));
    assert!(popular(&off).is_empty());
    off.save();
    // It can be deleted all the same.
    assert_eq!(off.clear().unwrap(), 1);
    assert_eq!(off.clear().unwrap(), 0);
}

#[test]
fn processes_share_what_they_know() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path());
    let (a, b) = (ToolUse::new(Some(store.clone()), true), ToolUse::new(Some(store.clone()), true));
    record(&a, &["1", "2"]);
    record(&b, &["1", "2"]);
    record(&b, &["3"]);
    a.save();
    b.save();
    a.save();
    assert_eq!(together(&b, 1), [2]);
    let later = ToolUse::new(Some(store), true);
    assert_eq!(popular(&later), [1, 2, 3]);
    assert_eq!(together(&later, 2), [1]);
    assert_eq!(later.clear().unwrap(), 1);
    assert!(popular(&later).is_empty());
}

/// Arguments, results and scripts are not even given to it; this is all that is stored.
#[test]
fn only_names_and_counts_are_stored() {
    let directory = tempfile::tempdir().unwrap();
    let tool_use = ToolUse::new(Some(Store::new(directory.path())), true);
    record(&tool_use, &["read", "write"]);
    tool_use.save();
    let path = Store::new(directory.path()).path(FILE);
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(
        file["document"],
        serde_json::json!([
            { "server": "s", "tool": "read", "runs": 1, "together": [["s", "write", 1]] },
            { "server": "s", "tool": "write", "runs": 1, "together": [["s", "read", 1]] },
        ])
    );
}

#[test]
fn a_damaged_file_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path());
    let first = ToolUse::new(Some(store.clone()), true);
    record(&first, &["1"]);
    first.save();
    std::fs::write(store.path(FILE), "{").unwrap();
    let second = ToolUse::new(Some(store.clone()), true);
    assert!(popular(&second).is_empty());
    record(&second, &["2"]);
    second.save();
    assert_eq!(popular(&ToolUse::new(Some(store), true)), [2]);
}

#[test]
fn what_is_kept_is_bounded() {
    let tool_use = ToolUse::new(None, true);
    for _ in 0..3 {
        record(&tool_use, &["1", "2"]);
    }
    for number in 0..2_000 {
        let names: Vec<String> = (0..30).map(|tool| (1_000 + number * 30 + tool).to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        record(&tool_use, &names);
    }
    let counts = tool_use.known.lock().counts.clone();
    assert!(counts.0.len() <= MAX_TOOLS, "{} tools", counts.0.len());
    assert!(counts.0.values().all(|used| used.together.len() <= MAX_TOGETHER));
    // What was used more often is still known.
    assert_eq!(together(&tool_use, 1), [2]);
    assert!(!tool_use.record([("s", &*"x".repeat(MAX_NAME + 1))].into_iter()));
}

#[test]
fn newer_runs_count_more() {
    let tool_use = ToolUse::new(None, true);
    for _ in 0..MANY_RUNS - 1 {
        record(&tool_use, &["1", "2"]);
    }
    for _ in 0..700 {
        record(&tool_use, &["1", "3"]);
    }
    assert_eq!(together(&tool_use, 1), [3, 2]);
    assert!(tool_use.known.lock().counts.0.values().all(|used| used.runs < MANY_RUNS));
}

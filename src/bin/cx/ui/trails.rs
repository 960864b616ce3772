//! The audit trails that the page reads, as they grow.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cx::audit::AuditReader;
use cx::text::one_line;

use crate::trail_runs::{TrailRun, TrailRuns};

/// Maximum number of trails: that of the configuration, and those of running servers.
const MAX_TRAILS: usize = 8;

/// Maximum bytes of a trail from before the page was opened that are read: some 100,000 lines.
const MAX_PAST: u64 = 32 << 20;

/// Maximum number of lines that are read at once; the others are read next time.
const MAX_LINES: usize = 100_000;

/// The trails, by their directories.
#[derive(Default)]
pub(crate) struct Trails(BTreeMap<PathBuf, Trail>);

#[derive(Default)]
struct Trail {
    reader: Option<AuditReader>,
    runs: TrailRuns,
    lines: u64,
    failure: Option<String>,
}

impl Trails {
    /// Reads what was appended to the trails in these directories, and to the known trails. Blocks.
    pub(crate) fn read(&mut self, directories: &[PathBuf]) {
        for directory in directories {
            // Canonical, so that each trail has one name.
            let directory = directory.canonicalize().unwrap_or_else(|_missing| directory.clone());
            if self.0.len() < MAX_TRAILS {
                self.0.entry(directory).or_default();
            }
        }
        for (directory, trail) in &mut self.0 {
            let read = trail.read(directory);
            trail.failure = read.err().map(|error| error.to_string());
        }
    }

    /// All runs, each trail's latest first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &TrailRun> {
        self.0.values().flat_map(|trail| trail.runs.latest())
    }

    /// The latest runs of each trail, at most `max` of it: among them are the `max` latest runs of all trails.
    pub(crate) fn latest(&self, max: usize) -> impl Iterator<Item = &TrailRun> {
        self.0.values().flat_map(move |trail| trail.runs.latest().take(max))
    }

    pub(crate) fn get(&self, id: &str) -> Option<&TrailRun> {
        self.0.values().find_map(|trail| trail.runs.get(id))
    }

    /// Whether any of them has a line.
    pub(crate) fn has_lines(&self) -> bool {
        self.0.values().any(|trail| trail.lines > 0)
    }

    /// Why trails cannot be read.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(directory, trail)| {
            let (failure, shown) = (trail.failure.as_ref()?, one_line(&directory.display().to_string()));
            Some(format!("the audit trail in {shown} cannot be read: {failure}"))
        })
    }
}

impl Trail {
    fn read(&mut self, directory: &Path) -> io::Result<()> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => self.reader.insert(AuditReader::near_end(directory, MAX_PAST)?),
        };
        for _ in 0..MAX_LINES {
            let Some(line) = reader.next_line(false)? else { break };
            self.lines += 1;
            self.runs.add(&line);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    /// Otherwise the runs of one long trail hide those of the others.
    #[test]
    fn the_latest_runs_are_those_of_all_trails() {
        let started = |id: String| format!("{}\n", json!({ "event": "run.started", "run": id }));
        let (long, short) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let many: String = (0..900).map(|number| started(format!("long{number}"))).collect();
        fs::write(long.path().join("2026-01-01.jsonl"), many).unwrap();
        fs::write(short.path().join("2026-01-01.jsonl"), started("short".to_owned())).unwrap();
        let mut trails = Trails::default();
        trails.read(&[long.path().to_owned(), short.path().to_owned()]);
        let mut ids: Vec<String> = trails.latest(2).map(|run| run.to_json()["id"].to_string()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [r#""long898""#, r#""long899""#, r#""short""#]);
    }
}

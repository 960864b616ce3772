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

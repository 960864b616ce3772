//! Reports on stderr of traces that `cx serve --traces` could not keep.

use std::time::{Duration, Instant};

/// Minimum time between two reports. Otherwise a disk that is full from time to time would cause a line for each run.
const QUIET: Duration = Duration::from_secs(60);

/// Reports when traces are lost, and when they are kept again: once each time, and not more often than [`QUIET`]
/// allows.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// Number of traces that were lost since the last report.
    lost: u64,
    /// Whether a loss was reported, and not yet that traces are kept again.
    is_said: bool,
    /// When traces were last kept again.
    worked: Option<Instant>,
}

impl Notices {
    /// Counts a trace that was lost. Returns the line to print, if there is one.
    pub(super) fn lose(&mut self, now: Instant, reason: impl FnOnce() -> String) -> Option<String> {
        self.lost = self.lost.saturating_add(1);
        let is_quiet = self.worked.is_some_and(|worked| now.saturating_duration_since(worked) < QUIET);
        if self.is_said || is_quiet {
            return None;
        }
        self.is_said = true;
        Some(format!("warning: {}", reason()))
    }

    /// Records that a trace was kept. Returns the line to print, if there is one.
    pub(super) fn keep(&mut self, now: Instant) -> Option<String> {
        if !std::mem::take(&mut self.is_said) {
            return None;
        }
        self.worked = Some(now);
        let lost = std::mem::take(&mut self.lost);
        Some(format!("traces are written again: {lost} were lost"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk brings two lines, whatever the number of runs; one that is full now and then two in a minute.
    #[test]
    fn v_571_lost_traces_bring_a_bounded_number_of_lines() {
        let start = Instant::now();
        let mut notices = Notices::default();
        assert_eq!(notices.keep(start), None);
        let first = notices.lose(start, || "the disk is full".to_owned());
        assert_eq!(first.as_deref(), Some("warning: the disk is full"));
        for _ in 1..100 {
            assert_eq!(notices.lose(start, || panic!("nothing is to be said")), None);
        }
        assert_eq!(notices.keep(start).as_deref(), Some("traces are written again: 100 were lost"));
        assert_eq!(notices.keep(start), None);
        for second in 0..59 {
            let now = start + Duration::from_secs(second);
            assert_eq!(notices.lose(now, || panic!("nothing is to be said")), None);
            assert_eq!(notices.keep(now), None);
        }
        let later = start + QUIET;
        assert!(notices.lose(later, || "it is full again".to_owned()).is_some());
        assert_eq!(notices.keep(later).as_deref(), Some("traces are written again: 60 were lost"));
    }
}

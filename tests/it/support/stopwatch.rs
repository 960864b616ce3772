//! Elapsed time, and what the machine did meanwhile: for time bounds that are promises.
//!
//! Other bounds on elapsed time are not tested: such tests fail when the machine is busy, and what they look for shows
//! in an outcome. Where a promise is not kept, the message says whether the machine could have kept it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// How much later than at its limit a reply may come. The promise is half a second; the rest is for a machine that runs
/// other tests at the same time. Without its limit what is measured goes on for far longer.
pub(crate) const LATE: Duration = Duration::from_secs(10);

/// How long the control thread sleeps each time.
const NAP: Duration = Duration::from_millis(10);

/// A sleep that ends this much later shows that the machine was busy.
const WORTH_TELLING: Duration = Duration::from_millis(5);

/// How many late sleeps are remembered: those of a minute on a machine where all are late.
const MAX_NAPS: usize = 4_000;

/// Clock ticks of `/proc/self/stat` in a second, on every Linux.
const TICKS: f64 = 100.0;

/// When late sleeps ended, and how late each was.
static LATE_NAPS: LazyLock<Mutex<VecDeque<(Instant, Duration)>>> = LazyLock::new(|| {
    std::thread::spawn(|| {
        loop {
            let start = Instant::now();
            std::thread::sleep(NAP);
            let late = start.elapsed().saturating_sub(NAP);
            if late > WORTH_TELLING {
                let mut naps = LATE_NAPS.lock().unwrap();
                if naps.len() == MAX_NAPS {
                    naps.pop_front();
                }
                naps.push_back((Instant::now(), late));
            }
        }
    });
    Mutex::default()
});

/// Runs from its start.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    start: Instant,
    cpu_seconds: f64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        LazyLock::force(&LATE_NAPS);
        Self { start: Instant::now(), cpu_seconds: cpu_seconds() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Asserts that at most `most` has passed, which is promised of `what`.
    #[track_caller]
    pub(crate) fn promise(&self, most: Duration, what: impl fmt::Display) {
        self.promise_of(self.elapsed(), most, what);
    }

    /// As [`promise`](Self::promise), for a time that the caller has measured since the start.
    #[track_caller]
    pub(crate) fn promise_of(&self, took: Duration, most: Duration, what: impl fmt::Display) {
        assert!(took < most, "{what}: {took:?}, where less than {most:?} is promised; {}", self.meanwhile());
    }

    /// What the machine did since the start.
    pub(crate) fn meanwhile(&self) -> String {
        let naps = LATE_NAPS.lock().unwrap();
        let latest = naps.iter().filter(|(end, _)| *end >= self.start).map(|(_, late)| *late).max();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        format!(
            "meanwhile a sleep of {NAP:?} was up to {:?} late, this process and its children took {:.2} s of CPU time, \
             and the load average is {}",
            latest.unwrap_or_default(),
            cpu_seconds() - self.cpu_seconds,
            load.trim(),
        )
    }
}

/// CPU time of this process and of its children that have ended.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the process may have spaces; user and system time are the 14th to the 17th field.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    fields.skip(11).take(4).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS
}

#[test]
fn a_promise_that_is_not_kept_says_what_the_machine_did() {
    let stopwatch = Stopwatch::start();
    stopwatch.promise(Duration::from_secs(3_600), "nothing");
    let broken = std::panic::catch_unwind(|| stopwatch.promise(Duration::ZERO, "the reply"));
    let message = *broken.unwrap_err().downcast::<String>().unwrap();
    for part in ["the reply: ", "promised", "10ms was up to", "s of CPU time", "load average is "] {
        assert!(message.contains(part), "{message}");
    }
}

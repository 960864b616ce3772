//! A model of the clock: several concurrent pauses while the watchdog reads the deadline.

use super::*;
use crate::run::limits::Limits;
use crate::sync::model::{self, Timeouts, advance, any, join_others, time};

/// Measures how long at least one of several spans was open, to compare with the clock's pauses.
#[derive(Default)]
struct Spans {
    open: usize,
    since: Option<Instant>,
    total: Duration,
}

impl Spans {
    fn begin(&mut self) {
        self.open += 1;
        self.since.get_or_insert_with(time);
    }

    fn end(&mut self) {
        self.open -= 1;
        if self.open == 0
            && let Some(since) = self.since.take()
        {
            self.total += time() - since;
        }
    }
}

#[test]
fn v_361_pauses_count_once_and_never_beyond_their_bound() {
    // A lock that is not a step of the model, because it only measures.
    type Measured = Arc<parking_lot::Mutex<Spans>>;
    model::check(2_000, Timeouts::Random, || {
        let wall_time = Duration::from_secs(1);
        let paused_time = Duration::from_millis(any(2_000) as u64);
        let clock = RunClock::start(
            RunLimits::fixed(Limits { wall_time, paused_time, ..Limits::default() }),
            Duration::ZERO,
            None,
        );
        let (least, most) = (Measured::default(), Measured::default());
        for number in 0..3 {
            let (clock, least, most) = (Arc::clone(&clock), Arc::clone(&least), Arc::clone(&most));
            model::thread(&format!("question-{number}"), move || {
                for _ in 0..1 + any(2) {
                    most.lock().begin();
                    let pause = clock.pause();
                    least.lock().begin();
                    advance(Duration::from_millis(any(50) as u64));
                    let _paused = clock.paused();
                    least.lock().end();
                    drop(pause);
                    most.lock().end();
                }
            });
        }
        let read = Arc::clone(&clock);
        model::thread("watchdog", move || {
            let (mut deadline, mut paused) = (read.started() + wall_time, Duration::ZERO);
            for _ in 0..6 {
                let (next, total) = (read.deadline(), read.paused());
                assert!(next >= deadline && total >= paused, "neither goes back");
                assert!(next <= read.latest_deadline());
                (deadline, paused) = (next, total);
            }
        });
        join_others();
        let paused = clock.paused();
        let (least, most) = (least.lock().total, most.lock().total);
        assert!(least <= paused && paused <= most, "{least:?} <= {paused:?} <= {most:?}");
        advance(Duration::from_secs(1));
        assert_eq!(clock.paused(), paused, "none is open");
        assert_eq!(clock.deadline(), clock.started() + wall_time + paused.min(paused_time));
    });
}

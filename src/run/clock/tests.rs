use super::*;
use crate::run::limits::Limits;

fn clock(max_paused: Duration) -> Arc<RunClock> {
    let wall_time = Duration::from_secs(10);
    RunClock::start(
        RunLimits::fixed(Limits { wall_time, paused_time: max_paused, ..Limits::default() }),
        Duration::ZERO,
        None,
    )
}

/// Lets some time pass; the amount does not matter.
fn pass() {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(5) {
        std::hint::spin_loop();
    }
}

#[test]
fn the_deadline_moves_with_pauses_and_with_nothing_else() {
    let clock = clock(Duration::from_secs(60));
    let first = clock.deadline();
    pass();
    assert_eq!(clock.deadline(), first);
    let (pause, inner) = (clock.pause(), clock.pause());
    pass();
    assert!(clock.deadline() >= first + Duration::from_millis(5));
    // Two concurrent pauses count once.
    drop(pause);
    let between = clock.paused();
    pass();
    assert!(clock.paused() > between);
    drop(inner);
    let after = clock.deadline();
    assert!(after >= first + Duration::from_millis(10));
    pass();
    assert_eq!(clock.deadline(), after);
    assert_eq!(clock.latest_deadline(), first + Duration::from_secs(60));
}

#[test]
fn pauses_have_a_bound() {
    let clock = clock(Duration::from_millis(1));
    let _pause = clock.pause();
    pass();
    assert_eq!(clock.deadline(), clock.latest_deadline());
    assert!(clock.paused() >= Duration::from_millis(5));
}

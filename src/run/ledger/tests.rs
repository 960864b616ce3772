use super::*;

fn limits(output_bytes: usize) -> Limits {
    Limits { output_bytes, ..Limits::default() }
}

/// An operator can lower the limit below what a run has printed, and raise it again.
#[test]
fn output_beyond_a_limit_that_was_lowered_is_dropped() {
    let mut ledger = Ledger::default();
    let log = |ledger: &mut Ledger, limits: &Limits| ledger.log(LogLevel::Info, "0123456789", limits);
    assert_eq!(log(&mut ledger, &limits(100)), Logged::Kept(10));
    assert_eq!(log(&mut ledger, &limits(5)), Logged::Dropped);
    assert_eq!(log(&mut ledger, &limits(11)), Logged::Dropped);
    assert_eq!(log(&mut ledger, &limits(15)), Logged::Kept(4));
    assert_eq!(log(&mut ledger, &limits(15)), Logged::Dropped);
    assert_eq!(ledger.output_bytes_dropped, 36);
}

use super::*;

#[test]
fn pauses_grow_until_the_server_answers() {
    let now = Instant::now();
    let mut backoff = StartBackoff::new();
    assert_eq!(backoff.begin(now), Ok(now));
    let second = backoff.begin(now).unwrap();
    assert!((now + MIN_PAUSE..=now + 2 * MIN_PAUSE).contains(&second), "{:?}", second - now);
    assert!(backoff.begin(now).unwrap_err() > MAX_WAITED_PAUSE);
    // Once the pause is over, an attempt begins at once.
    let later = now + MAX_PAUSE;
    assert_eq!(backoff.begin(later), Ok(later));
    backoff.reset();
    assert_eq!(backoff.begin(now), Ok(now));
}

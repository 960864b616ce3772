use super::*;

fn limit(calls: u32, period: Duration) -> RateLimit {
    RateLimit { calls: NonZeroU32::new(calls).unwrap(), period }
}

#[test]
fn a_burst_then_one_after_the_other() {
    let bucket = TokenBucket::new(limit(3, Duration::from_secs(600))).unwrap();
    assert_eq!([bucket.acquire(), bucket.acquire(), bucket.acquire()], [Ok(()); 3]);
    let wait = bucket.acquire().unwrap_err();
    assert!((Duration::from_secs(100)..=Duration::from_secs(200)).contains(&wait), "{wait:?}");
    assert!(TokenBucket::new(limit(5, Duration::from_nanos(4))).is_none());
}

#[test]
fn a_period_may_be_without_end() {
    let bucket = TokenBucket::new(limit(2, Duration::MAX)).unwrap();
    assert_eq!([bucket.acquire(), bucket.acquire()], [Ok(()); 2]);
    assert!(bucket.acquire().is_err());
}

#[test]
#[cfg(feature = "server")]
fn clients_do_not_use_up_what_others_have() {
    let buckets = ClientBuckets::new(limit(2, Duration::from_secs(60))).unwrap();
    assert_eq!([buckets.acquire("a"), buckets.acquire("a")], [Ok(()); 2]);
    assert!(buckets.acquire("a").is_err());
    assert_eq!(buckets.acquire("b"), Ok(()));
}

#[test]
#[cfg(feature = "server")]
fn the_number_of_buckets_is_bounded() {
    let buckets = ClientBuckets::new(limit(2, Duration::from_secs(600))).unwrap();
    for client in 0..MAX_CLIENTS {
        assert_eq!(buckets.acquire(&client.to_string()), Ok(()));
    }
    // The rest has one bucket together.
    let more = (0..50).filter(|more| buckets.acquire(&format!("more {more}")).is_ok()).count();
    assert_eq!(more, 2);
    assert_eq!(buckets.tokens.len(), MAX_CLIENTS + 1);
    // A bucket that is full again is as good as none.
    let buckets = ClientBuckets::new(limit(1_000, Duration::from_millis(1))).unwrap();
    for client in 0..2 * MAX_CLIENTS {
        assert_eq!(buckets.acquire(&client.to_string()), Ok(()));
    }
    assert!(buckets.tokens.len() <= MAX_CLIENTS);
}

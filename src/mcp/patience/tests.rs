use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Patience;

/// Longer than a busy machine takes between two statements.
const LIMIT: Duration = Duration::from_millis(500);

#[tokio::test]
async fn the_time_of_a_pause_does_not_count() {
    let patience = Arc::new(Patience::default());
    let begun = Instant::now();
    let limit = patience.elapsed(LIMIT, None);
    tokio::pin!(limit);
    let pause = patience.pause();
    let second = patience.pause();
    assert!(tokio::time::timeout(3 * LIMIT, &mut limit).await.is_err(), "the limit has passed in a pause");
    drop(pause);
    assert!(tokio::time::timeout(LIMIT, &mut limit).await.is_err(), "one pause of two is left");
    drop(second);
    limit.await;
    assert!(begun.elapsed() >= 5 * LIMIT);
}

#[tokio::test]
async fn without_a_pause_it_is_a_time_limit() {
    let patience = Patience::default();
    let begun = Instant::now();
    patience.elapsed(LIMIT, None).await;
    assert!(begun.elapsed() >= LIMIT);
    assert!(tokio::time::timeout(LIMIT, patience.elapsed(Duration::MAX, None)).await.is_err());
}

#[tokio::test]
async fn a_deadline_does_not_wait_for_pauses() {
    let patience = Arc::new(Patience::default());
    for limit in [LIMIT, Duration::MAX] {
        let _pause = patience.pause();
        let begun = Instant::now();
        patience.elapsed(limit, Some(begun + 2 * LIMIT)).await;
        assert!(begun.elapsed() >= 2 * LIMIT);
    }
}

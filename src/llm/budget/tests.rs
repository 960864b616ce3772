use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Budget, Exceeded, Quota, Wanted};

fn wanted(prompt: u64, answer: u32) -> Wanted {
    Wanted { prompt, answer, may_shrink: false }
}

#[tokio::test]
async fn rounds_end() {
    let budget = Budget::new(2, 1_000);
    for round in 1..=2 {
        let reservation = budget.reserve(wanted(10, 10)).await.unwrap();
        assert_eq!(reservation.round, round);
        reservation.record_usage(5);
    }
    assert_eq!(budget.reserve(wanted(1, 1)).await.unwrap_err(), Exceeded::Rounds { max: 2 });
    assert_eq!(budget.quota(), Quota { rounds: 0, tokens: 990 });
}

#[tokio::test]
async fn a_fifth_is_added_to_the_estimate() {
    let budget = Budget::new(10, 129);
    let error = budget.reserve(wanted(100, 10)).await.unwrap_err();
    assert_eq!(error, Exceeded::Tokens { max: 129, left: 129, needed: 130 });
    assert!(Budget::new(10, 130).reserve(wanted(100, 10)).await.is_ok());
}

#[tokio::test]
async fn an_answer_without_a_maximum_of_its_own_gets_what_is_left() {
    let budget = Budget::new(10, 300);
    let shrinking = Wanted { prompt: 100, answer: 1_000, may_shrink: true };
    let reservation = budget.reserve(shrinking).await.unwrap();
    assert_eq!(reservation.answer, 180);
    reservation.record_usage(150);
    let error = budget.reserve(shrinking).await.unwrap_err();
    assert_eq!(error, Exceeded::Tokens { max: 300, left: 150, needed: 1_120 });
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_what_others_give_back() {
    let budget = Budget::new(10, 1_000);
    let first = budget.reserve(wanted(0, 900)).await.unwrap();
    let waiting = tokio::spawn({
        let budget = Arc::clone(&budget);
        async move { budget.reserve(wanted(0, 500)).await.map(|reservation| reservation.round) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    first.record_usage(100);
    assert_eq!(waiting.await.unwrap(), Ok(2));
    // Dropped without a record, the second counts in full.
    assert_eq!(budget.quota(), Quota { rounds: 8, tokens: 400 });
}

/// Calls that take as much as they may, and less, and that are dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_parallel_calls_never_pass_the_budget_by_one() {
    for tokens in [999, 1_000, 1_001, 10_000] {
        let budget = Budget::new(40, tokens);
        let (rounds, used) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let calls: Vec<_> = (0..50_u64)
            .map(|number| {
                let (budget, rounds, used) = (Arc::clone(&budget), Arc::clone(&rounds), Arc::clone(&used));
                tokio::spawn(async move {
                    let wanted = Wanted { prompt: 10, answer: 200, may_shrink: number % 2 == 0 };
                    let Ok(reservation) = budget.reserve(wanted).await else { return };
                    rounds.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(number % 3)).await;
                    let takes = match number % 3 {
                        0 => reservation.tokens(),
                        1 => 12 + u64::from(reservation.answer) / 2,
                        _ => 0,
                    };
                    if takes == 0 {
                        used.fetch_add(reservation.tokens(), Ordering::SeqCst);
                        drop(reservation);
                    } else {
                        used.fetch_add(takes, Ordering::SeqCst);
                        reservation.record_usage(takes);
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        let (rounds, used) = (rounds.load(Ordering::SeqCst), used.load(Ordering::SeqCst));
        assert!(rounds <= 40 && used <= tokens, "{rounds} rounds, {used} of {tokens} tokens");
        assert!(rounds >= 4, "{rounds} rounds of {tokens} tokens");
        assert_eq!(budget.quota().tokens, tokens - used);
    }
}

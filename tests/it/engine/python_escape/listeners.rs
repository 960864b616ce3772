//! Listeners of a run.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::*;
use crate::support::serve::WATCHDOG;

/// A listener gets all output, also what exceeds the limit, from every source. Events have what the result keeps.
#[tokio::test]
async fn listeners_hear_everything_and_events_are_what_is_kept() {
    let (executor, _) = executor().await;
    let seen = Arc::new(AtomicUsize::new(0));
    let source = "
import os, wit_world
for _ in range(5_000):
    print('x' * 100); os.write(1, b'y' * 100); wit_world.log(wit_world.OutputStream.STDERR, 'z' * 100)
return 1";
    let script = Script::python(source).limits(Limits { output_bytes: 10_000, ..small() }).on_output({
        let seen = Arc::clone(&seen);
        move |entry| {
            if let cx::Output::Log { text, .. } = entry {
                seen.fetch_add(text.len() + 1, Ordering::SeqCst);
            }
        }
    });
    let mut run = executor.start(script);
    let mut events = run.events().unwrap();
    let mut kept = 0;
    while let Some(event) = events.next().await {
        if let cx::RunEvent::Output(cx::Output::Log { text, .. }) = event {
            kept += text.len() + 1;
        }
    }
    let result = run.await.unwrap();
    assert_eq!(result.value(), Some(&json!(1)), "{}", result.to_json());
    assert_eq!(seen.load(Ordering::SeqCst), 5_000 * 3 * 101);
    assert!(kept > 9_000 && kept <= 10_001, "{kept}");
    assert!(result.usage.output_bytes_dropped > 5_000 * 3 * 100 - 10_000, "{:?}", result.usage);
}

/// A listener that waits is told when the run has to end, so that its thread is not counted as a hung worker.
#[tokio::test]
async fn a_waiting_listener_is_told_of_the_end() {
    let (executor, _) = executor().await;
    for source in [Script::python("while True: print('x')"), Script::typescript("for (;;) console.log('x')")]
    {
        let script = source.limits(within(200)).on_output_with(|_, cancel| {
            while !cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = executor.run(script).await.unwrap();
        assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::Timeout), "{}", result.to_json());
        for language in [cx::Language::Python, cx::Language::TypeScript] {
            crate::support::wait_until(|| executor.pool_stats(language).hung == 0).await;
        }
    }
}

/// A slow listener delays its own run only, and not much beyond its deadline.
#[tokio::test]
async fn a_slow_listener_does_not_delay_the_reply() {
    let (executor, _) = executor().await;
    let is_answered = Arc::new(AtomicBool::new(false));
    let listener = Arc::clone(&is_answered);
    let script = Script::python("print('x')\nreturn 1").limits(within(200)).on_output(move |_| {
        let began = Instant::now();
        while !listener.load(Ordering::SeqCst) && began.elapsed() < WATCHDOG {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let stopwatch = Stopwatch::start();
    let result = executor.run(script).await.unwrap();
    assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::Timeout), "{}", result.to_json());
    stopwatch.promise(Duration::from_millis(200) + LATE, "a reply while a listener sleeps");
    is_answered.store(true, Ordering::SeqCst);
    untouched(&executor, "a slow listener").await;
}

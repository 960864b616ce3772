use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::error::OptionName;
use crate::run::limits::Limits;

/// Observers would otherwise report a run that nobody has cancelled as cancelled.
#[tokio::test]
async fn a_call_that_can_never_be_admitted_is_no_run_for_observers() {
    let traces = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&traces);
    let executor = Executor::builder()
        .total_memory_bytes(Limits::default().memory_bytes)
        .on_trace(move |_trace| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    let call = ToolCall::new("math", "double").options(|run| run.limits(Limits::CEILING));
    let refused = executor.call(call).await.unwrap_err();
    let is_of_memory = matches!(refused, Error::InvalidOptions { option: OptionName::MemoryBytes, .. });
    assert!(is_of_memory, "{refused}");
    // Traces come in the order of their runs, and later than the answer.
    executor.call(ToolCall::new("math", "double")).await.unwrap();
    let began = Instant::now();
    while traces.load(Ordering::Relaxed) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "a call that is admitted has a trace");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(traces.load(Ordering::Relaxed), 1);
}

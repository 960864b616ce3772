use std::sync::atomic::{AtomicUsize, Ordering};

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
    assert_eq!(traces.load(Ordering::Relaxed), 0);
}

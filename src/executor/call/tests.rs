use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::error::OptionName;
use crate::run::limits::Limits;
use crate::run::observer::{ObservedRun, RunEvent, RunObserver};

/// Counts what it hears of calls.
#[derive(Default)]
struct Counter(AtomicUsize);

impl RunObserver for Counter {
    fn observe(&self, _run: &Arc<ObservedRun>, _event: &RunEvent<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Observers would otherwise report a run that nobody has cancelled as cancelled.
#[tokio::test]
async fn a_call_that_can_never_be_admitted_is_no_run_for_observers() {
    let counter = Arc::new(Counter::default());
    let executor = Executor::builder()
        .total_memory_bytes(Limits::default().memory_bytes)
        .observer(Arc::clone(&counter) as Arc<dyn RunObserver>)
        .build()
        .unwrap();
    let call = || ToolCall::new("math", "double");
    let refused = executor.call(call().options(|run| run.limits(Limits::CEILING))).await.unwrap_err();
    let is_of_memory = matches!(refused, Error::InvalidOptions { option: OptionName::MemoryBytes, .. });
    assert!(is_of_memory, "{refused}");
    assert_eq!(counter.0.load(Ordering::Relaxed), 0);
    executor.call(call()).await.unwrap();
    assert!(counter.0.load(Ordering::Relaxed) > 0, "it hears of a call that is admitted");
}

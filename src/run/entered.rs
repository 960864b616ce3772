//! Futures that are polled by threads without a runtime.

use std::pin::pin;

use futures::future::poll_fn;
use tokio::runtime::Handle;

/// Polls `future` with `runtime` entered, so that its timers, sockets and tasks live there,
/// whichever thread polls it.
pub(crate) async fn entered<T>(runtime: &Handle, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|task| {
        let _entered = runtime.enter();
        future.as_mut().poll(task)
    })
    .await
}

//! The HTTP client of the exporters. Failures are counted, the first one of a series is logged, and none affects a run.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

use crate::mcp::web;

/// Maximum bytes that are read of a collector's answer.
const MAX_ANSWER: usize = 64 * 1024;

/// By how much the priority of the threads that export is lower than that of the process, which threads of runs have.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// The lowest priority that there is.
#[cfg(target_os = "linux")]
const MAX_NICENESS: i32 = 19;

#[cfg(target_os = "linux")]
thread_local! {
    static YIELDS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Lowers the priority of the current thread, once: where all processors are busy, runs come first.
///
/// The niceness is added to that of the first thread, because each thread inherits that of the one that starts it.
#[cfg(target_os = "linux")]
pub(super) fn yield_to_runs() {
    if YIELDS.replace(true) {
        return;
    }
    let first = Some(rustix::process::getpid());
    let lowered = rustix::process::getpriority_process(first).and_then(|niceness| {
        let lower = (niceness + NICENESS).min(MAX_NICENESS);
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), lower)
    });
    if let Err(error) = lowered {
        tracing::debug!(%error, "a thread that exports keeps its priority");
    }
}

/// Elsewhere a niceness is that of the whole process, with its runs.
#[cfg(not(target_os = "linux"))]
pub(super) fn yield_to_runs() {}

/// Sends requests on a runtime of its own: the exporters call it from threads that have none.
#[derive(Clone)]
pub(crate) struct ExportClient {
    client: web::Client,
    runtime: Handle,
    timeout: Duration,
    failures: Arc<Failures>,
}

/// The failures of exports.
#[derive(Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    /// Whether the last export failed. That was logged then.
    is_failing: AtomicBool,
}

impl ExportClient {
    pub(crate) fn new(client: web::Client, runtime: Handle, timeout: Duration) -> Self {
        Self { client, runtime, timeout, failures: Arc::default() }
    }

    /// Number of exports that have failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.count.load(Ordering::Relaxed)
    }
}

impl Failures {
    fn record(&self, failure: Option<&str>) {
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        let Some(failure) = failure else { return };
        self.count.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("cx_telemetry_export_failures_total").increment(1);
        if !was_failing {
            tracing::warn!(failure, "traces or metrics cannot be exported; they are dropped until they can");
        }
    }
}

impl fmt::Debug for ExportClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ExportClient")
    }
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for ExportClient {
    // As `async_trait` writes it.
    fn send_bytes<'life0, 'async_trait>(&'life0 self, request: Request<Bytes>) -> Sent<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        // The SDK makes the thread that gathers a batch, encodes it and sends it from here.
        yield_to_runs();
        let this = self.clone();
        let sending = self.runtime.spawn(async move {
            let sent = tokio::time::timeout(this.timeout, this.send(request)).await;
            let sent = sent.unwrap_or_else(|_elapsed| Err("the collector did not answer in time".to_owned()));
            let problem = match &sent {
                Err(problem) => Some(problem.clone()),
                Ok(response) if !response.status().is_success() => {
                    Some(format!("the collector answered with status {}", response.status().as_u16()))
                }
                Ok(_) => None,
            };
            this.failures.record(problem.as_deref());
            sent
        });
        Box::pin(async move { Ok(sending.await??) })
    }
}

impl ExportClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        // The cause without the address, which may contain a secret.
        let failed = |error: web::RequestError| format!("no answer of the collector: {}", web::cause(&error));
        let request = request.try_into().map_err(failed)?;
        let mut answer = self.client.execute(request).await.map_err(failed)?;
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        // A longer answer contains nothing that an exporter needs.
        let body = web::read_up_to(&mut answer, MAX_ANSWER).await.map_err(failed)?;
        *response.body_mut() = body.unwrap_or_default().into();
        Ok(response)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// As a thread of a runtime that another of its threads starts.
    #[test]
    fn threads_that_export_lower_their_own_priority_to_one_niceness() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let exporting = std::thread::spawn(move || {
            yield_to_runs();
            let started = std::thread::spawn(move || {
                yield_to_runs();
                niceness()
            });
            [niceness(), started.join().unwrap()]
        });
        assert_eq!(exporting.join().unwrap(), [(before + NICENESS).min(MAX_NICENESS); 2]);
        assert_eq!(niceness(), before);
    }
}
